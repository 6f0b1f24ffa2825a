/* The configuration of the Transformer: presets, rules, JSON. */
#include "models/transformer.h"

#include "models/config_fields.h"
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

/* ---- Keys ---- */

#define AT(key) #key, offsetof(wg_transformer_config, key)

static const wg__config_field fields[] = {
    {AT(vocab_size), WG__NEEDED_SIZE},
    {AT(decoder_vocab_size), WG__SIZE},
    {AT(share_encoder_decoder_embeddings), WG__FLAG},
    {AT(d_model), WG__NEEDED_SIZE},
    {AT(encoder_layers), WG__NEEDED_SIZE},
    {AT(decoder_layers), WG__NEEDED_SIZE},
    {AT(encoder_attention_heads), WG__NEEDED_SIZE},
    {AT(decoder_attention_heads), WG__NEEDED_SIZE},
    {AT(encoder_ffn_dim), WG__NEEDED_SIZE},
    {AT(decoder_ffn_dim), WG__NEEDED_SIZE},
    {AT(activation_function), WG__ACTIVATION},
    {AT(normalize_before), WG__FLAG},
    {AT(scale_embedding), WG__FLAG},
    {AT(dropout), WG__PROBABILITY},
    {AT(attention_dropout), WG__PROBABILITY},
    {AT(activation_dropout), WG__PROBABILITY},
    {AT(label_smoothing), WG__PROBABILITY},
    {AT(max_position_embeddings), WG__SIZE},
    {AT(pad_token_id), WG__INTEGER},
    {AT(eos_token_id), WG__INTEGER},
    {AT(decoder_start_token_id), WG__INTEGER},
};

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

/* Flags with only one value that this Transformer knows, and a size that follows from another. */
static int read_choices(wg_config *json, void *read) {
    wg_transformer_config *config = read;
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
    if (!wg_config_has(json, "decoder_vocab_size"))
        config->decoder_vocab_size = config->vocab_size;
    return 0;
}

static const wg__config_form form = {
    .where = WHERE,
    .model_type = "transformer",
    .field_count = sizeof fields / sizeof fields[0],
    .fields = fields,
    .ignored_count = sizeof ignored / sizeof ignored[0],
    .ignored = ignored,
    .read_rest = read_choices,
};

int wg_transformer_config_from_json(wg_transformer_config *config, const char *json) {
    wg_transformer_config read = base;
    if (wg__config_read(&form, json, &read) < 0 || wg_transformer_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_transformer_config_to_json(const wg_transformer_config *config) {
    return wg__config_write(&form, config);
}

/* ---- Rules ---- */

/* The decoder cannot do without a token to begin with and one to end with. */
static int check_wanted_token(const char *key, int64_t token, int64_t vocab_size) {
    return token >= 0 && token < vocab_size
               ? 0
               : wg__config_refuse(WHERE, key, (double)token, "a token of the target's vocabulary");
}

static int check_vocabularies(const wg_transformer_config *config) {
    const int64_t targets = config->decoder_vocab_size;
    if (config->share_encoder_decoder_embeddings && targets != config->vocab_size)
        return wg__config_refuse(WHERE, "decoder_vocab_size", (double)targets,
                                 "vocab_size where share_encoder_decoder_embeddings is true");
    if (wg__config_check_maybe_token(WHERE, "pad_token_id", config->pad_token_id,
                                     targets < config->vocab_size ? targets : config->vocab_size) <
            0 ||
        check_wanted_token("eos_token_id", config->eos_token_id, targets) < 0)
        return -1;
    return check_wanted_token("decoder_start_token_id", config->decoder_start_token_id, targets);
}

int wg_transformer_config_validate(const wg_transformer_config *config) {
    const wg__config_size width = {"d_model", config->d_model};
    const wg__config_size heads[] = {{"encoder_attention_heads", config->encoder_attention_heads},
                                     {"decoder_attention_heads", config->decoder_attention_heads}};
    if (wg__config_check_fields(&form, config, config->vocab_size) < 0 ||
        wg__config_check_divides(WHERE, heads[0], width) < 0 ||
        wg__config_check_divides(WHERE, heads[1], width) < 0)
        return -1;
    return check_vocabularies(config);
}
