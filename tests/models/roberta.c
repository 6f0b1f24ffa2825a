/* A classifier on RoBERTa against PyTorch (tests/fixtures/roberta.py), and its longest text. */
#include "models/roberta.h"

#include <string.h>

#include "models/heads.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "models/internal.h"

/* The fixture's head holds dense.weight, dense.bias, out_proj.weight and out_proj.bias, flat. */
static int64_t take(wg_tensor *flat, int64_t at, wg_tensor *parameter) {
    const int64_t count = wg_tensor_count(parameter);
    wg_tensor *part = wg_slice(flat, 0, at, at + count, 1);
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_copy_(parameter, wg_reshape(part, wg_tensor_ndim(parameter),
                                                    wg_tensor_shape(parameter))),
                     0);
    wg_set_grad_enabled(true);
    return at + count;
}

START_TEST(a_classifier_has_published_names_and_the_logits_of_pytorch) {
    wg_model pretrained = new_fixture_model("roberta");
    wg__labels labels = {0};
    for (int i = 0; i < 3; i++)
        wg__labels_add(&labels, (const char *[]){"no", "perhaps", "yes"}[i]);
    wg__headed_encoder *model = wg__headed_encoder_new(
        &wg_roberta_type, WG_HEAD_LABELS, wg_roberta_type.config(pretrained.module), &labels, 1);
    wg_tensor *weights = fixture_tensor("roberta/weights"), *head = fixture_tensor("roberta/head");
    int64_t at = 0;
    static const char *const parts[] = {"classifier.dense.weight", "classifier.dense.bias",
                                        "classifier.out_proj.weight", "classifier.out_proj.bias"};
    for (size_t i = 0; i < WG_COUNT(parts); i++)
        at = take(head, at, wg_module_find(&model->module, parts[i])->tensor);
    ck_assert_int_eq(at, wg_tensor_count(head));
    at = 0;
    wg_state_dict *state = wg_module_state(&model->module);
    for (int64_t i = 0; i < state->count; i++)
        if (strncmp(state->entries[i].path, "roberta.", 8) == 0)
            at = take(weights, at, state->entries[i].slot->tensor);
    wg_state_dict_free(state);
    ck_assert_int_gt(at, 0);
    const wg_model_inputs inputs = {.ids = fixture_tensor("roberta/ids"),
                                    .keep = fixture_tensor("roberta/keep")};
    wg_tensor *outputs[2];
    ck_assert_int_eq(wg__headed_encoder_forward(model, &inputs, outputs), 0);
    assert_relative(wg_detach(outputs[0]), fixture_tensor("roberta/classes"), 1e-5);
    free_model(&pretrained);
    wg_module_free(&model->module);
    wg__labels_free(&labels);
}
END_TEST

/* 18 rows of the table less those of positions that are none, 0 to 3, the padding token. */
START_TEST(the_longest_text_has_the_last_row_of_the_table) {
    wg_model model = new_fixture_model("roberta");
    ck_assert_int_eq(wg_model_sizes_of(&model).positions, 14);
    free_model(&model);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_classifier_has_published_names_and_the_logits_of_pytorch,
        the_longest_text_has_the_last_row_of_the_table,
    };
    add_suite("roberta", tests);
}
