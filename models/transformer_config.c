/* The configuration of the Transformer: presets, rules, JSON. */
#include "models/transformer.h"

#include "io/config.h"
#include "models/config_rules.h"

#define WHERE "transformer_config" /* in messages */

/* ---- Presets: the paper's table 3, and small ones ---- */

static const struct preset {
    const char *name;
    int64_t layers, width, heads, inner;
    double dropout;
} presets[] = {
    {"transformer-tiny", 4, 128, 4, 256, 0.3},
    {"transformer-mini", 3, 256, 8, 512, 0.1},
    {"transformer-base", 6, 512, 8, 2048, 0.1},
    {"transformer-big", 6, 1024, 16, 4096, 0.3},
};

enum { PRESETS = sizeof presets / sizeof presets[0] };

const char *wg_transformer_preset_name(int index) {
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

/* What all sizes share, and what a published file may leave out. The paper's vocabulary is one of
 * 37000 byte pairs; the tokens are fairseq's, whose decoders begin with the end token. */
static const wg_transformer_config base = {
    .vocab_size = 37000,
    .decoder_vocab_size = 37000,
    .share_encoder_decoder_embeddings = true,
    .activation_function = WG_ACTIVATION_RELU,
    .scale_embedding = true,
    .dropout = 0.1,
    .label_smoothing = 0.1,
    .max_position_embeddings = 1024,
    .pad_token_id = 1,
    .eos_token_id = 2,
    .decoder_start_token_id = 2,
};

int wg_transformer_config_preset(wg_transformer_config *config, const char *name) {
    const int index = wg__config_find_preset(WHERE, wg_transformer_preset_name, name);
    if (index < 0)
        return -1;
    const struct preset *preset = &presets[index];
    *config = base;
    config->d_model = preset->width;
    config->encoder_layers = config->decoder_layers = preset->layers;
    config->encoder_attention_heads = config->decoder_attention_heads = preset->heads;
    config->encoder_ffn_dim = config->decoder_ffn_dim = preset->inner;
    config->dropout = preset->dropout;
    return 0;
}

/* ---- Rules ---- */

static int check_sizes(const wg_transformer_config *config) {
    const wg__config_size width = {"d_model", config->d_model};
    const wg__config_size heads[] = {{"encoder_attention_heads", config->encoder_attention_heads},
                                     {"decoder_attention_heads", config->decoder_attention_heads}};
    const wg__config_size sizes[] = {
        {"vocab_size", config->vocab_size},
        {"decoder_vocab_size", config->decoder_vocab_size},
        {"encoder_layers", config->encoder_layers},
        {"decoder_layers", config->decoder_layers},
        {"encoder_ffn_dim", config->encoder_ffn_dim},
        {"decoder_ffn_dim", config->decoder_ffn_dim},
        {"max_position_embeddings", config->max_position_embeddings},
        width,
        heads[0],
        heads[1],
    };
    if (wg__config_check_sizes(WHERE, sizeof sizes / sizeof *sizes, sizes) < 0 ||
        wg__config_check_divides(WHERE, heads[0], width) < 0)
        return -1;
    return wg__config_check_divides(WHERE, heads[1], width);
}

/* The decoder cannot do without a token to begin with and one to end with. */
static int check_wanted_token(const char *key, int64_t token, int64_t vocab_size) {
    return token >= 0 && token < vocab_size
               ? 0
               : wg__config_refuse(WHERE, key, (double)token, "a token of the target's vocabulary");
}

static int check_vocabularies(const wg_transformer_config *config) {
    const int64_t targets = config->decoder_vocab_size;
    const int64_t smaller = targets < config->vocab_size ? targets : config->vocab_size;
    if (config->share_encoder_decoder_embeddings && targets != config->vocab_size)
        return wg__config_refuse(WHERE, "decoder_vocab_size", (double)targets,
                                 "vocab_size where share_encoder_decoder_embeddings is true");
    const wg__config_size padding = {"pad_token_id", config->pad_token_id};
    if (wg__config_check_token(WHERE, padding, smaller) < 0 ||
        check_wanted_token("eos_token_id", config->eos_token_id, targets) < 0)
        return -1;
    return check_wanted_token("decoder_start_token_id", config->decoder_start_token_id, targets);
}

int wg_transformer_config_validate(const wg_transformer_config *config) {
    if (check_sizes(config) < 0 || check_vocabularies(config) < 0 ||
        wg__config_check_dropout(WHERE, "dropout", config->dropout) < 0 ||
        wg__config_check_dropout(WHERE, "attention_dropout", config->attention_dropout) < 0 ||
        wg__config_check_dropout(WHERE, "activation_dropout", config->activation_dropout) < 0 ||
        wg__config_check_dropout(WHERE, "label_smoothing", config->label_smoothing) < 0)
        return -1;
    if (!wg_activation_name(config->activation_function))
        return wg__config_refuse(WHERE, "activation_function", config->activation_function,
                                 "one of wg_activation");
    return 0;
}

/* ---- JSON ---- */

/* Keys of published files that do not change what is computed here. */
static const char *const ignored[] = {
    "_name_or_path",
    "_num_labels",
    "architectures",
    "bad_words_ids",
    "bos_token_id",
    "classif_dropout",
    "classifier_dropout",
    "decoder_layerdrop",
    "encoder_layerdrop",
    "extra_pos_embeddings",
    "force_bos_token_to_be_generated",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "init_std",
    "is_encoder_decoder",
    "label2id",
    "max_length",
    "model_type",
    "num_beams",
    "num_hidden_layers",
    "tokenizer_class",
    "torch_dtype",
    "transformers_version",
    "use_cache",
};

/* Texts and flags with only one or a few values that this Transformer knows. */
static int read_choices(wg_config *json, wg_transformer_config *config) {
    const struct {
        const char *key;
        bool wanted;
    } flags[] = {
        {"static_position_embeddings", true},
        {"tie_word_embeddings", true},
        {"normalize_embedding", false},
        {"add_bias_logits", false},
        {"add_final_layer_norm", config->normalize_before},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bool value = flags[i].wanted;
        if (wg_config_boolean(json, flags[i].key, &value) < 0)
            return -1;
        if (value != flags[i].wanted)
            return wg_fail(WG_ERROR_FORMAT, WHERE, "%s is %s; wanted %s", flags[i].key,
                           value ? "true" : "false", flags[i].wanted ? "true" : "false");
    }
    const char *activation = wg_activation_name(config->activation_function);
    if (wg_config_text(json, "activation_function", &activation) < 0)
        return -1;
    return wg_activation_parse(activation, &config->activation_function);
}

static void read_sizes(wg_config *json, wg_transformer_config *config) {
    wg_config_integer(json, "vocab_size", &config->vocab_size);
    config->decoder_vocab_size = config->vocab_size;
    wg_config_integer(json, "decoder_vocab_size", &config->decoder_vocab_size);
    wg_config_boolean(json, "share_encoder_decoder_embeddings",
                      &config->share_encoder_decoder_embeddings);
    wg_config_integer(json, "d_model", &config->d_model);
    wg_config_integer(json, "encoder_layers", &config->encoder_layers);
    wg_config_integer(json, "decoder_layers", &config->decoder_layers);
    wg_config_integer(json, "encoder_attention_heads", &config->encoder_attention_heads);
    wg_config_integer(json, "decoder_attention_heads", &config->decoder_attention_heads);
    wg_config_integer(json, "encoder_ffn_dim", &config->encoder_ffn_dim);
    wg_config_integer(json, "decoder_ffn_dim", &config->decoder_ffn_dim);
    wg_config_integer(json, "max_position_embeddings", &config->max_position_embeddings);
}

static int read_all(wg_config *json, wg_transformer_config *config) {
    static const char *const required[] = {"vocab_size",      "d_model",
                                           "encoder_layers",  "decoder_layers",
                                           "encoder_ffn_dim", "encoder_attention_heads",
                                           "decoder_ffn_dim", "decoder_attention_heads"};
    if (wg_config_require(json, sizeof required / sizeof required[0], required) < 0)
        return -1;
    read_sizes(json, config);
    wg_config_boolean(json, "normalize_before", &config->normalize_before);
    wg_config_boolean(json, "scale_embedding", &config->scale_embedding);
    wg_config_number(json, "dropout", &config->dropout);
    wg_config_number(json, "attention_dropout", &config->attention_dropout);
    wg_config_number(json, "activation_dropout", &config->activation_dropout);
    wg_config_number(json, "label_smoothing", &config->label_smoothing);
    wg_config_integer(json, "pad_token_id", &config->pad_token_id);
    wg_config_integer(json, "eos_token_id", &config->eos_token_id);
    wg_config_integer(json, "decoder_start_token_id", &config->decoder_start_token_id);
    if (read_choices(json, config) < 0)
        return -1;
    return wg_config_check(json, sizeof ignored / sizeof ignored[0], ignored);
}

int wg_transformer_config_from_json(wg_transformer_config *config, const char *json) {
    wg_transformer_config read = base;
    wg_config *object = wg_config_parse(json, "config.json");
    int status = object ? read_all(object, &read) : -1;
    wg_config_free(object);
    if (status < 0 || wg_transformer_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_transformer_config_to_json(const wg_transformer_config *config) {
    wg_config *json = wg_config_new();
    wg_config_set_text(json, "model_type", "transformer");
    wg_config_set_integer(json, "vocab_size", config->vocab_size);
    wg_config_set_integer(json, "decoder_vocab_size", config->decoder_vocab_size);
    wg_config_set_boolean(json, "share_encoder_decoder_embeddings",
                          config->share_encoder_decoder_embeddings);
    wg_config_set_integer(json, "d_model", config->d_model);
    wg_config_set_integer(json, "encoder_layers", config->encoder_layers);
    wg_config_set_integer(json, "decoder_layers", config->decoder_layers);
    wg_config_set_integer(json, "encoder_attention_heads", config->encoder_attention_heads);
    wg_config_set_integer(json, "decoder_attention_heads", config->decoder_attention_heads);
    wg_config_set_integer(json, "encoder_ffn_dim", config->encoder_ffn_dim);
    wg_config_set_integer(json, "decoder_ffn_dim", config->decoder_ffn_dim);
    wg_config_set_text(json, "activation_function",
                       wg_activation_name(config->activation_function));
    wg_config_set_boolean(json, "normalize_before", config->normalize_before);
    wg_config_set_boolean(json, "scale_embedding", config->scale_embedding);
    wg_config_set_number(json, "dropout", config->dropout);
    wg_config_set_number(json, "attention_dropout", config->attention_dropout);
    wg_config_set_number(json, "activation_dropout", config->activation_dropout);
    wg_config_set_number(json, "label_smoothing", config->label_smoothing);
    wg_config_set_integer(json, "max_position_embeddings", config->max_position_embeddings);
    wg_config_set_integer(json, "pad_token_id", config->pad_token_id);
    wg_config_set_integer(json, "eos_token_id", config->eos_token_id);
    wg_config_set_integer(json, "decoder_start_token_id", config->decoder_start_token_id);
    char *text = wg_config_to_json(json);
    wg_config_free(json);
    return text;
}
