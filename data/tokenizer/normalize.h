/* What SentencePiece does to a text before it cuts it into pieces.
 *
 *     " Ｈｅｌｌｏ  world\t"
 *       characters replaced by a table (here to Unicode's NFKC), or not
 *       white space at the ends and next to other white space removed, or not
 *       one space put before all, or not
 *     "▁Hello▁world"        spaces written as U+2581
 */
#ifndef WG_DATA_TOKENIZER_NORMALIZE_H
#define WG_DATA_TOKENIZER_NORMALIZE_H

#include "data/tokenizer/charsmap.h"
#include "base/array.h"
#include "base/string_table.h"

#define WG__SPACE_SYMBOL "\xE2\x96\x81" /* U+2581 */

typedef enum wg__space_prefix {
    WG__PREFIX_NONE,
    WG__PREFIX_ALWAYS,
    WG__PREFIX_MISSING, /* unless a space is there */
    WG__PREFIX_COUNT
} wg__space_prefix;

typedef struct wg__normalizer {
    wg__charsmap charsmap;
    bool by_grapheme; /* the table is applied by wg__replace_graphemes, before */
    wg__space_prefix prefix;
    bool prefix_first;  /* only to a text's beginning, not after an added token */
    bool space_suffix;  /* the space goes to the end instead */
    bool remove_spaces; /* at the ends, and but one where several stand */
    bool plain_spaces;  /* not written as U+2581 */
    wg__strings kept;   /* texts that nothing is done to */
    bool kept_begins[256];
} wg__normalizer;

/* Appends what becomes of a UTF-8 text to `out`; `first`: the whole text begins with it. [MEMORY]
 */
int wg__normalize(const wg__normalizer *normalizer, const char *text, int64_t length, bool first,
                  wg__text *out);

/* Appends a UTF-8 text with its characters replaced as Hugging Face does, which leaves the spaces
 * to wg__normalize: grapheme by grapheme. A short one is replaced as a whole by what stands for the
 * shortest beginning of it that the table knows; of others every character is looked up. [MEMORY]
 */
int wg__replace_graphemes(const wg__normalizer *normalizer, const char *text, int64_t length,
                          wg__text *out);

/* How long the longest kept text is that `text` begins with, or 0; *number is its number. */
int64_t wg__normalize_kept(const wg__normalizer *normalizer, const char *text, int64_t length,
                           int64_t *number);

void wg__normalizer_clear(wg__normalizer *normalizer);

#endif
