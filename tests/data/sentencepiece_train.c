/* Learning SentencePiece BPE: pieces counted by hand, round trips, refusals, failing allocations.
 */
#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer/sentencepiece_train.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"

static const char words[] = "low low  low lower\nlower newest";

START_TEST(pieces_are_special_then_merges_by_count_then_characters_by_count) {
    /* (l, o), (o, w) and (U+2581, l) occur 5 times each; after U+2581low, (e, r) occurs twice. */
    static const char *const expected[] = {
        "<unk>", "<s>", "</s>", "lo", "low", "\u2581low", "er", "\u2581lower", "w", "\u2581",
        "l",     "o",   "e",    "r",  "n",   "s",         "t"};
    wg_tokenizer *tokenizer = wg_sentencepiece_train(words, -1, NULL);
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 17);
    for (int32_t i = 0; i < 17; i++)
        ck_assert_str_eq(wg_tokenizer_token(tokenizer, i), expected[i]);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_UNKNOWN), 0);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN), 1);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_END), 2);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(letters_digits_and_punctuation_share_no_piece) {
    wg_tokenizer *tokenizer = wg_sentencepiece_train("ab12, ab12, ab12,", -1, NULL);
    assert_no_error();
    ck_assert_int_ge(wg_tokenizer_id(tokenizer, "\u2581ab"), 0);
    ck_assert_int_ge(wg_tokenizer_id(tokenizer, "12"), 0);
    ck_assert_int_eq(wg_tokenizer_id(tokenizer, "b1"), -1);
    ck_assert_int_eq(wg_tokenizer_id(tokenizer, "2,"), -1);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(bytes_bring_back_characters_that_are_no_pieces) {
    const wg_sentencepiece_training training = {.vocabulary_size = 300, .byte_fallback = true};
    wg_tokenizer *tokenizer = wg_sentencepiece_train(words, -1, &training);
    assert_no_error();
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 3 + 0xC3), "<0xC3>");
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, "lower caf\u00e9", -1, NULL, &list), 0);
    char *text = wg_tokenizer_decode(tokenizer, list.ids, list.count, NULL);
    ck_assert_str_eq(text, "lower caf\u00e9");
    wg_text_free(text);
    wg_token_list_free(&list);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(training_refuses_what_it_cannot_learn_from) {
    ck_assert_ptr_null(wg_sentencepiece_train(" \n ", -1, NULL));
    assert_error(WG_ERROR_FORMAT, "no words");
    ck_assert_ptr_null(wg_sentencepiece_train("caf\xe9", -1, NULL));
    assert_error(WG_ERROR_FORMAT, "UTF-8");
    ck_assert_ptr_null(
        wg_sentencepiece_train(words, -1, &(wg_sentencepiece_training){.vocabulary_size = 11}));
    assert_error(WG_ERROR_ARGUMENT, "ask for 12 or more");
    ck_assert_ptr_null(
        wg_sentencepiece_train(words, -1, &(wg_sentencepiece_training){.min_frequency = -1}));
    assert_error(WG_ERROR_ARGUMENT, "min_frequency");
}
END_TEST

START_TEST(failing_allocations_leak_nothing) {
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        wg__alloc_fail_after(n);
        wg_tokenizer *tokenizer = wg_sentencepiece_train(words, -1, NULL);
        wg__alloc_fail_after(-1);
        done = tokenizer != NULL;
        ck_assert(done || wg_error_pending());
        wg_error_clear();
        wg_tokenizer_free(tokenizer);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        pieces_are_special_then_merges_by_count_then_characters_by_count,
        letters_digits_and_punctuation_share_no_piece,
        bytes_bring_back_characters_that_are_no_pieces,
        training_refuses_what_it_cannot_learn_from,
        failing_allocations_leak_nothing,
    };
    add_suite("sentencepiece_train", tests);
}
