/* Elementwise ops of two operands: how vector kernels run on operands of any strides. */
#include "tensor/ops/elementwise/pair.h"

typedef struct pair_context {
    wg__simd_pair pair;
} pair_context;

/* operands: y, which is an output and so contiguous, a, b */
static void run_kernel(int64_t n, size_t size, char *const *data, const int64_t *strides,
                       const pair_context *context) {
    double room_a[WG__STRETCH], room_b[WG__STRETCH];
    const bool whole = strides[1] == (int64_t)size && strides[2] == (int64_t)size;
    const int64_t step = whole ? n : WG__STRETCH;
    for (int64_t begin = 0; begin < n; begin += step) {
        const int64_t count = n - begin < step ? n - begin : step;
        context->pair(count,
                      wg__stretch(count, size, data[1] + begin * strides[1], strides[1], room_a),
                      wg__stretch(count, size, data[2] + begin * strides[2], strides[2], room_b),
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

int wg__run_pair(wg_call *call, wg__simd_pair pair) {
    return wg__elementwise_call(call, kernel_loops, &(pair_context){pair});
}

int wg__run_pair_with(wg_call *call, wg__simd_pair pair, double number) {
    wg_tensor *x = call->inputs[0];
    wg_tensor *second = wg_scalar(x->spec.dtype == WG_F64 ? WG_F64 : WG_F32, number);
    if (second == NULL)
        return -1;
    wg__elementwise(3, (wg_tensor *[]){call->outputs[0], x, second}, kernel_loops,
                    &(pair_context){pair});
    return 0;
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
