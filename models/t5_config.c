/* The configuration of T5: presets, rules, JSON. */
#include "models/t5.h"

#include "models/config_fields.h"
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

/* ---- Keys ---- */

#define AT(key) #key, offsetof(wg_t5_config, key)

static const wg__config_field fields[] = {
    {AT(vocab_size), WG__NEEDED_SIZE},
    {AT(d_model), WG__NEEDED_SIZE},
    {AT(d_kv), WG__NEEDED_SIZE},
    {AT(d_ff), WG__NEEDED_SIZE},
    {AT(num_layers), WG__NEEDED_SIZE},
    {AT(num_decoder_layers), WG__SIZE},
    {AT(num_heads), WG__NEEDED_SIZE},
    {AT(relative_attention_num_buckets), WG__INTEGER},
    {AT(relative_attention_max_distance), WG__INTEGER},
    {AT(dropout_rate), WG__PROBABILITY},
    {AT(layer_norm_epsilon), WG__POSITIVE},
    {AT(initializer_factor), WG__POSITIVE},
    {AT(tie_word_embeddings), WG__FLAG},
    {AT(pad_token_id), WG__TOKEN},
    {AT(eos_token_id), WG__TOKEN},
    {AT(decoder_start_token_id), WG__TOKEN},
};

/* Keys of published files that do not change what is computed here. */
static const char *const ignored[] = {
    "_name_or_path",      "architectures",        "classifier_dropout", "dense_act_fn",
    "is_encoder_decoder", "is_gated_act",         "model_type",         "n_positions",
    "output_past",        "task_specific_params", "torch_dtype",        "transformers_version",
    "use_cache",
};

static int read_rest(wg_config *json, void *read) {
    wg_t5_config *config = read;
    if (!wg_config_has(json, "num_decoder_layers"))
        config->num_decoder_layers = config->num_layers;
    const char *net = "relu";
    if (wg_config_text(json, "feed_forward_proj", &net) < 0)
        return -1;
    config->gated = strcmp(net, "gated-gelu") == 0;
    if (config->gated || strcmp(net, "relu") == 0)
        return 0;
    return wg_fail(WG_ERROR_FORMAT, WHERE,
                   "feed_forward_proj is \"%s\"; wanted \"relu\" or \"gated-gelu\"", net);
}

static int write_net(wg_config *json, const void *config) {
    const bool gated = ((const wg_t5_config *)config)->gated;
    return wg_config_set_text(json, "feed_forward_proj", gated ? "gated-gelu" : "relu");
}

static const wg__config_form form = {
    .where = WHERE,
    .model_type = "t5",
    .field_count = sizeof fields / sizeof fields[0],
    .fields = fields,
    .ignored_count = sizeof ignored / sizeof ignored[0],
    .ignored = ignored,
    .read_rest = read_rest,
    .write_rest = write_net,
};

int wg_t5_config_from_json(wg_t5_config *config, const char *json) {
    wg_t5_config read = base;
    if (wg__config_read(&form, json, &read) < 0 || wg_t5_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_t5_config_to_json(const wg_t5_config *config) {
    return wg__config_write(&form, config);
}

/* ---- Rules ---- */

int wg_t5_config_validate(const wg_t5_config *config) {
    return wg__config_check_fields(&form, config, config->vocab_size);
}
