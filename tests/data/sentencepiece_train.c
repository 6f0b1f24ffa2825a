/* Learning SentencePiece BPE and unigram models: pieces counted by hand, probabilities by
 * tests/fixtures/unigram.py, round trips, refusals, failing allocations. */
#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "data/internal.h"

enum { SPECIALS = 3 };

static const char words[] = "low low  low lower\nlower newest";

START_TEST(pieces_are_special_then_merges_by_count_then_characters_by_count) {
    /* (l, o), (o, w) and (U+2581, l) occur 5 times each; after U+2581low, (e, r) occurs twice. */
    static const char *const expected[] = {
        "<unk>", "<s>", "</s>", "lo", "low", "\u2581low", "er", "\u2581lower", "w", "\u2581",
        "l",     "o",   "e",    "r",  "n",   "s",         "t"};
    wg_tokenizer *tokenizer = wg__sentencepiece_train(words, -1, NULL);
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
    wg_tokenizer *tokenizer = wg__sentencepiece_train("ab12, ab12, ab12,", -1, NULL);
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
    wg_tokenizer *tokenizer = wg__sentencepiece_train(words, -1, &training);
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

START_TEST(pieces_have_at_most_16_characters) {
    static const char text[] = "abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz";
    for (int unigram = 0; unigram < 2; unigram++) {
        wg_tokenizer *tokenizer =
            wg__sentencepiece_train(text, -1, &(wg_sentencepiece_training){.unigram = unigram});
        assert_no_error();
        size_t longest = 0;
        for (int32_t i = SPECIALS; i < wg_tokenizer_size(tokenizer); i++) {
            const char *piece = wg_tokenizer_token(tokenizer, i);
            const size_t length = strlen(piece) - 2 * (strncmp(piece, "\u2581", 3) == 0);
            longest = length > longest ? length : longest;
        }
        ck_assert_uint_eq(longest, 16);
        wg_tokenizer_free(tokenizer);
    }
}
END_TEST

START_TEST(unigram_pieces_have_the_probabilities_of_two_steps_of_em) {
    static const struct {
        const char *piece;
        double score;
    } expected[] = {{"\u2581low", -1.602589}, {"\u2581lower", -2.104645}, {"e", -3.080061},
                    {"\u2581", -3.103367},    {"n", -3.103369},           {"s", -3.103369},
                    {"t", -3.103369},         {"we", -3.123853},          {"l", -4.489663},
                    {"o", -4.489663},         {"r", -4.489663},           {"w", -4.489663}};
    enum { COUNT = sizeof expected / sizeof expected[0] };
    wg_tokenizer *tokenizer =
        wg__sentencepiece_train(words, -1, &(wg_sentencepiece_training){.unigram = true});
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), SPECIALS + COUNT);
    const wg__pieces *pieces = (const wg__pieces *)tokenizer;
    for (int i = 0; i < COUNT; i++) {
        const int32_t id = wg_tokenizer_id(tokenizer, expected[i].piece);
        ck_assert_int_ge(id, SPECIALS);
        ck_assert_double_eq_tol(pieces->scores[id], expected[i].score, 2e-6);
        ck_assert(i == 0 || pieces->scores[SPECIALS + i] <= pieces->scores[SPECIALS + i - 1]);
    }
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* Seven characters, and room for two words of three. */
START_TEST(unigram_pruning_keeps_the_pieces_that_the_text_needs) {
    static const char text[] = "than than than than than the the the cat cat";
    const wg_sentencepiece_training training = {.unigram = true,
                                                .vocabulary_size = SPECIALS + 7 + 2};
    wg_tokenizer *tokenizer = wg__sentencepiece_train(text, -1, &training);
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), SPECIALS + 7 + 2);
    ck_assert_int_ge(wg_tokenizer_id(tokenizer, "\u2581than"), 0);
    ck_assert_int_ge(wg_tokenizer_id(tokenizer, "\u2581the"), 0);
    ck_assert_int_eq(wg_tokenizer_id(tokenizer, "\u2581cat"), -1);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(marks_between_documents_are_not_learnt) {
    for (int unigram = 0; unigram < 2; unigram++) {
        wg_tokenizer *tokenizer =
            wg__sentencepiece_train("so\n<|endoftext|>\nso\n<|endoftext|>\nso", -1,
                                    &(wg_sentencepiece_training){.unigram = unigram});
        assert_no_error();
        ck_assert_int_eq(wg_tokenizer_id(tokenizer, "<"), -1);
        ck_assert_int_eq(wg_tokenizer_id(tokenizer, "x"), -1);
        wg_tokenizer_free(tokenizer);
    }
}
END_TEST

START_TEST(training_refuses_what_it_cannot_learn_from) {
    ck_assert_ptr_null(wg__sentencepiece_train(" \n ", -1, NULL));
    assert_error(WG_ERROR_FORMAT, "no words");
    ck_assert_ptr_null(wg__sentencepiece_train("caf\xe9", -1, NULL));
    assert_error(WG_ERROR_FORMAT, "UTF-8");
    ck_assert_ptr_null(
        wg__sentencepiece_train(words, -1, &(wg_sentencepiece_training){.vocabulary_size = 11}));
    assert_error(WG_ERROR_ARGUMENT, "ask for 12 or more");
    ck_assert_ptr_null(
        wg__sentencepiece_train(words, -1, &(wg_sentencepiece_training){.min_frequency = -1}));
    assert_error(WG_ERROR_ARGUMENT, "min_frequency");
}
END_TEST

START_TEST(failing_allocations_leak_nothing) {
    for (int unigram = 0; unigram < 2; unigram++) {
        bool done = false;
        for (int64_t n = 0; !done; n++) {
            wg__alloc_fail_after(n);
            wg_tokenizer *tokenizer = wg__sentencepiece_train(
                words, -1, &(wg_sentencepiece_training){.unigram = unigram});
            wg__alloc_fail_after(-1);
            done = tokenizer != NULL;
            ck_assert(done || wg_error_pending());
            wg_error_clear();
            wg_tokenizer_free(tokenizer);
        }
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        pieces_are_special_then_merges_by_count_then_characters_by_count,
        letters_digits_and_punctuation_share_no_piece,
        bytes_bring_back_characters_that_are_no_pieces,
        pieces_have_at_most_16_characters,
        unigram_pieces_have_the_probabilities_of_two_steps_of_em,
        unigram_pruning_keeps_the_pieces_that_the_text_needs,
        marks_between_documents_are_not_learnt,
        training_refuses_what_it_cannot_learn_from,
        failing_allocations_leak_nothing,
    };
    add_suite("sentencepiece_train", tests);
}
