/* What the transforms of functions share. */
#ifndef WG_AUTOGRAD_TRANSFORM_H
#define WG_AUTOGRAD_TRANSFORM_H

#include "autograd/functional.h"

/* Runs the function, which must set all its outputs. */
int wg__call_function(wg_function function, void *context, int input_count,
                      wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                      const char *where);

/* True for an input or output that has derivatives: there, and floating. */
bool wg__varies(const wg_tensor *x);

/* A handle as x, with its tangents, that wants no gradient. [scope] */
wg_tensor *wg__without_graph(wg_tensor *x);

/* wg__stand_in for each input that varies, the input itself for the others. [scope] */
int wg__make_stand_ins(int count, wg_tensor *const *inputs, wg_tensor **stand_ins);

/* Moves results one scope out, or after a failure makes them NULL. `results` may be NULL. */
void wg__hand_out(int status, int count, wg_tensor **results);

/* A recorded run of a function. */
typedef struct wg__pull {
    int input_count, output_count;
    wg_tensor *const *inputs; /* stand-ins */
    wg_tensor *const *outputs;
    bool create_graph;
    bool again; /* there will be more than one walk back */
} wg__pull;

/* The gradients of its inputs, NULL for those that do not vary; outputs may depend on none. */
int wg__pull_back(const wg__pull *pull, wg_tensor *const *cotangents, wg_tensor **gradients);

#endif
