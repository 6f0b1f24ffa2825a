/* Ops composed of other ops on matrices: lstsq, pinv, matrix_power, matrix_exp and matrix_norm. */
#include "tensor/ops/linalg/matrices.h"

#include <float.h>
#include <math.h>

/* ---- lstsq: the X of least norm that minimises |A X - B|, of an A of full rank: by A = Q R, R^-1
 * Q^T B; by A^T = Q R for a wide A, Q R^-T B. ---- */

enum { A, B };

/* A diagonal element of R that is 0 but for rounding is an error. */
static int lstsq_decompose(wg_call *call) {
    wg_tensor *a = call->inputs[A], *b = call->inputs[B], *q, *r;
    if (wg__check_matrices(call, false) < 0 || wg__check_same_dtype(call, A, B) < 0)
        return -1;
    const int64_t rows = wg_tensor_size(a, -2), columns = wg_tensor_size(a, -1);
    const bool wide = rows < columns;
    wg_spec of_a = a->spec, of_b = b->spec, batch;
    if (of_b.ndim < 2 || of_b.shape[of_b.ndim - 2] != rows)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted A (..., M, N) and B (..., M, K), or a vector (M) for B");
    of_a.ndim -= 2;
    of_b.ndim -= 2;
    if (!wg__broadcast(&of_a, &of_b, &batch))
        return wg__op_fail(call, WG_ERROR_SHAPE, "the leading axes do not broadcast");
    if (wg_qr(wide ? wg__transposed(a) : a, false, &q, &r) < 0)
        return -1;
    const bool was = wg_set_grad_enabled(false);
    wg_tensor *diagonal = wg_contiguous(wg__all_values(wg_abs(wg_diagonal(r, 0, -2, -1))));
    wg_set_grad_enabled(was);
    if (!diagonal)
        return -1;
    const int64_t n = wg_tensor_size(diagonal, -1), count = wg_tensor_count(diagonal);
    const double epsilon = (diagonal->spec.dtype == WG_F32 ? FLT_EPSILON : DBL_EPSILON) *
                           (double)wg__larger(rows, columns);
    for (int64_t row = 0; n > 0 && row < count / n; row++) {
        double least = INFINITY, largest = 0;
        for (int64_t i = 0; i < n; i++) {
            least = fmin(least, wg__value_at(diagonal, row * n + i));
            largest = fmax(largest, wg__value_at(diagonal, row * n + i));
        }
        char text[64];
        if (least <= epsilon * largest)
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "%s has not full rank; the product of wg_pinv and B is the solution "
                               "of least norm",
                               wg__matrix_text(text, sizeof text, call, row));
    }
    wg_tensor *x =
        wide ? wg_matmul(q, wg_solve_triangular(wg__transposed(r), b, false, false, false))
             : wg_solve_triangular(r, wg_matmul(wg__transposed(q), b), true, false, false);
    return wg__set_output(call, x);
}

WG__SHAPES(lstsq, (wg__sample_matrices, wg__sample_normal), "4 3, 4 2", "2 3, 2 2 1", "2 2 2, 2 2")
WG__LARGE_BY(lstsq, int, (wg__sample_normal_f32), "64 256 64, 64 256 16", 0)

static const wg_op lstsq = {
    WG__OP("lstsq", 2,
           "X (..., N, K) with the least |A X - B| and, of those, the least norm, of A (..., M, N) "
           "and B (..., M, K), by QR. An error if A has not full rank."),
    .differentiable = 3, WG__COMPOSED(lstsq), .bench = lstsq_bench};

wg_tensor *wg_lstsq(wg_tensor *a, wg_tensor *b) {
    if (!a || !b)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool vector = b->spec.ndim == 1;
    wg_tensor *operands[] = {a, vector ? wg_unsqueeze(b, -1) : b};
    wg_tensor *x = operands[1] ? wg__apply_wide_one(&lstsq, 2, operands, true, NULL) : NULL;
    return wg_scope_end(&scope, vector ? wg_squeeze(x, -1) : x);
}

/* ---- pinv: P = V S^-1 U^T over the singular values above rtol times the largest.   At constant
 * rank: dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P   (Golub & Pereyra 1973),
 * and dA = -P^T g P^T + (1 - A P) g^T P P^T + P^T P g^T (1 - P A). ---- */

static int pinv_infer(wg_call *call) {
    const wg_spec *a = &call->input_specs[0];
    if (wg__check_matrices(call, false) < 0)
        return -1;
    wg__infer_matrix(call, 0, 2, a->shape[a->ndim - 1], a->shape[a->ndim - 2]);
    return 0;
}

/* Longer rows or columns are decomposed in f64: LAPACK's f32 sums lose digits, and the condition
 * number magnifies the error. */
enum { LONG_IN_F32 = 1024 };

static int pinv_forward(wg_call *call) {
    const double rtol = *(const double *)call->options;
    const wg_spec *a = &call->input_specs[0];
    const int64_t longest = wg__larger(a->shape[a->ndim - 1], a->shape[a->ndim - 2]);
    const wg_dtype dtype = longest > LONG_IN_F32 ? WG_F64 : a->dtype;
    wg_tensor *u, *s, *vt;
    if (wg__spec_count(&call->output_specs[0]) == 0)
        return wg__set_output(call, wg__tensor_new(&call->output_specs[0]));
    if (wg_svd(wg_cast(call->inputs[0], dtype), false, &u, &s, &vt) < 0)
        return -1;
    wg_tensor *least = wg_mul_scalar(wg_max(s, 1, (int64_t[]){-1}, true), rtol);
    wg_tensor *inverse = wg_where(wg_gt(s, least), wg_reciprocal(s), wg_scalar(dtype, 0));
    wg_tensor *v = wg_mul(wg__transposed(vt), wg_unsqueeze(inverse, -2));
    return wg__set_output(call, wg_cast(wg_matmul(v, wg__transposed(u)), a->dtype));
}

/* x y z, computing first the smaller of the products x y and y z. */
static wg_tensor *chain(wg_tensor *x, wg_tensor *y, wg_tensor *z) {
    int64_t xy = wg_tensor_size(x, -2) * wg_tensor_size(y, -1);
    int64_t yz = wg_tensor_size(y, -2) * wg_tensor_size(z, -1);
    return xy <= yz ? wg_matmul(wg_matmul(x, y), z) : wg_matmul(x, wg_matmul(y, z));
}

static int pinv_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *a = call->inputs[0], *p = call->outputs[0], *pt = wg__transposed(p);
    wg_tensor *gt = wg__transposed(cotangents[0]);
    wg_tensor *through = chain(pt, cotangents[0], pt);
    /* (1 - A P) g^T (P P^T) and (P^T P) g^T (1 - P A) */
    wg_tensor *x = chain(gt, p, pt), *y = chain(pt, p, gt);
    wg_tensor *left = wg_sub(x, chain(a, p, x)), *right = wg_sub(y, chain(y, p, a));
    gradients[0] = wg_sub(wg_add(left, right), through);
    return wg__vjp_status();
}

static int pinv_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *a = call->inputs[0], *p = call->outputs[0], *pt = wg__transposed(p);
    wg_tensor *dt = wg__transposed(tangents[0]);
    wg_tensor *through = chain(p, tangents[0], p);
    wg_tensor *x = chain(p, pt, dt), *y = chain(dt, pt, p);
    wg_tensor *left = wg_sub(x, chain(x, a, p)), *right = wg_sub(y, chain(p, a, y));
    output_tangents[0] = wg_sub(wg_add(left, right), through);
    return wg__vjp_status();
}

WG__EXAMPLES(pinv, double, (wg__sample_matrices), {1e-12, "3 2"}, {1e-12, "2 2 3"}, {1e-12, "2 2"})
WG__LARGE_BY(pinv, double, (wg__sample_normal_f32), "64 128 64", 1e-5)

static const wg_op pinv = {
    WG__OP("pinv", 1,
           "The pseudoinverse (..., N, M) of A (..., M, N), V S^-1 U^T over the singular values "
           "above rtol times the largest. The derivative is that at constant rank."),
    .options_size = sizeof(double),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .places_outputs = true,
    WG__PRIMITIVE(pinv),
    .batch = wg_batch_aligned};

wg_tensor *wg_pinv(wg_tensor *a, double rtol) {
    if (!a)
        return NULL;
    if (!(rtol >= 0))
        return wg__fail_null(WG_ERROR_ARGUMENT, pinv.name,
                             "rtol is %g; wanted 0 (for the default) or more", rtol);
    if (a->spec.ndim >= 2) {
        const int64_t m = wg_tensor_size(a, -2), n = wg_tensor_size(a, -1);
        const double epsilon = a->spec.dtype == WG_F64 ? DBL_EPSILON : FLT_EPSILON;
        rtol = wg__option(rtol, (double)(m > n ? m : n) * epsilon);
    }
    return wg__apply_wide_one(&pinv, 1, &a, true, &rtol);
}

static int power_decompose(wg_call *call) {
    const int64_t power = *(const int64_t *)call->options;
    const wg_spec *spec = &call->input_specs[0];
    const int64_t size = spec->shape[spec->ndim - 1];
    wg_tensor *square = power < 0 ? wg_inv(call->inputs[0]) : call->inputs[0], *y = NULL;
    uint64_t n = power < 0 ? -(uint64_t)power : (uint64_t)power;
    if (n == 0) { /* with a graph, so that the gradient is zeros */
        wg_tensor *one = wg_eye(spec->dtype, size, size);
        return wg__set_output(call, wg_add(wg_mul_scalar(call->inputs[0], 0), one));
    }
    for (; n > 0 && square; n >>= 1) {
        if (n & 1)
            y = y ? wg_matmul(y, square) : square;
        if (n > 1)
            square = wg_matmul(square, square);
    }
    return square && y ? wg__set_output(call, y == call->inputs[0] ? wg_alias(y) : y) : -1;
}

WG__EXAMPLES(power, int64_t, (wg__sample_matrices), {2, "3 3"}, {5, "2 2 2"}, {-3, "2 2"},
             {1, "2 2"})
WG__LARGE_BY(power, int64_t, (wg__sample_large_matrices), "64 128 128", 8)

static const wg_op matrix_power = {
    WG__OP(
        "matrix_power", 1,
        "A^n of square matrices (..., N, N), by repeated squaring; the identity for n = 0, and by "
        "the inverse for n < 0."),
    .options_size = sizeof(int64_t),
    .differentiable = 1,
    .infer = wg__infer_square,
    WG__COMPOSED(power),
    .bench = power_bench};

wg_tensor *wg_matrix_power(wg_tensor *a, int64_t n) {
    return wg__apply_wide_one(&matrix_power, 1, &a, true, &n);
}

/* ---- matrix_exp: by scaling and squaring, with Pade's approximant of order 13   (Higham 2005).
 * The derivative at A in the direction E is the upper right block of the exponential of (A E; 0 A).
 * Its adjoint is the derivative at A^T   (Mathias 1996). ---- */

/* The approximant is exact to f64's rounding up to this 1-norm. */
static const double pade_limit = 5.371920351148152;

static wg_tensor *sum_of_powers(wg_tensor *const *powers, const double *factors, int count) {
    wg_tensor *sum = NULL;
    for (int i = 0; i < count; i++) {
        wg_tensor *term = wg_mul_scalar(powers[i], factors[i]);
        sum = sum ? wg_add(sum, term) : term;
    }
    return sum;
}

/* Pade's approximant (V - U)^-1 (V + U), with the odd powers in U. */
static wg_tensor *pade(wg_tensor *a) {
    static const double odd_low[] = {32382376266240000., 1187353796428800., 10559470521600.,
                                     33522128640.};
    static const double even_low[] = {64764752532480000., 7771770303897600., 129060195264000.,
                                      670442572800.};
    static const double odd_high[] = {40840800., 16380., 1.},
                        even_high[] = {1323241920., 960960., 182.};
    const int64_t n = wg_tensor_size(a, -1);
    wg_tensor *a2 = wg_matmul(a, a), *a4 = wg_matmul(a2, a2), *a6 = wg_matmul(a4, a2);
    wg_tensor *const powers[] = {wg_eye(wg_tensor_dtype(a), n, n), a2, a4, a6};
    if (!a6)
        return NULL;
    wg_tensor *odd = wg_add(wg_matmul(a6, sum_of_powers(powers + 1, odd_high, 3)),
                            sum_of_powers(powers, odd_low, 4));
    wg_tensor *v = wg_add(wg_matmul(a6, sum_of_powers(powers + 1, even_high, 3)),
                          sum_of_powers(powers, even_low, 4));
    wg_tensor *u = wg_matmul(a, odd);
    return wg_solve(wg_sub(v, u), wg_add(v, u), false);
}

static int exp_forward(wg_call *call) {
    wg_tensor *a = call->inputs[0], *norms = wg_matrix_norm(a, WG_MATRIX_NORM_1, false);
    norms = norms ? wg_contiguous(wg_cast(norms, WG_F64)) : NULL;
    wg_tensor *times = norms ? wg_zeros_like(norms) : NULL; /* halvings of each matrix */
    if (!times)
        return -1;
    const int64_t count = wg_tensor_count(times);
    int most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double norm = wg__value_at(norms, i);
        int exponent = 0;
        if (isfinite(norm) && norm > pade_limit)
            frexp(norm / pade_limit, &exponent);
        ((double *)wg__tensor_address(times))[i] = exponent;
        most = exponent > most ? exponent : most;
    }
    wg_tensor *scale = wg_cast(wg_exp2(wg_neg(times)), a->spec.dtype);
    wg_tensor *y = pade(wg_mul(a, wg__as_scales(scale)));
    for (int i = 0; i < most && y; i++) {
        wg_tensor *squared = wg_matmul(y, y);
        wg_tensor *needed = wg_gt(times, wg_scalar(WG_F64, i));
        y = count == 1 ? squared : wg_where(wg__as_scales(needed), squared, y);
    }
    return wg__set_output(call, y);
}

static wg_tensor *directional(wg_tensor *a, wg_tensor *direction) {
    const int64_t n = wg_tensor_size(a, -1);
    wg_tensor *upper = wg_cat(2, (wg_tensor *[]){a, direction}, -1);
    wg_tensor *lower = wg_cat(2, (wg_tensor *[]){wg_zeros_like(a), a}, -1);
    wg_tensor *y = wg_matrix_exp(wg_cat(2, (wg_tensor *[]){upper, lower}, -2));
    return wg_narrow(wg_narrow(y, -2, 0, n), -1, n, n);
}

static int exp_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *a = wg__transposed(call->inputs[0]);
    gradients[0] = a ? directional(a, cotangents[0]) : NULL;
    return wg__vjp_status();
}

static int exp_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    output_tangents[0] = directional(call->inputs[0], tangents[0]);
    return wg__vjp_status();
}

static wg_tensor *small_matrices(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_mul_scalar(wg_randn(generator, WG_F32, ndim, shape), 0.1);
}

WG__SHAPES(exp, (wg__sample_normal), "3 3", "2 2 2", "1 1")
WG__LARGE_BY(exp, int, (small_matrices), "64 128 128", 0)

static double exp_flops(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0];
    return 15 * (double)wg__spec_count(a) * (double)a->shape[a->ndim - 1];
}

static const wg_op matrix_exp = {
    WG__OP("matrix_exp", 1,
           "e^A = 1 + A + A^2 / 2! + ... of square matrices (..., N, N), by scaling and squaring. "
           "Derivatives are blocks of exponentials of twice the size."),
    .saves_inputs = 1, .differentiable = 1,
    /* Squaring loses the digits of a large matrix. */
    .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_LARGE}, .places_outputs = true,
    .infer = wg__infer_square, .forward = exp_forward, .vjp = exp_vjp, .jvp = exp_jvp,
    .sample = exp_sample, .bench = exp_bench, .flops = exp_flops, .batch = wg_batch_aligned};

wg_tensor *wg_matrix_exp(wg_tensor *a) {
    return wg__apply_wide_one(&matrix_exp, 1, &a, true, NULL);
}

typedef struct norm_options {
    wg_matrix_norm_order order;
    bool keepdim;
} norm_options;

static int norm_decompose(wg_call *call) {
    static const int64_t both[] = {-2, -1}, last = -1;
    const norm_options *options = call->options;
    const wg_matrix_norm_order order = options->order;
    const wg_spec *spec = &call->input_specs[0];
    const bool sums = order == WG_MATRIX_NORM_FRO || order == WG_MATRIX_NORM_NUC;
    wg_tensor *a = call->inputs[0], *y;
    if (wg__check_matrices(call, false) < 0)
        return -1;
    if (!sums && (spec->shape[spec->ndim - 2] == 0 || spec->shape[spec->ndim - 1] == 0))
        return wg__op_fail(call, WG_ERROR_SHAPE, "of no elements there is no largest or smallest");
    if (order == WG_MATRIX_NORM_FRO) {
        y = wg_norm(a, 2, 2, both, false);
    } else {
        if (order == WG_MATRIX_NORM_1 || order == WG_MATRIX_NORM_MINUS_1)
            y = wg_sum(wg_abs(a), 1, &both[0], false);
        else if (order == WG_MATRIX_NORM_INF || order == WG_MATRIX_NORM_MINUS_INF)
            y = wg_sum(wg_abs(a), 1, &both[1], false);
        else
            y = wg_svdvals(a);
        const bool largest =
            order == WG_MATRIX_NORM_2 || order == WG_MATRIX_NORM_1 || order == WG_MATRIX_NORM_INF;
        y = (sums ? wg_sum : largest ? wg_max : wg_min)(y, 1, &last, false);
    }
    return wg__set_output(call, options->keepdim ? wg__as_scales(y) : y);
}

WG__EXAMPLES(norm, norm_options, (wg__sample_normal), {{WG_MATRIX_NORM_FRO, true}, "3 2"},
             {{WG_MATRIX_NORM_NUC, false}, "2 2 3"}, {{WG_MATRIX_NORM_2, false}, "2 3"},
             {{WG_MATRIX_NORM_MINUS_2, true}, "2 3 2"}, {{WG_MATRIX_NORM_1, false}, "2 3"},
             {{WG_MATRIX_NORM_MINUS_1, false}, "3 3"}, {{WG_MATRIX_NORM_INF, false}, "2 2 2"},
             {{WG_MATRIX_NORM_MINUS_INF, false}, "2 3"})
WG__LARGE_BY(norm, norm_options, (wg__sample_large_matrices), "64 128 128", WG_MATRIX_NORM_NUC,
             false)

static const wg_op matrix_norm = {
    WG__OP(
        "matrix_norm", 1,
        "A norm of matrices (..., M, N): Frobenius', the nuclear one (the sum of the singular "
        "values), the largest or smallest singular value (2, -2), column sum of |a| (1, -1) or row "
        "sum (inf, -inf). Kinks at ties, and at singular values of 0."),
    .options_size = sizeof(norm_options), .differentiable = 1,
    /* Singular values that are 0 or equal have no derivative. */
    .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_ZERO | WG_AT_TIES},
    WG__COMPOSED(norm), .bench = norm_bench};

wg_tensor *wg_matrix_norm(wg_tensor *a, wg_matrix_norm_order order, bool keepdim) {
    if (order < WG_MATRIX_NORM_FRO || order > WG_MATRIX_NORM_MINUS_INF)
        return wg__fail_null(WG_ERROR_ARGUMENT, matrix_norm.name, "there is no norm number %d",
                             (int)order);
    return wg__apply_wide_one(&matrix_norm, 1, &a, true, &(norm_options){order, keepdim});
}

const wg__op_table wg__ops_matrix_functions =
    WG__OP_TABLE(&lstsq, &pinv, &matrix_power, &matrix_exp, &matrix_norm);
