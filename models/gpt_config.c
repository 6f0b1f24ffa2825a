/* The configuration of GPT-2: presets, rules, JSON. */
#include "models/gpt.h"

#include "models/config_fields.h"
#include "models/config_rules.h"

#define WHERE "gpt_config" /* in messages */

/* ---- Presets: the published sizes, and two small ones ---- */

static const struct preset {
    const char *name;
    int64_t layers, width, heads;
} presets[] = {
    {"gpt2-tiny", 2, 128, 2},      {"gpt2-mini", 4, 256, 4},     {"gpt2-124m", 12, 768, 12},
    {"gpt2-medium", 24, 1024, 16}, {"gpt2-large", 36, 1280, 20}, {"gpt2-xl", 48, 1600, 25},
};

enum { PRESETS = sizeof presets / sizeof presets[0] };

const char *wg_gpt_preset_name(int index) {
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

/* What all sizes share, and what a published file may leave out. */
static const wg_gpt_config base = {
    .vocab_size = 50257,
    .n_positions = 1024,
    .n_embd = 768,
    .n_layer = 12,
    .n_head = 12,
    .activation_function = WG_ACTIVATION_GELU_TANH,
    .embd_pdrop = 0.1,
    .attn_pdrop = 0.1,
    .resid_pdrop = 0.1,
    .layer_norm_epsilon = 1e-5,
    .initializer_range = 0.02,
    .bos_token_id = 50256,
    .eos_token_id = 50256,
};

int wg_gpt_config_preset(wg_gpt_config *config, const char *name) {
    const int index = wg__config_find_preset(WHERE, wg_gpt_preset_name, name);
    if (index < 0)
        return -1;
    *config = base;
    config->n_layer = presets[index].layers;
    config->n_embd = presets[index].width;
    config->n_head = presets[index].heads;
    config->n_inner = 4 * presets[index].width;
    return 0;
}

/* ---- Keys ---- */

#define AT(key) #key, offsetof(wg_gpt_config, key)

static const wg__config_field fields[] = {
    {AT(vocab_size), WG__NEEDED_SIZE},
    {AT(n_positions), WG__SIZE},
    {AT(n_embd), WG__NEEDED_SIZE},
    {AT(n_layer), WG__NEEDED_SIZE},
    {AT(n_head), WG__NEEDED_SIZE},
    {AT(n_inner), WG__SIZE},
    {AT(activation_function), WG__ACTIVATION},
    {AT(embd_pdrop), WG__PROBABILITY},
    {AT(attn_pdrop), WG__PROBABILITY},
    {AT(resid_pdrop), WG__PROBABILITY},
    {AT(layer_norm_epsilon), WG__POSITIVE},
    {AT(initializer_range), WG__POSITIVE},
    {AT(bos_token_id), WG__MAYBE_TOKEN},
    {AT(eos_token_id), WG__MAYBE_TOKEN},
};

/* Keys of published files that do not change what is computed here. */
static const char *const ignored[] = {
    "_name_or_path",
    "architectures",
    "model_type",
    "n_ctx",
    "output_past",
    "reorder_and_upcast_attn",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "torch_dtype",
    "transformers_version",
    "use_cache",
};

/* Flags with only one value that this GPT knows, and a size that follows from another. */
static int read_choices(wg_config *json, void *read) {
    wg_gpt_config *config = read;
    bool scale = true, scale_by_layer = false, tie = true;
    wg_config_boolean(json, "scale_attn_weights", &scale);
    wg_config_boolean(json, "scale_attn_by_inverse_layer_idx", &scale_by_layer);
    if (wg_config_boolean(json, "tie_word_embeddings", &tie) < 0)
        return -1;
    if (!wg_config_has(json, "n_inner"))
        config->n_inner = 4 * config->n_embd;
    if (scale && !scale_by_layer && tie)
        return 0;
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s is not as in the published GPT-2",
                   !scale           ? "scale_attn_weights"
                   : scale_by_layer ? "scale_attn_by_inverse_layer_idx"
                                    : "tie_word_embeddings");
}

static const wg__config_form form = {
    .where = WHERE,
    .model_type = "gpt2",
    .field_count = sizeof fields / sizeof fields[0],
    .fields = fields,
    .ignored_count = sizeof ignored / sizeof ignored[0],
    .ignored = ignored,
    .read_rest = read_choices,
};

int wg_gpt_config_from_json(wg_gpt_config *config, const char *json) {
    wg_gpt_config read = base;
    if (wg__config_read(&form, json, &read) < 0 || wg_gpt_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_gpt_config_to_json(const wg_gpt_config *config) {
    return wg__config_write(&form, config);
}

/* ---- Rules ---- */

int wg_gpt_config_validate(const wg_gpt_config *config) {
    const wg__config_size width = {"n_embd", config->n_embd}, heads = {"n_head", config->n_head};
    if (wg__config_check_fields(&form, config, config->vocab_size) < 0)
        return -1;
    return wg__config_check_divides(WHERE, heads, width);
}
