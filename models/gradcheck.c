/* Gradient checks of whole models. */
#include "models/model.h"

#include "models/internal.h"
#include "tensor/easy.h"

/* Two sequences of four tokens. */
enum { B = 2, T = 4 };

typedef struct checked_model {
    wg_model model;
    wg_tensor *ids, *labels;
} checked_model;

/* Random ids from `first` on. Lower ids may be padding, whose embedding is fixed. */
static wg_tensor *random_ids(wg_generator *generator, int64_t first, int64_t end) {
    wg_tensor *u = wg_rand(generator, WG_F64, WG_DIMS(B, T));
    wg_tensor *ids = wg_add_scalar(wg_mul_scalar(u, (double)(end - first)), (double)first);
    return wg_cast(wg_floor(ids), WG_I64);
}

/* The second sequence ends in padding. */
static wg_tensor *keep_all_but_one(void) {
    static const bool keep[B * T] = {true, true, true, true, true, true, true, false};
    return wg_from_array(WG_BOOL, WG_DIMS(B, T), keep);
}

static wg_tensor *hidden_of(const checked_model *c) {
    const wg_model_type *type = c->model.type;
    wg_model_inputs inputs = {.ids = c->ids};
    static const int64_t segments[B * T] = {0, 0, 1, 1, 0, 1, 1, 1};
    static const int64_t blocks[B * T] = {0, 0, 1, 2, 0, 0, 0, 1};
    static const int64_t part_a[B] = {2, 3};
    if (type->shape == WG_ENCODER_DECODER) {
        inputs.memory_keep = keep_all_but_one();
        inputs.memory = wg_model_encode(&c->model, c->ids, inputs.memory_keep);
        inputs.ids = wg_model_shift_right(&c->model, c->labels);
        return wg_model_forward(&c->model, &inputs);
    }
    if (type->shape == WG_PREFIX_DECODER) {
        inputs.block_position_ids = wg_from_array(WG_I64, WG_DIMS(B, T), blocks);
        inputs.part_a = wg_from_array(WG_I64, WG_DIMS(B), part_a);
    } else {
        inputs.keep = keep_all_but_one();
    }
    if (wg_model_sizes_of(&c->model).segments > 1)
        inputs.token_type_ids = wg_from_array(WG_I64, WG_DIMS(B, T), segments);
    return wg_model_forward(&c->model, &inputs);
}

/* Outputs the loss, and the logits of the head on the pooled output. */
static int run(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
               void *context) {
    (void)input_count, (void)inputs;
    const checked_model *c = context;
    const wg_model_type *type = c->model.type;
    wg_tensor *hidden = hidden_of(c);
    outputs[0] = wg_model_loss(&c->model, hidden, NULL, c->labels, NULL);
    if (output_count > 1)
        outputs[1] = wg_linear_forward(
            type->encoder.next_sentence(c->model.module),
            type->encoder.pool(type->encoder.of(c->model.module), hidden, keep_all_but_one()));
    return wg_error_pending() ? -1 : 0;
}

int wg_gradcheck_model(const wg_model_type *type, const void *config,
                       const wg_gradcheck_options *options, wg_gradcheck_report *report) {
    const uint64_t seed = options ? options->seed : 0;
    checked_model c = {.model = {0}};
    wg_generator generator = {.seed = seed, .offset = 1};
    wg_scope scope;
    wg_scope_begin(&scope);
    void *smallest = config ? NULL : wg__calloc(1, type->settings.size);
    int status = config     ? 0
                 : smallest ? wg_model_config_from_json(type, type->smallest, smallest)
                            : -1;
    if (status == 0)
        status = wg_model_from_config(type, config ? config : smallest, seed + 1, &c.model);
    wg__free(smallest);
    if (status == 0) {
        wg_state_dict *state = wg_module_state(c.model.module);
        const wg_initializer how = {WG_INIT_NORMAL, 0.5};
        for (int64_t i = 0; state && i < state->count; i++)
            if (state->entries[i].slot->kind == WG_SLOT_PARAMETER && !state->entries[i].slot->tied)
                wg_initialize(state->entries[i].slot->tensor, &how,
                              wg_module_generator(c.model.module));
        wg_state_dict_free(state);
        status = wg_error_pending() ? -1 : 0;
    }
    if (status == 0) {
        const wg_model_sizes sizes = wg_model_sizes_of(&c.model);
        const int64_t tokens = sizes.source_vocabulary ? sizes.source_vocabulary : sizes.vocabulary;
        c.ids = random_ids(&generator, tokens / 3, tokens);
        c.labels = random_ids(&generator, sizes.vocabulary / 3, sizes.vocabulary);
        wg_module_train(c.model.module, true);
        status = wg_gradcheck_module(c.model.module, run, &c, 0, NULL,
                                     type->encoder.next_sentence ? 2 : 1, options, report);
    }
    wg_model_free(&c.model);
    wg_scope_end(&scope, NULL);
    return status;
}
