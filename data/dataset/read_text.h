/* The rules of dataset.h by which texts become documents of tokens. */
#ifndef WG_DATA_DATASET_READ_TEXT_H
#define WG_DATA_DATASET_READ_TEXT_H

#include "data/dataset/token_file.h"

/* Adds the documents of a text, or of the two sides of pairs, to a token file, by the file's rules.
 * `names` are for messages. [FORMAT for one without words, of which no text is left to read, or
 * that is no pairs; as encoding] */
int wg__read_text(wg__token_file *file, const wg_tokenizer *tokenizer, wg__text_map *texts,
                  const char *const *names);

/* The length of the line at `at` of a text, without its end (LF or CR LF); *next is where the next
 * line begins. `at` is below the text's length. */
int64_t wg__text_line(const wg__text_map *text, int64_t at, int64_t *next);

/* The format of sentences that a text seems to have: by line if nearly all lines end as sentences
 * do. */
wg_sentence_format wg__detect_sentence_format(wg__text_map *text);

/* The offset just behind the sentence that begins at `start` of a paragraph of UTF-8 text: behind a
 * full stop, question mark, exclamation mark or ellipsis and the quotes and brackets that close
 * after it, if a space follows and then no small letter, and unless the full stop marks an
 * abbreviation (Mr. Bennet, J. Smith, Fig. 3, e.g.). Otherwise `length`. Ideographic full stops,
 * question and exclamation marks need no space, and end no sentence where a comma follows the
 * quotes that close after them. */
int64_t wg__sentence_end(const char *text, int64_t start, int64_t length);

#endif
