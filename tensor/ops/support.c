/* Helpers of all op families: the registry, shape and dtype rules, casts, derivatives, samples. */
#include "tensor/ops/support.h"

#include <stdlib.h>
#include <string.h>

#define ADDRESS(NAME) &wg__ops_##NAME
static const wg__op_table *const tables[] = {WG__OP_TABLES(ADDRESS)};
enum { TABLES = sizeof tables / sizeof *tables };

int wg_op_count(void) {
    int count = 0;
    for (int i = 0; i < TABLES; i++)
        count += tables[i]->count;
    return count;
}

const wg_op *wg_op_at(int index) {
    if (index < 0)
        return NULL;
    for (int i = 0; i < TABLES; index -= tables[i]->count, i++)
        if (index < tables[i]->count)
            return tables[i]->ops ? tables[i]->ops[index] : &wg__elementwise_ops[index];
    return NULL;
}

const wg_op *wg_op_find(const char *name) {
    for (int i = 0; i < wg_op_count(); i++)
        if (strcmp(wg_op_at(i)->name, name) == 0)
            return wg_op_at(i);
    return NULL;
}

int wg__infer_like(wg_call *call) {
    call->output_specs[0] = call->input_specs[0];
    return 0;
}

int wg__infer_float(wg_call *call) {
    if (!wg_dtype_is_float(call->input_specs[0].dtype))
        return wg__op_fail(call, WG_ERROR_DTYPE, "takes a floating dtype, not %s; cast the operand",
                           wg_dtype_name(call->input_specs[0].dtype));
    return wg__infer_like(call);
}

int wg__infer_broadcast(wg_call *call, wg_dtype dtype) {
    wg_spec *out = &call->output_specs[0];
    *out = call->input_specs[0];
    for (int i = 1; i < call->input_count; i++) {
        const wg_spec a = *out, *b = &call->input_specs[i];
        if (wg__same_shape(&a, b) || wg__broadcast(&a, b, out))
            continue;
        for (int k = 1; k <= a.ndim && k <= b->ndim; k++) {
            const int64_t m = a.shape[a.ndim - k], n = b->shape[b->ndim - k];
            if (m != n && m != 1 && n != 1)
                return wg__op_fail(call, WG_ERROR_SHAPE,
                                   "sizes %lld and %lld of axis -%d do not broadcast; make them "
                                   "equal, or one of them 1",
                                   (long long)m, (long long)n, k);
        }
        return wg__op_fail(call, WG_ERROR_SHAPE, "the shapes do not broadcast");
    }
    out->dtype = dtype;
    return 0;
}

int wg__check_same_dtype(const wg_call *call, int i, int j) {
    if (call->input_specs[i].dtype == call->input_specs[j].dtype)
        return 0;
    return wg__op_fail(call, WG_ERROR_DTYPE, "dtypes %s and %s differ; cast one operand",
                       wg_dtype_name(call->input_specs[i].dtype),
                       wg_dtype_name(call->input_specs[j].dtype));
}

int wg__check_same_dtypes(const wg_call *call, int count) {
    for (int i = 1; i < count && i < call->input_count; i++)
        if (call->input_specs[i].ndim >= 0 && wg__check_same_dtype(call, 0, i) < 0)
            return -1;
    return 0;
}

int wg__check_offsets(const char *where, const wg_tensor *offsets, int64_t rows) {
    char text[128];
    wg_spec_text(text, sizeof text, &offsets->spec);
    if (offsets->spec.dtype != WG_I64)
        return wg_fail(WG_ERROR_DTYPE, where, "offsets %s: wanted i64 or i32", text);
    if (offsets->spec.ndim != 1 || offsets->spec.shape[0] < 1)
        return wg_fail(WG_ERROR_SHAPE, where,
                       "offsets %s: wanted rank 1, the beginning of each segment and the end",
                       text);
    const int64_t *at = wg__tensor_address(offsets), last = offsets->spec.shape[0] - 1;
    for (int64_t i = 0; i < last; i++)
        if (at[i] > at[i + 1])
            return wg_fail(WG_ERROR_INDEX, where,
                           "offset %lld is %lld and the next is %lld; wanted ascending ones",
                           (long long)i, (long long)at[i], (long long)at[i + 1]);
    if (at[0] != 0 || at[last] != rows)
        return wg_fail(WG_ERROR_INDEX, where,
                       "the offsets go from %lld to %lld; wanted 0 to %lld, the number of rows",
                       (long long)at[0], (long long)at[last], (long long)rows);
    return 0;
}

bool wg__promote(wg_tensor **a, wg_tensor **b) {
    wg_tensor *both[] = {*a, *b};
    if (!*b || !wg__promote_all(2, both))
        return false;
    *a = both[0];
    *b = both[1];
    return true;
}

wg_tensor *wg__as_float(wg_tensor *x) {
    return x == NULL || wg_dtype_is_float(x->spec.dtype) ? x : wg_cast(x, WG_F32);
}

/* ---- Running an op on cast operands: a scope frees the casts at once ---- */

wg_tensor *wg__apply_float(const wg_op *op, wg_tensor *x, const void *options) {
    if (!x || wg_dtype_is_float(x->spec.dtype))
        return wg_apply_one(op, 1, &x, options);
    wg_scope scope;
    wg_scope_begin(&scope);
    x = wg__as_float(x);
    return wg_scope_end(&scope, wg_apply_one(op, 1, &x, options));
}

wg_tensor *wg__apply_promoted(const wg_op *op, int count, wg_tensor **inputs, bool floating,
                              const void *options) {
    bool casts = false;
    for (int i = 0; i < count; i++) {
        if (!inputs[i] && i < op->min_inputs)
            return NULL;
        casts |= inputs[i] && inputs[i]->spec.dtype != inputs[0]->spec.dtype;
    }
    if (!casts && (!floating || wg_dtype_is_float(inputs[0]->spec.dtype)))
        return wg_apply_one(op, count, inputs, options);
    wg_tensor *y = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote_all(count, inputs)) {
        for (int i = 0; i < count && floating; i++)
            inputs[i] = wg__as_float(inputs[i]);
        y = wg_apply_one(op, count, inputs, options);
    }
    return wg_scope_end(&scope, y);
}

int wg__check_kernel_dtype(const wg_call *call) {
    wg_dtype dtype = call->input_specs[0].dtype;
    if (dtype == WG_F32 || dtype == WG_F64)
        return 0;
    return wg__op_fail(call, WG_ERROR_DTYPE, "wanted f32 or f64; cast the operands");
}

int wg__infer_kernel(wg_call *call) {
    return wg__check_kernel_dtype(call) < 0 ? -1 : wg__infer_like(call);
}

bool wg__promote_all(int count, wg_tensor **tensors) {
    if (!tensors[0])
        return false;
    wg_dtype dtype = tensors[0]->spec.dtype;
    for (int i = 1; i < count; i++)
        if (tensors[i])
            dtype = wg__dtype_promote(dtype, tensors[i]->spec.dtype);
    for (int i = 0; i < count; i++) {
        if (!tensors[i] || tensors[i]->spec.dtype == dtype)
            continue;
        tensors[i] = wg_cast(tensors[i], dtype);
        if (!tensors[i])
            return false;
    }
    return true;
}

wg_tensor *wg__widen(wg_tensor *x) {
    return x && x->spec.dtype == WG_BF16 ? wg_cast(x, WG_F32) : x;
}

bool wg__widen_all(int count, wg_tensor **tensors, wg_dtype *dtype) {
    bool all = wg__promote_all(count, tensors);
    *dtype = all ? tensors[0]->spec.dtype : WG_F32;
    for (int i = 0; i < count && all; i++)
        all = !tensors[i] || (tensors[i] = wg__widen(tensors[i]));
    return all;
}

wg_tensor *wg__narrow(wg_tensor *result, wg_dtype dtype) {
    return dtype == WG_BF16 ? wg_cast(result, WG_BF16) : result;
}

int wg__apply_wide(const wg_op *op, int count, wg_tensor *const *inputs, bool floating,
                   const void *options, wg_tensor **outputs) {
    wg_tensor *wide[WG_MAX_INPUTS], *results[WG_MAX_OUTPUTS] = {NULL};
    int status = -1;
    for (int j = 0; j < op->output_count; j++)
        outputs[j] = NULL;
    if (count < 1 || !inputs[0])
        return -1;
    memcpy(wide, inputs, (size_t)count * sizeof *wide);
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote_all(count, wide)) {
        const wg_dtype dtype = wide[0]->spec.dtype;
        for (int i = 0; i < count; i++)
            wide[i] = wg__widen(floating ? wg__as_float(wide[i]) : wide[i]);
        status = wg_apply(op, count, wide, options, results);
        for (int j = 0; j < op->output_count && status == 0; j++) {
            if (wg_dtype_is_float(results[j]->spec.dtype))
                results[j] = wg__narrow(results[j], dtype);
            status = results[j] ? 0 : -1;
        }
    }
    for (int j = 0; j < op->output_count && status == 0; j++)
        outputs[j] = wg_scope_escape(results[j]);
    wg_scope_end(&scope, NULL);
    return status;
}

wg_tensor *wg__apply_wide_one(const wg_op *op, int count, wg_tensor *const *inputs, bool floating,
                              const void *options) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    return wg__apply_wide(op, count, inputs, floating, options, outputs) < 0 ? NULL : outputs[0];
}

wg_tensor *wg__sum_like(wg_tensor *g, const wg_call *call, int i) {
    return wg_sum_to(g, call->input_specs[i].ndim, call->input_specs[i].shape);
}

int wg__vjp_status(void) {
    return wg_error_pending() != NULL ? -1 : 0;
}

int wg__jvp_diagonal(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    if (tangents[0] == NULL)
        return 0;
    wg_call transposed = *call;
    transposed.wants = 1;
    transposed.create_graph = true; /* the tangent may itself be differentiated */
    transposed.last_use = false;
    return call->op->vjp(&transposed, tangents, output_tangents);
}

int wg__vjp_by_partials(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients,
                        wg__partial partial) {
    for (int i = 0; i < call->input_count; i++)
        if (wg__wants(call, i))
            gradients[i] = wg__sum_like(partial(call, i, cotangents[0]), call, i);
    return wg__vjp_status();
}

int wg__jvp_by_partials(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents,
                        wg__partial partial) {
    const wg_spec *spec = &call->output_specs[0];
    wg_tensor *sum = NULL;
    for (int i = 0; i < call->input_count; i++)
        if (tangents[i])
            sum = wg__plus(sum, partial(call, i, tangents[i]));
    output_tangents[0] = sum == NULL ? NULL : wg_expand(sum, spec->ndim, spec->shape);
    return wg__vjp_status();
}

wg_tensor *wg__sample_normal(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_randn(generator, WG_F64, ndim, shape);
}

wg_tensor *wg__sample_positive(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 1.5, 0.5);
}

wg_tensor *wg__sample_nonzero(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = wg_randn(generator, WG_F64, ndim, shape);
    return wg_add(x, wg_affine(wg_sign(x), 0.25, 0));
}

wg_tensor *wg__sample_distinct(wg_generator *generator, int ndim, const int64_t *shape) {
    const int64_t count = wg__shape_count(ndim, shape);
    wg_tensor *x = wg_cast(wg_randperm(generator, count), WG_F64);
    return wg_reshape(wg_affine(x, 0.25, -0.125 * (double)count), ndim, shape);
}

wg_tensor *wg__sample_off_steps(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg__sample_distinct(generator, ndim, shape), 1, 0.0625);
}

wg_tensor *wg__sample_coarse(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_cast(wg_randint(generator, -1, 2, ndim, shape), WG_F64);
}

wg_tensor *wg__sample_truth(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_cast(wg_randint(generator, 0, 2, ndim, shape), WG_BOOL);
}

wg_tensor *wg__sample_f32(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_rand(generator, WG_F32, ndim, shape);
}

wg_tensor *wg__sample_normal_f32(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_randn(generator, WG_F32, ndim, shape);
}

int wg__sample_status(wg_sample *sample, int count) {
    sample->input_count = count;
    for (int i = 0; i < count; i++)
        if (sample->inputs[i] == NULL)
            return -1;
    return 1;
}

int wg__sample_shapes(wg_generator *generator, wg_sample *sample, const char *shapes, int count,
                      const wg__sampler *samplers) {
    bool failed = false;
    int inputs = 0;
    for (const char *at = shapes; at; at = *at == ',' ? at + 1 : NULL) {
        int64_t shape[WG_MAX_DIMS];
        int ndim = 0;
        char *end;
        for (at += strspn(at, " "); *at >= '0' && *at <= '9'; at += strspn(at, " ")) {
            shape[ndim++] = strtoll(at, &end, 10);
            at = end;
        }
        wg_tensor *x = NULL;
        const bool absent = *at == '-';
        if (absent)
            at++;
        else if (*at == '<') {
            x = wg_randint(generator, 0, strtoll(at + 1, &end, 10), ndim, shape);
            at = end;
        } else
            x = samplers[wg__smaller(inputs, count - 1)](generator, ndim, shape);
        failed |= !x && !absent;
        sample->inputs[inputs++] = x;
    }
    sample->input_count = inputs;
    return failed ? -1 : 1;
}

int wg__sample_unary(int index, wg_generator *generator, wg_sample *sample, wg__sampler make) {
    static const char *const shapes[] = {"2 3", "", "1", "2 1 3 2"};
    return index < 4 ? wg__sample_shapes(generator, sample, shapes[index], 1, &make) : 0;
}

int wg__sample_binary(int index, wg_generator *generator, wg_sample *sample, wg__sampler make_a,
                      wg__sampler make_b) {
    static const char *const shapes[] = {"2 3, 2 3", "2 3, 3",       ", 2 2",
                                         "4 1, 1 3", "2 3 2, 1 3 1", "1,"};
    const wg__sampler samplers[] = {make_a, make_b};
    return index < 6 ? wg__sample_shapes(generator, sample, shapes[index], 2, samplers) : 0;
}

int wg__bench_one(wg_generator *generator, wg_sample *sample) {
    return wg__sample_shapes(generator, sample, "4194304", 1, (wg__sampler[]){wg__sample_f32});
}

int wg__bench_two(wg_generator *generator, wg_sample *sample) {
    const wg__sampler make[] = {wg__sample_f32};
    return wg__sample_shapes(generator, sample, "4194304, 4194304", 1, make);
}
