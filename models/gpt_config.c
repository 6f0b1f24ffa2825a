/* The configuration of GPT-2: presets, rules, JSON. */
#include "models/gpt.h"

#include "io/config.h"
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

/* ---- Rules ---- */

static int check_sizes(const wg_gpt_config *config) {
    const wg__config_size width = {"n_embd", config->n_embd}, heads = {"n_head", config->n_head};
    const wg__config_size sizes[] = {
        {"vocab_size", config->vocab_size}, {"n_positions", config->n_positions}, width,
        {"n_layer", config->n_layer},       {"n_inner", config->n_inner},         heads,
    };
    if (wg__config_check_sizes(WHERE, sizeof sizes / sizeof *sizes, sizes) < 0)
        return -1;
    return wg__config_check_divides(WHERE, heads, width);
}

int wg_gpt_config_validate(const wg_gpt_config *config) {
    const wg__config_size bos = {"bos_token_id", config->bos_token_id};
    const wg__config_size eos = {"eos_token_id", config->eos_token_id};
    if (check_sizes(config) < 0 || wg__config_check_token(WHERE, bos, config->vocab_size) < 0 ||
        wg__config_check_token(WHERE, eos, config->vocab_size) < 0 ||
        wg__config_check_dropout(WHERE, "embd_pdrop", config->embd_pdrop) < 0 ||
        wg__config_check_dropout(WHERE, "attn_pdrop", config->attn_pdrop) < 0 ||
        wg__config_check_dropout(WHERE, "resid_pdrop", config->resid_pdrop) < 0)
        return -1;
    if (!wg_activation_name(config->activation_function))
        return wg__config_refuse(WHERE, "activation_function", config->activation_function,
                                 "one of wg_activation");
    if (wg__config_check_positive(WHERE, "layer_norm_epsilon", config->layer_norm_epsilon) < 0)
        return -1;
    return wg__config_check_positive(WHERE, "initializer_range", config->initializer_range);
}

/* ---- JSON ---- */

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

/* Texts and flags with only one or a few values that this GPT knows. */
static int read_choices(wg_config *json, wg_gpt_config *config) {
    const char *activation = wg_activation_name(config->activation_function);
    bool scale = true, scale_by_layer = false, tie = true;
    wg_config_text(json, "activation_function", &activation);
    wg_config_boolean(json, "scale_attn_weights", &scale);
    wg_config_boolean(json, "scale_attn_by_inverse_layer_idx", &scale_by_layer);
    if (wg_config_boolean(json, "tie_word_embeddings", &tie) < 0)
        return -1;
    if (!scale || scale_by_layer || !tie)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s is not as in the published GPT-2",
                       !scale           ? "scale_attn_weights"
                       : scale_by_layer ? "scale_attn_by_inverse_layer_idx"
                                        : "tie_word_embeddings");
    return wg_activation_parse(activation, &config->activation_function);
}

static int read_all(wg_config *json, wg_gpt_config *config) {
    static const char *const required[] = {"vocab_size", "n_embd", "n_layer", "n_head"};
    if (wg_config_require(json, 4, required) < 0)
        return -1;
    wg_config_integer(json, "vocab_size", &config->vocab_size);
    wg_config_integer(json, "n_positions", &config->n_positions);
    wg_config_integer(json, "n_embd", &config->n_embd);
    wg_config_integer(json, "n_layer", &config->n_layer);
    wg_config_integer(json, "n_head", &config->n_head);
    config->n_inner = 4 * config->n_embd;
    wg_config_integer(json, "n_inner", &config->n_inner);
    wg_config_number(json, "embd_pdrop", &config->embd_pdrop);
    wg_config_number(json, "attn_pdrop", &config->attn_pdrop);
    wg_config_number(json, "resid_pdrop", &config->resid_pdrop);
    wg_config_number(json, "layer_norm_epsilon", &config->layer_norm_epsilon);
    wg_config_number(json, "initializer_range", &config->initializer_range);
    wg_config_integer(json, "bos_token_id", &config->bos_token_id);
    wg_config_integer(json, "eos_token_id", &config->eos_token_id);
    if (read_choices(json, config) < 0)
        return -1;
    return wg_config_check(json, sizeof ignored / sizeof ignored[0], ignored);
}

int wg_gpt_config_from_json(wg_gpt_config *config, const char *json) {
    wg_gpt_config read = base;
    wg_config *object = wg_config_parse(json, "config.json");
    int status = object ? read_all(object, &read) : -1;
    wg_config_free(object);
    if (status < 0 || wg_gpt_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_gpt_config_to_json(const wg_gpt_config *config) {
    wg_config *json = wg_config_new();
    wg_config_set_text(json, "model_type", "gpt2");
    wg_config_set_integer(json, "vocab_size", config->vocab_size);
    wg_config_set_integer(json, "n_positions", config->n_positions);
    wg_config_set_integer(json, "n_embd", config->n_embd);
    wg_config_set_integer(json, "n_layer", config->n_layer);
    wg_config_set_integer(json, "n_head", config->n_head);
    wg_config_set_integer(json, "n_inner", config->n_inner);
    wg_config_set_text(json, "activation_function",
                       wg_activation_name(config->activation_function));
    wg_config_set_number(json, "embd_pdrop", config->embd_pdrop);
    wg_config_set_number(json, "attn_pdrop", config->attn_pdrop);
    wg_config_set_number(json, "resid_pdrop", config->resid_pdrop);
    wg_config_set_number(json, "layer_norm_epsilon", config->layer_norm_epsilon);
    wg_config_set_number(json, "initializer_range", config->initializer_range);
    wg_config_set_integer(json, "bos_token_id", config->bos_token_id);
    wg_config_set_integer(json, "eos_token_id", config->eos_token_id);
    char *text = wg_config_to_json(json);
    wg_config_free(json);
    return text;
}
