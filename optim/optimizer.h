/* Optimizers: they take tensors and know no modules.
 *
 *     wg_optimizer *opt = wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.01});
 *     wg_optimizer_add(opt, "encoder.weight", w, false);
 *     ... wg_backward(loss, NULL) ...
 *     wg_optimizer_clip(opt, 1.0, &norm);
 *     wg_optimizer_step(opt, learning_rate);        also drops the gradients
 */
#ifndef WG_OPTIM_OPTIMIZER_H
#define WG_OPTIM_OPTIMIZER_H

#include "../autograd/autograd.h"

typedef struct wg_optimizer wg_optimizer;

typedef struct wg_adamw_options {
    double beta1;        /* 0: 0.9 */
    double beta2;        /* 0: 0.999 */
    double eps;          /* 0: 1e-8 */
    double weight_decay; /* 0: none (PyTorch's default of 0.01 must be asked for) */
} wg_adamw_options;

/* AdamW   (Loshchilov & Hutter 2019, algorithm 2):
 *     m = b1 m + (1 - b1) g;   v = b2 v + (1 - b2) g^2
 *     w = w - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay w)
 * Freed with wg_optimizer_free. NULL with MEMORY, ARGUMENT. */
WG_API wg_optimizer *wg_adamw_new(const wg_adamw_options *options);

/* Frees the optimizer and its state, not the parameters; NULL is allowed. */
WG_API void wg_optimizer_free(wg_optimizer *optimizer);

/* Takes a leaf under its care. Its state is made now, as zeros, and the name is copied; the tensor
 * is borrowed and must outlive the optimizer. no_decay: as biases and norms want it.
 * [ARGUMENT for a name or tensor given twice; GRADIENT for one that wants none; MEMORY] */
WG_API int wg_optimizer_add(wg_optimizer *optimizer, const char *name, wg_tensor *parameter,
                            bool no_decay);

/* The global norm of all gradients, sqrt(sum g^2), into *norm; if it exceeds max_norm (> 0; 0 only
 * measures) the next step scales every gradient by max_norm / norm, without a pass over memory of
 * its own. A norm that is not finite is an error and nothing will be stepped. [GRADIENT] */
WG_API int wg_optimizer_clip(wg_optimizer *optimizer, double max_norm, double *norm);

/* One update of every parameter that has a gradient, which is dropped. One pass over memory, in
 * parallel. Refuses while an error is pending. [GRADIENT] */
WG_API int wg_optimizer_step(wg_optimizer *optimizer, double learning_rate);

/* Drops all gradients without a step. */
WG_API void wg_optimizer_zero_grad(wg_optimizer *optimizer);

/* ---- State, for checkpoints ---- */

/* Steps taken so far, and setting it when a run is resumed. */
WG_API int64_t wg_optimizer_steps(const wg_optimizer *optimizer);
WG_API void wg_optimizer_set_steps(wg_optimizer *optimizer, int64_t steps);

/* The state tensors, in a fixed order: slot is "exp_avg" or "exp_avg_sq", name is the parameter's.
 * Returns 1 and fills the pointers (borrowed), 0 beyond the last. */
WG_API int wg_optimizer_state(const wg_optimizer *optimizer, int64_t index, const char **slot,
                              const char **name, wg_tensor **tensor);

#endif
