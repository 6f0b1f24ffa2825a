/* Sentences whose words have tags, in CoNLL's columns: one word a line, an empty line behind a
 * sentence.
 *
 *     Empire    B-location                  1     Al      Al      PROPN  NNP  ...
 *     State     I-location                  2-3   don't   _       _      _    ...    skipped
 *     Building  I-location                  8.1   was     be      VERB   VBD  ...    skipped
 *
 * Columns are separated by tabs, or by spaces where a line has no tab. The word is in the first
 * column and its tag in the last, or, if the file is CoNLL-U (ten columns, the first one numbers),
 * in FORM and UPOS, unless options say others. Of CoNLL-U, ranges of words and empty nodes are
 * skipped; so are comments ("# ..."), and lines whose word is "-DOCSTART-".
 *
 * Each word is tokenised by itself. Its tag stands at its first piece, and a sentence that is
 * longer than a sequence is read in windows, which do not overlap:
 *
 *     words     Al-Ani     visited   Paris           (sentence)
 *     pieces    al ##-ani  visited   par ##is
 *     tags      3  .       7         3   .           . is WG_IGNORE_INDEX
 *     windows   0 ................   1 ......        of at most `room` pieces */
#ifndef WG_DATA_DATASET_TAGGED_WORDS_H
#define WG_DATA_DATASET_TAGGED_WORDS_H

#include "../batches/pair_batch.h"
#include "labels.h"

typedef struct wg__tagged_words wg__tagged_words;

typedef struct wg__tagged_words_options {
    const char *token_column, *tag_column; /* a number from 1 on, or of CoNLL-U a name ("UPOS");
                                            * NULL or "": as above */
    int64_t room; /* pieces of a window; 0: any number. A longer word loses its end */
} wg__tagged_words_options;

/* Reads a file; `options` may be NULL. If `labels` is {0} it becomes the tags found, in the order
 * of wg__labels_sort; else there may be no others. Freed with wg__tagged_words_free. NULL with
 * [NOT_FOUND, IO, MEMORY; ARGUMENT for a column that is neither a number nor a name; FORMAT, with
 * the line: not UTF-8, another number of columns than before, a column that is not there, an empty
 * word or tag, a tag that is unknown, no word at all, or one tag only] */
wg__tagged_words *wg__tagged_words_load(const char *path, const wg_tokenizer *tokenizer,
                                        wg__labels *labels,
                                        const wg__tagged_words_options *options);

/* Frees it; NULL is allowed. */
void wg__tagged_words_free(wg__tagged_words *words);

/* How many there are. Given NULL: 0. */
int64_t wg__tagged_words_sentences(const wg__tagged_words *words);
int64_t wg__tagged_words_windows(const wg__tagged_words *words);
int64_t wg__tagged_words_count(const wg__tagged_words *words);

/* Words are numbered through all sentences. The first word of a sentence; that of the sentence
 * behind the last is the number of words. Likewise of a window. */
int64_t wg__tagged_words_sentence(const wg__tagged_words *words, int64_t sentence);
int64_t wg__tagged_words_window(const wg__tagged_words *words, int64_t window);

/* A word, borrowed, and the number of its tag. */
const char *wg__tagged_words_text(const wg__tagged_words *words, int64_t word);
int64_t wg__tagged_words_tag(const wg__tagged_words *words, int64_t word);

/* Identifies the words and their windows: a resumed run must have the same. */
uint64_t wg__tagged_words_fingerprint(const wg__tagged_words *words);

/* ---- Batches ---- */

/* Owned by the scope that was open. */
typedef struct wg__tagged_batch {
    wg_pair_batch inputs;
    wg_tensor *labels; /* (B, T) i64: a tag at the first piece of each word, else WG_IGNORE_INDEX */
    int64_t words;
} wg__tagged_batch;

/* Fills `batch` with these windows. [scope; MEMORY] */
int wg__tagged_batch_read(const wg__tagged_words *words, const wg_pair_frame *frame, int64_t count,
                          const int64_t *windows, wg__tagged_batch *batch);

#endif
