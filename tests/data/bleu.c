/* BLEU and its tokens against sacreBLEU (tests/fixtures/bleu.py). */

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "data/score/score.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "base/internal.h"

static json_t *load(const char *name) {
    json_t *root = owned(json_load_file(fixture(name), 0, NULL));
    ck_assert_msg(root != NULL, "%s", name);
    return root;
}

/* The rules of the fixtures, by their keys: "zh" and "char" are of tests/fixtures/bleu_zh.py. */
static const struct {
    const char *key, *fixture;
    wg_bleu_rules rules;
    bool scored;
} kinds[] = {{"mixed", "bleu.json", {0}, true},
             {"lc", "bleu.json", {.lowercase = true}, true},
             {"zh", "bleu_zh.json", {WG_BLEU_ZH, false}, true},
             {"char", "bleu_zh.json", {WG_BLEU_CHAR, false}, true},
             {"zh_lc", "bleu_zh.json", {WG_BLEU_ZH, true}, false}};

/* ---- Tokens ---- */

static void assert_tokens(const char *text, wg_bleu_rules rules, const json_t *wanted) {
    wg__strings words = {0};
    wg_token_list tokens = {0};
    ck_assert_int_eq(wg__bleu_tokenize(text, rules, &words, &tokens), 0);
    ck_assert_msg(tokens.count == (int64_t)json_array_size(wanted), "\"%s\": %lld tokens, not %zu",
                  text, (long long)tokens.count, json_array_size(wanted));
    for (int64_t i = 0; i < tokens.count; i++)
        ck_assert_str_eq(wg__strings_text(&words, tokens.ids[i]),
                         json_string_value(json_array_get(wanted, (size_t)i)));
    wg__strings_clear(&words);
    wg_token_list_free(&tokens);
}

TEST(tokens_are_those_of_sacrebleu) {
    for (size_t k = 0; k < WG_COUNT(kinds); k++) {
        const json_t *list = json_object_get(load(kinds[k].fixture), "tokens");
        ck_assert_uint_ge(json_array_size(list), 20);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *row = json_array_get(list, i);
            assert_tokens(json_string_value(json_object_get(row, "text")), kinds[k].rules,
                          json_object_get(row, kinds[k].key));
        }
    }
}

/* ---- Scores ---- */

static wg__bleu count(const json_t *row, wg_bleu_rules rules) {
    const json_t *hypotheses = json_object_get(row, "hypotheses");
    const json_t *references = json_object_get(row, "references");
    wg__bleu bleu = {0};
    for (size_t i = 0; i < json_array_size(hypotheses); i++)
        ck_assert_int_eq(wg__bleu_add(&bleu, json_string_value(json_array_get(hypotheses, i)),
                                      json_string_value(json_array_get(references, i)), rules),
                         0);
    return bleu;
}

static double at(const json_t *object, const char *key, int index) {
    return json_number_value(json_array_get(json_object_get(object, key), (size_t)index));
}

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static void assert_score(const json_t *row, const char *key, wg_bleu_rules rules) {
    const char *name = json_string_value(json_object_get(row, "name"));
    const json_t *wanted = json_object_get(row, key);
    const wg__bleu bleu = count(row, rules);
    const wg__bleu_score score = wg__bleu_measure(&bleu);
    for (int n = 0; n < WG_BLEU_ORDER; n++) {
        ck_assert_msg(bleu.matches[n] == (int64_t)at(wanted, "matches", n) &&
                          bleu.totals[n] == (int64_t)at(wanted, "totals", n),
                      "%s: %lld of %lld %d-grams", name, (long long)bleu.matches[n],
                      (long long)bleu.totals[n], n + 1);
        ck_assert_double_eq_tol(score.precisions[n], at(wanted, "precisions", n), 1e-9);
    }
    ck_assert_int_eq(bleu.hypothesis_tokens, (int64_t)number(wanted, "hypothesis_tokens"));
    ck_assert_int_eq(bleu.reference_tokens, (int64_t)number(wanted, "reference_tokens"));
    ck_assert_double_eq_tol(score.brevity_penalty, number(wanted, "bp"), 1e-12);
    ck_assert_msg(fabs(score.score - number(wanted, "score")) < 1e-9, "%s: %.12g, not %.12g", name,
                  score.score, number(wanted, "score"));
}

TEST(scores_are_those_of_sacrebleu) {
    for (size_t k = 0; k < WG_COUNT(kinds) && kinds[k].scored; k++) {
        const json_t *list = json_object_get(load(kinds[k].fixture), "cases");
        ck_assert_uint_ge(json_array_size(list), k < 2 ? 20 : 5);
        for (size_t i = 0; i < json_array_size(list); i++)
            assert_score(json_array_get(list, i), kinds[k].key, kinds[k].rules);
    }
}

TEST(signatures_name_the_tokens) {
    ck_assert_str_eq(wg__bleu_signature((wg_bleu_rules){0}),
                     "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp");
    ck_assert_str_eq(wg__bleu_signature((wg_bleu_rules){WG_BLEU_ZH, true}),
                     "nrefs:1|case:lc|eff:no|tok:zh|smooth:exp");
    ck_assert_str_eq(wg__bleu_signature((wg_bleu_rules){WG_BLEU_CHAR, false}),
                     "nrefs:1|case:mixed|eff:no|tok:char|smooth:exp");
}

TEST(nothing_counted_scores_nothing) {
    const wg__bleu_score score = wg__bleu_measure(&(wg__bleu){0});
    ck_assert_double_eq(score.score, 0);
}

/* ---- Failures ---- */

TEST(a_failure_changes_nothing) {
    const wg_bleu_rules rules = {.lowercase = true};
    wg__bleu bleu = {0};
    ck_assert_int_eq(wg__bleu_add(&bleu, "a b c d", "a b c d", rules), 0);
    const wg__bleu before = bleu;
    assert_fails(wg__bleu_add(&bleu, "a \xff", "a", rules), WG_ERROR_FORMAT, "not UTF-8");
    assert_fails(wg__bleu_add(&bleu, "a", "\xc3", rules), WG_ERROR_FORMAT, "not UTF-8");
    int result = -1;
    for (int64_t allowed = 0; result < 0; allowed++) {
        ck_assert_int_lt(allowed, 1000);
        ck_assert_mem_eq(&bleu, &before, sizeof bleu);
        wg__alloc_trim();
        wg__alloc_fail_after(allowed);
        result = wg__bleu_add(&bleu, "A cat, 5 dogs.", "A cat and 5-6 dogs.", rules);
        wg__alloc_fail_after(-1);
        if (result < 0)
            assert_error(WG_ERROR_MEMORY, "");
    }
    ck_assert_int_gt(bleu.totals[0], before.totals[0]);
}
