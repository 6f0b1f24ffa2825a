/* What the tests of tokenizers share. */
#ifndef WG_TESTS_TOKENS_OF_H
#define WG_TESTS_TOKENS_OF_H

#include "data/tokenizer/tokenizer.h"

/* The tokens of a text, joined by blanks, in a static buffer. Fails the test if there is an error.
 */
const char *tokens_of(const wg_tokenizer *tokenizer, const char *text,
                      const wg_encode_options *options);

/* Fails the test unless both have the same tokens, the special ones for the same purposes. */
void assert_same_tokenizer(const wg_tokenizer *a, const wg_tokenizer *b);

#endif
