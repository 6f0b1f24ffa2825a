/* Scans: element i along an axis becomes the combination of the elements up to i. Running sums,
 * products, extrema and logarithms of sums, and the linear recurrence.
 *
 *              axis -->
 *     line 0   x0  x0+x1  x0+x1+x2 ...      adjacent lines advance together, a block of lines
 *     line 1   ...                          at a time
 *
 * A scan can also run from the end to the beginning, so that gradients are scans again. Scans of
 * f32 and bf16 accumulate in f64. */
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

#include <math.h>
#include <string.h>

/* The maximum number of lines that advance together: enough for prefetching a row. */
#define SCAN_WIDTH 1024

/* A block of lines: its first element in up to two inputs and two outputs. */
typedef struct scan_lines {
    const void *x[2];
    const void *initial; /* the state before the first element of each line; NULL: none */
    void *y[2];
    int64_t n;     /* elements of a line */
    int64_t step;  /* between the elements of a line; negative in reverse */
    int64_t width; /* lines, adjacent in memory */
} scan_lines;

typedef void (*scan_kernel)(const scan_lines *lines);

/* The kernel NAME. The compiler keeps a single line in registers, so it is a separate case. */
#define ONE_OR_MORE(NAME)                                                                          \
    static void NAME(const scan_lines *at) {                                                       \
        if (at->width == 1)                                                                        \
            NAME##_lines(at, 1);                                                                   \
        else                                                                                       \
            NAME##_lines(at, at->width);                                                           \
    }

typedef struct scan_options {
    int axis;
    bool reverse; /* from the last to the first */
} scan_options;

typedef struct plan {
    scan_kernel kernel;
    int input_count, output_count;
    const char *x[3]; /* x[2] is the initial state */
    char *y[2];
    int64_t x_size, y_size[2]; /* bytes of an element */
    int64_t n, inner;          /* elements along the axis, and along all later axes */
    int64_t width, blocks;     /* lines of a block, and blocks in `inner` lines */
    bool reverse;
} plan;

static void run_blocks(int64_t begin, int64_t end, void *context) {
    const plan *plan = context;
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block % plan->blocks * plan->width, rest = plan->inner - first;
        const int64_t start = block / plan->blocks * plan->n * plan->inner + first +
                              (plan->reverse ? (plan->n - 1) * plan->inner : 0);
        scan_lines lines = {.n = plan->n,
                            .step = plan->reverse ? -plan->inner : plan->inner,
                            .width = rest < plan->width ? rest : plan->width};
        for (int i = 0; i < plan->input_count && i < 2; i++)
            lines.x[i] = plan->x[i] + start * plan->x_size;
        if (plan->x[2])
            lines.initial =
                plan->x[2] + (block / plan->blocks * plan->inner + first) * plan->x_size;
        for (int j = 0; j < plan->output_count; j++)
            lines.y[j] = plan->y[j] + start * plan->y_size[j];
        plan->kernel(&lines);
    }
}

/* Runs kernels[dtype of input 0] over the lines of all inputs and outputs. Inputs 0 and 1 have the
 * same shape; input 2 is the initial state. -1 if out of memory. */
static int run_scan(wg_call *call, const scan_kernel *kernels) {
    const scan_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int axis = options->axis;
    plan plan = {.kernel = kernels[x->dtype],
                 .input_count = call->input_count,
                 .output_count = call->output_count,
                 .x_size = (int64_t)wg_dtype_size(x->dtype),
                 .n = x->shape[axis],
                 .inner = wg__shape_count(x->ndim - axis - 1, x->shape + axis + 1),
                 .reverse = options->reverse};
    for (int i = 0; i < call->input_count; i++) {
        if (!call->inputs[i])
            continue;
        const wg_tensor *dense = wg_contiguous(call->inputs[i]);
        if (!dense)
            return -1;
        plan.x[i] = wg__tensor_address(dense);
    }
    for (int j = 0; j < call->output_count; j++) {
        plan.y[j] = wg__tensor_address(call->outputs[j]);
        plan.y_size[j] = (int64_t)wg_dtype_size(call->output_specs[j].dtype);
    }
    const int64_t count = wg__spec_count(x);
    if (count == 0)
        return 0;
    plan.width = wg__smaller(plan.inner, SCAN_WIDTH);
    plan.blocks = wg__ceil_divide(plan.inner, plan.width);
    wg__parallel_for(count / plan.n / plan.inner * plan.blocks,
                     WG__GRAIN / (plan.n * plan.width) + 1, run_blocks, &plan);
    return 0;
}

static double scan_flops(const wg_call *call) {
    return (double)wg__spec_count(&call->input_specs[0]);
}

/* Lines of several elements and of a single element; axes in the middle, last and first. */
#define CASES                                                                                      \
    {{1, false}, "2 4 2"}, {{1, true}, "2 3"}, {{0, true}, "3 2"}, {                               \
        {0, false}, "1"                                                                            \
    }

WG__EXAMPLES(scan, scan_options, (wg__sample_normal), CASES)
WG__EXAMPLES(extremum, scan_options, (wg__sample_distinct), CASES)
WG__LARGE(scan, scan_options, "4096 1024", 1, false)

#define SCAN_OP(NAME, OUTPUTS, DOC)                                                                \
    WG__OP_OF(#NAME, 1, 1, OUTPUTS, DOC),                                                          \
        .options_size = sizeof(scan_options), .differentiable = 1, .forward = NAME##_forward,      \
        .bench = scan_bench, .flops = scan_flops, .batch = wg__batch_axis

/* x shifted by one step of the scan: each element becomes the next element, or the previous one.
 * The element at the end becomes `fill`, of size 1 along the axis, or `number` if `fill` is NULL.
 */
static wg_tensor *shifted(wg_tensor *x, const scan_options *options, bool next, wg_tensor *fill,
                          double number) {
    const int axis = options->axis;
    const bool to_right = options->reverse == next;
    wg_tensor *first = wg_slice(x, axis, 0, 1, 1);
    if (!first || wg_tensor_count(first) == 0)
        return x;
    wg_tensor *end = fill ? fill : wg_full(x->spec.dtype, x->spec.ndim, first->spec.shape, number);
    wg_tensor *rest = to_right ? wg_slice(x, axis, 0, -1, 1) : wg_slice(x, axis, 1, WG_END, 1);
    return to_right ? wg_cat(2, (wg_tensor *[]){end, rest}, axis)
                    : wg_cat(2, (wg_tensor *[]){rest, end}, axis);
}

/* ---- linear_scan: y_i = a_i y_(i-1) + b_i, from y_(-1) = initial, or 0.   With the reverse scan
 * s_i = g_i + a_(i+1) s_(i+1): da_i = s_i y_(i-1), db = s, dinitial = a_0 s_0. ---- */

#define LINEAR_SCAN(NAME, TYPE, READ, WRITE)                                                       \
    static inline void NAME##_lines(const scan_lines *at, int64_t width) {                         \
        const TYPE *a = at->x[0], *b = at->x[1], *initial = at->initial;                           \
        TYPE *y = at->y[0];                                                                        \
        double last[SCAN_WIDTH];                                                                   \
        for (int64_t l = 0; l < width; l++) {                                                      \
            last[l] = (double)READ(b[l]);                                                          \
            if (initial)                                                                           \
                last[l] += (double)READ(a[l]) * (double)READ(initial[l]);                          \
            y[l] = (TYPE)WRITE(last[l]);                                                           \
        }                                                                                          \
        for (int64_t i = 1; i < at->n; i++)                                                        \
            for (int64_t l = 0; l < width; l++) {                                                  \
                const int64_t k = i * at->step + l;                                                \
                last[l] = (double)READ(a[k]) * last[l] + (double)READ(b[k]);                       \
                y[k] = (TYPE)WRITE(last[l]);                                                       \
            }                                                                                      \
    }                                                                                              \
    ONE_OR_MORE(NAME)

LINEAR_SCAN(linear_scan_f32, float, , )
LINEAR_SCAN(linear_scan_f64, double, , )
LINEAR_SCAN(linear_scan_bf16, uint16_t, wg__bf16_to_f32, wg__f64_to_bf16)

static int linear_scan_infer(wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    const int axis = ((const scan_options *)call->options)->axis;
    if (wg__infer_float(call) < 0 || wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    if (!wg__same_shape(a, b))
        return wg__infer_broadcast(call, a->dtype) < 0
                   ? -1
                   : wg__op_fail(call, WG_ERROR_SHAPE, "wanted a and b of the same shape");
    if (call->input_count < 3 || call->input_specs[2].ndim < 0)
        return 0;
    wg_spec initial = *a;
    initial.shape[axis] = 1;
    if (wg__check_same_dtype(call, 0, 2) < 0)
        return -1;
    if (!wg__same_shape(&initial, &call->input_specs[2]))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted an initial state of the shape that a and b have without axis %d",
                           axis);
    return 0;
}

static int linear_scan_forward(wg_call *call) {
    static const scan_kernel kernels[WG_DTYPE_COUNT] = {
        [WG_F32] = linear_scan_f32, [WG_F64] = linear_scan_f64, [WG_BF16] = linear_scan_bf16};
    return run_scan(call, kernels);
}

static const wg_op linear_scan;

/* y_i = a_i y_(i-1) + b_i. a and b have the same floating dtype and shape; `initial`, or NULL, has
 * size 1 along the axis. */
static wg_tensor *recurrence(wg_tensor *a, wg_tensor *b, wg_tensor *initial, int axis,
                             bool reverse) {
    return wg_apply_one(&linear_scan, initial ? 3 : 2, (wg_tensor *[]){a, b, initial},
                        &(scan_options){axis, reverse});
}

static int linear_scan_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const scan_options *options = call->options;
    wg_tensor *a = call->inputs[0], *next = shifted(a, options, true, NULL, 0);
    wg_tensor *s = recurrence(next, cotangents[0], NULL, options->axis, !options->reverse);
    if (wg__wants(call, 0))
        gradients[0] =
            wg_mul(s, shifted(call->outputs[0], options, false, wg__input_at(call, 2), 0));
    if (wg__wants(call, 1))
        gradients[1] = s;
    if (wg__wants(call, 2)) {
        const int64_t axis = options->axis, first = options->reverse ? -1 : 0;
        const int64_t end = options->reverse ? WG_END : 1;
        wg_tensor *s_0 = wg_slice(s, options->axis, first, end, 1);
        wg_tensor *a_0 = wg_slice(a, options->axis, first, end, 1);
        gradients[2] = wg_sum(wg_mul(a_0, s_0), 1, &axis, true); /* zeros for empty lines */
    }
    return wg__vjp_status();
}

static int linear_scan_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const scan_options *options = call->options;
    wg_tensor *change = tangents[1];
    if (tangents[0]) {
        wg_tensor *before = shifted(call->outputs[0], options, false, wg__input_at(call, 2), 0);
        wg_tensor *product = wg_mul(tangents[0], before);
        change = change ? wg_add(change, product) : product;
    }
    if (!change)
        change = wg_zeros_like(call->inputs[1]);
    output_tangents[0] =
        recurrence(call->inputs[0], change, call->input_count > 2 ? tangents[2] : NULL,
                   options->axis, options->reverse);
    return wg__vjp_status();
}

/* Each case without and with an initial state. */
WG__EXAMPLES(linear_scan, scan_options, (wg__sample_normal), {{1, false}, "2 4 2, 2 4 2"},
             {{1, false}, "2 4 2, 2 4 2, 2 1 2"}, {{1, true}, "2 3, 2 3"},
             {{1, true}, "2 3, 2 3, 2 1"}, {{0, true}, "3 2, 3 2"}, {{0, true}, "3 2, 3 2, 1 2"},
             {{0, false}, "1, 1"}, {{0, false}, "1, 1, 1"})

/* a and b are one tensor. */
static int linear_scan_bench(wg_generator *generator, wg_sample *sample) {
    const int status = scan_bench(generator, sample);
    sample->inputs[1] = sample->inputs[0];
    return status < 0 ? -1 : wg__sample_status(sample, 2);
}

static double linear_scan_flops(const wg_call *call) {
    return 2 * scan_flops(call);
}

static const wg_op linear_scan = {
    WG__OP_OF("linear_scan", 2, 3, 1,
              "y_i = a_i y_(i-1) + b_i along one axis, from an initial y_(-1), or 0 if there is "
              "none."),
    .options_size = sizeof(scan_options),
    .saves_inputs = 5,
    .saves_outputs = 1,
    .differentiable = 7,
    WG__FUNCTIONS(linear_scan),
    .jvp = linear_scan_jvp,
    .flops = linear_scan_flops,
    .batch = wg__batch_axis};

/* The initial state, which broadcasts to `spec` without the axis, with size 1 along the axis. NULL
 * after an error. */
static wg_tensor *initial_state(wg_tensor *initial, const wg_spec *spec, int axis) {
    wg_spec state = *spec;
    state.ndim--;
    for (int i = axis; i < state.ndim; i++)
        state.shape[i] = spec->shape[i + 1];
    int64_t strides[WG_MAX_DIMS];
    if (wg__broadcast_strides(initial, &state, strides))
        return wg_unsqueeze(wg_expand(initial, state.ndim, state.shape), axis);
    char text[128], wanted[128];
    return wg__fail_null(
        WG_ERROR_SHAPE, linear_scan.name,
        "the initial state is %s; wanted one that broadcasts to %s, the shape of a and b "
        "without axis %d",
        wg_spec_text(text, sizeof text, &initial->spec),
        wg_spec_text(wanted, sizeof wanted, &state), axis);
}

wg_tensor *wg_linear_scan(wg_tensor *a, wg_tensor *b, int axis, wg_tensor *initial) {
    if (!a || !b)
        return NULL;
    wg_tensor *x[] = {a, b, initial}, *y = NULL;
    wg_spec spec;
    wg_scope scope;
    wg_scope_begin(&scope);
    bool ready = wg__promote_all(3, x);
    for (int i = 0; i < 3 && ready; i++)
        ready = !x[i] || (x[i] = wg__as_float(x[i]));
    if (ready && wg__broadcast(&x[0]->spec, &x[1]->spec, &spec)) {
        x[0] = wg_expand(x[0], spec.ndim, spec.shape);
        x[1] = wg_expand(x[1], spec.ndim, spec.shape);
    } /* otherwise infer reports the error */
    const int along = ready && x[1] ? wg__axis_of(x[0], axis, linear_scan.name) : -1;
    if (along >= 0 && !wg__same_shape(&x[0]->spec, &x[1]->spec))
        x[2] = initial = NULL;
    if (along >= 0 && initial)
        x[2] = initial_state(x[2], &x[0]->spec, along);
    if (along >= 0 && (x[2] || !initial))
        y = recurrence(x[0], x[1], x[2], along, false);
    return wg_scope_end(&scope, y);
}

/* The kernel NAME of y_i = y_(i-1) JOIN x_i: READ converts elements of TYPE, WRITE results to
 * OUTPUT. Accumulators have the type AS and begin as NEUTRAL. */
#define SCAN(NAME, TYPE, READ, AS, NEUTRAL, JOIN, OUTPUT, WRITE)                                   \
    static inline void NAME##_lines(const scan_lines *at, int64_t width) {                         \
        const TYPE *x = at->x[0];                                                                  \
        OUTPUT *y = at->y[0];                                                                      \
        AS a[SCAN_WIDTH];                                                                          \
        for (int64_t l = 0; l < width; l++)                                                        \
            a[l] = NEUTRAL;                                                                        \
        for (int64_t i = 0; i < at->n; i++)                                                        \
            for (int64_t l = 0; l < width; l++) {                                                  \
                a[l] = a[l] JOIN(AS) READ(x[i * at->step + l]);                                    \
                y[i * at->step + l] = (OUTPUT)WRITE(a[l]);                                         \
            }                                                                                      \
    }                                                                                              \
    ONE_OR_MORE(NAME)

#define TOTALS(NAME, NEUTRAL, JOIN)                                                                \
    SCAN(NAME##_f32, float, , double, NEUTRAL, JOIN, float, )                                      \
    SCAN(NAME##_f64, double, , double, NEUTRAL, JOIN, double, )                                    \
    SCAN(NAME##_bf16, uint16_t, wg__bf16_to_f32, double, NEUTRAL, JOIN, uint16_t, wg__f64_to_bf16) \
    SCAN(NAME##_i32, int32_t, , uint64_t, NEUTRAL, JOIN, int64_t, )                                \
    SCAN(NAME##_i64, int64_t, , uint64_t, NEUTRAL, JOIN, int64_t, )                                \
    SCAN(NAME##_u8, uint8_t, , uint64_t, NEUTRAL, JOIN, int64_t, )

#define SCAN_FORWARD(NAME)                                                                         \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const scan_kernel kernels[WG_DTYPE_COUNT] = {                                       \
            [WG_F32] = NAME##_f32, [WG_F64] = NAME##_f64, [WG_BF16] = NAME##_bf16,                 \
            [WG_I32] = NAME##_i32, [WG_I64] = NAME##_i64, [WG_U8] = NAME##_u8,                     \
            [WG_BOOL] = NAME##_u8};                                                                \
        return run_scan(call, kernels);                                                            \
    }

static int infer_total(wg_call *call) {
    wg__infer_like(call);
    if (!wg_dtype_is_float(call->input_specs[0].dtype))
        call->output_specs[0].dtype = WG_I64;
    return 0;
}

static wg_tensor *scanned(const wg_op *op, wg_tensor *x, int axis, bool reverse) {
    const int along = wg__axis_of(x, axis, op->name);
    return along < 0 ? NULL : wg_apply_one(op, 1, &x, &(scan_options){along, reverse});
}

/* ---- cumsum: y_i = x_0 + ... + x_i; integers and bools in i64, wrapping around.
 * dx = the cumsum of g in reverse. ---- */

TOTALS(cumsum, 0, +)
SCAN_FORWARD(cumsum)

static int cumsum_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const scan_options *options = call->options;
    gradients[0] = scanned(call->op, cotangents[0], options->axis, !options->reverse);
    return wg__vjp_status();
}

static const wg_op cumsum = {
    SCAN_OP(cumsum, 1, "y_i = x_0 + ... + x_i along one axis; integers and bools in i64."),
    .infer = infer_total, .vjp = cumsum_vjp, .jvp = wg_jvp_linear, .sample = scan_sample};

wg_tensor *wg_cumsum(wg_tensor *x, int axis) {
    return scanned(&cumsum, x, axis, false);
}

/* ---- cumprod: y_i = x_0 ... x_i; integers and bools in i64, wrapping around.
 * dx_i = y_(i-1) (g_i + x_(i+1) (g_(i+1) + x_(i+2) (...))), without a division, so that zeros are
 * exact. ---- */

TOTALS(cumprod, 1, *)
SCAN_FORWARD(cumprod)

static int cumprod_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const scan_options *options = call->options;
    wg_tensor *next = shifted(call->inputs[0], options, true, NULL, 0);
    wg_tensor *s = recurrence(next, cotangents[0], NULL, options->axis, !options->reverse);
    gradients[0] = wg_mul(shifted(call->outputs[0], options, false, NULL, 1), s);
    return wg__vjp_status();
}

static int cumprod_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const scan_options *options = call->options;
    wg_tensor *change = wg_mul(shifted(call->outputs[0], options, false, NULL, 1), tangents[0]);
    output_tangents[0] = recurrence(call->inputs[0], change, NULL, options->axis, options->reverse);
    return wg__vjp_status();
}

/* Lines of no, one and two zeros. */
static wg_tensor *with_zeros(wg_generator *generator, int ndim, const int64_t *shape) {
    const double values[] = {1.5, -2, 0.5, 2, 0.75, 0, -1, 2, 0, 3, 1.25, 0};
    (void)generator;
    return wg_from_array(WG_F64, ndim, shape, values);
}

WG__EXAMPLES(zeros, scan_options, (with_zeros), {{1, false}, "3 4"})

static int cumprod_sample(int index, wg_generator *generator, wg_sample *sample) {
    return index == 0 ? zeros_sample(index, generator, sample)
                      : scan_sample(index - 1, generator, sample);
}

static const wg_op cumprod = {
    SCAN_OP(cumprod, 1,
            "y_i = x_0 ... x_i along one axis; integers and bools in i64. The gradient is right "
            "beside zeros, too."),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .infer = infer_total,
    .vjp = cumprod_vjp,
    .jvp = cumprod_jvp,
    .sample = cumprod_sample};

wg_tensor *wg_cumprod(wg_tensor *x, int axis) {
    return scanned(&cumprod, x, axis, false);
}

/* ---- logcumsumexp: y_i = log(e^x_0 + ... + e^x_i).   With the reverse scan
 * s_i = g_i + e^(y_i - y_(i+1)) s_(i+1): dx_i = e^(x_i - y_i) s_i. ---- */

/* Elements of a line that are computed at a time. */
enum { EXP_BLOCK = 256 };

/* If x is more than this below the largest x, log(e^x) would lose digits of f64. */
static const double EXP_RANGE = 30;

/* Replaces n elements of a line by their running logarithms, after a total of e^last. Sums e^(x -
 * max), unless the first running sums are much smaller than the last. */
static double log_totals(int64_t n, double *x, double last) {
    const wg__simd *simd = wg__simd_for(WG_F64);
    const double largest = simd->rows.max(n, x), max = largest > last ? largest : last;
    const double first = x[0] > last ? x[0] : last;
    if (isnan(largest) || isnan(last) || isinf(max) || first < max - EXP_RANGE) {
        for (int64_t i = 0; i < n; i++) {
            const double high = last > x[i] ? last : x[i], low = last > x[i] ? x[i] : last;
            if (isnan(last) || isnan(x[i]))
                last += x[i];
            else
                last = low == high && isinf(high) ? high : high + log1p(exp(low - high));
            x[i] = last;
        }
        return last;
    }
    double total = exp(last - max);
    simd->rows.exp(n, x, max, 1, x);
    for (int64_t i = 0; i < n; i++)
        x[i] = total += x[i];
    wg__map_values(simd, (wg__map){.function = WG_LOG}, n, x, x);
    for (int64_t i = 0; i < n; i++)
        x[i] += max;
    return x[n - 1];
}

/* A single line is computed in blocks; adjacent lines advance together, an element at a time. */
#define LOG_TOTALS(NAME, TYPE, READ, WRITE)                                                        \
    static void NAME##_line(const scan_lines *at) {                                                \
        const TYPE *x = at->x[0];                                                                  \
        TYPE *y = at->y[0];                                                                        \
        double block[EXP_BLOCK], last = -INFINITY;                                                 \
        for (int64_t begin = 0; begin < at->n; begin += EXP_BLOCK) {                               \
            const int64_t n = at->n - begin < EXP_BLOCK ? at->n - begin : EXP_BLOCK;               \
            for (int64_t i = 0; i < n; i++)                                                        \
                block[i] = (double)READ(x[(begin + i) * at->step]);                                \
            last = log_totals(n, block, last);                                                     \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[(begin + i) * at->step] = (TYPE)WRITE(block[i]);                                 \
        }                                                                                          \
    }                                                                                              \
    static void NAME(const scan_lines *at) {                                                       \
        const TYPE *x = at->x[0];                                                                  \
        TYPE *y = at->y[0];                                                                        \
        double total[SCAN_WIDTH], row[SCAN_WIDTH];                                                 \
        if (at->width == 1) {                                                                      \
            NAME##_line(at);                                                                       \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < at->n; i++) {                                                      \
            for (int64_t l = 0; l < at->width; l++)                                                \
                row[l] = (double)READ(x[i * at->step + l]);                                        \
            if (i == 0)                                                                            \
                memcpy(total, row, (size_t)at->width * sizeof *row);                               \
            else                                                                                   \
                wg__simd_for(WG_F64)->map(&(wg__map){.kind = WG__PAIRS, .function = WG_LOGADDEXP}, \
                                          at->width, (const void *[]){total, row},                 \
                                          (void *[]){total});                                      \
            for (int64_t l = 0; l < at->width; l++)                                                \
                y[i * at->step + l] = (TYPE)WRITE(total[l]);                                       \
        }                                                                                          \
    }

LOG_TOTALS(logcumsumexp_f32, float, , )
LOG_TOTALS(logcumsumexp_f64, double, , )
LOG_TOTALS(logcumsumexp_bf16, uint16_t, wg__bf16_to_f32, wg__f64_to_bf16)

static int logcumsumexp_forward(wg_call *call) {
    static const scan_kernel kernels[WG_DTYPE_COUNT] = {
        [WG_F32] = logcumsumexp_f32, [WG_F64] = logcumsumexp_f64, [WG_BF16] = logcumsumexp_bf16};
    return run_scan(call, kernels);
}

static int logcumsumexp_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const scan_options *options = call->options;
    wg_tensor *x = call->inputs[0], *y = call->outputs[0];
    wg_tensor *step = wg_exp(wg_sub(y, shifted(y, options, true, NULL, 0)));
    wg_tensor *s = recurrence(step, cotangents[0], NULL, options->axis, !options->reverse);
    gradients[0] = wg_mul(wg_exp(wg_sub(x, y)), s);
    return wg__vjp_status();
}

static int logcumsumexp_jvp(wg_call *call, wg_tensor *const *tangents,
                            wg_tensor **output_tangents) {
    const scan_options *options = call->options;
    wg_tensor *x = call->inputs[0], *y = call->outputs[0];
    wg_tensor *step = wg_exp(wg_sub(shifted(y, options, false, NULL, 0), y));
    output_tangents[0] = recurrence(step, wg_mul(wg_exp(wg_sub(x, y)), tangents[0]), NULL,
                                    options->axis, options->reverse);
    return wg__vjp_status();
}

static const wg_op logcumsumexp = {
    SCAN_OP(logcumsumexp, 1, "y_i = log(e^x_0 + ... + e^x_i) along one axis, without overflow."),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .infer = wg__infer_float,
    .vjp = logcumsumexp_vjp,
    .jvp = logcumsumexp_jvp,
    .sample = scan_sample};

wg_tensor *wg_logcumsumexp(wg_tensor *x, int axis) {
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, scanned(&logcumsumexp, wg__as_float(x), axis, false));
}

/* ---- cummax, cummin: y_i = the largest, the smallest of x_0 ... x_i, and its last index; NaN from
 * the first NaN on. dx = g, added at the indices. ---- */

#define CUMULATED(NAME, TYPE, READ, AS, TAKES)                                                     \
    static inline void NAME##_lines(const scan_lines *at, int64_t width) {                         \
        const TYPE *x = at->x[0];                                                                  \
        TYPE *y = at->y[0], best[SCAN_WIDTH];                                                      \
        int64_t *index = at->y[1], place[SCAN_WIDTH];                                              \
        for (int64_t l = 0; l < width; l++) {                                                      \
            best[l] = x[l];                                                                        \
            place[l] = 0;                                                                          \
        }                                                                                          \
        for (int64_t i = 0; i < at->n; i++)                                                        \
            for (int64_t l = 0; l < width; l++) {                                                  \
                const int64_t k = i * at->step + l;                                                \
                const AS a = READ(best[l]), b = READ(x[k]);                                        \
                const bool takes = TAKES;                                                          \
                best[l] = takes ? x[k] : best[l];                                                  \
                place[l] = takes ? (at->step < 0 ? at->n - 1 - i : i) : place[l];                  \
                y[k] = best[l];                                                                    \
                index[k] = place[l];                                                               \
            }                                                                                      \
    }                                                                                              \
    ONE_OR_MORE(NAME)

static int infer_extremum(wg_call *call) {
    call->output_specs[0] = call->output_specs[1] = call->input_specs[0];
    call->output_specs[1].dtype = WG_I64;
    return 0;
}

WG__VJP(extremum, wg_scatter_add(wg_zeros_like(g), ((const scan_options *)call->options)->axis,
                                 call->outputs[1], g))

static int extremum_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const scan_options *options = call->options;
    output_tangents[0] = wg_gather(tangents[0], options->axis, call->outputs[1]);
    return wg__vjp_status();
}

static int cumulated(const wg_op *op, wg_tensor *x, int axis, wg_tensor **values,
                     wg_tensor **indices) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    const int along = wg__axis_of(x, axis, op->name);
    const int status = along < 0 ? -1 : wg_apply(op, 1, &x, &(scan_options){along, false}, outputs);
    return wg__give(status, outputs, values, indices);
}

/* The op NAME: b replaces a if b OVER a. Ties go to the later element, as in PyTorch. Only a later
 * NaN replaces a NaN. */
#define EXTREMUM(NAME, OVER, ADJECTIVE)                                                            \
    CUMULATED(NAME##_f32, float, , float, (b OVER a) | (b != b))                                   \
    CUMULATED(NAME##_f64, double, , double, (b OVER a) | (b != b))                                 \
    CUMULATED(NAME##_bf16, uint16_t, wg__bf16_to_f32, float, (b OVER a) | (b != b))                \
    CUMULATED(NAME##_i32, int32_t, , int32_t, b OVER a)                                            \
    CUMULATED(NAME##_i64, int64_t, , int64_t, b OVER a)                                            \
    CUMULATED(NAME##_u8, uint8_t, , uint8_t, b OVER a)                                             \
    SCAN_FORWARD(NAME)                                                                             \
    static const wg_op NAME = {                                                                    \
        SCAN_OP(NAME, 2,                                                                           \
                "y_i = the " ADJECTIVE " of x_0 ... x_i along one axis, and its index; NaN from "  \
                "the first NaN on. Kinks at ties, where the last element gets the gradient."),     \
        .saves_outputs = 2,                                                                        \
        .infer = infer_extremum,                                                                   \
        .vjp = extremum_vjp,                                                                       \
        .jvp = extremum_jvp,                                                                       \
        .sample = extremum_sample};                                                                \
    int wg_##NAME(wg_tensor *x, int axis, wg_tensor **values, wg_tensor **indices) {               \
        return cumulated(&NAME, x, axis, values, indices);                                         \
    }

EXTREMUM(cummax, >=, "largest")
EXTREMUM(cummin, <=, "smallest")

const wg__op_table wg__ops_scan =
    WG__OP_TABLE(&linear_scan, &cumsum, &cumprod, &logcumsumexp, &cummax, &cummin);
