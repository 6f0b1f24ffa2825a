/* The table of model types, and the functions that serve all types: see model.h. */
#include "models/model.h"

#include <string.h>

#include "base/array.h"
#include "io/internal.h"
#include "io/weights/adapter.h"
#include "models/internal.h"
#include "tensor/easy.h"

#define WHERE "model"

/* ---- The table ---- */

static const wg_model_type *const types[] = {&wg_bert_type,  &wg_glm_type,        &wg_gpt_type,
                                             &wg_llama_type, &wg_modernbert_type, &wg_roberta_type,
                                             &wg_t5_type,    &wg_transformer_type};

enum { TYPES = sizeof types / sizeof types[0] };

const wg_model_type *wg_model_type_at(int index) {
    return index >= 0 && index < TYPES ? types[index] : NULL;
}

bool wg__model_type_reads(const wg_model_type *type, const char *model_type) {
    bool found = strcmp(model_type, type->model_type) == 0;
    for (int i = 0; type->aliases[i] && !found; i++)
        found = strcmp(model_type, type->aliases[i]) == 0;
    return found;
}

static const char *type_name(const void *context, int index) {
    (void)context;
    return index < TYPES ? types[index]->name : NULL;
}

const wg_model_type *wg_model_type_find(const char *name) {
    char names[128] = "", suggestion[96];
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(name, types[i]->name) == 0 || wg__model_type_reads(types[i], name))
            return types[i];
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 types[i]->name);
    }
    return wg__fail_null(WG_ERROR_NOT_FOUND, WHERE, "there is no model \"%.64s\"; there are %s%s",
                         name, names,
                         wg__suggestion(suggestion, sizeof suggestion, name, type_name, NULL));
}

const wg_model_type *wg__model_type_of_config(const char *path, const char *json) {
    wg_config *config = wg__config_parse(json, path);
    const char *name = NULL;
    const wg_model_type *type = NULL;
    if (config && wg__config_require(config, 1, (const char *const[]){"model_type"}) == 0 &&
        wg__config_text(config, "model_type", &name) == 0) {
        for (int i = 0; i < TYPES && !type; i++)
            type = wg__model_type_reads(types[i], name) ? types[i] : NULL;
        if (!type)
            wg_fail(WG_ERROR_STATE, path, "it holds a model of type \"%.64s\", which is not known",
                    name);
    }
    wg__config_free(config);
    return type;
}

const wg_model_type *wg_model_type_of(const char *path) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    char *json = file ? wg_checkpoint_get_text(file, "/config") : NULL;
    const wg_model_type *type = json ? wg__model_type_of_config(path, json) : NULL;
    wg_text_free(json);
    wg_checkpoint_close(file);
    return type;
}

/* ---- Rows of configurations ---- */

const char *wg__activation_choice(int value) {
    return wg_activation_name((wg_activation)value);
}

const char *const wg__activation_aliases[] = {"gelu_pytorch_tanh", "gelu_new", "swish", "silu",
                                              NULL};
const char *const wg__gate_aliases[] = {"swish", "silu", NULL};

int wg__check_divides(const char *where, const char *parts_key, int64_t parts,
                      const char *whole_key, int64_t whole) {
    if (whole % parts == 0)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s %lld does not divide %s %lld into equal parts",
                   parts_key, (long long)parts, whole_key, (long long)whole);
}

/* ---- Configurations ---- */

static const char *preset_name(const void *presets, int index) {
    return ((const wg_model_preset *)presets)[index].name;
}

const wg_model_preset *wg__model_preset_find(const wg_model_type *type, const char *name) {
    char names[256] = "", suggestion[96];
    for (const wg_model_preset *preset = type->presets; preset->name; preset++) {
        if (!name || strcmp(name, preset->name) == 0)
            return preset;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? ", " : "",
                 preset->name);
    }
    return wg__fail_null(
        WG_ERROR_ARGUMENT, type->settings.where, "there is no preset \"%.64s\"; there are %s%s",
        name, names,
        wg__suggestion(suggestion, sizeof suggestion, name, preset_name, type->presets));
}

const char *wg__model_preset_name(int index) {
    for (int i = 0; i < TYPES; i++)
        for (const wg_model_preset *preset = types[i]->presets; preset->name; preset++)
            if (index-- == 0)
                return preset->name;
    return NULL;
}

int wg_model_preset_config(const wg_model_type *type, const char *name, void *config) {
    const wg_model_preset *preset = wg__model_preset_find(type, name);
    if (preset)
        memcpy(config, preset->config, type->settings.size);
    return preset ? 0 : -1;
}

bool wg__model_may_lack(const wg_model_type *type, const char *name) {
    char pooler[64];
    snprintf(pooler, sizeof pooler, "%s.pooler.", type->encoder.name ? type->encoder.name : "");
    if (type->shape == WG_ENCODER &&
        (wg__starts_with(name, pooler) || wg__starts_with(name, "classifier.") ||
         wg__starts_with(name, "qa_outputs.")))
        return true;
    for (int i = 0; type->names.optional[i]; i++)
        if (wg__starts_with(name, type->names.optional[i]))
            return true;
    return false;
}

/* Refuses a key with another value than `known`: the weights would be another kind of model's. */
static int check_kind_key(wg_config *json, const char *key, bool known) {
    const json_t *found = wg__config_value(json, key);
    return !found || (json_is_boolean(found) && json_is_true(found) == known)
               ? 0
               : wg__config_refuse_value(json, key, found, known ? "true" : "false");
}

static void add_names(const char **list, int most, int *count, const char *const *names) {
    for (; names && *names && *count < most; names++)
        list[(*count)++] = *names;
}

/* Reads a configuration. Refuses keys that were not read, except known keys that do not change the
 * computation: `dtype` (torch_dtype before transformers 4.56) is ignored, since each tensor has its
 * dtype. */
static int read_config(const wg_model_type *type, wg_config *json, void *config) {
    if (wg__settings_standard(&type->settings, config) < 0 ||
        wg__settings_read(&type->settings, json, config) < 0 ||
        (type->read_more && type->read_more(json, config) < 0))
        return -1;
    /* A published encoder may be used as a decoder, with a causal mask or with attention to another
     * encoder; its weights have the same names. */
    if (check_kind_key(json, "is_encoder_decoder", type->shape == WG_ENCODER_DECODER) < 0 ||
        check_kind_key(json, "tie_encoder_decoder", false) < 0 ||
        check_kind_key(json, "add_cross_attention", false) < 0 ||
        (type->shape != WG_DECODER && check_kind_key(json, "is_decoder", false) < 0))
        return -1;
    enum { MOST = 64 };
    const char *ignored[MOST];
    int count = 0;
    add_names(ignored, MOST, &count,
              WG__KEYS("_attn_implementation_autoset", "_name_or_path", "architectures",
                       "chunk_size_feed_forward", "dtype", "model_type", "output_attentions",
                       "output_hidden_states", "return_dict", "tokenizer_class", "torch_dtype",
                       "torchscript", "transformers_version", "use_cache"));
    if (type->shape == WG_ENCODER) /* see models/heads.h */
        add_names(
            ignored, MOST, &count,
            WG__KEYS("classifier_dropout", "id2label", "label2id", "num_labels", "problem_type"));
    if (type->shape == WG_DECODER)
        add_names(ignored, MOST, &count, WG__KEYS("is_decoder"));
    add_names(ignored, MOST, &count, type->ignored);
    return wg__config_check(json, count, ignored);
}

int wg_model_config_from_json(const wg_model_type *type, const char *json, void *config) {
    wg_config *object = wg__config_parse(json, "config.json");
    void *read = object ? wg__alloc(type->settings.size) : NULL;
    int status = -1;
    if (read && wg__settings_require(&type->settings, object) == 0 &&
        read_config(type, object, read) == 0)
        status = wg__model_config_check(type, read);
    if (status == 0)
        memcpy(config, read, type->settings.size);
    wg__free(read);
    wg__config_free(object);
    return status;
}

char *wg_model_config_to_json(const wg_model_type *type, const void *config) {
    wg_config *json = wg__config_new();
    char *text = NULL;
    if (json && wg__config_set_text(json, "model_type", type->model_type) == 0 &&
        wg__settings_write(&type->settings, config, json) == 0 &&
        (!type->write_more || type->write_more(json, config) == 0))
        text = wg__config_to_json(json);
    wg__config_free(json);
    return text;
}

/* ---- Roles of rows ---- */

/* The member of a row with a role: an int64_t. */
static int64_t *member(const wg_setting *row, const void *config) {
    return (int64_t *)((uintptr_t)config + row->offset);
}

static const wg_setting *row_of(const wg_model_type *type, int role) {
    for (int i = 0; i < type->settings.count; i++)
        if (type->settings.rows[i].role == role)
            return &type->settings.rows[i];
    return NULL;
}

/* The row of position 0 in the position table. */
static int64_t positions_before(const wg_model_type *type, const void *config) {
    return row_of(type, WG__POSITIONS_BEHIND_PAD) ? *member(row_of(type, WG__PAD), config) + 1 : 0;
}

wg_model_sizes wg__model_config_sizes(const wg_model_type *type, const void *config) {
    wg_model_sizes sizes = {.positions = INT64_MAX, .start_id = -1, .end_id = -1, .pad_id = -1};
    int64_t *const places[WG__ROLES] = {[WG__VOCABULARY] = &sizes.vocabulary,
                                        [WG__OWN_VOCABULARY] = &sizes.vocabulary,
                                        [WG__SOURCE_VOCABULARY] = &sizes.source_vocabulary,
                                        [WG__BEGIN] = &sizes.start_id,
                                        [WG__END] = &sizes.end_id,
                                        [WG__PAD] = &sizes.pad_id,
                                        [WG__POSITIONS] = &sizes.positions,
                                        [WG__POSITIONS_OF_RUN] = &sizes.positions,
                                        [WG__POSITIONS_RAISED] = &sizes.positions,
                                        [WG__POSITIONS_BEHIND_PAD] = &sizes.positions,
                                        [WG__WIDTH] = &sizes.width,
                                        [WG__LAYERS] = &sizes.layers,
                                        [WG__ENCODER_LAYERS] = &sizes.encoder_layers};
    for (const wg_setting *row = type->settings.rows;
         row < type->settings.rows + type->settings.count; row++)
        if (places[row->role])
            *places[row->role] = *member(row, config);
    sizes.positions -= positions_before(type, config);
    sizes.cache_width = 2 * sizes.width;
    if (type->sizes)
        type->sizes(config, &sizes);
    return sizes;
}

/* type->sizes divides by settings, so these are checked before it is called: at first with any
 * token id, then with the vocabulary. */
int wg__model_config_check(const wg_model_type *type, const void *config) {
    if (wg__settings_check(&type->settings, config, INT64_MAX) < 0 ||
        wg__settings_check(&type->settings, config,
                           wg__model_config_sizes(type, config).vocabulary) < 0)
        return -1;
    const wg_setting *width = row_of(type, WG__WIDTH);
    for (int i = 0; i < type->settings.count; i++) {
        const wg_setting *row = &type->settings.rows[i];
        if (row->role == WG__HEADS &&
            wg__check_divides(type->settings.where, row->name, *member(row, config), width->name,
                              *member(width, config)) < 0)
            return -1;
    }
    return type->check ? type->check(config) : 0;
}

void wg_model_config_resize(const wg_model_type *type, void *config, int64_t vocabulary,
                            int64_t positions) {
    for (const wg_setting *row = type->settings.rows;
         row < type->settings.rows + type->settings.count; row++) {
        int64_t *value = member(row, config);
        if (row->role >= WG__VOCABULARY && row->role <= WG__SOURCE_VOCABULARY && vocabulary)
            *value = vocabulary;
        else if (row->role >= WG__POSITIONS && row->role <= WG__POSITIONS_BEHIND_PAD && positions)
            *value = positions + positions_before(type, config);
        else if (row->kind == WG_SETTING_TOKEN && row->low == -1 && vocabulary &&
                 *value >= vocabulary)
            *value = -1;
    }
}

/* ---- Configurations of new models ---- */

int wg__model_config_open(const wg_model_type *type, wg_config *file, void *config) {
    const char *found = NULL;
    if (!file || wg__config_text(file, "model_type", &found) < 0)
        return -1;
    if (found && !wg__model_type_reads(type, found) &&
        !(type->published && strcmp(found, type->published) == 0))
        return wg_fail(WG_ERROR_ARGUMENT, type->settings.where,
                       "its model_type is \"%.64s\"; %s is \"%s\"", found, type->name,
                       type->model_type);
    enum { MOST = 32 };
    const char *needed[MOST];
    int count = 0;
    bool has_gaps = false; /* then wg_model_config_fit fills them in, and checks the whole */
    for (int i = 0; i < type->settings.count; i++) {
        const wg_setting *row = &type->settings.rows[i];
        if (row->derived)
            continue;
        if (row->role == WG__VOCABULARY ||
            (row->role >= WG__SOURCE_VOCABULARY && row->role <= WG__SEPARATOR))
            has_gaps |= !wg__config_has(file, row->name);
        else if (!row->standard && count < MOST)
            needed[count++] = row->name;
    }
    if (wg__config_require(file, count, needed) < 0 || read_config(type, file, config) < 0)
        return -1;
    return has_gaps ? 0 : wg__model_config_check(type, config);
}

void wg__fit(const wg_model_fit *fit, const char *key, int64_t *value, int64_t fitted) {
    if (!fit->file || !wg__config_has(fit->file, key))
        *value = fitted;
}

static void fit_rows(const wg_model_type *type, void *config, wg_model_fit *fit) {
    static const wg_special_token tokens[] = {[WG__BEGIN] = WG_TOKEN_BEGIN,
                                              [WG__END] = WG_TOKEN_END,
                                              [WG__PAD] = WG_TOKEN_PAD,
                                              [WG__CLASS] = WG_TOKEN_CLASS,
                                              [WG__SEPARATOR] = WG_TOKEN_SEPARATOR};
    const int64_t vocabulary = wg__model_config_sizes(type, config).vocabulary,
                  before = positions_before(type, config);
    fit->learnt = fit->file ? vocabulary : 0;
    for (int i = 0; fit->tokenizer && i < type->settings.count; i++) {
        const wg_setting *row = &type->settings.rows[i];
        int64_t *value = member(row, config);
        if (row->role == WG__VOCABULARY || row->role == WG__OWN_VOCABULARY)
            wg__fit(fit, row->name, value, wg_tokenizer_size(fit->tokenizer));
        else if (row->role >= WG__BEGIN && row->role <= WG__SEPARATOR)
            wg__fit(fit, row->name, value, wg_tokenizer_special(fit->tokenizer, tokens[row->role]));
        else if (!fit->file && ((row->role == WG__POSITIONS_OF_RUN && fit->sequence > 0) ||
                                (row->role == WG__POSITIONS_RAISED && fit->sequence > *value)))
            *value = fit->sequence;
    }
    const wg_setting *table = row_of(type, WG__POSITIONS_BEHIND_PAD);
    if (table && !fit->file)
        *member(table, config) += positions_before(type, config) - before;
}

int wg_model_config_fit(const wg_model_type *type, void *config, wg_model_fit *fit) {
    if (!type->fit)
        fit_rows(type, config, fit);
    else if (type->fit(config, fit) < 0)
        return -1;
    return fit->tokenizer ? wg__model_config_check(type, config) : 0;
}

/* ---- Models ---- */

int wg_model_from_config(const wg_model_type *type, const void *config, uint64_t seed,
                         wg_model *model) {
    const bool fits = wg__model_check_memory(type, config) == 0;
    wg_module *module = fits ? type->create(config, seed) : NULL;
    *model = module ? (wg_model){.type = type, .module = module} : (wg_model){0};
    return module ? 0 : -1;
}

int wg_model_new(const wg_model_type *type, const char *preset, uint64_t seed, wg_model *model) {
    *model = (wg_model){0};
    const wg_model_preset *found = wg__model_preset_find(type, preset);
    return found ? wg_model_from_config(type, found->config, seed, model) : -1;
}

void wg_model_free(wg_model *model) {
    wg_module_free(model->module);
    *model = (wg_model){0};
}

char *wg_model_config_json(const wg_model *model) {
    const wg_model_type *type = model->type;
    return wg_model_config_to_json(type,
                                   model->config ? model->config : type->config(model->module));
}

wg_model_sizes wg_model_sizes_of(const wg_model *model) {
    const wg_model_type *type = model->type;
    return wg__model_config_sizes(type,
                                  model->config ? model->config : type->config(model->module));
}

double wg__tensor_bytes(const wg_tensor *x) {
    return x ? (double)wg_tensor_count(x) * (double)wg_dtype_size(wg_tensor_dtype(x)) : 0;
}

double wg__state_bytes(const wg_module *module) {
    double bytes = 0;
    wg_state_dict *state = wg_module_state((wg_module *)(uintptr_t)module);
    for (int64_t i = 0; state && i < state->count; i++)
        if (!state->entries[i].slot->tied)
            bytes += wg__tensor_bytes(state->entries[i].slot->tensor);
    wg_state_dict_free(state);
    return bytes;
}

/* ---- LoRA ---- */

enum { MOST_NAMES = 12 };

int64_t wg_model_attach_lora(const wg_model *model, const wg_lora_options *options) {
    const wg_model_names *names = &model->type->names;
    const char *whole[MOST_NAMES], *spared[MOST_NAMES];
    wg_lora_options all = *options;
    int spared_count = 0, whole_count = 0;
    if (all.target_count == 0) {
        all.targets = names->adapted;
        while (names->adapted[all.target_count])
            all.target_count++;
    }
    if (all.spared_count == 0) {
        add_names(spared, MOST_NAMES, &spared_count, names->heads);
        add_names(spared, MOST_NAMES, &spared_count, WG__KEYS("lm_head"));
        all.spared = spared;
        all.spared_count = spared_count;
    }
    if (all.whole_count == 0 && model->config) {
        const wg__headed_encoder *headed = (const wg__headed_encoder *)model->module;
        whole[whole_count++] = headed->head->module.name;
        for (int i = 0; i < headed->fresh_count; i++)
            whole[whole_count++] = headed->fresh[i];
        all.whole = whole;
        all.whole_count = whole_count;
    }
    return wg_lora_attach(model->module, &all);
}

/* ---- From checkpoints ---- */

int wg__model_read_weights(wg_checkpoint *file, wg_module *module) {
    if (!wg_checkpoint_has(file, "/lora"))
        return wg_error_pending() ? -1 : wg_checkpoint_get_module(file, "/model", module);
    char *config = wg_checkpoint_get_text(file, "/lora");
    const int status = config && wg__lora_attach_config(module, config, "/lora") >= 0
                           ? wg_checkpoint_get_module(file, "/model", module)
                           : -1;
    wg_text_free(config);
    return status == 0 && wg_lora_merge(module) >= 0 ? 0 : -1;
}

wg_module *wg__model_load(const char *path, wg_module *(*make)(const char *config, void *context),
                          void *context, wg_tokenizer **tokenizer) {
    if (tokenizer)
        *tokenizer = NULL;
    wg_checkpoint *file = wg_checkpoint_open(path);
    if (!file)
        return NULL;
    char *config = wg_checkpoint_get_text(file, "/config"), *json = NULL;
    wg_module *module = config ? make(config, context) : NULL;
    int status = module ? wg__model_read_weights(file, module) : -1;
    if (status == 0 && tokenizer) {
        json = wg_checkpoint_get_text(file, "/tokenizer");
        *tokenizer = json ? wg_tokenizer_from_json(json) : NULL;
        status = *tokenizer ? 0 : -1;
    }
    wg_text_free(json);
    wg_text_free(config);
    wg_checkpoint_close(file);
    if (status < 0)
        wg_module_free(module);
    return status < 0 ? NULL : module;
}

static int make_model(const char *where, const char *json, uint64_t seed, wg_model *model) {
    *model = (wg_model){0};
    const wg_model_type *type = wg__model_type_of_config(where, json);
    void *config = type ? wg__alloc(type->settings.size) : NULL;
    int status = config ? wg_model_config_from_json(type, json, config) : -1;
    if (status == 0)
        status = wg_model_from_config(type, config, seed, model);
    wg__free(config);
    return status;
}

int wg_model_from_json(const char *json, uint64_t seed, wg_model *model) {
    return make_model("config.json", json, seed, model);
}

typedef struct loading {
    const char *path;
    wg_model *model;
} loading;

static wg_module *make_saved(const char *json, void *context) {
    const loading *l = context;
    return make_model(l->path, json, 0, l->model) < 0 ? NULL : l->model->module;
}

int wg_model_load(const char *path, wg_model *model, wg_tokenizer **tokenizer) {
    loading l = {path, model};
    *model = (wg_model){0};
    if (wg__model_load(path, make_saved, &l, tokenizer))
        return 0;
    *model = (wg_model){0};
    return -1;
}

/* ---- Construction ---- */

void *wg__model_root(const wg_model_type *type, const void *config, size_t size, uint64_t seed) {
    if (wg__model_config_check(type, config) < 0)
        return NULL;
    wg_module *module = wg_module_new(NULL, "", size);
    if (!module)
        return NULL;
    module->generator = (wg_generator){.seed = seed};
    memcpy(module + 1, config, type->settings.size);
    return module;
}

const void *wg__root_config(const wg_module *root) {
    return root + 1;
}

wg_module *wg__encoder_of(wg_module *model) {
    return model->first_child;
}

const void *wg__encoder_config(const wg_module *model) {
    return wg__root_config(model->first_child);
}

int wg__keep_rotary(int64_t width, int64_t positions, const wg_rotary_options *options,
                    wg_tensor **cos, wg_tensor **sin) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const int status = wg__rotary_tables(width, 0, positions, options, cos, sin);
    *cos = wg_keep(*cos);
    *sin = wg_keep(*sin);
    wg_scope_end(&scope, NULL);
    return status;
}

/* ---- Forward ---- */

wg_tensor *wg__rotary_rows(wg_tensor *table, const wg_model_inputs *inputs, int64_t first,
                           wg_dtype dtype) {
    const wg_tensor *x = inputs->embeddings ? inputs->embeddings : inputs->ids;
    wg_tensor *rows = inputs->position_ids
                          ? wg_unsqueeze(wg_embedding_op(table, inputs->position_ids, -1), 1)
                          : wg_slice(table, 0, first, first + wg_tensor_size(x, 1), 1);
    return wg_cast(rows, dtype);
}

wg_tensor *wg__position_ids(const wg_model_inputs *inputs, int64_t first) {
    const double end = (double)(first + wg_tensor_size(inputs->ids, 1));
    return inputs->position_ids ? inputs->position_ids : wg_arange(WG_I64, (double)first, end, 1);
}

wg_embedding *wg__bigrams_new(wg_module *parent, const char *name, int64_t rows, int64_t width) {
    const wg_embedding_options zeros = {.init = {.kind = WG_INIT_ZEROS}};
    return rows > 0 ? wg_embedding_new(parent, name, rows, width, &zeros) : NULL;
}

wg_tensor *wg__add_bigrams(wg_embedding *table, wg_tensor *words, const wg_model_inputs *inputs) {
    if (!table)
        return words;
    if (!inputs->ids)
        return wg__fail_null(
            WG_ERROR_ARGUMENT, "bigrams",
            "a model with bigrams reads ids; embeddings do not tell which tokens they are of");
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *rows = wg__bigram_rows(inputs->ids, inputs->previous_ids, inputs->keep,
                                      wg_tensor_size(table->weight, 0));
    return wg_scope_end(&scope, wg_add(words, wg_embedding_forward(table, rows)));
}

int64_t wg__first_position(const char *where, const wg_model_inputs *inputs, int64_t longest) {
    const wg_tensor *ids = inputs->embeddings ? inputs->embeddings : inputs->ids;
    const int rank = inputs->embeddings ? 3 : 2;
    if (!ids)
        return -1;
    if (wg_tensor_ndim(ids) != rank)
        return wg_fail(WG_ERROR_SHAPE, where, "%s have rank %d; wanted %s",
                       rank == 3 ? "embeddings" : "ids", wg_tensor_ndim(ids),
                       rank == 3 ? "(B, T, C)" : "(B, T)");
    const int64_t first = inputs->caches ? inputs->caches[0].length : 0;
    const int64_t last = first + wg_tensor_size(ids, 1);
    if (!inputs->position_ids && last > longest)
        return wg_fail(WG_ERROR_SHAPE, where,
                       "%lld positions are more than the model's %lld; cut the text or use a model "
                       "with more",
                       (long long)last, (long long)longest);
    return first;
}

int wg__check_memory_states(const char *where, const wg_model_inputs *inputs) {
    if (inputs->memory)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where,
                   "there is no memory; wanted the states that wg_model_encode gives");
}

wg_tensor *wg_model_shift_right(const wg_model *model, wg_tensor *labels) {
    if (!labels)
        return NULL;
    if (wg_tensor_ndim(labels) != 2)
        return wg__fail_null(WG_ERROR_SHAPE, WHERE, "labels have rank %d; wanted (B, T)",
                             wg_tensor_ndim(labels));
    const wg_model_sizes sizes = wg_model_sizes_of(model);
    const wg_dtype dtype = wg_tensor_dtype(labels);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *ignored = wg_eq(labels, wg_scalar(dtype, WG_IGNORE_INDEX));
    wg_tensor *read = wg_slice(wg_masked_fill(labels, ignored, (double)sizes.pad_id), 1, 0, -1, 1);
    wg_tensor *begin =
        wg_full(dtype, WG_DIMS(wg_tensor_size(labels, 0), 1), (double)sizes.start_id);
    return wg_scope_end(&scope, wg_cat(2, (wg_tensor *[]){begin, read}, 1));
}

wg_tensor *wg_model_encode(const wg_model *model, wg_tensor *ids, wg_tensor *keep) {
    if (!model->type->encode)
        return wg__fail_null(WG_ERROR_STATE, WHERE, "%s has no encoder apart from its decoder",
                             model->type->name);
    return model->type->encode(model->module, ids, keep);
}

/* The hidden states (N, C) at positions; NULL: all of them, as they are. */
static wg_tensor *at_positions(wg_tensor *hidden, wg_tensor *positions) {
    return positions ? wg_index_select(wg_flatten(hidden, 0, -2), 0, positions) : hidden;
}

wg_tensor *wg_model_forward(const wg_model *model, const wg_model_inputs *inputs) {
    const wg_model_type *type = model->type;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *hidden = type->encoder.of
                            ? type->encoder.forward(type->encoder.of(model->module), inputs)
                            : type->forward(model->module, inputs);
    if (hidden && wg_tensor_ndim(hidden) == 3) /* the type computes all positions */
        hidden = at_positions(hidden, inputs->output_positions);
    return wg_scope_end(&scope, hidden);
}

wg_tensor *wg_model_logits(const wg_model *model, wg_tensor *hidden, wg_tensor *positions) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_model_head head = model->type->head(model->module, at_positions(hidden, positions));
    return wg_scope_end(&scope, head.linear ? wg_linear_forward(head.linear, head.hidden)
                                            : wg_embedding_logits(head.table, head.hidden));
}

wg_tensor *wg_model_loss(const wg_model *model, wg_tensor *hidden, wg_tensor *positions,
                         wg_tensor *labels, const wg_cross_entropy_options *options) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_model_head head = model->type->head(model->module, at_positions(hidden, positions));
    wg_cross_entropy_options own = options ? *options : (wg_cross_entropy_options){0};
    if (head.label_smoothing > 0 && wg_module_is_training(model->module))
        own.label_smoothing = head.label_smoothing;
    return wg_scope_end(
        &scope, head.linear
                    ? wg_linear_loss(head.linear, head.hidden, labels, WG_IGNORE_INDEX, &own)
                    : wg__embedding_loss(head.table, head.hidden, labels, WG_IGNORE_INDEX, &own));
}
