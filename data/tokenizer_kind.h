/* What the kinds of tokenizers share: the struct that each begins with, and the record of functions
 * by which tokenizer.c runs it. A new kind is one file with one such record, listed in
 * tokenizer.c. */
#ifndef WG_DATA_TOKENIZER_KIND_H
#define WG_DATA_TOKENIZER_KIND_H

#include <jansson.h>

#include "data/growth.h"
#include "data/strings.h"
#include "data/tokenizer.h"

typedef struct wg__tokenizer_kind {
    const char *name;

    /* Appends the ids of a text that has no special tokens in it; tokenizer.c takes back what was
     * appended before a failure. */
    int (*encode)(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                  wg_token_list *list);

    /* Appends the text of ids that are all in the vocabulary. */
    int (*decode)(const wg_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                  const wg_decode_options *options, wg__text *text);

    /* The options as a new JSON object; NULL without memory. */
    json_t *(*options_to_json)(const wg_tokenizer *tokenizer);

    /* A tokenizer from such an object and a vocabulary. */
    wg_tokenizer *(*from_json)(const json_t *options, int64_t count, const char *const *tokens);
} wg__tokenizer_kind;

struct wg_tokenizer {
    const wg__tokenizer_kind *kind;
    wg__strings vocabulary;
    int32_t special[WG_TOKEN_SPECIAL_COUNT]; /* ids; -1 where there is none */
};

extern const wg__tokenizer_kind wg__wordpiece_kind;

/* Fills the vocabulary of a zeroed tokenizer and finds its special tokens by their names, one for
 * each wg_special_token, NULL where the kind has none. `entry` is how messages call a token, before
 * its number counted from 1 ("vocab.txt: line").
 * [FORMAT for an empty, repeated or non-UTF-8 token] */
int wg__tokenizer_set_vocabulary(wg_tokenizer *tokenizer, int64_t count, const char *const *tokens,
                                 const char *const special_names[WG_TOKEN_SPECIAL_COUNT],
                                 const char *entry);

#endif
