/* Pooling over one to three spatial axes: each output is the largest element of a window of a
 * channel, or the mean. Windows step along an axis, or, in adaptive pooling, share it evenly:
 *
 *     5 places into 3, adaptive:     0 1 2 3 4      window i goes from floor(5 i / 3)
 *                                    [ 0 ]          up to ceil(5 (i + 1) / 3)
 *                                      [ 1   ]
 *                                          [ 2 ]
 *
 * Ops see x as planes (N C, D, H, W); missing spatial axes have size 1. Along the last axis a
 * kernel handles a stretch at a time: one tap of many windows.
 *
 *     tap r of output k reads place k stride + r dilation - padding
 *
 * That place lies in x for a range of outputs, the stretch, so borders need no separate loop. In
 * adaptive pooling each window has a stretch, of all its places. */
#include <math.h>
#include <string.h>

#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

enum { AXES = 3 };

typedef struct pool_options {
    int rank; /* the number of spatial axes, 1 to 3; they are the last of x */
    bool adaptive, ceil_mode, exclude_padding;
    int64_t kernel[AXES], stride[AXES], padding[AXES], dilation[AXES]; /* unless adaptive */
    int64_t size[AXES];  /* of x; read by avg_pool_input */
    int64_t count[AXES]; /* of y; read by adaptive pooling */
    int64_t divisor;     /* of a mean; 0: the number of elements in the window */
} pool_options;

typedef struct pool_axis {
    int64_t size, count; /* of x and of y */
    int64_t kernel, stride, padding, dilation;
    bool adaptive;
} pool_axis;

/* A window along one axis: places begin, begin + step... before end of x. A mean divides by the
 * product of `elements` of all axes. A window without a place in x has the sum 0. */
typedef struct window {
    int64_t begin, end, step, elements;
} window;

static window window_of(const pool_axis *a, int64_t i, bool exclude_padding) {
    if (a->adaptive) {
        const int64_t begin = i * a->size / a->count;
        const int64_t end = wg__ceil_divide((i + 1) * a->size, a->count);
        return (window){begin, end, 1, end - begin};
    }
    const int64_t first = i * a->stride - a->padding, step = a->dilation;
    const int64_t last = wg__smaller(first + a->kernel * step, a->size + a->padding);
    const int64_t begin = first < 0 ? first + wg__ceil_divide(-first, step) * step : first;
    const int64_t end = wg__smaller(last, a->size);
    const int64_t elements = exclude_padding ? end - begin : last - first;
    return (window){begin, end, step, wg__larger(elements, 1)};
}

/* n outputs from `output` on, `step` apart (0: one output), read places `stride` apart. */
typedef struct stretch {
    int64_t n, output, step, place, stride;
} stretch;

enum { STRETCH = 512 }; /* outputs along the last axis at a time: whole vectors */

/* Stretch number `number`, ordered by piece, then by tap. In adaptive pooling, number `number` is
 * the stretch of output `number`. */
static stretch stretch_of(const pool_axis *a, int64_t number) {
    if (a->adaptive) {
        const window w = window_of(a, number, false);
        return (stretch){w.end - w.begin, number, 0, w.begin, 1};
    }
    const int64_t piece = number / a->kernel * STRETCH;
    const int64_t tap = number % a->kernel * a->dilation - a->padding; /* the place of output 0 */
    const int64_t first = wg__larger(piece, tap < 0 ? wg__ceil_divide(-tap, a->stride) : 0);
    int64_t end = tap < a->size ? (a->size - 1 - tap) / a->stride + 1 : 0;
    end = wg__smaller(end, wg__smaller(piece + STRETCH, a->count));
    return (stretch){wg__larger(end - first, 0), first, 1, first * a->stride + tap, a->stride};
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

/* Input 0 is x and output 0 is y; with `to_x`, for avg_pool_input, input 0 is y and output 0 x. */
static int infer(wg_call *call, bool to_x) {
    static const char *const axes[] = {"L", "H, W", "D, H, W"};
    const pool_options *options = call->options;
    const wg_spec *given = &call->input_specs[0];
    const int first = given->ndim - options->rank;
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    if (first != 1 && first != 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted (N, C, %s) or (C, %s)",
                           axes[options->rank - 1], axes[options->rank - 1]);
    for (int i = 0; !options->adaptive && i < options->rank; i++) {
        const int64_t k = options->kernel[i], s = options->stride[i], p = options->padding[i];
        const int64_t d = options->dilation[i];
        if (k < 1 || s < 1 || d < 1 || k > INT32_MAX || s > INT32_MAX || d > INT32_MAX)
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "kernel %lld, stride %lld and dilation %lld of spatial axis %d; all "
                               "are at least 1",
                               (long long)k, (long long)s, (long long)d, i);
        const int64_t reach = (k - 1) * d + 1;
        if (p < 0 || p > reach / 2)
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "padding %lld along spatial axis %d; it is at least 0, and at most "
                               "half of the %lld places that the kernel reaches over",
                               (long long)p, i, (long long)reach);
    }
    int64_t shape[WG_MAX_DIMS];
    memcpy(shape, given->shape, sizeof shape);
    for (int i = 0; i < options->rank; i++) {
        const int64_t size = to_x ? options->size[i] : given->shape[first + i];
        const int64_t count = !options->adaptive ? windows_along(options, i, size)
                              : to_x             ? given->shape[first + i]
                                                 : options->count[i];
        if (size < 1 || count < 1)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "spatial axis %d, of size %lld, has no window; wanted at least one "
                               "along each axis",
                               i, (long long)size);
        if (to_x && given->shape[first + i] != count)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "wanted the windows of %lld places along spatial axis %d",
                               (long long)size, i);
        shape[first + i] = to_x ? size : count;
    }
    for (int i = 0; i < call->output_count; i++)
        if (wg__spec_make(&call->output_specs[i], i == 0 ? given->dtype : WG_I64, given->ndim,
                          shape, call->op->name) < 0)
            return -1;
    return 0;
}

static int pool_infer(wg_call *call) {
    return infer(call, false);
}

static int pool_input_infer(wg_call *call) {
    return infer(call, true);
}

/* ---- Kernels, a plane at a time: x, y and the indices are contiguous ---- */

struct pool_job;
typedef void (*plane_kernel)(const struct pool_job *job, int64_t plane);

typedef struct pool_job {
    pool_axis axes[AXES];
    window *windows[AXES];        /* of all outputs along each axis */
    double *elements;             /* of the windows along the last axis */
    int64_t *begins;              /* of the windows along the last axis */
    stretch *stretches;           /* along the last axis */
    int64_t stretch_count, piece; /* stretches in all, and of STRETCH outputs */
    int64_t planes;
    int64_t places, outputs; /* of a plane */
    const void *from;
    void *to;
    int64_t *indices;
    plane_kernel kernel;
} pool_job;

/* For each piece of a row of outputs: runs BEFORE, then TAKE for each stretch s, then AFTER. A
 * piece has n outputs; its first output is number `at` of the plane and number k of the row. The
 * windows of the row are a and b along the first axes. `place` is the first place of s in the
 * plane. */
#define FOR_PIECES(BEFORE, TAKE, AFTER)                                                            \
    for (int64_t i = 0, at = 0; i < job->axes[0].count; i++)                                       \
        for (int64_t j = 0; j < job->axes[1].count; j++)                                           \
            for (int64_t k = 0, n, first = 0; k < job->axes[2].count; k += n, at += n) {           \
                const window *a = &job->windows[0][i], *b = &job->windows[1][j];                   \
                const int64_t last = wg__smaller(first + job->piece, job->stretch_count);          \
                n = wg__smaller(STRETCH, job->axes[2].count - k);                                  \
                BEFORE;                                                                            \
                for (int64_t p = a->begin; p < a->end; p += a->step)                               \
                    for (int64_t q = b->begin; q < b->end; q += b->step)                           \
                        for (int64_t t = first; t < last; t++) {                                   \
                            const stretch *s = &job->stretches[t];                                 \
                            const int64_t place =                                                  \
                                (p * job->axes[1].size + q) * job->axes[2].size + s->place;        \
                            TAKE;                                                                  \
                        }                                                                          \
                AFTER;                                                                             \
                first = last;                                                                      \
            }

/* Of equal elements the first is the largest, but a NaN wins, the last one, as in PyTorch. Sums are
 * f64. The loops over a stretch are not inlined: compilers would move the loop over taps inside,
 * and then each addition would wait for the previous one. */
#define KERNELS(NAME, TYPE)                                                                        \
    static __attribute__((noinline)) void keep_##NAME(const stretch *s, const TYPE *x,             \
                                                      int64_t place, TYPE *most, int64_t *best) {  \
        for (int64_t i = 0; i < s->n; i++, x += s->stride, place += s->stride)                     \
            if (*x > most[i * s->step] || *x != *x) {                                              \
                most[i * s->step] = *x;                                                            \
                best[i * s->step] = place;                                                         \
            }                                                                                      \
    }                                                                                              \
    static void max_##NAME(const pool_job *job, int64_t plane) {                                   \
        const TYPE *x = (const TYPE *)job->from + plane * job->places;                             \
        TYPE *y = (TYPE *)job->to + plane * job->outputs;                                          \
        int64_t *index = job->indices + plane * job->outputs;                                      \
        FOR_PIECES(                                                                                \
            const int64_t row = (a->begin * job->axes[1].size + b->begin) * job->axes[2].size;     \
            for (int64_t o = 0; o < n; o++) {                                                      \
                y[at + o] = (TYPE)-INFINITY;                                                       \
                index[at + o] = row + job->begins[k + o];                                          \
            },                                                                                     \
            keep_##NAME(s, x + place, place, y + at + s->output - k, index + at + s->output - k),  \
            (void)0)                                                                               \
    }                                                                                              \
    static __attribute__((noinline)) void sum_##NAME(const stretch *s, const TYPE *restrict x,     \
                                                     double *restrict sums) {                      \
        const int64_t n = s->n, stride = s->stride;                                                \
        for (int64_t i = 0; s->step && i < n; i++)                                                 \
            sums[i] += (double)x[i * stride];                                                      \
        for (int64_t i = 0; !s->step && i < n; i++)                                                \
            *sums += (double)x[i * stride];                                                        \
    }                                                                                              \
    static void mean_##NAME(const pool_job *job, int64_t plane) {                                  \
        const TYPE *x = (const TYPE *)job->from + plane * job->places;                             \
        TYPE *y = (TYPE *)job->to + plane * job->outputs;                                          \
        double sums[STRETCH];                                                                      \
        FOR_PIECES(memset(sums, 0, (size_t)n * sizeof *sums),                                      \
                   sum_##NAME(s, x + place, sums + s->output - k),                                 \
                   const double ab = (double)(a->elements * b->elements);                          \
                   for (int64_t o = 0; o < n; o++) y[at + o] =                                     \
                       (TYPE)(sums[o] / (ab * job->elements[k + o])))                              \
    }                                                                                              \
    static __attribute__((noinline)) void add_##NAME(                                              \
        const stretch *s, const TYPE *restrict shares, TYPE *restrict x) {                         \
        const int64_t n = s->n, stride = s->stride;                                                \
        for (int64_t i = 0; s->step && i < n; i++)                                                 \
            x[i * stride] += shares[i];                                                            \
        for (int64_t i = 0; !s->step && i < n; i++)                                                \
            x[i * stride] += *shares;                                                              \
    }                                                                                              \
    static void spread_##NAME(const pool_job *job, int64_t plane) {                                \
        const TYPE *y = (const TYPE *)job->from + plane * job->outputs;                            \
        TYPE *x = (TYPE *)job->to + plane * job->places, shares[STRETCH];                          \
        memset(x, 0, (size_t)job->places * sizeof *x);                                             \
        FOR_PIECES(const double ab = (double)(a->elements * b->elements);                          \
                   for (int64_t o = 0; o < n; o++) shares[o] =                                     \
                       (TYPE)((double)y[at + o] / (ab * job->elements[k + o])),                    \
                   add_##NAME(s, shares + s->output - k, x + place), (void)0)                      \
    }                                                                                              \
    /* max_pool's vjp: `from` has the gradient of y, and `to` becomes the gradient of x. */        \
    static void max_vjp_##NAME(const pool_job *job, int64_t plane) {                               \
        const TYPE *dy = (const TYPE *)job->from + plane * job->outputs;                           \
        const int64_t *index = job->indices + plane * job->outputs;                                \
        TYPE *dx = (TYPE *)job->to + plane * job->places;                                          \
        memset(dx, 0, (size_t)job->places * sizeof *dx);                                           \
        for (int64_t i = 0; i < job->outputs; i++)                                                 \
            if (index[i] < job->places) /* an empty window has a place beyond the plane */         \
                dx[index[i]] += dy[i];                                                             \
    }

KERNELS(f32, float)
KERNELS(f64, double)

enum { MOST_LANES = 16 };

/* keep_f32 by vectors. The kernel writes whole vectors of places, so the places of the `after`
 * outputs behind the stretch are saved and restored. */
static void keep_by_vectors(const stretch *s, const float *x, int64_t place, float *most,
                            int32_t *best, int64_t after) {
    int32_t held[MOST_LANES];
    if (s->n == 0)
        return;
    const size_t bytes = (size_t)wg__smaller(after, MOST_LANES) * sizeof *held;
    memcpy(held, best + s->n, bytes);
    wg__simd_for(WG_F32)->rows.max_pool_step(s->n, s->stride, x, (int32_t)place, most, best);
    memcpy(best + s->n, held, bytes);
}

/* max_f32 by vectors of outputs, with places in 32 bits. */
static void max_by_vectors(const pool_job *job, int64_t plane) {
    const float *x = (const float *)job->from + plane * job->places;
    float *y = (float *)job->to + plane * job->outputs;
    int64_t *index = job->indices + plane * job->outputs;
    int32_t best[STRETCH + MOST_LANES];
    if (job->axes[2].adaptive || job->places > INT32_MAX) {
        max_f32(job, plane);
        return;
    }
    FOR_PIECES(
        const int64_t row = (a->begin * job->axes[1].size + b->begin) * job->axes[2].size;
        for (int64_t o = 0; o < n; o++) {
            y[at + o] = -INFINITY;
            best[o] = (int32_t)(row + job->begins[k + o]);
        },
        keep_by_vectors(s, x + place, place, y + at + s->output - k, best + s->output - k,
                        n - (s->output - k) - s->n),
        for (int64_t o = 0; o < n; o++) index[at + o] = best[o])
}

static void run_planes(int64_t begin, int64_t end, void *context) {
    const pool_job *job = context;
    for (int64_t plane = begin; plane < end; plane++)
        job->kernel(job, plane);
}

/* Runs a kernel on all planes of images like x with outputs like y. The kernel reads `source` and
 * writes to[0]. max_pool also writes the indices to[1], and its vjp reads them. */
static int run(wg_call *call, const wg_spec *x, const wg_spec *y, wg_tensor *source,
               plane_kernel f32, plane_kernel f64, wg_tensor *const *to) {
    const pool_options *options = call->options;
    const int first = x->ndim - options->rank;
    pool_job job = {.planes = wg__shape_count(first, x->shape), .places = 1, .outputs = 1};
    wg_tensor *from = wg_contiguous(source);
    int64_t count = 0;
    if (!from)
        return -1;
    for (int i = AXES - 1, axis = options->rank - 1; i >= 0; i--, axis--) {
        job.axes[i] = axis < 0 ? (pool_axis){1, 1, 1, 1, 0, 1, false}
                               : (pool_axis){x->shape[first + axis], y->shape[first + axis],
                                             options->kernel[axis],  options->stride[axis],
                                             options->padding[axis], options->dilation[axis],
                                             options->adaptive};
        job.places *= job.axes[i].size;
        job.outputs *= job.axes[i].count;
        count += job.axes[i].count;
    }
    const pool_axis *last = &job.axes[AXES - 1];
    job.piece = last->adaptive ? STRETCH : last->kernel;
    job.stretch_count = last->adaptive
                            ? last->count
                            : wg__times(wg__ceil_divide(last->count, STRETCH), last->kernel);
    window *windows = wg__alloc_array(count + 1, sizeof *windows);
    job.elements = wg__alloc_array(last->count + 1, sizeof *job.elements);
    job.begins = wg__alloc_array(last->count + 1, sizeof *job.begins);
    job.stretches = wg__alloc_array(job.stretch_count + 1, sizeof *job.stretches);
    const bool ready = windows && job.elements && job.begins && job.stretches;
    if (ready) {
        window *next = windows;
        for (int axis = 0; axis < AXES; axis++) {
            job.windows[axis] = next;
            for (int64_t i = 0; i < job.axes[axis].count; i++, next++) {
                *next = window_of(&job.axes[axis], i, options->exclude_padding);
                if (options->divisor)
                    next->elements = axis == AXES - 1 ? options->divisor : 1;
            }
        }
        for (int64_t i = 0; i < last->count; i++) {
            job.elements[i] = (double)job.windows[AXES - 1][i].elements;
            job.begins[i] = job.windows[AXES - 1][i].begin;
        }
        for (int64_t i = 0; i < job.stretch_count; i++)
            job.stretches[i] = stretch_of(last, i);
        job.from = wg__tensor_address(from);
        job.to = wg__tensor_address(to[0]);
        job.indices = call->output_count > 1 ? wg__tensor_address(to[1]) : NULL;
        job.kernel = x->dtype == WG_F32 ? f32 : f64;
        wg__parallel_for(job.planes, 1 + WG__GRAIN / (1 + job.places + job.outputs), run_planes,
                         &job);
    }
    wg__free(windows);
    wg__free(job.elements);
    wg__free(job.begins);
    wg__free(job.stretches);
    return ready ? 0 : -1;
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

/* ---- avg_pool: y = the mean of each window. Its adjoint avg_pool_input spreads g evenly over the
 * window. Both are linear, and each is the vjp of its adjoint. ---- */

static const wg_op avg_pool[AXES], avg_pool_input[AXES];

/* Both ops; the infer function tells them apart, also in copies of a record. */
static int avg_pool_forward(wg_call *call) {
    const wg_spec *from = &call->input_specs[0], *to = &call->output_specs[0];
    return call->op->infer == pool_input_infer
               ? run(call, to, from, call->inputs[0], spread_f32, spread_f64, call->outputs)
               : run(call, from, to, call->inputs[0], mean_f32, mean_f64, call->outputs);
}

static int avg_pool_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    pool_options options = *(const pool_options *)call->options;
    const bool to_x = call->op->infer == pool_input_infer;
    const wg_spec *wanted = &call->input_specs[0];
    memcpy(to_x ? options.count : options.size, wanted->shape + wanted->ndim - options.rank,
           (size_t)options.rank * sizeof *wanted->shape);
    gradients[0] = wg_apply_one(&(to_x ? avg_pool : avg_pool_input)[options.rank - 1], 1,
                                cotangents, &options);
    return wg__vjp_status();
}

typedef struct example {
    int64_t leading[2]; /* images and channels */
    pool_options options;
} example;

enum { EXAMPLES = 4 };

/* The last example of each rank is for benchmarks: 2^22 elements, in windows that overlap. */
static const example examples[AXES][EXAMPLES + 1] = {
    {{{2, 2}, {1, .kernel = {2}, .stride = {2}, .dilation = {1}, .size = {5}, .count = {2}}},
     {{1, 2},
      {1, .ceil_mode = true, .kernel = {3}, .stride = {2}, .padding = {1}, .dilation = {1},
       .size = {6}, .count = {4}}},
     {{1, 3},
      {1, .exclude_padding = true, .kernel = {2}, .stride = {1}, .padding = {1}, .dilation = {1},
       .size = {4}, .count = {5}}},
     {{2, 1}, {1, .adaptive = true, .size = {5}, .count = {3}}},
     {{16, 64},
      {1, .kernel = {3}, .stride = {2}, .padding = {1}, .dilation = {1}, .size = {4096},
       .count = {2048}}}},
    {{{1, 2},
      {2, .kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}, .size = {4, 5}, .count = {2, 2}}},
     {{1, 2},
      {2, .ceil_mode = true, .kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 0},
       .dilation = {1, 1}, .size = {4, 4}, .count = {3, 2}}},
     {{2, 1},
      {2, .exclude_padding = true, .kernel = {2, 3}, .stride = {1, 1}, .padding = {1, 1},
       .dilation = {1, 1}, .size = {3, 2}, .count = {4, 2}}},
     {{1, 2}, {2, .adaptive = true, .size = {3, 4}, .count = {2, 3}}},
     {{4, 64},
      {2, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .dilation = {1, 1},
       .size = {128, 128}, .count = {64, 64}}}},
    {{{1, 2},
      {3, .kernel = {2, 1, 2}, .stride = {1, 1, 2}, .dilation = {1, 1, 1}, .size = {2, 2, 4},
       .count = {1, 2, 2}}},
     {{1, 1},
      {3, .ceil_mode = true, .kernel = {2, 2, 2}, .stride = {2, 2, 1}, .padding = {1, 0, 1},
       .dilation = {1, 1, 1}, .size = {3, 3, 1}, .count = {2, 2, 2}}},
     {{1, 2},
      {3, .divisor = 3, .kernel = {1, 2, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1},
       .size = {2, 3, 2}, .count = {2, 2, 2}}},
     {{1, 1}, {3, .adaptive = true, .size = {3, 2, 3}, .count = {2, 1, 2}}},
     {{4, 32},
      {3, .kernel = {2, 2, 2}, .stride = {2, 2, 2}, .dilation = {1, 1, 1}, .size = {32, 32, 32},
       .count = {16, 16, 16}}}}};

static int make_sample(int index, int rank, bool of_input, wg__sampler make,
                       wg_generator *generator, wg_sample *sample) {
    const example *e = &examples[rank - 1][index];
    int64_t shape[2 + AXES] = {e->leading[0], e->leading[1]};
    memcpy(shape + 2, of_input ? e->options.count : e->options.size, sizeof e->options.size);
    sample->options = &e->options;
    wg_tensor *x = make(generator, 2 + rank, shape);
    sample->inputs[0] = index == EXAMPLES ? wg_cast(x, WG_F32) : x;
    return wg__sample_status(sample, 1);
}

/* NAME1d_sample and so on, and NAME1d_bench, for each number of axes. */
#define SAMPLES_OF(NAME, RANK, OF_INPUT, MAKE)                                                     \
    static int NAME##RANK##d_sample(int index, wg_generator *generator, wg_sample *sample) {       \
        return index < EXAMPLES ? make_sample(index, RANK, OF_INPUT, MAKE, generator, sample) : 0; \
    }                                                                                              \
    static int NAME##RANK##d_bench(wg_generator *generator, wg_sample *sample) {                   \
        return make_sample(EXAMPLES, RANK, OF_INPUT, MAKE, generator, sample);                     \
    }
#define SAMPLES(NAME, OF_INPUT, MAKE)                                                              \
    SAMPLES_OF(NAME, 1, OF_INPUT, MAKE)                                                            \
    SAMPLES_OF(NAME, 2, OF_INPUT, MAKE)                                                            \
    SAMPLES_OF(NAME, 3, OF_INPUT, MAKE)

SAMPLES(max_pool, false, wg__sample_distinct)
SAMPLES(avg_pool, false, wg__sample_normal)
SAMPLES(avg_pool_input, true, wg__sample_normal)

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
#define LINEAR(NAME, INFER, TITLE, RANK, DOC)                                                      \
    {                                                                                              \
        WG__OP(TITLE, 1, DOC), .options_size = sizeof(pool_options), .differentiable = 1,          \
                               .infer = INFER, .forward = avg_pool_forward, .vjp = avg_pool_vjp,   \
                               .jvp = wg_jvp_linear, .sample = NAME##RANK##d_sample,               \
                               .batch = wg__batch_folded, .bench = NAME##RANK##d_bench,            \
    }
#define AVG_POOL(RANK, AXES_OF)                                                                    \
    LINEAR(avg_pool, pool_infer, "avg_pool" #RANK "d", RANK,                                       \
           "y = the mean of each window: (N, C, " AXES_OF ") -> (N, C, windows).")
#define AVG_POOL_INPUT(RANK, AXES_OF)                                                              \
    LINEAR(avg_pool_input, pool_input_infer, "avg_pool" #RANK "d_input", RANK,                     \
           "The gradient of the input of avg_pool" #RANK                                           \
           "d: each number is spread evenly over its window, (N, C, windows) -> (N, C, " AXES_OF   \
           ").")

static const wg_op max_pool[AXES] = {MAX_POOL(1, "L"), MAX_POOL(2, "H, W"), MAX_POOL(3, "D, H, W")};
static const wg_op avg_pool[AXES] = {AVG_POOL(1, "L"), AVG_POOL(2, "H, W"), AVG_POOL(3, "D, H, W")};
static const wg_op avg_pool_input[AXES] = {AVG_POOL_INPUT(1, "L"), AVG_POOL_INPUT(2, "H, W"),
                                           AVG_POOL_INPUT(3, "D, H, W")};

/* Runs the op with the caller's options, with defaults for zeros. Rejects options that max or mean
 * pooling does not have. */
static int pool(bool mean, wg_tensor *x, const wg_pool_options *given, wg_tensor **outputs) {
    static const wg_pool_options none;
    given = given ? given : &none;
    int rank = AXES; /* up to the last size of the kernel */
    while (rank > 0 && given->kernel[rank - 1] == 0)
        rank--;
    if (rank == 0)
        return wg_fail(WG_ERROR_ARGUMENT, mean ? "avg_pool" : "max_pool",
                       "there is no kernel; wanted the size of a window along 1 to %d axes", AXES);
    const wg_op *op = mean ? &avg_pool[rank - 1] : &max_pool[rank - 1];
    pool_options options = {.rank = rank,
                            .ceil_mode = given->ceil_mode,
                            .exclude_padding = given->exclude_padding,
                            .divisor = given->divisor_override};
    if (!mean && (given->exclude_padding || given->divisor_override != 0))
        return wg_fail(WG_ERROR_ARGUMENT, op->name,
                       "exclude_padding and divisor_override go with avg_pool%dd alone", rank);
    for (int i = 0; i < rank; i++) {
        options.kernel[i] = given->kernel[i];
        options.stride[i] = given->stride[i] == 0 ? given->kernel[i] : given->stride[i];
        options.padding[i] = given->padding[i];
        options.dilation[i] = given->dilation[i] == 0 ? 1 : given->dilation[i];
        if (mean && options.dilation[i] != 1)
            return wg_fail(WG_ERROR_ARGUMENT, op->name, "dilation goes with max_pool%dd alone",
                           rank);
    }
    return wg__apply_wide(op, 1, &x, false, &options, outputs);
}

static int adaptive_pool(bool mean, wg_tensor *x, int rank, const int64_t *size,
                         wg_tensor **outputs) {
    pool_options options = {.rank = rank, .adaptive = true};
    if (rank < 1 || rank > AXES)
        return wg_fail(WG_ERROR_ARGUMENT, mean ? "adaptive_avg_pool" : "adaptive_max_pool",
                       "%d sizes; wanted 1 to %d, one a spatial axis", rank, AXES);
    memcpy(options.count, size, (size_t)rank * sizeof *size);
    return wg__apply_wide(mean ? &avg_pool[rank - 1] : &max_pool[rank - 1], 1, &x, false, &options,
                          outputs);
}

wg_tensor *wg_max_pool(wg_tensor *x, const wg_pool_options *options, wg_tensor **indices) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    wg__give(pool(false, x, options, outputs), outputs, NULL, indices);
    return outputs[0];
}

wg_tensor *wg_avg_pool(wg_tensor *x, const wg_pool_options *options) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    pool(true, x, options, outputs);
    return outputs[0];
}

wg_tensor *wg_adaptive_max_pool(wg_tensor *x, int axis_count, const int64_t *size,
                                wg_tensor **indices) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    wg__give(adaptive_pool(false, x, axis_count, size, outputs), outputs, NULL, indices);
    return outputs[0];
}

wg_tensor *wg_adaptive_avg_pool(wg_tensor *x, int axis_count, const int64_t *size) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    adaptive_pool(true, x, axis_count, size, outputs);
    return outputs[0];
}

const wg__op_table wg__ops_pool =
    WG__OP_TABLE(&max_pool[0], &max_pool[1], &max_pool[2], &avg_pool[0], &avg_pool[1], &avg_pool[2],
                 &avg_pool_input[0], &avg_pool_input[1], &avg_pool_input[2]);
