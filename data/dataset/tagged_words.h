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

#include "../../base/array.h"
#include "examples.h"

typedef struct wg__tagged_word {
    int64_t text;       /* where it begins in the texts */
    int64_t first, end; /* its pieces */
    int64_t tag;
} wg__tagged_word;

/* Its examples are the windows. Words are numbered through all sentences. Targets of a batch: (B,
 * T) i64: a tag at the first piece of each word, else WG_IGNORE_INDEX. */
typedef struct wg__tagged_words {
    wg__examples base;
    wg__text texts; /* of the words, a NUL behind each */
    wg_token_list pieces;
    wg__tagged_word *words;
    int64_t count, capacity;      /* of words */
    int64_t *sentences, *windows; /* their first words, and `count` */
    int64_t sentence_count, sentence_capacity, window_capacity;
} wg__tagged_words;

typedef struct wg__tagged_words_options {
    const char *token_column, *tag_column; /* a number from 1 on, or of CoNLL-U a name ("UPOS");
                                            * NULL or "": as above */
    int64_t room; /* pieces of a window; 0: any number. A longer word loses its end */
} wg__tagged_words_options;

/* Reads a file; `options` may be NULL. If `labels` is {0} it becomes the tags found, in the order
 * of wg__labels_sort; else there may be no others. Freed with wg__examples_free. NULL with
 * [NOT_FOUND, IO, MEMORY; ARGUMENT for a column that is neither a number nor a name; FORMAT, with
 * the line: not UTF-8, another number of columns than before, a column that is not there, an empty
 * word or tag, a tag that is unknown, no word at all, or one tag only] */
wg__tagged_words *wg__tagged_words_load(const char *path, const wg_tokenizer *tokenizer,
                                        wg__labels *labels,
                                        const wg__tagged_words_options *options);

/* A word, borrowed. */
const char *wg__tagged_words_text(const wg__tagged_words *words, int64_t word);

#endif
