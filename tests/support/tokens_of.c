/* Tokens as one text, and tokenizers compared: see tokens_of.h. */
#include "tests/support/tokens_of.h"

#include <string.h>

#include "tests/support/testing.h"

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

void assert_same_tokenizer(const wg_tokenizer *a, const wg_tokenizer *b) {
    ck_assert_int_eq(wg_tokenizer_size(a), wg_tokenizer_size(b));
    for (int32_t i = 0; i < wg_tokenizer_size(a); i++)
        ck_assert_str_eq(wg_tokenizer_token(a, i), wg_tokenizer_token(b, i));
    for (int i = 0; i < WG_TOKEN_SPECIAL_COUNT; i++)
        ck_assert_int_eq(wg_tokenizer_special(a, i), wg_tokenizer_special(b, i));
}
