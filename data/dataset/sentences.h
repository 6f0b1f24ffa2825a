/* Where sentences end, by punctuation. */
#ifndef WG_DATA_DATASET_SENTENCES_H
#define WG_DATA_DATASET_SENTENCES_H

#include <stdint.h>

/* The offset just behind the sentence that begins at `start` of a paragraph of UTF-8 text: behind a
 * full stop, question mark, exclamation mark or ellipsis and the quotes and brackets that close
 * after it, if a space follows and then no small letter, and unless the full stop marks an
 * abbreviation (Mr. Bennet, J. Smith, Fig. 3, e.g.). Otherwise `length`. Ideographic full stops
 * need no space. */
int64_t wg__sentence_end(const char *text, int64_t start, int64_t length);

#endif
