/* Gated units, y = f(gate) value: a sigmoid or an activation function lets through what a second
 * projection gives   (Dauphin et al. 2017; Shazeer 2020, "GLU variants improve transformer").
 * Fused: one pass forward, and one backward that gives both gradients. */
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/elementwise/map.h"

/* ---- Forward: y, gate, value ---- */

static void run_gate(int64_t n, size_t size, char *const *data, const int64_t *strides,
                     wg__simd_gate kernel) {
    double rooms[2][WG__STRETCH];
    const bool whole = strides[1] == (int64_t)size && strides[2] == (int64_t)size;
    const int64_t step = whole ? n : WG__STRETCH;
    for (int64_t begin = 0; begin < n; begin += step) {
        const int64_t count = n - begin < step ? n - begin : step;
        const void *operands[2];
        for (int i = 0; i < 2; i++)
            operands[i] = wg__stretch(count, size, data[i + 1] + begin * strides[i + 1],
                                      strides[i + 1], rooms[i]);
        kernel(count, operands[0], operands[1], data[0] + begin * (int64_t)size);
    }
}

static void gate_f32(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    run_gate(n, sizeof(float), data, strides, *(const wg__simd_gate *)context);
}

static void gate_f64(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    run_gate(n, sizeof(double), data, strides, *(const wg__simd_gate *)context);
}

static int gate_forward(wg_call *call, wg__simd_gate kernel) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {[WG_F32] = gate_f32, [WG_F64] = gate_f64};
    return wg__elementwise_call(call, loops, &kernel);
}

/* ---- Backward: dgate, gate, value, dy, dvalue; the last is a result, too, as contiguous as the
 * first ---- */

static void run_gate_vjp(int64_t n, size_t size, char *const *data, const int64_t *strides,
                         wg__simd_gate_vjp kernel) {
    double rooms[3][WG__STRETCH];
    bool whole = true;
    for (int i = 1; i <= 3; i++)
        whole = whole && strides[i] == (int64_t)size;
    const int64_t step = whole ? n : WG__STRETCH;
    for (int64_t begin = 0; begin < n; begin += step) {
        const int64_t count = n - begin < step ? n - begin : step;
        const void *operands[3];
        for (int i = 0; i < 3; i++)
            operands[i] = wg__stretch(count, size, data[i + 1] + begin * strides[i + 1],
                                      strides[i + 1], rooms[i]);
        kernel(count, operands[0], operands[1], operands[2], data[0] + begin * (int64_t)size,
               data[4] + begin * (int64_t)size);
    }
}

static void gate_vjp_f32(int64_t n, char *const *data, const int64_t *strides,
                         const void *context) {
    run_gate_vjp(n, sizeof(float), data, strides, *(const wg__simd_gate_vjp *)context);
}

static void gate_vjp_f64(int64_t n, char *const *data, const int64_t *strides,
                         const void *context) {
    run_gate_vjp(n, sizeof(double), data, strides, *(const wg__simd_gate_vjp *)context);
}

static int gate_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients,
                    wg__simd_gate_vjp kernel) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {
        [WG_F32] = gate_vjp_f32, [WG_F64] = gate_vjp_f64};
    const wg_dtype dtype = call->input_specs[0].dtype;
    wg_tensor *gate = wg__widen(call->inputs[0]), *value = wg__widen(call->inputs[1]);
    wg_tensor *dy = wg__widen(cotangents[0]);
    if (gate == NULL || value == NULL || dy == NULL)
        return -1;
    wg_tensor *dgate = wg__gradient_like(call, gate);
    wg_tensor *dvalue = gate == value ? wg_empty_like(value) : wg__gradient_like(call, value);
    if (dgate == NULL || dvalue == NULL)
        return -1;
    wg__elementwise(5, (wg_tensor *[]){dgate, gate, value, dy, dvalue}, loops, &kernel);
    if (wg__wants(call, 0))
        gradients[0] = wg__narrow(dgate, dtype);
    if (wg__wants(call, 1))
        gradients[1] = wg__narrow(dvalue, dtype);
    return wg__vjp_status();
}

/* ---- What the records share ---- */

static int gate_infer(wg_call *call) {
    const wg_spec *gate = &call->input_specs[0], *value = &call->input_specs[1];
    if (wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    if (!wg__same_shape(gate, value))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the shapes of gate and value differ; wanted equal ones");
    return wg__infer_float(call);
}

static int gate_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const int64_t shapes[][3] = {{2, 3, 1}, {1, 2, 35}, {2, 2, 2}};
    if (index >= 3)
        return 0;
    sample->inputs[0] = wg__sample_nonzero(generator, 3, shapes[index]);
    sample->inputs[1] = wg_randn(generator, WG_F64, 3, shapes[index]);
    return wg__sample_status(sample, 2);
}

/* The op NAME whose gate is the activation of that formula; FUNCTION is the op of it. */
#define GATE(NAME, FUNCTION, DOC)                                                                  \
    static int NAME##_forward(wg_call *call) {                                                     \
        return gate_forward(call, wg__call_simd(call)->NAME);                                      \
    }                                                                                              \
    static int NAME##_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {    \
        return gate_vjp(call, cotangents, gradients, wg__call_simd(call)->NAME##_vjp);             \
    }                                                                                              \
    static int NAME##_decompose(wg_call *call) {                                                   \
        call->outputs[0] = wg_mul(FUNCTION(call->inputs[0]), call->inputs[1]);                     \
        return call->outputs[0] == NULL ? -1 : 0;                                                  \
    }                                                                                              \
    static const wg_op NAME = {.name = #NAME,                                                      \
                               .doc = DOC,                                                         \
                               .min_inputs = 2,                                                    \
                               .max_inputs = 2,                                                    \
                               .output_count = 1,                                                  \
                               .saves_inputs = 3,                                                  \
                               .differentiable = 3,                                                \
                               .infer = gate_infer,                                                \
                               .forward = NAME##_forward,                                          \
                               .vjp = NAME##_vjp,                                                  \
                               .decompose = NAME##_decompose,                                      \
                               .sample = gate_sample,                                              \
                               .bench = wg__bench_two};                                            \
    wg_tensor *wg_##NAME(wg_tensor *gate, wg_tensor *value) {                                      \
        return wg__apply_two(&NAME, gate, value, true);                                            \
    }

/* ---- glu, swiglu, geglu, reglu.   dvalue = g f(gate), dgate = g value f'(gate). ---- */

GATE(glu, wg_sigmoid, "y = sigmoid(gate) value, of equal shapes. Fused.")
GATE(swiglu, wg_silu, "y = silu(gate) value, of equal shapes. Fused.")
GATE(geglu, wg_gelu, "y = gelu(gate) value, of equal shapes. Fused.")
GATE(reglu, wg_relu, "y = max(gate, 0) value, of equal shapes. Kink at gate 0: 0. Fused.")

static const wg_op *const ops[] = {&glu, &swiglu, &geglu, &reglu};

const wg__op_family wg__family_gate = {ops, sizeof ops / sizeof *ops};
