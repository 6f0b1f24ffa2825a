/* Reductions over axes: what the reducing families share. reduction.c has the engine.
 *
 * The axes of an operand are seen in the order of memory, and the places along the kept ones are
 * cut into blocks:
 *
 *                last axis -->
 *     kept    +---------+---------+-----+
 *     axes    | block 0 | block 1 |  2  |     the last axis is the one of the smallest stride
 *       |     +---------+---------+-----+
 *       v     | block 3 | block 4 |  5  |
 *             +---------+---------+-----+
 *
 * The cut depends on shape and strides alone, so any number of threads gives the same bits. */
#ifndef WG_TENSOR_OPS_REDUCE_REDUCTION_H
#define WG_TENSOR_OPS_REDUCE_REDUCTION_H

#include "tensor/ops/support.h"
#include "tensor/internal.h"

/* ---- Axes and blocks ---- */

/* Places of a block, at most: their accumulators stay in the first-level cache, and a row is long
 * enough for prefetching. */
#define WG__BLOCK_WIDTH 1024

/* Rows of fewer places are not worth a call each. */
#define WG__SHORT_ROW 8

/* Items that the work of few blocks is cut into, at most: enough for any number of threads. */
#define WG__MAX_ITEMS 64

typedef struct wg__stepped_axis {
    int64_t size;
    int64_t in, out; /* strides, in elements, of the operand and of the output */
} wg__stepped_axis;

/* Neighbours that one stride can walk are merged; no axis has size 1 unless it is the only one. */
typedef struct wg__axes {
    int count;                          /* at least 1 */
    wg__stepped_axis axis[WG_MAX_DIMS]; /* the smallest stride in the operand last */
} wg__axes;

/* The axes of x that are not in the mask, with the strides of a contiguous output of their shape;
 * and those that are, with 0. */
wg__axes wg__axes_kept(const wg_tensor *x, int64_t mask);
wg__axes wg__axes_reduced(const wg_tensor *x, int64_t mask);

static inline const wg__stepped_axis *wg__axes_last(const wg__axes *axes) {
    return &axes->axis[axes->count - 1];
}

/* The product of the sizes. */
int64_t wg__axes_count(const wg__axes *axes);

typedef struct wg__blocks {
    wg__axes kept;
    int64_t width;   /* of a block, unless its row ends before */
    int64_t per_row; /* blocks along the last axis */
    int64_t count;
} wg__blocks;

/* Cuts the axes into blocks of that width; none of them has size 0. */
void wg__blocks_cut(wg__blocks *blocks, int64_t width);

/* A block: its number of places along the last axis, and the offsets of the first. */
typedef struct wg__block {
    int64_t width, in, out;
} wg__block;

wg__block wg__block_at(const wg__blocks *blocks, int64_t index);

/* ---- Kernels ---- */

/* The kernels of one reduction of one dtype. Accumulators are arrays of a type that they know, of
 * at most 8 bytes. */
typedef struct wg__reduction {
    size_t size; /* of an accumulator */

    /* Sets accumulators to the neutral value. */
    void (*start)(int64_t count, void *to);

    /* Joins one element into each of `count` accumulators; the elements are `stride` apart. */
    void (*add_row)(int64_t count, void *to, const void *x, int64_t stride);

    /* Joins `count` elements, `stride` apart, into one accumulator. */
    void (*add_run)(int64_t count, void *to, const void *x, int64_t stride);

    /* Joins other accumulators into these. */
    void (*join)(int64_t count, void *to, const void *from);

    /* Writes them as elements of the output, `stride` apart. */
    void (*finish)(int64_t count, const void *from, void *y, int64_t stride);
} wg__reduction;

/* Independent accumulators of a run of elements: enough that compilers make a vector loop of them
 * instead of unrolling it. */
#define WG__LANES 32

/* The kernels NAME: elements of TYPE are read by READ into accumulators of ACCUMULATOR, which begin
 * as NEUTRAL, are joined by the expression JOIN in a and b, and leave by WRITE as OUTPUT. */
#define WG__REDUCTION(NAME, TYPE, READ, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT, WRITE)                 \
    static inline ACCUMULATOR NAME##_joined(ACCUMULATOR a, ACCUMULATOR b) {                        \
        return JOIN;                                                                               \
    }                                                                                              \
    static inline ACCUMULATOR NAME##_run_at(const TYPE *x, int64_t n, int64_t stride) {            \
        ACCUMULATOR lanes[WG__LANES];                                                              \
        for (int l = 0; l < WG__LANES; l++)                                                        \
            lanes[l] = NEUTRAL;                                                                    \
        int64_t i = 0;                                                                             \
        for (; i + WG__LANES <= n; i += WG__LANES)                                                 \
            for (int l = 0; l < WG__LANES; l++)                                                    \
                lanes[l] = NAME##_joined(lanes[l], (ACCUMULATOR)READ(x[(i + l) * stride]));        \
        for (; i < n; i++)                                                                         \
            lanes[i % WG__LANES] =                                                                 \
                NAME##_joined(lanes[i % WG__LANES], (ACCUMULATOR)READ(x[i * stride]));             \
        for (int half = WG__LANES / 2; half > 0; half /= 2)                                        \
            for (int l = 0; l < half; l++)                                                         \
                lanes[l] = NAME##_joined(lanes[l], lanes[l + half]);                               \
        return lanes[0];                                                                           \
    }                                                                                              \
    static void NAME##_run(int64_t count, void *to, const void *x, int64_t stride) {               \
        ACCUMULATOR *total = to;                                                                   \
        *total = NAME##_joined(*total, stride == 1 ? NAME##_run_at(x, count, 1)                    \
                                                   : NAME##_run_at(x, count, stride));             \
    }                                                                                              \
    static inline void NAME##_row_at(ACCUMULATOR *restrict to, const TYPE *x, int64_t n,           \
                                     int64_t stride) {                                             \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = NAME##_joined(to[i], (ACCUMULATOR)READ(x[i * stride]));                        \
    }                                                                                              \
    static void NAME##_row(int64_t count, void *to, const void *x, int64_t stride) {               \
        if (stride == 1)                                                                           \
            NAME##_row_at(to, x, count, 1);                                                        \
        else                                                                                       \
            NAME##_row_at(to, x, count, stride);                                                   \
    }                                                                                              \
    static void NAME##_start(int64_t count, void *to) {                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            ((ACCUMULATOR *)to)[i] = NEUTRAL;                                                      \
    }                                                                                              \
    static void NAME##_join(int64_t count, void *to, const void *from) {                           \
        for (int64_t i = 0; i < count; i++)                                                        \
            ((ACCUMULATOR *)to)[i] =                                                               \
                NAME##_joined(((ACCUMULATOR *)to)[i], ((const ACCUMULATOR *)from)[i]);             \
    }                                                                                              \
    static void NAME##_finish(int64_t count, const void *from, void *y, int64_t stride) {          \
        for (int64_t i = 0; i < count; i++)                                                        \
            ((OUTPUT *)y)[i * stride] = (OUTPUT)WRITE(((const ACCUMULATOR *)from)[i]);             \
    }

#define WG__KERNELS(NAME, ACCUMULATOR)                                                             \
    { sizeof(ACCUMULATOR), NAME##_start, NAME##_row, NAME##_run, NAME##_join, NAME##_finish }

/* NAME_forward from the kernels NAME_f32, NAME_f64, NAME_bf16 and so on, whose accumulators have
 * these types; that of bf16 has the type of f32's. Bools are read as u8. */
#define WG__REDUCE_FORWARD(NAME, F32, F64, I32, I64, U8)                                           \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const wg__reduction kernels[WG_DTYPE_COUNT] = {                                     \
            [WG_F32] = WG__KERNELS(NAME##_f32, F32),   [WG_F64] = WG__KERNELS(NAME##_f64, F64),    \
            [WG_BF16] = WG__KERNELS(NAME##_bf16, F32), [WG_I32] = WG__KERNELS(NAME##_i32, I32),    \
            [WG_I64] = WG__KERNELS(NAME##_i64, I64),   [WG_U8] = WG__KERNELS(NAME##_u8, U8),       \
            [WG_BOOL] = WG__KERNELS(NAME##_u8, U8)};                                               \
        return wg__reduce_call(call, kernels);                                                     \
    }

/* Each element of y, contiguous, becomes the reduction of x over the axes of the mask. -1 for lack
 * of memory. */
int wg__reduce(const wg__reduction *kernels, const wg_tensor *x, int64_t mask, wg_tensor *y);

/* ---- Records ---- */

/* The options of every reduction begin with these. */
typedef struct wg__reduce_options {
    int64_t mask; /* of the axes that are reduced */
    bool keepdim;
} wg__reduce_options;

/* Options from the arguments of a public function; false if x is NULL, or after an error. */
bool wg__reduce_options_make(wg__reduce_options *options, const wg_tensor *x, int axis_count,
                             const int64_t *axes, bool keepdim, const char *where);

/* The options of a call, and the number of elements that each element of its output is made of. */
const wg__reduce_options *wg__reduce_options_of(const wg_call *call);
int64_t wg__reduced_count(const wg_spec *x, int64_t mask);

/* All axes, those that are reduced last: fills `order` and returns how many are kept. */
int wg__reduced_last(int ndim, int64_t mask, int64_t *order);

/* Output 0 has the reduced shape and that dtype. */
int wg__infer_reduced(wg_call *call, wg_dtype dtype);

/* wg__infer_reduced with the dtype of input 0 if it is a float, else i64. */
int wg__infer_total(wg_call *call);

/* Runs the kernels of input 0's dtype into output 0. */
int wg__reduce_call(wg_call *call, const wg__reduction *kernels);

/* A tensor of the output's shape with the reduced axes put back as 1. */
wg_tensor *wg__with_axes(wg_tensor *reduced, const wg_call *call);

/* x summed over the axes of a call, as that call keeps them. */
wg_tensor *wg__sum_over(wg_tensor *x, const wg_call *call);

/* The vjp and the jvp of a reduction from the derivative of its output by each element of input 0,
 * a tensor of that input's shape. NULL, after an error, gives -1. */
int wg__vjp_by_derivative(const wg_call *call, wg_tensor *derivative, wg_tensor *const *cotangents,
                          wg_tensor **gradients);
int wg__jvp_by_derivative(const wg_call *call, wg_tensor *derivative, wg_tensor *const *tangents,
                          wg_tensor **output_tangents);

/* Defines NAME_vjp and NAME_jvp from that derivative, an expression in `call`. */
#define WG__DERIVATIVES_BY(NAME, DERIVATIVE)                                                       \
    static int NAME##_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {    \
        return wg__vjp_by_derivative(call, DERIVATIVE, cotangents, gradients);                     \
    }                                                                                              \
    static int NAME##_jvp(wg_call *call, wg_tensor *const *tangents,                               \
                          wg_tensor **output_tangents) {                                           \
        return wg__jvp_by_derivative(call, DERIVATIVE, tangents, output_tangents);                 \
    }

/* How tied elements share a gradient: 1 / n for each of the n chosen elements of input 0 that are
 * reduced to one output, 0 elsewhere. */
wg_tensor *wg__shares_of(wg_tensor *chosen, const wg_call *call);

/* Runs an op whose options are wg__reduce_options: the whole of wg_sum and its like. */
wg_tensor *wg__reduce_apply(const wg_op *op, wg_tensor *x, int axis_count, const int64_t *axes,
                            bool keepdim);

/* The members that the records of reductions share. */
#define WG__REDUCTION_OP(NAME, DOC)                                                                \
    WG__OP(NAME, 1, DOC), .options_size = sizeof(wg__reduce_options),                              \
                          .batch = wg__batch_reduction, .bench = wg__bench_reduction,              \
                          .flops = wg__reduce_flops

/* The public function of a reduction with that record. */
#define WG__REDUCTION_FUNCTION(NAME, OP)                                                           \
    wg_tensor *wg_##NAME(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {        \
        return wg__reduce_apply(&OP, x, axis_count, axes, keepdim);                                \
    }

double wg__reduce_flops(const wg_call *call);

/* Samples of distinct values, for records whose options are wg__reduce_options: some axes, with and
 * without keepdim, and scalars. */
int wg__sample_reduction(int index, wg_generator *generator, wg_sample *sample);

/* Case `index` of these samples: its options, rank and shape; NULL after the last. */
typedef struct wg__reduction_case {
    wg__reduce_options options;
    int ndim;
    int64_t shape[3];
} wg__reduction_case;
const wg__reduction_case *wg__reduction_case_at(int index);

/* The rows of a large matrix. */
int wg__bench_reduction(wg_generator *generator, wg_sample *sample);

#endif
