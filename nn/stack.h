/* Running x through a stack of layers: the core of every model's forward.
 *
 *     x --> layer 0 --> layer 1 --> ... --> layer N-1 --> x
 *              ^           ^                   ^
 *              `-----------`----- inputs ------'          masks, positions, a memory
 *
 * Without recording, only the current layer's activations are alive. While recording, a model with
 * activation checkpointing (wg_module_checkpoint_activations) keeps only the input of each layer,
 * and runs the layer once more in backward. */
#ifndef WG_NN_STACK_H
#define WG_NN_STACK_H

#include "attention.h"

WG_BEGIN_DECLS

/* Inputs of every layer besides x; all may be left out. */
typedef struct wg_stack_inputs {
    wg_attention_inputs self, memory; /* without caches and weights. self.output_positions, (N),
                                       * reach the last layer only, which gives (N, C) */
    wg_kv_cache *self_caches, *memory_caches; /* of generation: one a layer, or NULL */
    double dropout;                           /* for layers without a dropout member */
} wg_stack_inputs;

/* Layer `index` of `layers`, an array or a struct of layers: x -> x. `inputs` holds the caches of
 * this layer. */
typedef wg_tensor *(*wg_stack_layer)(void *layers, int64_t index, wg_tensor *x,
                                     const wg_stack_inputs *inputs);

/* Runs x through `count` layers of the module's tree. The function takes over the handle x, and
 * releases it after the first layer. Under activation checkpointing, `layers` must live until
 * backward is done, and no cache is filled. [scope; errors of the layers] */
WG_API wg_tensor *wg_stack_forward(wg_module *module, int64_t count, wg_stack_layer layer,
                                   void *layers, wg_tensor *x, const wg_stack_inputs *inputs);

WG_END_DECLS

#endif
