/* LLaMA: see llama.h.
 *
 * Letters: B sequences, T positions, C = hidden_size, D = C / num_attention_heads, V = vocab_size.
 */
#include "models/llama.h"

#include <string.h>

#include "models/internal.h"
#include "io/internal.h"

#define WHERE "llama_config" /* in messages */

#define SIZES(vocabulary, width, inner, layers, heads, shared, positions, tied)                    \
    .vocab_size = vocabulary, .hidden_size = width, .intermediate_size = inner,                    \
    .num_hidden_layers = layers, .num_attention_heads = heads, .num_key_value_heads = shared,      \
    .hidden_act = WG_GATE_SWIGLU, .max_position_embeddings = positions, .rms_norm_eps = 1e-5,      \
    .rope_theta = 10000, .initializer_range = 0.02, .tie_word_embeddings = tied,                   \
    .bos_token_id = 1, .eos_token_id = 2

#define PRESET(...)                                                                                \
    &(const wg_llama_config) {                                                                     \
        SIZES(__VA_ARGS__)                                                                         \
    }

/* Two models for small corpora, the four stories models of llama2.c, and LLaMA 7B. */
static const wg_model_preset presets[] = {
    {.name = "llama-3m",
     .config = PRESET(4096, 192, 512, 6, 3, 3, 256, true),
     .training = WG__SMALL_TRAINING,
     .bench = {16, 128, 4096}},
    {.name = "llama-3m-bigrams",
     .config = &(const wg_llama_config){SIZES(4096, 192, 512, 6, 3, 3, 256, true),
                                        .bigram_vocab_size = 65536},
     .training = WG__SMALL_TRAINING,
     .bench = {16, 128, 4096}},
    {.name = "llama-260k",
     .config = PRESET(512, 64, 172, 5, 8, 4, 512, true),
     .bench = {8, 256, 512}},
    {.name = "llama-15m",
     .config = PRESET(32000, 288, 768, 6, 6, 6, 256, true),
     .bench = {8, 256, 32000}},
    {.name = "llama-42m", .config = PRESET(32000, 512, 1376, 8, 8, 8, 1024, true)},
    {.name = "llama-110m",
     .config = PRESET(32000, 768, 2048, 12, 12, 12, 1024, true),
     .bench = {1, 256, 32000}},
    {.name = "llama-7b", .config = PRESET(32000, 4096, 11008, 32, 32, 32, 4096, false)},
    {0},
};

#define AT(key) .name = #key, .offset = offsetof(wg_llama_config, key)

static const wg_setting rows[] = {
    WG__VOCABULARY_ROW,
    WG__WIDTH_ROW(hidden_size),
    {AT(intermediate_size), WG__SIZE, .help = "the inner width of the gated feed-forward net"},
    WG__LAYERS_ROW(num_hidden_layers),
    {AT(num_attention_heads), WG__SIZE, .role = WG__HEADS,
     .help = "heads of queries, a divisor of the width"},
    {AT(num_key_value_heads), WG__SIZE, .derived = "`num_attention_heads`",
     .help = "heads of keys and values, a divisor of the former"},
    {AT(hidden_act), WG__GATE, .standard = "\"silu\"",
     .help = "the gate: `silu`, `sigmoid`, `relu`, `gelu`, `gelu_new` or `linear`"},
    WG__POSITIONS_ROW(max_position_embeddings, "2048", WG__POSITIONS_OF_RUN),
    {AT(rms_norm_eps), WG__POSITIVE, .standard = "1e-6", .help = "added to the mean square"},
    {AT(rope_theta), WG__POSITIVE, .standard = "10000", .help = "the base of the rotary positions"},
    WG__RANGE_ROW,
    {AT(tie_word_embeddings), WG__FLAG, .standard = "false", .help = "the head is the word table"},
    {AT(bos_token_id), WG__MAYBE_TOKEN, .role = WG__BEGIN, .standard = "1",
     .help = "the token that begins a text, -1 for none; `pretrain` fills it in"},
    {AT(eos_token_id), WG__MAYBE_TOKEN, .role = WG__END, .list = true, .standard = "2",
     .help = "the token that ends one, likewise; of a list the first"},
    {WG__NO_MEMBER("rope_scaling"), .derived = "none",
     .help = "an object that stretches the rotary positions: `rope_type` (`linear` or `llama3`), "
             "`factor`, and for llama3 `low_freq_factor`, `high_freq_factor` and "
             "`original_max_position_embeddings`"},
    {WG__NO_MEMBER("rope_parameters"), .derived = "none",
     .help = "the same as transformers 5 writes it, with `rope_theta` in it"},
    WG__BIGRAM_ROW,
    {WG__NO_MEMBER("head_dim"), .derived = "`hidden_size` / `num_attention_heads`",
     .help = "no other value is known"},
    WG__ONLY("attention_bias", "false"),
    WG__ONLY("mlp_bias", "false"),
};

/* Reads rope_scaling, or rope_parameters of transformers 5, which also holds the base. Positions
 * may be stretched: "linear", or "llama3" of LLaMA 3.1. Older files name the key "type". */
static int read_rope(wg_config *rope, wg_llama_config *config) {
    wg_rotary_options *options = &config->rope_scaling;
    const char *type = "default";
    wg__config_number(rope, "rope_theta", &config->rope_theta);
    wg__config_text(rope, "type", &type);
    if (wg__config_text(rope, "rope_type", &type) < 0)
        return -1;
    if (strcmp(type, "default") == 0)
        return wg__config_check(rope, 0, NULL);
    const bool llama3 = strcmp(type, "llama3") == 0;
    if (!llama3 && strcmp(type, "linear") != 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "its rope_type is \"%.64s\"; default, linear and llama3 are known", type);
    static const char *const keys[] = {"factor", "low_freq_factor", "high_freq_factor",
                                       "original_max_position_embeddings"};
    if (wg__config_require(rope, llama3 ? 4 : 1, keys) < 0)
        return -1;
    wg__config_number(rope, keys[0], &options->factor);
    if (llama3) {
        wg__config_number(rope, keys[1], &options->low_frequency_factor);
        wg__config_number(rope, keys[2], &options->high_frequency_factor);
        wg__config_integer(rope, keys[3], &options->original_positions);
    }
    if (wg__config_check(rope, 0, NULL) < 0)
        return -1;
    if (options->factor == 0)
        return wg__settings_refuse(WHERE, "rope_scaling.factor", 0, "above 0");
    return llama3 && options->original_positions == 0
               ? wg__settings_refuse(WHERE, "rope_scaling.original_max_position_embeddings", 0,
                                     "at least 1")
               : 0;
}

static int read_more(wg_config *json, void *read) {
    wg_llama_config *config = read;
    if (!wg__config_has(json, "num_key_value_heads"))
        config->num_key_value_heads = config->num_attention_heads;
    int64_t head = 0;
    const double theta = config->rope_theta;
    wg_config *scaling = wg__config_part(json, "rope_scaling"),
              *parameters = wg__config_part(json, "rope_parameters");
    int status = wg_error_pending() ? -1 : 0;
    if (scaling && parameters)
        status = wg_fail(WG_ERROR_FORMAT, WHERE,
                         "it has both rope_scaling and rope_parameters; leave one of them out");
    else if (scaling || parameters)
        status = read_rope(scaling ? scaling : parameters, config);
    if (status == 0 && wg__config_has(json, "rope_theta") && theta != config->rope_theta)
        status = wg_fail(WG_ERROR_FORMAT, WHERE,
                         "rope_theta is %g, and within rope_parameters %g; leave one of them out",
                         theta, config->rope_theta);
    wg__config_free(scaling);
    wg__config_free(parameters);
    if (status < 0 || wg__config_integer(json, "head_dim", &head) < 0)
        return -1;
    if (!wg__config_has(json, "head_dim") ||
        wg__times(head, config->num_attention_heads) == config->hidden_size)
        return 0;
    return wg_fail(WG_ERROR_FORMAT, WHERE, "head_dim %lld is not hidden_size / num_attention_heads",
                   (long long)head);
}

static int write_more(wg_config *json, const void *written) {
    const wg_rotary_options *options = &((const wg_llama_config *)written)->rope_scaling;
    if (options->factor == 0)
        return 0;
    const bool llama3 = options->original_positions > 0;
    wg_config *scaling = wg__config_new();
    wg__config_set_text(scaling, "rope_type", llama3 ? "llama3" : "linear");
    wg__config_set_number(scaling, "factor", options->factor);
    if (llama3) {
        wg__config_set_number(scaling, "low_freq_factor", options->low_frequency_factor);
        wg__config_set_number(scaling, "high_freq_factor", options->high_frequency_factor);
        wg__config_set_integer(scaling, "original_max_position_embeddings",
                               options->original_positions);
    }
    const int status = wg__config_set_part(json, "rope_scaling", scaling);
    wg__config_free(scaling);
    return status;
}

static int check(const void *checked) {
    const wg_llama_config *config = checked;
    const int64_t width = config->hidden_size, heads = config->num_attention_heads;
    if (wg__check_divides(WHERE, "num_key_value_heads", config->num_key_value_heads,
                          "num_attention_heads", heads) < 0)
        return -1;
    if (width / heads % 2 != 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "heads of width %lld; rotary positions rotate pairs, and need an even one",
                       (long long)(width / heads));
    const wg_rotary_options *scaling = &config->rope_scaling;
    if (scaling->factor != 0 && !(scaling->factor > 0 && isfinite(scaling->factor)))
        return wg__settings_refuse(WHERE, "rope_scaling.factor", scaling->factor, "above 0");
    if (scaling->original_positions == 0)
        return 0;
    if (scaling->original_positions < 0)
        return wg__settings_refuse(WHERE, "rope_scaling.original_max_position_embeddings",
                                   (double)scaling->original_positions, "at least 1");
    const double low = scaling->low_frequency_factor, high = scaling->high_frequency_factor;
    return low > 0 && high > low ? 0
                                 : wg__settings_refuse(WHERE, "rope_scaling.high_freq_factor", high,
                                                       "above low_freq_factor, which is above 0");
}

static void sizes_of(const void *measured, wg_model_sizes *sizes) {
    const wg_llama_config *config = measured;
    sizes->cache_width =
        2 * config->num_key_value_heads * (config->hidden_size / config->num_attention_heads);
}

static void *layer_new(wg_module *parent, const char *name, int64_t index, const void *from) {
    const wg_llama_config *config = from;
    const double range = config->initializer_range;
    const wg_initializer init = {WG_INIT_NORMAL, range},
                         residual = {WG_INIT_NORMAL,
                                     wg__residual_scale(range, 2 * config->num_hidden_layers)};
    (void)index;
    wg_llama_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    const wg_multi_head_attention_options attention = {
        .key_value_heads = config->num_key_value_heads,
        .causal = true,
        .no_bias = true,
        .pairing = WG_ROTARY_HALVES,
        .init = init,
        .output_init = residual,
        .query_name = "q_proj",
        .key_name = "k_proj",
        .value_name = "v_proj",
        .output_name = "o_proj",
    };
    const wg_gated_feed_forward_options feed_forward = {
        .kind = config->hidden_act,
        .init = init,
        .down_init = residual,
    };
    layer->attention = wg_multi_head_attention_new(module, "self_attn", config->hidden_size,
                                                   config->num_attention_heads, &attention);
    layer->feed_forward = wg_gated_feed_forward_new(module, "mlp", config->hidden_size,
                                                    config->intermediate_size, &feed_forward);
    const wg_rms_norm_options norm = {.eps = config->rms_norm_eps};
    layer->input_norm = wg_rms_norm_new(module, "input_layernorm", config->hidden_size, &norm);
    layer->attention_output_norm =
        wg_rms_norm_new(module, "post_attention_layernorm", config->hidden_size, &norm);
    return wg_module_finish(module);
}

static void llama_destroy(wg_module *module) {
    wg_release(((wg_llama *)module)->cos);
    wg_release(((wg_llama *)module)->sin);
}

void *wg__llama_new(const void *from, uint64_t seed) {
    const wg_llama_config *config = from;
    wg_llama *model = wg__model_root(&wg_llama_type, config, sizeof *model, seed);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    module->destroy = llama_destroy;
    const wg_initializer init = {WG_INIT_NORMAL, config->initializer_range};
    model->embedding = wg_embedding_new(module, "model.embed_tokens", config->vocab_size,
                                        config->hidden_size, &(wg_embedding_options){.init = init});
    model->bigrams = wg__bigrams_new(module, "model.embed_bigrams", config->bigram_vocab_size,
                                     config->hidden_size);
    model->layers =
        wg__layers_new(module, "model.layers", config->num_hidden_layers, layer_new, config);
    const wg_rms_norm_options norm = {.eps = config->rms_norm_eps};
    model->norm = wg_rms_norm_new(module, "model.norm", config->hidden_size, &norm);
    const wg_linear_options head = {.no_bias = true,
                                    .init = init,
                                    .tied_weight = config->tie_word_embeddings && model->embedding
                                                       ? model->embedding->weight
                                                       : NULL};
    model->head = wg_linear_new(module, "lm_head", config->hidden_size, config->vocab_size, &head);
    wg_rotary_options rotary = config->rope_scaling;
    rotary.base = config->rope_theta;
    wg__keep_rotary(config->hidden_size / config->num_attention_heads,
                    config->max_position_embeddings, &rotary, &model->cos, &model->sin);
    return wg_module_finish(module);
}

static wg_tensor *layer_forward(void *layers, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_llama_layer *layer = ((wg_llama_layer **)layers)[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *attended = wg_multi_head_attention_forward(
        layer->attention, wg_rms_norm_forward(layer->input_norm, x), &inputs->self);
    x = wg_add(x, attended);
    wg_tensor *fed = wg_gated_feed_forward_forward(
        layer->feed_forward, wg_rms_norm_forward(layer->attention_output_norm, x));
    return wg_scope_end(&scope, wg_add(x, fed));
}

static wg_tensor *forward(wg_module *module, const wg_model_inputs *inputs) {
    wg_llama *model = (wg_llama *)module;
    const wg_llama_config *config = &model->config;
    const int64_t first = wg__first_position("llama", inputs, config->max_position_embeddings);
    if (first < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_dtype dtype = wg_tensor_dtype(model->embedding->weight);
    const wg_stack_inputs stack_inputs = {
        .self = {.mask = wg_padding_mask(inputs->keep),
                 .cos = wg__rotary_rows(model->cos, inputs, first, dtype),
                 .sin = wg__rotary_rows(model->sin, inputs, first, dtype)},
        .self_caches = inputs->caches,
    };
    wg_tensor *words = wg_embedding_forward(model->embedding, inputs->ids);
    wg_tensor *x = wg_stack_forward(module, config->num_hidden_layers, layer_forward, model->layers,
                                    wg__add_bigrams(model->bigrams, words, inputs), &stack_inputs);
    return wg_scope_end(&scope, wg_rms_norm_forward(model->norm, x));
}

static wg_model_head head_of(wg_module *module, wg_tensor *hidden) {
    return (wg_model_head){.linear = ((wg_llama *)module)->head, .hidden = hidden};
}

const wg_model_type wg_llama_type = {
    .name = "llama",
    .model_type = "llama",
    .title = "LLaMA (Touvron et al. 2023)",
    .shape = WG_DECODER,
    .settings = {WHERE, sizeof(wg_llama_config), sizeof rows / sizeof rows[0], rows},
    .ignored = WG__KEYS("attention_dropout", "pad_token_id", "pretraining_tp"),
    .presets = presets,
    .bench_preset = "llama-15m",
    .training = WG__DECODER_TRAINING,
    .smallest = "{\"vocab_size\": 9, \"hidden_size\": 8, \"num_hidden_layers\": 2, "
                "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
                "\"intermediate_size\": 5, \"max_position_embeddings\": 5, "
                "\"bos_token_id\": 1, \"eos_token_id\": 2}",
    .objectives = "causal-lm",
    .read_more = read_more,
    .write_more = write_more,
    .check = check,
    .sizes = sizes_of,
    .config = wg__root_config,
    .names = {.architecture = "LlamaForCausalLM",
              .marker = ".mlp.gate_proj.",
              .prefix = "model.",
              .heads = {"lm_head."},
              .ignored = {".rotary_emb.inv_freq"},
              .adapted = {"q_proj", "v_proj"}},
    .create = wg__llama_new,
    .forward = forward,
    .head = head_of,
};
