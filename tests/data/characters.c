/* Tokenizers of characters and of bytes. */
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/text_file.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "data/internal.h"

static const char hostile[] = "ab\0c\u00e9e\u0301 \U0001f469\u200d\U0001f680\u202e\ue000\uffff\t\n";

/* Fails unless encoding and decoding, after a round trip through our JSON, give the same bytes. */
static void assert_round_trip(wg_tokenizer *tokenizer, const char *text, int64_t length) {
    char *json = wg_tokenizer_to_json(tokenizer);
    wg_tokenizer *again = wg_tokenizer_from_json(json);
    assert_no_error();
    ck_assert_str_eq(wg_tokenizer_kind(again), wg_tokenizer_kind(tokenizer));
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(again, text, length, NULL, &list), 0);
    wg_decode_stream *stream = wg_decode_stream_new(again, NULL);
    int64_t at = 0;
    for (int64_t i = 0; i < list.count; i++) {
        int64_t size;
        const char *part = wg_decode_stream_next(stream, list.ids[i], &size);
        ck_assert(at + size <= length);
        ck_assert_mem_eq(part, text + at, (size_t)size);
        at += size;
    }
    ck_assert_int_eq(at, length);
    wg_decode_stream_free(stream);
    wg_token_list_free(&list);
    wg_text_free(json);
    wg_tokenizer_free(again);
}

TEST(any_text_comes_back) {
    wg_tokenizer *bytes = owned(wg_byte_new());
    wg_tokenizer *characters = owned(wg__char_train(hostile, sizeof hostile - 1, NULL));
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(bytes), 256);
    ck_assert_str_eq(wg_tokenizer_token(bytes, 10), "<0x0A>");
    assert_round_trip(bytes, hostile, sizeof hostile - 1);
    assert_round_trip(characters, hostile, sizeof hostile - 1);
}

TEST(the_alphabet_is_that_of_the_text_in_order) {
    wg_tokenizer *tokenizer = owned(wg__char_train("b\u00e9a\nba", -1, NULL));
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 4);
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 0), "\n");
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 1), "a");
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 3), "\u00e9");
}

TEST(a_character_outside_the_alphabet_is_an_error_or_unknown) {
    wg_token_list list = {0};
    wg_tokenizer *strict = owned(wg__char_train("ab", -1, NULL));
    assert_fails(wg_tokenizer_encode(strict, "ab\u00e9", -1, NULL, &list), WG_ERROR_FORMAT,
                 "\u00e9");
    ck_assert_int_eq(list.count, 0);
    wg_tokenizer *open = owned(wg__char_train("ab", -1, &(wg_char_training){.unknown = true}));
    ck_assert_int_eq(wg_tokenizer_encode(open, "a\u00e9b<unk>", 4, NULL, &list), 0);
    ck_assert_mem_eq(list.ids, ((int32_t[]){1, 0, 2}), 3 * sizeof(int32_t));
    ck_assert_int_eq(wg_tokenizer_special(open, WG_TOKEN_UNKNOWN), 0);
    wg_token_list_free(&list);
}

TEST(shakespeare_has_65_characters) {
    const char *path = real_data("tinyshakespeare/input.txt");
    if (!path)
        return;
    wg_tokenizer *tokenizer = owned(wg_char_train_files(1, &path, NULL));
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 65);
    int64_t length;
    char *text = owned(wg__text_file_read(path, &length, "test"));
    assert_round_trip(tokenizer, text, length);
}

TEST(bad_texts_and_vocabularies_are_refused) {
    assert_fails(wg__char_train("", -1, NULL), WG_ERROR_FORMAT, "no text");
    assert_fails(wg__char_train("\xff", -1, NULL), WG_ERROR_FORMAT, "not UTF-8");
    const char *const bad[][2] = {
        {"{\"format\":\"wengert-tokenizer\",\"kind\":\"char\",\"options\":{},\"vocabulary\":["
         "\"ab\"]}",
         "not one character"},
        {"{\"format\":\"wengert-tokenizer\",\"kind\":\"byte\",\"options\":{},\"vocabulary\":[\"a\"]"
         "}",
         "<0x00> to <0xFF>"},
    };
    for (size_t i = 0; i < WG_COUNT(bad); i++)
        assert_fails(wg_tokenizer_from_json(bad[i][0]), WG_ERROR_FORMAT, bad[i][1]);
}

static bool make_both(const void *context) {
    (void)context;
    wg_tokenizer *characters = wg__char_train(hostile, sizeof hostile - 1, NULL);
    wg_tokenizer *bytes = characters ? wg_byte_new() : NULL;
    wg_tokenizer_free(bytes);
    wg_tokenizer_free(characters);
    return bytes;
}

TEST(failing_allocations_leak_nothing) {
    fail_every_allocation(make_both, NULL);
}
