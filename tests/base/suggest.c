/* Tests of suggestions for misspelt names. */
#include "base/array.h"

#include <string.h>

#include "tests/support/testing.h"

static const char *name_at(const void *context, int index) {
    return ((const char *const *)context)[index];
}

TEST(misspelt_names_are_mended) {
    static const char *const names[] = {"pretrain",  "finetune",    "eval",      "info",
                                        "bert-tiny", "gpt2-xl",     "gelu_tanh", "bert-base-cased",
                                        "add",       "log_softmax", NULL};
    static const char *const cases[][2] = {
        {"pretrian", "pretrain"}, /* exchanged */
        {"pretran", "pretrain"},  /* left out */
        {"evall", "eval"},        /* too much */
        {"imfo", "info"},         /* replaced */
        {"ad", "add"},
        /* Case and underscores do not count. */
        {"GELU-TANH", "gelu_tanh"},
        {"log-sofmax", "log_softmax"},
        /* The beginning of a name is near. */
        {"fine", "finetune"},
        {"bert-base", "bert-base-cased"},
        /* What is like no name has no suggestion. */
        {"translate", NULL},
        {"x", NULL},
        {"gpt2-smal", NULL}, /* three of nine letters from gpt2-xl */
        {"", NULL},
        {"eval-eval-eval-eval-eval-eval-eval-eval-eval-eval-eval-eval-eval-eval", NULL},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        char text[80], wanted[80] = "";
        if (cases[i][1])
            snprintf(wanted, sizeof wanted, "; did you mean '%s'?", cases[i][1]);
        ck_assert_str_eq(wg__suggestion(text, sizeof text, cases[i][0], name_at, names), wanted);
    }
}
