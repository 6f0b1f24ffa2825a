/* A layer in one of its forms, as a row of a table: every row is held against PyTorch, by a file
 * that tests/fixtures/layers.py made, and its gradients, of inputs and of parameters, against
 * central differences. */
#ifndef WG_TESTS_LAYER_CASE_H
#define WG_TESTS_LAYER_CASE_H

#include "nn/module.h"

typedef struct layer_case {
    const char *name;
    void *(*make)(const void *options); /* a root, of which the first member is the wg_module */
    const void *options;
    wg_tensor *(*forward)(void *layer, wg_tensor *const *inputs, const void *given);
    const void *given;
    int input_count;
    int64_t input_shapes[2][4]; /* each ends with its first 0 */

    const char *file;     /* in tests/fixtures/layers, without .npy; NULL: the name */
    const char *held_by;  /* the test that holds it against PyTorch, if not this one */
    bool modes_differ;    /* PyTorch's numbers are those of evaluation; differences are in both */
    const char *no_slope; /* why its gradient is not that of its forward; NULL: it is */
} layer_case;

/* Adds a suite of the tests of each case; the table stays the caller's and must be static. */
void add_layer_suite(const char *name, int count, const layer_case *cases);

#endif
