/* Every optimizer against twelve steps of its reference, and its special features. */
#include "tests/optim/leaves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tensor/ops.h"
#include "optim/internal.h"

/* ---- Twelve steps of PyTorch, or of NumPy as the paper says ---- */

static const struct leaf {
    const char *name;
    int ndim;
    int64_t shape[3];
    bool no_decay;
} leaves[] = {
    {"tall", 2, {7, 3}, false},    {"wide", 2, {4, 9}, false}, {"embed", 2, {5, 4}, false},
    {"cube", 3, {2, 3, 4}, false}, {"bias", 1, {6}, true},
};

enum { LEAVES = WG_COUNT(leaves) };

static wg_tensor *from_json(const json_t *object, const struct leaf *leaf, wg_dtype dtype) {
    return tensor_of_list(json_object_get(object, leaf->name), dtype, leaf->ndim, leaf->shape);
}

static void check_state(const wg_optimizer *optimizer, const json_t *state, double rtol) {
    const char *slot, *name;
    wg_tensor *tensor;
    size_t wanted = 0, found = 0;
    const char *key;
    const json_t *slots;
    json_object_foreach((json_t *)state, key, slots) wanted += json_object_size(slots);
    for (; wg__optimizer_state(optimizer, (int64_t)found, &slot, &name, &tensor); found++)
        assert_close(tensor,
                     tensor_of_list(json_object_get(json_object_get(state, name), slot),
                                    wg_tensor_dtype(tensor), wg_tensor_ndim(tensor),
                                    wg_tensor_shape(tensor)),
                     rtol, rtol);
    ck_assert_uint_eq(found, wanted);
}

/* Frees the optimizer. */
static void check_run(const char *run_name, wg_optimizer *optimizer, wg_dtype dtype, double rtol) {
    json_t *fixtures = json_load_file(fixture("optimizers.json"), 0, NULL);
    const json_t *run = json_object_get(json_object_get(fixtures, "runs"), run_name);
    ck_assert_ptr_nonnull(run);
    ck_assert_ptr_nonnull(optimizer);
    wg_tensor *w[LEAVES];
    for (int i = 0; i < LEAVES; i++) {
        const struct leaf *leaf = &leaves[i];
        w[i] = leaf_of(from_json(json_object_get(fixtures, "begin"), leaf, dtype));
        ck_assert_int_eq(wg_optimizer_add(optimizer, leaf->name, w[i], leaf->no_decay), 0);
    }
    const json_t *kept = json_object_get(fixtures, "kept");
    const json_t *steps = json_object_get(run, "steps"), *gradients;
    size_t step, next = 0;
    json_array_foreach(json_object_get(fixtures, "gradients"), step, gradients) {
        for (int i = 0; i < LEAVES; i++)
            set_gradient(w[i], from_json(gradients, &leaves[i], dtype));
        double rate = json_number_value(json_array_get(json_object_get(fixtures, "rates"), step));
        ck_assert_int_eq(wg_optimizer_step(optimizer, rate), 0);
        if ((size_t)json_integer_value(json_array_get(kept, next)) != step)
            continue;
        for (int i = 0; i < LEAVES; i++)
            assert_close(w[i], from_json(json_array_get(steps, next), &leaves[i], dtype), rtol,
                         rtol);
        next++;
    }
    ck_assert_uint_eq(next, json_array_size(steps));
    check_state(optimizer, json_object_get(run, "state"), rtol);
    wg_optimizer_free(optimizer);
    json_decref(fixtures);
}

/* In both dtypes. */
#define CHECK_RUN(name, f32_rtol, make)                                                            \
    do {                                                                                           \
        check_run(name, make, WG_F64, 1e-12);                                                      \
        check_run(name, make, WG_F32, f32_rtol);                                                   \
    } while (0)

START_TEST(sgd_equals_pytorchs) {
    CHECK_RUN("sgd", 2e-6, wg_sgd_new(&(wg_sgd_options){.weight_decay = 0.1}));
    CHECK_RUN("sgd_momentum", 2e-6,
              wg_sgd_new(&(wg_sgd_options){.momentum = 0.9, .weight_decay = 0.1}));
    CHECK_RUN(
        "sgd_nesterov", 2e-6,
        wg_sgd_new(&(wg_sgd_options){.momentum = 0.9, .weight_decay = 0.1, .nesterov = true}));
}
END_TEST

static const wg_adam_options adam_options = {
    .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1};

START_TEST(adam_and_adamw_equal_pytorchs) {
    CHECK_RUN("adam", 2e-6, wg_adam_new(&adam_options));
    CHECK_RUN("adamw", 2e-6, wg_adamw_new(&adam_options));
}
END_TEST

START_TEST(adafactor_equals_the_papers) {
    CHECK_RUN("adafactor", 2e-6, wg_adafactor_new(NULL));
    CHECK_RUN("adafactor_absolute", 2e-6,
              wg_adafactor_new(&(wg_adafactor_options){.eps1 = 1e-20,
                                                       .clip_threshold = 0.5,
                                                       .decay_rate = 0.5,
                                                       .weight_decay = 0.1,
                                                       .absolute_rate = true}));
}
END_TEST

START_TEST(lion_equals_the_papers) {
    CHECK_RUN("lion", 2e-6, wg_lion_new(NULL));
    CHECK_RUN("lion_decay", 2e-6,
              wg_lion_new(&(wg_lion_options){.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}));
}
END_TEST

/* In f32 each iteration multiplies a rounding error of the smallest singular value by up to 3.4. */
START_TEST(muon_equals_the_published) {
    CHECK_RUN("muon", 1e-5, wg_muon_new(NULL));
    CHECK_RUN("muon_matched", 1e-5,
              wg_muon_new(
                  &(wg_muon_options){.momentum = 0.9,
                                     .weight_decay = 0.1,
                                     .match_adamw = true,
                                     .adamw_rate = 0.5,
                                     .adamw = {.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.2}}));
}
END_TEST

/* ---- Large parameters: blocks, chunks and threads ---- */

/* Sides around the sizes of chunks, blocks, register tiles and vectors. */
static const int64_t sides[][2] = {{1, 7}, {7, 1}, {300, 70}, {70, 300}, {3, 20011}, {1500, 13}};
static const int64_t lengths[] = {33, 16385, 50001};

enum { BIG = WG_COUNT(sides) + WG_COUNT(lengths), BIG_COUNT = 200000 };

static wg_optimizer *make(const char *name) {
    wg_optimizer *optimizer =
        wg_optimizer_new(&(wg_optimizer_choice){.name = name, .weight_decay = 0.01});
    ck_assert_ptr_nonnull(optimizer);
    return optimizer;
}

static wg_tensor *big_leaf(wg_generator *generator, size_t i, wg_dtype dtype) {
    if (i < WG_COUNT(sides))
        return wg_randn(generator, dtype, 2, sides[i]);
    return wg_randn(generator, dtype, 1, &lengths[i - WG_COUNT(sides)]);
}

/* Three clipped steps with random gradients; copies the weights, BIG_COUNT numbers, to `out`. */
static void big_run(const char *name, int threads, wg_dtype dtype, double *out) {
    int before = wg_threads();
    wg_set_threads(threads);
    wg_generator generator = {.seed = 3};
    wg_optimizer *optimizer = make(name);
    wg_tensor *big[BIG];
    for (size_t i = 0; i < BIG; i++) {
        char leaf_name[8];
        snprintf(leaf_name, sizeof leaf_name, "%zu", i);
        big[i] = leaf_of(big_leaf(&generator, i, dtype));
        ck_assert_int_eq(wg_optimizer_add(optimizer, leaf_name, big[i], i % 2), 0);
    }
    for (int step = 0; step < 3; step++) {
        for (size_t i = 0; i < BIG; i++)
            set_gradient(big[i], big_leaf(&generator, i, dtype));
        ck_assert_int_eq(wg_optimizer_clip(optimizer, 1.0, NULL), 0);
        ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-2), 0);
    }
    double *end = out + BIG_COUNT;
    for (size_t i = 0; i < BIG; i++) {
        wg_tensor *wide = wg_cast(wg_detach(big[i]), WG_F64);
        ck_assert_int_le(wg_tensor_count(wide), end - out);
        wg_to_array(wide, out);
        out += wg_tensor_count(wide);
    }
    wg_optimizer_free(optimizer);
    wg_set_threads(before);
}

static double one[BIG_COUNT], other[BIG_COUNT];

START_TEST(any_number_of_threads_gives_the_same_bits) {
    for (size_t i = 0; i < OPTIMIZERS; i++) {
        big_run(optimizer_names[i], 1, WG_F32, one);
        big_run(optimizer_names[i], 3, WG_F32, other);
        ck_assert_msg(memcmp(one, other, sizeof one) == 0, "%s", optimizer_names[i]);
    }
}
END_TEST

/* The small fixtures do not cover sums over many blocks. */
START_TEST(large_parameters_step_alike_in_f32_and_f64) {
    for (size_t i = 0; i < OPTIMIZERS; i++) {
        big_run(optimizer_names[i], 2, WG_F32, one);
        big_run(optimizer_names[i], 2, WG_F64, other);
        for (size_t j = 0; j < BIG_COUNT; j++)
            ck_assert_msg(fabs(one[j] - other[j]) <= 1e-4, "%s: %.9g and %.9g", optimizer_names[i],
                          one[j], other[j]);
    }
}
END_TEST

static wg_tensor *mean_square(wg_tensor *x) {
    return wg_mean(wg_square(x), WG_ALL, false);
}

static wg_tensor *mean_along(wg_tensor *x, int axis) {
    int64_t axes[] = {axis};
    return wg_mean(x, 1, axes, true);
}

/* The first step of Adafactor: beta2 is 0. */
static wg_tensor *adafactor_update(wg_tensor *w, wg_tensor *g) {
    wg_tensor *squares = wg_square(g), *v = squares;
    if (wg_tensor_ndim(w) > 1) {
        wg_tensor *rows = mean_along(squares, -1), *columns = mean_along(squares, -2);
        v = wg_mul(wg_div(rows, mean_along(rows, -2)), columns);
    }
    wg_tensor *u = wg_div(g, wg_sqrt(v));
    double clip = fmax(1, sqrt(wg_item(mean_square(u))));
    return wg_mul_scalar(u, 0.1 * sqrt(wg_item(mean_square(w))) / clip);
}

/* The first step of Muon, whose Nesterov momentum is 0.95 * 0.05 g + 0.05 g. */
static wg_tensor *muon_update(wg_tensor *w, wg_tensor *g) {
    double rows = (double)wg_tensor_shape(w)[0], columns = (double)wg_tensor_shape(w)[1];
    double norm = 0.0975 * sqrt(rows * columns * wg_item(mean_square(g)));
    wg_tensor *x = wg_mul_scalar(g, 0.0975 / (norm + 1e-7));
    for (int i = 0; i < 5; i++) {
        wg_tensor *a = wg_matmul(x, wg_transpose(x, 0, 1));
        wg_tensor *b = wg_add(wg_mul_scalar(a, -4.7750), wg_mul_scalar(wg_matmul(a, a), 2.0315));
        x = wg_add(wg_mul_scalar(x, 3.4445), wg_matmul(b, x));
    }
    return wg_mul_scalar(x, 0.1 * sqrt(fmax(1, rows / columns)));
}

static void check_first_step(wg_optimizer *optimizer, int ndim, const int64_t *shape,
                             wg_tensor *(*update)(wg_tensor *, wg_tensor *)) {
    wg_generator generator = {.seed = 12};
    wg_tensor *w = wg_randn(&generator, WG_F64, ndim, shape);
    wg_tensor *g = wg_randn(&generator, WG_F64, ndim, shape);
    wg_tensor *expected = wg_sub(w, update(w, g));
    added(optimizer, "w", w);
    set_gradient(w, g);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 0.1), 0);
    assert_close(w, expected, 1e-10, 1e-10);
    wg_optimizer_free(optimizer);
}

START_TEST(large_parameters_step_as_composed_of_ops) {
    check_first_step(wg_adafactor_new(NULL), 1, (int64_t[]){50001}, adafactor_update);
    check_first_step(wg_adafactor_new(NULL), 2, (int64_t[]){3000, 13}, adafactor_update);
    check_first_step(wg_adafactor_new(NULL), 2, (int64_t[]){3, 20011}, adafactor_update);
    check_first_step(wg_adafactor_new(NULL), 3, (int64_t[]){3, 700, 40}, adafactor_update);
    check_first_step(wg_muon_new(NULL), 2, (int64_t[]){300, 70}, muon_update);
    check_first_step(wg_muon_new(NULL), 2, (int64_t[]){70, 300}, muon_update);
}
END_TEST

static double distance(wg_tensor *a, wg_tensor *b) {
    return sqrt(wg_item(mean_square(wg_sub(a, b))));
}

/* The iteration spreads a rounding that falls on the other side over the whole matrix, so the step
 * is not equal to the composition in bf16, but as far from f32. */
START_TEST(muon_iterates_in_bf16_under_its_matmul_dtype) {
    static const int64_t shapes[][2] = {{70, 300}, {150, 150}, {33, 65}};
    for (size_t i = 0; i < WG_COUNT(shapes); i++) {
        wg_generator generator = {.seed = 12};
        wg_tensor *g = wg_randn(&generator, WG_F32, 2, shapes[i]);
        wg_tensor *w = wg_zeros(WG_F32, 2, shapes[i]), *in_f32 = muon_update(w, g);
        wg_optimizer *optimizer = wg_muon_new(NULL);
        added(optimizer, "w", w);
        set_gradient(w, g);
        wg_set_matmul_dtype(WG_BF16);
        wg_tensor *in_bf16 = muon_update(w, g);
        ck_assert_int_eq(wg_optimizer_step(optimizer, 0.1), 0);
        wg_set_matmul_dtype(WG_F32);
        wg_tensor *step = wg_neg(wg_detach(w));
        const double rounding = distance(in_bf16, in_f32);
        ck_assert_double_gt(distance(step, in_f32), 0.4 * rounding);
        ck_assert_double_lt(distance(step, in_f32), 2.5 * rounding);
        wg_optimizer_free(optimizer);
    }
}
END_TEST

/* ---- Clipping, fading, refusals ---- */

START_TEST(every_optimizer_scales_the_gradient_that_is_clipped) {
    for (size_t i = 0; i < OPTIMIZERS; i++) {
        wg_tensor *weights[2];
        for (int clipped = 0; clipped < 2; clipped++) {
            wg_generator generator = {.seed = 8};
            wg_optimizer *optimizer = make(optimizer_names[i]);
            wg_tensor *w = added(optimizer, "w", wg_randn(&generator, WG_F64, WG_DIMS(6, 5)));
            wg_tensor *b = added(optimizer, "b", wg_randn(&generator, WG_F64, WG_DIMS(7)));
            weights[clipped] = w;
            for (int step = 0; step < 3; step++) {
                wg_tensor *gradient = wg_randn(&generator, WG_F64, WG_DIMS(6, 5));
                double norm = wg_item(wg_sqrt(wg_sum(wg_square(gradient), WG_ALL, false)));
                double scale = step == 1 ? 1e-3 : 1;
                gradient = wg_mul_scalar(gradient, clipped ? 7.0 : scale);
                set_gradient(w, gradient);
                set_gradient(b, wg_zeros_like(b));
                if (clipped)
                    ck_assert_int_eq(wg_optimizer_clip(optimizer, scale * norm, NULL), 0);
                ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-2), 0);
            }
            wg_optimizer_free(optimizer);
        }
        assert_close(weights[0], weights[1], 1e-12, 1e-12);
    }
}
END_TEST

/* Also weights of no elements. */
START_TEST(gradients_of_zeros_leave_zeros) {
    for (size_t i = 0; i < OPTIMIZERS; i++)
        for (int64_t rows = 0; rows <= 4; rows += 4) {
            wg_optimizer *optimizer = make(optimizer_names[i]);
            wg_tensor *w = added(optimizer, "w", wg_zeros(WG_F32, WG_DIMS(rows, 3)));
            for (int step = 0; step < 3; step++) {
                set_full_gradient(w, 0);
                ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-2), 0);
            }
            assert_close(wg_detach(w), wg_zeros(WG_F32, WG_DIMS(rows, 3)), 0, 0);
            wg_optimizer_free(optimizer);
        }
}
END_TEST

START_TEST(muon_brings_singular_values_near_1) {
    wg_generator generator = {.seed = 4};
    wg_optimizer *optimizer = wg_muon_new(&(wg_muon_options){.momentum = 0.5});
    wg_tensor *w = added(optimizer, "w", wg_zeros(WG_F64, WG_DIMS(30, 50)));
    set_gradient(w, wg_randn(&generator, WG_F64, WG_DIMS(30, 50)));
    ck_assert_int_eq(wg_optimizer_step(optimizer, 1), 0);
    wg_tensor *x = wg_detach(w);
    wg_tensor *gram = wg_matmul(x, wg_transpose(x, 0, 1));
    for (int64_t i = 0; i < 30; i++) /* squares of numbers between about 0.7 and 1.2 */
        ck_assert_double_eq_tol(wg_at(gram, (int64_t[]){i, i}), 1, 0.5);
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(options_out_of_range_are_refused) {
    assert_none(wg_sgd_new(&(wg_sgd_options){.momentum = 1}), "momentum is 1");
    assert_none(wg_sgd_new(&(wg_sgd_options){.nesterov = true}), "wants a momentum");
    assert_none(wg_adam_new(&(wg_adam_options){.beta1 = 1}), "adam_new: beta1 is 1");
    assert_none(wg_lion_new(&(wg_lion_options){.beta2 = -1}), "beta2 is -1");
    assert_none(wg_adafactor_new(&(wg_adafactor_options){.clip_threshold = NAN}), "clip_threshold");
    assert_none(wg_muon_new(&(wg_muon_options){.adamw = {.eps = -1}}), "eps is -1");
    assert_none(wg_muon_new(&(wg_muon_options){.weight_decay = INFINITY}), "weight_decay");
    assert_fails(wg_optimizer_new(&(wg_optimizer_choice){.name = "adamax"}), WG_ERROR_NOT_FOUND,
                 "no 'adamax'");
}
END_TEST

START_TEST(no_memory_is_an_error_and_nothing_leaks) {
    wg_tensor *w = leaf_of(wg_zeros(WG_F32, WG_DIMS(200, 300)));
    int64_t blocks = wg_alloc_get_stats().live_blocks;
    for (size_t i = 0; i < OPTIMIZERS; i++) {
        int status = -1;
        int64_t n = 0;
        for (; status < 0; n++) {
            ck_assert_int_lt(n, 20);
            wg__alloc_fail_after(n);
            wg_optimizer *optimizer =
                wg_optimizer_new(&(wg_optimizer_choice){.name = optimizer_names[i]});
            status = wg_optimizer_add(optimizer, "w", w, false);
            wg__alloc_fail_after(-1);
            if (status < 0)
                assert_error(WG_ERROR_MEMORY, "");
            wg_optimizer_free(optimizer);
            ck_assert_int_eq(wg_alloc_get_stats().live_blocks, blocks);
        }
        ck_assert_int_gt(n, 3);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        sgd_equals_pytorchs,
        adam_and_adamw_equal_pytorchs,
        adafactor_equals_the_papers,
        lion_equals_the_papers,
        muon_equals_the_published,
        any_number_of_threads_gives_the_same_bits,
        large_parameters_step_alike_in_f32_and_f64,
        large_parameters_step_as_composed_of_ops,
        muon_iterates_in_bf16_under_its_matmul_dtype,
        every_optimizer_scales_the_gradient_that_is_clipped,
        gradients_of_zeros_leave_zeros,
        muon_brings_singular_values_near_1,
        options_out_of_range_are_refused,
        no_memory_is_an_error_and_nothing_leaks,
    };
    add_suite("optimizers", tests);
}
