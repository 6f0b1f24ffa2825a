/* The lists of tensors of published checkpoints, a kind of model each. tests/formats/convert.c holds
 * them against the modules. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "models/bert.h"
#include "models/bert_heads_config.h"
#include "objectives/glm_cloze_config.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "formats/published_kind.h"
#include "models/t5.h"
#include "models/transformer.h"
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

/* The pooler and the head that a class has, and the configuration, which names the class. */
static int list_bert_head(wg__published_model *model, const char *json, const wg_bert_config *c) {
    const int64_t width = c->hidden_size;
    const wg__bert_head head = wg__bert_config_head(json);
    if (head != WG__BERT_PRETRAINING)
        model->architecture = NULL; /* the configuration has it */
    if (head == WG__BERT_ANSWERS) {
        add_pair(model, 2, width, 2, "", "qa_outputs");
        model->config = wg__bert_answers_config(c);
        return model->config ? 0 : -1;
    }
    add_pair(model, width, width, width, "bert.", "pooler.dense");
    if (head == WG__BERT_LABELS) {
        wg_labels labels;
        double dropout = c->hidden_dropout_prob;
        if (wg_bert_config_labels(json, &labels) < 0)
            return -1;
        add_pair(model, labels.count, width, labels.count, "", "classifier");
        if (wg__bert_config_classifier_dropout(json, &dropout) == 0)
            model->config = wg__bert_labels_config(c, &labels, dropout);
        wg_labels_free(&labels);
        return model->config ? 0 : -1;
    }
    add(model, c->vocab_size, 0, "cls.predictions.bias");
    add_pair(model, width, width, width, "cls.predictions.", "transform.dense");
    add_pair(model, width, 0, width, "cls.predictions.", "transform.LayerNorm");
    add_pair(model, 2, width, 2, "cls.", "seq_relationship");
    model->config = wg_bert_config_to_json(c);
    return model->config ? 0 : -1;
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
    if (list_bert_head(model, json, &c) < 0)
        return -1;
    if (!wg_error_pending())
        mark_heads(model, first_head, &c);
    model->vocabulary = c.vocab_size;
    return model->config && !wg_error_pending() ? 0 : -1;
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
    model->tied_head = true;
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

/* ---- T5 ---- */

static void list_t5_attention(wg__published_model *model, const wg_t5_config *c, const char *prefix,
                              int sublayer, const char *name) {
    const int64_t inner = c->num_heads * c->d_kv;
    char path[96];
    snprintf(path, sizeof path, "%slayer.%d.", prefix, sublayer);
    add(model, inner, c->d_model, "%s%s.q.weight", path, name);
    add(model, inner, c->d_model, "%s%s.k.weight", path, name);
    add(model, inner, c->d_model, "%s%s.v.weight", path, name);
    add(model, c->d_model, inner, "%s%s.o.weight", path, name);
    add(model, c->d_model, 0, "%slayer_norm.weight", path);
}

static void list_t5_net(wg__published_model *model, const wg_t5_config *c, const char *prefix,
                        int sublayer) {
    char path[96];
    snprintf(path, sizeof path, "%slayer.%d.", prefix, sublayer);
    if (c->gated)
        add(model, c->d_ff, c->d_model, "%sDenseReluDense.wi_0.weight", path);
    add(model, c->d_ff, c->d_model, "%sDenseReluDense.wi%s.weight", path, c->gated ? "_1" : "");
    add(model, c->d_model, c->d_ff, "%sDenseReluDense.wo.weight", path);
    add(model, c->d_model, 0, "%slayer_norm.weight", path);
}

static void list_t5_stack(wg__published_model *model, const wg_t5_config *c, const char *stack,
                          int64_t layers, bool decodes) {
    char prefix[64];
    for (int64_t i = 0; i < layers && !wg_error_pending(); i++) {
        int sublayer = 0;
        snprintf(prefix, sizeof prefix, "%s.block.%" PRId64 ".", stack, i);
        list_t5_attention(model, c, prefix, sublayer++, "SelfAttention");
        if (i == 0)
            add(model, c->relative_attention_num_buckets, c->num_heads,
                "%slayer.0.SelfAttention.relative_attention_bias.weight", prefix);
        if (decodes)
            list_t5_attention(model, c, prefix, sublayer++, "EncDecAttention");
        list_t5_net(model, c, prefix, sublayer);
    }
    add(model, c->d_model, 0, "%s.final_layer_norm.weight", stack);
}

static int list_t5(wg__published_model *model, const char *json) {
    wg_t5_config c;
    if (wg_t5_config_from_json(&c, json) < 0 || check_layers(c.num_layers) < 0 ||
        check_layers(c.num_decoder_layers) < 0)
        return -1;
    add(model, c.vocab_size, c.d_model, "shared.weight");
    list_t5_stack(model, &c, "encoder", c.num_layers, false);
    list_t5_stack(model, &c, "decoder", c.num_decoder_layers, true);
    model->tied_head = c.tie_word_embeddings;
    if (!model->tied_head)
        add(model, c.vocab_size, c.d_model, "lm_head.weight");
    model->vocabulary = c.vocab_size;
    model->config = wg_error_pending() ? NULL : wg_t5_config_to_json(&c);
    return model->config ? 0 : -1;
}

/* ---- GLM ---- */

static int list_glm(wg__published_model *model, const char *json) {
    wg_glm_config c;
    if (wg_glm_config_from_json(&c, json) < 0 || check_layers(c.num_layers) < 0)
        return -1;
    const int64_t width = c.hidden_size, positions = c.max_sequence_length + 1;
    add(model, c.vocab_size, width, "word_embeddings.weight");
    add(model, positions, width, "transformer.position_embeddings.weight");
    add(model, positions, width, "transformer.block_position_embeddings.weight");
    for (int64_t i = 0; i < c.num_layers && !wg_error_pending(); i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "transformer.layers.%" PRId64 ".", i);
        add_pair(model, width, 0, width, prefix, "input_layernorm");
        add_pair(model, 3 * width, width, 3 * width, prefix, "attention.query_key_value");
        add_pair(model, width, width, width, prefix, "attention.dense");
        add_pair(model, width, 0, width, prefix, "post_attention_layernorm");
        add_pair(model, 4 * width, width, 4 * width, prefix, "mlp.dense_h_to_4h");
        add_pair(model, width, 4 * width, width, prefix, "mlp.dense_4h_to_h");
    }
    add_pair(model, width, 0, width, "transformer.", "final_layernorm");
    model->vocabulary = c.vocab_size;
    model->config = wg_error_pending() ? NULL : wg__glm_config_keep_cloze(&c, json);
    return model->config ? 0 : -1;
}

/* ---- Transformer ---- */

static void list_transformer_attention(wg__published_model *model, int64_t width,
                                       const char *prefix, const char *name) {
    static const char *const projections[] = {"k_proj", "v_proj", "q_proj", "out_proj"};
    char path[96], norm[64];
    snprintf(path, sizeof path, "%s%s.", prefix, name);
    for (size_t i = 0; i < sizeof projections / sizeof projections[0]; i++)
        add_pair(model, width, width, width, path, projections[i]);
    snprintf(norm, sizeof norm, "%s_layer_norm", name);
    add_pair(model, width, 0, width, prefix, norm);
}

static void list_transformer_stack(wg__published_model *model, const wg_transformer_config *c,
                                   bool decodes) {
    const char *stack = decodes ? "decoder" : "encoder";
    const int64_t layers = decodes ? c->decoder_layers : c->encoder_layers, width = c->d_model,
                  inner = decodes ? c->decoder_ffn_dim : c->encoder_ffn_dim;
    char prefix[64];
    for (int64_t i = 0; i < layers && !wg_error_pending(); i++) {
        snprintf(prefix, sizeof prefix, "%s.layers.%" PRId64 ".", stack, i);
        list_transformer_attention(model, width, prefix, "self_attn");
        if (decodes)
            list_transformer_attention(model, width, prefix, "encoder_attn");
        add_pair(model, inner, width, inner, prefix, "fc1");
        add_pair(model, width, inner, width, prefix, "fc2");
        add_pair(model, width, 0, width, prefix, "final_layer_norm");
    }
    snprintf(prefix, sizeof prefix, "%s.", stack);
    if (c->normalize_before)
        add_pair(model, width, 0, width, prefix, "layer_norm");
}

static int list_transformer(wg__published_model *model, const char *json) {
    wg_transformer_config c;
    if (wg_transformer_config_from_json(&c, json) < 0 || check_layers(c.encoder_layers) < 0 ||
        check_layers(c.decoder_layers) < 0)
        return -1;
    add(model, c.vocab_size, c.d_model, "encoder.embed_tokens.weight");
    list_transformer_stack(model, &c, false);
    if (!c.share_encoder_decoder_embeddings)
        add(model, c.decoder_vocab_size, c.d_model, "decoder.embed_tokens.weight");
    list_transformer_stack(model, &c, true);
    model->vocabulary = c.vocab_size > c.decoder_vocab_size ? c.vocab_size : c.decoder_vocab_size;
    model->config = wg_error_pending() ? NULL : wg_transformer_config_to_json(&c);
    return model->config ? 0 : -1;
}

/* ---- All of them ---- */

const wg__published_kind wg__published_kinds[] = {
    {.type = "bert",
     .architecture = "BertForPreTraining",
     .marker = "embeddings.word_embeddings.",
     .prefix = "bert.",
     .heads = {"cls.", "classifier.", "qa_outputs."},
     .outer = "",
     .repeated = {"embeddings.position_ids", "embeddings.token_type_ids",
                  "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"},
     .list = list_bert},
    {.type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .marker = ".attn.c_attn.",
     .prefix = "transformer.",
     .heads = {"lm_head."},
     .outer = "",
     .repeated = {".attn.bias", ".attn.masked_bias"},
     .list = list_gpt},
    {.type = "llama",
     .architecture = "LlamaForCausalLM",
     .marker = ".mlp.gate_proj.",
     .prefix = "model.",
     .heads = {"lm_head."},
     .outer = "",
     .repeated = {".rotary_emb.inv_freq"},
     .list = list_llama},
    {.type = "t5",
     .architecture = "T5ForConditionalGeneration",
     .marker = ".SelfAttention.",
     .prefix = "",
     .outer = "",
     .repeated = {"coder.embed_tokens.weight", ".EncDecAttention.relative_attention_bias.weight"},
     .list = list_t5},
    {.type = "glm",
     .architecture = "GLMForConditionalGeneration",
     .marker = "block_position_embeddings.",
     .prefix = "",
     .outer = "glm.",
     .list = list_glm},
    {.type = "transformer",
     .marker = ".encoder_attn.",
     .prefix = "",
     .outer = "",
     .repeated = {"decoder.embed_tokens.weight", "decoder.output_projection.weight"},
     .list = list_transformer},
    {0},
};
