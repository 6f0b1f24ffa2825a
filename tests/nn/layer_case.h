/* A layer in one of its forms, as a row of a table. Its outputs and gradients are compared with
 * PyTorch's, in a file that tests/fixtures/layers.py made, and the gradients of inputs and
 * parameters with central differences. */
#ifndef WG_TESTS_LAYER_CASE_H
#define WG_TESTS_LAYER_CASE_H

#include "nn/module.h"

typedef struct layer_case {
    const char *name;
    void *(*make)(const void *options); /* a root module, whose first member is the wg_module */
    const void *options;
    wg_tensor *(*forward)(void *layer, wg_tensor *const *inputs, const void *given);
    const void *given;
    int input_count;
    int64_t input_shapes[2][4]; /* each ends at its first 0 */

    const char *file;     /* in tests/fixtures/layers.safetensors; NULL: `name` */
    const char *held_by;  /* the suite that compares it with PyTorch, if not this one */
    bool modes_differ;    /* PyTorch's numbers are of evaluation; central differences are checked in
                             both modes */
    const char *no_slope; /* why its gradient is not the slope of its forward; NULL: it is */
} layer_case;

/* A flat file of tensors, which are read one after the other: the next one of this shape, or of the
 * shape and dtype of x. */
typedef struct layer_file {
    wg_tensor *flat;
    int64_t at;
} layer_file;

wg_tensor *take(layer_file *file, wg_dtype dtype, int ndim, const int64_t *shape);
wg_tensor *take_like(layer_file *file, const wg_tensor *x);

/* Adds a suite of both tests of each case. The table must be static. */
void add_layer_suite(const char *name, int count, const layer_case *cases);

#endif
