/* The configuration of BERT: presets, rules, JSON. */
#include "models/bert.h"

#include "models/config_fields.h"
#include "models/config_rules.h"

#include <string.h>

#define WHERE "bert_config" /* in messages */

/* ---- Presets: the sizes of google/bert_uncased_L-*_H-* and of bert-base-uncased ---- */

static const struct preset {
    const char *name;
    int64_t layers, width, heads, inner;
} presets[] = {
    {"bert-tiny", 2, 128, 2, 512},
    {"bert-mini", 4, 256, 4, 1024},
    {"bert-small", 4, 512, 8, 2048},
    {"bert-base", 12, 768, 12, 3072},
};

enum { PRESETS = sizeof presets / sizeof presets[0] };

const char *wg_bert_preset_name(int index) {
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

/* What all published sizes share. */
static const wg_bert_config base = {
    .vocab_size = 30522,
    .hidden_act = WG_ACTIVATION_GELU,
    .hidden_dropout_prob = 0.1,
    .attention_probs_dropout_prob = 0.1,
    .max_position_embeddings = 512,
    .type_vocab_size = 2,
    .initializer_range = 0.02,
    .layer_norm_eps = 1e-12,
    .pad_token_id = 0,
};

int wg_bert_config_preset(wg_bert_config *config, const char *name) {
    const int index = wg__config_find_preset(WHERE, wg_bert_preset_name, name);
    if (index < 0)
        return -1;
    *config = base;
    config->num_hidden_layers = presets[index].layers;
    config->hidden_size = presets[index].width;
    config->num_attention_heads = presets[index].heads;
    config->intermediate_size = presets[index].inner;
    return 0;
}

/* ---- Keys ---- */

#define AT(key) #key, offsetof(wg_bert_config, key)

static const wg__config_field fields[] = {
    {AT(vocab_size), WG__NEEDED_SIZE},
    {AT(hidden_size), WG__NEEDED_SIZE},
    {AT(num_hidden_layers), WG__NEEDED_SIZE},
    {AT(num_attention_heads), WG__NEEDED_SIZE},
    {AT(intermediate_size), WG__NEEDED_SIZE},
    {AT(hidden_act), WG__ACTIVATION},
    {AT(hidden_dropout_prob), WG__PROBABILITY},
    {AT(attention_probs_dropout_prob), WG__PROBABILITY},
    {AT(max_position_embeddings), WG__SIZE},
    {AT(type_vocab_size), WG__SIZE},
    {AT(initializer_range), WG__POSITIVE},
    {AT(layer_norm_eps), WG__POSITIVE},
    {AT(pad_token_id), WG__TOKEN},
};

/* Keys of published files that do not change what is computed here. */
static const char *const ignored[] = {
    "_name_or_path",
    "architectures",
    "classifier_dropout",
    "directionality",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "label2id",
    "model_type",
    "num_labels",
    "output_past",
    "pooler_fc_size",
    "pooler_num_fc_layers",
    "pooler_num_attention_heads",
    "pooler_size_per_head",
    "pooler_type",
    "problem_type",
    "torch_dtype",
    "transformers_version",
    "use_cache",
};

static int read_positions(wg_config *json, void *config) {
    (void)config;
    const char *positions = "absolute";
    if (wg_config_text(json, "position_embedding_type", &positions) < 0)
        return -1;
    return strcmp(positions, "absolute") == 0
               ? 0
               : wg_fail(WG_ERROR_FORMAT, WHERE,
                         "position_embedding_type is \"%s\"; only \"absolute\" is known",
                         positions);
}

static const wg__config_form form = {
    .where = WHERE,
    .model_type = "bert",
    .field_count = sizeof fields / sizeof fields[0],
    .fields = fields,
    .ignored_count = sizeof ignored / sizeof ignored[0],
    .ignored = ignored,
    .read_rest = read_positions,
};

int wg_bert_config_from_json(wg_bert_config *config, const char *json) {
    wg_bert_config read = base;
    if (wg__config_read(&form, json, &read) < 0 || wg_bert_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_bert_config_to_json(const wg_bert_config *config) {
    return wg__config_write(&form, config);
}

/* ---- Rules ---- */

int wg_bert_config_validate(const wg_bert_config *config) {
    const wg__config_size width = {"hidden_size", config->hidden_size};
    const wg__config_size heads = {"num_attention_heads", config->num_attention_heads};
    if (wg__config_check_fields(&form, config, config->vocab_size) < 0)
        return -1;
    return wg__config_check_divides(WHERE, heads, width);
}
