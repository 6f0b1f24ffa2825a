/* ModernBERT against PyTorch (tests/fixtures/modernbert.py): what its layers see, causal masks,
 * caches, heads, configurations. A case of the suite "modernbert" is a folder of the fixture. */
#include "models/modernbert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "models/bert.h"
#include "models/heads.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "models/internal.h"

/* The sizes of the fixture. A local layer sees 3 positions on each side. */
enum { B = 3, T = 11, VOCAB = 48, POSITIONS = 16, LAYERS = 5, WINDOW = 6 };

/* ---- The models of the fixture ---- */

static const struct {
    const char *name, *folder;
    bool biased;
} models[] = {{"published", "modernbert/published", false}, {"biased", "modernbert/biased", true}};

static const char *model_name(int index) {
    return models[index].name;
}

static wg_modernbert_config config_of(int index) {
    wg_modernbert_config config;
    wg_model_preset_config(&wg_modernbert_type, "modernbert-mini", &config);
    config.vocab_size = VOCAB;
    config.hidden_size = 16;
    config.intermediate_size = 24;
    config.num_hidden_layers = LAYERS;
    config.num_attention_heads = 4;
    config.max_position_embeddings = POSITIONS;
    config.local_attention = WINDOW;
    config.norm_bias = config.attention_bias = config.mlp_bias = config.classifier_bias =
        models[index].biased;
    config.pad_token_id = config.bos_token_id = config.eos_token_id = 0;
    config.cls_token_id = config.sep_token_id = 0;
    return config;
}

static wg_model model_of(const wg_modernbert_config *config) {
    return (wg_model){.type = &wg_modernbert_type,
                      .module = wg__modernbert_for_masked_lm_new(config, 1)};
}

static wg_tensor *load(int index, const char *name) {
    return fixture_tensor("%s/%s", models[index].folder, name);
}

static wg_model load_model(int index, wg_dtype dtype) {
    const wg_modernbert_config config = config_of(index);
    wg_model model = model_of(&config);
    load_model_fixture(models[index].folder, model.module, dtype);
    return model;
}

static wg_modernbert *encoder_of(const wg_model *model) {
    return ((wg_modernbert_for_masked_lm *)model->module)->encoder;
}

static void free_model(wg_model *model) {
    wg_scope_clear_root();
    wg_module_free(model->module);
}

static wg_model_inputs load_inputs(int index) {
    return (wg_model_inputs){.ids = load(index, "ids"), .keep = load(index, "keep")};
}

static wg_tensor *logits_of(const wg_model *model, const wg_model_inputs *inputs) {
    return wg_detach(wg_model_logits(model, wg_model_forward(model, inputs), NULL));
}

/* Logits at padding are 0 in the fixture. */
static wg_tensor *without_padding(int index, wg_tensor *logits) {
    wg_tensor *keep = wg_unsqueeze(load(index, "keep"), -1);
    return wg_mul(logits, wg_cast(keep, wg_tensor_dtype(logits)));
}

/* ---- Beside PyTorch ---- */

static wg_tensor *loss_of(const wg_model *model, int index) {
    const wg_model_inputs inputs = load_inputs(index);
    return wg_model_loss(model, wg_model_forward(model, &inputs), NULL, load(index, "labels"),
                         NULL);
}

static void check_model(int index, wg_dtype dtype, double tolerance) {
    wg_model model = load_model(index, dtype);
    const wg_model_inputs inputs = load_inputs(index);
    assert_relative(without_padding(index, logits_of(&model, &inputs)), load(index, "logits"),
                    tolerance);
    wg_tensor *loss = loss_of(&model, index);
    assert_relative(wg_detach(loss), wg_select(load(index, "loss"), 0, 0), tolerance);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    assert_model_gradients(models[index].folder, model.module, tolerance);
    free_model(&model);
}

START_TEST(logits_loss_and_every_gradient_equal_pytorch) {
    check_model(_i, WG_F64, 1e-10);
    check_model(_i, WG_F32, 1e-5);
}
END_TEST

START_TEST(causal_logits_equal_pytorch) {
    wg_model model = load_model(_i, WG_F64);
    wg_model_inputs inputs = load_inputs(_i);
    inputs.causal = true;
    assert_relative(without_padding(_i, logits_of(&model, &inputs)), load(_i, "causal_logits"),
                    1e-10);
    free_model(&model);
}
END_TEST

START_TEST(pooled_states_equal_pytorch) {
    static const char *const names[] = {"pooled_cls", "pooled_mean"};
    wg_model model = load_model(_i, WG_F64);
    wg_modernbert *encoder = encoder_of(&model);
    const wg_model_inputs inputs = load_inputs(_i);
    for (int pooling = 0; pooling < 2; pooling++) {
        encoder->config.classifier_pooling = (wg_pooling)pooling;
        wg_tensor *hidden = wg__modernbert_forward(&encoder->module, &inputs);
        assert_relative(wg_detach(wg__modernbert_pool(&encoder->module, hidden, inputs.keep)),
                        load(_i, names[pooling]), 1e-10);
    }
    free_model(&model);
}
END_TEST

typedef struct fixture_model {
    wg_model model;
    int index;
} fixture_model;

static wg_tensor *fixture_loss(void *context) {
    const fixture_model *fixture = context;
    return loss_of(&fixture->model, fixture->index);
}

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    fixture_model trained = {load_model(_i, WG_F32), _i};
    const wg_adamw_options options = {.beta2 = 0.95, .weight_decay = 0.1};
    assert_model_training(models[_i].folder, trained.model.module, wg_adamw_new(&options),
                          fixture_loss, &trained, 1e-4);
    free_model(&trained.model);
}
END_TEST

START_TEST(parameters_have_the_published_paths_and_shapes) {
    const wg_modernbert_config config = config_of(_i);
    wg_model model = model_of(&config);
    assert_model_paths(models[_i].folder, model.module);
    free_model(&model);
}
END_TEST

/* ---- What a position sees ---- */

static double largest_difference(wg_tensor *a, wg_tensor *b) {
    return wg_item(wg_max(wg_abs(wg_sub(a, b)), WG_ALL, false));
}

/* ids with other tokens from place `t` on: 1 .. VOCAB - 1 the other way round. */
static wg_tensor *changed_from(wg_tensor *ids, int64_t t) {
    wg_tensor *changed = wg_clone(ids);
    wg_tensor *end = wg_slice(changed, 1, t, WG_END, 1);
    wg_copy_(end, wg_sub(wg_scalar(WG_I64, VOCAB), end));
    return changed;
}

START_TEST(a_causal_logit_does_not_depend_on_later_tokens) {
    wg_model model = load_model(_i, WG_F32);
    wg_set_grad_enabled(false);
    wg_tensor *ids = wg_slice(load(_i, "ids"), 0, 0, 1, 1); /* the text without padding */
    wg_model_inputs inputs = {.ids = ids, .causal = true};
    wg_tensor *wanted = logits_of(&model, &inputs);
    for (int64_t t = 1; t < T; t++) {
        inputs.ids = changed_from(ids, t);
        wg_tensor *logits = logits_of(&model, &inputs);
        assert_close(wg_slice(logits, 1, 0, t, 1), wg_slice(wanted, 1, 0, t, 1), 0, 0);
        ck_assert_double_gt(largest_difference(wg_select(logits, 1, t), wg_select(wanted, 1, t)),
                            1e-3);
    }
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

START_TEST(a_cache_gives_token_by_token_the_causal_logits_of_all_at_once) {
    wg_model model = load_model(_i, WG_F32);
    wg_kv_cache caches[LAYERS];
    wg_tensor *ids = load(_i, "ids"), *parts[T];
    wg_set_grad_enabled(false);
    wg_tensor *all = logits_of(&model, &(wg_model_inputs){.ids = ids, .causal = true});
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_init(&caches[i], POSITIONS);
    int count = 0;
    for (int64_t begin = 0, step = 4; begin < T; begin += step, step = 1) {
        const wg_model_inputs inputs = {
            .ids = wg_slice(ids, 1, begin, begin + step, 1), .caches = caches, .causal = true};
        parts[count++] = logits_of(&model, &inputs);
    }
    assert_relative(wg_cat(count, parts, 1), all, 1e-5);
    wg_set_grad_enabled(true);
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_clear(&caches[i]);
    free_model(&model);
}
END_TEST

/* A shorter text in a batch may begin with padding, which is masked, and has positions of its own.
 */
START_TEST(padding_in_front_changes_nothing) {
    enum { PADDING = 3 };
    wg_model model = load_model(_i, WG_F32);
    wg_set_grad_enabled(false);
    for (int causal = 0; causal < 2; causal++) {
        wg_tensor *text = wg_slice(load(_i, "ids"), 0, 0, 1, 1);
        const wg_model_inputs bare = {.ids = text, .causal = causal};
        wg_tensor *front = wg_zeros(WG_I64, WG_DIMS(1, PADDING));
        wg_tensor *keep = wg_ones(WG_BOOL, WG_DIMS(1, T + PADDING));
        wg_copy_(wg_slice(keep, 1, 0, PADDING, 1), wg_zeros(WG_BOOL, WG_DIMS(1)));
        wg_tensor *positions = wg_relu(wg_arange(WG_I64, -PADDING, T, 1));
        const wg_model_inputs inputs = {.ids = wg_cat(2, (wg_tensor *[]){front, text}, 1),
                                        .keep = keep,
                                        .position_ids = wg_unsqueeze(positions, 0),
                                        .causal = causal};
        assert_relative(wg_slice(logits_of(&model, &inputs), 1, PADDING, WG_END, 1),
                        logits_of(&model, &bare), 1e-5);
    }
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

/* Reach T - 1 covers the text, and needs no mask; T - 2 leaves out the corners. */
START_TEST(a_window_that_covers_the_text_hides_nothing) {
    wg_model model = load_model(_i, WG_F32);
    wg_modernbert_config *config = &encoder_of(&model)->config;
    const wg_model_inputs inputs = {.ids = load(_i, "ids")};
    wg_set_grad_enabled(false);
    config->local_attention = 1000;
    wg_tensor *all = logits_of(&model, &inputs);
    config->local_attention = 2 * (T - 1);
    assert_close(logits_of(&model, &inputs), all, 0, 0);
    config->local_attention = 2 * (T - 2);
    ck_assert_double_gt(largest_difference(logits_of(&model, &inputs), all), 1e-6);
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

START_TEST(a_text_that_is_too_long_is_refused) {
    const wg_modernbert_config config = config_of(_i);
    wg_model model = model_of(&config);
    ck_assert_ptr_null(hidden_of_ids(&model, wg_zeros(WG_I64, WG_DIMS(1, POSITIONS + 1))));
    assert_error(WG_ERROR_SHAPE, "17 positions are more than the model's 16");
    free_model(&model);
}
END_TEST

START_TEST(an_encoder_begins_with_embeddings_as_with_the_ids_that_they_stand_for) {
    wg_model model = load_model(_i, WG_F32);
    wg_model_inputs inputs = load_inputs(_i);
    wg_set_grad_enabled(false);
    wg_tensor *wanted = logits_of(&model, &inputs);
    inputs.embeddings = wg_embedding_forward(encoder_of(&model)->embedding, inputs.ids);
    inputs.ids = NULL;
    assert_close(logits_of(&model, &inputs), wanted, 0, 0);
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

/* A new table holds zeros, which change nothing. With the same vector in all its rows, the model
 * computes what one without a table does whose word embeddings are larger by that vector. */
START_TEST(bigrams_are_added_to_the_words_before_their_norm) {
    wg_modernbert_config config = config_of(_i);
    wg_model plain = model_of(&config);
    config.bigram_vocab_size = 30;
    wg_model model = model_of(&config);
    wg_model_inputs inputs = load_inputs(_i);
    wg_set_grad_enabled(false);
    assert_close(logits_of(&model, &inputs), logits_of(&plain, &inputs), 0, 0);
    wg_tensor *vector = wg_randn(NULL, WG_F32, WG_DIMS(16));
    wg_tensor *words = encoder_of(&plain)->embedding->weight;
    wg_copy_(encoder_of(&model)->bigrams->weight, vector);
    wg_copy_(words, wg_add(words, vector));
    assert_relative(wg_model_forward(&model, &inputs), wg_model_forward(&plain, &inputs), 1e-5);
    inputs.embeddings = wg_embedding_forward(encoder_of(&model)->embedding, inputs.ids);
    inputs.ids = NULL;
    ck_assert_ptr_null(logits_of(&model, &inputs));
    assert_error(WG_ERROR_ARGUMENT, "a model with bigrams reads ids");
    wg_set_grad_enabled(true);
    free_model(&plain);
    free_model(&model);
}
END_TEST

START_TEST(bert_refuses_causal_attention) {
    wg_model model;
    ck_assert_int_eq(wg_model_new(&wg_bert_type, "bert-tiny", 1, &model), 0);
    const wg_model_inputs inputs = {.ids = wg_zeros(WG_I64, WG_DIMS(1, 4)), .causal = true};
    ck_assert_ptr_null(wg_model_forward(&model, &inputs));
    assert_error(WG_ERROR_ARGUMENT, "no causal attention");
    free_model(&model);
}
END_TEST

/* ---- Heads ---- */

static bool has_parameter(wg_module *module, const char *path) {
    const bool found = wg_module_find(module, path) != NULL;
    wg_error_clear();
    return found;
}

static void check_paths(wg__headed_encoder *model) {
    ck_assert(has_parameter(&model->module, "model.layers.0.attn.Wqkv.weight"));
    ck_assert(has_parameter(&model->module, "head.dense.weight"));
    ck_assert(has_parameter(&model->module, "classifier.weight"));
}

START_TEST(a_classifier_reads_the_pooled_state) {
    const wg_modernbert_config config = config_of(0);
    wg__labels labels = {0};
    wg__labels_add(&labels, "no");
    wg__labels_add(&labels, "yes");
    wg__headed_encoder *model =
        wg__headed_encoder_new(&wg_modernbert_type, WG_HEAD_LABELS, &config, &labels, 1);
    const wg_model_inputs inputs = load_inputs(0);
    wg_modernbert *encoder = (wg_modernbert *)model->encoder;
    wg_tensor *pooled = wg__modernbert_pool(
        &encoder->module, wg__modernbert_forward(&encoder->module, &inputs), inputs.keep);
    check_paths(model);
    wg_tensor *outputs[2];
    ck_assert_int_eq(wg__headed_encoder_forward(model, &inputs, outputs), 0);
    assert_close(outputs[0], wg_linear_forward(model->head, pooled), 0, 1e-6);
    wg_scope_clear_root();
    wg_module_free(&model->module);
    wg__labels_free(&labels);
}
END_TEST

START_TEST(answers_are_read_from_the_head_at_every_position) {
    const wg_modernbert_config config = config_of(0);
    wg__headed_encoder *model =
        wg__headed_encoder_new(&wg_modernbert_type, WG_HEAD_ANSWERS, &config, NULL, 1);
    const wg_model_inputs inputs = load_inputs(0);
    wg_modernbert *encoder = (wg_modernbert *)model->encoder;
    wg_tensor *states =
        wg__modernbert_head(&encoder->module, wg__modernbert_forward(&encoder->module, &inputs));
    wg_tensor *logits = wg_linear_forward(model->head, states), *ends[2];
    check_paths(model);
    ck_assert_int_eq(wg__headed_encoder_forward(model, &inputs, ends), 0);
    assert_close(ends[0], wg_select(logits, 2, 0), 0, 1e-6);
    assert_close(ends[1], wg_select(logits, 2, 1), 0, 1e-6);
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

/* ---- Configurations ---- */

START_TEST(presets_have_their_numbers_of_parameters) {
    static const struct {
        const char *name;
        int64_t parameters;
    } presets[] = {{"modernbert-3m", 12414784},
                   {"modernbert-3m-bigrams", 12414784 + 65536 * 192},
                   {"modernbert-mini", 18125504},
                   {"modernbert-small", 34589632},
                   {"modernbert-base", 149655232}};
    for (size_t i = 0; i < WG_COUNT(presets); i++) {
        wg_model model;
        wg_set_meta_init(true);
        ck_assert_int_eq(wg_model_new(&wg_modernbert_type, presets[i].name, 1, &model), 0);
        wg_set_meta_init(false);
        ck_assert_int_eq(wg_module_parameter_count(model.module), presets[i].parameters);
        wg_model_free(&model);
    }
}
END_TEST

/* The deviation of a normal distribution of 1 that is truncated at two. */
#define TRUNCATED 0.8796

START_TEST(a_new_model_has_the_initial_values_of_the_published_code) {
    wg_model model;
    wg_modernbert_config config;
    wg_model_preset_config(&wg_modernbert_type, "modernbert-mini", &config);
    wg_model_config_resize(&wg_modernbert_type, &config, 64, 0);
    ck_assert_int_eq(wg_model_from_config(&wg_modernbert_type, &config, 1, &model), 0);
    wg_state_dict *state = wg_module_state(model.module);
    for (int64_t i = 0; i < state->count; i++) {
        const char *path = state->entries[i].path;
        wg_tensor *x = state->entries[i].slot->tensor;
        if (strstr(path, "norm") || strstr(path, "bias")) {
            assert_close(x, strstr(path, "bias") ? wg_zeros_like(x) : wg_ones_like(x), 0, 0);
            continue;
        }
        const bool out = strstr(path, ".Wo.") || strstr(path, "head.dense");
        const double wanted = TRUNCATED * 0.02 / (out ? sqrt(12) : 1);
        const double found = sqrt(wg_item(wg_var(x, WG_ALL, 0, false)));
        ck_assert_double_eq_tol(found, wanted, wanted * 4 / sqrt((double)wg_tensor_count(x)));
    }
    wg_state_dict_free(state);
    free_model(&model);
}
END_TEST

#define PUBLISHED                                                                                  \
    "{\"architectures\": [\"ModernBertForMaskedLM\"], \"attention_bias\": false,"                  \
    "\"attention_dropout\": 0.0, \"bos_token_id\": 50281, \"classifier_activation\": \"gelu\","    \
    "\"classifier_bias\": false, \"classifier_dropout\": 0.0, \"classifier_pooling\": \"mean\","   \
    "\"cls_token_id\": 50281, \"decoder_bias\": true, \"deterministic_flash_attn\": false,"        \
    "\"embedding_dropout\": 0.0, \"eos_token_id\": 50282, \"global_attn_every_n_layers\": 3,"      \
    "\"global_rope_theta\": 160000.0, \"gradient_checkpointing\": false,"                          \
    "\"hidden_activation\": \"gelu\", \"hidden_size\": 768, \"initializer_cutoff_factor\": 2.0,"   \
    "\"initializer_range\": 0.02, \"intermediate_size\": 1152, \"layer_norm_eps\": 1e-05,"         \
    "\"local_attention\": 128, \"local_rope_theta\": 10000.0,"                                     \
    "\"max_position_embeddings\": 8192, \"mlp_bias\": false, \"mlp_dropout\": 0.0,"                \
    "\"model_type\": \"modernbert\", \"norm_bias\": false, \"norm_eps\": 1e-05,"                   \
    "\"num_attention_heads\": 12, \"num_hidden_layers\": 22, \"pad_token_id\": 50283,"             \
    "\"position_embedding_type\": \"absolute\", \"reference_compile\": null,"                      \
    "\"repad_logits_with_grad\": false, \"sep_token_id\": 50282, \"sparse_pred_ignore_index\": "   \
    "-100, \"sparse_prediction\": false, \"tie_word_embeddings\": true,"                           \
    "\"torch_dtype\": \"float32\", \"transformers_version\": \"4.47.0\", \"vocab_size\": 50368"

START_TEST(a_published_config_json_is_read) {
    wg_modernbert_config config, wanted;
    ck_assert_int_eq(wg_model_config_from_json(&wg_modernbert_type, PUBLISHED "}", &config), 0);
    wg_model_preset_config(&wg_modernbert_type, "modernbert-base", &wanted);
    wanted.classifier_pooling = WG_POOLING_MEAN;
    char *text = wg_model_config_to_json(&wg_modernbert_type, &wanted);
    char *found = wg_model_config_to_json(&wg_modernbert_type, &config);
    ck_assert_str_eq(found, text);
    wg_text_free(text);
    wg_text_free(found);
}
END_TEST

START_TEST(what_would_change_the_computation_is_refused) {
    static const struct {
        const char *json, *message;
        wg_error_code code;
    } cases[] = {
        {PUBLISHED ", \"layer_types\": [\"full_attention\"]}", "layer_types", WG_ERROR_FORMAT},
        {PUBLISHED ", \"rope_scaling\": {\"factor\": 2}}", "rope_scaling", WG_ERROR_FORMAT},
        {"{\"vocab_size\": 60000, \"hidden_size\": 8, \"intermediate_size\": 8,"
         "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"tie_word_embeddings\": false}",
         "tie_word_embeddings", WG_ERROR_FORMAT},
        {"{\"vocab_size\": 60000, \"hidden_size\": 6, \"intermediate_size\": 8,"
         "\"num_hidden_layers\": 1, \"num_attention_heads\": 2}",
         "heads of width 3", WG_ERROR_ARGUMENT},
        {"{\"vocab_size\": 60000, \"hidden_size\": 8, \"intermediate_size\": 8,"
         "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"classifier_pooling\": \"max\"}",
         "max", WG_ERROR_ARGUMENT},
        {"{\"vocab_size\": 9, \"hidden_size\": 8, \"intermediate_size\": 8,"
         "\"num_hidden_layers\": 1, \"num_attention_heads\": 2}",
         "pad_token_id is 50283", WG_ERROR_ARGUMENT},
    };
    wg_modernbert_config config;
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        ck_assert_int_eq(wg_model_config_from_json(&wg_modernbert_type, cases[i].json, &config),
                         -1);
        assert_error(cases[i].code, cases[i].message);
    }
}
END_TEST

/* ---- Memory ---- */

/* A whole step with the n-th allocation failing. True if no allocation failed. */
static bool step_without_memory(int64_t n, const wg_modernbert_config *config) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_model_inputs inputs = load_inputs(0);
    wg_tensor *labels = load(0, "labels");
    wg__alloc_fail_after(n);
    wg_modernbert_for_masked_lm *made = wg__modernbert_for_masked_lm_new(config, 1);
    const wg_model model = {.type = &wg_modernbert_type, .module = (wg_module *)made};
    const bool whole = made && wg_backward(wg_model_loss(&model, wg_model_forward(&model, &inputs),
                                                         NULL, labels, NULL),
                                           NULL) == 0;
    wg__alloc_fail_after(-1);
    wg_scope_end(&scope, NULL);
    wg_module_free(model.module);
    return whole;
}

START_TEST(a_step_that_runs_out_of_memory_anywhere_says_so_and_leaves_nothing) {
    wg_modernbert_config config = config_of(0);
    config.num_hidden_layers = 2;
    config.attention_dropout = config.mlp_dropout = config.embedding_dropout = 0.1;
    const int64_t alive = wg_tensors_alive();
    int64_t n = 0;
    for (; !step_without_memory(n, &config); n += 1 + n / 50) {
        assert_error(WG_ERROR_MEMORY, "");
        ck_assert_int_eq(wg_tensors_alive(), alive);
    }
    assert_no_error();
    ck_assert_int_gt(n, 300);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        logits_loss_and_every_gradient_equal_pytorch,
        causal_logits_equal_pytorch,
        pooled_states_equal_pytorch,
        ten_steps_of_adamw_lose_what_pytorch_loses,
        parameters_have_the_published_paths_and_shapes,
        a_causal_logit_does_not_depend_on_later_tokens,
        a_cache_gives_token_by_token_the_causal_logits_of_all_at_once,
        padding_in_front_changes_nothing,
        a_window_that_covers_the_text_hides_nothing,
        a_text_that_is_too_long_is_refused,
        an_encoder_begins_with_embeddings_as_with_the_ids_that_they_stand_for,
        bigrams_are_added_to_the_words_before_their_norm,
    };
    const TTest *const others[] = {
        bert_refuses_causal_attention,
        a_classifier_reads_the_pooled_state,
        answers_are_read_from_the_head_at_every_position,
        presets_have_their_numbers_of_parameters,
        a_new_model_has_the_initial_values_of_the_published_code,
        a_published_config_json_is_read,
        what_would_change_the_computation_is_refused,
        a_step_that_runs_out_of_memory_anywhere_says_so_and_leaves_nothing,
    };
    add_suite_of_each("modernbert", of_each, WG_COUNT(models), model_name);
    add_suite("modernbert_parts", others);
}
