/* Extending a vocabulary: tokens counted by hand, ids and spelling of the old ones, refusals, lack
 * of memory. */
#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer/tokenizer.h"
#include "tests/support/testing.h"
#include "data/internal.h"

static const char *const pieces[] = {"[PAD]", "[UNK]",  "[CLS]",  "[SEP]", "[MASK]",
                                     "peri",  "##card", "##itis", "##o",   "my"};

static int extend(const wg_tokenizer *tokenizer, const char *text, int64_t most,
                  wg_vocabulary_extension *extension) {
    const char *path = write_text("domain.txt", text);
    return wg_tokenizer_extend(tokenizer, 1, &path, most, extension);
}

static void assert_pieces(const wg_vocabulary_extension *x, int64_t token, int64_t count,
                          const int32_t *expected) {
    ck_assert_int_eq(x->starts[token + 1] - x->starts[token], count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(x->pieces[x->starts[token] + i], expected[i]);
}

/* (##card, ##itis) occurs five times, (peri, ##carditis) then three; (##o, ##card) once is too
 * rare, and "heart" cannot be spelt. */
START_TEST(the_most_frequent_pairs_become_tokens_of_wordpiece) {
    wg_tokenizer *tokenizer = wg__wordpiece_new(WG_COUNT(pieces), pieces, NULL);
    wg_vocabulary_extension x;
    ck_assert_int_eq(extend(tokenizer,
                            "Pericarditis, myocarditis. pericarditis! Heart heart\npericarditis "
                            "mycarditis",
                            20, &x),
                     0);
    assert_no_error();
    ck_assert_int_eq(x.count, 2);
    ck_assert_int_eq(wg_tokenizer_size(x.tokenizer), 12);
    for (int32_t i = 0; i < 10; i++)
        ck_assert_str_eq(wg_tokenizer_token(x.tokenizer, i), pieces[i]);
    ck_assert_str_eq(wg_tokenizer_token(x.tokenizer, 10), "##carditis");
    ck_assert_str_eq(wg_tokenizer_token(x.tokenizer, 11), "pericarditis");
    assert_pieces(&x, 0, 2, (int32_t[]){6, 7});
    assert_pieces(&x, 1, 3, (int32_t[]){5, 6, 7});
    ck_assert_int_eq(wg_tokenizer_special(x.tokenizer, WG_TOKEN_MASK), 4);
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(x.tokenizer, "pericarditis mycarditis", -1, NULL, &list),
                     0);
    ck_assert_int_eq(list.count, 3);
    ck_assert_int_eq(list.ids[0], 11);
    ck_assert_int_eq(list.ids[1], 9);
    ck_assert_int_eq(list.ids[2], 10);
    wg_token_list_free(&list);
    wg_vocabulary_extension_clear(&x);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(no_more_tokens_than_asked_for_are_added) {
    wg_tokenizer *tokenizer = wg__wordpiece_new(WG_COUNT(pieces), pieces, NULL);
    wg_vocabulary_extension x;
    ck_assert_int_eq(extend(tokenizer, "pericarditis pericarditis mycarditis", 1, &x), 0);
    ck_assert_int_eq(x.count, 1);
    ck_assert_str_eq(wg_tokenizer_token(x.tokenizer, 10), "##carditis");
    wg_vocabulary_extension_clear(&x);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* Bytes, and the merges of the old text, which come first. */
START_TEST(merging_goes_on_where_bpe_ended) {
    wg_tokenizer *tokenizer =
        wg__bpe_train("low low low", -1, &(wg_bpe_training){.vocabulary_size = 259});
    wg_vocabulary_extension x;
    static const char domain[] = "slow slow\n<|endoftext|>\nslow slowly slowly fowl";
    ck_assert_int_eq(extend(tokenizer, domain, 3, &x), 0);
    assert_no_error();
    ck_assert_int_eq(x.count, 3);
    ck_assert_int_eq(wg_tokenizer_size(x.tokenizer), 262);
    for (int32_t i = 0; i < 259; i++)
        ck_assert_str_eq(wg_tokenizer_token(x.tokenizer, i), wg_tokenizer_token(tokenizer, i));
    wg_token_list before = {0}, after = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, "low fowl", -1, NULL, &before), 0);
    ck_assert_int_eq(wg_tokenizer_encode(x.tokenizer, "low fowl", -1, NULL, &after), 0);
    ck_assert_int_eq(after.count, before.count);
    ck_assert_mem_eq(after.ids, before.ids, (size_t)before.count * sizeof *before.ids);
    after.count = 0;
    ck_assert_int_eq(wg_tokenizer_encode(x.tokenizer, domain, -1, NULL, &after), 0);
    char *text = wg_tokenizer_decode(x.tokenizer, after.ids, after.count, NULL);
    ck_assert_str_eq(text, domain);
    wg_text_free(text);
    const char *last = wg_tokenizer_token(x.tokenizer, 261);
    for (int32_t token = 0; token < 3; token++) {
        char spelt[64] = "";
        for (int64_t i = x.starts[token]; i < x.starts[token + 1]; i++) {
            ck_assert_int_lt(x.pieces[i], 259);
            strcat(spelt, wg_tokenizer_token(tokenizer, x.pieces[i]));
        }
        ck_assert_str_eq(spelt, wg_tokenizer_token(x.tokenizer, 259 + token));
    }
    ck_assert_str_eq(last, "ly");
    wg_token_list_free(&before);
    wg_token_list_free(&after);
    wg_vocabulary_extension_clear(&x);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(what_cannot_be_extended_is_refused) {
    wg_tokenizer *tokenizer = wg__wordpiece_new(WG_COUNT(pieces), pieces, NULL);
    wg_tokenizer *bytes = wg_byte_new();
    wg_vocabulary_extension x;
    ck_assert_int_lt(extend(bytes, "my my", 3, &x), 0);
    assert_error(WG_ERROR_ARGUMENT, "of a byte tokenizer cannot be extended");
    ck_assert_int_lt(extend(tokenizer, "my my", 0, &x), 0);
    assert_error(WG_ERROR_ARGUMENT, "0 new tokens");
    ck_assert_int_lt(extend(tokenizer, "my my peri myo", 3, &x), 0);
    assert_error(WG_ERROR_FORMAT, "nothing to add");
    ck_assert_int_lt(extend(tokenizer, "my \xff", 3, &x), 0);
    assert_error(WG_ERROR_FORMAT, "UTF-8");
    const char *missing = "missing.txt";
    ck_assert_int_lt(wg_tokenizer_extend(tokenizer, 1, &missing, 3, &x), 0);
    assert_error(WG_ERROR_NOT_FOUND, "missing.txt");
    wg_tokenizer_free(bytes);
    wg_tokenizer_free(tokenizer);
}
END_TEST

static void assert_ids(const wg_tokenizer *tokenizer, const char *text, int64_t count,
                       const char *const *expected) {
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, -1, NULL, &list), 0);
    ck_assert_int_eq(list.count, count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_str_eq(wg_tokenizer_token(tokenizer, list.ids[i]), expected[i]);
    wg_token_list_free(&list);
}

/* Of both kinds. \u2581low is a piece already; \u2581s + low, then \u2581slow + ly are joined, but
 * not the comma, nor \u00e9, which no piece has. */
START_TEST(sentencepiece_learns_the_words_of_a_new_text) {
    for (int unigram = 0; unigram < 2; unigram++) {
        wg_tokenizer *tokenizer = wg__sentencepiece_train(
            "low low low low s y l lowy", -1,
            &(wg_sentencepiece_training){.unigram = unigram, .vocabulary_size = 12});
        ck_assert_ptr_nonnull(tokenizer);
        const int64_t old = wg_tokenizer_size(tokenizer);
        wg_vocabulary_extension x;
        ck_assert_int_eq(
            extend(tokenizer, "slowly, slowly, slow, slow slow slow\nslowly\u00e9 slowly\u00e9 low",
                   8, &x),
            0);
        assert_no_error();
        ck_assert_int_eq(wg_tokenizer_size(x.tokenizer), old + x.count);
        for (int32_t i = 0; i < old; i++)
            ck_assert_str_eq(wg_tokenizer_token(x.tokenizer, i), wg_tokenizer_token(tokenizer, i));
        assert_ids(x.tokenizer, "slow low slowly", 3,
                   (const char *[]){"\u2581slow", "\u2581low", "\u2581slowly"});
        for (int64_t i = old; i < old + x.count; i++) {
            const char *token = wg_tokenizer_token(x.tokenizer, (int32_t)i);
            ck_assert_ptr_null(strchr(token, ','));
            ck_assert_ptr_null(strstr(token, "\u00e9"));
            char spelt[64] = "";
            for (int64_t k = x.starts[i - old]; k < x.starts[i - old + 1]; k++)
                strcat(spelt, wg_tokenizer_token(tokenizer, x.pieces[k]));
            ck_assert_str_eq(spelt, token);
        }
        wg_vocabulary_extension_clear(&x);
        wg_tokenizer_free(tokenizer);
    }
}
END_TEST

static void extend_without_memory(const wg_tokenizer *tokenizer, const char *text) {
    const char *path = write_text("domain.txt", text);
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        wg_vocabulary_extension x;
        wg__alloc_fail_after(n);
        done = wg_tokenizer_extend(tokenizer, 1, &path, 5, &x) == 0;
        wg__alloc_fail_after(-1);
        ck_assert(done || wg_error_pending());
        wg_error_clear();
        wg_vocabulary_extension_clear(&x);
    }
}

START_TEST(a_failed_extension_leaks_nothing) {
    wg_tokenizer *tokenizer = wg__wordpiece_new(WG_COUNT(pieces), pieces, NULL);
    extend_without_memory(tokenizer, "pericarditis pericarditis mycarditis");
    wg_tokenizer_free(tokenizer);
    for (int unigram = 0; unigram < 2; unigram++) {
        tokenizer = wg__sentencepiece_train(
            "low low s y", -1,
            &(wg_sentencepiece_training){.unigram = unigram, .vocabulary_size = 12});
        extend_without_memory(tokenizer, "slowly slowly slow");
        wg_tokenizer_free(tokenizer);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        the_most_frequent_pairs_become_tokens_of_wordpiece,
        no_more_tokens_than_asked_for_are_added,
        merging_goes_on_where_bpe_ended,
        sentencepiece_learns_the_words_of_a_new_text,
        what_cannot_be_extended_is_refused,
        a_failed_extension_leaks_nothing,
    };
    add_suite("extend", tests);
}
