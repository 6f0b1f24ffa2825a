/* Convolutions of sizes that fixtures do not hold: blocks of images, threads, memory; and what they
 * refuse. tests/ops/reference_conv.c has their values. */
#include "autograd/autograd.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"

/* A convolution and its gradients under one cotangent: y, and those of x, weight and bias. */
static void with_gradients(wg_tensor *const inputs[3], const wg_conv_options *options,
                           bool transposed, wg_tensor *results[4]) {
    wg_tensor *leaves[3];
    for (int i = 0; i < 3; i++) {
        leaves[i] = wg_detach(inputs[i]);
        wg_set_requires_grad(leaves[i], true);
    }
    wg_tensor *y = transposed ? wg_conv_transpose_op(leaves[0], leaves[1], leaves[2], options)
                              : wg_conv_op(leaves[0], leaves[1], leaves[2], options);
    wg_tensor *g = normal(9, wg_tensor_dtype(y), wg_tensor_ndim(y), wg_tensor_shape(y));
    results[0] = wg_detach(y);
    ck_assert_int_eq(wg_grad(1, &y, &g, 3, leaves, NULL, results + 1), 0);
    assert_no_error();
}

/* ---- Against sums of shifted products ---- */

/* A convolution written out: the sum over taps of products of x, cut to the places of that tap, and
 * the tap's weights. */
static wg_tensor *by_taps(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, int64_t stride,
                          int64_t padding, int64_t groups) {
    const int64_t *of = wg_tensor_shape(weight), channels = of[1];
    wg_tensor *padded =
        wg_pad(x, 2, (int64_t[]){padding, padding, padding, padding}, WG_PAD_CONSTANT, 0);
    const int64_t height = (wg_tensor_size(padded, 2) - of[2]) / stride + 1;
    const int64_t width = (wg_tensor_size(padded, 3) - of[3]) / stride + 1;
    wg_tensor *parts[16];
    for (int64_t g = 0; g < groups; g++) {
        wg_tensor *sum = NULL, *images = wg_narrow(padded, 1, g * channels, channels);
        wg_tensor *of_group = wg_narrow(weight, 0, g * (of[0] / groups), of[0] / groups);
        for (int64_t i = 0; i < of[2]; i++)
            for (int64_t j = 0; j < of[3]; j++) {
                wg_tensor *read = wg_slice(images, 2, i, i + (height - 1) * stride + 1, stride);
                read = wg_slice(read, 3, j, j + (width - 1) * stride + 1, stride);
                wg_tensor *tap = wg_select(wg_select(of_group, 3, j), 2, i);
                wg_tensor *part = wg_einsum("nchw,oc->nohw", 2, (wg_tensor *[]){read, tap});
                sum = sum ? wg_add(sum, part) : part;
            }
        parts[g] = sum;
    }
    return wg_add(wg_cat((int)groups, parts, 1), wg_reshape(bias, WG_DIMS(1, -1, 1, 1)));
}

typedef struct sizes {
    int64_t x[4], weight[4], stride, padding, groups;
} sizes;

/* One block of one image, several of one and of several images, with a last one that is smaller;
 * planes; one group and several. */
static const sizes large[] = {
    {{1, 40, 30, 29}, {70, 40, 3, 3}, 1, 1, 1}, {{3, 24, 50, 48}, {33, 24, 3, 3}, 1, 1, 1},
    {{50, 60, 9, 8}, {61, 60, 3, 3}, 1, 1, 1},  {{5, 48, 33, 30}, {64, 48, 5, 5}, 2, 2, 1},
    {{3, 30, 41, 40}, {90, 30, 1, 1}, 1, 0, 1}, {{60, 64, 7, 7}, {40, 64, 1, 1}, 1, 0, 1},
    {{3, 12, 40, 37}, {12, 1, 3, 3}, 1, 1, 12}, {{3, 12, 40, 37}, {24, 1, 5, 5}, 2, 2, 12},
    {{9, 24, 40, 37}, {40, 12, 3, 3}, 2, 1, 2}, {{2, 1, 90, 90}, {16, 1, 5, 5}, 1, 2, 1},
    {{2, 3, 100, 101}, {20, 3, 7, 7}, 2, 3, 1},
};

enum { LARGE = WG_COUNT(large) };

static void inputs_of(const sizes *s, wg_dtype dtype, wg_tensor *inputs[3]) {
    inputs[0] = normal(1, dtype, 4, s->x);
    inputs[1] = normal(2, dtype, 4, s->weight);
    inputs[2] = normal(3, dtype, 1, &s->weight[0]);
}

static wg_conv_options options_of(const sizes *s) {
    return (wg_conv_options){
        .stride = {s->stride, s->stride}, .padding = {s->padding, s->padding}, .groups = s->groups};
}

START_TEST(a_large_convolution_is_the_sum_over_its_taps) {
    const sizes *s = &large[_i];
    const wg_conv_options options = options_of(s);
    wg_tensor *inputs[3], *found[4], *wanted[4], *leaves[3];
    inputs_of(s, WG_F64, inputs);
    with_gradients(inputs, &options, false, found);
    for (int i = 0; i < 3; i++) {
        leaves[i] = wg_detach(inputs[i]);
        wg_set_requires_grad(leaves[i], true);
    }
    wg_tensor *y = by_taps(leaves[0], leaves[1], leaves[2], s->stride, s->padding, s->groups);
    wg_tensor *g = normal(9, WG_F64, 4, wg_tensor_shape(y));
    ck_assert_int_eq(wg_grad(1, &y, &g, 3, leaves, NULL, wanted + 1), 0);
    wanted[0] = wg_detach(y);
    for (int i = 0; i < 4; i++)
        assert_close(found[i], wanted[i], 1e-11, 1e-11);
}
END_TEST

/* The convolution in f32, whose products have other tiles and pieces than those in f64. */
START_TEST(a_large_convolution_in_f32_is_that_in_f64) {
    const wg_conv_options options = options_of(&large[_i]);
    wg_tensor *narrow[3], *wide[3], *found[4], *wanted[4];
    inputs_of(&large[_i], WG_F32, narrow);
    for (int i = 0; i < 3; i++)
        wide[i] = wg_cast(narrow[i], WG_F64);
    with_gradients(narrow, &options, false, found);
    with_gradients(wide, &options, false, wanted);
    assert_close(found[0], wg_cast(wanted[0], WG_F32), 1e-5, 2e-4);
}
END_TEST

static const char *name_of(int i) {
    static char text[64];
    snprintf(text, sizeof text, "%lldx%lldx%lldx%lld", (long long)large[i].x[0],
             (long long)large[i].x[1], (long long)large[i].x[2], (long long)large[i].x[3]);
    return text;
}

/* ---- Threads and memory ---- */

static const sizes *threaded;
static bool threaded_transposed;

static void convolution_and_gradients(int count, wg_tensor **results) {
    wg_tensor *inputs[3];
    (void)count;
    inputs_of(threaded, WG_F32, inputs);
    wg_conv_options options = options_of(threaded);
    if (threaded_transposed) {
        inputs[0] = normal(1, WG_F32, WG_DIMS(threaded->x[0], threaded->weight[0], 9, 8));
        inputs[2] = normal(3, WG_F32, WG_DIMS(threaded->x[1]));
    }
    with_gradients(inputs, &options, threaded_transposed, results);
}

TEST(convolutions_have_the_same_bits_at_any_thread_count) {
    for (size_t i = 0; i < LARGE; i += 2)
        for (int transposed = 0; transposed < 2; transposed++) {
            threaded = &large[i];
            threaded_transposed = transposed;
            assert_same_bits_at_any_thread_count(4, convolution_and_gradients);
        }
}

/* The matrix of windows would have 9 times as many elements as x, 29 MB in all. */
TEST(a_convolution_stores_no_windows) {
    wg_tensor *x = normal(1, WG_F32, WG_DIMS(4, 64, 56, 56));
    wg_tensor *weight = normal(2, WG_F32, WG_DIMS(64, 64, 3, 3));
    const wg_conv_options options = {.padding = {1, 1}};
    const int64_t before = peak_begin();
    wg_tensor *y = wg_conv_op(x, weight, NULL, &options);
    const int64_t bytes = wg_tensor_count(y) * 4 + wg_threads() * (8 << 20);
    ck_assert_int_lt(peak_end(before), bytes);
}

/* ---- What the definition says ---- */

TEST(a_transposed_convolution_is_the_adjoint) {
    wg_tensor *x = normal(1, WG_F64, WG_DIMS(2, 4, 9, 8)),
              *y = normal(2, WG_F64, WG_DIMS(2, 6, 5, 3));
    wg_tensor *weight = normal(3, WG_F64, WG_DIMS(6, 2, 3, 4));
    const wg_conv_options options = {.stride = {2, 3}, .padding = {1, 2}, .groups = 2};
    wg_tensor *forward = wg_sum(wg_mul(wg_conv_op(x, weight, NULL, &options), y), 0, NULL, false);
    wg_conv_options back = options;
    back.output_padding[1] = 2;
    wg_tensor *adjoint =
        wg_sum(wg_mul(wg_conv_transpose_op(y, weight, NULL, &back), x), 0, NULL, false);
    assert_no_error();
    assert_close(adjoint, forward, 1e-12, 1e-12);
}

TEST(a_kernel_of_one_place_is_a_linear_layer) {
    wg_tensor *x = normal(1, WG_F64, WG_DIMS(3, 8, 6, 5)), *bias = normal(3, WG_F64, WG_DIMS(7));
    wg_tensor *weight = normal(2, WG_F64, WG_DIMS(7, 8, 1, 1));
    const int64_t last[] = {0, 2, 3, 1}, second[] = {0, 3, 1, 2};
    wg_tensor *y = wg_linear_op(wg_permute(x, 4, last), wg_reshape(weight, WG_DIMS(7, 8)), bias);
    assert_close(wg_conv_op(x, weight, bias, NULL), wg_permute(y, 4, second), 1e-12, 1e-12);
}

TEST(one_axis_of_three_is_a_convolution_of_one) {
    wg_tensor *x = normal(1, WG_F64, WG_DIMS(2, 3, 11)),
              *weight = normal(2, WG_F64, WG_DIMS(4, 3, 3));
    const wg_conv_options one = {.stride = {2}, .padding = {1}};
    const wg_conv_options three = {.stride = {1, 2, 1}, .padding = {0, 1, 0}};
    wg_tensor *y = wg_conv_op(wg_reshape(x, WG_DIMS(2, 3, 1, 11, 1)),
                              wg_reshape(weight, WG_DIMS(4, 3, 1, 3, 1)), NULL, &three);
    assert_close(wg_reshape(y, WG_DIMS(2, 4, 6)), wg_conv_op(x, weight, NULL, &one), 1e-13, 1e-13);
}

/* An axis has as many phases as its stride: 10^12 here. Phases without a place in y are skipped. */
TEST(a_transposed_convolution_of_one_place_is_its_kernel) {
    wg_tensor *x = wg_ones(WG_F64, WG_DIMS(1, 1, 1, 1)),
              *weight = normal(1, WG_F64, WG_DIMS(1, 1, 2, 3));
    const wg_conv_options options = {.stride = {1000000, 1000000}};
    assert_close(wg_conv_transpose_op(x, weight, NULL, &options), weight, 0, 0);
}

TEST(second_derivatives_are_there) {
    wg_tensor *x = normal(1, WG_F64, WG_DIMS(1, 2, 4, 4)),
              *w = normal(2, WG_F64, WG_DIMS(3, 2, 3, 3));
    wg_set_requires_grad(x, true);
    wg_set_requires_grad(w, true);
    wg_tensor *loss = wg_sum(wg_square(wg_conv_op(x, w, NULL, NULL)), 0, NULL, false), *dx, *dw;
    ck_assert_int_eq(
        wg_grad(1, &loss, NULL, 1, &x, &(wg_backward_options){.create_graph = true}, &dx), 0);
    wg_tensor *norm = wg_sum(wg_square(dx), 0, NULL, false);
    ck_assert_int_eq(wg_grad(1, &norm, NULL, 1, &w, NULL, &dw), 0);
    ck_assert_int_eq(wg_tensor_count(dw), 54);
}

SUITES {
    const TTest *const each[] = {a_large_convolution_is_the_sum_over_its_taps,
                                 a_large_convolution_in_f32_is_that_in_f64};
    add_suite_of_each("conv_large", each, LARGE, name_of);
}
