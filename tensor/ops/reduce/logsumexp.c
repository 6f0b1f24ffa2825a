/* The logarithm of a sum of exponentials over axes.
 *
 * The reduced axes are brought to the end and joined, so that each output is made of a row; long
 * rows are cut into parts, each of which gives its maximum m and its sum of e^(x - m). */
#include "tensor/iter.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/reduce/reduction.h"
#include "tensor/simd/simd.h"

#include <math.h>

/* Elements of a part, at most. */
#define PART (1 << 17)

typedef struct part {
    double max, sum;
} part;

typedef struct rows {
    const wg__simd *simd;
    size_t size; /* bytes of an element */
    const char *x;
    int64_t n;     /* elements of a row */
    int64_t parts; /* of a row */
    part *part;
} rows;

static void run_parts(int64_t begin, int64_t end, void *context) {
    const rows *rows = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i % rows->parts * PART, rest = rows->n - first;
        const int64_t count = rest < PART ? rest : PART;
        const char *x = rows->x + (size_t)(i / rows->parts * rows->n + first) * rows->size;
        part *part = &rows->part[i];
        part->max = rows->simd->row_max(count, x);
        part->sum = isfinite(part->max) ? rows->simd->row_sum_exp(count, x, part->max) : 0;
    }
}

/* m + log sum; an infinite or undefined maximum is the result itself. */
static double joined(const part *part, int64_t count) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (part[i].max > max || isnan(part[i].max))
            max = part[i].max;
    if (!isfinite(max))
        return max;
    for (int64_t i = 0; i < count; i++)
        sum += part[i].sum * exp(part[i].max - max);
    return max + log(sum);
}

static wg_tensor *reduced_last(wg_tensor *x, int64_t mask) {
    int64_t order[WG_MAX_DIMS];
    wg__reduced_last(x->spec.ndim, mask, order);
    return wg_contiguous(wg_permute(x, x->spec.ndim, order));
}

/* ---- logsumexp: y = log sum e^x over the axes.   dx = g e^(x - y). ---- */

static int logsumexp_infer(wg_call *call) {
    const wg_dtype dtype = call->input_specs[0].dtype;
    if (dtype != WG_F32 && dtype != WG_F64)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted f32 or f64; cast it");
    return wg__infer_reduced(call, dtype);
}

static int logsumexp_forward(wg_call *call) {
    wg_tensor *y = call->outputs[0];
    const wg_tensor *x = reduced_last(call->inputs[0], wg__reduce_options_of(call)->mask);
    const int64_t count = wg__spec_count(&y->spec);
    if (x == NULL || count == 0)
        return x == NULL ? -1 : 0;
    const int64_t n = wg__spec_count(&x->spec) / count;
    rows rows = {.simd = wg__simd_for(x->spec.dtype),
                 .size = wg_dtype_size(x->spec.dtype),
                 .x = wg__tensor_address(x),
                 .n = n,
                 .parts = (n + PART - 1) / PART};
    rows.part = wg__alloc((size_t)(count * rows.parts) * sizeof *rows.part);
    if (rows.part == NULL)
        return -1;
    if (n > 0)
        wg__parallel_for(count * rows.parts, WG__GRAIN / 4 / (n < PART ? n : PART) + 1, run_parts,
                         &rows);
    for (int64_t i = 0; i < count; i++) {
        const double value = joined(rows.part + i * rows.parts, rows.parts);
        wg__set_element(y->spec.dtype, (char *)wg__tensor_address(y) + (size_t)i * rows.size,
                        value);
    }
    wg__free(rows.part);
    return 0;
}

/* dy/dx, the softmax. */
static wg_tensor *shares(wg_call *call) {
    return wg_exp(wg_sub(call->inputs[0], wg__with_axes(call->outputs[0], call)));
}

static int logsumexp_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return wg__vjp_by_derivative(call, shares(call), cotangents, gradients);
}

static int logsumexp_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    return wg__jvp_by_derivative(call, shares(call), tangents, output_tangents);
}

static const wg_op logsumexp = {
    .name = "logsumexp",
    .doc = "y = log sum e^x over the given axes, computed from x - max.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__reduce_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = logsumexp_infer,
    .forward = logsumexp_forward,
    .vjp = logsumexp_vjp,
    .jvp = logsumexp_jvp,
    .sample = wg__sample_reduction,
    .bench = wg__bench_reduction,
    .flops = wg__reduce_flops,
};

wg_tensor *wg_logsumexp(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    wg__reduce_options options;
    if (!wg__reduce_options_make(&options, x, axis_count, axes, keepdim, "logsumexp"))
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool is_half = x->spec.dtype == WG_BF16;
    wg_tensor *y = wg__apply_float(&logsumexp, is_half ? wg_cast(x, WG_F32) : x, &options);
    return wg_scope_end(&scope, is_half ? wg_cast(y, WG_BF16) : y);
}

static const wg_op *const ops[] = {&logsumexp};

const wg__op_family wg__family_logsumexp = {ops, sizeof ops / sizeof *ops};
