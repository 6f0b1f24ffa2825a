/* Reductions of the truth (!= 0) of elements of any dtype. */
#include "tensor/ops/registry.h"
#include "tensor/ops/reduce/reduction.h"

/* Without the sign, so that -0 is 0; NaN is not. */
static inline uint8_t is_nonzero_bf16(uint16_t x) {
    return (x & 0x7fff) != 0;
}

#define TRUTHS(NAME, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT)                                           \
    WG__REDUCTION(NAME##_f32, float, 0 !=, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT, )                   \
    WG__REDUCTION(NAME##_f64, double, 0 !=, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT, )                  \
    WG__REDUCTION(NAME##_bf16, uint16_t, is_nonzero_bf16, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT, )    \
    WG__REDUCTION(NAME##_i32, int32_t, 0 !=, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT, )                 \
    WG__REDUCTION(NAME##_i64, int64_t, 0 !=, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT, )                 \
    WG__REDUCTION(NAME##_u8, uint8_t, 0 !=, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT, )

#define ALL_DTYPES(NAME, ACCUMULATOR)                                                              \
    {                                                                                              \
        [WG_F32] = WG__KERNELS(NAME##_f32, ACCUMULATOR),                                           \
        [WG_F64] = WG__KERNELS(NAME##_f64, ACCUMULATOR),                                           \
        [WG_BF16] = WG__KERNELS(NAME##_bf16, ACCUMULATOR),                                         \
        [WG_I32] = WG__KERNELS(NAME##_i32, ACCUMULATOR),                                           \
        [WG_I64] = WG__KERNELS(NAME##_i64, ACCUMULATOR),                                           \
        [WG_U8] = WG__KERNELS(NAME##_u8, ACCUMULATOR),                                             \
        [WG_BOOL] = WG__KERNELS(NAME##_u8, ACCUMULATOR)                                            \
    }

static int infer_truth(wg_call *call) {
    return wg__infer_reduced(call, WG_BOOL);
}

/* About half of the elements are 0, so that some lines have none, some only such. */
static int sample_truth(int index, wg_generator *generator, wg_sample *sample) {
    const int status = wg__sample_reduction(index, generator, sample);
    if (status <= 0)
        return status;
    sample->inputs[0] =
        wg_mul(sample->inputs[0], wg_cast(wg_gt(sample->inputs[0], wg_scalar(WG_F64, 0)), WG_F64));
    return wg__sample_status(sample, 1);
}

/* ---- any, all ---- */

TRUTHS(any, uint8_t, 0, a | b, uint8_t)
TRUTHS(all, uint8_t, 1, a &b, uint8_t)

static int any_forward(wg_call *call) {
    static const wg__reduction kernels[WG_DTYPE_COUNT] = ALL_DTYPES(any, uint8_t);
    return wg__reduce_call(call, kernels);
}

static int all_forward(wg_call *call) {
    static const wg__reduction kernels[WG_DTYPE_COUNT] = ALL_DTYPES(all, uint8_t);
    return wg__reduce_call(call, kernels);
}

static const wg_op any = {
    .name = "any",
    .doc = "y = whether an element over the given axes is not 0; of none, false.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__reduce_options),
    .no_gradient = "its values are bools",
    .infer = infer_truth,
    .forward = any_forward,
    .sample = sample_truth,
    .bench = wg__bench_reduction,
    .flops = wg__reduce_flops,
};

static const wg_op all = {
    .name = "all",
    .doc = "y = whether no element over the given axes is 0; of none, true.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__reduce_options),
    .no_gradient = "its values are bools",
    .infer = infer_truth,
    .forward = all_forward,
    .sample = sample_truth,
    .bench = wg__bench_reduction,
    .flops = wg__reduce_flops,
};

static wg_tensor *truth(const wg_op *op, wg_tensor *x, int axis_count, const int64_t *axes,
                        bool keepdim) {
    wg__reduce_options options;
    if (!wg__reduce_options_make(&options, x, axis_count, axes, keepdim, op->name))
        return NULL;
    return wg_apply_one(op, 1, &x, &options);
}

wg_tensor *wg_any(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    return truth(&any, x, axis_count, axes, keepdim);
}

wg_tensor *wg_all(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    return truth(&all, x, axis_count, axes, keepdim);
}

/* ---- count_nonzero ---- */

TRUTHS(count, int64_t, 0, a + b, int64_t)

static int count_infer(wg_call *call) {
    return wg__infer_reduced(call, WG_I64);
}

static int count_forward(wg_call *call) {
    static const wg__reduction kernels[WG_DTYPE_COUNT] = ALL_DTYPES(count, int64_t);
    return wg__reduce_call(call, kernels);
}

static const wg_op count_nonzero = {
    .name = "count_nonzero",
    .doc = "y = how many elements over the given axes are not 0, in i64.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__reduce_options),
    .no_gradient = "its values are counts: piecewise constant in the operand",
    .infer = count_infer,
    .forward = count_forward,
    .sample = sample_truth,
    .bench = wg__bench_reduction,
    .flops = wg__reduce_flops,
};

wg_tensor *wg_count_nonzero(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    return truth(&count_nonzero, x, axis_count, axes, keepdim);
}

static const wg_op *const ops[] = {&any, &all, &count_nonzero};

const wg__op_family wg__family_truth = {ops, sizeof ops / sizeof *ops};
