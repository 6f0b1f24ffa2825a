/* The first half of BERT's tokenizer (BasicTokenizer of google-research/bert): text to words.
 *
 *     clean     drop NUL, U+FFFD and control characters (Cc, Cf); spaces (Zs) and tab, newline and
 *               carriage return separate words
 *     space     every CJK ideograph is a word of its own
 *     fold      unless cased: lower-case (Unicode's full mapping, with the final sigma), decompose
 *               (NFD), drop accents (Mn)
 *     split     every punctuation character (P*, and all of ASCII's symbols) is a word of its own
 */
#ifndef WG_DATA_TOKENIZER_BASIC_TOKENIZER_H
#define WG_DATA_TOKENIZER_BASIC_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

/* Receives each word in order: UTF-8 bytes, and the number of characters. `bytes` is borrowed for
 * the call. A negative result stops the walk and is passed on. */
typedef int (*wg__word_visitor)(void *context, const char *bytes, int64_t length,
                                int64_t characters);

typedef struct wg__basic_rules {
    bool cased;
    bool huggingface; /* as BertNormalizer of huggingface/tokenizers: private use characters are
                       * dropped, too; accents are dropped before letters are lower-cased one by
                       * one, so there is no final sigma; U+2B820 to U+2B91F are not ideographs */
} wg__basic_rules;

/* Visits the words of a UTF-8 text. [MEMORY; FORMAT with the offset if it is not UTF-8] */
int wg__basic_tokenize(const char *text, int64_t length, wg__basic_rules rules,
                       wg__word_visitor visit, void *context);

/* How a character separates words, independent of the rules: it is within a word, white space, or a
 * word of its own (punctuation, ideographs). */
typedef enum wg__basic_class { WG__BASIC_WITHIN, WG__BASIC_SPACE, WG__BASIC_ALONE } wg__basic_class;

wg__basic_class wg__basic_class_of(int32_t c);

/* The blocks of CJK Unified Ideographs, as BERT lists them; not Hangul, Hiragana or Katakana. */
bool wg__is_ideograph(int32_t c);

/* The lower case of characters[at], of `count`, by Unicode's simple mapping with the final sigma.
 */
int32_t wg__basic_lower(const int32_t *characters, int64_t count, int64_t at);

#endif
