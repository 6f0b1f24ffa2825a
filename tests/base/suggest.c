/* Tests of suggestions for misspelt names. */
#include "base/array.h"

#include <string.h>

#include "tests/support/testing.h"

static const char *name_at(const void *context, int index) {
    return ((const char *const *)context)[index];
}

static void assert_suggested(const char *typed, const char *wanted) {
    static const char *const names[] = {"pretrain",  "finetune",    "eval",      "info",
                                        "bert-tiny", "gpt2-xl",     "gelu_tanh", "bert-base-cased",
                                        "add",       "log_softmax", NULL};
    char text[80], wanted_text[80] = "";
    if (wanted)
        snprintf(wanted_text, sizeof wanted_text, "; did you mean '%s'?", wanted);
    ck_assert_str_eq(wg__suggestion(text, sizeof text, typed, name_at, names), wanted_text);
}

START_TEST(a_wrong_letter_is_mended) {
    assert_suggested("pretrian", "pretrain"); /* exchanged */
    assert_suggested("pretran", "pretrain");  /* left out */
    assert_suggested("evall", "eval");        /* too much */
    assert_suggested("imfo", "info");         /* replaced */
    assert_suggested("ad", "add");
}
END_TEST

START_TEST(case_and_underscores_do_not_count) {
    assert_suggested("GELU-TANH", "gelu_tanh");
    assert_suggested("log-sofmax", "log_softmax");
}
END_TEST

START_TEST(the_beginning_of_a_name_is_near) {
    assert_suggested("fine", "finetune");
    assert_suggested("bert-base", "bert-base-cased");
}
END_TEST

START_TEST(what_is_like_no_name_has_no_suggestion) {
    assert_suggested("translate", NULL);
    assert_suggested("x", NULL);
    assert_suggested("gpt2-smal", NULL); /* three of nine letters from gpt2-xl */
    assert_suggested("", NULL);
    assert_suggested("eval-eval-eval-eval-eval-eval-eval-eval-eval-eval-eval-eval-eval-eval", NULL);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_wrong_letter_is_mended,
        case_and_underscores_do_not_count,
        the_beginning_of_a_name_is_near,
        what_is_like_no_name_has_no_suggestion,
    };
    add_suite("suggest", tests);
}
