/* Runs plain loops and vector kernels on the operands of elementwise ops, of any strides and dtype.
 */
#include "tensor/ops/elementwise/elementwise.h"

#include <string.h>

/* ---- Loops over any number of operands ---- */

/* bf16 operands are converted to f32 in blocks of BLOCK elements, so that all operands stay in the
 * L1 cache. */
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
        if (bf16->is_bf16[0]) { /* outputs are contiguous */
            uint16_t *restrict to = (uint16_t *)data[0] + begin;
            for (int64_t i = 0; i < count; i++)
                to[i] = wg__f32_to_bf16(buffers[0][i]);
        }
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

/* Elements of a non-contiguous operand that are copied at a time. */
#define STRETCH 256

/* n elements of an operand: in place if they are contiguous, else copied to `room`. */
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

/* operands: y, then the inputs, then the second output if there is one. Outputs are contiguous. */
static void run_kernel(int64_t n, wg_dtype dtype, char *const *data, const int64_t *strides,
                       const wg__map *map) {
    const wg__simd *simd = wg__simd_for(dtype);
    const int64_t size = dtype == WG_F64 ? sizeof(double) : sizeof(float);
    const int inputs = wg__map_inputs(map->kind);
    const void *x[3];
    void *y[] = {data[0], inputs == 3 ? data[4] : NULL};
    bool whole = true;
    for (int i = 0; i < inputs; i++) {
        x[i] = data[i + 1];
        whole = whole && strides[i + 1] == size;
    }
    if (whole) {
        simd->map(map, n, x, y);
        return;
    }
    double rooms[3][STRETCH];
    for (int64_t begin = 0; begin < n; begin += STRETCH) {
        const int64_t count = wg__smaller(n - begin, STRETCH);
        for (int i = 0; i < inputs; i++)
            x[i] = stretch(count, (size_t)size, data[i + 1] + begin * strides[i + 1],
                           strides[i + 1], rooms[i]);
        y[0] = data[0] + begin * size;
        y[1] = inputs == 3 ? data[4] + begin * size : NULL;
        simd->map(map, count, x, y);
    }
}

static void kernel_f32(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    run_kernel(n, WG_F32, data, strides, context);
}

static void kernel_f64(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    run_kernel(n, WG_F64, data, strides, context);
}

/* The kernel of f64 on f32, a block at a time. */
static void through_f64(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    double block[BLOCK];
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t count = n - begin < BLOCK ? n - begin : BLOCK;
        for (int64_t i = 0; i < count; i++)
            block[i] = (double)*(const float *)(data[1] + (begin + i) * strides[1]);
        wg__simd_for(WG_F64)->map(context, count, (const void *[]){block}, (void *[]){block});
        for (int64_t i = 0; i < count; i++)
            ((float *)data[0])[begin + i] = (float)block[i];
    }
}

static const wg__loop kernel_loops[WG_DTYPE_COUNT] = {[WG_F32] = kernel_f32, [WG_F64] = kernel_f64};

int wg__run_map(wg_call *call, const wg__map *map) {
    static const wg__loop in_f64[WG_DTYPE_COUNT] = {[WG_F32] = through_f64, [WG_F64] = kernel_f64};
    const bool is_gamma = map->function == WG_DIGAMMA || map->function == WG__POLYGAMMA;
    return wg__elementwise_call(call, is_gamma ? in_f64 : kernel_loops, map);
}

wg_tensor *wg__gradient_like(const wg_call *call, wg_tensor *x) {
    const bool reuse = call->last_use && wg__tensor_is_sole(x) && wg_tensor_is_contiguous(x);
    return reuse ? wg__tensor_view(x, &x->spec, x->strides, x->offset) : wg_empty_like(x);
}

int wg__run_slopes(wg_call *call, const wg__map *map, wg_tensor *x_or_y, wg_tensor *g,
                   wg_tensor **gradients) {
    wg_tensor *dx = wg__gradient_like(call, x_or_y);
    if (dx == NULL)
        return -1;
    wg__elementwise(3, (wg_tensor *[]){dx, x_or_y, g}, kernel_loops, map);
    gradients[0] = dx;
    return 0;
}

int wg__run_gate_slopes(wg_call *call, int function, wg_tensor *dy, wg_tensor **gradients) {
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
                    &(wg__map){.kind = WG__GATE_SLOPES, .function = function});
    if (wg__wants(call, 0))
        gradients[0] = wg__narrow(dgate, dtype);
    if (wg__wants(call, 1))
        gradients[1] = wg__narrow(dvalue, dtype);
    return wg__vjp_status();
}

/* On both sides of 0, at least 0.2 away from the poles at 0, -1, -2... */
wg_tensor *wg__sample_off_poles(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *whole = wg_cast(wg_randint(generator, -3, 4, ndim, shape), WG_F64);
    return wg_add(whole, wg_affine(wg_rand(generator, WG_F64, ndim, shape), 0.6, 0.2));
}

wg_tensor *wg__sample_steps(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_mul_scalar(wg__sample_distinct(generator, ndim, shape), 5);
}
