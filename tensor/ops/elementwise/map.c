/* Elementwise ops of one operand: how vector kernels run on operands of any strides. */
#include "tensor/ops/elementwise/map.h"

#include <string.h>

/* A kernel: one of these; by the numbers a and b, if it is one of the latter. */
typedef struct kernel {
    wg__simd_map map;
    wg__simd_vjp vjp;
    wg__simd_map_by map_by;
    wg__simd_vjp_by vjp_by;
    double a, b;
} kernel;

static void gather(int64_t n, size_t size, const char *from, int64_t stride, char *to) {
    if (size == sizeof(float))
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 4 * i, from + i * stride, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 8 * i, from + i * stride, 8);
}

const void *wg__stretch(int64_t n, size_t size, const char *from, int64_t stride, double *room) {
    if (stride == (int64_t)size)
        return from;
    gather(n, size, from, stride, (char *)room);
    return room;
}

static bool has_two_operands(const kernel *kernel) {
    return kernel->vjp != NULL || kernel->vjp_by != NULL;
}

static void run_stretch(const kernel *k, int64_t n, const void *x, const void *dy, void *y) {
    if (k->map != NULL)
        k->map(n, x, y);
    else if (k->map_by != NULL)
        k->map_by(n, k->a, k->b, x, y);
    else if (k->vjp != NULL)
        k->vjp(n, x, dy, y);
    else
        k->vjp_by(n, k->a, k->b, x, dy, y);
}

/* operands: y, x; or dx, x, dy. The first is contiguous: it is an output, or like one. */
static void run_kernel(int64_t n, size_t size, char *const *data, const int64_t *strides,
                       const kernel *kernel) {
    double room_x[WG__STRETCH], room_dy[WG__STRETCH];
    const bool two = has_two_operands(kernel);
    const bool whole = strides[1] == (int64_t)size && (!two || strides[2] == (int64_t)size);
    const int64_t step = whole ? n : WG__STRETCH;
    for (int64_t begin = 0; begin < n; begin += step) {
        const int64_t count = n - begin < step ? n - begin : step;
        const void *dy = NULL;
        if (two)
            dy = wg__stretch(count, size, data[2] + begin * strides[2], strides[2], room_dy);
        run_stretch(kernel, count,
                    wg__stretch(count, size, data[1] + begin * strides[1], strides[1], room_x), dy,
                    data[0] + begin * (int64_t)size);
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
    return wg__elementwise_call(call, kernel_loops, &(kernel){.map = map});
}

int wg__run_map_by(wg_call *call, wg__simd_map_by map, double a, double b) {
    return wg__elementwise_call(call, kernel_loops, &(kernel){.map_by = map, .a = a, .b = b});
}

/* ---- Backward ---- */

wg_tensor *wg__gradient_like(const wg_call *call, wg_tensor *x) {
    const bool reuse = call->last_use && wg__tensor_is_sole(x) && wg_tensor_is_contiguous(x);
    return reuse ? wg__tensor_view(x, &x->spec, x->strides, x->offset) : wg_empty_like(x);
}

static int run_vjp(wg_call *call, const kernel *kernel, wg_tensor *x_or_y, wg_tensor *g,
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
    return run_vjp(call, &(kernel){.vjp = vjp}, x_or_y, g, gradients);
}

int wg__run_vjp_by(wg_call *call, wg__simd_vjp_by vjp, double a, double b, wg_tensor *x,
                   wg_tensor *g, wg_tensor **gradients) {
    return run_vjp(call, &(kernel){.vjp_by = vjp, .a = a, .b = b}, x, g, gradients);
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
