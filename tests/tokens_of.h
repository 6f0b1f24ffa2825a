/* What a tokenizer makes of a text, for the tests of tokenizers. */
#ifndef WG_TESTS_TOKENS_OF_H
#define WG_TESTS_TOKENS_OF_H

#include "data/tokenizer.h"

/* The tokens of a text, joined by blanks, in a static buffer. Fails the test if there is an error.
 */
const char *tokens_of(const wg_tokenizer *tokenizer, const char *text,
                      const wg_encode_options *options);

#endif
