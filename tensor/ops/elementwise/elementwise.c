/* Kernels of elementwise ops: loops over elements, vector kernels on operands of any strides. */
#include "tensor/ops/elementwise/elementwise.h"

#include "tensor/internal.h"

#include <string.h>

/* ---- Loops over any number of operands ---- */

/* Elements of bf16 operands that are converted to f32 at a time, so that all operands stay in the
 * first-level cache. */
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

/* Rounds to bf16; outputs are contiguous. */
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

/* ---- Vector kernels ---- */

/* Elements that are copied at a time from an operand that is not contiguous. */
#define STRETCH 256

/* A kernel of one of these types. Those named _by take the numbers a and b. */
typedef struct vector_kernel {
    wg__simd_map map;
    wg__simd_map_by map_by;
    wg__simd_pair pair;
    wg__simd_vjp_by pair_by;
    wg__simd_gate_vjp gate_vjp;
    double a, b;
} vector_kernel;

static int input_count(const vector_kernel *kernel) {
    return kernel->gate_vjp != NULL ? 3 : kernel->pair != NULL || kernel->pair_by != NULL ? 2 : 1;
}

static void run_stretch(const vector_kernel *k, int64_t n, const void *const *x, void *y,
                        void *second) {
    if (k->map != NULL)
        k->map(n, x[0], y);
    else if (k->map_by != NULL)
        k->map_by(n, k->a, k->b, x[0], y);
    else if (k->pair != NULL)
        k->pair(n, x[0], x[1], y);
    else if (k->pair_by != NULL)
        k->pair_by(n, k->a, k->b, x[0], x[1], y);
    else
        k->gate_vjp(n, x[0], x[1], x[2], y, second);
}

/* n elements of an operand: its own memory if they are contiguous, else a copy in `room`. */
static const void *stretch(int64_t n, size_t size, const char *from, int64_t stride, double *room) {
    if (stride == (int64_t)size)
        return from;
    for (int64_t i = 0; i < n; i++)
        if (size == sizeof(float))
            memcpy((float *)room + i, from + i * stride, sizeof(float));
        else
            memcpy(room + i, from + i * stride, sizeof(double));
    return room;
}

/* operands: y, then the inputs; of gate_vjp, also the second output. Outputs are contiguous. */
static void run_kernel(int64_t n, size_t size, char *const *data, const int64_t *strides,
                       const vector_kernel *kernel) {
    double rooms[3][STRETCH];
    const int inputs = input_count(kernel);
    bool whole = true;
    for (int i = 1; i <= inputs; i++)
        whole = whole && strides[i] == (int64_t)size;
    const int64_t step = whole ? n : STRETCH;
    for (int64_t begin = 0; begin < n; begin += step) {
        const int64_t count = n - begin < step ? n - begin : step;
        const void *x[3];
        for (int i = 0; i < inputs; i++)
            x[i] = stretch(count, size, data[i + 1] + begin * strides[i + 1], strides[i + 1],
                           rooms[i]);
        run_stretch(kernel, count, x, data[0] + begin * (int64_t)size,
                    inputs == 3 ? data[4] + begin * (int64_t)size : NULL);
    }
}

static void kernel_f32(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    run_kernel(n, sizeof(float), data, strides, context);
}

static void kernel_f64(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    run_kernel(n, sizeof(double), data, strides, context);
}

static const wg__loop kernel_loops[WG_DTYPE_COUNT] = {[WG_F32] = kernel_f32, [WG_F64] = kernel_f64};

const wg__simd *wg__call_simd(const wg_call *call) {
    return wg__simd_for(call->input_specs[0].dtype == WG_F64 ? WG_F64 : WG_F32);
}

/* ---- Forward ---- */

int wg__run_map(wg_call *call, wg__simd_map map) {
    return wg__elementwise_call(call, kernel_loops, &(vector_kernel){.map = map});
}

int wg__run_map_by(wg_call *call, wg__simd_map_by map, double a, double b) {
    return wg__elementwise_call(call, kernel_loops,
                                &(vector_kernel){.map_by = map, .a = a, .b = b});
}

int wg__run_pair(wg_call *call, wg__simd_pair pair) {
    return wg__elementwise_call(call, kernel_loops, &(vector_kernel){.pair = pair});
}

int wg__run_pair_with(wg_call *call, wg__simd_pair pair, double number) {
    wg_tensor *x = call->inputs[0];
    wg_tensor *second = wg_scalar(x->spec.dtype == WG_F64 ? WG_F64 : WG_F32, number);
    if (second == NULL)
        return -1;
    wg__elementwise(3, (wg_tensor *[]){call->outputs[0], x, second}, kernel_loops,
                    &(vector_kernel){.pair = pair});
    return 0;
}

/* ---- Backward ---- */

wg_tensor *wg__gradient_like(const wg_call *call, wg_tensor *x) {
    const bool reuse = call->last_use && wg__tensor_is_sole(x) && wg_tensor_is_contiguous(x);
    return reuse ? wg__tensor_view(x, &x->spec, x->strides, x->offset) : wg_empty_like(x);
}

static int run_vjp(wg_call *call, const vector_kernel *kernel, wg_tensor *x_or_y, wg_tensor *g,
                   wg_tensor **gradients) {
    wg_tensor *dx = wg__gradient_like(call, x_or_y);
    if (dx == NULL)
        return -1;
    wg__elementwise(3, (wg_tensor *[]){dx, x_or_y, g}, kernel_loops, kernel);
    gradients[0] = dx;
    return 0;
}

int wg__run_vjp(wg_call *call, wg__simd_vjp vjp, wg_tensor *x_or_y, wg_tensor *g,
                wg_tensor **gradients) {
    return run_vjp(call, &(vector_kernel){.pair = vjp}, x_or_y, g, gradients);
}

int wg__run_vjp_by(wg_call *call, wg__simd_vjp_by vjp, double a, double b, wg_tensor *x,
                   wg_tensor *g, wg_tensor **gradients) {
    return run_vjp(call, &(vector_kernel){.pair_by = vjp, .a = a, .b = b}, x, g, gradients);
}

int wg__run_gate_vjp(wg_call *call, wg__simd_gate_vjp vjp, wg_tensor *dy, wg_tensor **gradients) {
    const wg_dtype dtype = call->input_specs[0].dtype;
    wg_tensor *gate = wg__widen(call->inputs[0]), *value = wg__widen(call->inputs[1]);
    dy = wg__widen(dy);
    if (gate == NULL || value == NULL || dy == NULL)
        return -1;
    wg_tensor *dgate = wg__gradient_like(call, gate);
    wg_tensor *dvalue = gate == value ? wg_empty_like(value) : wg__gradient_like(call, value);
    if (dgate == NULL || dvalue == NULL)
        return -1;
    wg__elementwise(5, (wg_tensor *[]){dgate, gate, value, dy, dvalue}, kernel_loops,
                    &(vector_kernel){.gate_vjp = vjp});
    if (wg__wants(call, 0))
        gradients[0] = wg__narrow(dgate, dtype);
    if (wg__wants(call, 1))
        gradients[1] = wg__narrow(dvalue, dtype);
    return wg__vjp_status();
}

/* ---- Rules ---- */

int wg__infer_pair(wg_call *call) {
    if (wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    return wg__infer_broadcast(call, 0, call->input_specs[0].dtype);
}

int wg__infer_float_pair(wg_call *call) {
    return wg__infer_float(call) < 0 ? -1 : wg__infer_pair(call);
}

/* ---- Samples ---- */

int wg__unary_normal(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

int wg__unary_positive(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, wg__sample_positive);
}

int wg__unary_nonzero(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, wg__sample_nonzero);
}
