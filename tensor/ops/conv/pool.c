/* Pooling of one to three axes: each output is the largest element of a window of a channel, or the
 * mean. Windows step along an axis, or, in adaptive pooling, share it evenly:
 *
 *     5 places into 3, adaptive:     0 1 2 3 4      window i goes from floor(5 i / 3)
 *                                    [ 0 ]          up to ceil(5 (i + 1) / 3)
 *                                      [ 1   ]
 *                                          [ 2 ]
 *
 * Ops see x as planes (N C, D, H, W) of which the first axes may have size 1. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

enum { AXES = 3 };

typedef struct pool_options {
    int rank; /* the number of spatial axes, 1 to 3; they are the last of x */
    bool adaptive, ceil_mode, exclude_padding;
    int64_t kernel[AXES], stride[AXES], padding[AXES], dilation[AXES]; /* unless adaptive */
    int64_t size[AXES]; /* of the result, if adaptive or the gradient of x */
    int64_t divisor;    /* of a mean; 0: the elements of its window */
} pool_options;

/* ---- Windows ---- */

/* One spatial axis. */
typedef struct pool_axis {
    int64_t size, count; /* of x and of y */
    int64_t kernel, stride, padding, dilation;
    bool adaptive;
} pool_axis;

/* The places begin, begin + step... before end that a window has in x, and how many it has with the
 * padding. */
typedef struct window {
    int64_t begin, end, step, whole;
} window;

static window window_of(const pool_axis *a, int64_t i) {
    if (a->adaptive) {
        const int64_t begin = i * a->size / a->count;
        const int64_t end = wg__ceil_divide((i + 1) * a->size, a->count);
        return (window){begin, end, 1, end - begin};
    }
    const int64_t first = i * a->stride - a->padding, step = a->dilation;
    const int64_t last = wg__smaller(first + a->kernel * step, a->size + a->padding);
    const int64_t begin = first < 0 ? first + wg__ceil_divide(-first, step) * step : first;
    return (window){begin, wg__smaller(last, a->size), step, last - first};
}

/* PyTorch's number of windows. With ceil_mode the last may reach beyond the padding, but must begin
 * within x or the padding before it. */
static int64_t windows_along(const pool_options *options, int i, int64_t size) {
    const int64_t stride = options->stride[i], padding = options->padding[i];
    const int64_t rest = size + 2 * padding - options->dilation[i] * (options->kernel[i] - 1) - 1;
    if (rest < 0 && !(options->ceil_mode && rest + stride > 0))
        return 0;
    const int64_t count =
        (rest < 0 ? 0 : rest / stride + (options->ceil_mode && rest % stride != 0)) + 1;
    return options->ceil_mode && (count - 1) * stride >= size + padding ? count - 1 : count;
}

/* The axes of a call from x to y; those before the spatial ones of x are planes. */
static void set_axes(const pool_options *options, const wg_spec *x, const wg_spec *y,
                     pool_axis axes[AXES], int64_t *planes) {
    const int first = x->ndim - options->rank;
    *planes = 1;
    for (int i = 0; i < first; i++)
        *planes *= x->shape[i];
    for (int i = 0; i < AXES; i++)
        axes[i] = (pool_axis){1, 1, 1, 1, 0, 1, false};
    for (int i = 0; i < options->rank; i++)
        axes[AXES - options->rank + i] = (pool_axis){
            x->shape[first + i], y->shape[first + i],  options->kernel[i], options->stride[i],
            options->padding[i], options->dilation[i], options->adaptive};
}

/* ---- Shapes ---- */

static int check_windows(const wg_call *call) {
    const pool_options *options = call->options;
    for (int i = 0; !options->adaptive && i < options->rank; i++) {
        const int64_t k = options->kernel[i], s = options->stride[i], p = options->padding[i];
        const int64_t d = options->dilation[i];
        if (k < 1 || s < 1 || d < 1 || k > INT32_MAX || s > INT32_MAX || d > INT32_MAX)
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "kernel %lld, stride %lld and dilation %lld of spatial axis %d; all "
                               "are at least 1",
                               (long long)k, (long long)s, (long long)d, i);
        if (p < 0 || p > ((k - 1) * d + 1) / 2)
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "padding %lld along spatial axis %d; it is at least 0, and at most "
                               "half of the %lld places that the kernel reaches over",
                               (long long)p, i, (long long)((k - 1) * d + 1));
    }
    return 0;
}

static int pool_infer(wg_call *call) {
    static const char *const axes[] = {"L", "H, W", "D, H, W"};
    const pool_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int first = x->ndim - options->rank;
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    if (first != 1 && first != 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted (N, C, %s) or (C, %s)",
                           axes[options->rank - 1], axes[options->rank - 1]);
    if (check_windows(call) < 0)
        return -1;
    int64_t shape[WG_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    for (int i = 0; i < options->rank; i++) {
        const int64_t size = x->shape[first + i];
        shape[first + i] = options->adaptive ? options->size[i] : windows_along(options, i, size);
        if (size < 1 || shape[first + i] < 1)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "spatial axis %d, of size %lld, has no window; wanted at least one "
                               "along each axis",
                               i, (long long)size);
    }
    for (int i = 0; i < call->output_count; i++)
        if (wg__spec_make(&call->output_specs[i], i == 0 ? x->dtype : WG_I64, x->ndim, shape,
                          call->op->name) < 0)
            return -1;
    return 0;
}

/* ---- Kernels: a loop over planes, in which x, y and the indices are contiguous ---- */

typedef struct pool_job {
    const pool_options *options;
    pool_axis axes[AXES];
    window *windows[AXES];           /* of all outputs along each axis */
    int64_t planes, places, outputs; /* the latter two of a plane */
    const void *from;
    void *to;
    int64_t *indices;
} pool_job;

/* What a mean divides by; 0 for a window without a place in x, whose mean is 0. */
static double divisor_of(const pool_job *job, const window *a, const window *b, const window *c) {
    const double inside = (double)(wg__larger(a->end - a->begin, 0)) *
                          (double)(wg__larger(b->end - b->begin, 0)) *
                          (double)(wg__larger(c->end - c->begin, 0));
    if (inside == 0)
        return 0;
    return job->options->divisor           ? (double)job->options->divisor
           : job->options->exclude_padding ? inside
                                           : (double)(a->whole * b->whole * c->whole);
}

/* For outputs k to end of row (a, b), with their windows c: BEFORE, then PLACE for each place of
 * the window, element `at` of the plane, then AFTER. */
#define FOR_OUTPUTS(BEFORE, PLACE, AFTER)                                                          \
    for (; k < end; k++) {                                                                         \
        const window *c = &job->windows[2][k];                                                     \
        BEFORE;                                                                                    \
        for (int64_t p = a->begin; p < a->end; p += a->step)                                       \
            for (int64_t q = b->begin; q < b->end; q += b->step) {                                 \
                const int64_t row = (p * job->axes[1].size + q) * job->axes[2].size;               \
                for (int64_t at = row + c->begin; at < row + c->end; at += c->step)                \
                    PLACE;                                                                         \
            }                                                                                      \
        AFTER;                                                                                     \
    }

/* The first and last + 1 of the windows along the last axis that lie whole in x, `stride` apart. */
static void whole_windows(const pool_job *job, int64_t *first, int64_t *end) {
    const pool_axis *axis = &job->axes[AXES - 1];
    const int64_t reach = (axis->kernel - 1) * axis->dilation;
    *first = *end = 0;
    if (axis->adaptive)
        return;
    *first = wg__smaller(wg__ceil_divide(axis->padding, axis->stride), axis->count);
    const int64_t room = axis->size - 1 - reach + axis->padding;
    *end =
        room < 0 ? *first : wg__larger(*first, wg__smaller(room / axis->stride + 1, axis->count));
}

enum { STRETCH = 512 }; /* outputs along the last axis at a time: whole vectors */

/* For each row (a, b) of outputs of a plane, whose first is number `at`: ONE of outputs k to end,
 * or STRETCHED of n outputs from k on whose windows lie whole in x. */
#define FOR_ROWS(ONE, STRETCHED)                                                                   \
    do {                                                                                           \
        const int64_t columns = job->axes[2].count;                                                \
        int64_t first, last, at = 0;                                                               \
        whole_windows(job, &first, &last);                                                         \
        if (job->axes[2].dilation != 1)                                                            \
            first = last = columns;                                                                \
        for (int64_t i = 0; i < job->axes[0].count; i++)                                           \
            for (int64_t j = 0; j < job->axes[1].count; j++, at += columns) {                      \
                const window *a = &job->windows[0][i], *b = &job->windows[1][j];                   \
                int64_t k = 0, end = first;                                                        \
                ONE;                                                                               \
                for (k = first; k < last; k += STRETCH) {                                          \
                    const int64_t n = wg__smaller(STRETCH, last - k);                              \
                    STRETCHED;                                                                     \
                }                                                                                  \
                k = last;                                                                          \
                end = columns;                                                                     \
                ONE;                                                                               \
            }                                                                                      \
    } while (0)

/* The three kernels for a dtype: of one plane. The largest is the first of equal ones, or the last
 * NaN, as PyTorch chooses. */
#define KERNELS(NAME, TYPE)                                                                        \
    /* Outputs k to end of row (a, b) of max_pool. */                                              \
    static void max_outputs_##NAME(const pool_job *job, const TYPE *x, const window *a,            \
                                   const window *b, int64_t k, int64_t end, TYPE *y,               \
                                   int64_t *index) {                                               \
        for (; k < end; k++) {                                                                     \
            const window *c = &job->windows[2][k];                                                 \
            TYPE most = (TYPE)-INFINITY;                                                           \
            int64_t best =                                                                         \
                (a->begin * job->axes[1].size + b->begin) * job->axes[2].size + c->begin;          \
            for (int64_t p = a->begin; p < a->end; p += a->step)                                   \
                for (int64_t q = b->begin; q < b->end; q += b->step) {                             \
                    const int64_t row = (p * job->axes[1].size + q) * job->axes[2].size;           \
                    for (int64_t at = row + c->begin; at < row + c->end; at += c->step)            \
                        if (x[at] > most || x[at] != x[at]) {                                      \
                            most = x[at];                                                          \
                            best = at;                                                             \
                        }                                                                          \
                }                                                                                  \
            *y++ = most;                                                                           \
            *index++ = best;                                                                       \
        }                                                                                          \
    }                                                                                              \
    static void max_##NAME(const pool_job *job, int64_t plane) {                                   \
        const TYPE *x = (const TYPE *)job->from + plane * job->places;                             \
        const int64_t columns = job->axes[2].count;                                                \
        int64_t done = plane * job->outputs;                                                       \
        for (int64_t i = 0; i < job->axes[0].count; i++)                                           \
            for (int64_t j = 0; j < job->axes[1].count; j++, done += columns)                      \
                max_outputs_##NAME(job, x, &job->windows[0][i], &job->windows[1][j], 0, columns,   \
                                   (TYPE *)job->to + done, job->indices + done);                   \
    }                                                                                              \
    static void mean_outputs_##NAME(const pool_job *job, const TYPE *x, const window *a,           \
                                    const window *b, int64_t k, int64_t end, TYPE *y) {            \
        FOR_OUTPUTS(double sum = 0, sum += (double)x[at],                                          \
                    const double divisor = divisor_of(job, a, b, c);                               \
                    *y++ = divisor == 0 ? 0 : (TYPE)(sum / divisor))                               \
    }                                                                                              \
    static void mean_stretch_##NAME(const pool_job *job, const TYPE *x, const window *a,           \
                                    const window *b, int64_t k, int64_t n, TYPE *y) {              \
        const pool_axis *last = &job->axes[2];                                                     \
        const double divisor = divisor_of(job, a, b, &job->windows[2][k]);                         \
        double sums[STRETCH];                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            sums[i] = 0;                                                                           \
        for (int64_t p = a->begin; p < a->end; p += a->step)                                       \
            for (int64_t q = b->begin; q < b->end; q += b->step)                                   \
                for (int64_t r = 0; r < last->kernel; r++) {                                       \
                    const TYPE *from = x + (p * job->axes[1].size + q) * last->size +              \
                                       k * last->stride - last->padding + r;                       \
                    for (int64_t i = 0; i < n; i++)                                                \
                        sums[i] += (double)from[i * last->stride];                                 \
                }                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = divisor == 0 ? 0 : (TYPE)(sums[i] / divisor);                                   \
    }                                                                                              \
    static void mean_##NAME(const pool_job *job, int64_t plane) {                                  \
        const TYPE *x = (const TYPE *)job->from + plane * job->places;                             \
        TYPE *y = (TYPE *)job->to + plane * job->outputs;                                          \
        FOR_ROWS(mean_outputs_##NAME(job, x, a, b, k, end, y + at + k),                            \
                 mean_stretch_##NAME(job, x, a, b, k, n, y + at + k));                             \
    }                                                                                              \
    static void spread_outputs_##NAME(const pool_job *job, const TYPE *y, const window *a,         \
                                      const window *b, int64_t k, int64_t end, TYPE *x) {          \
        FOR_OUTPUTS(const TYPE share = (TYPE)((double)*y++ / divisor_of(job, a, b, c)),            \
                    x[at] += share, )                                                              \
    }                                                                                              \
    /* Not inlined: with the loop over taps within this one, each addition waits for the last. */  \
    static __attribute__((noinline)) void add_steps_##NAME(int64_t n, const TYPE *from, TYPE *to,  \
                                                           int64_t step) {                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i * step] += from[i];                                                               \
    }                                                                                              \
    static void spread_stretch_##NAME(const pool_job *job, const TYPE *y, const window *a,         \
                                      const window *b, int64_t k, int64_t n, TYPE *x) {            \
        const pool_axis *last = &job->axes[2];                                                     \
        const double divisor = divisor_of(job, a, b, &job->windows[2][k]);                         \
        TYPE shares[STRETCH];                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            shares[i] = (TYPE)((double)y[i] / divisor);                                            \
        for (int64_t p = a->begin; p < a->end; p += a->step)                                       \
            for (int64_t q = b->begin; q < b->end; q += b->step)                                   \
                for (int64_t r = 0; r < last->kernel; r++)                                         \
                    add_steps_##NAME(n, shares,                                                    \
                                     x + (p * job->axes[1].size + q) * last->size +                \
                                         k * last->stride - last->padding + r,                     \
                                     last->stride);                                                \
    }                                                                                              \
    static void spread_##NAME(const pool_job *job, int64_t plane) {                                \
        const TYPE *y = (const TYPE *)job->from + plane * job->outputs;                            \
        TYPE *x = (TYPE *)job->to + plane * job->places;                                           \
        memset(x, 0, (size_t)job->places * sizeof *x);                                             \
        FOR_ROWS(spread_outputs_##NAME(job, y + at + k, a, b, k, end, x),                          \
                 spread_stretch_##NAME(job, y + at + k, a, b, k, n, x));                           \
    }

KERNELS(f32, float)
KERNELS(f64, double)

/* A stretch of f32 outputs of max_pool, whole windows of row (a, b), a vector of outputs at a time:
 * each place of a window is compared for all of them, in the order of a scalar loop. */
static void max_stretch(const pool_job *job, const float *x, const window *a, const window *b,
                        int64_t k, int64_t n, float *y, int64_t *index) {
    const wg__simd *simd = wg__simd_for(WG_F32);
    const pool_axis *last = &job->axes[AXES - 1];
    int32_t best[STRETCH];
    const int64_t begin = k * last->stride - last->padding;
    const int64_t corner = (a->begin * job->axes[1].size + b->begin) * last->size + begin;
    for (int64_t i = 0; i < n; i++) {
        y[i] = -INFINITY;
        best[i] = (int32_t)(corner + i * last->stride);
    }
    for (int64_t p = a->begin; p < a->end; p += a->step)
        for (int64_t q = b->begin; q < b->end; q += b->step)
            for (int64_t r = 0; r < last->kernel; r++) {
                const int64_t at =
                    (p * job->axes[1].size + q) * last->size + begin + r * last->dilation;
                simd->rows.keep_larger(n, last->stride, x + at, (int32_t)at, y, best);
            }
    for (int64_t i = 0; i < n; i++)
        index[i] = best[i];
}

/* max_f32, with vectors where windows lie whole in x. */
static void max_by_vectors(const pool_job *job, int64_t plane) {
    const float *x = (const float *)job->from + plane * job->places;
    float *y = (float *)job->to + plane * job->outputs;
    int64_t *index = job->indices + plane * job->outputs, first, end;
    const int64_t columns = job->axes[2].count;
    whole_windows(job, &first, &end);
    if (end - first < 4 || job->places > INT32_MAX) {
        max_f32(job, plane);
        return;
    }
    for (int64_t i = 0; i < job->axes[0].count; i++)
        for (int64_t j = 0; j < job->axes[1].count; j++) {
            const int64_t row = (i * job->axes[1].count + j) * columns;
            const window *a = &job->windows[0][i], *b = &job->windows[1][j];
            max_outputs_f32(job, x, a, b, 0, first, y + row, index + row);
            for (int64_t k = first; k < end; k += STRETCH)
                max_stretch(job, x, a, b, k, wg__smaller(STRETCH, end - k), y + row + k,
                            index + row + k);
            max_outputs_f32(job, x, a, b, end, columns, y + row + end, index + row + end);
        }
}

/* The gradient of max_pool in one plane: `from` has that of y, and `to` becomes that of x. */
#define MAX_VJP(NAME, TYPE)                                                                        \
    static void max_vjp_##NAME(const pool_job *job, int64_t plane) {                               \
        const TYPE *dy = (const TYPE *)job->from + plane * job->outputs;                           \
        const int64_t *index = job->indices + plane * job->outputs;                                \
        TYPE *dx = (TYPE *)job->to + plane * job->places;                                          \
        memset(dx, 0, (size_t)job->places * sizeof *dx);                                           \
        for (int64_t i = 0; i < job->outputs; i++)                                                 \
            if (index[i] < job->places) /* else it is the place of an empty window */              \
                dx[index[i]] += dy[i];                                                             \
    }

MAX_VJP(f32, float)
MAX_VJP(f64, double)

typedef void (*plane_kernel)(const pool_job *job, int64_t plane);

typedef struct plane_loop {
    const pool_job *job;
    plane_kernel kernel;
} plane_loop;

static void run_planes(int64_t begin, int64_t end, void *context) {
    const plane_loop *loop = context;
    for (int64_t plane = begin; plane < end; plane++)
        loop->kernel(loop->job, plane);
}

/* Runs a kernel on all planes of images like x with outputs like y: it reads `source`, and indices
 * from to[1], or writes them, and writes to[0]. */
static int run(wg_call *call, const wg_spec *x, const wg_spec *y, wg_tensor *source,
               plane_kernel f32, plane_kernel f64, wg_tensor *const *to) {
    pool_job job = {.options = call->options, .places = 1, .outputs = 1};
    wg_tensor *from = wg_contiguous(source);
    int64_t count = 0;
    if (!from)
        return -1;
    set_axes(job.options, x, y, job.axes, &job.planes);
    for (int i = 0; i < AXES; i++) {
        job.places *= job.axes[i].size;
        job.outputs *= job.axes[i].count;
        count += job.axes[i].count;
    }
    window *windows = wg__alloc_array(count + 1, sizeof *windows);
    if (!windows)
        return -1;
    for (int axis = 0, done = 0; axis < AXES; done += (int)job.axes[axis++].count) {
        job.windows[axis] = windows + done;
        for (int64_t i = 0; i < job.axes[axis].count; i++)
            job.windows[axis][i] = window_of(&job.axes[axis], i);
    }
    job.from = wg__tensor_address(from);
    job.to = wg__tensor_address(to[0]);
    job.indices = call->output_count > 1 ? wg__tensor_address(to[1]) : NULL;
    plane_loop loop = {&job, x->dtype == WG_F32 ? f32 : f64};
    wg__parallel_for(job.planes, 1 + WG__GRAIN / (1 + job.places + job.outputs), run_planes, &loop);
    wg__free(windows);
    return 0;
}

/* ---- max_pool: y = the largest element of each window, and its place in the plane.
 * dx = g at those places. Kinks at ties. ---- */

static int max_pool_forward(wg_call *call) {
    return run(call, &call->input_specs[0], &call->output_specs[0], call->inputs[0], max_by_vectors,
               max_f64, call->outputs);
}

/* x with its spatial axes as one; NULL gives NULL. */
static wg_tensor *as_planes(const wg_call *call, wg_tensor *x) {
    const pool_options *options = call->options;
    return x ? wg_flatten(x, x->spec.ndim - options->rank, -1) : NULL;
}

static int max_pool_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0];
    const int last = x->ndim - ((const pool_options *)call->options)->rank;
    if (!call->create_graph && wg_tensor_is_contiguous(call->outputs[1])) {
        gradients[0] = wg_empty(x->dtype, x->ndim, x->shape);
        wg_tensor *const to[] = {gradients[0], call->outputs[1]};
        return gradients[0] ? run(call, x, &call->output_specs[0], cotangents[0], max_vjp_f32,
                                  max_vjp_f64, to)
                            : -1;
    }
    wg_tensor *zeros = as_planes(call, wg_zeros(x->dtype, x->ndim, x->shape));
    wg_tensor *dx = wg_scatter_add(zeros, last, as_planes(call, call->outputs[1]),
                                   as_planes(call, cotangents[0]));
    gradients[0] = wg_reshape(dx, x->ndim, x->shape);
    return wg__vjp_status();
}

static int max_pool_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const wg_spec *y = &call->output_specs[0];
    const int last = y->ndim - ((const pool_options *)call->options)->rank;
    wg_tensor *chosen =
        wg_gather(as_planes(call, tangents[0]), last, as_planes(call, call->outputs[1]));
    output_tangents[0] = wg_reshape(chosen, y->ndim, y->shape);
    return wg__vjp_status();
}

/* ---- avg_pool: y = the mean of each window, and its adjoint, avg_pool_input, which spreads g
 * evenly over the window; each is the other's derivative. ---- */

static const wg_op avg_pool[AXES], avg_pool_input[AXES];

static int avg_pool_forward(wg_call *call) {
    return run(call, &call->input_specs[0], &call->output_specs[0], call->inputs[0], mean_f32,
               mean_f64, call->outputs);
}

static int avg_pool_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    pool_options options = *(const pool_options *)call->options;
    const wg_spec *x = &call->input_specs[0];
    memcpy(options.size, x->shape + x->ndim - options.rank,
           (size_t)options.rank * sizeof *x->shape);
    gradients[0] = wg_apply_one(&avg_pool_input[options.rank - 1], 1, cotangents, &options);
    return wg__vjp_status();
}

static int avg_pool_input_infer(wg_call *call) {
    const pool_options *options = call->options;
    const wg_spec *y = &call->input_specs[0];
    const int first = y->ndim - options->rank;
    if (wg__check_kernel_dtype(call) < 0 || check_windows(call) < 0)
        return -1;
    if (first != 1 && first != 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted one or two axes before the spatial ones");
    int64_t shape[WG_MAX_DIMS];
    memcpy(shape, y->shape, sizeof shape);
    for (int i = 0; i < options->rank; i++) {
        shape[first + i] = options->size[i];
        const int64_t count =
            options->adaptive ? y->shape[first + i] : windows_along(options, i, options->size[i]);
        if (options->size[i] < 1 || count < 1 || y->shape[first + i] != count)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "wanted the windows of %lld places along spatial axis %d",
                               (long long)options->size[i], i);
    }
    return wg__spec_make(&call->output_specs[0], y->dtype, y->ndim, shape, call->op->name);
}

static int avg_pool_input_forward(wg_call *call) {
    return run(call, &call->output_specs[0], &call->input_specs[0], call->inputs[0], spread_f32,
               spread_f64, call->outputs);
}

static int avg_pool_input_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    pool_options options = *(const pool_options *)call->options;
    const wg_spec *y = &call->input_specs[0];
    memcpy(options.size, y->shape + y->ndim - options.rank,
           (size_t)options.rank * sizeof *y->shape);
    gradients[0] = wg_apply_one(&avg_pool[options.rank - 1], 1, cotangents, &options);
    return wg__vjp_status();
}

/* ---- Samples ---- */

/* The sizes of x and y; `size` of the options is that of y where windows are adaptive. */
typedef struct example {
    pool_options options;
    int64_t x[2 + AXES], y[2 + AXES];
} example;

enum { EXAMPLES = 4 };

static const example examples[AXES][EXAMPLES] = {
    {{{1, .kernel = {2}, .stride = {2}, .dilation = {1}}, {2, 2, 5}, {2, 2, 2}},
     {{1, .ceil_mode = true, .kernel = {3}, .stride = {2}, .padding = {1}, .dilation = {1}},
      {1, 2, 6},
      {1, 2, 4}},
     {{1, .exclude_padding = true, .kernel = {2}, .stride = {1}, .padding = {1}, .dilation = {1}},
      {1, 3, 4},
      {1, 3, 5}},
     {{1, .adaptive = true, .size = {3}}, {2, 1, 5}, {2, 1, 3}}},
    {{{2, .kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}}, {1, 2, 4, 5}, {1, 2, 2, 2}},
     {{2, .ceil_mode = true, .kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 0},
       .dilation = {1, 1}},
      {1, 2, 4, 4},
      {1, 2, 3, 2}},
     {{2, .exclude_padding = true, .kernel = {2, 3}, .stride = {1, 1}, .padding = {1, 1},
       .dilation = {1, 1}},
      {2, 1, 3, 2},
      {2, 1, 4, 2}},
     {{2, .adaptive = true, .size = {2, 3}}, {1, 2, 3, 4}, {1, 2, 2, 3}}},
    {{{3, .kernel = {2, 1, 2}, .stride = {1, 1, 2}, .dilation = {1, 1, 1}},
      {1, 2, 2, 2, 4},
      {1, 2, 1, 2, 2}},
     {{3, .ceil_mode = true, .kernel = {2, 2, 2}, .stride = {2, 2, 1}, .padding = {1, 0, 1},
       .dilation = {1, 1, 1}},
      {1, 1, 3, 3, 1},
      {1, 1, 2, 2, 2}},
     {{3, .divisor = 3, .kernel = {1, 2, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}},
      {1, 2, 2, 3, 2},
      {1, 2, 2, 2, 2}},
     {{3, .adaptive = true, .size = {2, 1, 2}}, {1, 1, 3, 2, 3}, {1, 1, 2, 1, 2}}}};

/* The options of avg_pool_input, whose size is that of x. */
static const pool_options *options_for_input(const example *e, int number) {
    static pool_options made[AXES][EXAMPLES + 1]; /* of rank 0: not made yet */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pool_options *options = &made[e->options.rank - 1][number];
    pthread_mutex_lock(&lock);
    if (options->rank == 0) {
        *options = e->options;
        memcpy(options->size, e->x + 2, sizeof options->size);
    }
    pthread_mutex_unlock(&lock);
    return options;
}

static int pool_sample(const example *e, int number, bool of_input, wg__sampler make,
                       wg_generator *generator, wg_sample *sample) {
    sample->options = of_input ? options_for_input(e, number) : &e->options;
    sample->inputs[0] = make(generator, 2 + e->options.rank, of_input ? e->y : e->x);
    return wg__sample_status(sample, 1);
}

/* 2^22 elements, in windows that overlap. */
static const example large[AXES] = {
    {{1, .kernel = {3}, .stride = {2}, .padding = {1}, .dilation = {1}},
     {16, 64, 4096},
     {16, 64, 2048}},
    {{2, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .dilation = {1, 1}},
     {4, 64, 128, 128},
     {4, 64, 64, 64}},
    {{3, .kernel = {2, 2, 2}, .stride = {2, 2, 2}, .dilation = {1, 1, 1}},
     {4, 32, 32, 32, 32},
     {4, 32, 16, 16, 16}}};

/* NAME1d_sample and so on, and NAME1d_bench, for each number of axes. */
#define SAMPLES_OF(NAME, RANK, OF_INPUT, MAKE)                                                     \
    static int NAME##RANK##d_sample(int index, wg_generator *generator, wg_sample *sample) {       \
        return index < EXAMPLES ? pool_sample(&examples[(RANK)-1][index], index, OF_INPUT, MAKE,   \
                                              generator, sample)                                   \
                                : 0;                                                               \
    }                                                                                              \
    static int NAME##RANK##d_bench(wg_generator *generator, wg_sample *sample) {                   \
        if (pool_sample(&large[(RANK)-1], EXAMPLES, OF_INPUT, MAKE, generator, sample) < 0)        \
            return -1;                                                                             \
        sample->inputs[0] = wg_cast(sample->inputs[0], WG_F32);                                    \
        return wg__sample_status(sample, 1);                                                       \
    }
#define SAMPLES(NAME, OF_INPUT, MAKE)                                                              \
    SAMPLES_OF(NAME, 1, OF_INPUT, MAKE)                                                            \
    SAMPLES_OF(NAME, 2, OF_INPUT, MAKE)                                                            \
    SAMPLES_OF(NAME, 3, OF_INPUT, MAKE)

SAMPLES(max_pool, false, wg__sample_distinct)
SAMPLES(avg_pool, false, wg__sample_normal)
SAMPLES(avg_pool_input, true, wg__sample_normal)

/* ---- Records ---- */

#define MAX_POOL(RANK, AXES_OF)                                                                    \
    {                                                                                              \
        WG__OP_OF("max_pool" #RANK "d", 1, 1, 2,                                                   \
                  "The largest element of each window and its place, in row-major order, in the "  \
                  "channel: (N, C, " AXES_OF ") -> (N, C, windows) and i64. The first of equal "   \
                  "ones; NaN if there is one. Kinks at ties."),                                    \
            .options_size = sizeof(pool_options), .saves_outputs = 2, .differentiable = 1,         \
            .infer = pool_infer, .forward = max_pool_forward, .vjp = max_pool_vjp,                 \
            .jvp = max_pool_jvp, .sample = max_pool##RANK##d_sample, .batch = wg__batch_folded,    \
            .bench = max_pool##RANK##d_bench,                                                      \
    }
#define LINEAR(NAME, TITLE, RANK, INFER, DOC)                                                      \
    {                                                                                              \
        WG__OP(TITLE, 1, DOC), .options_size = sizeof(pool_options), .differentiable = 1,          \
                               .infer = INFER, .forward = NAME##_forward, .vjp = NAME##_vjp,       \
                               .jvp = wg_jvp_linear, .sample = NAME##RANK##d_sample,               \
                               .batch = wg__batch_folded, .bench = NAME##RANK##d_bench,            \
    }
#define AVG_POOL(RANK, AXES_OF)                                                                    \
    LINEAR(avg_pool, "avg_pool" #RANK "d", RANK, pool_infer,                                       \
           "y = the mean of each window: (N, C, " AXES_OF ") -> (N, C, windows).")
#define AVG_POOL_INPUT(RANK, AXES_OF)                                                              \
    LINEAR(avg_pool_input, "avg_pool" #RANK "d_input", RANK, avg_pool_input_infer,                 \
           "The gradient of the input of avg_pool" #RANK                                           \
           "d: each number is spread evenly over its window, (N, C, windows) -> (N, C, " AXES_OF   \
           ").")

static const wg_op max_pool[AXES] = {MAX_POOL(1, "L"), MAX_POOL(2, "H, W"), MAX_POOL(3, "D, H, W")};
static const wg_op avg_pool[AXES] = {AVG_POOL(1, "L"), AVG_POOL(2, "H, W"), AVG_POOL(3, "D, H, W")};
static const wg_op avg_pool_input[AXES] = {AVG_POOL_INPUT(1, "L"), AVG_POOL_INPUT(2, "H, W"),
                                           AVG_POOL_INPUT(3, "D, H, W")};

/* ---- Functions ---- */

/* Reads the caller's options, with the defaults for zeros. */
static pool_options read_options(int rank, const wg_pool_options *given, bool of_mean) {
    static const wg_pool_options none;
    given = given ? given : &none;
    pool_options options = {.rank = rank,
                            .ceil_mode = given->ceil_mode,
                            .exclude_padding = of_mean && given->exclude_padding,
                            .divisor = of_mean ? given->divisor_override : 0};
    for (int i = 0; i < rank; i++) {
        options.kernel[i] = given->kernel[i];
        options.stride[i] = given->stride[i] == 0 ? given->kernel[i] : given->stride[i];
        options.padding[i] = given->padding[i];
        options.dilation[i] = given->dilation[i] == 0 || of_mean ? 1 : given->dilation[i];
    }
    return options;
}

static pool_options adaptive_options(int rank, const int64_t *size) {
    pool_options options = {.rank = rank, .adaptive = true};
    memcpy(options.size, size, (size_t)rank * sizeof *size);
    return options;
}

/* Refuses options of the other kind of pooling. */
static bool are_options_of(const wg_pool_options *given, int rank, bool of_mean, const char *name) {
    if (!given)
        return true;
    if (!of_mean && (given->exclude_padding || given->divisor_override != 0)) {
        wg_fail(WG_ERROR_ARGUMENT, name,
                "exclude_padding and divisor_override go with avg_pool%dd alone", rank);
        return false;
    }
    for (int i = 0; of_mean && i < rank; i++)
        if (given->dilation[i] != 0 && given->dilation[i] != 1) {
            wg_fail(WG_ERROR_ARGUMENT, name, "dilation goes with max_pool%dd alone", rank);
            return false;
        }
    return true;
}

static wg_tensor *pool_max(wg_tensor *x, const wg_pool_options *given, const pool_options *options,
                           wg_tensor **indices) {
    const wg_op *op = &max_pool[options->rank - 1];
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL}, *wide = wg__widen(x);
    if (wide && are_options_of(given, options->rank, false, op->name))
        wg_apply(op, 1, &wide, options, outputs);
    if (indices)
        *indices = outputs[1];
    return x ? wg__narrow(outputs[0], x->spec.dtype) : NULL;
}

static wg_tensor *pool_mean(wg_tensor *x, const wg_pool_options *given,
                            const pool_options *options) {
    const wg_op *op = &avg_pool[options->rank - 1];
    wg_tensor *wide = wg__widen(x);
    if (!wide || !are_options_of(given, options->rank, true, op->name))
        return NULL;
    return wg__narrow(wg_apply_one(op, 1, &wide, options), x->spec.dtype);
}

#define FUNCTIONS(RANK)                                                                            \
    wg_tensor *wg_max_pool##RANK##d(wg_tensor *x, const wg_pool_options *given,                    \
                                    wg_tensor **indices) {                                         \
        const pool_options options = read_options(RANK, given, false);                             \
        return pool_max(x, given, &options, indices);                                              \
    }                                                                                              \
    wg_tensor *wg_avg_pool##RANK##d(wg_tensor *x, const wg_pool_options *given) {                  \
        const pool_options options = read_options(RANK, given, true);                              \
        return pool_mean(x, given, &options);                                                      \
    }                                                                                              \
    wg_tensor *wg_adaptive_max_pool##RANK##d(wg_tensor *x, const int64_t *size,                    \
                                             wg_tensor **indices) {                                \
        const pool_options options = adaptive_options(RANK, size);                                 \
        return pool_max(x, NULL, &options, indices);                                               \
    }                                                                                              \
    wg_tensor *wg_adaptive_avg_pool##RANK##d(wg_tensor *x, const int64_t *size) {                  \
        const pool_options options = adaptive_options(RANK, size);                                 \
        return pool_mean(x, NULL, &options);                                                       \
    }

FUNCTIONS(1)
FUNCTIONS(2)
FUNCTIONS(3)

static const wg_op *const ops[] = {&max_pool[0],       &max_pool[1],       &max_pool[2],
                                   &avg_pool[0],       &avg_pool[1],       &avg_pool[2],
                                   &avg_pool_input[0], &avg_pool_input[1], &avg_pool_input[2]};

const wg__op_table wg__ops_pool = {ops, sizeof ops / sizeof *ops};
