/* Linear algebra beyond what PyTorch's cases hold: batches of larger matrices satisfy the equations
 * that define each decomposition; what has no solution or no derivative is refused. */
#include "tensor/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/autograd.h"
#include "tests/support/tensors.h"

static wg_tensor *random_matrices(int64_t rows, int64_t columns) {
    wg_generator generator = {.seed = 7};
    return wg_randn(&generator, WG_F64, WG_DIMS(2, rows, columns));
}

static wg_tensor *transposed(wg_tensor *x) {
    return wg_transpose(x, -2, -1);
}

static void check_orthonormal_columns(wg_tensor *q) {
    wg_tensor *product = wg_matmul(transposed(q), q);
    const int64_t n = wg_tensor_size(q, -1);
    assert_close(product, wg_expand(wg_eye(WG_F64, n, n), 3, wg_tensor_shape(product)), 0, 1e-12);
}

static int gradient_of_sum(wg_tensor *y, wg_tensor *x, wg_tensor **gradient) {
    wg_tensor *sum = wg_sum(y, WG_ALL, false);
    return wg_grad(1, &sum, NULL, 1, &x, NULL, gradient);
}

TEST(qr_gives_orthonormal_columns_and_a_triangle) {
    const int64_t sizes[][2] = {{40, 40}, {40, 13}, {13, 40}};
    for (int i = 0; i < 6; i++) {
        wg_tensor *a = random_matrices(sizes[i / 2][0], sizes[i / 2][1]), *q = NULL, *r = NULL;
        ck_assert_int_eq(wg_qr(a, i % 2, &q, &r), 0);
        assert_close(wg_matmul(q, r), a, 0, 1e-12);
        assert_close(wg_triu(r, 0), r, 0, 0);
        check_orthonormal_columns(q);
    }
}

TEST(svd_gives_orthonormal_columns_and_descending_values) {
    const int64_t sizes[][2] = {{40, 40}, {40, 13}, {13, 40}};
    for (int i = 0; i < 6; i++) {
        wg_tensor *a = random_matrices(sizes[i / 2][0], sizes[i / 2][1]), *u, *s, *vt;
        ck_assert_int_eq(wg_svd(a, i % 2, &u, &s, &vt), 0);
        const int64_t k = wg_tensor_size(s, -1);
        wg_tensor *scaled = wg_mul(wg_narrow(u, -1, 0, k), wg_unsqueeze(s, -2));
        assert_close(wg_matmul(scaled, wg_narrow(vt, -2, 0, k)), a, 0, 1e-12);
        check_orthonormal_columns(u);
        check_orthonormal_columns(transposed(vt));
        ck_assert(wg_item(wg_all(wg_ge(wg_narrow(s, -1, 0, k - 1), wg_narrow(s, -1, 1, k - 1)),
                                 WG_ALL, false)) == 1);
    }
}

TEST(eigenvectors_of_a_symmetric_matrix_diagonalise_it) {
    wg_tensor *a = random_matrices(40, 40), *w, *v;
    a = wg_add(a, transposed(a));
    ck_assert_int_eq(wg_eigh(a, &w, &v), 0);
    assert_close(wg_matmul(wg_mul(v, wg_unsqueeze(w, -2)), transposed(v)), a, 0, 1e-11);
    check_orthonormal_columns(v);
}

TEST(systems_without_a_solution_are_refused) {
    wg_tensor *ones = wg_ones(WG_F64, WG_DIMS(3, 3)), *b = wg_ones(WG_F64, WG_DIMS(3, 2));
    refused(wg_solve(ones, b, false), ARGUMENT, "is singular");
    refused(wg_inv(ones), ARGUMENT, "wg_pinv and wg_lstsq are for such systems");
    refused(wg_matrix_power(ones, -2), ARGUMENT, "is singular");
    refused(wg_solve_triangular(wg_zeros(WG_F64, WG_DIMS(3, 3)), b, true, false, false), ARGUMENT,
            "solve_triangular");
    refused(wg_cholesky(wg_neg(ones), false), ARGUMENT, "is not positive definite");
    refused(wg_lstsq(ones, b), ARGUMENT, "lstsq");
    wg_tensor *w;
    failed(wg_eigh(wg_mul_scalar(ones, NAN), &w, NULL), ARGUMENT, "infinite or NaN");
}

TEST(matrices_that_do_not_fit_are_refused) {
    wg_tensor *wide = wg_ones(WG_F32, WG_DIMS(2, 3)), *square = wg_ones(WG_F32, WG_DIMS(3, 3));
    refused(wg_inv(wide), SHAPE, "the matrices are 2 x 3; wanted square ones");
    refused(wg_det(wg_ones(WG_F32, WG_DIMS(3))), SHAPE, "det: (3) f32");
    refused(wg_solve(square, wide, false), SHAPE, "solve: (3, 3) f32 x (2, 3) f32");
    refused(wg_pinv(square, -1), ARGUMENT, "rtol is -1");
    refused(wg_matrix_norm(square, (wg_matrix_norm_order)8, false), ARGUMENT, "no norm number 8");
}

TEST(vectors_of_equal_values_have_no_derivative_but_the_values_do) {
    wg_tensor *a = wg_eye(WG_F64, 3, 3), *w, *v, *u, *s, *vt, *gradient;
    wg_set_requires_grad(a, true);
    ck_assert_int_eq(wg_eigh(a, &w, &v), 0);
    ck_assert_int_eq(gradient_of_sum(w, a, &gradient), 0);
    assert_close(gradient, wg_eye(WG_F64, 3, 3), 0, 1e-12);
    ck_assert_int_eq(wg_eigh(a, &w, &v), 0);
    failed(gradient_of_sum(v, a, &gradient), GRADIENT, "are equal but for rounding");
    ck_assert_int_eq(wg_svd(a, false, &u, &s, &vt), 0);
    failed(gradient_of_sum(u, a, &gradient), GRADIENT, "are equal but for rounding");
}

/* Of sizes below and above those that have factors of our own; rows change places. */
TEST(factors_of_any_size_multiply_to_the_matrix) {
    const int64_t sizes[] = {1, 2, 7, 8, 9, 17, 65, 150, 384, 400};
    for (int i = 0; i < 20; i++) {
        const int64_t n = sizes[i / 2];
        const wg_dtype dtype = i % 2 ? WG_F64 : WG_F32;
        const double close = (dtype == WG_F64 ? 2e-12 : 2e-3) * (double)n;
        wg_tensor *a = wg_cast(random_matrices(n, n), dtype);
        wg_tensor *b = wg_cast(random_matrices(n, 7), dtype), *sign = NULL, *logarithm = NULL;
        a = wg_add(a, wg_mul_scalar(wg_eye(dtype, n, n), sqrt((double)n) / 2));
        assert_close(wg_matmul(a, wg_solve(a, b, false)), b, 0, close);
        wg_tensor *eye = wg_expand(wg_eye(dtype, n, n), 3, wg_tensor_shape(a));
        assert_close(wg_matmul(wg_inv(a), a), eye, 0, close);
        wg_tensor *square = wg_add(wg_matmul(a, transposed(a)), eye);
        wg_tensor *l = wg_cholesky(square, false);
        assert_close(wg_matmul(l, transposed(l)), square, 0, close);
        wg_tensor *diagonal = wg_log(wg_diagonal(l, 0, -2, -1));
        ck_assert_int_eq(wg_slogdet(square, &sign, &logarithm), 0);
        assert_close(logarithm, wg_mul_scalar(wg_sum(diagonal, 1, (int64_t[]){1}, false), 2), 0,
                     close);
        assert_close(sign, wg_ones(dtype, WG_DIMS(2)), 0, 0);
    }
    wg_tensor *swapped =
        wg_from_array(WG_F64, WG_DIMS(3, 3), (double[]){0, 2, 0, 0, 0, 3, 5, 0, 0});
    ck_assert_double_eq(wg_item(wg_det(swapped)), 30);
    swapped = wg_from_array(WG_F64, WG_DIMS(2, 2), (double[]){0, 2, 3, 0});
    ck_assert_double_eq(wg_item(wg_det(swapped)), -6);
}
