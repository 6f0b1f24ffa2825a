/* BERT   (Devlin, Chang, Lee & Toutanova 2019, "BERT: Pre-training of Deep Bidirectional
 * Transformers for Language Understanding", arXiv:1810.04805).
 *
 * Letters: B sequences, T positions, C = hidden_size, V = vocab_size, N masked positions. */
#include "models/bert.h"

#include "nn/module.h"
#include "nn/internal.h"
#include "nn/stack.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#include <inttypes.h>

/* ---- Construction ---- */

static wg_initializer weight_init(const wg_bert_config *config) {
    return (wg_initializer){WG_INIT_TRUNCATED_NORMAL, config->initializer_range};
}

static wg_linear *dense(wg_module *parent, const char *name, int64_t out,
                        const wg_bert_config *config) {
    const wg_linear_options options = {.init = weight_init(config)};
    return wg_linear_new(parent, name, config->hidden_size, out, &options);
}

static wg_add_norm *add_norm(wg_module *parent, const char *name, const wg_bert_config *config) {
    const wg_add_norm_options options = {
        .dropout = config->hidden_dropout_prob,
        .eps = config->layer_norm_eps,
        .norm_name = "LayerNorm",
    };
    return wg_add_norm_new(parent, name, config->hidden_size, &options);
}

/* The published names are those of an older program's classes, so some parts of a layer stand at
 * other places of the tree than where they belong in the paper. */
static wg_bert_layer *layer_new(wg_module *parent, int64_t index, const wg_bert_config *config) {
    char name[40];
    snprintf(name, sizeof name, "encoder.layer.%" PRId64, index);
    wg_bert_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    const wg_multi_head_attention_options attention = {
        .dropout = config->attention_probs_dropout_prob,
        .init = weight_init(config),
        .query_name = "self.query",
        .key_name = "self.key",
        .value_name = "self.value",
        .output_name = "output.dense",
    };
    const wg_feed_forward_options feed_forward = {
        .activation = config->hidden_act,
        .init = weight_init(config),
        .up_name = "intermediate.dense",
        .down_name = "output.dense",
    };
    int64_t width = config->hidden_size;
    layer->attention = wg_multi_head_attention_new(module, "attention", width,
                                                   config->num_attention_heads, &attention);
    layer->attention_norm = add_norm(module, "attention.output", config);
    layer->feed_forward =
        wg_feed_forward_new(module, "", width, config->intermediate_size, &feed_forward);
    layer->output_norm = add_norm(module, "output", config);
    return wg_module_finish(module);
}

static void bert_destroy(wg_module *module) {
    wg__free(((wg_bert *)module)->layers);
}

static void add_embeddings(wg_bert *bert) {
    const wg_bert_config *config = &bert->config;
    wg_module *module = &bert->module;
    wg_embedding_options options = {.init = weight_init(config)};
    wg_embedding_options words = options;
    words.has_padding = true;
    words.padding_index = config->pad_token_id;
    int64_t width = config->hidden_size;
    bert->word_embeddings =
        wg_embedding_new(module, "embeddings.word_embeddings", config->vocab_size, width, &words);
    bert->position_embeddings = wg_embedding_new(module, "embeddings.position_embeddings",
                                                 config->max_position_embeddings, width, &options);
    bert->token_type_embeddings = wg_embedding_new(module, "embeddings.token_type_embeddings",
                                                   config->type_vocab_size, width, &options);
    const wg_layer_norm_options norm = {.eps = config->layer_norm_eps};
    bert->embedding_norm = wg_layer_norm_new(module, "embeddings.LayerNorm", width, &norm);
}

wg_bert *wg_bert_new(wg_module *parent, const char *name, const wg_bert_config *config,
                     const wg_bert_options *options) {
    if (wg_bert_config_validate(config) < 0)
        return NULL;
    wg_bert *bert = wg_module_new(parent, name, sizeof *bert);
    if (!bert)
        return NULL;
    bert->module.destroy = bert_destroy;
    bert->config = *config;
    bert->layers = wg__calloc((size_t)config->num_hidden_layers, sizeof *bert->layers);
    add_embeddings(bert);
    for (int64_t i = 0; bert->layers && i < config->num_hidden_layers; i++)
        bert->layers[i] = layer_new(&bert->module, i, config);
    if (!options || !options->no_pooler)
        bert->pooler = dense(&bert->module, "pooler.dense", config->hidden_size, config);
    return wg_module_finish(&bert->module);
}

/* cls.predictions: the head of the masked language model. Its bias stands in the head itself, and
 * once more, tied, in the decoder. */
static void add_predictions(wg_bert_for_pretraining *model, const wg_bert_config *config) {
    wg_module *head = wg_module_new(&model->module, "cls.predictions", sizeof *head);
    if (!head)
        return;
    wg_tensor *bias = wg__vector_parameter(head, "bias", config->vocab_size, 0);
    model->transform = dense(head, "transform.dense", config->hidden_size, config);
    const wg_layer_norm_options norm = {.eps = config->layer_norm_eps};
    model->transform_norm =
        wg_layer_norm_new(head, "transform.LayerNorm", config->hidden_size, &norm);
    const wg_linear_options tied = {.tied_weight = model->bert->word_embeddings->weight,
                                    .tied_bias = bias};
    model->decoder = wg_linear_new(head, "decoder", config->hidden_size, config->vocab_size, &tied);
}

wg_bert_for_pretraining *wg_bert_for_pretraining_new(const wg_bert_config *config, uint64_t seed) {
    wg_bert_for_pretraining *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    model->module.generator = (wg_generator){.seed = seed};
    model->bert = wg_bert_new(&model->module, "bert", config, NULL);
    if (model->bert)
        add_predictions(model, config);
    model->next_sentence = dense(&model->module, "cls.seq_relationship", 2, config);
    return wg_module_finish(&model->module);
}

/* ---- The encoder ---- */

static int check_input(const wg_bert *bert, const wg_tensor *input_ids) {
    if (!input_ids)
        return -1;
    if (wg_tensor_ndim(input_ids) != 2)
        return wg_fail(WG_ERROR_SHAPE, "bert", "input_ids has rank %d; wanted (B, T)",
                       wg_tensor_ndim(input_ids));
    int64_t length = wg_tensor_size(input_ids, 1), longest = bert->config.max_position_embeddings;
    if (length > longest)
        return wg_fail(WG_ERROR_SHAPE, "bert",
                       "sequences of %lld tokens are longer than max_position_embeddings %lld; cut "
                       "them or use a model with more positions",
                       (long long)length, (long long)longest);
    return 0;
}

/* LayerNorm(word + position + segment), with dropout: (B, T)   ->   (B, T, C). */
static wg_tensor *embed(wg_bert *bert, wg_tensor *input_ids, wg_tensor *token_type_ids) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *positions = wg_arange(WG_I64, 0, (double)wg_tensor_size(input_ids, 1), 1);
    if (!token_type_ids)
        token_type_ids = wg_zeros(WG_I64, WG_DIMS(1));
    wg_tensor *word = wg_embedding_forward(bert->word_embeddings, input_ids);
    wg_tensor *position = wg_embedding_forward(bert->position_embeddings, positions);
    wg_tensor *segment = wg_embedding_forward(bert->token_type_embeddings, token_type_ids);
    wg_tensor *x = wg_add(wg_add(word, segment), position);
    x = wg_layer_norm_forward(bert->embedding_norm, x);
    return wg_scope_end(&scope, wg_dropout(&bert->module, x, bert->config.hidden_dropout_prob));
}

static wg_tensor *layer_forward(void *model, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_bert_layer *layer = ((wg_bert *)model)->layers[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *attended = wg_multi_head_attention_forward(layer->attention, x, &inputs->self);
    x = wg_add_norm_after(layer->attention_norm, x, attended);
    wg_tensor *fed = wg_feed_forward_forward(layer->feed_forward, x);
    return wg_scope_end(&scope, wg_add_norm_after(layer->output_norm, x, fed));
}

wg_tensor *wg_bert_forward(wg_bert *bert, wg_tensor *input_ids, wg_tensor *token_type_ids,
                           wg_tensor *attention_mask) {
    if (check_input(bert, input_ids) < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs around = {.self.mask = wg_padding_mask(attention_mask)};
    wg_tensor *sequence =
        wg_stack_forward(&bert->module, bert->config.num_hidden_layers, layer_forward, bert,
                         embed(bert, input_ids, token_type_ids), &around);
    return wg_scope_end(&scope, sequence);
}

wg_tensor *wg_bert_pool(wg_bert *bert, wg_tensor *sequence) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *first = wg_select(sequence, 1, 0);
    return wg_scope_end(&scope, wg_tanh(wg_linear_forward(bert->pooler, first)));
}

/* ---- The two heads ---- */

/* What the decoder makes logits of. */
static wg_tensor *mlm_hidden(wg_bert_for_pretraining *model, wg_tensor *sequence,
                             wg_tensor *positions) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x =
        positions ? wg_index_select(wg_flatten(sequence, 0, -2), 0, positions) : sequence;
    x = wg_activate(model->bert->config.hidden_act, wg_linear_forward(model->transform, x));
    return wg_scope_end(&scope, wg_layer_norm_forward(model->transform_norm, x));
}

wg_tensor *wg_bert_mlm_logits(wg_bert_for_pretraining *model, wg_tensor *sequence,
                              wg_tensor *positions) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = mlm_hidden(model, sequence, positions);
    return wg_scope_end(&scope, wg_linear_forward(model->decoder, x));
}

wg_tensor *wg_bert_nsp_logits(wg_bert_for_pretraining *model, wg_tensor *sequence) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *pooled = wg_bert_pool(model->bert, sequence);
    return wg_scope_end(&scope, wg_linear_forward(model->next_sentence, pooled));
}

/* ---- The loss ---- */

static int64_t count_labels(wg_tensor *labels) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *counted = wg_ne(labels, wg_scalar(wg_tensor_dtype(labels), WG_IGNORE_INDEX));
    int64_t count = (int64_t)wg_item(wg_sum(counted, WG_ALL, false));
    wg_scope_end(&scope, NULL);
    return count;
}

/* Cross-entropy of one head; `correct` and `count` may be NULL. */
static wg_tensor *head_loss(wg_linear *head, wg_tensor *hidden, wg_tensor *labels, int64_t *correct,
                            int64_t *count) {
    const wg_cross_entropy_options options = {.correct = correct};
    if (labels && correct)
        *count = count_labels(labels);
    return wg_linear_loss(head, hidden, labels, WG_IGNORE_INDEX, &options);
}

int wg_bert_pretraining_loss(wg_bert_for_pretraining *model, const wg_bert_batch *batch,
                             bool count_correct, wg_bert_loss *loss) {
    *loss = (wg_bert_loss){0};
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *sequence = wg_bert_forward(model->bert, batch->input_ids, batch->token_type_ids,
                                          batch->attention_mask);
    wg_tensor *mlm = head_loss(model->decoder, mlm_hidden(model, sequence, batch->masked_positions),
                               batch->masked_labels, count_correct ? &loss->mlm_correct : NULL,
                               &loss->mlm_count);
    wg_tensor *nsp = NULL;
    if (batch->next_sentence_labels)
        nsp = head_loss(model->next_sentence, wg_bert_pool(model->bert, sequence),
                        batch->next_sentence_labels, count_correct ? &loss->nsp_correct : NULL,
                        &loss->nsp_count);
    wg_tensor *total = batch->next_sentence_labels ? wg_add(mlm, nsp) : wg_alias(mlm);
    bool failed = !total || wg_error_pending();
    if (!failed) {
        loss->total = wg_scope_escape(total);
        loss->mlm = wg_scope_escape(mlm);
        loss->nsp = wg_scope_escape(nsp);
    }
    wg_scope_end(&scope, NULL);
    return failed ? -1 : 0;
}
