/* Learning SentencePiece BPE and unigram models: pieces counted by hand, probabilities by
 * tests/fixtures/unigram.py, round trips, refusals, failing allocations. */
#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

enum { FIRST = 3 }; /* behind the special pieces */

static wg_tokenizer *train(const char *text, const wg_sentencepiece_training *training) {
    return owned(wg__sentencepiece_train(text, -1, training));
}

static const char words[] = "low low  low lower\nlower newest";

TEST(pieces_are_special_then_merges_by_count_then_characters_by_count) {
    /* (l, o), (o, w) and (U+2581, l) occur 5 times each; after U+2581low, (e, r) occurs twice. */
    static const char *const expected[] = {
        "<unk>", "<s>", "</s>", "lo", "low", "\u2581low", "er", "\u2581lower", "w", "\u2581",
        "l",     "o",   "e",    "r",  "n",   "s",         "t"};
    wg_tokenizer *tokenizer = train(words, NULL);
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 17);
    for (int32_t i = 0; i < 17; i++)
        ck_assert_str_eq(wg_tokenizer_token(tokenizer, i), expected[i]);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_UNKNOWN), 0);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN), 1);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_END), 2);
}

TEST(letters_digits_and_punctuation_share_no_piece) {
    wg_tokenizer *tokenizer = train("ab12, ab12, ab12,", NULL);
    assert_no_error();
    ck_assert_int_ge(wg_tokenizer_id(tokenizer, "\u2581ab"), 0);
    ck_assert_int_ge(wg_tokenizer_id(tokenizer, "12"), 0);
    ck_assert_int_eq(wg_tokenizer_id(tokenizer, "b1"), -1);
    ck_assert_int_eq(wg_tokenizer_id(tokenizer, "2,"), -1);
}

TEST(bytes_bring_back_characters_that_are_no_pieces) {
    const wg_sentencepiece_training training = {.vocabulary_size = 300, .byte_fallback = true};
    wg_tokenizer *tokenizer = train(words, &training);
    assert_no_error();
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 3 + 0xC3), "<0xC3>");
    assert_comes_back(tokenizer, "lower caf\u00e9", NULL);
}

TEST(pieces_have_at_most_16_characters) {
    static const char text[] = "abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz";
    for (int unigram = 0; unigram < 2; unigram++) {
        wg_tokenizer *tokenizer = train(text, &(wg_sentencepiece_training){.unigram = unigram});
        assert_no_error();
        size_t longest = 0;
        for (int32_t i = FIRST; i < wg_tokenizer_size(tokenizer); i++) {
            const char *piece = wg_tokenizer_token(tokenizer, i);
            const size_t length = strlen(piece) - 2 * (strncmp(piece, "\u2581", 3) == 0);
            longest = length > longest ? length : longest;
        }
        ck_assert_uint_eq(longest, 16);
    }
}

TEST(unigram_pieces_have_the_probabilities_of_two_steps_of_em) {
    static const struct {
        const char *piece;
        double score;
    } expected[] = {{"\u2581low", -1.602589}, {"\u2581lower", -2.104645}, {"e", -3.080061},
                    {"\u2581", -3.103367},    {"n", -3.103369},           {"s", -3.103369},
                    {"t", -3.103369},         {"we", -3.123853},          {"l", -4.489663},
                    {"o", -4.489663},         {"r", -4.489663},           {"w", -4.489663}};
    enum { COUNT = sizeof expected / sizeof expected[0] };
    wg_tokenizer *tokenizer = train(words, &(wg_sentencepiece_training){.unigram = true});
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), FIRST + COUNT);
    const wg__pieces *pieces = (const wg__pieces *)tokenizer;
    for (int i = 0; i < COUNT; i++) {
        const int32_t id = wg_tokenizer_id(tokenizer, expected[i].piece);
        ck_assert_int_ge(id, FIRST);
        ck_assert_double_eq_tol(pieces->scores[id], expected[i].score, 2e-6);
        ck_assert(i == 0 || pieces->scores[FIRST + i] <= pieces->scores[FIRST + i - 1]);
    }
}

/* Seven characters, and room for two words of three. */
TEST(unigram_pruning_keeps_the_pieces_that_the_text_needs) {
    static const char text[] = "than than than than than the the the cat cat";
    const wg_sentencepiece_training training = {.unigram = true, .vocabulary_size = FIRST + 7 + 2};
    wg_tokenizer *tokenizer = train(text, &training);
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), FIRST + 7 + 2);
    ck_assert_int_ge(wg_tokenizer_id(tokenizer, "\u2581than"), 0);
    ck_assert_int_ge(wg_tokenizer_id(tokenizer, "\u2581the"), 0);
    ck_assert_int_eq(wg_tokenizer_id(tokenizer, "\u2581cat"), -1);
}

TEST(marks_between_documents_are_not_learnt) {
    for (int unigram = 0; unigram < 2; unigram++) {
        wg_tokenizer *tokenizer = train("so\n<|endoftext|>\nso\n<|endoftext|>\nso",
                                        &(wg_sentencepiece_training){.unigram = unigram});
        assert_no_error();
        ck_assert_int_eq(wg_tokenizer_id(tokenizer, "<"), -1);
        ck_assert_int_eq(wg_tokenizer_id(tokenizer, "x"), -1);
    }
}

TEST(training_refuses_what_it_cannot_learn_from) {
    assert_fails(train(" \n ", NULL), WG_ERROR_FORMAT, "no words");
    assert_fails(train("caf\xe9", NULL), WG_ERROR_FORMAT, "UTF-8");
    assert_fails(train(words, &(wg_sentencepiece_training){.vocabulary_size = 11}),
                 WG_ERROR_ARGUMENT, "ask for 12 or more");
    assert_fails(train(words, &(wg_sentencepiece_training){.min_frequency = -1}), WG_ERROR_ARGUMENT,
                 "min_frequency");
}

static bool train_and_free(const void *training) {
    wg_tokenizer *tokenizer = wg__sentencepiece_train(words, -1, training);
    wg_tokenizer_free(tokenizer);
    return tokenizer;
}

TEST(failing_allocations_leak_nothing) {
    for (int unigram = 0; unigram < 2; unigram++)
        fail_every_allocation(train_and_free, &(wg_sentencepiece_training){.unigram = unigram});
}
