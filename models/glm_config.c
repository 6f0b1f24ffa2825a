/* The configuration of GLM: presets, rules, JSON. */
#include "models/glm.h"

#include "models/config_fields.h"
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

/* ---- Keys ---- */

#define AT(key) #key, offsetof(wg_glm_config, key)

static const wg__config_field fields[] = {
    {AT(vocab_size), WG__NEEDED_SIZE},
    {AT(hidden_size), WG__NEEDED_SIZE},
    {AT(num_layers), WG__NEEDED_SIZE},
    {AT(num_attention_heads), WG__NEEDED_SIZE},
    {AT(max_sequence_length), WG__SIZE},
    {AT(embedding_dropout_prob), WG__PROBABILITY},
    {AT(attention_dropout_prob), WG__PROBABILITY},
    {AT(output_dropout_prob), WG__PROBABILITY},
    {AT(layernorm_epsilon), WG__POSITIVE},
    {AT(initializer_range), WG__POSITIVE},
};

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
static int read_choices(wg_config *json, void *config) {
    (void)config;
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

static int write_choices(wg_config *json, const void *config) {
    (void)config;
    return wg_config_set_boolean(json, "block_position_encoding", true);
}

static const wg__config_form form = {
    .where = WHERE,
    .model_type = "glm",
    .field_count = sizeof fields / sizeof fields[0],
    .fields = fields,
    .ignored_count = sizeof ignored / sizeof ignored[0],
    .ignored = ignored,
    .read_rest = read_choices,
    .write_rest = write_choices,
};

int wg_glm_config_from_json(wg_glm_config *config, const char *json) {
    wg_glm_config read = base;
    if (wg__config_read(&form, json, &read) < 0 || wg_glm_config_validate(&read) < 0)
        return -1;
    *config = read;
    return 0;
}

char *wg_glm_config_to_json(const wg_glm_config *config) {
    return wg__config_write(&form, config);
}

/* ---- Rules ---- */

int wg_glm_config_validate(const wg_glm_config *config) {
    const wg__config_size width = {"hidden_size", config->hidden_size};
    const wg__config_size heads = {"num_attention_heads", config->num_attention_heads};
    if (wg__config_check_fields(&form, config, config->vocab_size) < 0)
        return -1;
    return wg__config_check_divides(WHERE, heads, width);
}
