/* What the families of ops share: rules of shape and dtype, loops over elements, samples. */
#include "tensor/ops/elementwise/elementwise.h"

#include "tensor/convert.h"

/* ---- Shape and dtype rules ---- */

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

/* Says which axis, counted from the end as broadcasting does, is the first that does not fit. */
static int fail_broadcast(const wg_call *call, const wg_spec *a, const wg_spec *b) {
    for (int i = 1; i <= a->ndim && i <= b->ndim; i++) {
        const int64_t m = a->shape[a->ndim - i], n = b->shape[b->ndim - i];
        if (m != n && m != 1 && n != 1)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "sizes %lld and %lld of axis -%d do not broadcast; make them equal, "
                               "or one of them 1",
                               (long long)m, (long long)n, i);
    }
    return wg__op_fail(call, WG_ERROR_SHAPE, "the shapes do not broadcast");
}

int wg__infer_broadcast(wg_call *call, int first, wg_dtype dtype) {
    wg_spec *out = &call->output_specs[0];
    *out = call->input_specs[first];
    for (int i = first + 1; i < call->input_count; i++) {
        if (wg__same_shape(out, &call->input_specs[i]))
            continue;
        const wg_spec so_far = *out;
        if (!wg__broadcast(&so_far, &call->input_specs[i], out))
            return fail_broadcast(call, &so_far, &call->input_specs[i]);
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

bool wg__promote(wg_tensor **a, wg_tensor **b) {
    if (*a == NULL || *b == NULL)
        return false;
    const wg_dtype dtype = wg_dtype_promote((*a)->spec.dtype, (*b)->spec.dtype);
    if ((*a)->spec.dtype != dtype)
        *a = wg_cast(*a, dtype);
    if ((*b)->spec.dtype != dtype)
        *b = wg_cast(*b, dtype);
    return *a != NULL && *b != NULL;
}

wg_tensor *wg__as_float(wg_tensor *x) {
    return x == NULL || wg_dtype_is_float(x->spec.dtype) ? x : wg_cast(x, WG_F32);
}

/* Where there are casts, scopes of their own let them go at once. */

wg_tensor *wg__apply_float(const wg_op *op, wg_tensor *x, const void *options) {
    if (!x || wg_dtype_is_float(x->spec.dtype))
        return wg_apply_one(op, 1, &x, options);
    wg_scope scope;
    wg_scope_begin(&scope);
    x = wg__as_float(x);
    return wg_scope_end(&scope, wg_apply_one(op, 1, &x, options));
}

wg_tensor *wg__apply_two(const wg_op *op, wg_tensor *a, wg_tensor *b, bool floating) {
    if (!a || !b)
        return NULL;
    const bool is_float = wg_dtype_is_float(a->spec.dtype) || !floating;
    if (a->spec.dtype == b->spec.dtype && is_float)
        return wg_apply_one(op, 2, (wg_tensor *[]){a, b}, NULL);
    wg_tensor *y = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote(&a, &b)) {
        if (floating) {
            a = wg__as_float(a);
            b = wg__as_float(b);
        }
        y = wg_apply_one(op, 2, (wg_tensor *[]){a, b}, NULL);
    }
    return wg_scope_end(&scope, y);
}

/* ---- Kernels ---- */

/* How many elements pass through f32 at a time: all operands stay in the first-level cache. */
#define BLOCK 256

typedef struct bf16_context {
    wg__loop loop; /* of f32 */
    const void *context;
    int operand_count;
    bool is_bf16[WG__MAX_OPERANDS];
} bf16_context;

static void widen(int64_t n, const uint16_t *from, int64_t stride, float *restrict to) {
    if (stride == 1)
        for (int64_t i = 0; i < n; i++)
            to[i] = wg__bf16_to_f32(from[i]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = wg__bf16_to_f32(from[i * stride]);
}

/* The output, which is contiguous. */
static void narrow(int64_t n, const float *from, uint16_t *restrict to) {
    for (int64_t i = 0; i < n; i++)
        to[i] = wg__f32_to_bf16(from[i]);
}

static void through_f32(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    const bf16_context *bf16 = context;
    float buffers[WG__MAX_OPERANDS][BLOCK];
    char *block[WG__MAX_OPERANDS];
    int64_t block_strides[WG__MAX_OPERANDS];
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t count = n - begin < BLOCK ? n - begin : BLOCK;
        for (int i = 0; i < bf16->operand_count; i++) {
            char *const operand = data[i] + begin * strides[i];
            block[i] = bf16->is_bf16[i] ? (char *)buffers[i] : operand;
            block_strides[i] = bf16->is_bf16[i] ? (int64_t)sizeof(float) : strides[i];
            if (bf16->is_bf16[i] && i > 0)
                widen(count, (const uint16_t *)operand, strides[i] / 2, buffers[i]);
        }
        bf16->loop(count, block, block_strides, bf16->context);
        if (bf16->is_bf16[0])
            narrow(count, buffers[0], (uint16_t *)data[0] + begin);
    }
}

void wg__elementwise(int operand_count, wg_tensor *const *operands, const wg__loop *loops,
                     const void *context) {
    const wg_dtype dtype = operands[1]->spec.dtype;
    if (dtype != WG_BF16) {
        wg__iterate(operand_count, operands, loops[dtype], context);
        return;
    }
    bf16_context bf16 = {.loop = loops[WG_F32], .context = context, .operand_count = operand_count};
    for (int i = 0; i < operand_count; i++)
        bf16.is_bf16[i] = operands[i]->spec.dtype == WG_BF16;
    wg__iterate(operand_count, operands, through_f32, &bf16);
}

int wg__elementwise_call(wg_call *call, const wg__loop *loops, const void *context) {
    wg_tensor *operands[WG__MAX_OPERANDS] = {call->outputs[0]};
    for (int i = 0; i < call->input_count; i++)
        operands[i + 1] = call->inputs[i];
    wg__elementwise(call->input_count + 1, operands, loops, context);
    return 0;
}

/* ---- Backward ---- */

wg_tensor *wg__sum_like(wg_tensor *g, const wg_call *call, int i) {
    return wg_sum_to(g, call->input_specs[i].ndim, call->input_specs[i].shape);
}

int wg__vjp_status(void) {
    return wg_error_pending() != NULL ? -1 : 0;
}

/* ---- Derivatives of elementwise ops ---- */

int wg__jvp_diagonal(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    if (tangents[0] == NULL)
        return 0;
    wg_call transposed = *call;
    transposed.wants = 1;
    transposed.create_graph = true; /* the tangent may be differentiated in its turn */
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
    for (int i = 0; i < call->input_count; i++) {
        wg_tensor *term = tangents[i] == NULL ? NULL : partial(call, i, tangents[i]);
        sum = sum != NULL && term != NULL ? wg_add(sum, term) : sum != NULL ? sum : term;
    }
    output_tangents[0] = sum == NULL ? NULL : wg_expand(sum, spec->ndim, spec->shape);
    return wg__vjp_status();
}

/* ---- Samples ---- */

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
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    wg_tensor *x = wg_cast(wg_randperm(generator, count), WG_F64);
    return wg_reshape(wg_affine(x, 0.25, -0.125 * (double)count), ndim, shape);
}

typedef struct sample_shape {
    int ndim;
    int64_t shape[4];
} sample_shape;

int wg__sample_status(wg_sample *sample, int count) {
    sample->input_count = count;
    for (int i = 0; i < count; i++)
        if (sample->inputs[i] == NULL)
            return -1;
    return 1;
}

int wg__sample_unary(int index, wg_generator *generator, wg_sample *sample, wg__sampler make) {
    static const sample_shape shapes[] = {{2, {2, 3}}, {0, {0}}, {1, {1}}, {4, {2, 1, 3, 2}}};
    if (index >= (int)(sizeof shapes / sizeof *shapes))
        return 0;
    sample->inputs[0] = make(generator, shapes[index].ndim, shapes[index].shape);
    return wg__sample_status(sample, 1);
}

int wg__sample_binary(int index, wg_generator *generator, wg_sample *sample, wg__sampler make_a,
                      wg__sampler make_b) {
    static const sample_shape shapes[][2] = {
        {{2, {2, 3}}, {2, {2, 3}}}, {{2, {2, 3}}, {1, {3}}},          {{0, {0}}, {2, {2, 2}}},
        {{2, {4, 1}}, {2, {1, 3}}}, {{3, {2, 3, 2}}, {3, {1, 3, 1}}}, {{1, {1}}, {0, {0}}},
    };
    if (index >= (int)(sizeof shapes / sizeof *shapes))
        return 0;
    const sample_shape *a = &shapes[index][0], *b = &shapes[index][1];
    sample->inputs[0] = make_a(generator, a->ndim, a->shape);
    sample->inputs[1] = make_b(generator, b->ndim, b->shape);
    return wg__sample_status(sample, 2);
}

static int bench(wg_generator *generator, wg_sample *sample, int count) {
    const int64_t shape[] = {1 << 22};
    for (int i = 0; i < count; i++)
        sample->inputs[i] = wg_rand(generator, WG_F32, 1, shape);
    return wg__sample_status(sample, count);
}

int wg__bench_one(wg_generator *generator, wg_sample *sample) {
    return bench(generator, sample, 1);
}

int wg__bench_two(wg_generator *generator, wg_sample *sample) {
    return bench(generator, sample, 2);
}

int wg__bench_three(wg_generator *generator, wg_sample *sample) {
    return bench(generator, sample, 3);
}
