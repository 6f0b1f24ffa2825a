/* Extending a vocabulary: tokens counted by hand, ids and spelling of the old ones, refusals, lack
 * of memory. */
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

static wg_tokenizer *wordpiece(void) {
    static const char *const pieces[] = {"[PAD]", "[UNK]",  "[CLS]",  "[SEP]", "[MASK]",
                                         "peri",  "##card", "##itis", "##o",   "my"};
    return owned(wg__wordpiece_new(WG_COUNT(pieces), pieces, NULL));
}

static wg_tokenizer *sentencepiece(const char *text, bool unigram) {
    return owned(wg__sentencepiece_train(
        text, -1, &(wg_sentencepiece_training){.unigram = unigram, .vocabulary_size = 12}));
}

static int extend(const wg_tokenizer *tokenizer, const char *text, int64_t most,
                  wg_vocabulary_extension *extension) {
    const char *path = write_text("domain.txt", text);
    return wg_tokenizer_extend(tokenizer, 1, &path, most, extension);
}

/* Fails unless an extension keeps the old tokens and its new ones are spelt by old ones: as in
 * `wanted`, "TOKEN: PIECE PIECE" each, or, without it, so that the pieces joined are the token. */
static void assert_extended(const wg_tokenizer *tokenizer, const char *text, int64_t most,
                            const char *const *wanted, wg_vocabulary_extension *x) {
    const int64_t old = wg_tokenizer_size(tokenizer);
    ck_assert_int_eq(extend(tokenizer, text, most, x), 0);
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(x->tokenizer), old + x->count);
    for (int32_t i = 0; i < old; i++)
        ck_assert_str_eq(wg_tokenizer_token(x->tokenizer, i), wg_tokenizer_token(tokenizer, i));
    for (int64_t token = 0; token < x->count; token++) {
        const char *name = wg_tokenizer_token(x->tokenizer, (int32_t)(old + token));
        char spelt[128] = "";
        if (wanted)
            snprintf(spelt, sizeof spelt, "%s:", name);
        for (int64_t i = x->starts[token]; i < x->starts[token + 1]; i++) {
            ck_assert_int_lt(x->pieces[i], old);
            strcat(spelt, wanted ? " " : "");
            strcat(spelt, wg_tokenizer_token(tokenizer, x->pieces[i]));
        }
        ck_assert_str_eq(spelt, wanted ? wanted[token] : name);
    }
}

/* (##card, ##itis) occurs five times, (peri, ##carditis) then three; (##o, ##card) once is too
 * rare, and "heart" cannot be spelt. */
TEST(the_most_frequent_pairs_become_tokens_of_wordpiece) {
    static const char *const wanted[] = {"##carditis: ##card ##itis",
                                         "pericarditis: peri ##card ##itis"};
    static const char text[] = "Pericarditis, myocarditis. pericarditis! Heart heart\npericarditis "
                               "mycarditis";
    for (int64_t most = 20; most > 0; most -= 19) { /* no more are added than asked for */
        wg_vocabulary_extension x;
        assert_extended(wordpiece(), text, most, wanted, &x);
        ck_assert_int_eq(x.count, most == 1 ? 1 : 2);
        ck_assert_int_eq(wg_tokenizer_special(x.tokenizer, WG_TOKEN_MASK), 4);
        ck_assert_str_eq(tokens_of(x.tokenizer, "pericarditis mycarditis", NULL),
                         most == 1 ? "peri ##carditis my ##carditis"
                                   : "pericarditis my ##carditis");
        wg_vocabulary_extension_clear(&x);
    }
}

/* Bytes, and the merges of the old text, which come first. */
TEST(merging_goes_on_where_bpe_ended) {
    static const char domain[] = "slow slow\n<|endoftext|>\nslow slowly slowly fowl";
    wg_tokenizer *tokenizer =
        owned(wg__bpe_train("low low low", -1, &(wg_bpe_training){.vocabulary_size = 259}));
    wg_vocabulary_extension x;
    char before[64];
    assert_extended(tokenizer, domain, 3, NULL, &x);
    ck_assert_int_eq(x.count, 3);
    ck_assert_str_eq(wg_tokenizer_token(x.tokenizer, 261), "ly");
    snprintf(before, sizeof before, "%s", tokens_of(tokenizer, "low fowl", NULL));
    ck_assert_str_eq(tokens_of(x.tokenizer, "low fowl", NULL), before);
    assert_comes_back(x.tokenizer, domain, NULL);
    wg_vocabulary_extension_clear(&x);
}

/* Of both kinds. \u2581low is a piece already; \u2581s + low, then \u2581slow + ly are joined, but
 * not the comma, nor \u00e9, which no piece has. */
TEST(sentencepiece_learns_the_words_of_a_new_text) {
    for (int unigram = 0; unigram < 2; unigram++) {
        wg_tokenizer *tokenizer = sentencepiece("low low low low s y l lowy", unigram);
        wg_vocabulary_extension x;
        assert_extended(tokenizer,
                        "slowly, slowly, slow, slow slow slow\nslowly\u00e9 slowly\u00e9 low", 8,
                        NULL, &x);
        ck_assert_str_eq(tokens_of(x.tokenizer, "slow low slowly", NULL),
                         "\u2581slow \u2581low \u2581slowly");
        for (int32_t i = 0; i < x.count; i++) {
            const char *token =
                wg_tokenizer_token(x.tokenizer, (int32_t)wg_tokenizer_size(tokenizer) + i);
            ck_assert(!strchr(token, ',') && !strstr(token, "\u00e9"));
        }
        wg_vocabulary_extension_clear(&x);
    }
}

TEST(what_cannot_be_extended_is_refused) {
    wg_tokenizer *tokenizer = wordpiece();
    wg_vocabulary_extension x;
    assert_fails(extend(owned(wg_byte_new()), "my my", 3, &x), WG_ERROR_ARGUMENT,
                 "of a byte tokenizer cannot be extended");
    assert_fails(extend(tokenizer, "my my", 0, &x), WG_ERROR_ARGUMENT, "0 new tokens");
    assert_fails(extend(tokenizer, "my my peri myo", 3, &x), WG_ERROR_FORMAT, "nothing to add");
    assert_fails(extend(tokenizer, "my \xff", 3, &x), WG_ERROR_FORMAT, "UTF-8");
    const char *missing = "missing.txt";
    assert_fails(wg_tokenizer_extend(tokenizer, 1, &missing, 3, &x), WG_ERROR_NOT_FOUND,
                 "missing.txt");
}

static const char *domain;

static bool extend_and_clear(const void *tokenizer) {
    wg_vocabulary_extension x;
    const bool done = wg_tokenizer_extend(tokenizer, 1, &domain, 5, &x) == 0;
    wg_vocabulary_extension_clear(&x);
    return done;
}

TEST(a_failed_extension_leaks_nothing) {
    domain = write_text("domain.txt", "pericarditis pericarditis mycarditis");
    fail_every_allocation(extend_and_clear, wordpiece());
    domain = write_text("domain.txt", "slowly slowly slow");
    for (int unigram = 0; unigram < 2; unigram++)
        fail_every_allocation(extend_and_clear, sentencepiece("low low s y", unigram));
}
