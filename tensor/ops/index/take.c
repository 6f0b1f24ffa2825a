/* Taking elements as NumPy does: indices broadcast, and negative ones count from the end. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/index/indexing.h"

static int check_is_index(wg_call *call) {
    const wg_dtype dtype = call->input_specs[1].dtype;
    if (dtype == WG_I64 || dtype == WG_I32)
        return 0;
    return wg__op_fail(call, WG_ERROR_DTYPE, "indices are i64 or i32, not %s; cast operand 1",
                       wg_dtype_name(dtype));
}

/* ---- take_along_axis: y[..i..] = x[..index[..i..]..] along an axis, which x and index are
 * broadcast but for. ---- */

typedef struct take_options {
    int axis;
} take_options;

/* The shapes to which x and the index are expanded; -1 with an error. */
static int take_shapes(const wg_call *call, int *axis, int64_t *x_shape, int64_t *index_shape) {
    const wg_spec *x = &call->input_specs[0], *index = &call->input_specs[1];
    *axis = wg__axis(((const take_options *)call->options)->axis, x->ndim, call->op->name);
    if (*axis < 0)
        return -1;
    if (index->ndim != x->ndim)
        return wg__op_fail(call, WG_ERROR_SHAPE, "ranks %d and %d differ; index needs that of x",
                           x->ndim, index->ndim);
    for (int i = 0; i < x->ndim; i++) {
        const int64_t m = x->shape[i], n = index->shape[i];
        if (i != *axis && m != n && m != 1 && n != 1)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "sizes %lld and %lld of axis %d do not broadcast", (long long)m,
                               (long long)n, i);
        x_shape[i] = i == *axis || m != 1 ? m : n;
        index_shape[i] = i == *axis || n != 1 ? n : m;
    }
    return 0;
}

static int take_along_axis_infer(wg_call *call) {
    int64_t x_shape[WG_MAX_DIMS], index_shape[WG_MAX_DIMS];
    int axis;
    return check_is_index(call) < 0 ? -1 : take_shapes(call, &axis, x_shape, index_shape);
}

static int take_along_axis_decompose(wg_call *call) {
    const int ndim = call->input_specs[0].ndim;
    int64_t x_shape[WG_MAX_DIMS], index_shape[WG_MAX_DIMS];
    int axis;
    if (take_shapes(call, &axis, x_shape, index_shape) < 0)
        return -1;
    wg_tensor *index = wg__index_from_front(call, call->inputs[1], axis, x_shape[axis]);
    call->outputs[0] = wg_gather(wg_expand(call->inputs[0], ndim, x_shape), axis,
                                 wg_expand(index, ndim, index_shape));
    return call->outputs[0] == NULL ? -1 : 0;
}

static int take_along_axis_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const struct {
        take_options options;
        int ndim;
        int64_t x[3], index[3];
    } cases[] = {
        {{1}, 2, {2, 3}, {2, 4}}, {{-1}, 2, {1, 4}, {3, 2}}, {{0}, 3, {3, 1, 2}, {2, 3, 1}}};
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    const int ndim = cases[index].ndim, axis = (cases[index].options.axis + ndim) % ndim;
    const int64_t size = cases[index].x[axis];
    sample->options = &cases[index].options;
    sample->inputs[0] = wg__sample_normal(generator, ndim, cases[index].x);
    sample->inputs[1] = wg_randint(generator, -size, size, ndim, cases[index].index);
    return wg__sample_status(sample, 2);
}

static const wg_op take_along_axis = {
    .name = "take_along_axis",
    .doc = "y[..i..] = x[..index[..i..]..] along an axis; along the others x and index are "
           "broadcast. Negative indices count from the end. The index has no gradient.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .options_size = sizeof(take_options),
    .differentiable = 1,
    .infer = take_along_axis_infer,
    .decompose = take_along_axis_decompose,
    .sample = take_along_axis_sample,
};

wg_tensor *wg_take_along_axis(wg_tensor *x, int axis, wg_tensor *index) {
    return wg_apply_one(&take_along_axis, 2, (wg_tensor *[]){x, index}, &(take_options){axis});
}

/* ---- take: y[i] = the element number index[i] of x in row-major order. ---- */

static int take_decompose(wg_call *call) {
    const wg_spec *spec = &call->input_specs[1];
    wg_tensor *x = wg_reshape(call->inputs[0], 1, (int64_t[]){wg__spec_count(call->input_specs)});
    wg_tensor *index = wg__index_from_front(call, call->inputs[1], 0, wg_tensor_count(x));
    index = wg_reshape(index, 1, (int64_t[]){wg__spec_count(spec)});
    call->outputs[0] = wg_reshape(wg_gather(x, 0, index), spec->ndim, spec->shape);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int take_sample(int index, wg_generator *generator, wg_sample *sample) {
    const int status = wg__sample_unary(index, generator, sample, wg__sample_normal);
    if (status <= 0)
        return status;
    const int64_t size = wg_tensor_count(sample->inputs[0]);
    sample->inputs[1] = wg_randint(generator, -size, size, index % 3, (int64_t[]){3, 2});
    return wg__sample_status(sample, 2);
}

static const wg_op take = {
    .name = "take",
    .doc = "y[i] = the element of that number of x, in row-major order; y has the shape of the "
           "index. Negative indices count from the end. The index has no gradient.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .differentiable = 1,
    .infer = check_is_index,
    .decompose = take_decompose,
    .sample = take_sample,
};

wg_tensor *wg_take(wg_tensor *x, wg_tensor *index) {
    return wg_apply_one(&take, 2, (wg_tensor *[]){x, index}, NULL);
}

static const wg_op *const ops[] = {&take_along_axis, &take};

const wg__op_family wg__family_take = {ops, sizeof ops / sizeof *ops};
