/* Activation checkpointing: a part of the forward pass saves nothing, and runs once more when
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
 * are there, too. */
#ifndef WG_AUTOGRAD_ACTIVATION_CHECKPOINTING_H
#define WG_AUTOGRAD_ACTIVATION_CHECKPOINTING_H

#include "functional.h"

WG_BEGIN_DECLS

typedef struct wg_activation_checkpoint_options {
    int generator_count; /* the generators that the function draws from: they are put back to where
                          */
    wg_generator *const *generators; /* they stood for the second run, so that dropout is the same;
                                        NULL: the thread's default generator */
    size_t context_size; /* so many bytes of `context` are copied for the second run, so that it may
                            be a local variable; 0: it is used where it is */
} wg_activation_checkpoint_options;

/* Runs the function and gives its outputs, recorded as if it had been called. The tensors that its
 * ops would save for backward are dropped; a second run computes them when a backward pass first
 * needs one. Gradients are the same bit for bit, of inputs and of parameters that the function
 * knows otherwise, and so are wg_grad, retain_graph, create_graph, hooks. `outputs` may be the
 * array of the inputs.
 *
 * The function has to do the same both times: another sequence of recorded ops or shapes is an
 * error of backward, as is an input or parameter that was written in place in between. It must not
 * differentiate what it computes by reverse mode. The inputs are kept, but `context` (unless it is
 * copied), what it points to, and the generators must live until backward is done or the outputs
 * are gone.
 *
 * Runs the function and nothing else while recording is off, inside of wg_jvp, and inside of
 * another wg_activation_checkpoint, whose second run it is part of. [scope; whatever the function
 * says; nothing runs while an error is pending] */
WG_API int wg_activation_checkpoint(wg_function function, void *context, int input_count,
                                    wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                                    const wg_activation_checkpoint_options *options);

WG_END_DECLS

#endif
