/* BERT: see bert.h.
 *
 * Letters: B sequences, T positions, C = hidden_size, V = vocab_size. */
#include "models/bert.h"

#include "models/internal.h"
#include "tensor/easy.h"

#define WHERE "bert_config" /* in messages */

#define PRESET(layers, width, heads, inner)                                                        \
    &(const wg_bert_config) {                                                                      \
        .vocab_size = 30522, .hidden_size = width, .num_hidden_layers = layers,                    \
        .num_attention_heads = heads, .intermediate_size = inner,                                  \
        .hidden_act = WG_ACTIVATION_GELU, .hidden_dropout_prob = 0.1,                              \
        .attention_probs_dropout_prob = 0.1, .max_position_embeddings = 512, .type_vocab_size = 2, \
        .initializer_range = 0.02, .layer_norm_eps = 1e-12, .pad_token_id = 0                      \
    }

/* The sizes of google/bert_uncased_L-*_H-* and of bert-base-uncased. */
static const wg_model_preset presets[] = {
    {.name = "bert-tiny", .config = PRESET(2, 128, 2, 512)},
    {.name = "bert-mini", .config = PRESET(4, 256, 4, 1024), .bench = {32, 128, 30522}},
    {.name = "bert-small", .config = PRESET(4, 512, 8, 2048)},
    {.name = "bert-base", .config = PRESET(12, 768, 12, 3072), .bench = {4, 128, 30522}},
    {0},
};

#define AT(key) .name = #key, .offset = offsetof(wg_bert_config, key)

static const wg_setting rows[] = {
    {AT(vocab_size), WG__SIZE, .role = WG__OWN_VOCABULARY, .help = "tokens"},
    WG__BERT_ROWS("dropout of embeddings and sublayers"),
    WG__POSITIONS_ROW(max_position_embeddings, "512", WG__POSITIONS),
    {AT(type_vocab_size), WG__SIZE, .standard = "2", .help = "kinds of segments"},
    WG__RANGE_ROW,
    {AT(layer_norm_eps), WG__POSITIVE, .standard = "1e-12", .help = "added to the variance"},
    {AT(pad_token_id), WG__TOKEN, .standard = "0", .help = "the token whose embedding stays 0"},
    WG__ONLY("position_embedding_type", "\"absolute\""),
    WG__ONLY("tie_word_embeddings", "true"),
};

void wg__bert_sizes(const void *measured, wg_model_sizes *sizes) {
    const wg_bert_config *config = measured;
    sizes->pad_id = config->pad_token_id;
    sizes->segments = config->type_vocab_size;
    sizes->head_dropout = config->hidden_dropout_prob;
    sizes->pools_first = true;
    sizes->head_init = (wg_initializer){WG_INIT_TRUNCATED_NORMAL, config->initializer_range};
}

/* The published names follow the classes of an older program: "output.dense" is the feed-forward
 * net's second layer, and the norms are in "attention.output" and "output". */
static void *layer_new(wg_module *parent, const char *name, int64_t index, const void *from) {
    const wg_bert_config *config = from;
    const wg_initializer init = {WG_INIT_TRUNCATED_NORMAL, config->initializer_range};
    (void)index;
    wg_bert_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    const wg_multi_head_attention_options attention = {
        .dropout = config->attention_probs_dropout_prob,
        .init = init,
        .query_name = "self.query",
        .key_name = "self.key",
        .value_name = "self.value",
        .output_name = "output.dense",
    };
    const wg_feed_forward_options feed_forward = {
        .activation = config->hidden_act,
        .init = init,
        .up_name = "intermediate.dense",
        .down_name = "output.dense",
    };
    const wg_add_norm_options add_norm = {
        .dropout = config->hidden_dropout_prob,
        .eps = config->layer_norm_eps,
        .norm_name = "LayerNorm",
    };
    const int64_t width = config->hidden_size;
    layer->attention = wg_multi_head_attention_new(module, "attention", width,
                                                   config->num_attention_heads, &attention);
    layer->attention_norm = wg_add_norm_new(module, "attention.output", width, &add_norm);
    layer->feed_forward =
        wg_feed_forward_new(module, "", width, config->intermediate_size, &feed_forward);
    layer->output_norm = wg_add_norm_new(module, "output", width, &add_norm);
    return wg_module_finish(module);
}

wg_bert *wg__bert_new(wg_module *parent, const char *name, const wg_bert_config *config,
                      const wg_bert_options *options) {
    if (wg__model_config_check(&wg_bert_type, config) < 0)
        return NULL;
    wg_bert *bert = wg_module_new(parent, name, sizeof *bert);
    if (!bert)
        return NULL;
    bert->config = *config;
    bert->first_position = options ? options->first_position : 0;
    wg_module *module = &bert->module;
    const int64_t width = config->hidden_size;
    const wg_layer_norm_options norm = {.eps = config->layer_norm_eps};
    const wg_initializer init = {WG_INIT_TRUNCATED_NORMAL, config->initializer_range};
    const wg_embedding_options table = {.init = init};
    wg_embedding_options words = table;
    words.has_padding = true;
    words.padding_index = config->pad_token_id;
    bert->word_embeddings =
        wg_embedding_new(module, "embeddings.word_embeddings", config->vocab_size, width, &words);
    bert->position_embeddings = wg_embedding_new(module, "embeddings.position_embeddings",
                                                 config->max_position_embeddings, width, &table);
    bert->token_type_embeddings = wg_embedding_new(module, "embeddings.token_type_embeddings",
                                                   config->type_vocab_size, width, &table);
    bert->embedding_norm = wg_layer_norm_new(module, "embeddings.LayerNorm", width, &norm);
    bert->layers =
        wg__layers_new(module, "encoder.layer", config->num_hidden_layers, layer_new, config);
    if (!options || !options->no_pooler)
        bert->pooler =
            wg_linear_new(module, "pooler.dense", width, width, &(wg_linear_options){.init = init});
    return wg_module_finish(module);
}

void *wg__bert_for_pretraining_new(const void *from, uint64_t seed) {
    const wg_bert_config *config = from;
    wg_bert_for_pretraining *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    model->module.generator = (wg_generator){.seed = seed};
    model->bert = wg__bert_new(&model->module, "bert", config, NULL);
    if (model->bert)
        model->predictions =
            wg__bert_predictions_new(&model->module, "cls.predictions", model->bert,
                                     config->hidden_act, "transform.dense", "transform.LayerNorm");
    const wg_linear_options next_sentence = {
        .init = {WG_INIT_TRUNCATED_NORMAL, config->initializer_range}};
    model->next_sentence = wg_linear_new(&model->module, "cls.seq_relationship",
                                         config->hidden_size, 2, &next_sentence);
    return wg_module_finish(&model->module);
}

/* LayerNorm(word + position + segment), with dropout: (B, T)   ->   (B, T, C). */
static wg_tensor *embed(wg_bert *bert, const wg_model_inputs *inputs) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *word = inputs->embeddings ? inputs->embeddings
                                         : wg_embedding_forward(bert->word_embeddings, inputs->ids);
    const int64_t first = bert->first_position;
    wg_tensor *positions =
        word ? wg_arange(WG_I64, (double)first, (double)(first + wg_tensor_size(word, 1)), 1)
             : NULL;
    wg_tensor *segments =
        inputs->token_type_ids ? inputs->token_type_ids : wg_zeros(WG_I64, WG_DIMS(1));
    wg_tensor *position = wg_embedding_forward(bert->position_embeddings, positions);
    wg_tensor *segment = wg_embedding_forward(bert->token_type_embeddings, segments);
    wg_tensor *x = wg_add(wg_add(word, segment), position);
    x = wg_layer_norm_forward(bert->embedding_norm, x);
    return wg_scope_end(&scope, wg_dropout(&bert->module, x, bert->config.hidden_dropout_prob));
}

static wg_tensor *layer_forward(void *layers, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_bert_layer *layer = ((wg_bert_layer **)layers)[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *attended = wg_multi_head_attention_forward(layer->attention, x, &inputs->self);
    x = wg_add_norm_after(layer->attention_norm, wg__stack_output_rows(x, inputs), attended);
    wg_tensor *fed = wg_feed_forward_forward(layer->feed_forward, x);
    return wg_scope_end(&scope, wg_add_norm_after(layer->output_norm, x, fed));
}

wg_tensor *wg__bert_forward(wg_module *encoder, const wg_model_inputs *inputs) {
    wg_bert *bert = (wg_bert *)encoder;
    if (wg__first_position("bert", inputs,
                           bert->config.max_position_embeddings - bert->first_position) < 0)
        return NULL;
    if (inputs->causal)
        return wg__fail_null(WG_ERROR_ARGUMENT, "bert",
                             "it has no causal attention; every position sees all");
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs stack_inputs = {.self.mask = wg_padding_mask(inputs->keep),
                                          .self.output_positions = inputs->output_positions};
    return wg_scope_end(&scope, wg_stack_forward(&bert->module, bert->config.num_hidden_layers,
                                                 layer_forward, bert->layers, embed(bert, inputs),
                                                 &stack_inputs));
}

wg_tensor *wg__bert_pool(wg_module *encoder, wg_tensor *sequence, wg_tensor *keep) {
    (void)keep; /* [CLS] is never padding */
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *first = wg_select(sequence, 1, 0);
    return wg_scope_end(&scope, wg_tanh(wg_linear_forward(((wg_bert *)encoder)->pooler, first)));
}

/* Published files name the bias twice: the head's "bias" is the parameter, and "decoder.bias" is
 * tied to it. */
wg_bert_predictions *wg__bert_predictions_new(wg_module *parent, const char *name,
                                              const wg_bert *bert, wg_activation activation,
                                              const char *dense_name, const char *norm_name) {
    const wg_bert_config *config = &bert->config;
    wg_bert_predictions *head = wg_module_new(parent, name, sizeof *head);
    if (!head)
        return NULL;
    wg_module *module = &head->module;
    head->activation = activation;
    wg_tensor *bias = wg__vector_parameter(module, "bias", config->vocab_size, 0);
    const wg_linear_options dense = {.init = {WG_INIT_TRUNCATED_NORMAL, config->initializer_range}};
    head->dense =
        wg_linear_new(module, dense_name, config->hidden_size, config->hidden_size, &dense);
    head->norm = wg_layer_norm_new(module, norm_name, config->hidden_size,
                                   &(wg_layer_norm_options){.eps = config->layer_norm_eps});
    const wg_linear_options tied = {.tied_weight = bert->word_embeddings->weight,
                                    .tied_bias = bias};
    head->decoder =
        wg_linear_new(module, "decoder", config->hidden_size, config->vocab_size, &tied);
    return wg_module_finish(module);
}

wg_model_head wg__bert_predictions_head(wg_bert_predictions *head, wg_tensor *hidden) {
    wg_tensor *x = wg_activate(head->activation, wg_linear_forward(head->dense, hidden));
    return (wg_model_head){.linear = head->decoder, .hidden = wg_layer_norm_forward(head->norm, x)};
}

static wg_model_head head_of(wg_module *module, wg_tensor *hidden) {
    return wg__bert_predictions_head(((wg_bert_for_pretraining *)module)->predictions, hidden);
}

static void *encoder_new(wg_module *parent, const char *name, const void *config, bool pooler) {
    return wg__bert_new(parent, name, config, &(wg_bert_options){.no_pooler = !pooler});
}

static wg_linear *next_sentence_of(wg_module *module) {
    return ((wg_bert_for_pretraining *)module)->next_sentence;
}

const wg_model_type wg_bert_type = {
    .name = "bert",
    .model_type = "bert",
    .title = "BERT (Devlin et al. 2019)",
    .shape = WG_ENCODER,
    .settings = {WHERE, sizeof(wg_bert_config), sizeof rows / sizeof rows[0], rows},
    .ignored =
        WG__KEYS("bos_token_id", "directionality", "eos_token_id", "finetuning_task",
                 "gradient_checkpointing", "output_past", "pooler_fc_size", "pooler_num_fc_layers",
                 "pooler_num_attention_heads", "pooler_size_per_head", "pooler_type"),
    .presets = presets,
    .bench_preset = "bert-mini",
    .training = "{\"tokenizer\": \"wordpiece\", \"schedule\": \"linear\", \"weight-decay\": 0.01}",
    .smallest = "{\"vocab_size\": 9, \"hidden_size\": 4, \"num_hidden_layers\": 2, "
                "\"num_attention_heads\": 2, \"intermediate_size\": 6, "
                "\"max_position_embeddings\": 5}",
    .objectives = "masked-lm",
    .sizes = wg__bert_sizes,
    .config = wg__encoder_config,
    .names = {.architecture = "BertForPreTraining",
              .classifier = "BertForSequenceClassification",
              .answerer = "BertForQuestionAnswering",
              .word_classifier = "BertForTokenClassification",
              .marker = "embeddings.word_embeddings.",
              .prefix = "bert.",
              .heads = {"cls.", "classifier.", "qa_outputs."},
              .ignored = {"embeddings.position_ids", "embeddings.token_type_ids"},
              .optional = {"cls."},
              .adapted = {"query", "value"}},
    .create = wg__bert_for_pretraining_new,
    .head = head_of,
    .encoder = {.name = "bert",
                .make = encoder_new,
                .forward = wg__bert_forward,
                .pool = wg__bert_pool,
                .of = wg__encoder_of,
                .next_sentence = next_sentence_of},
};
