/* Layers beside PyTorch's: see layer_case.h. */
#include "tests/layer_case.h"

#include <stdio.h>

#include "tensor/npy.h"
#include "tensor/ops.h"
#include "tests/testing.h"

/* ---- A flat file of tensors, read one after the other ---- */

typedef struct reader {
    wg_tensor *flat;
    int64_t at;
} reader;

static wg_tensor *take(reader *file, wg_dtype dtype, int ndim, const int64_t *shape) {
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    wg_tensor *part = wg_slice(file->flat, 0, file->at, file->at + count, 1);
    file->at += count;
    return wg_cast(wg_reshape(part, ndim, shape), dtype);
}

static wg_tensor *take_like(reader *file, const wg_tensor *x) {
    return take(file, wg_tensor_dtype(x), wg_tensor_ndim(x), wg_tensor_shape(x));
}

static void load_parameters(wg_state_dict *state, reader *file) {
    bool recording = wg_set_grad_enabled(false);
    for (int64_t i = 0; i < state->count; i++) {
        wg_tensor *parameter = state->entries[i].slot->tensor;
        wg_copy_(parameter, take_like(file, parameter));
        wg_zero_grad(parameter);
    }
    wg_set_grad_enabled(recording);
}

/* Forward and backward in one dtype; every number within `tolerance` (relative, and of numbers
 * around 1 absolute). */
static void hold_against_file(const layer_case *test, wg_dtype dtype, double tolerance) {
    ck_assert_int_eq(wg_module_to(test->layer, dtype), 0);
    wg_state_dict *state = wg_module_state(test->layer);
    char path[64];
    snprintf(path, sizeof path, "layers/%s.npy", test->file);
    reader file = {wg_npy_load(fixture(path)), 0};
    wg_tensor *inputs[2];
    for (int i = 0; i < test->input_count; i++) {
        inputs[i] = wg_clone(take(&file, dtype, 3, test->input_shapes[i]));
        wg_set_requires_grad(inputs[i], true);
    }
    load_parameters(state, &file);
    wg_tensor *y = test->forward(test->layer, inputs);
    assert_no_error();
    wg_tensor *cotangent = take_like(&file, y);
    assert_close(y, take_like(&file, y), tolerance, tolerance);
    ck_assert_int_eq(wg_backward(y, &(wg_backward_options){.cotangent = cotangent}), 0);
    for (int i = 0; i < test->input_count; i++)
        assert_close(wg_gradient(inputs[i]), take_like(&file, inputs[i]), tolerance, tolerance);
    for (int64_t i = 0; i < state->count; i++) {
        wg_tensor *parameter = state->entries[i].slot->tensor;
        assert_close(wg_gradient(parameter), take_like(&file, parameter), tolerance, tolerance);
    }
    ck_assert_int_eq(file.at, wg_tensor_count(file.flat));
    wg_state_dict_free(state);
}

void hold_against_pytorch(const layer_case *test) {
    hold_against_file(test, WG_F64, 1e-11);
    hold_against_file(test, WG_F32, 2e-5);
    wg_module_free(test->layer);
}
