/* The configuration of T5: presets, rules, JSON. */
#include "models/t5.h"

#include "io/config.h"
#include "models/config_rules.h"

#include <string.h>

#define WHERE "t5_config" /* in messages */

/* ---- Presets: the published sizes; the two below "small" are those of "T5-efficient" (Tay et al.
 * 2021, arXiv:2109.10686, table 2), here in both versions. ---- */

static const struct preset {
    const char *name;
    int64_t layers, width, inner, heads;
    bool newer; /* 1.1 */
} presets[] = {
    {"t5-tiny", 4, 256, 1024, 4, false},      {"t5-mini", 4, 384, 1536, 8, false},
    {"t5-small", 6, 512, 2048, 8, false},     {"t5-base", 12, 768, 3072, 12, false},
    {"t5-v1_1-tiny", 4, 256, 1024, 4, true},  {"t5-v1_1-mini", 4, 384, 1536, 8, true},
    {"t5-v1_1-small", 8, 512, 1024, 6, true},
};

enum { PRESETS = sizeof presets / sizeof presets[0] };

const char *wg_t5_preset_name(int index) {
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

/* What all sizes share, and what a published file may leave out. */
static const wg_t5_config base = {
    .vocab_size = 32128,
    .d_kv = 64,
    .relative_attention_num_buckets = 32,
    .relative_attention_max_distance = 128,
    .dropout_rate = 0.1,
    .layer_norm_epsilon = 1e-6,
    .initializer_factor = 1,
    .tie_word_embeddings = true,
    .pad_token_id = 0,
    .eos_token_id = 1,
    .decoder_start_token_id = 0,
};

int wg_t5_config_preset(wg_t5_config *config, const char *name) {
    const int index = wg__config_find_preset(WHERE, wg_t5_preset_name, name);
    if (index < 0)
        return -1;
    const struct preset *preset = &presets[index];
    *config = base;
    config->num_layers = config->num_decoder_layers = preset->layers;
    config->d_model = preset->width;
    config->d_ff = preset->inner;
    config->num_heads = preset->heads;
    config->gated = preset->newer;
    config->tie_word_embeddings = !preset->newer;
    return 0;
}

/* ---- Rules ---- */

static int check_tokens(const wg_t5_config *config) {
    const wg__config_size tokens[] = {
        {"pad_token_id", config->pad_token_id},
        {"eos_token_id", config->eos_token_id},
        {"decoder_start_token_id", config->decoder_start_token_id},
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        if (tokens[i].value < 0 || tokens[i].value >= config->vocab_size)
            return wg__config_refuse(WHERE, tokens[i].key, (double)tokens[i].value,
                                     "a token of the vocabulary");
    return 0;
}

int wg_t5_config_validate(const wg_t5_config *config) {
    const wg__config_size sizes[] = {
        {"vocab_size", config->vocab_size},
        {"d_model", config->d_model},
        {"d_kv", config->d_kv},
        {"d_ff", config->d_ff},
        {"num_layers", config->num_layers},
        {"num_decoder_layers", config->num_decoder_layers},
        {"num_heads", config->num_heads},
    };
    if (wg__config_check_sizes(WHERE, sizeof sizes / sizeof *sizes, sizes) < 0 ||
        check_tokens(config) < 0 ||
        wg__config_check_dropout(WHERE, "dropout_rate", config->dropout_rate) < 0 ||
        wg__config_check_positive(WHERE, "layer_norm_epsilon", config->layer_norm_epsilon) < 0)
        return -1;
    return wg__config_check_positive(WHERE, "initializer_factor", config->initializer_factor);
}

/* ---- JSON ---- */

/* Keys of published files that do not change what is computed here. */
static const char *const ignored[] = {
    "_name_or_path",      "architectures",        "classifier_dropout", "dense_act_fn",
    "is_encoder_decoder", "is_gated_act",         "model_type",         "n_positions",
    "output_past",        "task_specific_params", "torch_dtype",        "transformers_version",
    "use_cache",
};

static int read_net(wg_config *json, wg_t5_config *config) {
    const char *net = "relu";
    if (wg_config_text(json, "feed_forward_proj", &net) < 0)
        return -1;
    config->gated = strcmp(net, "gated-gelu") == 0;
    if (config->gated || strcmp(net, "relu") == 0)
        return 0;
    return wg_fail(WG_ERROR_FORMAT, WHERE,
                   "feed_forward_proj is \"%s\"; wanted \"relu\" or \"gated-gelu\"", net);
}

static int read_all(wg_config *json, wg_t5_config *config) {
    static const char *const required[] = {"vocab_size", "d_model",    "d_kv",
                                           "d_ff",       "num_layers", "num_heads"};
    if (wg_config_require(json, 6, required) < 0)
        return -1;
    wg_config_integer(json, "vocab_size", &config->vocab_size);
    wg_config_integer(json, "d_model", &config->d_model);
    wg_config_integer(json, "d_kv", &config->d_kv);
    wg_config_integer(json, "d_ff", &config->d_ff);
    wg_config_integer(json, "num_layers", &config->num_layers);
    config->num_decoder_layers = config->num_layers;
    wg_config_integer(json, "num_decoder_layers", &config->num_decoder_layers);
    wg_config_integer(json, "num_heads", &config->num_heads);
    wg_config_integer(json, "relative_attention_num_buckets",
                      &config->relative_attention_num_buckets);
    wg_config_integer(json, "relative_attention_max_distance",
                      &config->relative_attention_max_distance);
    wg_config_number(json, "dropout_rate", &config->dropout_rate);
    wg_config_number(json, "layer_norm_epsilon", &config->layer_norm_epsilon);
    wg_config_number(json, "initializer_factor", &config->initializer_factor);
    wg_config_boolean(json, "tie_word_embeddings", &config->tie_word_embeddings);
    wg_config_integer(json, "pad_token_id", &config->pad_token_id);
    wg_config_integer(json, "eos_token_id", &config->eos_token_id);
    wg_config_integer(json, "decoder_start_token_id", &config->decoder_start_token_id);
    if (read_net(json, config) < 0)
        return -1;
    return wg_config_check(json, sizeof ignored / sizeof ignored[0], ignored);
}

int wg_t5_config_from_json(wg_t5_config *config, const char *json) {
    wg_t5_config read = base;
    wg_config *object = wg_config_parse(json, "config.json");
    int status = object ? read_all(object, &read) : -1;
    wg_config_free(object);
    if (status < 0 || wg_t5_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_t5_config_to_json(const wg_t5_config *config) {
    wg_config *json = wg_config_new();
    wg_config_set_text(json, "model_type", "t5");
    wg_config_set_integer(json, "vocab_size", config->vocab_size);
    wg_config_set_integer(json, "d_model", config->d_model);
    wg_config_set_integer(json, "d_kv", config->d_kv);
    wg_config_set_integer(json, "d_ff", config->d_ff);
    wg_config_set_integer(json, "num_layers", config->num_layers);
    wg_config_set_integer(json, "num_decoder_layers", config->num_decoder_layers);
    wg_config_set_integer(json, "num_heads", config->num_heads);
    wg_config_set_integer(json, "relative_attention_num_buckets",
                          config->relative_attention_num_buckets);
    wg_config_set_integer(json, "relative_attention_max_distance",
                          config->relative_attention_max_distance);
    wg_config_set_number(json, "dropout_rate", config->dropout_rate);
    wg_config_set_number(json, "layer_norm_epsilon", config->layer_norm_epsilon);
    wg_config_set_number(json, "initializer_factor", config->initializer_factor);
    wg_config_set_text(json, "feed_forward_proj", config->gated ? "gated-gelu" : "relu");
    wg_config_set_boolean(json, "tie_word_embeddings", config->tie_word_embeddings);
    wg_config_set_integer(json, "pad_token_id", config->pad_token_id);
    wg_config_set_integer(json, "eos_token_id", config->eos_token_id);
    wg_config_set_integer(json, "decoder_start_token_id", config->decoder_start_token_id);
    char *text = wg_config_to_json(json);
    wg_config_free(json);
    return text;
}
