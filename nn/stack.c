/* Running a stack of layers, with activation checkpointing. See stack.h. */
#include "nn/stack.h"

#include "autograd/functional.h"
#include "nn/internal.h"

/* Activation checkpointing keeps the inputs of a layer as a list of tensors:
 * x, 6 tensors of self-attention, 6 of attention to the memory. */
enum { OF_ATTENTION = 6, TENSORS = 1 + 2 * OF_ATTENTION };

static void list(const wg_attention_inputs *inputs, wg_tensor **tensors) {
    tensors[0] = inputs->memory;
    tensors[1] = inputs->mask;
    tensors[2] = inputs->bias;
    tensors[3] = inputs->cos;
    tensors[4] = inputs->sin;
    tensors[5] = inputs->output_positions;
}

static wg_attention_inputs unlist(const wg_attention_inputs *rest, wg_tensor *const *tensors) {
    return (wg_attention_inputs){.memory = tensors[0],
                                 .mask = tensors[1],
                                 .bias = tensors[2],
                                 .cos = tensors[3],
                                 .sin = tensors[4],
                                 .output_positions = tensors[5],
                                 .causal = rest->causal,
                                 .window = rest->window};
}

/* The arguments of a layer besides its tensors. */
typedef struct layer_call {
    wg_stack_layer layer;
    void *layers;
    int64_t index;
    double dropout;
    wg_attention_inputs self, memory; /* only `causal` and `window` are read */
} layer_call;

static int run_call(int input_count, wg_tensor *const *tensors, int output_count,
                    wg_tensor **outputs, void *context) {
    const layer_call *call = context;
    (void)input_count, (void)output_count;
    const wg_stack_inputs inputs = {.self = unlist(&call->self, tensors + 1),
                                    .memory = unlist(&call->memory, tensors + 1 + OF_ATTENTION),
                                    .dropout = call->dropout};
    outputs[0] = call->layer(call->layers, call->index, tensors[0], &inputs);
    return outputs[0] ? 0 : -1;
}

wg_tensor *wg__stack_output_rows(wg_tensor *x, const wg_stack_inputs *inputs) {
    wg_tensor *positions = inputs->self.output_positions;
    if (!positions)
        return x;
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_index_select(wg_flatten(x, 0, -2), 0, positions));
}

wg_tensor *wg_stack_forward(wg_module *module, int64_t count, wg_stack_layer layer, void *layers,
                            wg_tensor *x, const wg_stack_inputs *inputs) {
    const bool checkpoints =
        module && wg__module_root(module)->checkpoints_activations && wg_grad_enabled();
    wg_generator *generator = wg_module_generator(module);
    const wg_activation_checkpoint_options options = {
        .generator_count = 1, .generators = &generator, .context_size = sizeof(layer_call)};
    wg_stack_inputs own = *inputs;
    x = wg_keep(x);
    for (int64_t i = 0; i < count; i++) {
        layer_call call = {layer, layers, i, inputs->dropout, inputs->self, inputs->memory};
        own.self.cache = inputs->self_caches ? &inputs->self_caches[i] : NULL;
        own.memory.cache = inputs->memory_caches ? &inputs->memory_caches[i] : NULL;
        own.self.output_positions = i == count - 1 ? inputs->self.output_positions : NULL;
        wg_tensor *tensors[TENSORS] = {x}, *y = NULL;
        if (checkpoints) {
            list(&own.self, tensors + 1);
            list(&own.memory, tensors + 1 + OF_ATTENTION);
            wg_activation_checkpoint(run_call, &call, TENSORS, tensors, 1, &y, &options);
        } else {
            y = layer(layers, i, x, &own);
        }
        y = wg_keep(y);
        wg_release(x); /* unless recorded, one layer's activations are alive at a time */
        x = y;
    }
    wg_tensor *y = wg_alias(x);
    wg_release(x);
    return y;
}
