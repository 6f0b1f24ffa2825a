/* Reductions over axes: sum, max, min and argmax; mean, var and sum_to are made of them.
 *
 * A reduction sees its operand as kept axes by reduced axes, each group sorted and merged so that
 * the smallest stride comes last. The work is cut into items:
 *
 *               reduced axes -->
 *     kept    +--------+--------+--------+
 *     axes    | item 0 | item 1 | item 2 |   a block of kept places by a part of the reduced axes;
 *       |     +--------+--------+--------+   there are several parts only where blocks are few
 *       v     | item 3 | item 4 | item 5 |
 *             +--------+--------+--------+
 *
 * and the parts of a block are joined from left to right. The cut depends on the shape alone, so
 * any number of threads gives the same bits. Sums of f32 and bf16 accumulate in f64, which keeps up
 * with memory and leaves one rounding, at the end. */
#include "tensor/convert.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/families.h"

#include <math.h>
#include <string.h>

/* Kept places of one item, at most: their accumulators stay in the first-level cache, and a row of
 * them is long enough to be fetched ahead. */
#define MAX_BLOCK 1024

/* Independent accumulators of a run of elements: enough that compilers make a vector loop of them
 * instead of unrolling it. */
#define LANES 32

/* A row is worth a call from that many accumulators on, a run from that many elements. */
#define SHORT_ROW 8
#define SHORT_RUN 16

/* Items that a reduction of few blocks is cut into, at most: enough for any number of threads. */
#define MAX_ITEMS 64

/* ---- Kernels: one set for each reduction and dtype. Accumulators are arrays of a type that the
 * kernel knows, of at most 8 bytes. ---- */

typedef struct kernel {
    size_t size; /* of an accumulator */

    /* Sets accumulators to the neutral value. */
    void (*start)(int64_t count, void *to);

    /* Joins one element, `stride` from the last, into each of `count` accumulators. */
    void (*add_row)(int64_t count, void *to, const void *x, int64_t stride);

    /* Joins `count` elements, `stride` apart, into one accumulator. */
    void (*add_run)(int64_t count, void *to, const void *x, int64_t stride);

    /* Joins other accumulators into these. */
    void (*join)(int64_t count, void *to, const void *from);

    /* Writes them as elements of the output, `stride` apart. */
    void (*finish)(int64_t count, const void *from, void *y, int64_t stride);
} kernel;

/* The kernels NAME: elements of TYPE are read by READ into accumulators of ACCUMULATOR, which begin
 * as NEUTRAL, are joined by the expression JOIN in a and b, and leave by WRITE as OUTPUT. */
#define REDUCTION(NAME, TYPE, READ, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT, WRITE)                     \
    static inline ACCUMULATOR NAME##_joined(ACCUMULATOR a, ACCUMULATOR b) {                        \
        return JOIN;                                                                               \
    }                                                                                              \
    static inline ACCUMULATOR NAME##_run_at(const TYPE *x, int64_t n, int64_t stride) {            \
        ACCUMULATOR lanes[LANES];                                                                  \
        for (int l = 0; l < LANES; l++)                                                            \
            lanes[l] = NEUTRAL;                                                                    \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int l = 0; l < LANES; l++)                                                        \
                lanes[l] = NAME##_joined(lanes[l], (ACCUMULATOR)READ(x[(i + l) * stride]));        \
        for (; i < n; i++)                                                                         \
            lanes[i % LANES] = NAME##_joined(lanes[i % LANES], (ACCUMULATOR)READ(x[i * stride]));  \
        for (int half = LANES / 2; half > 0; half /= 2)                                            \
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

#define KERNEL(NAME, ACCUMULATOR)                                                                  \
    { sizeof(ACCUMULATOR), NAME##_start, NAME##_row, NAME##_run, NAME##_join, NAME##_finish }

static inline int64_t magnitude(int64_t x) {
    return x < 0 ? -x : x;
}

static inline uint16_t to_bf16(double x) {
    return wg__f32_to_bf16((float)x);
}

/* ---- The plan ---- */

typedef struct axis {
    int64_t size;
    int64_t in, out; /* strides, in elements, of the operand and of the output */
} axis;

typedef struct axes {
    int count; /* at least 1 */
    axis axis[WG_MAX_DIMS];
} axes;

typedef struct plan {
    const kernel *kernel;
    axes kept, reduced;
    const char *x;
    size_t x_size; /* bytes of an element */
    char *y;
    size_t y_size;
    bool by_rows;  /* rows of kept places are added up, rather than runs of reduced ones */
    int64_t width; /* kept places of a block, along the last kept axis */
    int64_t blocks_per_row;
    int64_t blocks;
    int64_t parts;
    int split;      /* the reduced axis that is cut into parts */
    char *partials; /* the accumulators of every item, where there are several parts */
} plan;

/* Puts an axis into its place: the larger the stride in the operand, the further out. */
static void insert_axis(axes *axes, axis added) {
    int place = axes->count++;
    for (; place > 0 && magnitude(axes->axis[place - 1].in) < magnitude(added.in); place--)
        axes->axis[place] = axes->axis[place - 1];
    axes->axis[place] = added;
}

/* Joins neighbours that step as one. There is an axis afterwards, be it of size 1. */
static void merge_axes(axes *axes) {
    if (axes->count == 0)
        insert_axis(axes, (axis){.size = 1});
    int last = 0;
    for (int i = 1; i < axes->count; i++) {
        axis *outer = &axes->axis[last], inner = axes->axis[i];
        if (outer->in == inner.in * inner.size && outer->out == inner.out * inner.size) {
            inner.size *= outer->size;
            *outer = inner;
        } else {
            axes->axis[++last] = inner;
        }
    }
    axes->count = last + 1;
}

static int64_t count_of(const axes *axes) {
    int64_t count = 1;
    for (int i = 0; i < axes->count; i++)
        count *= axes->axis[i].size;
    return count;
}

static void plan_axes(plan *plan, const wg_tensor *x, int64_t mask) {
    int64_t out = 1;
    for (int i = x->spec.ndim - 1; i >= 0; i--) {
        const int64_t size = x->spec.shape[i];
        const bool is_reduced = mask >> i & 1;
        if (size != 1)
            insert_axis(is_reduced ? &plan->reduced : &plan->kept,
                        (axis){.size = size, .in = x->strides[i], .out = is_reduced ? 0 : out});
        if (!is_reduced)
            out *= size;
    }
    merge_axes(&plan->kept);
    merge_axes(&plan->reduced);
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* The inner loop goes along the smaller stride, unless it were too short to be worth its name. */
static bool prefers_rows(const axis *kept, const axis *reduced) {
    if (kept->size < SHORT_ROW)
        return false;
    return magnitude(kept->in) < magnitude(reduced->in) || reduced->size < SHORT_RUN;
}

/* Blocks first: of a whole row if rows are added up, else of as many runs as make an item worth
 * its while. Where they are few, the longest reduced axis is cut too. */
static void plan_items(plan *plan) {
    const axis *last = &plan->kept.axis[plan->kept.count - 1];
    const int64_t work = count_of(&plan->reduced); /* for one kept place */
    plan->by_rows = prefers_rows(last, &plan->reduced.axis[plan->reduced.count - 1]);
    plan->width = smaller(last->size, MAX_BLOCK);
    if (!plan->by_rows)
        plan->width = smaller(plan->width, WG__GRAIN / (work + 1) + 1);
    plan->blocks_per_row = (last->size + plan->width - 1) / plan->width;
    plan->blocks = count_of(&plan->kept) / last->size * plan->blocks_per_row;
    for (int i = 1; i < plan->reduced.count; i++)
        if (plan->reduced.axis[i].size > plan->reduced.axis[plan->split].size)
            plan->split = i;
    plan->parts = smaller(work * plan->width / WG__GRAIN, MAX_ITEMS / plan->blocks);
    plan->parts = smaller(plan->parts, plan->reduced.axis[plan->split].size);
    if (plan->parts < 1)
        plan->parts = 1;
}

/* ---- The work ---- */

/* Where a block lies: its places along the last kept axis, and the way to its first. */
typedef struct block {
    int64_t width, in, out;
} block;

static block block_at(const plan *plan, int64_t index) {
    const axes *kept = &plan->kept;
    const axis *last = &kept->axis[kept->count - 1];
    const int64_t begin = index % plan->blocks_per_row * plan->width;
    block block = {smaller(last->size - begin, plan->width), begin * last->in, begin * last->out};
    int64_t rest = index / plan->blocks_per_row;
    for (int i = kept->count - 2; i >= 0; i--) {
        const int64_t place = rest % kept->axis[i].size;
        rest /= kept->axis[i].size;
        block.in += place * kept->axis[i].in;
        block.out += place * kept->axis[i].out;
    }
    return block;
}

/* Reduces `count` elements along the last reduced axis, from x on, into each accumulator. */
static void reduce_last(const plan *plan, int64_t width, int64_t count, const char *x,
                        char *accumulators) {
    const int64_t kept = plan->kept.axis[plan->kept.count - 1].in;
    const int64_t reduced = plan->reduced.axis[plan->reduced.count - 1].in;
    const int64_t size = (int64_t)plan->x_size;
    if (plan->by_rows)
        for (int64_t i = 0; i < count; i++)
            plan->kernel->add_row(width, accumulators, x + i * reduced * size, kept);
    else
        for (int64_t i = 0; i < width; i++)
            plan->kernel->add_run(count, accumulators + i * (int64_t)plan->kernel->size,
                                  x + i * kept * size, reduced);
}

/* Reduces one part of the reduced axes into the accumulators of a block. */
static void reduce_part(const plan *plan, const block *block, int64_t part, char *accumulators) {
    const axes *reduced = &plan->reduced;
    const int last = reduced->count - 1;
    int64_t begin[WG_MAX_DIMS] = {0}, end[WG_MAX_DIMS], index[WG_MAX_DIMS];
    if (count_of(reduced) == 0)
        return;
    for (int i = 0; i <= last; i++)
        end[i] = reduced->axis[i].size;
    const int64_t size = end[plan->split];
    begin[plan->split] = part * size / plan->parts;
    end[plan->split] = (part + 1) * size / plan->parts;
    memcpy(index, begin, sizeof index);
    for (int i = 0; i >= 0;) {
        int64_t offset = block->in;
        for (int k = 0; k <= last; k++)
            offset += index[k] * reduced->axis[k].in;
        reduce_last(plan, block->width, end[last] - begin[last],
                    plan->x + offset * (int64_t)plan->x_size, accumulators);
        for (i = last - 1; i >= 0 && ++index[i] == end[i]; i--)
            index[i] = begin[i];
    }
}

static void finish_block(const plan *plan, const block *block, const void *accumulators) {
    const int64_t stride = plan->kept.axis[plan->kept.count - 1].out;
    plan->kernel->finish(block->width, accumulators, plan->y + block->out * (int64_t)plan->y_size,
                         stride);
}

static char *partials_of(const plan *plan, int64_t item) {
    return plan->partials + item * plan->width * (int64_t)sizeof(double);
}

static void run_items(int64_t begin, int64_t end, void *context) {
    const plan *plan = context;
    for (int64_t item = begin; item < end; item++) {
        const block block = block_at(plan, item / plan->parts);
        double room[MAX_BLOCK];
        char *accumulators = plan->parts > 1 ? partials_of(plan, item) : (char *)room;
        plan->kernel->start(block.width, accumulators);
        reduce_part(plan, &block, item % plan->parts, accumulators);
        if (plan->parts == 1)
            finish_block(plan, &block, accumulators);
    }
}

static void join_parts(const plan *plan) {
    for (int64_t i = 0; i < plan->blocks; i++) {
        const block block = block_at(plan, i);
        char *total = partials_of(plan, i * plan->parts);
        for (int64_t part = 1; part < plan->parts; part++)
            plan->kernel->join(block.width, total, partials_of(plan, i * plan->parts + part));
        finish_block(plan, &block, total);
    }
}

static int reduce(const kernel *kernel, const wg_tensor *x, int64_t mask, wg_tensor *y) {
    plan plan = {.kernel = kernel,
                 .x = wg__tensor_address(x),
                 .x_size = wg_dtype_size(x->spec.dtype),
                 .y = wg__tensor_address(y),
                 .y_size = wg_dtype_size(y->spec.dtype)};
    if (wg__spec_count(&y->spec) == 0)
        return 0;
    plan_axes(&plan, x, mask);
    plan_items(&plan);
    if (plan.parts > 1) {
        plan.partials = wg__alloc((size_t)(plan.blocks * plan.parts * plan.width) * sizeof(double));
        if (plan.partials == NULL)
            return -1;
    }
    const int64_t item_work = count_of(&plan.reduced) * plan.width / plan.parts + 1;
    wg__parallel_for(plan.blocks * plan.parts, WG__GRAIN / item_work + 1, run_items, &plan);
    if (plan.parts > 1)
        join_parts(&plan);
    wg__free(plan.partials);
    return 0;
}

/* ---- What the records share ---- */

typedef struct reduce_options {
    int64_t mask; /* of the axes that are reduced */
    bool keepdim;
} reduce_options;

static bool options_make(reduce_options *options, const wg_tensor *x, int count,
                         const int64_t *axes, bool keepdim, const char *where) {
    if (x == NULL)
        return false;
    options->mask = wg__axis_mask(count, count == 0 ? NULL : axes, x->spec.ndim, where);
    options->keepdim = keepdim;
    return options->mask >= 0;
}

static double reduced_count(const wg_spec *x, int64_t mask) {
    double count = 1;
    for (int i = 0; i < x->ndim; i++)
        if (mask >> i & 1)
            count *= (double)x->shape[i];
    return count;
}

static double flops(const wg_call *call) {
    return (double)wg__spec_count(&call->input_specs[0]);
}

/* A tensor of the output's shape with the reduced axes put back as 1. */
static wg_tensor *with_axes(wg_tensor *reduced, const wg_call *call) {
    wg_spec spec;
    wg__reduced_spec(&call->input_specs[0], ((const reduce_options *)call->options)->mask, true,
                     &spec);
    return wg_reshape(reduced, spec.ndim, spec.shape);
}

/* The same samples for all: 0 for all axes of a matrix, then some axes with and without keepdim. */
static int sample_reduction(int index, wg_generator *generator, wg_sample *sample) {
    static const struct {
        reduce_options options;
        int ndim;
        int64_t shape[3];
    } cases[] = {
        {{3, false}, 2, {2, 3}},    {{2, false}, 2, {2, 3}}, {{5, true}, 3, {2, 3, 2}},
        {{1, false}, 3, {3, 1, 2}}, {{0, false}, 0, {0}},    {{1, true}, 1, {1}},
    };
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    sample->options = &cases[index].options;
    sample->inputs[0] = wg__sample_distinct(generator, cases[index].ndim, cases[index].shape);
    return wg__sample_status(sample, 1);
}

/* The rows of a large matrix. */
static int bench_reduction(wg_generator *generator, wg_sample *sample) {
    static const reduce_options options = {2, false};
    sample->options = &options;
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){4096, 1024});
    return wg__sample_status(sample, 1);
}

/* ---- sum: y = the sum over the axes; integers and bools in i64, wrapping around.   dx = g,
 * repeated along the axes. ---- */

REDUCTION(sum_f32, float, , double, 0, a + b, float, )
REDUCTION(sum_f64, double, , double, 0, a + b, double, )
REDUCTION(sum_bf16, uint16_t, wg__bf16_to_f32, double, 0, a + b, uint16_t, to_bf16)
REDUCTION(sum_i32, int32_t, , uint64_t, 0, a + b, int64_t, )
REDUCTION(sum_i64, int64_t, , uint64_t, 0, a + b, int64_t, )
REDUCTION(sum_u8, uint8_t, , uint64_t, 0, a + b, int64_t, )

static int sum_infer(wg_call *call) {
    const reduce_options *options = call->options;
    wg_spec *out = &call->output_specs[0];
    wg__reduced_spec(&call->input_specs[0], options->mask, options->keepdim, out);
    if (!wg_dtype_is_float(out->dtype))
        out->dtype = WG_I64;
    return 0;
}

static int sum_forward(wg_call *call) {
    static const kernel kernels[WG_DTYPE_COUNT] = {
        [WG_F32] = KERNEL(sum_f32, double),   [WG_F64] = KERNEL(sum_f64, double),
        [WG_BF16] = KERNEL(sum_bf16, double), [WG_I32] = KERNEL(sum_i32, uint64_t),
        [WG_I64] = KERNEL(sum_i64, uint64_t), [WG_U8] = KERNEL(sum_u8, uint64_t),
        [WG_BOOL] = KERNEL(sum_u8, uint64_t)};
    return reduce(&kernels[call->input_specs[0].dtype], call->inputs[0],
                  ((const reduce_options *)call->options)->mask, call->outputs[0]);
}

static int sum_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0];
    gradients[0] = wg_expand(with_axes(cotangents[0], call), x->ndim, x->shape);
    return wg__vjp_status();
}

static const wg_op sum = {
    .name = "sum",
    .doc = "y = the sum over the given axes; integers and bools in i64. f32 accumulates in f64.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(reduce_options),
    .differentiable = 1,
    .infer = sum_infer,
    .forward = sum_forward,
    .vjp = sum_vjp,
    .jvp = wg_jvp_linear,
    .sample = sample_reduction,
    .bench = bench_reduction,
    .flops = flops,
};

wg_tensor *wg_sum(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    reduce_options options;
    if (!options_make(&options, x, axis_count, axes, keepdim, "sum"))
        return NULL;
    return wg_apply_one(&sum, 1, &x, &options);
}

/* Mean and variance are made of sums; those of bf16 are computed in f32 and rounded once. */

static wg_tensor *mean(wg_tensor *x, const reduce_options *options) {
    const double n = reduced_count(&x->spec, options->mask);
    wg_tensor *total = wg_apply_one(&sum, 1, &x, options);
    return wg_affine(total, n > 0 ? 1 / n : INFINITY, 0); /* of nothing: 0 inf, NaN */
}

/* Two passes, as stable as it gets: the mean first, then the squares of what is left. */
static wg_tensor *variance(wg_tensor *x, const reduce_options *options, double correction) {
    const double n = reduced_count(&x->spec, options->mask) - correction;
    wg_tensor *center = mean(x, &(reduce_options){.mask = options->mask, .keepdim = true});
    wg_tensor *squares = wg_pow_scalar(wg_sub(x, center), 2);
    wg_tensor *total = wg_apply_one(&sum, 1, &squares, options);
    return wg_affine(total, n > 0 ? 1 / n : INFINITY, 0);
}

/* The floating dtype of the result, and the operand in the one to compute in. */
static wg_tensor *widened(wg_tensor *x, wg_dtype *dtype) {
    *dtype = wg_dtype_is_float(x->spec.dtype) ? x->spec.dtype : WG_F32;
    return *dtype == x->spec.dtype && *dtype != WG_BF16 ? x : wg_cast(x, WG_F32);
}

static wg_tensor *narrowed(wg_tensor *y, wg_dtype dtype) {
    return y == NULL || y->spec.dtype == dtype ? y : wg_cast(y, dtype);
}

wg_tensor *wg_mean(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    reduce_options options;
    wg_dtype dtype;
    if (!options_make(&options, x, axis_count, axes, keepdim, "mean"))
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *wide = widened(x, &dtype);
    return wg_scope_end(&scope, wide == NULL ? NULL : narrowed(mean(wide, &options), dtype));
}

wg_tensor *wg_var(wg_tensor *x, int axis_count, const int64_t *axes, double correction,
                  bool keepdim) {
    reduce_options options;
    wg_dtype dtype;
    if (!options_make(&options, x, axis_count, axes, keepdim, "var"))
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *wide = widened(x, &dtype);
    wg_tensor *y = wide == NULL ? NULL : variance(wide, &options, correction);
    return wg_scope_end(&scope, narrowed(y, dtype));
}

/* ---- max, min: y = the largest, the smallest over the axes; NaN if there is one.   dx = g shared
 * evenly among the elements equal to y. Kinks where there are ties. ---- */

/* NaN is the only number that differs from itself; once it is there, no comparison moves it. */
#define LARGER ((b > a) | (b != b)) ? b : a
#define SMALLER ((b < a) | (b != b)) ? b : a

REDUCTION(max_f32, float, , float, -INFINITY, LARGER, float, )
REDUCTION(max_f64, double, , double, -INFINITY, LARGER, double, )
REDUCTION(max_bf16, uint16_t, wg__bf16_to_f32, float, -INFINITY, LARGER, uint16_t, wg__f32_to_bf16)
REDUCTION(max_i32, int32_t, , int32_t, INT32_MIN, b > a ? b : a, int32_t, )
REDUCTION(max_i64, int64_t, , int64_t, INT64_MIN, b > a ? b : a, int64_t, )
REDUCTION(max_u8, uint8_t, , uint8_t, 0, b > a ? b : a, uint8_t, )

REDUCTION(min_f32, float, , float, INFINITY, SMALLER, float, )
REDUCTION(min_f64, double, , double, INFINITY, SMALLER, double, )
REDUCTION(min_bf16, uint16_t, wg__bf16_to_f32, float, INFINITY, SMALLER, uint16_t, wg__f32_to_bf16)
REDUCTION(min_i32, int32_t, , int32_t, INT32_MAX, b < a ? b : a, int32_t, )
REDUCTION(min_i64, int64_t, , int64_t, INT64_MAX, b < a ? b : a, int64_t, )
REDUCTION(min_u8, uint8_t, , uint8_t, UINT8_MAX, b < a ? b : a, uint8_t, )

static int extremum_infer(wg_call *call) {
    const reduce_options *options = call->options;
    if (reduced_count(&call->input_specs[0], options->mask) == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there are no elements to choose from");
    wg__reduced_spec(&call->input_specs[0], options->mask, options->keepdim,
                     &call->output_specs[0]);
    return 0;
}

static int max_forward(wg_call *call) {
    static const kernel kernels[WG_DTYPE_COUNT] = {
        [WG_F32] = KERNEL(max_f32, float),   [WG_F64] = KERNEL(max_f64, double),
        [WG_BF16] = KERNEL(max_bf16, float), [WG_I32] = KERNEL(max_i32, int32_t),
        [WG_I64] = KERNEL(max_i64, int64_t), [WG_U8] = KERNEL(max_u8, uint8_t),
        [WG_BOOL] = KERNEL(max_u8, uint8_t)};
    return reduce(&kernels[call->input_specs[0].dtype], call->inputs[0],
                  ((const reduce_options *)call->options)->mask, call->outputs[0]);
}

static int min_forward(wg_call *call) {
    static const kernel kernels[WG_DTYPE_COUNT] = {
        [WG_F32] = KERNEL(min_f32, float),   [WG_F64] = KERNEL(min_f64, double),
        [WG_BF16] = KERNEL(min_bf16, float), [WG_I32] = KERNEL(min_i32, int32_t),
        [WG_I64] = KERNEL(min_i64, int64_t), [WG_U8] = KERNEL(min_u8, uint8_t),
        [WG_BOOL] = KERNEL(min_u8, uint8_t)};
    return reduce(&kernels[call->input_specs[0].dtype], call->inputs[0],
                  ((const reduce_options *)call->options)->mask, call->outputs[0]);
}

/* 1 / n at the n elements that are equal to y, 0 elsewhere; all NaN where y is NaN, as PyTorch. */
static wg_tensor *shares(wg_call *call) {
    const reduce_options all = {((const reduce_options *)call->options)->mask, true};
    wg_tensor *chosen = wg_cast(wg_eq(call->inputs[0], with_axes(call->outputs[0], call)),
                                call->input_specs[0].dtype);
    return wg_div(chosen, wg_apply_one(&sum, 1, &chosen, &all));
}

static int extremum_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(shares(call), with_axes(cotangents[0], call));
    return wg__vjp_status();
}

static int extremum_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *chosen = wg_mul(shares(call), tangents[0]);
    output_tangents[0] = wg_apply_one(&sum, 1, &chosen, call->options);
    return wg__vjp_status();
}

static const wg_op max_op = {
    .name = "max",
    .doc =
        "y = the largest over the given axes; NaN if there is one. Kinks at ties, which share the "
        "gradient evenly.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(reduce_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = extremum_infer,
    .forward = max_forward,
    .vjp = extremum_vjp,
    .jvp = extremum_jvp,
    .sample = sample_reduction,
    .bench = bench_reduction,
    .flops = flops,
};

wg_tensor *wg_max(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    reduce_options options;
    if (!options_make(&options, x, axis_count, axes, keepdim, "max"))
        return NULL;
    return wg_apply_one(&max_op, 1, &x, &options);
}

static const wg_op min_op = {
    .name = "min",
    .doc = "y = the smallest over the given axes; NaN if there is one. Kinks at ties, which share "
           "the gradient evenly.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(reduce_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = extremum_infer,
    .forward = min_forward,
    .vjp = extremum_vjp,
    .jvp = extremum_jvp,
    .sample = sample_reduction,
    .bench = bench_reduction,
    .flops = flops,
};

wg_tensor *wg_min(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    reduce_options options;
    if (!options_make(&options, x, axis_count, axes, keepdim, "min"))
        return NULL;
    return wg_apply_one(&min_op, 1, &x, &options);
}

/* ---- argmax: y = the index of the first largest element along one axis; of the first NaN, if
 * there is one. ---- */

typedef int64_t (*first_largest)(const void *x, int64_t n, int64_t stride);

#define FIRST_LARGEST(NAME, TYPE, READ)                                                            \
    static int64_t NAME(const void *elements, int64_t n, int64_t stride) {                         \
        const TYPE *x = elements;                                                                  \
        int64_t best = 0;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            if (READ(x[i * stride]) != READ(x[i * stride]))                                        \
                return i;                                                                          \
            if (READ(x[i * stride]) > READ(x[best * stride]))                                      \
                best = i;                                                                          \
        }                                                                                          \
        return best;                                                                               \
    }

FIRST_LARGEST(first_largest_f32, float, )
FIRST_LARGEST(first_largest_f64, double, )
FIRST_LARGEST(first_largest_bf16, uint16_t, wg__bf16_to_f32)
FIRST_LARGEST(first_largest_i32, int32_t, )
FIRST_LARGEST(first_largest_i64, int64_t, )
FIRST_LARGEST(first_largest_u8, uint8_t, )

static int argmax_infer(wg_call *call) {
    if (extremum_infer(call) < 0)
        return -1;
    call->output_specs[0].dtype = WG_I64;
    return 0;
}

typedef struct argmax_lines {
    const wg_tensor *x;
    int axis;
    int64_t *y;
    first_largest find;
} argmax_lines;

/* Lines of x along the axis, in the order of the output. */
static void argmax_range(int64_t begin, int64_t end, void *context) {
    const argmax_lines *lines = context;
    const wg_tensor *x = lines->x;
    const int64_t size = (int64_t)wg_dtype_size(x->spec.dtype);
    for (int64_t line = begin; line < end; line++) {
        int64_t rest = line, offset = 0;
        for (int i = x->spec.ndim - 1; i >= 0; i--) {
            if (i == lines->axis)
                continue;
            offset += rest % x->spec.shape[i] * x->strides[i];
            rest /= x->spec.shape[i];
        }
        const char *first = (const char *)wg__tensor_address(x) + offset * size;
        lines->y[line] = lines->find(first, x->spec.shape[lines->axis], x->strides[lines->axis]);
    }
}

static int argmax_forward(wg_call *call) {
    static const first_largest finders[WG_DTYPE_COUNT] = {
        [WG_F32] = first_largest_f32, [WG_F64] = first_largest_f64, [WG_BF16] = first_largest_bf16,
        [WG_I32] = first_largest_i32, [WG_I64] = first_largest_i64, [WG_U8] = first_largest_u8,
        [WG_BOOL] = first_largest_u8};
    const wg_tensor *x = call->inputs[0];
    argmax_lines lines = {
        .x = x, .y = wg__tensor_address(call->outputs[0]), .find = finders[x->spec.dtype]};
    while ((((const reduce_options *)call->options)->mask >> lines.axis & 1) == 0)
        lines.axis++;
    wg__parallel_for(wg__spec_count(&call->output_specs[0]),
                     WG__GRAIN / x->spec.shape[lines.axis] + 1, argmax_range, &lines);
    return 0;
}

static int argmax_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const reduce_options options[] = {{2, false}, {1, true}};
    if (index >= 2)
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg__sample_distinct(generator, 2, (int64_t[]){3, 4});
    return wg__sample_status(sample, 1);
}

static const wg_op argmax = {
    .name = "argmax",
    .doc = "y = the i64 index of the first largest element along one axis; a NaN is the largest.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(reduce_options),
    .no_gradient = "its values are indices: piecewise constant in the operand",
    .infer = argmax_infer,
    .forward = argmax_forward,
    .sample = argmax_sample,
    .bench = bench_reduction,
    .flops = flops,
};

wg_tensor *wg_argmax(wg_tensor *x, int axis, bool keepdim) {
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, "argmax");
    if (along < 0)
        return NULL;
    return wg_apply_one(&argmax, 1, &x, &(reduce_options){(int64_t)1 << along, keepdim});
}

/* ---- sum_to, the adjoint of expand ---- */

static wg_tensor *fail_sum_to(const wg_tensor *x, int ndim, const int64_t *shape) {
    char text[160], wanted[160];
    wg_spec spec;
    if (wg__spec_make(&spec, x->spec.dtype, ndim, shape, "sum_to") == 0)
        wg_fail(
            WG_ERROR_SHAPE, "sum_to", "%s to %s: wanted a shape that broadcasts to the operand's",
            wg_spec_text(text, sizeof text, &x->spec), wg_spec_text(wanted, sizeof wanted, &spec));
    return NULL;
}

wg_tensor *wg_sum_to(wg_tensor *x, int ndim, const int64_t *shape) {
    if (x == NULL)
        return NULL;
    const int added = x->spec.ndim - ndim;
    if (ndim < 0 || added < 0)
        return fail_sum_to(x, ndim, shape);
    reduce_options options = {.mask = 0};
    for (int i = 0; i < x->spec.ndim; i++) {
        const int64_t size = i < added ? 1 : shape[i - added];
        if (size != x->spec.shape[i] && size != 1)
            return fail_sum_to(x, ndim, shape);
        if (i < added || size != x->spec.shape[i])
            options.mask |= (int64_t)1 << i;
    }
    if (options.mask == 0)
        return wg_alias(x);
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_reshape(wg_apply_one(&sum, 1, &x, &options), ndim, shape));
}

static const wg_op *const ops[] = {&sum, &max_op, &min_op, &argmax};

const wg__op_family wg__family_reduce = {ops, sizeof ops / sizeof *ops};
