/* Casting and copying: the only ops that change dtype or layout and nothing else. */
#include "tensor/convert.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

/* ---- cast: y = x in another dtype.   dx = g in the dtype of x. ---- */

typedef struct cast_options {
    wg_dtype dtype;
} cast_options;

static int cast_infer(wg_call *call) {
    const cast_options *options = call->options;
    if (wg_dtype_size(options->dtype) == 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "there is no dtype %d", (int)options->dtype);
    call->output_specs[0] = call->input_specs[0];
    call->output_specs[0].dtype = options->dtype;
    return 0;
}

static int copy_forward(wg_call *call) {
    wg__convert(call->outputs[0], call->inputs[0]);
    return 0;
}

static int cast_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (wg_dtype_is_float(call->output_specs[0].dtype))
        gradients[0] = wg_cast(cotangents[0], call->input_specs[0].dtype);
    return wg__vjp_status();
}

static int cast_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const wg_dtype dtype = call->output_specs[0].dtype;
    if (tangents[0] != NULL && wg_dtype_is_float(dtype))
        output_tangents[0] = wg_cast(tangents[0], dtype);
    return wg__vjp_status();
}

static int cast_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const cast_options to_f64 = {WG_F64};
    sample->options = &to_f64;
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static int cast_bench(wg_generator *generator, wg_sample *sample) {
    static const cast_options to_bf16 = {WG_BF16};
    sample->options = &to_bf16;
    return wg__bench_one(generator, sample);
}

static const wg_op cast = {
    .name = "cast",
    .doc = "y = x in another dtype: floats to integers truncate and clamp, NaN gives 0, anything "
           "to bool is x != 0. Differentiable between floating dtypes.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(cast_options),
    .differentiable = 1,
    .infer = cast_infer,
    .forward = copy_forward,
    .vjp = cast_vjp,
    .jvp = cast_jvp,
    .sample = cast_sample,
    .bench = cast_bench,
};

wg_tensor *wg_cast(wg_tensor *x, wg_dtype dtype) {
    if (x != NULL && x->spec.dtype == dtype)
        return wg_alias(x);
    return wg_apply_one(&cast, 1, &x, &(cast_options){dtype});
}

/* ---- clone: y = x in new, contiguous memory.   dx = g. ---- */

static int clone_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = cotangents[0];
    return 0;
}

static int clone_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static const wg_op clone = {
    .name = "clone",
    .doc = "y = x, copied into contiguous memory of its own.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .differentiable = 1,
    .infer = wg__infer_like,
    .forward = copy_forward,
    .vjp = clone_vjp,
    .jvp = wg__jvp_diagonal,
    .sample = clone_sample,
    .bench = wg__bench_one,
};

wg_tensor *wg_clone(wg_tensor *x) {
    return wg_apply_one(&clone, 1, &x, NULL);
}

wg_tensor *wg_contiguous(wg_tensor *x) {
    return x != NULL && wg_tensor_is_contiguous(x) ? wg_alias(x) : wg_clone(x);
}

static const wg_op *const ops[] = {&cast, &clone};

const wg__op_family wg__family_cast = {ops, sizeof ops / sizeof *ops};
