/* Where the tokens of a text are kept: what corpora (corpus.h), streams (token_stream.h) and pairs
 * (sentence_pairs.h) share.
 *
 * A text is tokenised once, into a token file (an HDF5 file, described in docs/training.md) of
 * which only what is looked at is in memory. Wherever a path of a text is asked for, that of a
 * token file does, too; its tokenizer must be the one that is given. */
#ifndef WG_DATA_DATASET_TOKENS_H
#define WG_DATA_DATASET_TOKENS_H

#include "../tokenizer/tokenizer.h"

WG_BEGIN_DECLS

typedef struct wg_token_storage {
    /* The token file. One that is there is used if it was made of the same texts, by their sizes
     * and times, with the same tokenizer, and made anew if not. NULL: a file without a name in
     * $TMPDIR, else /tmp, which goes with the last who uses it. */
    const char *path;

    /* Hears, in a line, why a file that was there is made anew; NULL: nobody does. */
    void (*note)(void *context, const char *line);
    void *context;
} wg_token_storage;

/* True if there is an HDF5 file of that name, as token files are, and no text. */
WG_API bool wg_tokens_found(const char *path);

WG_END_DECLS

#endif
