/* The configuration of GLM: presets, rules, JSON. */
#include "models/glm.h"

#include "io/config.h"
#include "models/config_rules.h"

#define WHERE "glm_config" /* in messages */

/* ---- Presets: the published base and large, and two small ones ---- */

static const struct preset {
    const char *name;
    int64_t layers, width, heads;
} presets[] = {
    {"glm-tiny", 2, 128, 2},
    {"glm-small", 6, 384, 6},
    {"glm-base", 12, 768, 12},
    {"glm-large", 24, 1024, 16},
};

enum { PRESETS = sizeof presets / sizeof presets[0] };

const char *wg_glm_preset_name(int index) {
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

/* What all sizes share, and what a published file may leave out. The vocabulary is that of
 * bert-base-uncased with the tokens of GLM, filled up to a multiple of 128. */
static const wg_glm_config base = {
    .vocab_size = 30592,
    .hidden_size = 768,
    .num_layers = 12,
    .num_attention_heads = 12,
    .max_sequence_length = 512,
    .embedding_dropout_prob = 0.1,
    .attention_dropout_prob = 0.1,
    .output_dropout_prob = 0.1,
    .layernorm_epsilon = 1e-5,
    .initializer_range = 0.02,
};

int wg_glm_config_preset(wg_glm_config *config, const char *name) {
    const int index = wg__config_find_preset(WHERE, wg_glm_preset_name, name);
    if (index < 0)
        return -1;
    *config = base;
    config->num_layers = presets[index].layers;
    config->hidden_size = presets[index].width;
    config->num_attention_heads = presets[index].heads;
    return 0;
}

/* ---- Rules ---- */

static int check_sizes(const wg_glm_config *config) {
    const wg__config_size width = {"hidden_size", config->hidden_size};
    const wg__config_size heads = {"num_attention_heads", config->num_attention_heads};
    const wg__config_size sizes[] = {
        {"vocab_size", config->vocab_size},
        {"num_layers", config->num_layers},
        {"max_sequence_length", config->max_sequence_length},
        width,
        heads,
    };
    if (wg__config_check_sizes(WHERE, sizeof sizes / sizeof *sizes, sizes) < 0)
        return -1;
    return wg__config_check_divides(WHERE, heads, width);
}

int wg_glm_config_validate(const wg_glm_config *config) {
    if (check_sizes(config) < 0 ||
        wg__config_check_dropout(WHERE, "embedding_dropout_prob", config->embedding_dropout_prob) <
            0 ||
        wg__config_check_dropout(WHERE, "attention_dropout_prob", config->attention_dropout_prob) <
            0 ||
        wg__config_check_dropout(WHERE, "output_dropout_prob", config->output_dropout_prob) < 0 ||
        wg__config_check_positive(WHERE, "layernorm_epsilon", config->layernorm_epsilon) < 0)
        return -1;
    return wg__config_check_positive(WHERE, "initializer_range", config->initializer_range);
}

/* ---- JSON ---- */

/* Keys of published files that do not change what is computed here; attention_scale guards the
 * scores against overflow in half precision, and cancels. */
static const char *const ignored[] = {
    "_name_or_path",
    "architectures",
    "attention_scale",
    "auto_map",
    "checkpoint_activations",
    "checkpoint_num_layers",
    "cloze", /* of fine-tuning: glm_cloze.h */
    "max_memory_length",
    "model_type",
    "output_predict",
    "parallel_output",
    "pool_token",
    "spell_func",
    "torch_dtype",
    "transformers_version",
    "use_cache",
};

/* Flags and sizes with only one value that this GLM knows. */
static int read_choices(wg_config *json) {
    bool relative = false, blocks = true;
    int64_t spell = 0;
    wg_config_integer(json, "spell_length", &spell);
    wg_config_boolean(json, "relative_encoding", &relative);
    if (wg_config_boolean(json, "block_position_encoding", &blocks) < 0)
        return -1;
    if (relative || !blocks)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s; only the two-dimensional positions of the paper are known",
                       relative ? "relative_encoding is true" : "block_position_encoding is false");
    if (spell)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "spell_length is %lld; prompts that are trained are not known",
                       (long long)spell);
    return 0;
}

static int read_all(wg_config *json, wg_glm_config *config) {
    static const char *const required[] = {"vocab_size", "hidden_size", "num_layers",
                                           "num_attention_heads"};
    if (wg_config_require(json, 4, required) < 0)
        return -1;
    wg_config_integer(json, "vocab_size", &config->vocab_size);
    wg_config_integer(json, "hidden_size", &config->hidden_size);
    wg_config_integer(json, "num_layers", &config->num_layers);
    wg_config_integer(json, "num_attention_heads", &config->num_attention_heads);
    wg_config_integer(json, "max_sequence_length", &config->max_sequence_length);
    wg_config_number(json, "embedding_dropout_prob", &config->embedding_dropout_prob);
    wg_config_number(json, "attention_dropout_prob", &config->attention_dropout_prob);
    wg_config_number(json, "output_dropout_prob", &config->output_dropout_prob);
    wg_config_number(json, "layernorm_epsilon", &config->layernorm_epsilon);
    wg_config_number(json, "initializer_range", &config->initializer_range);
    if (read_choices(json) < 0)
        return -1;
    return wg_config_check(json, sizeof ignored / sizeof ignored[0], ignored);
}

int wg_glm_config_from_json(wg_glm_config *config, const char *json) {
    wg_glm_config read = base;
    wg_config *object = wg_config_parse(json, "config.json");
    int status = object ? read_all(object, &read) : -1;
    wg_config_free(object);
    if (status < 0 || wg_glm_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_glm_config_to_json(const wg_glm_config *config) {
    wg_config *json = wg_config_new();
    wg_config_set_text(json, "model_type", "glm");
    wg_config_set_integer(json, "vocab_size", config->vocab_size);
    wg_config_set_integer(json, "hidden_size", config->hidden_size);
    wg_config_set_integer(json, "num_layers", config->num_layers);
    wg_config_set_integer(json, "num_attention_heads", config->num_attention_heads);
    wg_config_set_integer(json, "max_sequence_length", config->max_sequence_length);
    wg_config_set_boolean(json, "block_position_encoding", true);
    wg_config_set_number(json, "embedding_dropout_prob", config->embedding_dropout_prob);
    wg_config_set_number(json, "attention_dropout_prob", config->attention_dropout_prob);
    wg_config_set_number(json, "output_dropout_prob", config->output_dropout_prob);
    wg_config_set_number(json, "layernorm_epsilon", config->layernorm_epsilon);
    wg_config_set_number(json, "initializer_range", config->initializer_range);
    char *text = wg_config_to_json(json);
    wg_config_free(json);
    return text;
}
