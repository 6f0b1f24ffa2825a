/* Reverse mode: leaves that require gradients, and the backward pass that computes them.
 *
 *     wg_set_requires_grad(w, true);
 *     wg_tensor *loss = ...any ops on w...;
 *     wg_backward(loss, NULL);
 *     wg_tensor *g = wg_gradient(w);
 *
 * A node of the graph holds only the tensors that its op declares as saved, so a scope may end
 * before backward; backward frees them node by node. */
#ifndef WG_AUTOGRAD_AUTOGRAD_H
#define WG_AUTOGRAD_AUTOGRAD_H

#include "../tensor/op.h"

WG_BEGIN_DECLS

/* Makes a floating tensor a leaf that requires a gradient (wanted), or no longer requires one,
 * which also drops the gradient it has. [DTYPE; GRADIENT if x was computed by a recorded op] */
WG_API int wg_set_requires_grad(wg_tensor *x, bool wanted);

/* The gradient that backward passes have added up for a leaf, or for a tensor under
 * wg_retain_grad; of the shape and dtype of x. Borrowed: it lives as long as x. NULL: no gradient
 * yet. */
WG_API wg_tensor *wg_gradient(const wg_tensor *x);

/* Drops the gradient of x: the next backward writes instead of adding. Cannot fail. */
WG_API void wg_zero_grad(wg_tensor *x);

/* Makes backward keep the gradient of an intermediate tensor. [GRADIENT if x requires none] */
WG_API int wg_retain_grad(wg_tensor *x);

/* A function of the gradient of a tensor. Its result, of the same shape and dtype, replaces the
 * gradient; NULL leaves the gradient. An error pending afterwards stops the backward pass. The
 * gradient belongs to the pass: the hook must not write it, and must clone or alias it to use it
 * after the call. */
typedef wg_tensor *(*wg_gradient_hook)(wg_tensor *gradient, void *context);

/* Calls `hook` in each backward pass that reaches x, a leaf or an intermediate, once the
 * gradient of x in that pass is complete: before the gradient is propagated further, added to a
 * leaf's gradient, retained (wg_retain_grad) or returned by wg_grad. Hooks run in the order of
 * their registration, each on the result of the previous one; under create_graph their ops are
 * recorded. They live as long as the graph that made x (or the leaf), and so must `context`.
 * Returns an id above 0, or -1. [GRADIENT if x requires none] */
WG_API int wg_register_hook(wg_tensor *x, wg_gradient_hook hook, void *context);

/* A function of a leaf whose gradient is complete. 0, or -1 with an error. */
typedef int (*wg_post_accumulate_grad_hook)(wg_tensor *leaf, void *context);

/* Calls `hook` once in each wg_backward that reaches the leaf x, as soon as wg_gradient(x) has the
 * sum over all uses of x in the pass. The hook gets a handle on x that lives during the call. It
 * may write to x and drop the gradient by wg_zero_grad, so that few gradients are in memory at a
 * time: every node of the pass with x as an input has run by then. A later use of the old x is
 * refused, as after any write in place: a node that uses it detached, another leaf in the same
 * storage, a second backward under retain_graph. Hooks run in the order of their registration; an
 * error stops the pass, and the gradient stays. wg_grad calls no hooks of this kind, because it
 * does not change the gradients of leaves. Hooks live as long as the leaf, and so must `context`.
 * Returns an id above 0, or -1. [GRADIENT if x is no leaf that requires a gradient; MEMORY] */
WG_API int wg_register_post_accumulate_grad_hook(wg_tensor *x, wg_post_accumulate_grad_hook hook,
                                                 void *context);

/* Removes a hook of either kind; a hook may remove itself. [ARGUMENT if x has no hook `id`] */
WG_API int wg_remove_hook(wg_tensor *x, int id);

/* A handle on the same storage that requires no gradient and, inside of wg_jvp, has no tangent.
 * Inside of wg_vmap this applies to all samples. [scope] */
WG_API wg_tensor *wg_detach(wg_tensor *x);

typedef struct wg_backward_options {
    wg_tensor *cotangent; /* of the shape of the output; NULL: 1, for a one-element output */
    bool retain_graph;    /* keep saved tensors, for another backward through the same graph */
    bool create_graph;    /* record the backward pass itself, for higher orders; implies retain. A
                             leaf's gradient then holds the graph that leads to the leaf: end that
                             cycle by wg_zero_grad, or use wg_grad, which makes none */
} wg_backward_options;

/* Turns anomaly mode on or off for this thread and returns the previous setting; off at first.
 * While it is on, an op that makes a NaN of operands without one is an error, as is a vjp or jvp
 * that makes a NaN of cotangents or tangents without one. The error (ANOMALY) names the op, where
 * the NaN is, the shapes of the operands and the caller: the first frames outside of the library,
 * by name where the program was linked with -rdynamic, and as object+offset, which `addr2line -i -f
 * -e OBJECT OFFSET` looks up. For a vjp that is the forward call that recorded the op, if the mode
 * was on by then. All results are searched, so it is for debugging; off, it costs nothing. */
WG_API bool wg_set_anomaly_mode(bool on);

/* Adds d output / d leaf, weighted by the cotangent, to the gradient of every leaf. Refuses to act
 * while an error is pending (so a failed forward never updates weights).
 * After an error on the way some gradients may be partial: drop them by wg_zero_grad (an optimizer
 * refuses to step until the error is cleared).
 * [SHAPE; GRADIENT: output requires no gradient, graph already freed, or a saved tensor was written
 * in place since] */
WG_API int wg_backward(wg_tensor *output, const wg_backward_options *options);

/* The functional form: gradients[i] becomes d (sum of outputs weighted by cotangents) / d
 * inputs[i], owned by the scope, leaving the leaves' own gradients alone. `cotangents` may be NULL
 * (all 1, for one-element outputs), as may each entry. An input that no output depends on gets
 * zeros. Inputs may be leaves or intermediates. [scope; as wg_backward; GRADIENT for an input that
 * requires none] */
WG_API int wg_grad(int output_count, wg_tensor *const *outputs, wg_tensor *const *cotangents,
                   int input_count, wg_tensor *const *inputs, const wg_backward_options *options,
                   wg_tensor **gradients);

WG_END_DECLS

#endif
