/* Extreme inputs of whole models: no examples, sequences of one token and of none, padding alone,
 * the first and the last token and position, and those beyond. A case is a model type, in its
 * smallest form. */
#include <math.h>
#include <string.h>

#include "models/model.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"

enum { MOST_CONFIG = 4096, BATCH = 2, LENGTH = 3 };

static wg_model make(int index) {
    const wg_model_type *type = wg_model_type_at(index);
    wg_model model;
    char config[MOST_CONFIG];
    ck_assert_uint_le(type->settings.size, sizeof config);
    ck_assert_int_eq(wg_model_config_from_json(type, type->smallest, config), 0);
    ck_assert_int_eq(wg_model_from_config(type, config, 1, &model), 0);
    wg_module_train(model.module, false);
    return model;
}

static wg_tensor *ids_of(int64_t batch, int64_t length, int64_t id) {
    wg_tensor *ids = wg_zeros(WG_I64, WG_DIMS(batch, length));
    for (int64_t i = 0; i < batch * length; i++)
        ((int64_t *)wg_tensor_data(ids))[i] = id;
    return ids;
}

/* Forward, logits and backward of their sum; NULL after an error. */
static wg_tensor *logits_of(const wg_model *model, wg_tensor *ids, wg_tensor *keep) {
    wg_model_inputs inputs = {.ids = ids, .keep = keep};
    if (model->type->shape == WG_ENCODER_DECODER) {
        inputs.memory = wg_model_encode(model, ids, keep);
        inputs.memory_keep = keep;
        inputs.keep = NULL;
    }
    wg_tensor *logits = wg_model_logits(model, wg_model_forward(model, &inputs), NULL);
    if (logits && wg_backward(wg_sum(logits, WG_ALL, false), NULL) < 0)
        return NULL;
    return logits;
}

static void assert_all_finite(const wg_tensor *x, const char *what) {
    ck_assert_msg(x, "%s: %s", what, wg_error_pending() ? wg_error_pending()->message : "");
    wg_tensor *values = wg_contiguous(wg_cast(wg_detach((wg_tensor *)x), WG_F64));
    const double *numbers = wg_tensor_data(values);
    for (int64_t i = 0; i < wg_tensor_count(values); i++)
        ck_assert_msg(isfinite(numbers[i]), "%s: element %d is %g", what, (int)i, numbers[i]);
}

/* Rows that may attend to nothing give zeros in attention, and numbers after it. */
START_TEST(one_token_and_padding_alone_have_finite_logits) {
    wg_model model = make(_i);
    wg_tensor *logits = logits_of(&model, ids_of(1, 1, 0), NULL);
    assert_all_finite(logits, "one token");
    ck_assert_int_eq(wg_tensor_count(logits), wg_model_sizes_of(&model).vocabulary);
    wg_tensor *keep = wg_zeros(WG_BOOL, WG_DIMS(BATCH, LENGTH));
    assert_all_finite(logits_of(&model, ids_of(BATCH, LENGTH, 0), keep), "padding");
    wg_model_free(&model);
}
END_TEST

/* Like NumPy's functions: a batch of none has a result of none. Else an error has to say so. */
START_TEST(no_examples_or_no_tokens_give_no_logits_or_an_error) {
    for (int64_t batch = 0; batch < 2; batch++) {
        wg_model model = make(_i);
        wg_tensor *logits = logits_of(&model, ids_of(batch, batch ? 0 : LENGTH, 0), NULL);
        if (logits) {
            ck_assert_int_eq(wg_tensor_count(logits), 0);
        } else {
            ck_assert_ptr_nonnull(wg_error_pending());
            ck_assert_int_gt(strlen(wg_error_pending()->message), 10);
            wg_error_clear();
        }
        wg_model_free(&model);
    }
}
END_TEST

START_TEST(the_first_and_the_last_token_are_known_and_no_other) {
    wg_model model = make(_i);
    const wg_model_sizes sizes = wg_model_sizes_of(&model);
    const int64_t least = sizes.source_vocabulary > 0 && sizes.source_vocabulary < sizes.vocabulary
                              ? sizes.source_vocabulary
                              : sizes.vocabulary;
    assert_all_finite(logits_of(&model, ids_of(BATCH, LENGTH, least - 1), NULL), "the last token");
    const int64_t wrong[] = {-1, sizes.vocabulary, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < WG_COUNT(wrong); i++) {
        assert_fails(logits_of(&model, ids_of(BATCH, LENGTH, wrong[i]), NULL), WG_ERROR_INDEX, "");
    }
    wg_model_free(&model);
}
END_TEST

/* GLM's published tables have one row more than positions. */
START_TEST(the_last_position_is_known_and_none_far_after_it) {
    wg_model model = make(_i);
    const int64_t most = wg_model_sizes_of(&model).positions;
    if (most < 1 << 16) {
        assert_all_finite(logits_of(&model, ids_of(1, most, 0), NULL), "the last position");
        ck_assert_ptr_null(logits_of(&model, ids_of(1, most + 2, 0), NULL));
        ck_assert_ptr_nonnull(wg_error_pending());
        ck_assert_int_gt(strlen(wg_error_pending()->message), 10);
        wg_error_clear();
    }
    wg_model_free(&model);
}
END_TEST

/* Weights so large that products overflow: a result, whatever it is, or an error. */
START_TEST(weights_of_1e30_and_denormals_crash_nothing) {
    static const double values[] = {1e30, -1e30, 1e-42, 0, INFINITY, NAN};
    for (size_t v = 0; v < WG_COUNT(values); v++) {
        wg_model model = make(_i);
        wg_state_dict *state = wg_module_state(model.module);
        const bool recorded = wg_set_grad_enabled(false);
        for (int64_t i = 0; i < state->count; i++)
            if (state->entries[i].slot->kind == WG_SLOT_PARAMETER)
                wg_fill_(state->entries[i].slot->tensor, values[v]);
        wg_set_grad_enabled(recorded);
        wg_state_dict_free(state);
        logits_of(&model, ids_of(BATCH, LENGTH, 0), NULL);
        wg_error_clear();
        wg_model_free(&model);
    }
}
END_TEST

static const char *model_name(int index) {
    return wg_model_type_at(index) ? wg_model_type_at(index)->name : NULL;
}

SUITES {
    const TTest *const tests[] = {one_token_and_padding_alone_have_finite_logits,
                                  no_examples_or_no_tokens_give_no_logits_or_an_error,
                                  the_first_and_the_last_token_are_known_and_no_other,
                                  the_last_position_is_known_and_none_far_after_it,
                                  weights_of_1e30_and_denormals_crash_nothing};
    int types = 0;
    while (wg_model_type_at(types))
        types++;
    add_suite_of_range("model_extremes", WG_COUNT(tests), tests, 0, types, model_name);
}
