/* Softmax and its logarithm along any axis, and their gradients.
 *
 * An operand is `outer` blocks of n rows of `inner` columns; the axis runs down the columns:
 *
 *     axis         inner ->              the last axis: inner is 1, each line is a row of memory
 *       |     x x x x x x x x            any other axis: lines lie side by side, and a block of
 *       v     x x x x x x x x            columns is computed at a time (tensor/simd/softmax.h)
 *
 * Short rows of the last axis are transposed, many at a time, and computed as columns. */
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

#include <math.h>

/* The options of all ops are the axis, an int from 0 on. */
static int softmax_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    if (x->ndim == 0)
        return wg__op_fail(call, WG_ERROR_INDEX, "a scalar has no axis");
    if (wg__check_same_dtypes(call, 2) < 0)
        return -1;
    if (call->input_count == 2 && !wg__same_shape(x, &call->input_specs[1]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "result and cotangent have one shape");
    return wg__infer_like(call);
}

typedef struct lines_job {
    const wg__simd *simd;
    size_t size; /* bytes of an element */
    int64_t n, inner;
    int64_t width, blocks; /* columns of a block, and blocks in `inner` columns */
    bool logarithm;
    const char *x, *dy; /* x, or the result y and its cotangent */
    char *y;            /* the output */
} lines_job;

/* The width of a block of columns: its rows stay in the caches, and each row is read in one
 * stretch. */
enum { BLOCK_BYTES = 1024 };

/* ---- softmax: y_i = e^(x_i - max) / sum e^(x_j - max); a line of -inf gives zeros.
 * log_softmax: y_i = x_i - max - log sum e^(x_j - max).
 * Their gradients, from the result y and its cotangent g: softmax_input, dx = y (g - sum g y), and
 * log_softmax_input, dx = g - e^y sum g. ---- */

static void run_rows(int64_t begin, int64_t end, void *context) {
    const lines_job *job = context;
    const wg__simd_rows *rows = &job->simd->rows;
    const size_t bytes = (size_t)job->n * job->size, at = (size_t)begin * bytes;
    if (job->n <= WG__SHORT_LINE)
        rows->softmax_short(job->logarithm, end - begin, job->n, job->x + at,
                            job->dy ? job->dy + at : NULL, job->y + at);
    else
        for (int64_t row = begin; row < end; row++) {
            const char *x = job->x + (size_t)row * bytes;
            char *y = job->y + (size_t)row * bytes;
            if (job->dy)
                rows->softmax_vjp(job->logarithm, job->n, x, job->dy + (size_t)row * bytes, y);
            else if (!job->logarithm)
                rows->softmax(job->n, x, y);
            else {
                const double max = rows->max(job->n, x);
                const double log_sum = max + log(rows->sum_exp(job->n, x, max));
                if (job->size == sizeof(float))
                    for (int64_t i = 0; i < job->n; i++)
                        ((float *)y)[i] = (float)(((const float *)x)[i] - log_sum);
                else
                    for (int64_t i = 0; i < job->n; i++)
                        ((double *)y)[i] = ((const double *)x)[i] - log_sum;
            }
        }
}

static void run_columns(int64_t begin, int64_t end, void *context) {
    const lines_job *job = context;
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block % job->blocks * job->width;
        const int64_t columns = wg__smaller(job->width, job->inner - first);
        const size_t at = (size_t)(block / job->blocks * job->n * job->inner + first) * job->size;
        job->simd->rows.softmax_columns(job->logarithm, job->n, columns, job->inner, job->x + at,
                                        job->dy ? job->dy + at : NULL, job->y + at);
    }
}

static int run_lines(wg_call *call, bool logarithm) {
    const int axis = *(const int *)call->options;
    wg_tensor *x = wg_contiguous(call->inputs[0]), *dy = wg__input_at(call, 1);
    if (x == NULL || (dy != NULL && (dy = wg_contiguous(dy)) == NULL))
        return -1;
    const int64_t count = wg__spec_count(&x->spec);
    if (count == 0)
        return 0;
    lines_job job = {.simd = wg__simd_for(x->spec.dtype),
                     .size = wg_dtype_size(x->spec.dtype),
                     .n = x->spec.shape[axis],
                     .inner = wg__shape_count(x->spec.ndim - axis - 1, x->spec.shape + axis + 1),
                     .logarithm = logarithm,
                     .x = wg__tensor_address(x),
                     .dy = dy == NULL ? NULL : wg__tensor_address(dy),
                     .y = wg__tensor_address(call->outputs[0])};
    if (job.inner == 1) {
        wg__parallel_for(count / job.n, 1 + WG__GRAIN / 4 / job.n, run_rows, &job);
        return 0;
    }
    job.width = wg__smaller(job.inner, BLOCK_BYTES / (int64_t)job.size);
    job.blocks = wg__ceil_divide(job.inner, job.width);
    wg__parallel_for(count / job.n / job.inner * job.blocks, 1 + WG__GRAIN / 4 / job.n / job.width,
                     run_columns, &job);
    return 0;
}

static int softmax_forward(wg_call *call) {
    return run_lines(call, false);
}

static int log_softmax_forward(wg_call *call) {
    return run_lines(call, true);
}

/* The sum of a b along the axis of the call; b NULL is 1. */
static wg_tensor *sum_of(const wg_call *call, wg_tensor *a, wg_tensor *b) {
    const int64_t axis = *(const int *)call->options;
    return wg_sum(b ? wg_mul(a, b) : a, 1, &axis, true);
}

/* With s = sum g y and a cotangent h: dg = y (h - sum h y), dy = h (g - s) - g sum h y. */
static int softmax_input_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *y = call->inputs[0], *g = call->inputs[1], *h = cotangents[0];
    if (wg__wants(call, 0))
        gradients[0] =
            wg_sub(wg_mul(h, wg_sub(g, sum_of(call, g, y))), wg_mul(g, sum_of(call, h, y)));
    if (wg__wants(call, 1))
        gradients[1] = wg_apply_one(call->op, 2, (wg_tensor *[]){y, h}, call->options);
    return wg__vjp_status();
}

/* With s = sum g and a cotangent h: dg = h - sum h e^y, dy = -h e^y s. */
static int log_softmax_input_vjp(wg_call *call, wg_tensor *const *cotangents,
                                 wg_tensor **gradients) {
    wg_tensor *e = wg_exp(call->inputs[0]), *g = call->inputs[1], *h = cotangents[0];
    if (wg__wants(call, 0))
        gradients[0] = wg_neg(wg_mul(wg_mul(h, e), sum_of(call, g, NULL)));
    if (wg__wants(call, 1))
        gradients[1] = wg_sub(h, sum_of(call, h, e));
    return wg__vjp_status();
}

/* The op is linear in g: a tangent t of g gives op(y, t). A tangent u of y gives
 * u (g - sum g y) - y sum g u; for the logarithm, -e^y u sum g. */
static int input_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const bool logarithm = call->op->forward == log_softmax_forward;
    wg_tensor *y = call->inputs[0], *g = call->inputs[1], *u = tangents[0], *sum = NULL;
    if (tangents[1] != NULL)
        sum = wg_apply_one(call->op, 2, (wg_tensor *[]){y, tangents[1]}, call->options);
    if (u != NULL) {
        wg_tensor *by_y = logarithm ? wg_neg(wg_mul(wg_mul(wg_exp(y), u), sum_of(call, g, NULL)))
                                    : wg_sub(wg_mul(u, wg_sub(g, sum_of(call, g, y))),
                                             wg_mul(y, sum_of(call, g, u)));
        sum = wg__plus(sum, by_y);
    }
    output_tangents[0] = sum;
    return wg__vjp_status();
}

WG__EXAMPLES(softmax, int, (wg__sample_normal), {2, "2 3 5"}, {1, "1 4 1"}, {2, "2 1 33"},
             {0, "4 2 3"}, {1, "2 3 17"})
WG__LARGE(softmax, int, "4096 1024", 1)

/* A result and a cotangent; their values are arbitrary. */
WG__EXAMPLES(input, int, (wg__sample_normal), {2, "2 3 5, 2 3 5"}, {1, "1 4 1, 1 4 1"},
             {2, "2 1 33, 2 1 33"}, {0, "4 2 3, 4 2 3"}, {1, "2 3 17, 2 3 17"})

#define SOFTMAX(NAME, INPUTS, VJP, JVP, DOC)                                                       \
    WG__OP(#NAME, INPUTS, DOC), .options_size = sizeof(int), .infer = softmax_infer,               \
                                .batch = wg__batch_axis, .vjp = VJP##_vjp, .jvp = JVP##_jvp,       \
                                .differentiable = (1 << (INPUTS)) - 1

static const wg_op softmax_input = {
    SOFTMAX(softmax_input, 2, softmax_input, input,
            "The gradient of the input of softmax along an axis, from its result and the "
            "cotangent: dx = y (g - sum g y)."),
    .saves_inputs = 3, .forward = softmax_forward, .sample = input_sample};

static const wg_op log_softmax_input = {
    SOFTMAX(log_softmax_input, 2, log_softmax_input, input,
            "The gradient of the input of log_softmax along an axis, from its result and the "
            "cotangent: dx = g - e^y sum g."),
    .saves_inputs = 3, .forward = log_softmax_forward, .sample = input_sample};

static int result_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const bool logarithm = call->op->forward == log_softmax_forward;
    gradients[0] = wg_apply_one(logarithm ? &log_softmax_input : &softmax_input, 2,
                                (wg_tensor *[]){call->outputs[0], cotangents[0]}, call->options);
    return wg__vjp_status();
}

/* The Jacobian of softmax, diag(y) - y y^T, is symmetric. */
static int softmax_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    return tangents[0] ? result_vjp(call, tangents, output_tangents) : 0;
}

/* dy = t - sum e^y t. */
static int log_softmax_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    if (!tangents[0])
        return 0;
    output_tangents[0] = wg_sub(tangents[0], sum_of(call, wg_exp(call->outputs[0]), tangents[0]));
    return wg__vjp_status();
}

static const wg_op softmax = {
    SOFTMAX(softmax, 1, result, softmax,
            "y = e^x / sum e^x along an axis, from x - max; a line of -inf gives zeros"),
    .saves_outputs = 1, .forward = softmax_forward, .sample = softmax_sample,
    .bench = softmax_bench};

static const wg_op log_softmax = {
    SOFTMAX(log_softmax, 1, result, log_softmax, "y = x - log sum e^x along an axis"),
    .saves_outputs = 1, .forward = log_softmax_forward, .sample = softmax_sample,
    .bench = softmax_bench};

/* Treats a scalar as a vector (1), and computes bf16 in f32. */
static wg_tensor *apply_along(const wg_op *op, wg_tensor *x, int axis) {
    if (x == NULL)
        return NULL;
    if (x->spec.dtype == WG_BF16)
        return wg_cast(apply_along(op, wg_cast(x, WG_F32), axis), WG_BF16);
    if (x->spec.ndim == 0 && (axis == 0 || axis == -1))
        return wg_reshape(apply_along(op, wg_reshape(x, 1, (int64_t[]){1}), 0), 0, NULL);
    axis = wg__axis(axis, x->spec.ndim, op->name);
    return axis < 0 ? NULL : wg_apply_one(op, 1, &x, &axis);
}

wg_tensor *wg_softmax(wg_tensor *x, int axis) {
    return apply_along(&softmax, x, axis);
}

wg_tensor *wg_log_softmax(wg_tensor *x, int axis) {
    return apply_along(&log_softmax, x, axis);
}

const wg__op_table wg__ops_softmax =
    WG__OP_TABLE(&softmax, &log_softmax, &softmax_input, &log_softmax_input);
