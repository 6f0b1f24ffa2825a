/* Products under wg_set_matmul_dtype(WG_BF16): which ops round what, forward and backward. The
 * kernels' own bits are the business of tests/tensor/gemm_bf16.c. */
#include "autograd/autograd.h"
#include "autograd/functional.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"

#include <string.h>

enum { ROWS = 37, IN = 45, OUT = 29 };

static wg_tensor *drawn(uint64_t seed, wg_dtype dtype, int ndim, const int64_t *shape) {
    return wg_cast(normal(seed, WG_F32, ndim, shape), dtype);
}

/* x as bf16 has it, in f64. */
static wg_tensor *rounded(wg_tensor *x) {
    return wg_cast(wg_cast(x, WG_BF16), WG_F64);
}

static void assert_same_bits(const wg_tensor *a, const wg_tensor *b) {
    ck_assert_int_eq(wg_tensor_count(a), wg_tensor_count(b));
    ck_assert_mem_eq(wg_tensor_data(a), wg_tensor_data(b),
                     (size_t)wg_tensor_count(a) * wg_dtype_size(wg_tensor_dtype(a)));
}

/* A sum of up to 45 products of f32, beside the exact one of the same numbers. */
static void assert_near(wg_tensor *x, wg_tensor *exact) {
    assert_close(wg_cast(x, WG_F64), exact, 1e-5, 1e-5);
}

typedef struct layer {
    wg_tensor *x, *weight, *bias, *g;
    wg_tensor *y, *dx, *dweight, *dbias;
} layer;

static layer leaves(wg_dtype dtype) {
    layer l = {.x = leaf_of(drawn(1, dtype, WG_DIMS(ROWS, IN))),
               .weight = leaf_of(drawn(2, dtype, WG_DIMS(OUT, IN))),
               .bias = leaf_of(drawn(3, dtype, WG_DIMS(OUT))),
               .g = drawn(4, dtype, WG_DIMS(ROWS, OUT))};
    return l;
}

/* Forward under one dtype and backward under another. */
static layer run(wg_dtype dtype, wg_dtype forward, wg_dtype backward) {
    layer l = leaves(dtype);
    ck_assert_int_eq(wg_set_matmul_dtype(forward), WG_F32);
    l.y = wg_linear_op(l.x, l.weight, l.bias);
    ck_assert_int_eq(wg_set_matmul_dtype(backward), forward);
    backward_from(l.y, l.g);
    ck_assert_int_eq(wg_set_matmul_dtype(WG_F32), backward);
    l.dx = wg_gradient(l.x);
    l.dweight = wg_gradient(l.weight);
    l.dbias = wg_gradient(l.bias);
    return l;
}

TEST(linear_and_its_gradients_are_products_of_rounded_operands) {
    const layer l = run(WG_F32, WG_BF16, WG_BF16);
    wg_set_grad_enabled(false);
    wg_tensor *x = rounded(l.x), *weight = rounded(l.weight), *g = rounded(l.g);
    wg_tensor *y = wg_matmul(x, wg_transpose(weight, 0, 1));
    assert_near(l.y, wg_add(y, wg_cast(l.bias, WG_F64)));
    assert_near(l.dx, wg_matmul(g, weight));
    assert_near(l.dweight, wg_matmul(wg_transpose(g, 0, 1), x));
    assert_near(l.dbias, wg_sum(wg_cast(l.g, WG_F64), 1, (int64_t[]){0}, false));
    wg_set_grad_enabled(true);
}

TEST(backward_rounds_as_its_forward_did) {
    const layer both = run(WG_F32, WG_BF16, WG_BF16), forward = run(WG_F32, WG_BF16, WG_F32),
                neither = run(WG_F32, WG_F32, WG_F32), backward = run(WG_F32, WG_F32, WG_BF16);
    assert_same_bits(forward.dx, both.dx);
    assert_same_bits(forward.dweight, both.dweight);
    assert_same_bits(backward.dx, neither.dx);
    assert_same_bits(backward.dweight, neither.dweight);
    ck_assert_mem_ne(wg_tensor_data(both.dx), wg_tensor_data(neither.dx), 64);
}

TEST(products_of_f64_are_not_rounded) {
    const layer one = run(WG_F64, WG_BF16, WG_BF16), other = run(WG_F64, WG_F32, WG_F32);
    assert_same_bits(one.y, other.y);
    assert_same_bits(one.dx, other.dx);
    assert_same_bits(one.dweight, other.dweight);
}

/* ---- matmul ---- */

/* Of matrices (B, M, K) x (K, N) and (B, M, K) x (B, K, N). */
static wg_tensor *product(wg_tensor *a, wg_tensor *b, wg_tensor *g, wg_tensor **da,
                          wg_tensor **db) {
    wg_set_matmul_dtype(WG_BF16);
    wg_tensor *c = wg_matmul(a, b);
    wg_set_matmul_dtype(WG_F32);
    backward_from(c, g);
    *da = wg_gradient(a);
    *db = wg_gradient(b);
    return c;
}

TEST(matmul_and_its_gradients_are_products_of_rounded_operands) {
    for (int batched = 0; batched < 2; batched++) {
        wg_tensor *a = drawn(1, WG_F32, WG_DIMS(3, 7, 19)), *da, *db;
        wg_tensor *b =
            batched ? drawn(2, WG_F32, WG_DIMS(3, 19, 5)) : drawn(2, WG_F32, WG_DIMS(19, 5));
        wg_tensor *g = drawn(3, WG_F32, WG_DIMS(3, 7, 5));
        wg_tensor *c = product(leaf_of(a), leaf_of(b), g, &da, &db);
        wg_set_grad_enabled(false);
        wg_tensor *wide_a = rounded(a), *wide_b = rounded(b), *wide_g = rounded(g);
        wg_tensor *of_b = wg_matmul(wg_transpose(wide_a, -2, -1), wide_g);
        assert_near(c, wg_matmul(wide_a, wide_b));
        assert_near(da, wg_matmul(wide_g, wg_transpose(wide_b, -2, -1)));
        assert_near(db, batched ? of_b : wg_sum(of_b, 1, (int64_t[]){0}, false));
        wg_set_grad_enabled(true);
    }
}

TEST(a_product_of_no_inner_elements_is_zero_in_bf16) {
    wg_set_matmul_dtype(WG_BF16);
    assert_close(wg_matmul(wg_ones(WG_F32, WG_DIMS(2, 0)), wg_ones(WG_F32, WG_DIMS(0, 3))),
                 wg_zeros(WG_F32, WG_DIMS(2, 3)), 0, 0);
    wg_set_matmul_dtype(WG_F32);
}

/* ---- The loss of a head ---- */

TEST(the_fused_loss_of_a_head_rounds_as_its_parts_do) {
    wg_tensor *target = wg_randint(&(wg_generator){.seed = 9}, 0, OUT, 1, (int64_t[]){ROWS});
    layer l[2];
    wg_tensor *loss[2];
    for (int fused = 0; fused < 2; fused++) {
        l[fused] = leaves(WG_F32);
        wg_set_matmul_dtype(WG_BF16);
        loss[fused] =
            fused ? wg_linear_cross_entropy(l[1].x, l[1].weight, target, l[1].bias, -100, NULL)
                  : wg_cross_entropy(wg_linear_op(l[0].x, l[0].weight, l[0].bias), target, -100,
                                     NULL);
        wg_set_matmul_dtype(WG_F32);
        ck_assert_int_eq(wg_backward(loss[fused], NULL), 0);
    }
    wg_set_grad_enabled(false);
    assert_close(loss[1], loss[0], 1e-6, 0);
    assert_close(wg_gradient(l[1].x), wg_gradient(l[0].x), 1e-4, 1e-5);
    assert_close(wg_gradient(l[1].weight), wg_gradient(l[0].weight), 1e-4, 1e-5);
    wg_set_grad_enabled(true);
}

/* ---- Second order, threads, refusals ---- */

/* The gradient of sum(y^2) through y = linear(x), differentiated again. */
TEST(second_derivatives_are_those_of_the_rounded_products) {
    const layer l = leaves(WG_F32);
    wg_tensor *first, *second;
    wg_set_matmul_dtype(WG_BF16);
    wg_tensor *y = wg_linear_op(l.x, l.weight, NULL);
    wg_set_matmul_dtype(WG_F32);
    wg_tensor *sum = wg_sum(wg_mul(y, y), WG_ALL, false);
    const wg_backward_options options = {.create_graph = true};
    ck_assert_int_eq(wg_grad(1, &sum, NULL, 1, (wg_tensor *[]){l.x}, &options, &first), 0);
    wg_tensor *total = wg_sum(first, WG_ALL, false);
    ck_assert_int_eq(wg_grad(1, &total, NULL, 1, (wg_tensor *[]){l.x}, NULL, &second), 0);
    wg_set_grad_enabled(false);
    /* d/dx sum(2 (x W^T) W) = 2 1^T (W W^T) ...: each row is 2 (W^T W) summed over its columns */
    wg_tensor *weight = wg_cast(l.weight, WG_F64);
    wg_tensor *row =
        wg_matmul(wg_matmul(wg_ones(WG_F64, WG_DIMS(1, IN)), wg_transpose(weight, 0, 1)), weight);
    assert_close(wg_cast(second, WG_F64), wg_expand(wg_mul_scalar(row, 2), WG_DIMS(ROWS, IN)), 0.02,
                 0.5);
    wg_set_grad_enabled(true);
}

/* ---- What is saved for backward ---- */

/* The square of |x - exact| / |exact|. */
static double relative_error(wg_tensor *x, wg_tensor *exact) {
    wg_set_grad_enabled(false);
    const double error = wg_item(sum_of(wg_square(wg_sub(x, exact))));
    const double size = wg_item(sum_of(wg_square(exact)));
    wg_set_grad_enabled(true);
    return error / size;
}

enum { SIDE = 256, BYTES = SIDE * SIDE * 4 };

/* The sum of two products of gelu(x W), which save it, from leaves that are there. */
static int two_products(int input_count, wg_tensor *const *inputs, int output_count,
                        wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count, (void)context;
    wg_tensor *inner = wg_gelu(wg_linear_op(inputs[0], inputs[1], NULL));
    outputs[0] = wg_add(wg_linear_op(inner, inputs[2], NULL), wg_linear_op(inner, inputs[3], NULL));
    return outputs[0] ? 0 : -1;
}

typedef struct net {
    wg_tensor *leaves[4], *gradients[4];
    int64_t kept; /* bytes, between forward and backward */
} net;

/* Backward runs under f32. */
static net train(wg_dtype dtype, bool checkpoints) {
    net n;
    for (int i = 0; i < 4; i++) {
        wg_tensor *x = drawn(10 + (uint64_t)i, WG_F32, WG_DIMS(SIDE, SIDE));
        n.leaves[i] = leaf_of(wg_mul_scalar(x, i > 0 ? 0.0625 : 1));
    }
    const int64_t before = wg_alloc_get_stats().live_bytes;
    wg_tensor *y;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_set_matmul_dtype(dtype);
    ck_assert_int_eq(checkpoints
                         ? wg_activation_checkpoint(two_products, NULL, 4, n.leaves, 1, &y, NULL)
                         : two_products(4, n.leaves, 1, &y, NULL),
                     0);
    wg_set_matmul_dtype(WG_F32);
    wg_tensor *loss = wg_scope_end(&scope, wg_sum(y, WG_ALL, false));
    n.kept = wg_alloc_get_stats().live_bytes - before;
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    for (int i = 0; i < 4; i++)
        n.gradients[i] = wg_gradient(n.leaves[i]);
    return n;
}

TEST(activations_are_saved_once_in_half_the_memory) {
    const net f32 = train(WG_F32, false), bf16 = train(WG_BF16, false);
    ck_assert_int_ge(f32.kept, 2 * BYTES); /* x W and its gelu */
    ck_assert_int_lt(bf16.kept, 2 * BYTES / 2 + BYTES / 8);
}

TEST(gradients_are_those_of_the_rounded_activations) {
    const net n = train(WG_BF16, false);
    wg_set_grad_enabled(false);
    wg_tensor *x = rounded(n.leaves[0]), *weight = rounded(n.leaves[1]);
    /* The inner sums differ from the kernel's in their last bits, and so may their rounding. */
    wg_tensor *inner = wg_matmul(x, wg_transpose(weight, 0, 1));
    assert_close(wg_cast(n.gradients[2], WG_F64),
                 wg_matmul(wg_ones(WG_F64, WG_DIMS(SIDE, SIDE)), rounded(wg_gelu(inner))), 1e-3,
                 1e-2);
    wg_set_grad_enabled(true);
    const net f32 = train(WG_F32, false);
    for (int i = 0; i < 4; i++) {
        const double error = relative_error(n.gradients[i], f32.gradients[i]);
        ck_assert(0 < error && error < 1e-4); /* a hundredth of the norm */
    }
}

TEST(activation_checkpointing_changes_no_bit_of_mixed_precision) {
    const net plain = train(WG_BF16, false), again = train(WG_BF16, true);
    for (int i = 0; i < 4; i++)
        assert_same_bits(plain.gradients[i], again.gradients[i]);
}

/* d/dx of the sum of the first gradients, through activations that were saved in bf16. */
static wg_tensor *second_gradient(wg_dtype dtype) {
    layer l = leaves(WG_F32);
    wg_tensor *first, *second;
    wg_set_matmul_dtype(dtype);
    wg_tensor *y = wg_linear_op(wg_gelu(wg_linear_op(l.x, l.weight, l.bias)),
                                drawn(5, WG_F32, WG_DIMS(IN, OUT)), NULL);
    const wg_backward_options options = {.create_graph = true};
    ck_assert_int_eq(wg_grad(1, &y, (wg_tensor *[]){wg_ones(WG_F32, WG_DIMS(ROWS, IN))}, 1,
                             (wg_tensor *[]){l.x}, &options, &first),
                     0);
    wg_tensor *total = wg_sum(first, WG_ALL, false);
    ck_assert_int_eq(wg_grad(1, &total, NULL, 1, (wg_tensor *[]){l.x}, NULL, &second), 0);
    wg_set_matmul_dtype(WG_F32);
    return second;
}

TEST(second_derivatives_pass_through_activations_saved_in_bf16) {
    wg_tensor *exact = second_gradient(WG_F32), *found = second_gradient(WG_BF16);
    const double error = relative_error(found, exact);
    ck_assert(0 < error && error < 1e-3);
}

static void results(int count, wg_tensor **found) {
    ck_assert_int_eq(count, 3);
    const layer l = run(WG_F32, WG_BF16, WG_BF16);
    found[0] = wg_detach(l.y);
    found[1] = l.dx;
    found[2] = l.dweight;
}

TEST(mixed_precision_has_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(3, results);
}

TEST(products_are_f32_or_bf16) {
    ck_assert_int_eq(wg__matmul_dtype(), WG_F32);
    ck_assert_int_eq(wg_set_matmul_dtype(WG_F64), WG_F32);
    assert_error(WG_ERROR_DTYPE, "wanted f32 or bf16");
    ck_assert_int_eq(wg__matmul_dtype(), WG_F32);
}
