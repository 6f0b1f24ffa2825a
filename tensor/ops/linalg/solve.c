/* Systems of equations: solve, solve_triangular, inv, and the determinants det and slogdet. */
#include "tensor/ops/linalg/matrices.h"

#include <math.h>
#include <string.h>

/* ---- Two operands: A (..., N, N) and B (..., N, K) with the same leading axes ---- */

static int check_system(wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    if (wg__check_matrices(call, true) < 0 || wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    bool same = a->ndim == b->ndim;
    for (int axis = 0; same && axis < a->ndim - 1; axis++)
        same = a->shape[axis] == b->shape[axis];
    if (!same)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted A (..., N, N) and B (..., N, K), or a vector (N) for B; leading "
                           "axes broadcast");
    if (b->shape[b->ndim - 1] > INT32_MAX)
        return wg__op_fail(call, WG_ERROR_SHAPE, "LAPACK takes up to %d columns", INT32_MAX);
    call->output_specs[0] = *b;
    return 0;
}

/* Broadcasts the leading axes of A and B to each other. Operands that do not broadcast stay as they
 * are, and infer reports them. False if an operand becomes NULL. */
static bool expand_batches(wg_tensor **a, wg_tensor **b) {
    wg_spec of_a = (*a)->spec, of_b = (*b)->spec, batch;
    if (of_a.ndim < 2 || of_b.ndim < 2)
        return true;
    of_a.ndim -= 2;
    of_b.ndim -= 2;
    if (!wg__broadcast(&of_a, &of_b, &batch) || batch.ndim + 2 > WG_MAX_DIMS)
        return true;
    wg_tensor **operands[] = {a, b};
    for (int i = 0; i < 2; i++) {
        const wg_spec *spec = &(*operands[i])->spec;
        batch.shape[batch.ndim] = spec->shape[spec->ndim - 2];
        batch.shape[batch.ndim + 1] = spec->shape[spec->ndim - 1];
        *operands[i] = wg_expand(*operands[i], batch.ndim + 2, batch.shape);
        if (!*operands[i])
            return false;
    }
    return true;
}

/* Runs an op of A and B. With `from_right` it solves X A = B, by A^T X^T = B^T. As in PyTorch, B is
 * a batch of vectors if B is of rank 1, or has the shape of A without the last axis. */
static wg_tensor *apply_system(const wg_op *op, wg_tensor *a, wg_tensor *b, bool from_right,
                               const void *options) {
    wg_tensor *x = NULL;
    if (!a || !b)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const int ndim = b->spec.ndim;
    const bool vectors = ndim == 1 || (ndim == a->spec.ndim - 1 &&
                                       memcmp(a->spec.shape, b->spec.shape,
                                              (size_t)ndim * sizeof *b->spec.shape) == 0);
    if (vectors)
        b = wg_unsqueeze(b, -1);
    else if (from_right && b->spec.ndim >= 2)
        b = wg__transposed(b);
    if (from_right && a->spec.ndim >= 2)
        a = wg__transposed(a);
    if (a && b && expand_batches(&a, &b))
        x = wg__apply_wide_one(op, 2, (wg_tensor *[]){a, b}, true, options);
    if (vectors)
        x = wg_squeeze(x, -1);
    else if (from_right)
        x = wg__transposed(x);
    return wg_scope_end(&scope, x);
}

typedef struct triangular_options {
    bool upper, unit; /* unit: the diagonal is taken as ones, and not read */
} triangular_options;

WG__EXAMPLES(system, triangular_options, (wg__sample_matrices, wg__sample_normal),
             {{true, false}, "3 3, 3 2"}, {{false, true}, "2 2 2, 2 2 3"},
             {{false, false}, "1 1, 1 1"})
WG__LARGE_BY(system, triangular_options, (wg__sample_large_matrices, wg__sample_normal_f32),
             "64 128 128, 64 128 128", true, false)

/* ---- solve: A X = B.   dB = A^-T g, dA = -dB X^T; in forward mode A^-1 (dB - dA X).
 * ---- solve_triangular: T X = B with one triangle T of A; dA = the triangle of -dB X^T. ---- */

enum { A, B };

/* solve_triangular has options, and solve has none. */
static bool is_triangular(const wg_call *call) {
    return call->op->options_size > 0;
}

static int system_forward(wg_call *call) {
    const bool triangular = is_triangular(call);
    wg_tensor *x = wg__column_major(call->inputs[B]);
    wg__lapack job = wg__lapack_job(call);
    if (!x)
        return -1;
    job.k = x->spec.shape[x->spec.ndim - 1];
    job.b = wg__tensor_address(x);
    if (triangular) {
        const triangular_options *options = call->options;
        job.upper = options->upper;
        job.unit = options->unit;
    }
    if (wg__lapack_run(&job, triangular ? WG__TRIANGULAR : WG__SOLVE,
                       wg__column_major(call->inputs[A])) < 0)
        return -1;
    call->outputs[0] = x;
    if (job.info != 0 && !triangular)
        return wg__fail_singular(call, &job);
    char text[64];
    return job.info == 0 ? 0
                         : wg__op_fail(call, WG_ERROR_ARGUMENT,
                                       "%s is singular: element %lld of its diagonal is 0",
                                       wg__matrix_text(text, sizeof text, call, job.matrix),
                                       (long long)job.info - 1);
}

/* A^-1 b or T^-1 b, or with A^T. */
static wg_tensor *solved(const wg_call *call, bool transposed, wg_tensor *b) {
    const triangular_options *options = call->options;
    wg_tensor *a = transposed ? wg__transposed(call->inputs[A]) : call->inputs[A];
    return is_triangular(call)
               ? wg_solve_triangular(a, b, options->upper != transposed, options->unit, false)
               : wg_solve(a, b, false);
}

/* x, or the triangle of x that the op reads of A. */
static wg_tensor *triangle_of(const wg_call *call, wg_tensor *x) {
    const triangular_options *options = call->options;
    return !is_triangular(call) ? x
           : options->upper     ? wg_triu(x, options->unit)
                                : wg_tril(x, -(int64_t)options->unit);
}

static int system_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = solved(call, true, cotangents[0]);
    if (wg__wants(call, A))
        gradients[A] = triangle_of(call, wg_neg(wg_matmul(g, wg__transposed(call->outputs[0]))));
    if (wg__wants(call, B))
        gradients[B] = g;
    return wg__vjp_status();
}

static int system_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *b = tangents[B];
    if (tangents[A]) {
        wg_tensor *product = wg_matmul(triangle_of(call, tangents[A]), call->outputs[0]);
        b = b ? wg_sub(b, product) : wg_neg(product);
    }
    output_tangents[0] = solved(call, false, b);
    return wg__vjp_status();
}

static double system_flops(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    const double n = (double)a->shape[a->ndim - 1], k = (double)b->shape[b->ndim - 1];
    const double count = (double)wg__spec_count(a);
    if (is_triangular(call))
        return count * k;
    return n > 0 ? count * (2 * n / 3 + 2 * k) + 1 : 1;
}

#define SYSTEM(NAME, DOC)                                                                          \
    WG__OP(#NAME, 2, DOC), .saves_inputs = 1 << A, .saves_outputs = 1, .differentiable = 3,        \
                           .places_outputs = true, .infer = check_system,                          \
                           .forward = system_forward, .vjp = system_vjp, .jvp = system_jvp,        \
                           .sample = system_sample, .bench = system_bench, .flops = system_flops,  \
                           .batch = wg__batch_leading

static const wg_op solve = {SYSTEM(
    solve, "X with A X = B, of square matrices A (..., N, N) and B (..., N, K), by LU with partial "
           "pivoting. An error if A is singular.")};

wg_tensor *wg_solve(wg_tensor *a, wg_tensor *b, bool from_right) {
    return apply_system(&solve, a, b, from_right, NULL);
}

static const wg_op solve_triangular = {
    SYSTEM(solve_triangular,
           "X with T X = B, where T is the upper or lower triangle of A (..., N, N), its diagonal "
           "read or taken as ones, and B is (..., N, K). An error for a 0 on the diagonal."),
    .options_size = sizeof(triangular_options)};

wg_tensor *wg_solve_triangular(wg_tensor *a, wg_tensor *b, bool upper, bool unit, bool from_right) {
    return apply_system(&solve_triangular, a, b, from_right,
                        &(triangular_options){upper != from_right, unit});
}

/* ---- inv: Y = A^-1.   dA = -Y^T g Y^T, dY = -Y dA Y. ---- */

static int inv_forward(wg_call *call) {
    wg__lapack job = wg__lapack_job(call);
    wg_tensor *y = wg__column_major(call->inputs[0]);
    if (wg__lapack_run(&job, WG__INVERSE, y) < 0)
        return -1;
    return job.info != 0 ? wg__fail_singular(call, &job) : wg__set_output(call, y);
}

static int inv_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *y = wg__transposed(call->outputs[0]);
    gradients[0] = wg_neg(wg_matmul(wg_matmul(y, cotangents[0]), y));
    return wg__vjp_status();
}

static int inv_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *y = call->outputs[0];
    output_tangents[0] = wg_neg(wg_matmul(wg_matmul(y, tangents[0]), y));
    return wg__vjp_status();
}

WG__SHAPES(square, (wg__sample_matrices), "3 3", "2 2 2", "1 1")
WG__LARGE_BY(square, int, (wg__sample_large_matrices), "64 128 128", 0)

static double inv_flops(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0];
    return 2 * (double)wg__spec_count(a) * (double)a->shape[a->ndim - 1];
}

static const wg_op inv = {
    WG__OP("inv", 1,
           "A^-1 of square matrices (..., N, N), by LU with partial pivoting. An error if A is "
           "singular."),
    .saves_outputs = 1,
    .differentiable = 1,
    .places_outputs = true,
    .infer = wg__infer_square,
    .forward = inv_forward,
    .vjp = inv_vjp,
    .jvp = inv_jvp,
    .sample = square_sample,
    .bench = square_bench,
    .flops = inv_flops,
    .batch = wg_batch_aligned};

wg_tensor *wg_inv(wg_tensor *a) {
    return wg__apply_wide_one(&inv, 1, &a, true, NULL);
}

/* ---- det: y = det A.   dA = g y A^-T, dy = y trace(A^-1 dA).
 * ---- slogdet: the sign of det A and log |det A|.   dA = g A^-T, dy = trace(A^-1 dA).
 * Both multiply the pivots of LU; each exchange of rows changes the sign. ---- */

static int det_infer(wg_call *call) {
    if (wg__check_matrices(call, true) < 0)
        return -1;
    for (int j = 0; j < call->output_count; j++)
        wg__infer_matrix(call, j, 0, 0, 0);
    return 0;
}

static int det_forward(wg_call *call) {
    wg__lapack job = wg__lapack_job(call);
    wg_tensor *a = wg__column_major(call->inputs[0]);
    const size_t size = wg_dtype_size(job.dtype);
    if (wg__lapack_run(&job, WG__LU, a) < 0)
        return -1;
    for (int64_t matrix = 0; matrix < job.count; matrix++) {
        double sign = 1, logarithm = 0, product = 1;
        for (int64_t i = 0; i < job.n; i++) {
            const double pivot = wg__element(
                job.dtype,
                (const char *)job.a + (size_t)(matrix * job.n * job.n + i * (job.n + 1)) * size);
            const double exchange = job.pivots[matrix * job.n + i] != i + 1 ? -1 : 1;
            product *= exchange * pivot;
            sign *= pivot < 0 ? -exchange : pivot > 0 ? exchange : pivot; /* 0 of 0, NaN of NaN */
            logarithm += log(fabs(pivot));
        }
        const double values[] = {call->output_count == 2 ? sign : product, logarithm};
        for (int j = 0; j < call->output_count; j++)
            wg__set_element(job.dtype,
                            (char *)wg__tensor_address(call->outputs[j]) + (size_t)matrix * size,
                            values[j]);
    }
    return 0;
}

/* A^-1, for derivatives; NULL with GRADIENT if the determinant or its sign, output 0, is 0. */
static wg_tensor *inverse_for(wg_call *call) {
    wg_tensor *y = wg_contiguous(wg__all_values(call->outputs[0]));
    const int64_t count = y ? wg_tensor_count(y) : 0;
    for (int64_t i = 0; i < count; i++) {
        if (wg__value_at(y, i) == 0) {
            char text[64];
            wg__op_fail(call, WG_ERROR_GRADIENT,
                        "%s is singular; the derivative is computed from the inverse, which it "
                        "lacks",
                        wg__matrix_text(text, sizeof text, call, i));
            return NULL;
        }
    }
    return wg_inv(call->inputs[0]);
}

static int det_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[call->output_count - 1]; /* the sign of slogdet is constant */
    if (!g)
        return 0;
    if (call->output_count == 1)
        g = wg_mul(g, call->outputs[0]);
    gradients[0] = wg_mul(wg__as_scales(g), wg__transposed(inverse_for(call)));
    return wg__vjp_status();
}

static int det_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *product = wg_mul(wg__transposed(inverse_for(call)), tangents[0]);
    wg_tensor *trace = wg_sum(product, 2, (int64_t[]){-2, -1}, false);
    output_tangents[call->output_count - 1] =
        call->output_count == 1 ? wg_mul(call->outputs[0], trace) : trace;
    return wg__vjp_status();
}

static double det_flops(const wg_call *call) {
    return inv_flops(call) / 3;
}

#define DETERMINANT                                                                                \
    .saves_inputs = 1, .saves_outputs = 1, .differentiable = 1, .infer = det_infer,                \
    .forward = det_forward, .vjp = det_vjp, .jvp = det_jvp, .sample = square_sample,               \
    .bench = square_bench, .flops = det_flops, .batch = wg_batch_aligned

static const wg_op det = {
    WG__OP("det", 1,
           "The determinant of square matrices (..., N, N), by LU. Its derivative is computed from "
           "the inverse: an error if A is singular."),
    /* The derivative is computed from the inverse. */
    .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_ZERO | WG_AT_TIES}, DETERMINANT};

wg_tensor *wg_det(wg_tensor *a) {
    return wg__apply_wide_one(&det, 1, &a, true, NULL);
}

static const wg_op slogdet = {
    WG__OP_OF("slogdet", 1, 1, 2,
              "The sign of det A and log |det A|, of square matrices (..., N, N), by LU: 0 and "
              "-inf of a singular one. The sign has no gradient; the gradient of the logarithm is "
              "computed from the inverse: an error if A is singular."),
    DETERMINANT};

int wg_slogdet(wg_tensor *a, wg_tensor **sign, wg_tensor **logabsdet) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    return wg__give(wg__apply_wide(&slogdet, 1, &a, true, NULL, outputs), outputs, sign, logabsdet);
}

const wg__op_table wg__ops_solve = WG__OP_TABLE(&solve, &solve_triangular, &inv, &det, &slogdet);
