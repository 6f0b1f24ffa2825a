/* Holds a layer against a file that tests/fixtures/layers.py made: its output, and the gradients of
 * its inputs and parameters. */
#ifndef WG_TESTS_LAYER_CASE_H
#define WG_TESTS_LAYER_CASE_H

#include "nn/module.h"

typedef wg_tensor *(*forward_function)(void *layer, wg_tensor *const *inputs);

typedef struct layer_case {
    const char *file; /* in tests/fixtures/layers, without .npy */
    void *layer;      /* a root module, of which the first member is the wg_module */
    forward_function forward;
    int input_count;
    int64_t input_shapes[2][3];
} layer_case;

/* In f64 and in f32; frees the layer. */
void hold_against_pytorch(const layer_case *test);

#endif
