/* SentencePiece's normalisation of a text before it is segmented into pieces, with the table of
 * character rules, and base64, in which JSON files keep that table.
 *
 *     " Ｈｅｌｌｏ  world\t"
 *       characters replaced by the rules (here to Unicode's NFKC), optional
 *       white space removed at both ends and next to other white space, optional
 *       one space put before the text, optional
 *     "▁Hello▁world"        spaces written as U+2581
 */
#ifndef WG_DATA_TOKENIZER_NORMALIZE_H
#define WG_DATA_TOKENIZER_NORMALIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/string_table.h"

#define WG__SPACE_SYMBOL "\xE2\x96\x81" /* U+2581 */

/* ---- Character rules: SentencePiece's precompiled_charsmap ----
 *
 *     4 bytes       the size of the trie in bytes
 *     trie          units of 32 bits, a double array (Aoe 1989) in the layout of darts-clone; its
 * keys are replaced, its values are offsets into the replacements replacements  texts, each closed
 * by a NUL
 */

typedef struct wg__charsmap {
    char *blob; /* the whole table */
    int64_t length;
    const unsigned char *units;
    int64_t unit_count;
    const char *texts;
    int64_t texts_length;
} wg__charsmap;

/* Copies a table and checks its layout; freed with wg__normalizer_clear.
 * [FORMAT for sizes that do not fit, or replacements that are not UTF-8] */
int wg__charsmap_set(wg__charsmap *map, const char *blob, int64_t length);

/* ---- Normalisation ---- */

typedef enum wg__space_prefix {
    WG__PREFIX_NONE,
    WG__PREFIX_ALWAYS,
    WG__PREFIX_MISSING, /* unless the text begins with a space */
    WG__PREFIX_COUNT
} wg__space_prefix;

typedef struct wg__normalizer {
    wg__charsmap charsmap;
    bool by_grapheme; /* wg__replace_graphemes applies the rules, before wg__normalize */
    wg__space_prefix prefix;
    bool prefix_first;  /* the prefix only begins the whole text, not a stretch after an added token
                         */
    bool space_suffix;  /* the prefix goes to the end instead */
    bool remove_spaces; /* at the ends, and all but one of several in a row */
    bool plain_spaces;  /* spaces are not written as U+2581 */
    wg__strings kept;   /* texts that stay as they are */
    bool kept_begins[256]; /* a kept text begins with this byte */
} wg__normalizer;

/* Appends the normalised text to `out`; `first`: the stretch begins the whole text. The text is
 * UTF-8. [MEMORY] */
int wg__normalize(const wg__normalizer *normalizer, const char *text, int64_t length, bool first,
                  wg__text *out);

/* Appends a UTF-8 text with the character rules applied as Hugging Face does, grapheme by grapheme.
 * A short grapheme becomes the replacement of its shortest beginning that has one; in other
 * graphemes each character is looked up. [MEMORY] */
int wg__replace_graphemes(const wg__normalizer *normalizer, const char *text, int64_t length,
                          wg__text *out);

/* The length of the longest kept text at the beginning of `text`, or 0; *number is its number. */
int64_t wg__normalize_kept(const wg__normalizer *normalizer, const char *text, int64_t length,
                           int64_t *number);

void wg__normalizer_clear(wg__normalizer *normalizer);

/* ---- Base64 (RFC 4648, section 4) ---- */

/* Appends bytes as base64. [MEMORY] */
int wg__base64_encode(const char *bytes, int64_t length, wg__text *text);

/* Appends the bytes of a base64 text. [MEMORY; FORMAT, with `where`, if it is not base64] */
int wg__base64_decode(const char *text, int64_t length, wg__text *bytes, const char *where);

#endif
