/* The lists of tensors of published checkpoints. tests/test_convert.c holds them against the
 * modules.
 */
#include "models/published.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/config.h"
#include "models/bert.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "tensor/internal.h"

#define WHERE "convert"

/* ---- The list ---- */

static int grow(wg__published_model *model) {
    const int64_t capacity = 2 * model->capacity + 64;
    wg__published_tensor *larger = wg__alloc((size_t)capacity * sizeof *larger);
    if (!larger)
        return -1;
    if (model->count)
        memcpy(larger, model->tensors, (size_t)model->count * sizeof *larger);
    wg__free(model->tensors);
    model->tensors = larger;
    model->capacity = capacity;
    return 0;
}

/* Adds (rows, columns), or a vector if columns is 0. NULL without memory. */
static wg__published_tensor *add(wg__published_model *model, int64_t rows, int64_t columns,
                                 const char *format, ...) {
    if (model->count == model->capacity && grow(model) < 0)
        return NULL;
    wg__published_tensor *tensor = &model->tensors[model->count++];
    *tensor = (wg__published_tensor){.ndim = columns ? 2 : 1, .shape = {rows, columns}};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tensor->name, sizeof tensor->name, format, arguments);
    va_end(arguments);
    return tensor;
}

/* name.weight and name.bias of a dense layer or of a norm (columns 0). */
static void add_pair(wg__published_model *model, int64_t rows, int64_t columns, int64_t bias,
                     const char *prefix, const char *name) {
    add(model, rows, columns, "%s%s.weight", prefix, name);
    add(model, bias, 0, "%s%s.bias", prefix, name);
}

/* A list is made on the word of a configuration: no model has more layers than this. */
static int check_layers(int64_t layers) {
    const int64_t most = 4096;
    return layers <= most
               ? 0
               : wg_fail(WG_ERROR_FORMAT, WHERE, "%lld layers; at most %lld are converted",
                         (long long)layers, (long long)most);
}

/* ---- BERT ---- */

static void list_bert_layer(wg__published_model *model, const wg_bert_config *c, int64_t layer) {
    const int64_t width = c->hidden_size, inner = c->intermediate_size;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "bert.encoder.layer.%" PRId64 ".", layer);
    add_pair(model, width, width, width, prefix, "attention.self.query");
    add_pair(model, width, width, width, prefix, "attention.self.key");
    add_pair(model, width, width, width, prefix, "attention.self.value");
    add_pair(model, width, width, width, prefix, "attention.output.dense");
    add_pair(model, width, 0, width, prefix, "attention.output.LayerNorm");
    add_pair(model, inner, width, inner, prefix, "intermediate.dense");
    add_pair(model, width, inner, width, prefix, "output.dense");
    add_pair(model, width, 0, width, prefix, "output.LayerNorm");
}

/* From here on tensors are of heads, which checkpoints of the bare encoder do not have. */
static void mark_heads(wg__published_model *model, int64_t first, const wg_bert_config *c) {
    for (int64_t i = first; i < model->count; i++) {
        wg__published_tensor *tensor = &model->tensors[i];
        tensor->may_miss = true;
        if (tensor->ndim == 2)
            tensor->init = (wg_initializer){WG_INIT_TRUNCATED_NORMAL, c->initializer_range};
        else
            tensor->init.kind =
                strstr(tensor->name, "LayerNorm.weight") ? WG_INIT_ONES : WG_INIT_ZEROS;
    }
}

static int list_bert(wg__published_model *model, const char *json) {
    wg_bert_config c;
    if (wg_bert_config_from_json(&c, json) < 0 || check_layers(c.num_hidden_layers) < 0)
        return -1;
    const int64_t width = c.hidden_size;
    const char *embeddings = "bert.embeddings.";
    add(model, c.vocab_size, width, "%sword_embeddings.weight", embeddings);
    add(model, c.max_position_embeddings, width, "%sposition_embeddings.weight", embeddings);
    add(model, c.type_vocab_size, width, "%stoken_type_embeddings.weight", embeddings);
    add_pair(model, width, 0, width, embeddings, "LayerNorm");
    for (int64_t i = 0; i < c.num_hidden_layers && !wg_error_pending(); i++)
        list_bert_layer(model, &c, i);
    const int64_t first_head = model->count;
    add_pair(model, width, width, width, "bert.", "pooler.dense");
    add(model, c.vocab_size, 0, "cls.predictions.bias");
    add_pair(model, width, width, width, "cls.predictions.", "transform.dense");
    add_pair(model, width, 0, width, "cls.predictions.", "transform.LayerNorm");
    add_pair(model, 2, width, 2, "cls.", "seq_relationship");
    if (!wg_error_pending())
        mark_heads(model, first_head, &c);
    model->vocabulary = c.vocab_size;
    model->config = wg_error_pending() ? NULL : wg_bert_config_to_json(&c);
    return model->config ? 0 : -1;
}

/* ---- GPT-2 ---- */

static int list_gpt(wg__published_model *model, const char *json) {
    wg_gpt_config c;
    if (wg_gpt_config_from_json(&c, json) < 0 || check_layers(c.n_layer) < 0)
        return -1;
    const int64_t width = c.n_embd, inner = c.n_inner;
    add(model, c.vocab_size, width, "transformer.wte.weight");
    add(model, c.n_positions, width, "transformer.wpe.weight");
    for (int64_t i = 0; i < c.n_layer && !wg_error_pending(); i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "transformer.h.%" PRId64 ".", i);
        add_pair(model, width, 0, width, prefix, "ln_1");
        add_pair(model, width, 3 * width, 3 * width, prefix, "attn.c_attn");
        add_pair(model, width, width, width, prefix, "attn.c_proj");
        add_pair(model, width, 0, width, prefix, "ln_2");
        add_pair(model, width, inner, inner, prefix, "mlp.c_fc");
        add_pair(model, inner, width, width, prefix, "mlp.c_proj");
    }
    add_pair(model, width, 0, width, "transformer.", "ln_f");
    model->vocabulary = c.vocab_size;
    model->config = wg_error_pending() ? NULL : wg_gpt_config_to_json(&c);
    return model->config ? 0 : -1;
}

/* ---- LLaMA ---- */

static void list_llama_layer(wg__published_model *model, const wg_llama_config *c, int64_t layer) {
    const int64_t width = c->hidden_size, inner = c->intermediate_size,
                  keys = width / c->num_attention_heads * c->num_key_value_heads;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "model.layers.%" PRId64 ".", layer);
    add(model, width, width, "%sself_attn.q_proj.weight", prefix);
    add(model, keys, width, "%sself_attn.k_proj.weight", prefix);
    add(model, keys, width, "%sself_attn.v_proj.weight", prefix);
    add(model, width, width, "%sself_attn.o_proj.weight", prefix);
    add(model, inner, width, "%smlp.gate_proj.weight", prefix);
    add(model, inner, width, "%smlp.up_proj.weight", prefix);
    add(model, width, inner, "%smlp.down_proj.weight", prefix);
    add(model, width, 0, "%sinput_layernorm.weight", prefix);
    add(model, width, 0, "%spost_attention_layernorm.weight", prefix);
}

static int list_llama(wg__published_model *model, const char *json) {
    wg_llama_config c;
    if (wg_llama_config_from_json(&c, json) < 0 || check_layers(c.num_hidden_layers) < 0)
        return -1;
    add(model, c.vocab_size, c.hidden_size, "model.embed_tokens.weight");
    for (int64_t i = 0; i < c.num_hidden_layers && !wg_error_pending(); i++)
        list_llama_layer(model, &c, i);
    add(model, c.hidden_size, 0, "model.norm.weight");
    model->tied_head = c.tie_word_embeddings;
    if (!model->tied_head)
        add(model, c.vocab_size, c.hidden_size, "lm_head.weight");
    model->vocabulary = c.vocab_size;
    model->config = wg_error_pending() ? NULL : wg_llama_config_to_json(&c);
    return model->config ? 0 : -1;
}

/* ---- Which model ---- */

static int list_type(wg__published_model *model, const char *json, const char *type) {
    static const struct {
        const char *type;
        int (*list)(wg__published_model *model, const char *json);
    } types[] = {{"bert", list_bert}, {"gpt2", list_gpt}, {"llama", list_llama}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, types[i].type) == 0) {
            model->type = types[i].type;
            return types[i].list(model, json);
        }
    return wg_fail(WG_ERROR_FORMAT, WHERE,
                   "model_type \"%.64s\" is not converted; bert, gpt2 and llama are", type);
}

wg__published_model *wg__published_read(const char *json, const char *type) {
    wg__published_model *model = json ? wg__calloc(1, sizeof *model) : NULL;
    wg_config *config = model ? wg_config_parse(json, "config.json") : NULL;
    int status = config ? wg_config_text(config, "model_type", &type) : -1;
    if (status == 0 && !type)
        status =
            wg_fail(WG_ERROR_FORMAT, WHERE,
                    "config.json has no model_type, and the names of the tensors are not those "
                    "of bert, gpt2 or llama");
    if (status == 0)
        status = list_type(model, json, type);
    wg_config_free(config);
    if (status == 0)
        return model;
    wg__published_free(model);
    return NULL;
}

void wg__published_free(wg__published_model *model) {
    if (!model)
        return;
    wg__free(model->config);
    wg__free(model->tensors);
    wg__free(model);
}

/* ---- Names ---- */

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with) {
    const size_t length = strlen(text), part = strlen(with);
    return length >= part && strcmp(text + length - part, with) == 0;
}

/* What files of the bare model leave out. */
static const char *missing_prefix(const char *type, const char *name) {
    if (strcmp(type, "gpt2") == 0)
        return begins(name, "transformer.") || begins(name, "lm_head.") ? "" : "transformer.";
    if (strcmp(type, "llama") == 0)
        return begins(name, "model.") || begins(name, "lm_head.") ? "" : "model.";
    return begins(name, "bert.") || begins(name, "cls.") ? "" : "bert.";
}

static bool says_nothing_new(const wg__published_model *model, const char *name) {
    if (strcmp(model->type, "gpt2") == 0)
        return ends(name, ".attn.bias") || ends(name, ".attn.masked_bias") ||
               strcmp(name, "lm_head.weight") == 0;
    if (strcmp(model->type, "llama") == 0)
        return ends(name, ".rotary_emb.inv_freq") ||
               (model->tied_head && strcmp(name, "lm_head.weight") == 0);
    return ends(name, "embeddings.position_ids") || ends(name, "embeddings.token_type_ids") ||
           strcmp(name, "cls.predictions.decoder.weight") == 0 ||
           strcmp(name, "cls.predictions.decoder.bias") == 0;
}

int64_t wg__published_find(const wg__published_model *model, const char *name) {
    if (strlen(name) > 140)
        return -1;
    char full[160];
    snprintf(full, sizeof full, "%s%s", missing_prefix(model->type, name), name);
    if (ends(full, "LayerNorm.gamma"))
        strcpy(full + strlen(full) - strlen("gamma"), "weight");
    else if (ends(full, "LayerNorm.beta"))
        strcpy(full + strlen(full) - strlen("beta"), "bias");
    for (int64_t i = 0; i < model->count; i++)
        if (strcmp(full, model->tensors[i].name) == 0)
            return i;
    return says_nothing_new(model, full) ? -2 : -1;
}

const char *wg__published_type_of(const char *name) {
    if (strstr(name, "embeddings.word_embeddings."))
        return "bert";
    if (ends(name, "wte.weight"))
        return "gpt2";
    return ends(name, "embed_tokens.weight") ? "llama" : NULL;
}
