/* Sums over axes, and the moments that are made of them. Sums of f32 and bf16 accumulate in f64,
 * which keeps up with memory and leaves one rounding, at the end. */
#include "tensor/ops/registry.h"
#include "tensor/ops/reduce/reduction.h"

#include <math.h>

/* ---- sum: y = the sum over the axes; integers and bools in i64, wrapping around.   dx = g,
 * repeated along the axes. ---- */

WG__REDUCTION(sum_f32, float, , double, 0, a + b, float, )
WG__REDUCTION(sum_f64, double, , double, 0, a + b, double, )
WG__REDUCTION(sum_bf16, uint16_t, wg__bf16_to_f32, double, 0, a + b, uint16_t, wg__f64_to_bf16)
WG__REDUCTION(sum_i32, int32_t, , uint64_t, 0, a + b, int64_t, )
WG__REDUCTION(sum_i64, int64_t, , uint64_t, 0, a + b, int64_t, )
WG__REDUCTION(sum_u8, uint8_t, , uint64_t, 0, a + b, int64_t, )

static int sum_forward(wg_call *call) {
    static const wg__reduction kernels[WG_DTYPE_COUNT] = {
        [WG_F32] = WG__KERNELS(sum_f32, double),   [WG_F64] = WG__KERNELS(sum_f64, double),
        [WG_BF16] = WG__KERNELS(sum_bf16, double), [WG_I32] = WG__KERNELS(sum_i32, uint64_t),
        [WG_I64] = WG__KERNELS(sum_i64, uint64_t), [WG_U8] = WG__KERNELS(sum_u8, uint64_t),
        [WG_BOOL] = WG__KERNELS(sum_u8, uint64_t)};
    return wg__reduce_call(call, kernels);
}

static int sum_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0];
    gradients[0] = wg_expand(wg__with_axes(cotangents[0], call), x->ndim, x->shape);
    return wg__vjp_status();
}

static const wg_op sum = {
    .name = "sum",
    .doc = "y = the sum over the given axes; integers and bools in i64. f32 accumulates in f64.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__reduce_options),
    .differentiable = 1,
    .infer = wg__infer_total,
    .forward = sum_forward,
    .vjp = sum_vjp,
    .jvp = wg_jvp_linear,
    .sample = wg__sample_reduction,
    .bench = wg__bench_reduction,
    .flops = wg__reduce_flops,
};

wg_tensor *wg_sum(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    wg__reduce_options options;
    if (!wg__reduce_options_make(&options, x, axis_count, axes, keepdim, "sum"))
        return NULL;
    return wg_apply_one(&sum, 1, &x, &options);
}

/* ---- mean, var, std: composed of sums. Those of bf16 are computed in f32 and rounded once. ----
 */

/* The sum over n. */
static wg_tensor *mean_of(wg_tensor *x, const wg__reduce_options *options) {
    const double n = (double)wg__reduced_count(&x->spec, options->mask);
    wg_tensor *total = wg_apply_one(&sum, 1, &x, options);
    return wg_affine(total, n > 0 ? 1 / n : INFINITY, 0); /* of nothing: 0 inf, NaN */
}

typedef struct moment_options {
    wg__reduce_options reduce;
    double correction;
} moment_options;

/* Two passes, as stable as it gets: the mean first, then the squares of what is left. */
static wg_tensor *variance_of(wg_tensor *x, const moment_options *options) {
    const wg__reduce_options kept = {options->reduce.mask, true};
    const double n = (double)wg__reduced_count(&x->spec, kept.mask) - options->correction;
    wg_tensor *squares = wg_pow_scalar(wg_sub(x, mean_of(x, &kept)), 2);
    wg_tensor *total = wg_apply_one(&sum, 1, &squares, &options->reduce);
    return wg_affine(total, n > 0 ? 1 / n : INFINITY, 0);
}

/* The root; where the variance is 0 its derivative is 0, as PyTorch has it, and not inf. */
static wg_tensor *deviation_of(wg_tensor *x, const moment_options *options) {
    wg_tensor *variance = variance_of(x, options);
    if (variance == NULL)
        return NULL;
    wg_tensor *zero = wg_scalar(variance->spec.dtype, 0), *is_zero = wg_eq(variance, zero);
    wg_tensor *root = wg_sqrt(wg_where(is_zero, wg_add_scalar(zero, 1), variance));
    return wg_where(is_zero, zero, root);
}

/* The operand in the dtype to compute in, where that is another. */
static wg_tensor *widened(wg_tensor *x) {
    const wg_dtype dtype = x->spec.dtype;
    return dtype == WG_F32 || dtype == WG_F64 ? x : wg_cast(x, WG_F32);
}

/* Ends a decomposition. */
static int narrowed(wg_call *call, wg_tensor *y) {
    if (y != NULL && call->input_specs[0].dtype == WG_BF16)
        y = wg_cast(y, WG_BF16);
    call->outputs[0] = y;
    return y == NULL ? -1 : 0;
}

static int mean_decompose(wg_call *call) {
    wg_tensor *x = widened(call->inputs[0]);
    return narrowed(call, x == NULL ? NULL : mean_of(x, call->options));
}

static const wg_op mean = {
    .name = "mean",
    .doc = "y = the sum over the given axes by their number of elements; of none, NaN.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__reduce_options),
    .differentiable = 1,
    .decompose = mean_decompose,
    .sample = wg__sample_reduction,
    .bench = wg__bench_reduction,
};

wg_tensor *wg_mean(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    wg__reduce_options options;
    if (!wg__reduce_options_make(&options, x, axis_count, axes, keepdim, "mean"))
        return NULL;
    return wg_apply_one(&mean, 1, &x, &options);
}

/* Corrections of 0 and 1; a single element has no variance with 1, and a kink of the root with 0.
 */
static int moment_sample(int index, wg_generator *generator, wg_sample *sample) {
    static moment_options options[2];
    if (index >= 4)
        return 0;
    const wg__reduction_case *c = wg__reduction_case_at(index);
    options[index % 2] = (moment_options){c->options, index % 2};
    sample->options = &options[index % 2];
    sample->inputs[0] = wg__sample_distinct(generator, c->ndim, c->shape);
    return wg__sample_status(sample, 1);
}

static int moment_bench(wg_generator *generator, wg_sample *sample) {
    static const moment_options options = {{2, false}, 1};
    const int status = wg__bench_reduction(generator, sample);
    sample->options = &options;
    return status;
}

static int var_decompose(wg_call *call) {
    wg_tensor *x = widened(call->inputs[0]);
    return narrowed(call, x == NULL ? NULL : variance_of(x, call->options));
}

static const wg_op var = {
    .name = "var",
    .doc = "y = sum (x - mean)^2 / (n - correction) over the given axes.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(moment_options),
    .differentiable = 1,
    .decompose = var_decompose,
    .sample = moment_sample,
    .bench = moment_bench,
};

static int std_decompose(wg_call *call) {
    wg_tensor *x = widened(call->inputs[0]);
    return narrowed(call, x == NULL ? NULL : deviation_of(x, call->options));
}

static const wg_op std_op = {
    .name = "std",
    .doc = "y = sqrt(sum (x - mean)^2 / (n - correction)) over the given axes. Kink where it is 0, "
           "with derivative 0.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(moment_options),
    .differentiable = 1,
    .decompose = std_decompose,
    .sample = moment_sample,
    .bench = moment_bench,
};

static wg_tensor *moment(const wg_op *op, wg_tensor *x, int axis_count, const int64_t *axes,
                         double correction, bool keepdim) {
    moment_options options = {.correction = correction};
    if (!wg__reduce_options_make(&options.reduce, x, axis_count, axes, keepdim, op->name))
        return NULL;
    return wg_apply_one(op, 1, &x, &options);
}

wg_tensor *wg_var(wg_tensor *x, int axis_count, const int64_t *axes, double correction,
                  bool keepdim) {
    return moment(&var, x, axis_count, axes, correction, keepdim);
}

wg_tensor *wg_std(wg_tensor *x, int axis_count, const int64_t *axes, double correction,
                  bool keepdim) {
    return moment(&std_op, x, axis_count, axes, correction, keepdim);
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
    wg__reduce_options options = {.mask = 0};
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

static const wg_op *const ops[] = {&sum, &mean, &var, &std_op};

const wg__op_family wg__family_reduce = {ops, sizeof ops / sizeof *ops};
