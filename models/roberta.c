/* RoBERTa: see roberta.h.
 *
 * Letters: B sequences, T positions, C = hidden_size, V = vocab_size. */
#include "models/roberta.h"

#include "models/internal.h"

#define WHERE "roberta_config" /* in messages */

#define PRESET(layers, width, heads, inner, vocabulary)                                            \
    &(const wg_roberta_config) {                                                                   \
        .bert = {.vocab_size = vocabulary,                                                         \
                 .hidden_size = width,                                                             \
                 .num_hidden_layers = layers,                                                      \
                 .num_attention_heads = heads,                                                     \
                 .intermediate_size = inner,                                                       \
                 .hidden_act = WG_ACTIVATION_GELU,                                                 \
                 .hidden_dropout_prob = 0.1,                                                       \
                 .attention_probs_dropout_prob = 0.1,                                              \
                 .max_position_embeddings = 514,                                                   \
                 .type_vocab_size = 1,                                                             \
                 .initializer_range = 0.02,                                                        \
                 .layer_norm_eps = 1e-5,                                                           \
                 .pad_token_id = 1},                                                               \
        .bos_token_id = 0, .eos_token_id = 2                                                       \
    }

/* Two small ones, and FacebookAI/roberta-base. */
static const wg_model_preset presets[] = {
    {.name = "roberta-mini", .config = PRESET(4, 256, 4, 1024, 50265), .bench = {32, 128, 50265}},
    {.name = "roberta-small", .config = PRESET(6, 384, 6, 1536, 50265)},
    {.name = "roberta-base", .config = PRESET(12, 768, 12, 3072, 50265), .bench = {4, 128, 50265}},
    {0},
};

#define AT(key) .name = #key, .offset = offsetof(wg_roberta_config, bert.key)

static const wg_setting rows[] = {
    WG__VOCABULARY_ROW,
    WG__BERT_ROWS("dropout of embeddings, sublayers and heads"),
    {AT(max_position_embeddings), WG__SIZE, .role = WG__POSITIONS_BEHIND_PAD, .standard = "514",
     .help = "rows of the position table: the longest sequence and `pad_token_id` + 1 more"},
    {AT(type_vocab_size), WG__SIZE, .standard = "1", .help = "kinds of segments"},
    WG__RANGE_ROW,
    {AT(layer_norm_eps), WG__POSITIVE, .standard = "1e-5", .help = "added to the variance"},
    {AT(pad_token_id), WG__TOKEN, .role = WG__PAD, .standard = "1",
     .help = "the token whose embedding stays 0; `pretrain` fills it in"},
    {.name = "bos_token_id",
     .offset = offsetof(wg_roberta_config, bos_token_id),
     WG__MAYBE_TOKEN,
     .role = WG__CLASS,
     .standard = "0",
     .help = "the first token of a sequence; likewise"},
    {.name = "eos_token_id",
     .offset = offsetof(wg_roberta_config, eos_token_id),
     WG__MAYBE_TOKEN,
     .role = WG__SEPARATOR,
     .standard = "2",
     .help = "the token behind each text; likewise"},
    WG__ONLY("position_embedding_type", "\"absolute\""),
    WG__ONLY("tie_word_embeddings", "true"),
};

static int check(const void *checked) {
    const wg_roberta_config *config = checked;
    const int64_t first_position = config->bert.pad_token_id + 1;
    if (first_position >= config->bert.max_position_embeddings)
        return wg_fail(
            WG_ERROR_ARGUMENT, WHERE,
            "max_position_embeddings %lld leaves no row for a position: pad_token_id %lld "
            "takes the first %lld; give the longest sequence and so many more",
            (long long)config->bert.max_position_embeddings, (long long)config->bert.pad_token_id,
            (long long)first_position);
    return 0;
}

static void *encoder_new(wg_module *parent, const char *name, const void *from, bool pooler) {
    const wg_roberta_config *config = from;
    if (wg__model_config_check(&wg_roberta_type, config) < 0)
        return NULL;
    wg_roberta *model = wg_module_new(parent, name, sizeof *model);
    if (!model)
        return NULL;
    model->config = *config;
    model->bert = wg__bert_new(
        &model->module, "roberta", &config->bert,
        &(wg_bert_options){.no_pooler = true, .first_position = config->bert.pad_token_id + 1});
    if (pooler)
        model->dense = wg_linear_new(
            &model->module, "classifier.dense", config->bert.hidden_size, config->bert.hidden_size,
            &(wg_linear_options){
                .init = {WG_INIT_TRUNCATED_NORMAL, config->bert.initializer_range}});
    return wg_module_finish(&model->module);
}

void *wg__roberta_for_masked_lm_new(const void *from, uint64_t seed) {
    const wg_roberta_config *config = from;
    wg_roberta_for_masked_lm *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    model->module.generator = (wg_generator){.seed = seed};
    model->encoder = encoder_new(&model->module, "", config, false);
    if (model->encoder)
        model->head = wg__bert_predictions_new(&model->module, "lm_head", model->encoder->bert,
                                               WG_ACTIVATION_GELU, "dense", "layer_norm");
    return wg_module_finish(&model->module);
}

/* With a single segment type, only separators tell two texts apart. */
static wg_tensor *encoder_forward(wg_module *encoder, const wg_model_inputs *inputs) {
    wg_bert *bert = ((wg_roberta *)encoder)->bert;
    wg_model_inputs without = *inputs;
    if (bert->config.type_vocab_size == 1)
        without.token_type_ids = NULL;
    return wg__bert_forward(&bert->module, &without);
}

/* tanh(W dropout(hidden[:, 0]) + b): (B, T, C)   ->   (B, C). <s> is never padding. */
static wg_tensor *encoder_pool(wg_module *encoder, wg_tensor *hidden, wg_tensor *keep) {
    (void)keep;
    wg_roberta *model = (wg_roberta *)encoder;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *first =
        wg_dropout(&model->module, wg_select(hidden, 1, 0), model->config.bert.hidden_dropout_prob);
    return wg_scope_end(&scope, wg_tanh(wg_linear_forward(model->dense, first)));
}

static wg_model_head head_of(wg_module *module, wg_tensor *hidden) {
    return wg__bert_predictions_head(((wg_roberta_for_masked_lm *)module)->head, hidden);
}

/* Trained as in the paper, table 9, except for the sizes of batches and runs. Published files of
 * the masked language model hold a pooler, which is ignored. */
const wg_model_type wg_roberta_type = {
    .name = "roberta",
    .model_type = "roberta",
    .aliases = {"xlm-roberta", "camembert"},
    .title = "RoBERTa (Liu et al. 2019)",
    .shape = WG_ENCODER,
    .settings = {WHERE, sizeof(wg_roberta_config), sizeof rows / sizeof rows[0], rows},
    .ignored = WG__KEYS("classifier_dropout", "gradient_checkpointing", "output_past"),
    .presets = presets,
    .bench_preset = "roberta-mini",
    .training = "{\"tokenizer\": \"wordpiece\", \"schedule\": \"linear\", \"beta2\": 0.98, "
                "\"weight-decay\": 0.01}",
    .smallest = "{\"vocab_size\": 9, \"hidden_size\": 4, \"num_hidden_layers\": 2, "
                "\"num_attention_heads\": 2, \"intermediate_size\": 6, "
                "\"max_position_embeddings\": 7}",
    .objectives = "masked-lm",
    .check = check,
    .sizes = wg__bert_sizes,
    .config = wg__encoder_config,
    .names = {.architecture = "RobertaForMaskedLM",
              .classifier = "RobertaForSequenceClassification",
              .answerer = "RobertaForQuestionAnswering",
              .word_classifier = "RobertaForTokenClassification",
              .pooled_head = "classifier.out_proj",
              .prefix = "roberta.",
              .heads = {"lm_head.", "classifier.", "qa_outputs."},
              .ignored = {"embeddings.position_ids", "embeddings.token_type_ids",
                          "roberta.pooler.dense.weight", "roberta.pooler.dense.bias"},
              .optional = {"lm_head.", "classifier.dense."},
              .adapted = {"query", "value"}},
    .create = wg__roberta_for_masked_lm_new,
    .head = head_of,
    .encoder = {.name = "",
                .make = encoder_new,
                .forward = encoder_forward,
                .pool = encoder_pool,
                .of = wg__encoder_of},
};
