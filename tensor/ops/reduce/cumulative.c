/* Running sums, products and extrema. */
#include "tensor/ops/registry.h"
#include "tensor/ops/reduce/scan.h"

/* ---- What they share ---- */

/* The kernel NAME of y_i = y_(i-1) JOIN x_i: elements of TYPE are read by READ into accumulators of
 * AS, which begin as NEUTRAL, and leave by WRITE as OUTPUT. */
#define SCAN(NAME, TYPE, READ, AS, NEUTRAL, JOIN, OUTPUT, WRITE)                                   \
    static inline void NAME##_lines(const wg__scan_lines *at, int64_t width) {                     \
        const TYPE *x = at->x[0];                                                                  \
        OUTPUT *y = at->y[0];                                                                      \
        AS a[WG__SCAN_WIDTH];                                                                      \
        for (int64_t l = 0; l < width; l++)                                                        \
            a[l] = NEUTRAL;                                                                        \
        for (int64_t i = 0; i < at->n; i++)                                                        \
            for (int64_t l = 0; l < width; l++) {                                                  \
                a[l] = a[l] JOIN(AS) READ(x[i * at->step + l]);                                    \
                y[i * at->step + l] = (OUTPUT)WRITE(a[l]);                                         \
            }                                                                                      \
    }                                                                                              \
    WG__ONE_OR_MORE(NAME)

#define TOTALS(NAME, NEUTRAL, JOIN)                                                                \
    SCAN(NAME##_f32, float, , double, NEUTRAL, JOIN, float, )                                      \
    SCAN(NAME##_f64, double, , double, NEUTRAL, JOIN, double, )                                    \
    SCAN(NAME##_bf16, uint16_t, wg__bf16_to_f32, double, NEUTRAL, JOIN, uint16_t, wg__f64_to_bf16) \
    SCAN(NAME##_i32, int32_t, , uint64_t, NEUTRAL, JOIN, int64_t, )                                \
    SCAN(NAME##_i64, int64_t, , uint64_t, NEUTRAL, JOIN, int64_t, )                                \
    SCAN(NAME##_u8, uint8_t, , uint64_t, NEUTRAL, JOIN, int64_t, )

#define KERNELS(NAME)                                                                              \
    {                                                                                              \
        [WG_F32] = NAME##_f32, [WG_F64] = NAME##_f64, [WG_BF16] = NAME##_bf16,                     \
        [WG_I32] = NAME##_i32, [WG_I64] = NAME##_i64, [WG_U8] = NAME##_u8, [WG_BOOL] = NAME##_u8   \
    }

static int infer_total(wg_call *call) {
    wg__infer_like(call);
    if (!wg_dtype_is_float(call->input_specs[0].dtype))
        call->output_specs[0].dtype = WG_I64;
    return 0;
}

static wg_tensor *scanned(const wg_op *op, wg_tensor *x, int axis, bool reverse) {
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, op->name);
    if (along < 0)
        return NULL;
    return wg_apply_one(op, 1, &x, &(wg__scan_options){along, reverse});
}

/* ---- cumsum: y_i = x_0 + ... + x_i; integers and bools in i64, wrapping around.   dx = the sums
 * of g from the other end. ---- */

TOTALS(cumsum, 0, +)

static int cumsum_forward(wg_call *call) {
    static const wg__scan_kernel kernels[WG_DTYPE_COUNT] = KERNELS(cumsum);
    return wg__scan(call, kernels);
}

static int cumsum_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg__scan_options *options = call->options;
    gradients[0] = scanned(call->op, cotangents[0], options->axis, !options->reverse);
    return wg__vjp_status();
}

static int cumsum_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_scan(index, generator, sample, wg__sample_normal);
}

static const wg_op cumsum = {
    .name = "cumsum",
    .doc = "y_i = x_0 + ... + x_i along one axis; integers and bools in i64.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__scan_options),
    .differentiable = 1,
    .infer = infer_total,
    .forward = cumsum_forward,
    .vjp = cumsum_vjp,
    .jvp = wg_jvp_linear,
    .sample = cumsum_sample,
    .bench = wg__bench_scan,
    .flops = wg__scan_flops,
};

wg_tensor *wg_cumsum(wg_tensor *x, int axis) {
    return scanned(&cumsum, x, axis, false);
}

/* ---- cumprod: y_i = x_0 ... x_i; integers and bools in i64, wrapping around.   dx_i = y_(i-1)
 * (g_i + x_(i+1) (g_(i+1) + x_(i+2) (...))), in which nothing is divided: so zeros do no harm. ----
 */

TOTALS(cumprod, 1, *)

static int cumprod_forward(wg_call *call) {
    static const wg__scan_kernel kernels[WG_DTYPE_COUNT] = KERNELS(cumprod);
    return wg__scan(call, kernels);
}

static int cumprod_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg__scan_options *options = call->options;
    wg_tensor *next = wg__shifted(call->inputs[0], options, true, 0);
    wg_tensor *s = wg__recurrence(next, cotangents[0], options->axis, !options->reverse);
    gradients[0] = wg_mul(wg__shifted(call->outputs[0], options, false, 1), s);
    return wg__vjp_status();
}

static int cumprod_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const wg__scan_options *options = call->options;
    wg_tensor *change = wg_mul(wg__shifted(call->outputs[0], options, false, 1), tangents[0]);
    output_tangents[0] = wg__recurrence(call->inputs[0], change, options->axis, options->reverse);
    return wg__vjp_status();
}

/* With lines of no, one and two zeros at the end. */
static int cumprod_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const wg__scan_options options = {1, false};
    const double values[] = {1.5, -2, 0.5, 2, 0.75, 0, -1, 2, 0, 3, 1.25, 0};
    if (index < 4)
        return wg__sample_scan(index, generator, sample, wg__sample_normal);
    if (index > 4)
        return 0;
    sample->options = &options;
    sample->inputs[0] = wg_from_array(WG_F64, 2, (int64_t[]){3, 4}, values);
    return wg__sample_status(sample, 1);
}

static const wg_op cumprod = {
    .name = "cumprod",
    .doc = "y_i = x_0 ... x_i along one axis; integers and bools in i64. The gradient is right "
           "beside zeros, too.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__scan_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = infer_total,
    .forward = cumprod_forward,
    .vjp = cumprod_vjp,
    .jvp = cumprod_jvp,
    .sample = cumprod_sample,
    .bench = wg__bench_scan,
    .flops = wg__scan_flops,
};

wg_tensor *wg_cumprod(wg_tensor *x, int axis) {
    return scanned(&cumprod, x, axis, false);
}

/* ---- cummax, cummin: y_i = the largest, the smallest up to there, and the last place where it
 * stands; a NaN stays from where it is on.   dx = g added up where it came from. ---- */

/* PyTorch's ties go to the later one; NaN, once it is there, gives way to NaN alone. */
#define NOT_SMALLER (b >= a) | (b != b)
#define NOT_LARGER (b <= a) | (b != b)

#define CUMULATED(NAME, TYPE, READ, AS, TAKES)                                                     \
    static inline void NAME##_lines(const wg__scan_lines *at, int64_t width) {                     \
        const TYPE *x = at->x[0];                                                                  \
        TYPE *y = at->y[0], best[WG__SCAN_WIDTH];                                                  \
        int64_t *index = at->y[1], place[WG__SCAN_WIDTH];                                          \
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
    WG__ONE_OR_MORE(NAME)

#define EXTREMA(NAME, FLOAT, INTEGER)                                                              \
    CUMULATED(NAME##_f32, float, , float, FLOAT)                                                   \
    CUMULATED(NAME##_f64, double, , double, FLOAT)                                                 \
    CUMULATED(NAME##_bf16, uint16_t, wg__bf16_to_f32, float, FLOAT)                                \
    CUMULATED(NAME##_i32, int32_t, , int32_t, INTEGER)                                             \
    CUMULATED(NAME##_i64, int64_t, , int64_t, INTEGER)                                             \
    CUMULATED(NAME##_u8, uint8_t, , uint8_t, INTEGER)

EXTREMA(cummax, NOT_SMALLER, b >= a)
EXTREMA(cummin, NOT_LARGER, b <= a)

static int infer_extremum(wg_call *call) {
    call->output_specs[0] = call->output_specs[1] = call->input_specs[0];
    call->output_specs[1].dtype = WG_I64;
    return 0;
}

static int cummax_forward(wg_call *call) {
    static const wg__scan_kernel kernels[WG_DTYPE_COUNT] = KERNELS(cummax);
    return wg__scan(call, kernels);
}

static int cummin_forward(wg_call *call) {
    static const wg__scan_kernel kernels[WG_DTYPE_COUNT] = KERNELS(cummin);
    return wg__scan(call, kernels);
}

static int extremum_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg__scan_options *options = call->options;
    gradients[0] = wg_scatter_add(wg_zeros_like(cotangents[0]), options->axis, call->outputs[1],
                                  cotangents[0]);
    return wg__vjp_status();
}

static int extremum_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const wg__scan_options *options = call->options;
    output_tangents[0] = wg_gather(tangents[0], options->axis, call->outputs[1]);
    return wg__vjp_status();
}

static int extremum_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_scan(index, generator, sample, wg__sample_distinct);
}

static const wg_op cummax = {
    .name = "cummax",
    .doc =
        "y_i = the largest of x_0 ... x_i along one axis, and where it stands; NaN from the first "
        "NaN on. Kinks at ties, at which the last gets the gradient.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 2,
    .options_size = sizeof(wg__scan_options),
    .saves_outputs = 2,
    .differentiable = 1,
    .infer = infer_extremum,
    .forward = cummax_forward,
    .vjp = extremum_vjp,
    .jvp = extremum_jvp,
    .sample = extremum_sample,
    .bench = wg__bench_scan,
    .flops = wg__scan_flops,
};

static const wg_op cummin = {
    .name = "cummin",
    .doc = "y_i = the smallest of x_0 ... x_i along one axis, and where it stands; NaN from the "
           "first NaN on. Kinks at ties, at which the last gets the gradient.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 2,
    .options_size = sizeof(wg__scan_options),
    .saves_outputs = 2,
    .differentiable = 1,
    .infer = infer_extremum,
    .forward = cummin_forward,
    .vjp = extremum_vjp,
    .jvp = extremum_jvp,
    .sample = extremum_sample,
    .bench = wg__bench_scan,
    .flops = wg__scan_flops,
};

static int cumulated(const wg_op *op, wg_tensor *x, int axis, wg_tensor **values,
                     wg_tensor **indices) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, op->name);
    const int status =
        along < 0 ? -1 : wg_apply(op, 1, &x, &(wg__scan_options){along, false}, outputs);
    if (values != NULL)
        *values = outputs[0];
    if (indices != NULL)
        *indices = outputs[1];
    return status;
}

int wg_cummax(wg_tensor *x, int axis, wg_tensor **values, wg_tensor **indices) {
    return cumulated(&cummax, x, axis, values, indices);
}

int wg_cummin(wg_tensor *x, int axis, wg_tensor **values, wg_tensor **indices) {
    return cumulated(&cummin, x, axis, values, indices);
}

static const wg_op *const ops[] = {&cumsum, &cumprod, &cummax, &cummin};

const wg__op_family wg__family_cumulative = {ops, sizeof ops / sizeof *ops};
