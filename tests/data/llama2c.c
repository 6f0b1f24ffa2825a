/* llama2.c's tokenizer.bin: special tokens, damaged files. tokenizer_reference.c compares ids with
 * those of run.c. */
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"

typedef struct file {
    char bytes[8192];
    int64_t length;
} file;

static void put_word(file *f, uint32_t word) {
    for (int i = 0; i < 4; i++)
        f->bytes[f->length++] = (char)(word >> (8 * i));
}

static void put_token(file *f, float score, const char *text) {
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    put_word(f, bits);
    put_word(f, (uint32_t)strlen(text));
    memcpy(f->bytes + f->length, text, strlen(text));
    f->length += (int64_t)strlen(text);
}

/* <unk>, <s>, </s>, the bytes, and a few pieces. */
static file small_file(void) {
    file f = {.length = 0};
    put_word(&f, 7);
    put_token(&f, 0, "<unk>");
    put_token(&f, 0, "\n<s>\n");
    put_token(&f, 0, "\n</s>\n");
    for (unsigned i = 0; i < 256; i++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", i);
        put_token(&f, 0, text);
    }
    put_token(&f, -1, " ");
    put_token(&f, -2, "a");
    put_token(&f, -3, "b");
    put_token(&f, -5, "ab");
    put_token(&f, -4, " a");
    put_token(&f, -4, "ba");
    return f;
}

static wg_tokenizer *small(void) {
    file f = small_file();
    wg_tokenizer *tokenizer = owned(wg__llama2c_read(f.bytes, f.length, "small.bin"));
    assert_no_error();
    return tokenizer;
}

static void assert_tokens(const char *text, bool special, const char *wanted) {
    ck_assert_str_eq(tokens_of(small(), text, &(wg_encode_options){.special_tokens = special}),
                     wanted);
}

TEST(the_best_score_is_joined_first_and_bytes_stand_for_what_is_unknown) {
    assert_tokens("ab", false, " a b");
    assert_tokens("bab", false, "  ba b");
    assert_tokens("b\u00e9", false, "  b <0xC3> <0xA9>");
    assert_tokens("", false, "");
}

TEST(special_tokens_are_read_only_when_asked) {
    wg_tokenizer *tokenizer = small();
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN), 1);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_END), 2);
    ck_assert(wg__tokenizer_is_special(tokenizer, 2));
    assert_tokens("<s>a</s>", true, "\n<s>\n  a \n</s>\n");
    ck_assert_ptr_null(strstr(tokens_of(tokenizer, "<s>a\n<s>\n", NULL), "<s>"));
}

TEST(the_space_before_a_text_goes_at_its_beginning_and_after_the_begin) {
    wg_tokenizer *tokenizer = small();
    const int32_t ids[] = {1, 263, 263, 2, 198, 172}; /* <s>, " a", " a", </s>, two bytes */
    ck_assert_str_eq(text_of_ids(tokenizer, 6, ids, NULL), "<s>a a</s>\u00e9");
    ck_assert_str_eq(text_of_ids(tokenizer, 6, ids, &(wg_decode_options){.skip_special = true}),
                     "a a\u00e9");
}

static void assert_bad(const file *f, int64_t length, const char *message) {
    assert_fails(wg__llama2c_read(f->bytes, length, "bad.bin"), WG_ERROR_FORMAT, message);
}

TEST(damaged_files_are_refused_with_their_reason) {
    file f = small_file();
    assert_bad(&f, 0, "cut short");
    assert_bad(&f, 4, "the bytes alone are 259");
    assert_bad(&f, 4 + 13, "the bytes alone are 259");
    f.bytes[4 + 8] = '\0';
    assert_bad(&f, f.length, "token 0 has a NUL");
    f = small_file();
    f.bytes[4 + 4] = (char)0xff;
    f.bytes[4 + 7] = (char)0xff;
    assert_bad(&f, f.length, "token 0 has");
    f = small_file();
    f.bytes[4 + 3] = 0x7f;
    f.bytes[4 + 2] = (char)0xc0; /* NaN */
    assert_bad(&f, f.length, "token 0 is not a finite number");
    f = small_file();
    put_token(&f, 0, "ab");
    assert_bad(&f, f.length, "each token must stand once");
    f = small_file();
    f.bytes[f.length - 1] = (char)0xff;
    assert_bad(&f, f.length, "not UTF-8");
    assert_fails(wg_tokenizer_load("none.bin"), WG_ERROR_NOT_FOUND, "none.bin");
}

TEST(a_file_cut_short_anywhere_is_an_error_or_a_smaller_vocabulary) {
    file f = small_file();
    int loaded = 0;
    for (int64_t n = 0; n < f.length; n++) {
        wg_tokenizer *tokenizer = wg__llama2c_read(f.bytes, n, "cut.bin");
        ck_assert((tokenizer != NULL) != (wg_error_pending() != NULL));
        loaded += tokenizer != NULL;
        wg_error_clear();
        wg_tokenizer_free(tokenizer);
    }
    ck_assert_int_eq(loaded, 5); /* after each piece from " " on but the last */
}
