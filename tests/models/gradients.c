/* Gradients of whole models against central differences. A case is a model type, in its smallest
 * form, with dropout. */
#include "models/model.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"

static const char *model_name(int index) {
    return wg_model_type_at(index) ? wg_model_type_at(index)->name : NULL;
}

static int64_t parameters_of(const wg_model_type *type) {
    wg_model model;
    char config[4096];
    ck_assert_uint_le(type->settings.size, sizeof config);
    ck_assert_int_eq(wg_model_config_from_json(type, type->smallest, config), 0);
    ck_assert_int_eq(wg_model_from_config(type, config, 1, &model), 0);
    const int64_t count = wg_module_parameter_count(model.module);
    wg_model_free(&model);
    return count;
}

START_TEST(every_parameter_has_the_gradient_of_differences) {
    const wg_model_type *type = wg_model_type_at(_i);
    wg_gradcheck_report report;
    int status = wg_gradcheck_model(type, NULL, &(wg_gradcheck_options){.seed = 1}, &report);
    ck_assert_msg(status == 0, "%s", report.message);
    ck_assert_int_eq(report.compared, parameters_of(type));
}
END_TEST

START_TEST(second_derivatives_agree_with_differences) {
    const wg_gradcheck_options second = {.seed = 2, .order = 2, .fast = true};
    wg_gradcheck_report report;
    int status = wg_gradcheck_model(wg_model_type_at(_i), NULL, &second, &report);
    ck_assert_msg(status == 0, "%s", report.message);
    ck_assert_int_eq(report.order, 2);
}
END_TEST

/* ---- Examples of modules ---- */

typedef struct small {
    wg_module module;
    wg_linear *inner, *outer;
} small;

static bool detaches, halves, fails;
static int samples;

static int forward(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                   void *context) {
    (void)input_count, (void)output_count;
    small *m = context;
    wg_tensor *hidden =
        wg_dropout(&m->module, wg_tanh(wg_linear_forward(m->inner, inputs[0])), 0.3);
    wg_tensor *weight = m->outer->weight;
    if (detaches)
        weight = wg_detach(weight);
    if (halves) /* the value of the weight, and half of its gradient */
        weight = wg_add(wg_mul_scalar(weight, 0.5), wg_detach(wg_mul_scalar(weight, 0.5)));
    outputs[0] = wg_linear_op(hidden, weight, m->outer->bias);
    return outputs[0] ? 0 : -1;
}

static int make_sample(int index, wg_generator *generator, wg_module_sample *sample) {
    if (index == samples)
        return 0;
    if (fails)
        return wg_fail(WG_ERROR_ARGUMENT, "sample", "no luck");
    small *m = wg_module_new(NULL, "", sizeof *m);
    m->inner = wg_linear_new(&m->module, "inner", 3, 4, NULL);
    m->outer = wg_linear_new(&m->module, "outer", 4, 2 + index, NULL);
    *sample = (wg_module_sample){.module = wg_module_finish(&m->module),
                                 .forward = forward,
                                 .input_count = 1,
                                 .inputs = {wg_randn(generator, WG_F64, WG_DIMS(5, 3))}};
    return 1;
}

static const wg_module_example example = {"small", make_sample};

static int check_example(int order, wg_gradcheck_report *report) {
    return wg_gradcheck_example(&example, &(wg_gradcheck_options){.order = order}, report);
}

START_TEST(an_example_is_checked_on_all_its_samples) {
    wg_gradcheck_report report;
    samples = 2;
    ck_assert_msg(check_example(2, &report) == 0, "%s", report.message);
    ck_assert_int_eq(report.samples, 2);
    ck_assert_int_eq(report.order, 2);
    const int64_t first = 15 + 16 + 10, second = 15 + 16 + 15;
    ck_assert_int_eq(report.compared, 2 * (first + second) + 10 + 15);
}
END_TEST

START_TEST(the_path_of_a_wrong_parameter_is_told) {
    wg_gradcheck_report report;
    samples = 1;
    detaches = true;
    ck_assert_int_eq(check_example(1, &report), -1);
    ck_assert_int_eq(report.diagnosis, WG_DIAGNOSIS_DETACHED);
    ck_assert_str_eq(report.name, "outer.weight");
    assert_error(WG_ERROR_GRADIENT, "parameter outer.weight at (");
    detaches = false;
    halves = true;
    ck_assert_int_eq(check_example(1, &report), -1);
    ck_assert_int_eq(report.diagnosis, WG_DIAGNOSIS_FACTOR);
    ck_assert_double_eq_tol(report.factor, 0.5, 1e-6);
    ck_assert_str_eq(report.name, "outer.weight");
    assert_error(WG_ERROR_GRADIENT, "parameter outer.weight at (");
}
END_TEST

START_TEST(an_example_without_samples_fails) {
    wg_gradcheck_report report;
    samples = 0;
    assert_fails(check_example(1, &report), WG_ERROR_GRADIENT, "small has no samples");
    samples = 1;
    fails = true;
    assert_fails(check_example(1, &report), WG_ERROR_GRADIENT,
                 "small, sample 0 cannot be made: sample: no luck");
}
END_TEST

SUITES {
    const TTest *const of_each[] = {every_parameter_has_the_gradient_of_differences,
                                    second_derivatives_agree_with_differences};
    const TTest *const tests[] = {an_example_is_checked_on_all_its_samples,
                                  the_path_of_a_wrong_parameter_is_told,
                                  an_example_without_samples_fails};
    int types = 0;
    while (wg_model_type_at(types))
        types++;
    add_suite_of_range("model_gradients", WG_COUNT(of_each), of_each, 0, types, model_name);
    add_suite("module_examples", tests);
}
