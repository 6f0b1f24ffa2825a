/* Matrix products against plain sums, in every layout, at each size class of GEMM, with the same
 * bits at any number of threads. */
#include "base/alloc.h"
#include "tensor/gemm/gemm.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The naive product, in f64 ---- */

static wg_tensor *naive(wg_tensor *a, wg_tensor *b) {
    int64_t m = wg_tensor_size(a, 0), k = wg_tensor_size(a, 1), n = wg_tensor_size(b, 1);
    wg_tensor *wide_a = wg_clone(wg_cast(a, WG_F64)), *wide_b = wg_clone(wg_cast(b, WG_F64));
    const double *from_a = wg_tensor_data(wide_a), *from_b = wg_tensor_data(wide_b);
    wg_tensor *c = wg_zeros(WG_F64, WG_DIMS(m, n));
    double *to = wg_tensor_data(c);
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < n; j++)
                to[i * n + j] += from_a[i * k + l] * from_b[l * n + j];
    return wg_cast(c, wg_tensor_dtype(a));
}

/* The tolerance grows with the root of the number of terms, which are about 1. */
static void assert_product(wg_tensor *a, wg_tensor *b) {
    double eps = wg_tensor_dtype(a) == WG_F32 ? 1e-6 : 1e-14;
    double length = sqrt((double)wg_tensor_size(a, 1) + 1);
    assert_close(wg_matmul(a, b), naive(a, b), 0, 8 * eps * length);
}

/* A matrix of that shape in one of six layouts. */
enum { PLAIN, TRANSPOSED, SLICED, STEPPED, REVERSED, EXPANDED, LAYOUTS };

static wg_tensor *laid_out(int layout, uint64_t seed, wg_dtype dtype, int64_t m, int64_t n) {
    switch (layout) {
    case TRANSPOSED:
        return wg_transpose(normal(seed, dtype, WG_DIMS(n, m)), 0, 1);
    case SLICED:
        return wg_slice(normal(seed, dtype, WG_DIMS(m, n + 3)), 1, 2, 2 + n, 1);
    case STEPPED:
        return wg_slice(normal(seed, dtype, WG_DIMS(m, 2 * n)), 1, 0, WG_END, 2);
    case REVERSED:
        return wg_slice(normal(seed, dtype, WG_DIMS(m, n)), 0, WG_END, WG_END, -1);
    case EXPANDED:
        return wg_expand(normal(seed, dtype, WG_DIMS(1, n)), WG_DIMS(m, n));
    default:
        return normal(seed, dtype, WG_DIMS(m, n));
    }
}

TEST(matmul_is_the_naive_product_in_every_layout) {
    static const int64_t sizes[][3] = {{3, 4, 5}, {1, 7, 3},   {6, 1, 2},   {5, 3, 1},
                                       {1, 1, 1}, {17, 33, 9}, {65, 70, 64}};
    for (int dtype = WG_F32; dtype <= WG_F64; dtype++)
        for (size_t s = 0; s < WG_COUNT(sizes); s++)
            for (int layout = 0; layout < LAYOUTS * LAYOUTS; layout++)
                IN_SCOPE() {
                    assert_product(
                        laid_out(layout / LAYOUTS, 1, (wg_dtype)dtype, sizes[s][0], sizes[s][1]),
                        laid_out(layout % LAYOUTS, 2, (wg_dtype)dtype, sizes[s][1], sizes[s][2]));
                }
}

/* Small; small with short dot products; skinny in either direction; large with ragged edges; large
 * with a long sum, m or n the larger; and those without BLIS: tiny ones and vectors on either
 * side. */
static const int64_t regimes[][3] = {
    {100, 90, 110}, {128, 64, 128}, {3, 300, 4600}, {4600, 300, 3}, {160, 170, 150},
    {301, 30, 515}, {70, 901, 210}, {403, 797, 65}, {20, 30, 40},   {2, 9, 700},
    {1, 300, 4600}, {4600, 300, 1}, {1, 5000, 1}};

TEST(matmul_is_the_naive_product_at_every_size) {
    for (int dtype = WG_F32; dtype <= WG_F64; dtype++)
        for (size_t s = 0; s < WG_COUNT(regimes); s++)
            for (int layout = PLAIN; layout <= TRANSPOSED; layout++)
                IN_SCOPE() {
                    assert_product(
                        laid_out(layout, 3, (wg_dtype)dtype, regimes[s][0], regimes[s][1]),
                        laid_out(!layout, 4, (wg_dtype)dtype, regimes[s][1], regimes[s][2]));
                }
}

static int regime;

static void products_of_a_regime(int count, wg_tensor **results) {
    const int64_t *size = regimes[regime];
    for (int i = 0; i < count; i++) {
        wg_dtype dtype = i % 2 ? WG_F64 : WG_F32;
        results[i] = wg_matmul(laid_out(i & 1, 5, dtype, size[0], size[1]),
                               laid_out(i >> 1, 6, dtype, size[1], size[2]));
    }
}

TEST(matmul_has_the_same_bits_at_any_thread_count) {
    for (regime = 0; regime < (int)WG_COUNT(regimes); regime++)
        assert_same_bits_at_any_thread_count(4, products_of_a_regime);
}

/* So large that an operand is packed in parts. */
TEST(a_product_is_the_sum_of_those_of_its_parts) {
    wg_tensor *a = normal(15, WG_F64, WG_DIMS(700, 1000));
    wg_tensor *b = normal(16, WG_F64, WG_DIMS(1000, 720));
    wg_tensor *sum = wg_zeros(WG_F64, WG_DIMS(700, 720));
    for (int64_t k = 0; k < 1000; k += 250)
        sum = wg_add(sum, wg_matmul(wg_slice(a, 1, k, k + 250, 1), wg_slice(b, 0, k, k + 250, 1)));
    assert_close(wg_matmul(a, b), sum, 1e-12, 1e-11);
}

TEST(a_product_that_finds_no_memory_to_pack_into_has_the_same_bits) {
    enum { M = 130, N = 250, K = 500 };
    for (int dtype = WG_F32; dtype <= WG_F64; dtype++) {
        wg_tensor *a = normal(17, (wg_dtype)dtype, WG_DIMS(M, K));
        wg_tensor *b = normal(18, (wg_dtype)dtype, WG_DIMS(N, K));
        wg_tensor *packed = wg_matmul(a, wg_transpose(b, 0, 1)),
                  *unpacked = wg_zeros((wg_dtype)dtype, WG_DIMS(M, N));
        wg__alloc_fail_after(0);
        wg__gemm(&(wg__product){.dtype = (wg_dtype)dtype,
                                .m = M,
                                .n = N,
                                .k = K,
                                .alpha = 1,
                                .a = (wg__matrix){wg_tensor_data(a), K, 1},
                                .b = (wg__matrix){wg_tensor_data(b), 1, K},
                                .c = (wg__matrix){wg_tensor_data(unpacked), N, 1}});
        wg__alloc_fail_after(-1);
        ck_assert_mem_eq(wg_tensor_data(unpacked), wg_tensor_data(packed),
                         M * N * wg_dtype_size((wg_dtype)dtype));
    }
}

/* Several pieces of k, ragged edges, m or n the larger. C by columns is computed transposed, by
 * kernels that write rows. */
static const int64_t with_a_row[][3] = {{130, 500, 250}, {301, 150, 203}, {203, 385, 402}};

static void assert_product_plus_row(wg_dtype dtype, const int64_t *size, bool by_columns,
                                    bool finds_memory) {
    const int64_t m = size[0], k = size[1], n = size[2];
    wg_tensor *a = normal(40, dtype, WG_DIMS(m, k)), *b = normal(41, dtype, WG_DIMS(k, n));
    wg_tensor *row = normal(42, dtype, WG_DIMS(n)), *memory = wg_zeros(dtype, WG_DIMS(m, n));
    const wg__matrix c = by_columns ? (wg__matrix){wg_tensor_data(memory), 1, m}
                                    : (wg__matrix){wg_tensor_data(memory), n, 1};
    if (!finds_memory)
        wg__alloc_fail_after(0);
    wg__gemm(&(wg__product){.dtype = dtype,
                            .m = m,
                            .n = n,
                            .k = k,
                            .alpha = 1,
                            .a = (wg__matrix){wg_tensor_data(a), k, 1},
                            .b = (wg__matrix){wg_tensor_data(b), n, 1},
                            .c = c,
                            .row = wg_tensor_data(row)});
    wg__alloc_fail_after(-1);
    wg_tensor *sum = wg_add(wg_matmul(a, b), row);
    if (by_columns)
        memory = wg_transpose(wg_reshape(memory, WG_DIMS(n, m)), 0, 1);
    const double tolerance = dtype == WG_F64 ? 1e-12 : 1e-5;
    assert_close(memory, sum, tolerance, 4 * tolerance);
}

TEST(a_row_is_added_to_large_products) {
    for (int dtype = WG_F32; dtype <= WG_F64; dtype++)
        for (size_t s = 0; s < WG_COUNT(with_a_row); s++)
            for (int form = 0; form < 4; form++)
                assert_product_plus_row((wg_dtype)dtype, with_a_row[s], form & 1, form & 2);
}

TEST(matmul_broadcasts_leading_axes) {
    wg_tensor *a = normal(7, WG_F64, WG_DIMS(2, 1, 3, 4)), *b = normal(8, WG_F64, WG_DIMS(5, 4, 2));
    wg_tensor *c = wg_matmul(a, b);
    ck_assert_int_eq(wg_tensor_ndim(c), 4);
    for (int64_t i = 0; i < 2; i++)
        for (int64_t j = 0; j < 5; j++)
            assert_close(wg_select(wg_select(c, 0, i), 0, j),
                         naive(wg_select(wg_select(a, 0, i), 0, 0), wg_select(b, 0, j)), 1e-13,
                         1e-13);
}

/* (B, T, H, D) seen as (B, H, T, D): strides in every axis, none of them merges. */
TEST(matmul_takes_a_batch_of_strided_matrices) {
    wg_tensor *q = wg_transpose(normal(9, WG_F32, WG_DIMS(2, 5, 3, 4)), 1, 2);
    wg_tensor *k = wg_transpose(normal(10, WG_F32, WG_DIMS(2, 5, 3, 4)), 1, 2);
    assert_close(wg_matmul(q, wg_transpose(k, -2, -1)),
                 wg_matmul(wg_clone(q), wg_clone(wg_transpose(k, -2, -1))), 1e-6, 1e-6);
    wg_tensor *w = normal(11, WG_F32, WG_DIMS(4, 6));
    assert_close(wg_matmul(q, w), wg_matmul(wg_clone(q), w), 1e-6, 1e-6);
    wg_tensor *reversed = wg_slice(q, 0, WG_END, WG_END, -1);
    assert_close(wg_matmul(reversed, w), wg_matmul(wg_clone(reversed), w), 1e-6, 1e-6);
    wg_tensor *rows = wg_slice(q, 2, 1, 2, 1); /* T is 1: rows of the batch */
    assert_close(wg_matmul(rows, w), wg_matmul(wg_clone(rows), w), 1e-6, 1e-6);
}

TEST(matmul_takes_vectors_as_numpy_does) {
    wg_tensor *a = normal(12, WG_F64, WG_DIMS(3, 4)), *row = normal(13, WG_F64, WG_DIMS(3));
    wg_tensor *column = normal(14, WG_F64, WG_DIMS(4));
    wg_tensor *both = wg_matmul(a, column);
    ck_assert_int_eq(wg_tensor_ndim(both), 1);
    ck_assert_int_eq(wg_tensor_ndim(wg_matmul(row, row)), 0);
    assert_close(wg_matmul(row, both), wg_matmul(wg_matmul(row, a), column), 1e-12, 1e-12);
    ck_assert_double_eq_tol(wg_item(wg_matmul(row, row)),
                            wg_item(wg_sum(wg_mul(row, row), 0, NULL, false)), 1e-12);
}

TEST(matmul_of_no_elements_is_empty_or_zero) {
    wg_tensor *none = wg_matmul(wg_ones(WG_F32, WG_DIMS(0, 3)), wg_ones(WG_F32, WG_DIMS(3, 2)));
    ck_assert_int_eq(wg_tensor_count(none), 0);
    for (int i = 0; i < 3; i++) {
        /* The block comes from the cache with old values: the zeros must be written. */
        IN_SCOPE() {
            wg_full(WG_F32, WG_DIMS(2, 3), NAN);
        }
        wg_tensor *zeros =
            wg_matmul(wg_ones(WG_F32, WG_DIMS(2, 0)), wg_ones(WG_F32, WG_DIMS(0, 3)));
        assert_close(zeros, wg_zeros(WG_F32, WG_DIMS(2, 3)), 0, 0);
    }
}

TEST(matmul_of_bf16_rounds_the_product_of_f32) {
    wg_tensor *a = wg_cast(normal(15, WG_F32, WG_DIMS(4, 6)), WG_BF16);
    wg_tensor *b = wg_cast(normal(16, WG_F32, WG_DIMS(6, 5)), WG_BF16);
    wg_tensor *wide = wg_matmul(wg_cast(a, WG_F32), wg_cast(b, WG_F32));
    assert_close(wg_matmul(a, b), wg_cast(wide, WG_BF16), 0, 0);
}

TEST(matmul_refuses_operands_that_do_not_fit) {
    wg_tensor *a = wg_ones(WG_F32, WG_DIMS(6, 7)), *b = wg_ones(WG_F32, WG_DIMS(8, 8));
    refused(wg_matmul(a, b), SHAPE, "(6, 7) f32 x (8, 8) f32: inner sizes differ (7, 8)");
    refused(wg_matmul(wg_ones(WG_BOOL, WG_DIMS(2, 2)), wg_ones(WG_BOOL, WG_DIMS(2, 2))), DTYPE,
            "bool is not multiplied; cast the operands");
    refused(wg_matmul(wg_ones(WG_F32, WG_DIMS(2, 3, 4)), wg_ones(WG_F32, WG_DIMS(3, 4, 2))), SHAPE,
            "leading axes");
    refused(wg_matmul(wg_scalar(WG_F32, 1), b), SHAPE, "scalar");
    ck_assert_ptr_null(wg_matmul(NULL, b));
    assert_no_error();
}

/* ---- The gradient of matmul, against what it is by definition ---- */

TEST(gradients_of_a_broadcast_matmul_have_the_operands_shapes) {
    wg_tensor *a = normal(17, WG_F64, WG_DIMS(2, 3, 4)), *b = normal(18, WG_F64, WG_DIMS(4, 5));
    wg_set_requires_grad(a, true);
    wg_set_requires_grad(b, true);
    wg_tensor *g = normal(19, WG_F64, WG_DIMS(2, 3, 5)), *c = wg_matmul(a, b);
    backward_from(c, g);
    wg_tensor *flat_a = wg_reshape(wg_detach(a), WG_DIMS(6, 4)),
              *flat_g = wg_reshape(g, WG_DIMS(6, 5));
    assert_close(wg_gradient(b), naive(wg_transpose(flat_a, 0, 1), flat_g), 1e-12, 1e-12);
    wg_tensor *da = naive(flat_g, wg_transpose(wg_detach(b), 0, 1));
    assert_close(wg_gradient(a), wg_reshape(da, WG_DIMS(2, 3, 4)), 1e-12, 1e-12);
}

/* ---- linear ---- */

/* By PyTorch: x, weight, bias and the cotangent of y are the inputs, y and the gradients the
 * results. */
static wg_tensor *stored(const char *name) {
    return fixture_tensor("kernels/linear_%s", name);
}

TEST(linear_is_that_of_pytorch) {
    wg_tensor *inputs[] = {stored("x"), stored("weight"), stored("bias")};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(wg_set_requires_grad(inputs[i], true), 0);
    wg_tensor *y = wg_linear_op(inputs[0], inputs[1], inputs[2]);
    assert_close(wg_detach(y), stored("y"), 1e-5, 1e-5);
    backward_from(y, stored("dy"));
    assert_close(wg_gradient(inputs[0]), stored("dx"), 1e-5, 1e-5);
    assert_close(wg_gradient(inputs[1]), stored("dweight"), 1e-5, 1e-4);
    assert_close(wg_gradient(inputs[2]), stored("dbias"), 1e-5, 1e-4);
}

TEST(linear_adds_onto_the_gradients_that_are_there) {
    wg_tensor *x = normal(20, WG_F32, WG_DIMS(7, 5));
    wg_tensor *weight = normal(21, WG_F32, WG_DIMS(3, 5)), *bias = normal(22, WG_F32, WG_DIMS(3));
    wg_set_requires_grad(weight, true);
    wg_set_requires_grad(bias, true);
    const void *first = NULL;
    for (int pass = 0; pass < 2; pass++) {
        wg_tensor *y = wg_linear_op(x, weight, bias);
        wg_tensor *ones = wg_ones(WG_F32, WG_DIMS(7, 3));
        backward_from(y, ones);
        if (pass == 0)
            first = wg_tensor_data(wg_gradient(weight));
    }
    ck_assert_ptr_eq(wg_tensor_data(wg_gradient(weight)), first); /* in place */
    wg_tensor *sum = wg_mul_scalar(wg_sum(x, WG_DIMS(0), true), 2);
    assert_close(wg_gradient(weight), wg_clone(wg_expand(sum, WG_DIMS(3, 5))), 1e-5, 1e-5);
    assert_close(wg_gradient(bias), wg_full(WG_F32, WG_DIMS(3), 14), 0, 0);
}

static void linear_and_gradients(int count, wg_tensor **results) {
    (void)count;
    wg_tensor *x = normal(23, WG_F32, WG_DIMS(3, 211, 130));
    wg_tensor *weight = normal(24, WG_F32, WG_DIMS(301, 130)),
              *bias = normal(25, WG_F32, WG_DIMS(301));
    wg_tensor *wanted[] = {x, weight, bias};
    for (int i = 0; i < 3; i++)
        wg_set_requires_grad(wanted[i], true);
    wg_tensor *y = wg_linear_op(x, weight, bias);
    wg_tensor *g = normal(26, WG_F32, WG_DIMS(3, 211, 301));
    wg_grad(1, &y, &g, 3, wanted, NULL, results + 1);
    results[0] = y;
}

TEST(linear_has_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(4, linear_and_gradients);
}

TEST(linear_takes_any_strides) {
    wg_tensor *x = laid_out(TRANSPOSED, 27, WG_F32, 6, 4);
    wg_tensor *weight = laid_out(REVERSED, 28, WG_F32, 3, 4);
    wg_tensor *bias = wg_slice(normal(29, WG_F32, WG_DIMS(6)), 0, 0, WG_END, 2);
    wg_tensor *plain = wg_linear_op(wg_clone(x), wg_clone(weight), wg_clone(bias));
    assert_close(wg_linear_op(x, weight, bias), plain, 1e-6, 1e-6);
    wg_tensor *expanded = wg_expand(normal(30, WG_F32, WG_DIMS(1, 4)), WG_DIMS(6, 4));
    assert_close(wg_linear_op(expanded, weight, NULL),
                 wg_linear_op(wg_clone(expanded), weight, NULL), 1e-6, 1e-6);
}

TEST(linear_takes_an_input_that_is_expanded_along_any_axis) {
    for (int axis = 0; axis < 3; axis++) {
        wg_tensor *x = wg_slice(normal(31, WG_F32, WG_DIMS(2, 5, 4)), axis, 0, 1, 1);
        x = wg_expand(x, WG_DIMS(2, 5, 4));
        wg_tensor *weight = normal(32, WG_F32, WG_DIMS(3, 4));
        assert_close(wg_linear_op(x, weight, NULL), wg_linear_op(wg_clone(x), weight, NULL), 1e-6,
                     1e-6);
    }
}

/* y = mean over T of x W^T, x (B, T, C): dL/dx = g W / T in each row, dL/dW = g^T mean of x. */
TEST(a_pooled_linear_has_the_gradient_of_the_formula) {
    static const wg_dtype dtypes[] = {WG_F32, WG_F64};
    for (int d = 0; d < 2; d++) {
        wg_tensor *x = normal(33, dtypes[d], WG_DIMS(2, 5, 4));
        wg_tensor *weight = normal(34, dtypes[d], WG_DIMS(3, 4));
        wg_tensor *g = normal(35, dtypes[d], WG_DIMS(2, 3));
        wg_set_requires_grad(x, true);
        wg_set_requires_grad(weight, true);
        wg_tensor *pooled = wg_mean(wg_linear_op(x, weight, NULL), WG_DIMS(1), false);
        backward_from(pooled, g);
        wg_tensor *row = wg_unsqueeze(wg_mul_scalar(naive(g, wg_detach(weight)), 0.2), 1);
        assert_close(wg_gradient(x), wg_clone(wg_expand(row, WG_DIMS(2, 5, 4))), 1e-5, 1e-5);
        wg_tensor *mean = wg_mean(wg_detach(x), WG_DIMS(1), false);
        assert_close(wg_gradient(weight), naive(wg_transpose(g, 0, 1), mean), 1e-5, 1e-5);
    }
}

TEST(linear_refuses_operands_that_do_not_fit) {
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(2, 4)), *weight = wg_ones(WG_F32, WG_DIMS(3, 5));
    refused(wg_linear_op(x, weight, NULL), SHAPE, "(2, 4) f32 x (3, 5) f32");
    wg_tensor *bias = wg_ones(WG_F32, WG_DIMS(5));
    refused(wg_linear_op(x, wg_ones(WG_F32, WG_DIMS(3, 4)), bias), SHAPE, "a bias of 3");
    ck_assert_ptr_null(wg_linear_op(x, NULL, bias));
    assert_no_error();
}
