/* ModernBERT: see modernbert.h.
 *
 * Letters: B sequences, T positions, C = hidden_size, D = C / num_attention_heads, N layers,
 * V = vocab_size. */
#include "models/modernbert.h"

#include <string.h>

#include "io/internal.h"
#include "models/internal.h"
#include "tensor/easy.h"

#define WHERE "modernbert_config" /* in messages */

#define SIZES(layers, width, heads, inner, positions, pooling)                                     \
    .vocab_size = 50368, .hidden_size = width, .intermediate_size = inner,                         \
    .num_hidden_layers = layers, .num_attention_heads = heads, .hidden_activation = WG_GATE_GEGLU, \
    .max_position_embeddings = positions, .initializer_range = 0.02, .norm_eps = 1e-5,             \
    .global_rope_theta = 160000, .local_rope_theta = 10000, .local_attention = 128,                \
    .global_attn_every_n_layers = 3, .decoder_bias = true, .pad_token_id = 50283,                  \
    .bos_token_id = 50281, .eos_token_id = 50282, .cls_token_id = 50281, .sep_token_id = 50282,    \
    .classifier_pooling = WG_POOLING_##pooling

#define PRESET(...)                                                                                \
    &(const wg_modernbert_config) {                                                                \
        SIZES(__VA_ARGS__)                                                                         \
    }

/* Two models for small corpora, two small ones, and answerdotai/ModernBERT-base. Classifiers of the
 * first two read the mean of all positions, since [CLS] does not learn to sum up a text within a
 * few hours of training. */
static const wg_model_preset presets[] = {
    {.name = "modernbert-3m",
     .config = PRESET(6, 192, 3, 512, 256, MEAN),
     .training = WG__SMALL_TRAINING,
     .bench = {16, 128, 4096}},
    {.name = "modernbert-3m-bigrams",
     .config = &(const wg_modernbert_config){SIZES(6, 192, 3, 512, 256, MEAN),
                                             .bigram_vocab_size = 65536},
     .training = WG__SMALL_TRAINING,
     .bench = {16, 128, 4096}},
    {.name = "modernbert-mini",
     .config = PRESET(6, 256, 4, 768, 512, CLS),
     .bench = {32, 128, 30522}},
    {.name = "modernbert-small", .config = PRESET(12, 384, 6, 576, 1024, CLS)},
    {.name = "modernbert-base",
     .config = PRESET(22, 768, 12, 1152, 8192, CLS),
     .bench = {4, 128, 50368}},
    {0},
};

static const char *pooling_choice(int value) {
    static const char *const names[] = {[WG_POOLING_CLS] = "cls", [WG_POOLING_MEAN] = "mean"};
    return value >= 0 && value < 2 ? names[value] : NULL;
}

#define AT(key) .name = #key, .offset = offsetof(wg_modernbert_config, key)

static const wg_setting rows[] = {
    WG__VOCABULARY_ROW,
    WG__WIDTH_ROW(hidden_size),
    {AT(intermediate_size), WG__SIZE, .help = "the inner width of the gated feed-forward net"},
    WG__LAYERS_ROW(num_hidden_layers),
    {AT(num_attention_heads), WG__SIZE, .role = WG__HEADS, .help = "heads, a divisor of the width"},
    {AT(hidden_activation), WG__GATE, .standard = "\"gelu\"",
     .help = "the gate: `silu`, `sigmoid`, `relu`, `gelu`, `gelu_new` or `linear`"},
    WG__POSITIONS_ROW(max_position_embeddings, "8192", WG__POSITIONS_RAISED),
    WG__RANGE_ROW,
    {AT(norm_eps), WG__POSITIVE, .standard = "1e-5", .help = "added to the variance"},
    {AT(norm_bias), WG__FLAG, .standard = "false", .help = "norms have biases"},
    {AT(global_rope_theta), WG__POSITIVE, .standard = "160000",
     .help = "the base of the rotary positions of layers that see all positions"},
    {AT(local_rope_theta), WG__POSITIVE, .standard = "10000",
     .help = "the base of layers that see near positions"},
    {AT(local_attention), .kind = WG_SETTING_INTEGER, .low = 2, .high = INT32_MAX,
     .standard = "128", .help = "positions that a local layer sees, half of them on each side"},
    {AT(global_attn_every_n_layers), WG__SIZE, .standard = "3",
     .help = "layers 0, N, 2 N... see all positions"},
    {AT(attention_bias), WG__FLAG, .standard = "false",
     .help = "attention's projections have biases"},
    {AT(mlp_bias), WG__FLAG, .standard = "false", .help = "the feed-forward net has biases"},
    {AT(decoder_bias), WG__FLAG, .standard = "true", .help = "the logits have a bias"},
    {AT(classifier_bias), WG__FLAG, .standard = "false", .help = "the head has a bias"},
    {AT(attention_dropout), WG__PROBABILITY, .standard = "0",
     .help = "dropout of attention weights and of attention's output"},
    {AT(embedding_dropout), WG__PROBABILITY, .standard = "0", .help = "dropout of embeddings"},
    {AT(mlp_dropout), WG__PROBABILITY, .standard = "0",
     .help = "dropout of the feed-forward net's inner activations"},
    {AT(classifier_dropout), WG__PROBABILITY, .standard = "0",
     .help = "dropout of a classifier's input"},
    {AT(classifier_activation), WG__ACTIVATION, .standard = "\"gelu\"",
     .help = "the activation of the head"},
    {AT(classifier_pooling), .kind = WG_SETTING_CHOICE, .choice = pooling_choice,
     .standard = "\"cls\"",
     .help = "the input of a classifier: the first position, `cls`, or the `mean` of all"},
    {AT(pad_token_id), WG__MAYBE_TOKEN, .role = WG__PAD, .standard = "50283",
     .help = "the token whose embedding stays 0, -1 for none; `pretrain` fills it in"},
    {AT(bos_token_id), WG__MAYBE_TOKEN, .role = WG__CLASS, .standard = "50281",
     .help = "begins a text; likewise"},
    {AT(eos_token_id), WG__MAYBE_TOKEN, .role = WG__SEPARATOR, .standard = "50282",
     .help = "ends a text; likewise"},
    {AT(cls_token_id), WG__MAYBE_TOKEN, .role = WG__CLASS, .standard = "50281",
     .help = "the first token of a sequence; likewise"},
    {AT(sep_token_id), WG__MAYBE_TOKEN, .role = WG__SEPARATOR, .standard = "50282",
     .help = "the token behind each text; likewise"},
    WG__BIGRAM_ROW,
    {WG__NO_MEMBER("layer_types"), .derived = "as `global_attn_every_n_layers` says",
     .help =
         "as transformers 5 writes it: a list of `full_attention` and `sliding_attention`, with "
         "every N-th layer the former"},
    {WG__NO_MEMBER("rope_parameters"), .derived = "`global_rope_theta` and `local_rope_theta`",
     .help = "as transformers 5 writes them: `rope_theta` of `full_attention` and of "
             "`sliding_attention`"},
    WG__ONLY("initializer_cutoff_factor", "2"),
    WG__ONLY("tie_word_embeddings", "true"),
};

/* The names of global and local layers in transformers 5. */
static const char *const kinds[] = {"full_attention", "sliding_attention"};

static const char *kind_at(const json_t *types, int64_t layer) {
    const char *kind = json_string_value(json_array_get(types, (size_t)layer));
    return kind ? kind : "";
}

/* The kind of each layer. Only one pattern is known: every N-th is global. */
static int read_more(wg_config *json, void *read) {
    wg_modernbert_config *config = read;
    static const char *const keys[] = {"global_rope_theta", "local_rope_theta"};
    double *const thetas[] = {&config->global_rope_theta, &config->local_rope_theta};
    wg_config *rope = wg__config_part(json, "rope_parameters");
    int status = wg_error_pending() ? -1 : 0;
    for (int i = 0; rope && status == 0 && i < 2; i++) {
        const double theta = *thetas[i];
        const char *type = "default";
        wg_config *part = wg__config_part(rope, kinds[i]);
        int result = part ? wg__config_number(part, "rope_theta", thetas[i]) : 0;
        if (part && wg__config_text(part, "rope_type", &type) == 0 && strcmp(type, "default") != 0)
            result = wg_fail(WG_ERROR_FORMAT, WHERE,
                             "rope_type of %s is \"%.64s\"; only default is known", kinds[i], type);
        if (part && result == 0)
            result = wg__config_check(part, 0, NULL);
        wg__config_free(part);
        status = wg_error_pending() ? -1 : result;
        if (status == 0 && wg__config_has(json, keys[i]) && theta != *thetas[i])
            status = wg_fail(WG_ERROR_FORMAT, WHERE,
                             "%s is %g, and rope_theta of %s %g; leave one of them out", keys[i],
                             theta, kinds[i], *thetas[i]);
    }
    if (rope && status == 0)
        status = wg__config_check(rope, 0, NULL);
    wg__config_free(rope);
    if (status < 0)
        return -1;
    const json_t *types = wg__config_value(json, "layer_types");
    const int64_t layers = config->num_hidden_layers;
    int64_t *every = &config->global_attn_every_n_layers;
    if (!types)
        return 0;
    if ((int64_t)json_array_size(types) != layers)
        return wg__config_refuse_value(json, "layer_types", types,
                                       "a list of num_hidden_layers kinds");
    if (!wg__config_has(json, "global_attn_every_n_layers")) {
        int64_t layer = 1;
        while (layer < (int64_t)json_array_size(types) &&
               strcmp(kind_at(types, layer), kinds[0]) != 0)
            layer++;
        *every = layer;
    }
    for (int64_t i = 0; i < layers; i++) {
        const char *wanted = kinds[*every > 0 && i % *every != 0];
        if (strcmp(kind_at(types, i), wanted) != 0)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "layer_types[%lld] is \"%.64s\"; wanted \"%s\", as every N-th layer is "
                           "full_attention and the others are sliding_attention",
                           (long long)i, kind_at(types, i), wanted);
    }
    return 0;
}

static int check(const void *checked) {
    const wg_modernbert_config *config = checked;
    const int64_t width = config->hidden_size / config->num_attention_heads;
    if (width % 2 == 0)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "num_attention_heads %lld leaves heads of width %lld; rotary positions need an "
                   "even one",
                   (long long)config->num_attention_heads, (long long)width);
}

static void sizes_of(const void *measured, wg_model_sizes *sizes) {
    const wg_modernbert_config *config = measured;
    sizes->start_id = config->bos_token_id;
    sizes->end_id = config->eos_token_id;
    sizes->head_dropout = config->classifier_dropout;
    sizes->pools_first = config->classifier_pooling == WG_POOLING_CLS;
    sizes->head_init =
        (wg_initializer){WG_INIT_TRUNCATED_NORMAL, 1 / sqrt((double)config->hidden_size)};
}

static void *layer_new(wg_module *parent, const char *name, int64_t index, const void *from) {
    const wg_modernbert_config *config = from;
    wg_modernbert_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    layer->local = index % config->global_attn_every_n_layers != 0;
    layer->dropout = config->attention_dropout;
    const int64_t width = config->hidden_size;
    const double range = config->initializer_range;
    const wg_initializer init = {WG_INIT_TRUNCATED_NORMAL, range},
                         residual = {WG_INIT_TRUNCATED_NORMAL,
                                     wg__residual_scale(range, 2 * config->num_hidden_layers)};
    const wg_layer_norm_options norm = {.eps = config->norm_eps, .no_bias = !config->norm_bias};
    const wg_multi_head_attention_options attention = {
        .dropout = config->attention_dropout,
        .no_bias = !config->attention_bias,
        .joint = true,
        .pairing = WG_ROTARY_HALVES,
        .init = init,
        .output_init = residual,
        .joint_name = "Wqkv",
        .output_name = "Wo",
    };
    const wg_gated_feed_forward_options feed_forward = {
        .kind = config->hidden_activation,
        .dropout = config->mlp_dropout,
        .bias = config->mlp_bias,
        .joint = true,
        .init = init,
        .down_init = residual,
        .joint_name = "Wi",
        .down_name = "Wo",
    };
    if (index > 0)
        layer->attention_norm = wg_layer_norm_new(module, "attn_norm", width, &norm);
    layer->attention =
        wg_multi_head_attention_new(module, "attn", width, config->num_attention_heads, &attention);
    layer->feed_forward_norm = wg_layer_norm_new(module, "mlp_norm", width, &norm);
    layer->feed_forward =
        wg_gated_feed_forward_new(module, "mlp", width, config->intermediate_size, &feed_forward);
    return wg_module_finish(module);
}

static void modernbert_destroy(wg_module *module) {
    wg_modernbert *model = (wg_modernbert *)module;
    for (int local = 0; local < 2; local++) {
        wg_release(model->cos[local]);
        wg_release(model->sin[local]);
    }
}

void *wg__modernbert_new(wg_module *parent, const char *name, const void *from, bool pooler) {
    (void)pooler; /* the head is there in any case */
    const wg_modernbert_config *config = from;
    if (wg__model_config_check(&wg_modernbert_type, config) < 0)
        return NULL;
    wg_modernbert *model = wg_module_new(parent, name, sizeof *model);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    module->destroy = modernbert_destroy;
    model->config = *config;
    const int64_t width = config->hidden_size;
    const double range = config->initializer_range;
    const wg_layer_norm_options norm = {.eps = config->norm_eps, .no_bias = !config->norm_bias};
    const wg_embedding_options words = {.init = {WG_INIT_TRUNCATED_NORMAL, range},
                                        .has_padding = config->pad_token_id >= 0,
                                        .padding_index = config->pad_token_id};
    model->embedding = wg_embedding_new(module, "model.embeddings.tok_embeddings",
                                        config->vocab_size, width, &words);
    model->bigrams = wg__bigrams_new(module, "model.embeddings.bigram_embeddings",
                                     config->bigram_vocab_size, width);
    model->embedding_norm = wg_layer_norm_new(module, "model.embeddings.norm", width, &norm);
    model->layers =
        wg__layers_new(module, "model.layers", config->num_hidden_layers, layer_new, config);
    model->final_norm = wg_layer_norm_new(module, "model.final_norm", width, &norm);
    const wg_linear_options dense = {
        .no_bias = !config->classifier_bias,
        .init = {WG_INIT_TRUNCATED_NORMAL,
                 wg__residual_scale(range, 2 * config->num_hidden_layers)}};
    model->head = wg_linear_new(module, "head.dense", width, width, &dense);
    model->head_norm = wg_layer_norm_new(module, "head.norm", width, &norm);
    const double thetas[] = {config->global_rope_theta, config->local_rope_theta};
    for (int local = 0; local < 2; local++)
        wg__keep_rotary(width / config->num_attention_heads, config->max_position_embeddings,
                        &(wg_rotary_options){.base = thetas[local]}, &model->cos[local],
                        &model->sin[local]);
    return wg_module_finish(module);
}

void *wg__modernbert_for_masked_lm_new(const void *from, uint64_t seed) {
    const wg_modernbert_config *config = from;
    wg_modernbert_for_masked_lm *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    model->module.generator = (wg_generator){.seed = seed};
    model->encoder = wg__modernbert_new(&model->module, "", config, true);
    if (model->encoder) {
        const wg_linear_options tied = {.no_bias = !config->decoder_bias,
                                        .tied_weight = model->encoder->embedding->weight};
        model->decoder = wg_linear_new(&model->module, "decoder", config->hidden_size,
                                       config->vocab_size, &tied);
    }
    return wg_module_finish(&model->module);
}

/* inputs->self holds the masks of global layers; inputs->memory, which the model has no other use
 * for, the masks of local layers. */
static wg_tensor *layer_forward(void *layers, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_modernbert_layer *layer = ((wg_modernbert_layer **)layers)[index];
    wg_attention_inputs attention = layer->local ? inputs->memory : inputs->self;
    attention.cache = inputs->self.cache;
    attention.output_positions = inputs->self.output_positions;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *normalized =
        layer->attention_norm ? wg_layer_norm_forward(layer->attention_norm, x) : x;
    wg_tensor *attended = wg_multi_head_attention_forward(layer->attention, normalized, &attention);
    x = wg_add(wg__stack_output_rows(x, inputs),
               wg_dropout(&layer->module, attended, layer->dropout));
    wg_tensor *fed = wg_gated_feed_forward_forward(
        layer->feed_forward, wg_layer_norm_forward(layer->feed_forward_norm, x));
    return wg_scope_end(&scope, wg_add(x, fed));
}

/* The inputs of attention in global (local = 0) or local (1) layers, besides x. */
static wg_attention_inputs attention_inputs(const wg_modernbert *model, int local,
                                            const wg_model_inputs *inputs, int64_t first) {
    const wg_dtype dtype = wg_tensor_dtype(model->embedding->weight);
    return (wg_attention_inputs){.mask = wg_padding_mask(inputs->keep),
                                 .causal = inputs->causal,
                                 .window = local ? model->config.local_attention / 2 : 0,
                                 .cos = wg__rotary_rows(model->cos[local], inputs, first, dtype),
                                 .sin = wg__rotary_rows(model->sin[local], inputs, first, dtype),
                                 .output_positions = inputs->output_positions};
}

static wg_tensor *embed(wg_modernbert *model, const wg_model_inputs *inputs) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *words = inputs->embeddings ? inputs->embeddings
                                          : wg_embedding_forward(model->embedding, inputs->ids);
    words = wg__add_bigrams(model->bigrams, words, inputs);
    wg_tensor *x = wg_layer_norm_forward(model->embedding_norm, words);
    return wg_scope_end(&scope, wg_dropout(&model->module, x, model->config.embedding_dropout));
}

wg_tensor *wg__modernbert_forward(wg_module *module, const wg_model_inputs *inputs) {
    wg_modernbert *model = (wg_modernbert *)module;
    const wg_modernbert_config *config = &model->config;
    const int64_t first = wg__first_position("modernbert", inputs, config->max_position_embeddings);
    if (first < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs stack_inputs = {.self = attention_inputs(model, 0, inputs, first),
                                          .memory = attention_inputs(model, 1, inputs, first),
                                          .self_caches = inputs->caches};
    wg_tensor *x = wg_stack_forward(module, config->num_hidden_layers, layer_forward, model->layers,
                                    embed(model, inputs), &stack_inputs);
    return wg_scope_end(&scope, wg_layer_norm_forward(model->final_norm, x));
}

wg_tensor *wg__modernbert_head(wg_module *encoder, wg_tensor *x) {
    wg_modernbert *model = (wg_modernbert *)encoder;
    wg_scope scope;
    wg_scope_begin(&scope);
    x = wg_activate(model->config.classifier_activation, wg_linear_forward(model->head, x));
    return wg_scope_end(&scope, wg_layer_norm_forward(model->head_norm, x));
}

wg_tensor *wg__modernbert_pool(wg_module *encoder, wg_tensor *hidden, wg_tensor *keep) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *pooled;
    if (((wg_modernbert *)encoder)->config.classifier_pooling == WG_POOLING_CLS)
        pooled = wg_select(hidden, 1, 0);
    else if (!keep || !hidden)
        pooled = wg_mean(hidden, WG_DIMS(1), false);
    else { /* the mean over the positions that `keep` has: (B, T, C)   ->   (B, C) */
        wg_tensor *kept = wg_unsqueeze(wg_cast(keep, wg_tensor_dtype(hidden)), -1);
        pooled = wg_div(wg_sum(wg_mul(hidden, kept), WG_DIMS(1), false),
                        wg_sum(kept, WG_DIMS(1), false));
    }
    return wg_scope_end(&scope, wg__modernbert_head(encoder, pooled));
}

static wg_model_head head_of(wg_module *module, wg_tensor *hidden) {
    const wg_modernbert_for_masked_lm *model = (wg_modernbert_for_masked_lm *)module;
    return (wg_model_head){.linear = model->decoder,
                           .hidden = wg__modernbert_head(&model->encoder->module, hidden)};
}

/* Trained as in the paper, appendix A, but for its optimizer, StableAdamW: the rate rises, stays,
 * and falls. */
const wg_model_type wg_modernbert_type = {
    .name = "modernbert",
    .model_type = "modernbert",
    .title = "ModernBERT (Warner et al. 2024)",
    .shape = WG_ENCODER,
    .settings = {WHERE, sizeof(wg_modernbert_config), sizeof rows / sizeof rows[0], rows},
    .ignored = WG__KEYS("deterministic_flash_attn", "gradient_checkpointing", "layer_norm_eps",
                        "position_embedding_type", "reference_compile", "repad_logits_with_grad",
                        "sparse_pred_ignore_index", "sparse_prediction"),
    .presets = presets,
    .bench_preset = "modernbert-mini",
    .training = "{\"tokenizer\": \"wordpiece\", \"schedule\": \"wsd\", \"beta2\": 0.98, "
                "\"weight-decay\": 1e-5}",
    .smallest = "{\"vocab_size\": 9, \"hidden_size\": 4, \"num_hidden_layers\": 2, "
                "\"num_attention_heads\": 2, \"intermediate_size\": 5, "
                "\"max_position_embeddings\": 5, \"global_attn_every_n_layers\": 2, "
                "\"local_attention\": 2, \"attention_dropout\": 0.1, \"mlp_dropout\": 0.1, "
                "\"embedding_dropout\": 0.1, \"pad_token_id\": 0, \"bos_token_id\": 1, "
                "\"eos_token_id\": 2, \"cls_token_id\": 1, \"sep_token_id\": 2}",
    .objectives = "masked-lm",
    .read_more = read_more,
    .check = check,
    .sizes = sizes_of,
    .config = wg__encoder_config,
    .names = {.architecture = "ModernBertForMaskedLM",
              .classifier = "ModernBertForSequenceClassification",
              .answerer = "ModernBertForQuestionAnswering",
              .word_classifier = "ModernBertForTokenClassification",
              .answers = "classifier",
              .marker = ".attn.Wqkv.",
              .prefix = "model.",
              .heads = {"head.", "decoder.", "classifier."},
              .optional = {"head.", "decoder."},
              .adapted = {"Wqkv"}},
    .create = wg__modernbert_for_masked_lm_new,
    .head = head_of,
    .encoder = {.name = "",
                .make = wg__modernbert_new,
                .forward = wg__modernbert_forward,
                .takes_causal = true,
                .pool = wg__modernbert_pool,
                .states = wg__modernbert_head,
                .of = wg__encoder_of},
};
