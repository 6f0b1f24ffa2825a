/* Decompositions: cholesky, qr, eigh and svd.
 *
 * Ops on symmetric matrices use (A + A^T) / 2 of their input A, so that gradients are symmetric.
 *
 * The derivatives of eigenvectors and singular vectors divide by differences of eigenvalues, or of
 * squared singular values. The vectors of equal values are not unique, and nearly equal values
 * would give noise: both are errors that name the values. */
#include "tensor/ops/linalg/matrices.h"

#include <float.h>
#include <math.h>

static wg_tensor *identity_like(const wg_tensor *x) {
    const int64_t n = wg_tensor_size(x, -1);
    return wg_eye(wg_tensor_dtype(x), n, n);
}

/* -1 with GRADIENT if two neighbours of a sorted row (..., n) are equal but for rounding. If
 * `what`, the name of a value, is NULL: if the last value of a descending row is 0 but for
 * rounding. The tolerance is a few units in the last place of the row's largest value. */
static int check_values(const wg_call *call, wg_tensor *values, const char *what) {
    values = wg_contiguous(wg__all_values(values));
    if (!values)
        return -1;
    const int64_t n = wg_tensor_size(values, -1), count = wg_tensor_count(values);
    char text[64];
    for (int64_t row = 0; n > 0 && row < count / n; row++) {
        double largest = 0;
        for (int64_t i = 0; i < n; i++)
            largest = fmax(largest, fabs(wg__value_at(values, row * n + i)));
        const double rounding =
            8 * largest * (values->spec.dtype == WG_F32 ? FLT_EPSILON : DBL_EPSILON);
        const double last = wg__value_at(values, row * n + n - 1);
        if (!what && last <= rounding)
            return wg__op_fail(
                call, WG_ERROR_GRADIENT,
                "the smallest singular value of %s, %.9g, is 0 but for rounding: its "
                "vectors are not unique and have no derivative",
                wg__matrix_text(text, sizeof text, call, row), last);
        for (int64_t i = 0; what && i + 1 < n; i++) {
            const double a = wg__value_at(values, row * n + i);
            const double b = wg__value_at(values, row * n + i + 1);
            if (fabs(a - b) <= rounding)
                return wg__op_fail(
                    call, WG_ERROR_GRADIENT,
                    "%ss %lld and %lld of %s, %.9g and %.9g, are equal but for rounding: their "
                    "vectors are not unique and have no derivative (the values have one)",
                    what, (long long)i, (long long)i + 1,
                    wg__matrix_text(text, sizeof text, call, row), a, b);
        }
    }
    return 0;
}

/* Runs an iterative routine of LAPACK. -1 with ARGUMENT if x has infinite or NaN elements, which
 * may keep LAPACK from terminating, or if the iteration has not converged. */
static int iterate(const wg_call *call, wg__lapack *job, wg__lapack_routine routine, wg_tensor *x) {
    const int64_t count = wg_tensor_count(x);
    char text[64];
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(wg__value_at(x, i)))
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "it has elements that are infinite or NaN; wg_isfinite says which");
    if (job->m == 0 || job->n == 0)
        return 0;
    if (wg__lapack_run(job, routine, x) < 0)
        return -1;
    return job->info == 0
               ? 0
               : wg__op_fail(call, WG_ERROR_ARGUMENT, "LAPACK's iteration for %s has not converged",
                             wg__matrix_text(text, sizeof text, call, job->matrix));
}

/* ---- cholesky: A = L L^T with a lower triangle L.
 * dL = L Phi(L^-1 dA L^-T), dA = the symmetric part of L^-T Phi(L^T g) L^-1, where Phi(X) is the
 * lower triangle of X with half of its diagonal. ---- */

static int cholesky_forward(wg_call *call) {
    wg_tensor *a = wg__symmetric_part(call->inputs[0]); /* row-major equals column-major */
    a = a ? wg_contiguous(a) : NULL;
    wg__lapack job = wg__lapack_job(call);
    if (wg__lapack_run(&job, WG__CHOLESKY, a) < 0)
        return -1;
    char text[64];
    if (job.info != 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "%s is not positive definite: its leading minor of order %lld is not "
                           "positive; adding a small multiple of the identity may help",
                           wg__matrix_text(text, sizeof text, call, job.matrix),
                           (long long)job.info);
    return wg__set_output(call, wg__transposed(a));
}

static wg_tensor *phi(wg_tensor *x) {
    const int64_t n = wg_tensor_size(x, -1);
    wg_tensor *half = wg_mul_scalar(identity_like(x), 0.5);
    return wg_mul(x, wg_sub(wg_tri(wg_tensor_dtype(x), n, n, 0), half));
}

static int cholesky_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *l = call->outputs[0], *upper = wg__transposed(l);
    wg_tensor *left = phi(wg_matmul(upper, cotangents[0]));
    left = wg_solve_triangular(upper, left, true, false, false);
    wg_tensor *both = wg_solve_triangular(upper, wg__transposed(left), true, false, false);
    gradients[0] = wg__symmetric_part(wg__transposed(both));
    return wg__vjp_status();
}

static int cholesky_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *l = call->outputs[0];
    wg_tensor *left = wg__symmetric_part(tangents[0]);
    left = wg_solve_triangular(l, left, false, false, false);
    wg_tensor *both = wg_solve_triangular(l, wg__transposed(left), false, false, false);
    output_tangents[0] = wg_matmul(l, phi(wg__transposed(both)));
    return wg__vjp_status();
}

/* B B^T / n + 1 of a normal B. */
static wg_tensor *positive_definite(wg_tensor *b) {
    wg_tensor *product = wg_matmul(b, wg__transposed(b));
    return wg_add(wg_mul_scalar(product, 1 / (double)wg_tensor_size(b, -1)), identity_like(b));
}

static wg_tensor *sample_definite(wg_generator *generator, int ndim, const int64_t *shape) {
    return positive_definite(wg_randn(generator, WG_F64, ndim, shape));
}

static wg_tensor *large_definite(wg_generator *generator, int ndim, const int64_t *shape) {
    return positive_definite(wg__sample_large_matrices(generator, ndim, shape));
}

WG__SHAPES(cholesky, (sample_definite), "3 3", "2 2 2", "1 1")
WG__LARGE_BY(cholesky, int, (large_definite), "64 128 128", 0)

static double cubic_flops(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0];
    const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
    return (double)wg__spec_count(a) * (double)wg__smaller(m, n);
}

static const wg_op cholesky = {
    WG__OP("cholesky", 1,
           "The lower triangle L with L L^T = (A + A^T) / 2, for A (..., N, N). An error if that "
           "matrix is not positive definite."),
    .saves_outputs = 1,
    .differentiable = 1,
    .places_outputs = true,
    .infer = wg__infer_square,
    .forward = cholesky_forward,
    .vjp = cholesky_vjp,
    .jvp = cholesky_jvp,
    .sample = cholesky_sample,
    .bench = cholesky_bench,
    .flops = cubic_flops,
    .batch = wg_batch_aligned};

wg_tensor *wg_cholesky(wg_tensor *a, bool upper) {
    wg_tensor *l = wg__apply_wide_one(&cholesky, 1, &a, true, NULL);
    return upper ? wg__transposed(l) : l;
}

/* ---- qr: A = Q R with Q^T Q = 1 and an upper triangle R, for M >= N.
 * dQ = C - Q (Q^T C - W), dR = (Q^T C - W) R, with C = dA R^-1 and the skew matrix W that equals
 * Q^T C below the diagonal.
 * dA = (gQ + Q S) R^-T, with the lower triangle of M = R gR^T - gQ^T Q, mirrored, as S. ---- */

enum { Q, R };

static int qr_infer(wg_call *call) {
    const bool complete = *(const bool *)call->options; /* Q is square */
    const wg_spec *a = &call->input_specs[0];
    if (wg__check_matrices(call, false) < 0)
        return -1;
    const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
    if (m < n)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the op takes matrices of no fewer rows than columns; wg_qr takes any");
    wg__infer_matrix(call, Q, 2, m, complete ? m : n);
    wg__infer_matrix(call, R, 2, complete ? m : n, n);
    return 0;
}

static int qr_forward(wg_call *call) {
    wg_tensor *a = wg__column_major(call->inputs[0]);
    wg_tensor *q = wg__column_major_new(&call->output_specs[Q]);
    wg__lapack job = wg__lapack_job(call);
    if (!q)
        return -1;
    job.full = *(const bool *)call->options;
    job.u = wg__tensor_address(q);
    if (wg__lapack_run(&job, WG__QR, a) < 0)
        return -1;
    const wg_spec *r = &call->output_specs[R];
    call->outputs[Q] = q;
    call->outputs[R] = wg_triu(wg_narrow(a, -2, 0, r->shape[r->ndim - 2]), 0);
    return call->outputs[R] ? 0 : -1;
}

/* -1 with GRADIENT for a square Q of a tall A: its last columns are an arbitrary completion of the
 * basis. */
static int check_complete(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0];
    const bool complete = *(const bool *)call->options;
    if (!complete || a->shape[a->ndim - 2] == a->shape[a->ndim - 1])
        return 0;
    return wg__op_fail(
        call, WG_ERROR_GRADIENT,
        "a complete Q of more rows than columns is not unique and has no derivative; "
        "take the reduced one");
}

static int qr_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *q = call->outputs[Q], *r = call->outputs[R], *sum = cotangents[Q];
    if (check_complete(call) < 0)
        return -1;
    wg_tensor *m = cotangents[R] ? wg_matmul(r, wg__transposed(cotangents[R])) : NULL;
    if (sum)
        m = wg__plus(m, wg_neg(wg_matmul(wg__transposed(sum), q)));
    if (!m)
        return wg__vjp_status();
    wg_tensor *mirrored = wg_add(wg_tril(m, 0), wg__transposed(wg_tril(m, -1)));
    sum = wg__plus(sum, wg_matmul(q, mirrored));
    sum = wg_solve_triangular(r, wg__transposed(sum), true, false, false);
    gradients[0] = wg__transposed(sum);
    return wg__vjp_status();
}

static int qr_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *q = call->outputs[Q], *r = call->outputs[R];
    if (check_complete(call) < 0)
        return -1;
    wg_tensor *dt = wg__transposed(tangents[0]);
    wg_tensor *c = wg_solve_triangular(wg__transposed(r), dt, false, false, false);
    c = wg__transposed(c);
    wg_tensor *qc = wg_matmul(wg__transposed(q), c), *below = wg_tril(qc, -1);
    wg_tensor *upper = wg_sub(qc, wg_sub(below, wg__transposed(below)));
    output_tangents[Q] = wg_sub(c, wg_matmul(q, upper));
    output_tangents[R] = wg_matmul(upper, r);
    return wg__vjp_status();
}

WG__EXAMPLES(qr, bool, (wg__sample_matrices), {false, "4 3"}, {false, "2 3 2"})
WG__LARGE_BY(qr, bool, (wg__sample_large_matrices), "64 128 128", false)

static const wg_op qr = {
    WG__OP_OF("qr", 1, 1, 2,
              "Q (..., M, N) with orthonormal columns and the upper triangle R (..., N, N), with Q "
              "R = A (..., M, N), for M >= N, by Householder's reflections; or Q (..., M, M) and R "
              "(..., M, N), which have no derivative where M > N. Otherwise the derivative needs "
              "linearly independent columns of A."),
    .options_size = sizeof(bool), .saves_outputs = 3, .differentiable = 1,
    /* Q and R of linearly dependent columns have no derivative. */
    .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_ZERO | WG_AT_TIES},
    .places_outputs = true, WG__PRIMITIVE(qr), .flops = cubic_flops, .batch = wg_batch_aligned};

/* For a wide A = (A1 A2) with a square A1 = Q R1: R = (R1, Q^T A2). */
int wg_qr(wg_tensor *a, bool complete, wg_tensor **q, wg_tensor **r) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL}, *left = a;
    const bool wide = a && a->spec.ndim >= 2 && wg_tensor_size(a, -2) < wg_tensor_size(a, -1);
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wide) {
        a = wg__as_float(a);
        left = a ? wg_narrow(a, -1, 0, wg_tensor_size(a, -2)) : NULL;
    }
    int status = wg__apply_wide(&qr, 1, &left, true, &(bool){complete && !wide}, outputs);
    if (wide && status == 0) {
        const int64_t m = wg_tensor_size(a, -2), n = wg_tensor_size(a, -1);
        wg_tensor *right = wg_narrow(a, -1, m, n - m);
        right = wg_matmul(wg__transposed(outputs[Q]), right);
        outputs[R] = wg_cat(2, (wg_tensor *[]){outputs[R], right}, -1);
        status = outputs[R] ? 0 : -1;
    }
    if (q)
        *q = status < 0 ? NULL : wg_scope_escape(outputs[Q]);
    if (r)
        *r = status < 0 ? NULL : wg_scope_escape(outputs[R]);
    wg_scope_end(&scope, NULL);
    return status;
}

/* ---- eigh: A = V diag(w) V^T.   With P = V^T dA V and F_ij = 1 / (w_j - w_i), 0 where i = j:
 * dw = the diagonal of P, dV = V (F o P),
 * dA = the symmetric part of V (diag(gw) + F o V^T gV) V^T. ---- */

enum { W, V };

static int eigh_infer(wg_call *call) {
    if (wg__check_matrices(call, true) < 0)
        return -1;
    const wg_spec *a = &call->input_specs[0];
    const int64_t n = a->shape[a->ndim - 1];
    wg__infer_matrix(call, W, 1, n, 0);
    wg__infer_matrix(call, V, 2, n, n);
    return 0;
}

static int eigh_forward(wg_call *call) {
    wg_tensor *v = wg__column_major(wg__symmetric_part(call->inputs[0]));
    wg_tensor *w = wg__tensor_new(&call->output_specs[W]);
    wg__lapack job = wg__lapack_job(call);
    if (!v || !w)
        return -1;
    job.s = wg__tensor_address(w);
    call->outputs[W] = w;
    call->outputs[V] = v;
    return iterate(call, &job, WG__EIGH, v);
}

/* F o x: element (i, j) of x divided by values_j - values_i; 0 on the diagonal. */
static wg_tensor *over_differences(wg_tensor *x, wg_tensor *values) {
    wg_tensor *off = x ? wg_mul(x, wg_affine(identity_like(x), -1, 1)) : NULL;
    wg_tensor *differences = wg_sub(wg_unsqueeze(values, -2), wg_unsqueeze(values, -1));
    return wg_div(off, wg_add(differences, identity_like(values)));
}

static int eigh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *w = call->outputs[W], *v = call->outputs[V], *inner = NULL;
    wg_tensor *transposed = wg__transposed(v);
    if (cotangents[V]) {
        if (check_values(call, w, "eigenvalue") < 0)
            return -1;
        inner = over_differences(wg_matmul(transposed, cotangents[V]), w);
    }
    if (cotangents[W])
        inner = wg__plus(inner, wg_diag_embed(cotangents[W], 0, -2, -1));
    gradients[0] = wg__symmetric_part(wg_matmul(wg_matmul(v, inner), transposed));
    return wg__vjp_status();
}

static int eigh_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *w = call->outputs[W], *v = call->outputs[V];
    if (check_values(call, w, "eigenvalue") < 0)
        return -1;
    wg_tensor *p = wg_matmul(wg_matmul(wg__transposed(v), wg__symmetric_part(tangents[0])), v);
    output_tangents[W] = wg_diagonal(p, 0, -2, -1);
    output_tangents[V] = wg_matmul(v, over_differences(p, w));
    return wg__vjp_status();
}

/* Symmetric matrices with 2 i added to element i of the diagonal, to separate the eigenvalues. */
static wg_tensor *with_distinct_eigenvalues(wg_generator *generator, int ndim,
                                            const int64_t *shape) {
    wg_tensor *x = wg__symmetric_part(wg_randn(generator, WG_F64, ndim, shape));
    wg_tensor *diagonal = wg_mul_scalar(wg_arange(WG_F64, 0, (double)shape[ndim - 1], 1), 2);
    return wg_add(x, wg_diag_embed(diagonal, 0, -2, -1));
}

WG__SHAPES(eigh, (with_distinct_eigenvalues), "3 3", "2 2 2", "1 1")
WG__LARGE_BY(eigh, int, (large_definite), "64 128 128", 0)

static const wg_op eigh = {
    WG__OP_OF("eigh", 1, 1, 2,
              "The eigenvalues w (..., N), ascending, and the eigenvectors, columns of V (..., N, "
              "N), of the symmetric matrices (A + A^T) / 2 for an operand A. Where eigenvalues are "
              "equal, V has no derivative: an error."),
    .saves_outputs = 3, .differentiable = 1,
    /* Vectors of equal eigenvalues are not unique. Signs of vectors are arbitrary. */
    .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_ZERO | WG_AT_TIES | WG_AT_LARGE,
                                            .f32_approximates = true},
    .places_outputs = true, WG__PRIMITIVE(eigh), .flops = cubic_flops, .batch = wg_batch_aligned};

int wg_eigh(wg_tensor *a, wg_tensor **eigenvalues, wg_tensor **eigenvectors) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    return wg__give(wg__apply_wide(&eigh, 1, &a, true, NULL, outputs), outputs, eigenvalues,
                    eigenvectors);
}

wg_tensor *wg_eigvalsh(wg_tensor *a) {
    wg_tensor *values = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_eigh(a, &values, NULL);
    return wg_scope_end(&scope, values);
}

/* ---- svd: A = U diag(S) V^T.   With P = U^T dA V and F_ij = 1 / (s_j^2 - s_i^2), 0 where i = j:
 *
 *     dS = the diagonal of P
 *     dU = U (F o (P S + S P^T)) + (1 - U U^T) dA V / S
 *     dV = V (F o (S P + P^T S)) + (1 - V V^T) dA^T U / S
 *     dA = U [(F o skew(U^T gU)) S + S (F o skew(V^T gV)) + diag(gS)] V^T
 *          + (1 - U U^T) gU / S V^T + U / S gV^T (1 - V V^T),   skew(X) = X - X^T
 *
 * (Townsend 2016). 1 - U U^T is 0 unless M > N, and 1 - V V^T is 0 unless M < N. ---- */

enum { U, S, VT };

static int svd_infer(wg_call *call) {
    const bool full_matrices = *(const bool *)call->options; /* U and V are square */
    const wg_spec *a = &call->input_specs[0];
    if (wg__check_matrices(call, false) < 0)
        return -1;
    const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1], k = wg__smaller(m, n);
    wg__infer_matrix(call, U, 2, m, full_matrices ? m : k);
    wg__infer_matrix(call, S, 1, k, 0);
    wg__infer_matrix(call, VT, 2, full_matrices ? n : k, n);
    return 0;
}

static int svd_forward(wg_call *call) {
    wg_tensor *a = wg__column_major(call->inputs[0]);
    wg_tensor *u = wg__column_major_new(&call->output_specs[U]);
    wg_tensor *s = wg__tensor_new(&call->output_specs[S]);
    wg_tensor *vt = wg__column_major_new(&call->output_specs[VT]);
    wg__lapack job = wg__lapack_job(call);
    if (!a || !u || !s || !vt)
        return -1;
    job.full = *(const bool *)call->options;
    job.u = wg__tensor_address(u);
    job.s = wg__tensor_address(s);
    job.vt = wg__tensor_address(vt);
    /* For an empty A, LAPACK does not write U and V^T: set them to the identity. */
    for (int j = 0; (job.m == 0 || job.n == 0) && j < 2; j++) {
        wg_tensor *square = j ? vt : u;
        wg_tensor *one = wg_eye(job.dtype, wg_tensor_size(square, -2), wg_tensor_size(square, -1));
        if (!one || wg_copy_(square, one) < 0)
            return -1;
    }
    call->outputs[U] = u;
    call->outputs[S] = s;
    call->outputs[VT] = vt;
    return iterate(call, &job, WG__SVD, a);
}

/* U or V^T without the vectors that complete a basis. If `differentiated`, NULL with GRADIENT if
 * there are any, for they are not unique. */
static wg_tensor *thin(const wg_call *call, wg_tensor *x, int axis, bool differentiated) {
    const wg_spec *s = &call->output_specs[S];
    const int64_t k = s->shape[s->ndim - 1];
    if (!x || wg_tensor_size(x, axis) == k)
        return x;
    if (!differentiated)
        return wg_narrow(x, axis, 0, k);
    wg__op_fail(call, WG_ERROR_GRADIENT,
                "the vectors that complete U or V with full_matrices are not unique and have no "
                "derivative; leave out full_matrices");
    return NULL;
}

/* (1 - U U^T) x: x without its projection on the columns of U. */
static wg_tensor *outside(wg_tensor *u, wg_tensor *x) {
    return wg_sub(x, wg_matmul(u, wg_matmul(wg__transposed(u), x)));
}

/* skew(x) / (s_j^2 - s_i^2) */
static wg_tensor *skew_over_differences(wg_tensor *x, wg_tensor *s) {
    return over_differences(wg_sub(x, wg__transposed(x)), wg_square(s));
}

static int svd_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *a = &call->input_specs[0];
    const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
    wg_tensor *u = thin(call, call->outputs[U], -1, cotangents[U] != NULL);
    wg_tensor *vt = thin(call, call->outputs[VT], -2, cotangents[VT] != NULL);
    wg_tensor *s = call->outputs[S], *v = wg__transposed(vt), *inner = NULL, *rest = NULL;
    wg_tensor *gu = cotangents[U], *gv = cotangents[VT] ? wg__transposed(cotangents[VT]) : NULL;
    if (!u || !vt || ((gu || gv) && check_values(call, s, "singular value") < 0))
        return -1;
    if (((gu && m > n) || (gv && n > m)) && check_values(call, s, NULL) < 0)
        return -1;
    if (!gu && !gv && cotangents[S]) { /* dA = U diag(gS) V^T */
        gradients[0] = wg_matmul(wg_mul(u, wg_unsqueeze(cotangents[S], -2)), vt);
        return wg__vjp_status();
    }
    wg_tensor *of_columns = wg_unsqueeze(s, -2), *of_rows = wg_unsqueeze(s, -1);
    if (gu)
        inner = wg_mul(skew_over_differences(wg_matmul(wg__transposed(u), gu), s), of_columns);
    if (gv)
        inner = wg__plus(inner, wg_mul(of_rows, skew_over_differences(wg_matmul(vt, gv), s)));
    if (cotangents[S])
        inner = wg__plus(inner, wg_diag_embed(cotangents[S], 0, -2, -1));
    if (gu && m > n)
        rest = wg_matmul(wg_div(outside(u, gu), of_columns), vt);
    if (gv && n > m)
        rest = wg_matmul(u, wg__transposed(wg_div(outside(v, gv), of_columns)));
    gradients[0] = wg__plus(wg_matmul(wg_matmul(u, inner), vt), rest);
    return wg__vjp_status();
}

static int svd_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const wg_spec *a = &call->input_specs[0];
    const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
    wg_tensor *u = thin(call, call->outputs[U], -1, true), *s = call->outputs[S];
    wg_tensor *vt = thin(call, call->outputs[VT], -2, true), *v = wg__transposed(vt);
    if (!u || !vt || check_values(call, s, "singular value") < 0 ||
        (m != n && check_values(call, s, NULL) < 0))
        return -1;
    wg_tensor *of_columns = wg_unsqueeze(s, -2), *of_rows = wg_unsqueeze(s, -1);
    wg_tensor *of_u = wg_matmul(wg__transposed(u), tangents[0]); /* U^T dA */
    wg_tensor *of_v = wg_matmul(tangents[0], v);                 /* dA V */
    wg_tensor *p = wg_matmul(of_u, v), *squares = wg_square(s);
    wg_tensor *columns = wg_mul(p, of_columns), *rows = wg_mul(of_rows, p);
    wg_tensor *du =
        wg_matmul(u, over_differences(wg_add(columns, wg__transposed(columns)), squares));
    wg_tensor *dv = wg_matmul(v, over_differences(wg_add(rows, wg__transposed(rows)), squares));
    if (m > n)
        du = wg_add(du, wg_div(wg_sub(of_v, wg_matmul(u, p)), of_columns));
    if (n > m)
        dv = wg_add(dv, wg_div(outside(v, wg__transposed(of_u)), of_columns));
    output_tangents[U] = du;
    output_tangents[S] = wg_diagonal(p, 0, -2, -1);
    output_tangents[VT] = wg__transposed(dv);
    return wg__vjp_status();
}

WG__EXAMPLES(svd, bool, (wg__sample_normal), {false, "3 3"}, {false, "4 2"}, {false, "2 2 3"})
WG__LARGE_BY(svd, bool, (wg__sample_large_matrices), "64 128 128", false)

static const wg_op svd = {
    WG__OP_OF(
        "svd", 1, 1, 3,
        "U (..., M, K), S (..., K) in descending order and V^T (..., K, N) with U diag(S) V^T = "
        "A and K = min(M, N); with full_matrices U (..., M, M) and V^T (..., N, N). Where "
        "singular values are equal, or 0 and M != N, U and V have no derivative: an error."),
    .options_size = sizeof(bool), .saves_outputs = 7, .differentiable = 1,
    /* Vectors of equal singular values are not unique. Signs of vectors are arbitrary. */
    .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_ZERO | WG_AT_TIES | WG_AT_LARGE,
                                            .f32_approximates = true},
    .places_outputs = true, WG__PRIMITIVE(svd), .flops = cubic_flops, .batch = wg_batch_aligned};

int wg_svd(wg_tensor *a, bool full_matrices, wg_tensor **u, wg_tensor **s, wg_tensor **vt) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    const int status = wg__apply_wide(&svd, 1, &a, true, &full_matrices, outputs);
    if (vt)
        *vt = outputs[VT];
    return wg__give(status, outputs, u, s);
}

/* ---- svdvals: S alone. Derivatives compute the vectors.   dA = U diag(gS) V^T. ---- */

static int svdvals_infer(wg_call *call) {
    const wg_spec *a = &call->input_specs[0];
    if (wg__check_matrices(call, false) < 0)
        return -1;
    wg__infer_matrix(call, 0, 1, wg__smaller(a->shape[a->ndim - 2], a->shape[a->ndim - 1]), 0);
    return 0;
}

static int svdvals_forward(wg_call *call) {
    wg_tensor *a = wg__column_major(call->inputs[0]);
    wg__lapack job = wg__lapack_job(call);
    if (!a)
        return -1;
    job.s = wg__tensor_address(call->outputs[0]);
    return iterate(call, &job, WG__SVD, a);
}

static int svdvals_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *u, *vt;
    if (wg_svd(call->inputs[0], false, &u, NULL, &vt) < 0)
        return -1;
    gradients[0] = wg_matmul(wg_mul(u, wg_unsqueeze(cotangents[0], -2)), vt);
    return wg__vjp_status();
}

static int svdvals_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *u, *vt;
    if (wg_svd(call->inputs[0], false, &u, NULL, &vt) < 0)
        return -1;
    wg_tensor *p = wg_matmul(wg_matmul(wg__transposed(u), tangents[0]), wg__transposed(vt));
    output_tangents[0] = wg_diagonal(p, 0, -2, -1);
    return wg__vjp_status();
}

static const wg_op svdvals = {
    WG__OP("svdvals", 1,
           "The singular values S (..., min(M, N)), in descending order, of A (..., M, N)."),
    .options_size = sizeof(bool), .saves_inputs = 1, .differentiable = 1,
    /* Singular values that are equal, or 0, have kinks. */
    .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_ZERO | WG_AT_TIES | WG_AT_LARGE},
    .infer = svdvals_infer, .forward = svdvals_forward, .vjp = svdvals_vjp, .jvp = svdvals_jvp,
    .sample = svd_sample, .flops = cubic_flops, .batch = wg_batch_aligned};

/* Runs svd if the call is recorded, since backward needs the vectors. */
wg_tensor *wg_svdvals(wg_tensor *a) {
    wg_tensor *values = NULL;
    if (!a || !wg_requires_grad(a) || !wg_grad_enabled())
        return wg__apply_wide_one(&svdvals, 1, &a, true, &(bool){false});
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_svd(a, false, NULL, &values, NULL);
    return wg_scope_end(&scope, values);
}

const wg__op_table wg__ops_decompose = WG__OP_TABLE(&cholesky, &qr, &eigh, &svd, &svdvals);
