/* The configuration of BERT: presets, rules, JSON. */
#include "models/bert.h"

#include "io/config.h"
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

/* ---- Rules ---- */

static int check_sizes(const wg_bert_config *config) {
    const wg__config_size width = {"hidden_size", config->hidden_size};
    const wg__config_size heads = {"num_attention_heads", config->num_attention_heads};
    const wg__config_size sizes[] = {
        {"vocab_size", config->vocab_size},
        width,
        {"num_hidden_layers", config->num_hidden_layers},
        heads,
        {"intermediate_size", config->intermediate_size},
        {"max_position_embeddings", config->max_position_embeddings},
        {"type_vocab_size", config->type_vocab_size},
    };
    if (wg__config_check_sizes(WHERE, sizeof sizes / sizeof *sizes, sizes) < 0 ||
        wg__config_check_divides(WHERE, heads, width) < 0)
        return -1;
    if (config->pad_token_id < 0 || config->pad_token_id >= config->vocab_size)
        return wg__config_refuse(WHERE, "pad_token_id", (double)config->pad_token_id,
                                 "a token of the vocabulary");
    return 0;
}

int wg_bert_config_validate(const wg_bert_config *config) {
    if (check_sizes(config) < 0)
        return -1;
    if (!wg_activation_name(config->hidden_act))
        return wg__config_refuse(WHERE, "hidden_act", config->hidden_act, "one of wg_activation");
    if (wg__config_check_dropout(WHERE, "hidden_dropout_prob", config->hidden_dropout_prob) < 0 ||
        wg__config_check_dropout(WHERE, "attention_probs_dropout_prob",
                                 config->attention_probs_dropout_prob) < 0 ||
        wg__config_check_positive(WHERE, "initializer_range", config->initializer_range) < 0)
        return -1;
    return wg__config_check_positive(WHERE, "layer_norm_eps", config->layer_norm_eps);
}

/* ---- JSON ---- */

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

/* Texts with only one or a few values that this BERT knows. */
static int read_texts(wg_config *json, wg_bert_config *config) {
    const char *activation = wg_activation_name(config->hidden_act), *positions = "absolute";
    wg_config_text(json, "hidden_act", &activation);
    if (wg_config_text(json, "position_embedding_type", &positions) < 0)
        return -1;
    if (strcmp(positions, "absolute") != 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "position_embedding_type is \"%s\"; only \"absolute\" is known", positions);
    return wg_activation_parse(activation, &config->hidden_act);
}

static int read_all(wg_config *json, wg_bert_config *config) {
    static const char *const required[] = {"vocab_size", "hidden_size", "num_hidden_layers",
                                           "num_attention_heads", "intermediate_size"};
    if (wg_config_require(json, 5, required) < 0)
        return -1;
    wg_config_integer(json, "vocab_size", &config->vocab_size);
    wg_config_integer(json, "hidden_size", &config->hidden_size);
    wg_config_integer(json, "num_hidden_layers", &config->num_hidden_layers);
    wg_config_integer(json, "num_attention_heads", &config->num_attention_heads);
    wg_config_integer(json, "intermediate_size", &config->intermediate_size);
    wg_config_number(json, "hidden_dropout_prob", &config->hidden_dropout_prob);
    wg_config_number(json, "attention_probs_dropout_prob", &config->attention_probs_dropout_prob);
    wg_config_integer(json, "max_position_embeddings", &config->max_position_embeddings);
    wg_config_integer(json, "type_vocab_size", &config->type_vocab_size);
    wg_config_number(json, "initializer_range", &config->initializer_range);
    wg_config_number(json, "layer_norm_eps", &config->layer_norm_eps);
    wg_config_integer(json, "pad_token_id", &config->pad_token_id);
    if (read_texts(json, config) < 0)
        return -1;
    return wg_config_check(json, sizeof ignored / sizeof ignored[0], ignored);
}

int wg_bert_config_from_json(wg_bert_config *config, const char *json) {
    wg_bert_config read = base;
    wg_config *object = wg_config_parse(json, "config.json");
    int status = object ? read_all(object, &read) : -1;
    wg_config_free(object);
    if (status < 0 || wg_bert_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_bert_config_to_json(const wg_bert_config *config) {
    wg_config *json = wg_config_new();
    wg_config_set_text(json, "model_type", "bert");
    wg_config_set_integer(json, "vocab_size", config->vocab_size);
    wg_config_set_integer(json, "hidden_size", config->hidden_size);
    wg_config_set_integer(json, "num_hidden_layers", config->num_hidden_layers);
    wg_config_set_integer(json, "num_attention_heads", config->num_attention_heads);
    wg_config_set_integer(json, "intermediate_size", config->intermediate_size);
    wg_config_set_text(json, "hidden_act", wg_activation_name(config->hidden_act));
    wg_config_set_number(json, "hidden_dropout_prob", config->hidden_dropout_prob);
    wg_config_set_number(json, "attention_probs_dropout_prob",
                         config->attention_probs_dropout_prob);
    wg_config_set_integer(json, "max_position_embeddings", config->max_position_embeddings);
    wg_config_set_integer(json, "type_vocab_size", config->type_vocab_size);
    wg_config_set_number(json, "initializer_range", config->initializer_range);
    wg_config_set_number(json, "layer_norm_eps", config->layer_norm_eps);
    wg_config_set_integer(json, "pad_token_id", config->pad_token_id);
    char *text = wg_config_to_json(json);
    wg_config_free(json);
    return text;
}
