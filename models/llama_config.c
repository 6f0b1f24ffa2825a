/* The configuration of LLaMA: presets, rules, JSON. */
#include "models/llama.h"

#include <string.h>

#include "io/config_json.h"
#include "models/config_fields.h"
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

/* ---- Keys ---- */

#define AT(key) #key, offsetof(wg_llama_config, key)

static const wg__config_field fields[] = {
    {AT(vocab_size), WG__NEEDED_SIZE},
    {AT(hidden_size), WG__NEEDED_SIZE},
    {AT(intermediate_size), WG__NEEDED_SIZE},
    {AT(num_hidden_layers), WG__NEEDED_SIZE},
    {AT(num_attention_heads), WG__NEEDED_SIZE},
    {AT(num_key_value_heads), WG__SIZE},
    {AT(hidden_act), WG__GATE},
    {AT(max_position_embeddings), WG__SIZE},
    {AT(rms_norm_eps), WG__POSITIVE},
    {AT(rope_theta), WG__POSITIVE},
    {AT(initializer_range), WG__POSITIVE},
    {AT(tie_word_embeddings), WG__FLAG},
    {AT(bos_token_id), WG__MAYBE_TOKEN},
    {AT(eos_token_id), WG__MAYBE_TOKENS},
};

/* Keys of published files that do not change what is computed here. */
static const char *const ignored[] = {
    "rope_scaling", "_name_or_path",  "architectures", "attention_dropout",    "model_type",
    "pad_token_id", "pretraining_tp", "torch_dtype",   "transformers_version", "use_cache",
};

/* Flags and sizes with only one value that this LLaMA knows. */
static int read_choices(wg_config *json, const wg_llama_config *config) {
    bool attention_bias = false, mlp_bias = false;
    int64_t head = 0;
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
    return 0;
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

static int read_rest(wg_config *json, void *read) {
    wg_llama_config *config = read;
    if (!wg_config_has(json, "num_key_value_heads"))
        config->num_key_value_heads = config->num_attention_heads;
    wg_config *scaling = wg__config_part(json, "rope_scaling");
    const int status = scaling ? read_scaling(scaling, &config->rope_scaling) : 0;
    wg_config_free(scaling);
    return status < 0 ? -1 : read_choices(json, config);
}

static int write_scaling(wg_config *json, const void *written) {
    const wg_rotary_options *options = &((const wg_llama_config *)written)->rope_scaling;
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
    const int status = wg__config_set_part(json, "rope_scaling", scaling);
    wg_config_free(scaling);
    return status;
}

static const wg__config_form form = {
    .where = WHERE,
    .model_type = "llama",
    .field_count = sizeof fields / sizeof fields[0],
    .fields = fields,
    .ignored_count = sizeof ignored / sizeof ignored[0],
    .ignored = ignored,
    .read_rest = read_rest,
    .write_rest = write_scaling,
};

int wg_llama_config_from_json(wg_llama_config *config, const char *json) {
    wg_llama_config read = base;
    if (wg__config_read(&form, json, &read) < 0 || wg_llama_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_llama_config_to_json(const wg_llama_config *config) {
    return wg__config_write(&form, config);
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

static int check_heads(const wg_llama_config *config) {
    const wg__config_size width = {"hidden_size", config->hidden_size};
    const wg__config_size heads = {"num_attention_heads", config->num_attention_heads};
    const wg__config_size shared = {"num_key_value_heads", config->num_key_value_heads};
    if (wg__config_check_divides(WHERE, heads, width) < 0 ||
        wg__config_check_divides(WHERE, shared, heads) < 0)
        return -1;
    if (config->hidden_size / config->num_attention_heads % 2 != 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "heads of width %lld; rotary positions turn pairs, and need an even one",
                       (long long)(config->hidden_size / config->num_attention_heads));
    return 0;
}

int wg_llama_config_validate(const wg_llama_config *config) {
    if (wg__config_check_fields(&form, config, config->vocab_size) < 0 || check_heads(config) < 0)
        return -1;
    return check_scaling(&config->rope_scaling);
}
