/* Derivatives of functions: transforms that take a function of tensors and a point.
 *
 *     static int squares(int input_count, wg_tensor *const *inputs, int output_count,
 *                        wg_tensor **outputs, void *context) {
 *         outputs[0] = wg_mul(inputs[0], inputs[0]);
 *         return outputs[0] ? 0 : -1;
 *     }
 *
 *     wg_jvp(squares, NULL, 1, &x, &direction, 1, NULL, &slope);
 *
 * Transforms nest: the function may itself call any transform, or wg_grad on its tensors, to any
 * order. An inner one in reverse mode under an outer one in reverse mode needs create_graph, as
 * wg_grad does; under forward mode it needs nothing. An input that does not require a gradient can
 * be made to inside: by wg_set_requires_grad on a wg_alias of it. */
#ifndef WG_AUTOGRAD_FUNCTIONAL_H
#define WG_AUTOGRAD_FUNCTIONAL_H

#include "autograd.h"

WG_BEGIN_DECLS

/* A function to be differentiated: makes its outputs from the inputs by ops; 0, or -1 with an error
 * pending. It may use tensors that are not among its inputs (parameters): in forward mode those are
 * constants. It runs once or several times, on the caller's thread, and has to compute the same
 * each time (fix the seeds of random ops). Its outputs may be inputs, and need not be owned by the
 * innermost scope. Entries of `inputs` that a transform was given as NULL are NULL here too. */
typedef int (*wg_function)(int input_count, wg_tensor *const *inputs, int output_count,
                           wg_tensor **outputs, void *context);

/* Forward mode: the Jacobian-vector product. output_tangents[j] becomes the derivative of output j
 * along the tangents: sum over i of (d output j / d input i) tangents[i], of the shape and dtype of
 * output j, zeros where output j depends on no input. The function runs once, and the jvp of each
 * op runs after the op; nothing is saved. So it costs about twice the run of the function, and its
 * memory does not grow with the length of the function.
 *
 * `tangents` are of the shape and dtype of their inputs. A NULL entry means zero, and is required
 * for an input that is not floating. `outputs` (may be NULL) receives the values. An output that is
 * not floating gets NULL for its tangent.
 *
 * Inside, wg_grad and wg_backward work on what depends on the inputs (forward over reverse); a
 * tensor that does may not be written in place, and wg_detach cuts it off. If recording is on and
 * something requires a gradient, outputs and tangents are recorded (reverse over forward).
 * [scope; SHAPE, DTYPE of a tangent; errors of the function; nothing runs while an error is
 * pending. On error every output is NULL] */
WG_API int wg_jvp(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
                  wg_tensor *const *tangents, int output_count, wg_tensor **outputs,
                  wg_tensor **output_tangents);

typedef struct wg_transform_options {
    bool create_graph; /* record the results, so that they can be differentiated by inputs and
                          parameters that require a gradient; otherwise they require none */
} wg_transform_options;

/* Reverse mode: the vector-Jacobian product. gradients[i] becomes sum over j of cotangents[j]
 * (d output j / d input i), of the shape and dtype of input i, zeros where nothing depends on it,
 * NULL for an input that is NULL or not floating. Inputs need not require a gradient, and the
 * gradients of leaves stay as they are. `cotangents` (may be NULL, as may its entries: 1, for a
 * one-element output) are of the shape and dtype of their outputs. `outputs` (may be NULL) receives
 * the values. [scope; SHAPE of a cotangent; errors of the function; nothing runs while an error is
 * pending. On error every output is NULL] */
WG_API int wg_vjp(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
                  int output_count, wg_tensor *const *cotangents,
                  const wg_transform_options *options, wg_tensor **outputs, wg_tensor **gradients);

/* In place of an axis of wg_vmap: the input is the same for all samples. */
#define WG_UNBATCHED (-2147483647 - 1)

/* Runs a function that takes a sample on many samples in one pass, as torch.func.vmap and jax.vmap.
 * Axis axes[i] of input i counts the samples (negative ones from the end); WG_UNBATCHED gives the
 * input to all samples as it is. `axes` may be NULL: axis 0 of every input. The function sees the
 * inputs without that axis, and runs once; each op inside runs by its batching rule (`batch` of
 * wg_op) on all samples. outputs[j] has the samples as axis 0, also an output that is the same for
 * all samples.
 *
 * Transforms compose: the vmap of a function that calls wg_grad or wg_vjp gives the gradients of
 * each sample, the vmap of wg_vjp or wg_jvp over unit vectors gives a Jacobian, and a function may
 * call wg_vmap itself. If recording is on, outputs are differentiable by inputs and by parameters
 * that the function reads. Inside, elements cannot be read (wg_item) or written in place, and the
 * rank of a sample is at most WG_MAX_DIMS - 1. Random numbers drawn without a batched operand are
 * the same for all samples; wg_dropout_op drops other elements of each. [scope; SHAPE for numbers
 * of samples that differ; INDEX; ARGUMENT if no input is batched, and for an op that has neither
 * batching rule nor decomposition, which is named; errors of the function; nothing runs while
 * an error is pending. On error every output is NULL] */
WG_API int wg_vmap(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
                   const int *axes, int output_count, wg_tensor **outputs);

/* The Hessian-vector product of a function with a scalar output: products[i] becomes sum over k of
 * (d^2 output / d input i d input k) vectors[k], of the shape and dtype of input i; NULL
 * for an input that is NULL or not floating. Costs a small multiple of a gradient, and no Hessian
 * is made. `vectors` are as the tangents of wg_jvp; `output` (may be NULL) receives the value.
 * [scope; as wg_vjp; SHAPE for more than one element] */
WG_API int wg_hvp(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
                  wg_tensor *const *vectors, const wg_transform_options *options,
                  wg_tensor **output, wg_tensor **products);

/* All derivatives of a function of few inputs or few outputs: jacobians[j * input_count + i]
 * becomes d output j / d input i, of shape (sizes of output j, sizes of input i) and of the dtype
 * of input i, NULL where either is NULL or not floating. It is made of columns in forward
 * mode if the inputs have fewer elements than the outputs, else of rows in reverse mode: many at
 * once by wg_vmap where every op on the way has a batching rule, else one by one (the function then
 * runs once for each column). [scope; as wg_vjp; SHAPE for more than WG_MAX_DIMS
 * dimensions] */
WG_API int wg_jacobian(wg_function function, void *context, int input_count,
                       wg_tensor *const *inputs, int output_count,
                       const wg_transform_options *options, wg_tensor **jacobians);

/* All second derivatives of a function with a scalar output: hessians[i * input_count + k] becomes
 * d^2 output / d input i d input k, of shape (sizes of input i, sizes of input k), NULL where
 * either is NULL or not floating. [scope; as wg_jacobian] */
WG_API int wg_hessian(wg_function function, void *context, int input_count,
                      wg_tensor *const *inputs, const wg_transform_options *options,
                      wg_tensor **hessians);

/* ---- Activation checkpointing: a part of the forward pass saves nothing, and runs once more when
 * backward comes to it   (Chen et al. 2016, Training deep nets with sublinear memory cost).
 *
 *     static int block(int input_count, wg_tensor *const *inputs, int output_count,
 *                      wg_tensor **outputs, void *context) {
 *         outputs[0] = block_forward(context, inputs[0]);
 *         return outputs[0] ? 0 : -1;
 *     }
 *
 *     for (int i = 0; i < layers; i++)
 *         wg_activation_checkpoint(block, layer[i], 1, &x, 1, &x, NULL);
 *
 * Only the input of each block is kept; while backward runs in a block, that block's saved tensors
 * are there, too. ---- */

typedef struct wg_activation_checkpoint_options {
    int generator_count; /* of the generators that the function draws from */
    /* Reset for the second run, so that dropout is the same. NULL: the thread's default one */
    wg_generator *const *generators;
    size_t context_size; /* bytes of `context` to copy for the second run, so that it may be a local
                            variable; 0: `context` itself is used */
} wg_activation_checkpoint_options;

/* Runs the function and gives its outputs, recorded as if it had been called. The tensors that its
 * ops would save for backward are dropped; a second run computes them when a backward pass first
 * needs one. The gradients of inputs and parameters are the same bit for bit; wg_grad,
 * retain_graph, create_graph and hooks work as usual. `outputs` may be the array of the inputs.
 *
 * The function has to do the same both times: another sequence of recorded ops or shapes is an
 * error of backward, as is an input or parameter that was written in place in between. It must not
 * run reverse mode on its own tensors. The inputs are kept, but `context` (unless it is copied),
 * its pointers, and the generators must live until backward is done or the outputs are gone.
 *
 * Only calls the function while recording is off, inside of wg_jvp, and inside of another
 * wg_activation_checkpoint, whose second run repeats the call. [scope; errors of the function;
 * nothing runs while an error is pending] */
WG_API int wg_activation_checkpoint(wg_function function, void *context, int input_count,
                                    wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                                    const wg_activation_checkpoint_options *options);

WG_END_DECLS

#endif
