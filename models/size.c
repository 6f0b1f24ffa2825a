/* The memory, and the operations, that a model needs. A model that does not fit is refused before
 * its memory is allocated.
 *
 * Memory is computed from trees without memory (wg_set_meta_init) of few layers, since further
 * layers are equal:
 *
 *     bytes(n layers)  =  bytes(3)  +  (n - 3) (bytes(3) - bytes(2))
 */

#include "models/internal.h"
#include "tensor/internal.h"

/* ModernBERT's first layer lacks a norm, so the third layer is the first whose size is typical. */
enum { FEW = 3, MOST_STACKS = 2 };

/* An estimate of a tensor's overhead: its handle, its slot and its path. */
enum { BYTES_OF_SLOT = 1024 };

/* The bytes of weights and of the tree that holds them; negative with an error. */
static double bytes_of(const wg_model_type *type, const void *config) {
    wg_module *module = type->create(config, 0);
    wg_state_dict *state = module ? wg_module_state(module) : NULL;
    const double bytes =
        state ? wg__state_bytes(module) + (double)state->count * BYTES_OF_SLOT : -1;
    wg_state_dict_free(state);
    wg_module_free(module);
    return bytes;
}

double wg__model_bytes(const wg_model_type *type, const void *config) {
    void *copy = wg__alloc(type->settings.size);
    if (!copy)
        return -1;
    memcpy(copy, config, type->settings.size);
    const bool was = wg_set_meta_init(true);
    int64_t *counts[MOST_STACKS], layers[MOST_STACKS];
    int stacks = 0;
    for (int i = 0; i < type->settings.count && stacks < MOST_STACKS; i++) {
        const wg_setting *row = &type->settings.rows[i];
        if (row->role == WG__LAYERS || row->role == WG__ENCODER_LAYERS)
            counts[stacks++] = (int64_t *)((char *)copy + row->offset);
    }
    for (int i = 0; i < stacks; i++) {
        layers[i] = *counts[i];
        *counts[i] = wg__smaller(layers[i], FEW);
    }
    const double few = bytes_of(type, copy);
    double bytes = few;
    for (int i = 0; i < stacks && bytes >= 0; i++) {
        if (layers[i] <= FEW)
            continue;
        *counts[i] = FEW - 1;
        const double fewer = bytes_of(type, copy);
        *counts[i] = FEW;
        bytes = fewer < 0 ? -1 : bytes + (double)(layers[i] - FEW) * (few - fewer);
    }
    wg_set_meta_init(was);
    wg__free(copy);
    return bytes;
}

int wg__model_check_memory(const wg_model_type *type, const void *config) {
    if (wg__meta_init)
        return 0;
    const double wanted = wg__model_bytes(type, config);
    if (wanted < 0 && wg_error_pending()->code != WG_ERROR_SHAPE)
        return -1;
    const double there = (double)wg__memory_available();
    if (wanted >= 0 && wanted <= there)
        return 0;
    char bytes[80] = "more than 2^62 bytes"; /* which is the rule that a shape broke */
    if (wanted >= 0)
        snprintf(bytes, sizeof bytes, "%.0f bytes (%.3g GiB)", wanted, wanted / 0x1p30);
    wg_error_clear();
    return wg_fail(
        WG_ERROR_MEMORY, type->settings.where,
        "the weights of this configuration want %s, and %.0f bytes (%.3g GiB) are there; "
        "take a configuration with fewer or narrower layers or a smaller vocabulary",
        bytes, there, there / 0x1p30);
}

/* The numbers in the matrices of linear layers below a module; *has_head becomes true if a layer
 * gives logits of that vocabulary. */
static double count_linear(wg_module *module, int64_t vocabulary, bool *has_head) {
    double count = 0;
    const wg_linear *linear = wg__module_as_linear(module);
    if (linear) {
        const int64_t out = wg_tensor_size(linear->weight, linear->transposed ? 1 : 0);
        *has_head = *has_head || out == vocabulary;
        count = (double)wg_tensor_count(linear->weight);
    }
    for (wg_module *child = module->first_child; child; child = child->next_sibling)
        count += count_linear(child, vocabulary, has_head);
    return count;
}

/* Without a layer for the logits, the table of words computes them. An encoder with a fine-tuning
 * head (model->config) has no logits of words. */
static double token_flops(const wg_model *model, const wg_model_sizes *sizes) {
    bool has_head = model->config != NULL;
    double count = count_linear(model->module, sizes->vocabulary, &has_head);
    if (!has_head)
        count += (double)sizes->vocabulary * (double)sizes->width;
    return 2 * count;
}

static double token_bytes(const wg_model *model) {
    bool has_head = false;
    count_linear(model->module, wg_model_sizes_of(model).vocabulary, &has_head);
    double bytes = wg__state_bytes(model->module);
    for (wg_module *m = model->module; m; m = wg__module_next(model->module, m)) {
        const wg_embedding *table = wg__module_as_embedding(m);
        if (!table)
            continue;
        if (!has_head) { /* the first table is the head, or its quantized copy */
            has_head = true;
            if (table->quantized && table->quantized->weight)
                bytes += wg__tensor_bytes(table->quantized->weight);
            else
                continue;
        } else if (wg__is_tied(model->module, table->weight)) {
            continue;
        }
        bytes -= wg__tensor_bytes(table->weight);
    }
    return bytes;
}

wg_model_costs wg_model_costs_of(const wg_model *model) {
    const wg_model_sizes sizes = wg_model_sizes_of(model);
    /* a decoder's layer after an encoder has two attentions */
    const double attentions =
        (double)sizes.layers * (sizes.encoder_layers ? 2 : 1) + (double)sizes.encoder_layers;
    return (wg_model_costs){
        .type = model->type,
        .parameters = wg_module_parameter_count(model->module),
        .weight_bytes = (int64_t)wg__state_bytes(model->module),
        .token_bytes = (int64_t)token_bytes(model),
        .positions = sizes.positions,
        .token_flops = token_flops(model, &sizes),
        .position_flops = 4 * attentions * (double)sizes.width,
    };
}

int wg__model_costs_of_config(const char *json, wg_model_costs *costs) {
    const wg_model_type *type = wg__model_type_of_config("config.json", json);
    wg_config *config = type ? wg__config_parse(json, "config.json") : NULL;
    const int head = config ? wg__head_of_config(type, config) : -1;
    wg_model model = {0};
    const bool was = wg_set_meta_init(true);
    if (config && head >= 0) {
        wg__headed_encoder *headed = wg__headed_encoder_of(type, (wg__head_kind)head, json);
        if (headed)
            model = wg__headed_encoder_model(headed);
    } else if (config) {
        wg_model_from_json(json, 0, &model);
    }
    wg_set_meta_init(was);
    wg__config_free(config);
    *costs = model.module ? wg_model_costs_of(&model) : (wg_model_costs){0};
    wg_model_free(&model);
    return costs->type ? 0 : -1;
}
