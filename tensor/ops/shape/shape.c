/* Joining: cat is an op; stack and meshgrid are made of others. */
#include "tensor/convert.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <string.h>

/* ---- cat: y = the operands one after the other along an axis.   Each gradient is its slice of g.
 * ---- */

typedef struct cat_options {
    int axis;
} cat_options;

static int cat_infer(wg_call *call) {
    const int axis = ((const cat_options *)call->options)->axis;
    wg_spec *out = &call->output_specs[0];
    *out = call->input_specs[0];
    for (int i = 1; i < call->input_count; i++) {
        const wg_spec *x = &call->input_specs[i];
        if (wg__check_same_dtype(call, 0, i) < 0)
            return -1;
        for (int d = 0; d < out->ndim; d++)
            if (x->ndim != out->ndim || (d != axis && x->shape[d] != out->shape[d]))
                return wg__op_fail(call, WG_ERROR_SHAPE,
                                   "operand %d does not fit operand 0; all sizes but that of axis "
                                   "%d must be equal",
                                   i, axis);
        out->shape[axis] += x->shape[axis];
    }
    return 0;
}

static int cat_forward(wg_call *call) {
    const int axis = ((const cat_options *)call->options)->axis;
    const wg_tensor *y = call->outputs[0];
    int64_t offset = 0;
    for (int i = 0; i < call->input_count; i++) {
        const wg_tensor *x = call->inputs[i];
        wg_tensor *part = wg__tensor_view(y, &x->spec, y->strides, offset);
        if (part == NULL)
            return -1;
        wg__convert(part, x);
        offset += x->spec.shape[axis] * y->strides[axis];
    }
    return 0;
}

static int cat_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int axis = ((const cat_options *)call->options)->axis;
    int64_t start = 0;
    for (int i = 0; i < call->input_count; i++) {
        const int64_t stop = start + call->input_specs[i].shape[axis];
        if (wg__wants(call, i))
            gradients[i] = wg_slice(cotangents[0], axis, start, stop, 1);
        start = stop;
    }
    return wg__vjp_status();
}

static int cat_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const struct {
        cat_options options;
        int count, ndim;
        int64_t shapes[3][3];
    } cases[] = {
        {{1}, 3, 2, {{2, 3}, {2, 1}, {2, 2}}},
        {{0}, 2, 3, {{1, 2, 2}, {3, 2, 2}}},
        {{0}, 1, 1, {{2}}},
    };
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    sample->options = &cases[index].options;
    for (int i = 0; i < cases[index].count; i++)
        sample->inputs[i] = wg__sample_normal(generator, cases[index].ndim, cases[index].shapes[i]);
    return wg__sample_status(sample, cases[index].count);
}

static int cat_bench(wg_generator *generator, wg_sample *sample) {
    static const cat_options options = {1};
    sample->options = &options;
    for (int i = 0; i < 2; i++)
        sample->inputs[i] = wg_rand(generator, WG_F32, 2, (int64_t[]){2048, 1024});
    return wg__sample_status(sample, 2);
}

static const wg_op cat = {
    .name = "cat",
    .doc = "y = the operands one after the other along an axis; all other sizes are equal.",
    .min_inputs = 1,
    .max_inputs = WG_MAX_INPUTS,
    .output_count = 1,
    .options_size = sizeof(cat_options),
    .differentiable = 0xffffffff,
    .infer = cat_infer,
    .forward = cat_forward,
    .vjp = cat_vjp,
    .jvp = wg_jvp_linear,
    .sample = cat_sample,
    .bench = cat_bench,
};

/* Joins operands of one dtype: each group into one, and the groups in turn. Takes the array over as
 * its room to work in. */
static wg_tensor *join(int count, wg_tensor **tensors, int axis) {
    const cat_options options = {axis};
    while (count > WG_MAX_INPUTS) {
        int groups = 0;
        for (int i = 0; i < count; i += WG_MAX_INPUTS) {
            const int members = count - i < WG_MAX_INPUTS ? count - i : WG_MAX_INPUTS;
            tensors[groups] = wg_apply_one(&cat, members, tensors + i, &options);
            if (tensors[groups++] == NULL)
                return NULL;
        }
        count = groups;
    }
    return wg_apply_one(&cat, count, tensors, &options);
}

/* The operands in a new array, cast to their common dtype; NULL if one is NULL. */
static wg_tensor **promoted(int count, wg_tensor *const *tensors) {
    wg_tensor **all = wg__alloc((size_t)count * sizeof *all);
    wg_dtype dtype = WG_BOOL;
    for (int i = 0; i < count; i++)
        dtype = wg_dtype_promote(dtype, wg_tensor_dtype(tensors[i]));
    for (int i = 0; i < count && all != NULL; i++) {
        all[i] = wg_tensor_dtype(tensors[i]) == dtype ? tensors[i] : wg_cast(tensors[i], dtype);
        if (all[i] == NULL) {
            wg__free(all);
            return NULL;
        }
    }
    return all;
}

wg_tensor *wg_cat(int count, wg_tensor *const *tensors, int axis) {
    if (count < 1) {
        wg_fail(WG_ERROR_SHAPE, "cat", "%d tensors; there is at least 1", count);
        return NULL;
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor **all = promoted(count, tensors);
    const int along = all == NULL ? -1 : wg__axis(axis, all[0]->spec.ndim, "cat");
    wg_tensor *y = along < 0 ? NULL : join(count, all, along);
    wg__free(all);
    return wg_scope_end(&scope, y);
}

/* Every operand with an axis of size 1 more, joined along it. */
static wg_tensor *stack(int count, wg_tensor *const *tensors, int axis) {
    wg_tensor **all = wg__alloc((size_t)count * sizeof *all);
    wg_tensor *y = NULL;
    for (int i = 0; i < count && all != NULL; i++)
        all[i] = wg_unsqueeze(tensors[i], axis);
    if (all != NULL)
        y = wg_cat(count, all, axis);
    wg__free(all);
    return y;
}

wg_tensor *wg_stack(int count, wg_tensor *const *tensors, int axis) {
    if (count < 1) {
        wg_fail(WG_ERROR_SHAPE, "stack", "%d tensors; there is at least 1", count);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        if (tensors[i] == NULL)
            return NULL;
        if (!wg__same_shape(&tensors[0]->spec, &tensors[i]->spec)) {
            char first[160], other[160];
            wg_fail(WG_ERROR_SHAPE, "stack",
                    "%s x %s: tensors 0 and %d differ in shape; stack "
                    "takes one shape, cat others",
                    wg_spec_text(first, sizeof first, &tensors[0]->spec),
                    wg_spec_text(other, sizeof other, &tensors[i]->spec), i);
            return NULL;
        }
    }
    if (tensors[0]->spec.ndim == WG_MAX_DIMS) {
        wg_fail(WG_ERROR_SHAPE, "stack", "a tensor of rank %d takes no further axis", WG_MAX_DIMS);
        return NULL;
    }
    const int along = wg__axis(axis, tensors[0]->spec.ndim + 1, "stack");
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, stack(count, tensors, along));
}

/* Vector i runs along axis i and is repeated, by strides of 0, along the others. */
static int meshgrid(int count, wg_tensor *const *vectors, wg_tensor **outputs) {
    int64_t shape[WG_MAX_DIMS];
    for (int i = 0; i < count; i++)
        shape[i] = wg_tensor_count(vectors[i]);
    for (int i = 0; i < count; i++) {
        int64_t line[WG_MAX_DIMS];
        for (int j = 0; j < count; j++)
            line[j] = j == i ? shape[i] : 1;
        outputs[i] = wg_expand(wg_reshape(vectors[i], count, line), count, shape);
        if (outputs[i] == NULL)
            return -1;
    }
    return 0;
}

int wg_meshgrid(int count, wg_tensor *const *vectors, wg_tensor **outputs) {
    if (count < 1 || count > WG_MAX_DIMS)
        return wg_fail(WG_ERROR_ARGUMENT, "meshgrid", "%d vectors; wanted 1 to %d", count,
                       WG_MAX_DIMS);
    for (int i = 0; i < count; i++)
        outputs[i] = NULL;
    for (int i = 0; i < count; i++) {
        char text[160];
        if (vectors[i] == NULL)
            return -1;
        if (vectors[i]->spec.ndim > 1)
            return wg_fail(WG_ERROR_SHAPE, "meshgrid", "%s: operand %d is no vector",
                           wg_spec_text(text, sizeof text, &vectors[i]->spec), i);
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    const int status = meshgrid(count, vectors, outputs);
    for (int i = 0; i < count; i++)
        outputs[i] = status < 0 ? NULL : wg_scope_escape(outputs[i]);
    wg_scope_end(&scope, NULL);
    return status;
}

static const wg_op *const ops[] = {&cat};

const wg__op_family wg__family_shape = {ops, sizeof ops / sizeof *ops};
