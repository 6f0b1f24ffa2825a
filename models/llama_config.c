/* The configuration of LLaMA: presets, rules, JSON. */
#include "models/llama.h"

#include <string.h>

#include "io/config.h"
#include "models/config_rules.h"

#define WHERE "llama_config" /* in messages */

/* ---- Presets: the sizes of llama2.c's stories models, and of LLaMA 7B ---- */

static const struct preset {
    const char *name;
    int64_t vocabulary, width, inner, layers, heads, shared, positions;
} presets[] = {
    {"llama-260k", 512, 64, 172, 5, 8, 4, 512},
    {"llama-15m", 32000, 288, 768, 6, 6, 6, 256},
    {"llama-42m", 32000, 512, 1376, 8, 8, 8, 1024},
    {"llama-110m", 32000, 768, 2048, 12, 12, 12, 1024},
    {"llama-7b", 32000, 4096, 11008, 32, 32, 32, 4096},
};

enum { PRESETS = sizeof presets / sizeof presets[0] };

const char *wg_llama_preset_name(int index) {
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

/* What all sizes share, and what a published file may leave out. */
static const wg_llama_config base = {
    .vocab_size = 32000,
    .hidden_act = WG_GATE_SWIGLU,
    .max_position_embeddings = 2048,
    .rms_norm_eps = 1e-6,
    .rope_theta = 10000,
    .initializer_range = 0.02,
    .bos_token_id = 1,
    .eos_token_id = 2,
};

int wg_llama_config_preset(wg_llama_config *config, const char *name) {
    const int index = wg__config_find_preset(WHERE, wg_llama_preset_name, name);
    if (index < 0)
        return -1;
    const struct preset *preset = &presets[index];
    *config = base;
    config->vocab_size = preset->vocabulary;
    config->hidden_size = preset->width;
    config->intermediate_size = preset->inner;
    config->num_hidden_layers = preset->layers;
    config->num_attention_heads = preset->heads;
    config->num_key_value_heads = preset->shared;
    config->max_position_embeddings = preset->positions;
    config->rms_norm_eps = 1e-5;
    config->tie_word_embeddings = preset->width < 4096;
    return 0;
}

/* ---- Rules ---- */

static int check_scaling(const wg_rotary_options *scaling) {
    if (scaling->factor != 0 &&
        wg__config_check_positive(WHERE, "rope_scaling.factor", scaling->factor) < 0)
        return -1;
    if (scaling->original_positions == 0)
        return 0;
    if (scaling->original_positions < 0)
        return wg__config_refuse(WHERE, "rope_scaling.original_max_position_embeddings",
                                 (double)scaling->original_positions, "at least 1");
    const double low = scaling->low_frequency_factor, high = scaling->high_frequency_factor;
    return low > 0 && high > low ? 0
                                 : wg__config_refuse(WHERE, "rope_scaling.high_freq_factor", high,
                                                     "above low_freq_factor, which is above 0");
}

static int check_sizes(const wg_llama_config *config) {
    const wg__config_size width = {"hidden_size", config->hidden_size};
    const wg__config_size heads = {"num_attention_heads", config->num_attention_heads};
    const wg__config_size shared = {"num_key_value_heads", config->num_key_value_heads};
    const wg__config_size sizes[] = {
        {"vocab_size", config->vocab_size},
        width,
        {"intermediate_size", config->intermediate_size},
        {"num_hidden_layers", config->num_hidden_layers},
        heads,
        shared,
        {"max_position_embeddings", config->max_position_embeddings},
    };
    if (wg__config_check_sizes(WHERE, sizeof sizes / sizeof *sizes, sizes) < 0 ||
        wg__config_check_divides(WHERE, heads, width) < 0 ||
        wg__config_check_divides(WHERE, shared, heads) < 0)
        return -1;
    if (config->hidden_size / config->num_attention_heads % 2 != 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "heads of width %lld; rotary positions turn pairs, and need an even one",
                       (long long)(config->hidden_size / config->num_attention_heads));
    return 0;
}

int wg_llama_config_validate(const wg_llama_config *config) {
    const wg__config_size bos = {"bos_token_id", config->bos_token_id};
    const wg__config_size eos = {"eos_token_id", config->eos_token_id};
    if (check_sizes(config) < 0 || wg__config_check_token(WHERE, bos, config->vocab_size) < 0 ||
        wg__config_check_token(WHERE, eos, config->vocab_size) < 0)
        return -1;
    if (!wg_gate_name(config->hidden_act))
        return wg__config_refuse(WHERE, "hidden_act", config->hidden_act, "one of wg_gate");
    if (wg__config_check_positive(WHERE, "rms_norm_eps", config->rms_norm_eps) < 0 ||
        wg__config_check_positive(WHERE, "rope_theta", config->rope_theta) < 0)
        return -1;
    if (check_scaling(&config->rope_scaling) < 0)
        return -1;
    return wg__config_check_positive(WHERE, "initializer_range", config->initializer_range);
}

/* ---- JSON ---- */

/* Keys of published files that do not change what is computed here. */
static const char *const ignored[] = {
    "rope_scaling", "_name_or_path",  "architectures", "attention_dropout",    "model_type",
    "pad_token_id", "pretraining_tp", "torch_dtype",   "transformers_version", "use_cache",
};

/* Texts and flags with only one or a few values that this LLaMA knows. */
static int read_choices(wg_config *json, wg_llama_config *config) {
    const char *act = wg_gate_name(config->hidden_act);
    bool attention_bias = false, mlp_bias = false;
    int64_t head = 0;
    wg_config_text(json, "hidden_act", &act);
    wg_config_boolean(json, "tie_word_embeddings", &config->tie_word_embeddings);
    wg_config_boolean(json, "attention_bias", &attention_bias);
    wg_config_boolean(json, "mlp_bias", &mlp_bias);
    if (wg_config_integer(json, "head_dim", &head) < 0)
        return -1;
    if (attention_bias || mlp_bias)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s is true; there are no biases here",
                       attention_bias ? "attention_bias" : "mlp_bias");
    if (head != 0 && head * config->num_attention_heads != config->hidden_size)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "head_dim %lld is not hidden_size / num_attention_heads", (long long)head);
    return wg_gate_parse(act, &config->hidden_act);
}

/* Positions that are stretched: "linear", or "llama3" of LLaMA 3.1; older files say "type". */
static int read_scaling(wg_config *scaling, wg_rotary_options *options) {
    const char *type = "default";
    wg_config_text(scaling, "type", &type);
    if (wg_config_text(scaling, "rope_type", &type) < 0)
        return -1;
    if (strcmp(type, "default") == 0)
        return wg_config_check(scaling, 0, NULL);
    const bool llama3 = strcmp(type, "llama3") == 0;
    if (!llama3 && strcmp(type, "linear") != 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "rope_scaling is of type \"%.64s\"; linear and llama3 are known", type);
    static const char *const keys[] = {"factor", "low_freq_factor", "high_freq_factor",
                                       "original_max_position_embeddings"};
    if (wg_config_require(scaling, llama3 ? 4 : 1, keys) < 0)
        return -1;
    wg_config_number(scaling, keys[0], &options->factor);
    if (llama3) {
        wg_config_number(scaling, keys[1], &options->low_frequency_factor);
        wg_config_number(scaling, keys[2], &options->high_frequency_factor);
        wg_config_integer(scaling, keys[3], &options->original_positions);
    }
    return wg_config_check(scaling, 0, NULL);
}

static int write_scaling(wg_config *json, const wg_rotary_options *options) {
    if (options->factor == 0)
        return 0;
    const bool llama3 = options->original_positions > 0;
    wg_config *scaling = wg_config_new();
    wg_config_set_text(scaling, "rope_type", llama3 ? "llama3" : "linear");
    wg_config_set_number(scaling, "factor", options->factor);
    if (llama3) {
        wg_config_set_number(scaling, "low_freq_factor", options->low_frequency_factor);
        wg_config_set_number(scaling, "high_freq_factor", options->high_frequency_factor);
        wg_config_set_integer(scaling, "original_max_position_embeddings",
                              options->original_positions);
    }
    const int status = wg_config_set_part(json, "rope_scaling", scaling);
    wg_config_free(scaling);
    return status;
}

static int read_all(wg_config *json, wg_llama_config *config) {
    static const char *const required[] = {"vocab_size", "hidden_size", "intermediate_size",
                                           "num_hidden_layers", "num_attention_heads"};
    if (wg_config_require(json, 5, required) < 0)
        return -1;
    wg_config_integer(json, "vocab_size", &config->vocab_size);
    wg_config_integer(json, "hidden_size", &config->hidden_size);
    wg_config_integer(json, "intermediate_size", &config->intermediate_size);
    wg_config_integer(json, "num_hidden_layers", &config->num_hidden_layers);
    wg_config_integer(json, "num_attention_heads", &config->num_attention_heads);
    config->num_key_value_heads = config->num_attention_heads;
    wg_config_integer(json, "num_key_value_heads", &config->num_key_value_heads);
    wg_config_integer(json, "max_position_embeddings", &config->max_position_embeddings);
    wg_config_number(json, "rms_norm_eps", &config->rms_norm_eps);
    wg_config_number(json, "rope_theta", &config->rope_theta);
    wg_config_number(json, "initializer_range", &config->initializer_range);
    wg_config_integer(json, "bos_token_id", &config->bos_token_id);
    wg_config_first_integer(json, "eos_token_id", &config->eos_token_id);
    wg_config *scaling = wg_config_part(json, "rope_scaling");
    const int status = scaling ? read_scaling(scaling, &config->rope_scaling) : 0;
    wg_config_free(scaling);
    if (status < 0 || read_choices(json, config) < 0)
        return -1;
    return wg_config_check(json, sizeof ignored / sizeof ignored[0], ignored);
}

int wg_llama_config_from_json(wg_llama_config *config, const char *json) {
    wg_llama_config read = base;
    wg_config *object = wg_config_parse(json, "config.json");
    int status = object ? read_all(object, &read) : -1;
    wg_config_free(object);
    if (status < 0 || wg_llama_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_llama_config_to_json(const wg_llama_config *config) {
    wg_config *json = wg_config_new();
    wg_config_set_text(json, "model_type", "llama");
    wg_config_set_integer(json, "vocab_size", config->vocab_size);
    wg_config_set_integer(json, "hidden_size", config->hidden_size);
    wg_config_set_integer(json, "intermediate_size", config->intermediate_size);
    wg_config_set_integer(json, "num_hidden_layers", config->num_hidden_layers);
    wg_config_set_integer(json, "num_attention_heads", config->num_attention_heads);
    wg_config_set_integer(json, "num_key_value_heads", config->num_key_value_heads);
    wg_config_set_text(json, "hidden_act", wg_gate_name(config->hidden_act));
    wg_config_set_integer(json, "max_position_embeddings", config->max_position_embeddings);
    wg_config_set_number(json, "rms_norm_eps", config->rms_norm_eps);
    wg_config_set_number(json, "rope_theta", config->rope_theta);
    write_scaling(json, &config->rope_scaling);
    wg_config_set_number(json, "initializer_range", config->initializer_range);
    wg_config_set_boolean(json, "tie_word_embeddings", config->tie_word_embeddings);
    wg_config_set_integer(json, "bos_token_id", config->bos_token_id);
    wg_config_set_integer(json, "eos_token_id", config->eos_token_id);
    char *text = wg_config_to_json(json);
    wg_config_free(json);
    return text;
}
