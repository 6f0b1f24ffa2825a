/* Systems of equations: solve, solve_triangular, inv, and the determinants det and slogdet. */
#include "tensor/ops/linalg/matrices.h"
#include "tensor/ops/registry.h"

#include <math.h>

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

static double system_flops(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    const double n = (double)a->shape[a->ndim - 1], k = (double)b->shape[b->ndim - 1];
    return n > 0 ? (double)wg__spec_count(a) * (2 * n / 3 + 2 * k) + 1 : 1;
}

/* PyTorch's rule: B is a batch of vectors if it is of rank 1, or has the shape of A without its
 * last axis. */
static bool is_vectors(const wg_spec *a, const wg_spec *b) {
    if (b->ndim == 1)
        return true;
    bool same = b->ndim == a->ndim - 1;
    for (int axis = 0; same && axis < b->ndim; axis++)
        same = a->shape[axis] == b->shape[axis];
    return same;
}

/* Expands the leading axes of both to those that they broadcast to; leaves operands that do not
 * broadcast as they are, for infer to refuse. False if one is or becomes NULL. */
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

/* Runs an op of A and B. With `from_right` it solves X A = B, by A^T X^T = B^T. */
static wg_tensor *apply_system(const wg_op *op, wg_tensor *a, wg_tensor *b, bool from_right,
                               const void *options) {
    wg_tensor *operands[] = {a, b}, *x = NULL;
    if (!a || !b)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote_all(2, operands)) {
        const wg_dtype dtype = operands[0]->spec.dtype;
        const bool vectors = is_vectors(&a->spec, &b->spec);
        a = wg__widen(wg__as_float(operands[0]));
        b = wg__widen(wg__as_float(operands[1]));
        if (vectors)
            b = wg_unsqueeze(b, -1);
        else if (from_right && b && b->spec.ndim >= 2)
            b = wg__transposed(b);
        if (from_right && a && a->spec.ndim >= 2)
            a = wg__transposed(a);
        if (a && b && expand_batches(&a, &b))
            x = wg_apply_one(op, 2, (wg_tensor *[]){a, b}, options);
        if (vectors)
            x = wg_squeeze(x, -1);
        else if (from_right)
            x = wg__transposed(x);
        x = wg__narrow(x, dtype);
    }
    return wg_scope_end(&scope, x);
}

static int system_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const struct {
        int ndim;
        int64_t a[4], b[4];
    } cases[] = {{2, {3, 3}, {3, 2}}, {3, {2, 2, 2}, {2, 2, 3}}, {2, {1, 1}, {1, 1}}};
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    sample->inputs[0] = wg__sample_matrices(generator, cases[index].ndim, cases[index].a);
    sample->inputs[1] = wg__sample_normal(generator, cases[index].ndim, cases[index].b);
    return wg__sample_status(sample, 2);
}

static int system_bench(wg_generator *generator, wg_sample *sample) {
    sample->inputs[0] = wg__bench_matrices(generator);
    sample->inputs[1] = wg_randn(generator, WG_F32, 3, (int64_t[]){64, 128, 128});
    return wg__sample_status(sample, 2);
}

/* ---- solve: A X = B.   dB = A^-T g, dA = -dB X^T; in forward mode A^-1 (dB - dA X). ---- */

enum { A, B };

static int solve_forward(wg_call *call) {
    wg_tensor *lu = wg__column_major(call->inputs[A]), *x = wg__column_major(call->inputs[B]);
    wg__lapack job = wg__lapack_job(call);
    wg_tensor *pivots = wg_empty(WG_I32, 1, (int64_t[]){job.count * job.n});
    if (!lu || !x || !pivots)
        return -1;
    job.k = x->spec.shape[x->spec.ndim - 1];
    job.a = wg__tensor_address(lu);
    job.b = wg__tensor_address(x);
    job.pivots = wg__tensor_address(pivots);
    if (wg__lapack_solve(&job) < 0)
        return -1;
    call->outputs[0] = x;
    return job.info != 0 ? wg__fail_singular(call, &job) : 0;
}

static int solve_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = wg_solve(wg__transposed(call->inputs[A]), cotangents[0], false);
    if (wg__wants(call, A))
        gradients[A] = wg_neg(wg_matmul(g, wg__transposed(call->outputs[0])));
    if (wg__wants(call, B))
        gradients[B] = g;
    return wg__vjp_status();
}

/* b, less the product if there is one; b may be NULL for 0. */
static wg_tensor *less(wg_tensor *b, wg_tensor *product) {
    return !product ? b : !b ? wg_neg(product) : wg_sub(b, product);
}

static int solve_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *product = tangents[A] ? wg_matmul(tangents[A], call->outputs[0]) : NULL;
    output_tangents[0] = wg_solve(call->inputs[A], less(tangents[B], product), false);
    return wg__vjp_status();
}

static const wg_op solve = {
    WG__OP("solve", 2,
           "X with A X = B, of square matrices A (..., N, N) and B (..., N, K), by LU with partial "
           "pivoting. An error if A is singular."),
    .saves_inputs = 1 << A,
    .saves_outputs = 1,
    .differentiable = 3,
    .places_outputs = true,
    .infer = check_system,
    .forward = solve_forward,
    .vjp = solve_vjp,
    .jvp = solve_jvp,
    .sample = system_sample,
    .bench = system_bench,
    .flops = system_flops,
    .batch = wg__batch_leading};

wg_tensor *wg_solve(wg_tensor *a, wg_tensor *b, bool from_right) {
    return apply_system(&solve, a, b, from_right, NULL);
}

/* ---- solve_triangular: T X = B, where T is one triangle of A.   dB = T^-T g, dA = that triangle
 * of -dB X^T; in forward mode T^-1 (dB - dT X). ---- */

typedef struct triangular_options {
    bool upper, unit; /* unit: the diagonal is taken as ones, and not read */
} triangular_options;

static int triangular_forward(wg_call *call) {
    const triangular_options *options = call->options;
    wg_tensor *a = wg__column_major(call->inputs[A]), *x = wg__column_major(call->inputs[B]);
    wg__lapack job = wg__lapack_job(call);
    if (!a || !x)
        return -1;
    job.k = x->spec.shape[x->spec.ndim - 1];
    job.upper = options->upper;
    job.unit = options->unit;
    job.a = wg__tensor_address(a);
    job.b = wg__tensor_address(x);
    if (wg__lapack_solve_triangular(&job) < 0)
        return -1;
    call->outputs[0] = x;
    char text[64];
    return job.info == 0 ? 0
                         : wg__op_fail(call, WG_ERROR_ARGUMENT,
                                       "%s is singular: element %lld of its diagonal is 0",
                                       wg__matrix_text(text, sizeof text, call, job.matrix),
                                       (long long)job.info - 1);
}

/* The triangle of x that is read. */
static wg_tensor *triangle_of(wg_tensor *x, const triangular_options *options) {
    return options->upper ? wg_triu(x, options->unit) : wg_tril(x, -(int64_t)options->unit);
}

static int triangular_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const triangular_options *options = call->options;
    wg_tensor *g = wg_solve_triangular(wg__transposed(call->inputs[A]), cotangents[0],
                                       !options->upper, options->unit, false);
    if (wg__wants(call, A))
        gradients[A] = triangle_of(wg_neg(wg_matmul(g, wg__transposed(call->outputs[0]))), options);
    if (wg__wants(call, B))
        gradients[B] = g;
    return wg__vjp_status();
}

static int triangular_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const triangular_options *options = call->options;
    wg_tensor *product =
        tangents[A] ? wg_matmul(triangle_of(tangents[A], options), call->outputs[0]) : NULL;
    output_tangents[0] = wg_solve_triangular(call->inputs[A], less(tangents[B], product),
                                             options->upper, options->unit, false);
    return wg__vjp_status();
}

static int triangular_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const triangular_options options[] = {{true, false}, {false, true}, {false, false}};
    sample->options = &options[index % 3];
    return system_sample(index, generator, sample);
}

static int triangular_bench(wg_generator *generator, wg_sample *sample) {
    static const triangular_options options = {true, false};
    sample->options = &options;
    return system_bench(generator, sample);
}

static double triangular_flops(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    return (double)wg__spec_count(a) * (double)b->shape[b->ndim - 1];
}

static const wg_op solve_triangular = {
    WG__OP("solve_triangular", 2,
           "X with T X = B, where T is the upper or lower triangle of A (..., N, N), its diagonal "
           "read or taken as ones, and B is (..., N, K). An error for a 0 on the diagonal."),
    .options_size = sizeof(triangular_options),
    .saves_inputs = 1 << A,
    .saves_outputs = 1,
    .differentiable = 3,
    .places_outputs = true,
    .infer = check_system,
    .forward = triangular_forward,
    .vjp = triangular_vjp,
    .jvp = triangular_jvp,
    .sample = triangular_sample,
    .bench = triangular_bench,
    .flops = triangular_flops,
    .batch = wg__batch_leading};

wg_tensor *wg_solve_triangular(wg_tensor *a, wg_tensor *b, bool upper, bool unit, bool from_right) {
    return apply_system(&solve_triangular, a, b, from_right,
                        &(triangular_options){upper != from_right, unit});
}

/* ---- inv: Y = A^-1.   dA = -Y^T g Y^T, dY = -Y dA Y. ---- */

static int inv_infer(wg_call *call) {
    return wg__check_matrices(call, true) < 0 ? -1 : wg__infer_like(call);
}

/* Runs a routine that replaces A, with pivots; NULL after an error. */
static wg_tensor *factored(wg_call *call, wg__lapack *job, int (*routine)(wg__lapack *job)) {
    wg_tensor *a = wg__column_major(call->inputs[0]);
    *job = wg__lapack_job(call);
    wg_tensor *pivots = wg_empty(WG_I32, 1, (int64_t[]){job->count * job->n});
    if (!a || !pivots)
        return NULL;
    job->a = wg__tensor_address(a);
    job->pivots = wg__tensor_address(pivots);
    return routine(job) < 0 ? NULL : a;
}

static int inv_forward(wg_call *call) {
    wg__lapack job;
    wg_tensor *y = factored(call, &job, wg__lapack_inverse);
    if (!y)
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

static int square_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const struct {
        int ndim;
        int64_t shape[3];
    } cases[] = {{2, {3, 3}}, {3, {2, 2, 2}}, {2, {1, 1}}};
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    sample->inputs[0] = wg__sample_matrices(generator, cases[index].ndim, cases[index].shape);
    return wg__sample_status(sample, 1);
}

static int square_bench(wg_generator *generator, wg_sample *sample) {
    sample->inputs[0] = wg__bench_matrices(generator);
    return wg__sample_status(sample, 1);
}

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
    .infer = inv_infer,
    .forward = inv_forward,
    .vjp = inv_vjp,
    .jvp = inv_jvp,
    .sample = square_sample,
    .bench = square_bench,
    .flops = inv_flops,
    .batch = wg_batch_aligned};

wg_tensor *wg_inv(wg_tensor *a) {
    return wg__apply_matrix(&inv, a, NULL);
}

/* ---- det: y = det A.   dA = g y A^-T, dy = y trace(A^-1 dA).
 * ---- slogdet: the sign of det A and log |det A|.   dA = g A^-T, dy = trace(A^-1 dA).
 * Both take the product of the pivots, with a sign for each exchange of rows. ---- */

typedef struct pivot_product {
    double sign, log, product;
} pivot_product;

static double pivot_at(const wg__lapack *job, int64_t matrix, int64_t i) {
    const int64_t place = matrix * job->n * job->n + i * (job->n + 1);
    return job->dtype == WG_F32 ? (double)((const float *)job->a)[place]
                                : ((const double *)job->a)[place];
}

static pivot_product multiply_pivots(const wg__lapack *job, int64_t matrix) {
    pivot_product p = {1, 0, 1};
    for (int64_t i = 0; i < job->n; i++) {
        const double pivot = pivot_at(job, matrix, i);
        const double sign = job->pivots[matrix * job->n + i] != i + 1 ? -1 : 1;
        p.product *= sign * pivot;
        p.sign *= pivot < 0 ? -sign : pivot > 0 ? sign : pivot; /* 0 of 0, NaN of NaN */
        p.log += log(fabs(pivot));
    }
    return p;
}

static void put(wg_tensor *x, int64_t i, double value) {
    if (x->spec.dtype == WG_F32)
        ((float *)wg__tensor_address(x))[i] = (float)value;
    else
        ((double *)wg__tensor_address(x))[i] = value;
}

static int det_infer(wg_call *call) {
    if (wg__check_matrices(call, true) < 0)
        return -1;
    for (int j = 0; j < call->output_count; j++)
        wg__infer_matrix(call, j, 0, 0, 0);
    return 0;
}

static int det_forward(wg_call *call) {
    wg__lapack job;
    if (!factored(call, &job, wg__lapack_lu))
        return -1;
    for (int64_t matrix = 0; matrix < job.count; matrix++) {
        const pivot_product p = multiply_pivots(&job, matrix);
        put(call->outputs[0], matrix, call->output_count == 2 ? p.sign : p.product);
        if (call->output_count == 2)
            put(call->outputs[1], matrix, p.log);
    }
    return 0;
}

/* A^-1, for derivatives; an error that says what it is for if the determinant or its sign, output
 * 0, is 0. */
static wg_tensor *inverse_for(wg_call *call) {
    wg_tensor *y = wg_contiguous(wg__all_values(call->outputs[0]));
    const int64_t count = y ? wg_tensor_count(y) : 0;
    for (int64_t i = 0; i < count; i++) {
        const double value = y->spec.dtype == WG_F32 ? ((float *)wg__tensor_address(y))[i]
                                                     : ((double *)wg__tensor_address(y))[i];
        if (value == 0) {
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

static const wg_op det = {
    WG__OP("det", 1,
           "The determinant of square matrices (..., N, N), by LU. Its derivative is computed from "
           "the inverse: an error if A is singular."),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .undefined_at = WG_AT_ZERO | WG_AT_TIES,
    .undefined_reason = "the derivative is computed from the inverse",
    .infer = det_infer,
    .forward = det_forward,
    .vjp = det_vjp,
    .jvp = det_jvp,
    .sample = square_sample,
    .bench = square_bench,
    .flops = det_flops,
    .batch = wg_batch_aligned};

wg_tensor *wg_det(wg_tensor *a) {
    return wg__apply_matrix(&det, a, NULL);
}

static const wg_op slogdet = {
    WG__OP_OF(
        "slogdet", 1, 1, 2,
        "The sign of det A and log |det A|, of square matrices (..., N, N), by LU: 0 and -inf "
        "of a singular one. The sign has no gradient, that of the logarithm is computed from "
        "the inverse: an error if A is singular."),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = det_infer,
    .forward = det_forward,
    .vjp = det_vjp,
    .jvp = det_jvp,
    .sample = square_sample,
    .bench = square_bench,
    .flops = det_flops,
    .batch = wg_batch_aligned};

int wg_slogdet(wg_tensor *a, wg_tensor **sign, wg_tensor **logabsdet) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    const int status = wg__apply_matrices(&slogdet, a, NULL, outputs);
    if (sign)
        *sign = outputs[0];
    if (logabsdet)
        *logabsdet = outputs[1];
    return status;
}

static const wg_op *const ops[] = {&solve, &solve_triangular, &inv, &det, &slogdet};

const wg__op_table wg__ops_solve = {ops, sizeof ops / sizeof *ops};
