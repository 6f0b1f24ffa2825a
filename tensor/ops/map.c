/* Elementwise ops of one operand: how vector kernels run on operands of any strides. */
#include "tensor/ops/map.h"

#include <string.h>

/* How many elements a kernel takes at a time where they must be gathered from strides. */
#define BLOCK 256

static void gather(int64_t n, size_t size, const char *from, int64_t stride, char *to) {
    if (size == sizeof(float))
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 4 * i, from + i * stride, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 8 * i, from + i * stride, 8);
}

/* A stretch of an operand of which every element follows the last: its own memory, or a copy. */
static const void *stretch(int64_t n, size_t size, const char *from, int64_t stride, void *room) {
    if (stride == (int64_t)size)
        return from;
    gather(n, size, from, stride, room);
    return room;
}

/* operands: y, x; or dx, x, dy. The first is contiguous: it is an output, or like one. */
static void run_kernel(int64_t n, size_t size, char *const *data, const int64_t *strides,
                       const wg__map *kernel) {
    double room_x[BLOCK], room_dy[BLOCK];
    const bool whole = strides[1] == (int64_t)size && (!kernel->vjp || strides[2] == (int64_t)size);
    const int64_t step = whole ? n : BLOCK;
    for (int64_t begin = 0; begin < n; begin += step) {
        const int64_t count = n - begin < step ? n - begin : step;
        void *y = data[0] + begin * (int64_t)size;
        const void *x = stretch(count, size, data[1] + begin * strides[1], strides[1], room_x);
        if (kernel->map != NULL)
            kernel->map(count, x, y);
        else
            kernel->vjp(count, x,
                        stretch(count, size, data[2] + begin * strides[2], strides[2], room_dy), y);
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

int wg__run_map(wg_call *call, wg__simd_map map) {
    return wg__elementwise_call(call, kernel_loops, &(wg__map){.map = map});
}

int wg__run_vjp(wg_call *call, wg__simd_vjp vjp, wg_tensor *x_or_y, wg_tensor *g,
                wg_tensor **gradients) {
    const bool reuse =
        call->last_use && wg__tensor_is_sole(x_or_y) && wg_tensor_is_contiguous(x_or_y);
    wg_tensor *dx = reuse ? wg__tensor_view(x_or_y, &x_or_y->spec, x_or_y->strides, x_or_y->offset)
                          : wg_empty_like(x_or_y);
    if (dx == NULL)
        return -1;
    wg__elementwise(3, (wg_tensor *[]){dx, x_or_y, g}, kernel_loops, &(wg__map){.vjp = vjp});
    gradients[0] = dx;
    return 0;
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
