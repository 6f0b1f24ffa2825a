/* SentencePiece's precompiled table of character rules: a trie of what is replaced, and the texts
 * that stand for it.
 *
 *     4 bytes       the size of the trie in bytes
 *     trie          units of 32 bits, a double array (Aoe 1989) as darts-clone lays it out
 *     replacements  texts, each closed by a NUL; the trie's values are offsets into them
 */
#ifndef WG_DATA_TOKENIZER_CHARSMAP_H
#define WG_DATA_TOKENIZER_CHARSMAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wg__charsmap {
    char *blob; /* all of it */
    int64_t length;
    const unsigned char *units;
    int64_t unit_count;
    const char *texts;
    int64_t texts_length;
} wg__charsmap;

/* Copies a table and checks its layout; freed with wg__charsmap_clear.
 * [FORMAT for sizes that do not fit, or replacements that are not UTF-8] */
int wg__charsmap_set(wg__charsmap *map, const char *blob, int64_t length);

void wg__charsmap_clear(wg__charsmap *map);

/* The replacement of the longest beginning of `text` that has one (or of the shortest), closed by a
 * NUL, with the length of that beginning; NULL for none. Never ends within a character. */
const char *wg__charsmap_find(const wg__charsmap *map, const char *text, int64_t length,
                              bool shortest, int64_t *matched);

#endif
