/* Tokens as one text: see tokens_of.h. */
#include "tests/tokens_of.h"

#include <string.h>

#include "tests/testing.h"

const char *tokens_of(const wg_tokenizer *tokenizer, const char *text,
                      const wg_encode_options *options) {
    static char joined[4096];
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, -1, options, &list), 0);
    joined[0] = '\0';
    for (int64_t i = 0; i < list.count; i++) {
        strcat(joined, i ? " " : "");
        strcat(joined, wg_tokenizer_token(tokenizer, list.ids[i]));
    }
    wg_token_list_free(&list);
    return joined;
}
