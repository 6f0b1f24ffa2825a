/* Writing by tensors of indices: the adjoints of gathering. */
#include "tensor/convert.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/index/indexing.h"

/* x, index and src: those of the samples of gather, and what is written there. */
static int sample_scatter(int index, wg_generator *generator, wg_sample *sample) {
    wg_spec shape;
    const int status = wg__sample_index(index, generator, sample, &shape);
    if (status <= 0)
        return status;
    sample->inputs[2] = wg__sample_normal(generator, shape.ndim, shape.shape);
    return wg__sample_status(sample, 3);
}

static int bench_scatter(wg_generator *generator, wg_sample *sample) {
    if (wg__bench_index(generator, sample) < 0)
        return -1;
    sample->inputs[2] = wg_clone(sample->inputs[0]);
    return wg__sample_status(sample, 3);
}

/* What both ask of their operands. */
static int infer_scatter(wg_call *call) {
    if (wg__check_is_index(call, 1) < 0 || wg__check_index_shape(call) < 0 ||
        wg__check_same_dtype(call, 0, 2) < 0)
        return -1;
    if (!wg__same_shape(&call->input_specs[1], &call->input_specs[2]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "index and src must have one shape");
    return wg__infer_like(call);
}

/* ---- scatter_add: y = x with src[..i..] added at [..index[..i..]..] along an axis.   dx = g, dsrc
 * = gather of g. ---- */

static int scatter_add_infer(wg_call *call) {
    const wg_dtype dtype = call->input_specs[0].dtype;
    if (dtype == WG_BOOL || dtype == WG_BF16)
        return wg__op_fail(call, WG_ERROR_DTYPE, "%s does not add up; cast the operands",
                           wg_dtype_name(dtype));
    return infer_scatter(call);
}

static int scatter_add_forward(wg_call *call) {
    const int axis = ((const wg__index_options *)call->options)->axis;
    const wg_tensor *x = call->inputs[0], *index = call->inputs[1];
    if (wg__check_index_range(call, 1, x->spec.shape[axis]) < 0)
        return -1;
    wg__convert(call->outputs[0], x);
    wg__scatter_add(call->outputs[0], axis, index, call->inputs[2], -1);
    return 0;
}

static int scatter_add_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int axis = ((const wg__index_options *)call->options)->axis;
    if (wg__wants(call, 0))
        gradients[0] = cotangents[0];
    if (wg__wants(call, 2))
        gradients[2] = wg_gather(cotangents[0], axis, call->inputs[1]);
    return wg__vjp_status();
}

static const wg_op scatter_add = {
    .name = "scatter_add",
    .doc = "y = x with src[..i..] added at [..index[..i..]..] along an axis; src has the shape of "
           "index. The index has no gradient.",
    .min_inputs = 3,
    .max_inputs = 3,
    .output_count = 1,
    .options_size = sizeof(wg__index_options),
    .saves_inputs = 2,
    .differentiable = 5,
    .infer = scatter_add_infer,
    .forward = scatter_add_forward,
    .vjp = scatter_add_vjp,
    .jvp = wg_jvp_linear,
    .sample = sample_scatter,
    .bench = bench_scatter,
};

/* bf16 adds up in f32, and rounds once. */
static wg_tensor *scatter_add_promoted(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src) {
    if (!wg__promote(&x, &src))
        return NULL;
    const bool is_bf16 = x->spec.dtype == WG_BF16;
    if (is_bf16) {
        x = wg_cast(x, WG_F32);
        src = wg_cast(src, WG_F32);
    }
    wg_tensor *y = wg_apply_one(&scatter_add, 3, (wg_tensor *[]){x, wg__index_as_i64(index), src},
                                &(wg__index_options){axis});
    return is_bf16 ? wg_cast(y, WG_BF16) : y;
}

wg_tensor *wg_scatter_add(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src) {
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, "scatter_add");
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, scatter_add_promoted(x, along, index, src));
}

/* ---- scatter: y = x with src[..i..] instead at [..index[..i..]..] along an axis; of those that go
 * to one place the last stays.   dx = g, 0 where something was written; dsrc = gather of g, 0 for
 * what did not stay. ---- */

static int scatter_forward(wg_call *call) {
    const int axis = ((const wg__index_options *)call->options)->axis;
    const wg_tensor *x = call->inputs[0], *index = call->inputs[1];
    if (wg__check_index_range(call, 1, x->spec.shape[axis]) < 0)
        return -1;
    wg__convert(call->outputs[0], x);
    wg__scatter(call->outputs[0], axis, index, call->inputs[2]);
    return 0;
}

/* True for each entry of the index whose value stayed: numbers that are scattered tell whose. */
static wg_tensor *has_stayed(const wg_spec *x, int axis, wg_tensor *index) {
    const wg_spec *spec = &index->spec;
    wg_tensor *number = wg_arange(WG_I64, 0, (double)wg__spec_count(spec), 1);
    number = wg_reshape(number, spec->ndim, spec->shape);
    wg_tensor *owner = wg_scatter(wg_zeros(WG_I64, x->ndim, x->shape), axis, index, number);
    return wg_eq(wg_gather(owner, axis, index), number);
}

static int scatter_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int axis = ((const wg__index_options *)call->options)->axis;
    const wg_spec *src = &call->input_specs[2];
    wg_tensor *g = cotangents[0], *index = call->inputs[1];
    wg_tensor *zeros = wg_zeros(src->dtype, src->ndim, src->shape);
    if (wg__wants(call, 0))
        gradients[0] = wg_scatter(g, axis, index, zeros);
    if (wg__wants(call, 2))
        gradients[2] = wg_where(has_stayed(&call->input_specs[0], axis, index),
                                wg_gather(g, axis, index), zeros);
    return wg__vjp_status();
}

static const wg_op scatter = {
    .name = "scatter",
    .doc = "y = x with src[..i..] instead at [..index[..i..]..] along an axis, the last of those "
           "that go to one place; src has the shape of index. The index has no gradient.",
    .min_inputs = 3,
    .max_inputs = 3,
    .output_count = 1,
    .options_size = sizeof(wg__index_options),
    .saves_inputs = 2,
    .differentiable = 5,
    .infer = infer_scatter,
    .forward = scatter_forward,
    .vjp = scatter_vjp,
    .jvp = wg_jvp_linear,
    .sample = sample_scatter,
    .bench = bench_scatter,
};

static wg_tensor *scatter_promoted(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src) {
    if (!wg__promote(&x, &src))
        return NULL;
    return wg_apply_one(&scatter, 3, (wg_tensor *[]){x, wg__index_as_i64(index), src},
                        &(wg__index_options){axis});
}

wg_tensor *wg_scatter(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src) {
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, "scatter");
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, scatter_promoted(x, along, index, src));
}

static const wg_op *const ops[] = {&scatter_add, &scatter};

const wg__op_family wg__family_scatter = {ops, sizeof ops / sizeof *ops};
