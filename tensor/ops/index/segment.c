/* Reductions of rows by segment: row i of x belongs to segment ids[i].
 *
 *     ids     0    0    2    2    2    3             offsets  0 2 2 5 6
 *     x      x0   x1   x2   x3   x4   x5
 *     y      x0 + x1    -    x2 + x3 + x4    x5      segment 1 has no rows
 *
 * The rows of a segment are added in their order, so any number of threads gives the same bits. */
#include "tensor/ops/index/indexing.h"
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

#include <math.h>
#include <string.h>

typedef struct segment_options {
    int64_t segments;
    bool alternative; /* mean instead of sum, min instead of max */
    double empty;     /* the result of a segment without rows */
} segment_options;

static int segment_infer(wg_call *call) {
    const segment_options *options = call->options;
    const wg_spec *x = &call->input_specs[0], *ids = &call->input_specs[1];
    if (wg__check_is_index(call, 1) < 0 || wg__check_kernel_dtype(call) < 0)
        return -1;
    if (x->ndim < 1 || ids->ndim != 1 || ids->shape[0] != x->shape[0])
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted x (N, ...) and a segment for each, (N)");
    if (options->segments < 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "%lld segments; wanted 0 or more",
                           (long long)options->segments);
    wg_spec shape = *x;
    shape.shape[0] = options->segments;
    return wg__spec_make(&call->output_specs[0], x->dtype, shape.ndim, shape.shape, call->op->name);
}

typedef struct segment_job {
    const void *x;
    void *y;
    int64_t columns;
    const int64_t *order;   /* the rows sorted by segment; NULL: they are sorted already */
    const int64_t *offsets; /* the first position of each segment in `order`, and the end */
    double empty;
    bool alternative;
    const wg__simd *simd;
} segment_job;

#define SEGMENT_KERNELS(SUFFIX, TYPE)                                                              \
    static void fill_##SUFFIX(const segment_job *job, TYPE *y, double value) {                     \
        for (int64_t c = 0; c < job->columns; c++)                                                 \
            y[c] = (TYPE)value;                                                                    \
    }                                                                                              \
    static void sum_##SUFFIX(int64_t begin, int64_t end, void *context) {                          \
        const segment_job *job = context;                                                          \
        const int64_t columns = job->columns;                                                      \
        const TYPE *x = job->x;                                                                    \
        for (int64_t s = begin; s < end; s++) {                                                    \
            TYPE *y = (TYPE *)job->y + s * columns;                                                \
            const int64_t first = job->offsets[s], stop = job->offsets[s + 1];                     \
            fill_##SUFFIX(job, y, first == stop ? job->empty : 0);                                 \
            if (columns == 1) {                                                                    \
                double sum = 0;                                                                    \
                for (int64_t i = first; i < stop; i++)                                             \
                    sum += (double)x[job->order ? job->order[i] : i];                              \
                if (first < stop)                                                                  \
                    *y = (TYPE)sum;                                                                \
            } else if (job->order == NULL)                                                         \
                job->simd->rows.add(stop - first, columns, columns, x + first * columns, y);       \
            else                                                                                   \
                for (int64_t i = first; i < stop; i++)                                             \
                    job->simd->rows.add(1, columns, columns, x + job->order[i] * columns, y);      \
            const TYPE count = (TYPE)(stop - first);                                               \
            for (int64_t c = 0; job->alternative && first < stop && c < columns; c++)              \
                y[c] /= count;                                                                     \
        }                                                                                          \
    }                                                                                              \
    static void max_##SUFFIX(int64_t begin, int64_t end, void *context) {                          \
        const segment_job *job = context;                                                          \
        const int64_t columns = job->columns;                                                      \
        for (int64_t s = begin; s < end; s++) {                                                    \
            TYPE *restrict y = (TYPE *)job->y + s * columns;                                       \
            const int64_t first = job->offsets[s], stop = job->offsets[s + 1];                     \
            fill_##SUFFIX(job, y, job->empty);                                                     \
            for (int64_t i = first; i < stop; i++) {                                               \
                const int64_t row = job->order ? job->order[i] : i;                                \
                const TYPE *restrict x = (const TYPE *)job->x + row * columns;                     \
                if (i == first)                                                                    \
                    memcpy(y, x, (size_t)columns * sizeof(TYPE));                                  \
                else if (job->alternative)                                                         \
                    for (int64_t c = 0; c < columns; c++)                                          \
                        y[c] = y[c] < x[c] || y[c] != y[c] ? y[c] : x[c];                          \
                else                                                                               \
                    for (int64_t c = 0; c < columns; c++)                                          \
                        y[c] = y[c] > x[c] || y[c] != y[c] ? y[c] : x[c];                          \
            }                                                                                      \
        }                                                                                          \
    }

SEGMENT_KERNELS(f32, float)
SEGMENT_KERNELS(f64, double)

/* A counting sort of the rows by segment: fills offsets (segments + 1), and order unless the rows
 * are sorted already. Returns whether they are sorted. */
static bool order_rows(int64_t count, const int64_t *ids, int64_t segments, int64_t *offsets,
                       int64_t *order) {
    bool sorted = true;
    memset(offsets, 0, (size_t)(segments + 1) * sizeof *offsets);
    for (int64_t i = 0; i < count; i++) {
        offsets[ids[i] + 1]++;
        sorted &= i == 0 || ids[i - 1] <= ids[i];
    }
    for (int64_t s = 0; s < segments; s++)
        offsets[s + 1] += offsets[s];
    for (int64_t i = 0; !sorted && i < count; i++)
        order[offsets[ids[i]]++] = i;
    for (int64_t s = segments; !sorted && s > 0; s--)
        offsets[s] = offsets[s - 1];
    offsets[0] = 0;
    return sorted;
}

/* segment_max alone saves its output. */
static int segment_forward(wg_call *call) {
    const segment_options *options = call->options;
    const bool is_max = call->op->saves_outputs != 0;
    const wg__range_body f32 = is_max ? max_f32 : sum_f32, f64 = is_max ? max_f64 : sum_f64;
    if (wg__check_index_range(call, 1, options->segments) < 0)
        return -1;
    wg_tensor *x = wg_contiguous(call->inputs[0]), *ids = wg_contiguous(call->inputs[1]);
    if (x == NULL || ids == NULL)
        return -1;
    const int64_t rows = x->spec.shape[0], segments = options->segments;
    int64_t *block = wg__alloc_array(segments + 1 + rows, sizeof *block);
    if (block == NULL)
        return -1;
    int64_t *order = block + segments + 1;
    if (order_rows(rows, wg__tensor_address(ids), segments, block, order))
        order = NULL;
    segment_job job = {.x = wg__tensor_address(x),
                       .y = wg__tensor_address(call->outputs[0]),
                       .columns = wg__shape_count(x->spec.ndim - 1, x->spec.shape + 1),
                       .order = order,
                       .offsets = block,
                       .empty = options->empty,
                       .alternative = options->alternative,
                       .simd = wg__simd_for(x->spec.dtype)};
    const int64_t work = wg__spec_count(&x->spec) / wg__larger(segments, 1) + job.columns;
    wg__parallel_for(segments, WG__GRAIN / (work + 1) + 1, x->spec.dtype == WG_F32 ? f32 : f64,
                     &job);
    wg__free(block);
    return 0;
}

/* Rows of several elements and of a single element, sorted and unsorted, with an empty segment. */
static int segment_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const segment_options options[] = {{4, false, 0}, {4, true, 0.5}};
    static const int64_t ids[][6] = {{0, 0, 2, 2, 2, 3}, {3, 0, 2, 0, 3, 3}};
    static const int64_t shape[] = {6, 2, 2};
    if (index >= 8)
        return 0;
    sample->options = &options[index % 2];
    sample->inputs[0] = wg__sample_distinct(generator, index < 4 ? 3 : 1, shape);
    sample->inputs[1] = wg_from_array(WG_I64, 1, shape, ids[index / 2 % 2]);
    return wg__sample_status(sample, 2);
}

WG__LARGE(segment, segment_options, "65536 64, 65536 <4096", 4096, false, 0)

#define SEGMENT(NAME)                                                                              \
    .options_size = sizeof(segment_options), .differentiable = 1, .infer = segment_infer,          \
    .forward = segment_forward, .vjp = NAME##_vjp, .jvp = NAME##_jvp, .sample = segment_sample,    \
    .bench = segment_bench

/* ---- segment_sum: the sum, or the mean, of the rows of each segment.
 * dx = g[ids]; of the mean, divided by the number of rows. ---- */

static int segment_sum_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const segment_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    wg_tensor *g = cotangents[0];
    if (options->alternative) {
        const int64_t shape[WG_MAX_DIMS] = {options->segments, 1, 1, 1, 1, 1, 1, 1};
        wg_tensor *counts =
            wg_cast(wg_bincount(call->inputs[1], NULL, options->segments), x->dtype);
        g = wg_div(g, wg_reshape(wg_clamp(counts, 1, INFINITY), x->ndim, shape));
    }
    gradients[0] = wg_index_select(g, 0, call->inputs[1]);
    return wg__vjp_status();
}

static int segment_sum_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const segment_options *options = call->options;
    output_tangents[0] =
        wg_apply_one(call->op, 2, (wg_tensor *[]){tangents[0], call->inputs[1]},
                     &(segment_options){options->segments, options->alternative, 0});
    return wg__vjp_status();
}

static const wg_op segment_sum = {
    WG__OP("segment_sum", 2,
           "x (N, ...), ids (N) i64 -> (segments, ...): the sum, or the mean, of the rows of each "
           "segment, and a number where there is none."),
    SEGMENT(segment_sum), .saves_inputs = 2};

/* ---- segment_max: the largest, or the smallest, of the rows of each segment, element by element.
 * dx = g where x is the largest, shared by ties. ---- */

/* 1 over the number of ties where x is the largest, 0 elsewhere: the shape of x. */
static wg_tensor *shares(const wg_call *call) {
    const segment_options *options = call->options;
    wg_tensor *ids = call->inputs[1], *y = wg_index_select(call->outputs[0], 0, ids);
    wg_tensor *largest = wg_cast(wg_eq(call->inputs[0], y), call->input_specs[0].dtype);
    wg_tensor *ties = wg_apply_one(&segment_sum, 2, (wg_tensor *[]){largest, ids},
                                   &(segment_options){options->segments, false, 1});
    wg_tensor *share = wg_reciprocal(wg_clamp(ties, 1, INFINITY));
    return wg_mul(largest, wg_index_select(share, 0, ids));
}

WG__VJP(segment_max, wg_mul(shares(call), wg_index_select(g, 0, call->inputs[1])))

static int segment_max_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const segment_options *options = call->options;
    wg_tensor *const inputs[] = {wg_mul(shares(call), tangents[0]), call->inputs[1]};
    output_tangents[0] =
        wg_apply_one(&segment_sum, 2, inputs, &(segment_options){options->segments, false, 0});
    return wg__vjp_status();
}

static const wg_op segment_max = {
    WG__OP("segment_max", 2,
           "x (N, ...), ids (N) i64 -> (segments, ...): the largest, or the smallest, of the rows "
           "of each segment, and a number where there is none; NaN if there is one. Kinks at ties, "
           "which share the gradient."),
    SEGMENT(segment_max), .saves_inputs = 3, .saves_outputs = 1};

static wg_tensor *reduced(wg_tensor *x, wg_tensor *ids, int64_t segments,
                          wg_segment_reduction reduction, double empty) {
    if (x == NULL || ids == NULL)
        return NULL;
    const wg_dtype dtype = x->spec.dtype;
    if (reduction < WG_SEGMENT_SUM || reduction > WG_SEGMENT_MIN)
        return wg__fail_null(WG_ERROR_ARGUMENT, "segment_reduce",
                             "reduction %d is none of wg_segment_reduction", (int)reduction);
    x = wg__widen(wg__as_float(x));
    const wg_op *op = reduction < WG_SEGMENT_MAX ? &segment_sum : &segment_max;
    const segment_options options = {segments, reduction % 2 == WG_SEGMENT_MEAN, empty};
    wg_tensor *const inputs[] = {x, wg__index_as_i64(ids)};
    return wg__narrow(wg_apply_one(op, 2, inputs, &options), dtype);
}

wg_tensor *wg_unsorted_segment_reduce(wg_tensor *x, wg_tensor *ids, int64_t segments,
                                      wg_segment_reduction reduction, double empty) {
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, reduced(x, ids, segments, reduction, empty));
}

wg_tensor *wg_segment_reduce(wg_tensor *x, wg_tensor *offsets, wg_segment_reduction reduction,
                             double empty) {
    if (x == NULL || offsets == NULL)
        return NULL;
    if (x->spec.ndim < 1)
        return wg__fail_null(WG_ERROR_SHAPE, "segment_reduce", "x is a scalar; wanted (N, ...)");
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *ids = NULL;
    offsets = wg_contiguous(wg__index_as_i64(offsets));
    if (offsets != NULL && wg__check_offsets("segment_reduce", offsets, x->spec.shape[0]) == 0)
        ids = wg_empty(WG_I64, 1, x->spec.shape);
    if (ids == NULL)
        return wg_scope_end(&scope, NULL);
    const int64_t *at = wg__tensor_address(offsets), segments = offsets->spec.shape[0] - 1;
    int64_t *id = wg__tensor_address(ids);
    for (int64_t s = 0; s < segments; s++)
        for (int64_t i = at[s]; i < at[s + 1]; i++)
            id[i] = s;
    return wg_scope_end(&scope, reduced(x, ids, segments, reduction, empty));
}

const wg__op_table wg__ops_segment = WG__OP_TABLE(&segment_sum, &segment_max);
