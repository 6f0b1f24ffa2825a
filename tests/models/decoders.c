/* GPT-2 and LLaMA against PyTorch (tests/fixtures/decoders.py): their published names, generation
 * with caches, errors. A case is a model. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "models/internal.h"

/* The sizes of the fixture. */
enum { B = 3, T = 11, VOCAB = 48, POSITIONS = 16 };

/* ---- The models of the fixture ---- */

static wg_model gpt_new(void) {
    wg_gpt_config config;
    wg_model_preset_config(&wg_gpt_type, "gpt2-tiny", &config);
    config.vocab_size = VOCAB;
    config.n_positions = POSITIONS;
    config.n_embd = 16;
    config.n_head = 4;
    config.n_inner = 24;
    config.embd_pdrop = config.attn_pdrop = config.resid_pdrop = 0;
    config.bos_token_id = config.eos_token_id = 0;
    return (wg_model){.type = &wg_gpt_type, .module = wg__gpt_new(&config, 1)};
}

static wg_model llama_of(int64_t bigrams) {
    wg_llama_config config;
    wg_model_preset_config(&wg_llama_type, "llama-15m", &config);
    config.vocab_size = VOCAB;
    config.hidden_size = 16;
    config.intermediate_size = 24;
    config.num_hidden_layers = 2;
    config.num_attention_heads = 4;
    config.num_key_value_heads = 2;
    config.max_position_embeddings = POSITIONS;
    config.tie_word_embeddings = false;
    config.bigram_vocab_size = bigrams;
    return (wg_model){.type = &wg_llama_type, .module = wg__llama_new(&config, 1)};
}

static wg_model llama_new(void) {
    return llama_of(0);
}

static wg_model llama_bigrams_new(void) {
    return llama_of(40);
}

static const struct {
    const char *name;
    wg_model (*make)(void);
} models[] = {{"gpt", gpt_new}, {"llama", llama_new}, {"llama-bigrams", llama_bigrams_new}};

static const char *model_name(int index) {
    return models[index].name;
}

static const char *folder(int model) {
    static char path[64];
    snprintf(path, sizeof path, "decoders/%s", models[model].name);
    return path;
}

static wg_tensor *load(int model, const char *name) {
    return fixture_tensor("%s/%s", folder(model), name);
}

static wg_model load_model(int model, wg_dtype dtype) {
    wg_model loaded = models[model].make();
    load_model_fixture(folder(model), loaded.module, dtype);
    return loaded;
}

static void free_model(wg_model *model) {
    wg_scope_clear_root();
    wg_module_free(model->module);
}

/* ---- Beside PyTorch ---- */

static void check_model(int index, wg_dtype dtype, double tolerance) {
    wg_model model = load_model(index, dtype);
    wg_tensor *ids = load(index, "ids"), *labels = load(index, "labels");
    assert_relative(wg_detach(logits_of_ids(&model, ids)), load(index, "logits"), tolerance);
    wg_tensor *loss = loss_of_ids(&model, ids, labels);
    assert_relative(wg_detach(loss), wg_select(load(index, "loss"), 0, 0), tolerance);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    assert_model_gradients(folder(index), model.module, tolerance);
    free_model(&model);
}

START_TEST(logits_loss_and_every_gradient_equal_pytorch) {
    check_model(_i, WG_F64, 1e-11);
    check_model(_i, WG_F32, 1e-5);
}
END_TEST

typedef struct fixture_batch {
    wg_model model;
    wg_tensor *ids, *labels;
} fixture_batch;

static wg_tensor *batch_loss(void *context) {
    const fixture_batch *batch = context;
    return loss_of_ids(&batch->model, batch->ids, batch->labels);
}

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    fixture_batch batch = {load_model(_i, WG_F32), load(_i, "ids"), load(_i, "labels")};
    const wg_adamw_options options = {.beta2 = 0.95, .weight_decay = 0.1};
    assert_model_training(folder(_i), batch.model.module, wg_adamw_new(&options), batch_loss,
                          &batch, 1e-4);
    free_model(&batch.model);
}
END_TEST

START_TEST(parameters_have_the_published_paths_and_shapes) {
    wg_model model = models[_i].make();
    assert_model_paths(folder(_i), model.module);
    free_model(&model);
}
END_TEST

/* ---- Generation ---- */

static void init_caches(wg_kv_cache *caches, const wg_model *model) {
    for (int64_t i = 0; i < wg_model_sizes_of(model).layers; i++)
        wg_kv_cache_init(&caches[i], wg_model_sizes_of(model).positions);
}

static void clear_caches(wg_kv_cache *caches, const wg_model *model) {
    for (int64_t i = 0; i < wg_model_sizes_of(model).layers; i++)
        wg_kv_cache_clear(&caches[i]);
}

START_TEST(a_cache_gives_token_by_token_the_logits_of_all_at_once) {
    wg_model model = load_model(_i, WG_F32);
    wg_kv_cache caches[8];
    wg_tensor *ids = load(_i, "ids"), *parts[T];
    wg_set_grad_enabled(false);
    init_caches(caches, &model);
    int count = 0;
    for (int64_t begin = 0, step = 4; begin < T; begin += step, step = 1) {
        wg_tensor *before = begin > 0 ? wg_select(ids, 1, begin - 1) : NULL;
        const wg_model_inputs inputs = {.ids = wg_slice(ids, 1, begin, begin + step, 1),
                                        .previous_ids = before,
                                        .caches = caches};
        parts[count++] = wg_model_logits(&model, wg_model_forward(&model, &inputs), NULL);
    }
    assert_relative(wg_cat(count, parts, 1), load(_i, "logits"), 1e-5);
    wg_set_grad_enabled(true);
    clear_caches(caches, &model);
    free_model(&model);
}
END_TEST

/* A shorter text in a batch begins with padding, which is masked, and has positions of its own. */
START_TEST(padding_in_front_changes_nothing) {
    enum { PADDING = 3 };
    wg_model model = load_model(_i, WG_F32);
    wg_set_grad_enabled(false);
    wg_tensor *text = wg_slice(load(_i, "ids"), 0, 0, 1, 1), *wanted = load(_i, "logits");
    wg_tensor *front = wg_zeros(WG_I64, WG_DIMS(1, PADDING));
    wg_tensor *keep = wg_ones(WG_BOOL, WG_DIMS(1, T + PADDING));
    wg_copy_(wg_slice(keep, 1, 0, PADDING, 1), wg_zeros(WG_BOOL, WG_DIMS(1)));
    wg_tensor *positions = wg_relu(wg_arange(WG_I64, -PADDING, T, 1));
    const wg_model_inputs inputs = {.ids = wg_cat(2, (wg_tensor *[]){front, text}, 1),
                                    .keep = keep,
                                    .position_ids = wg_unsqueeze(positions, 0)};
    wg_tensor *logits = wg_model_logits(&model, wg_model_forward(&model, &inputs), NULL);
    assert_relative(wg_slice(logits, 1, PADDING, WG_END, 1), wg_slice(wanted, 0, 0, 1, 1), 1e-5);
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

START_TEST(a_text_that_is_too_long_is_refused) {
    wg_model model = models[_i].make();
    wg_tensor *ids = wg_zeros(WG_I64, WG_DIMS(1, POSITIONS + 1));
    ck_assert_ptr_null(hidden_of_ids(&model, ids));
    assert_error(WG_ERROR_SHAPE, "17 positions are more than the model's 16");
    ck_assert_ptr_null(hidden_of_ids(&model, wg_zeros(WG_I64, WG_DIMS(3))));
    assert_error(WG_ERROR_SHAPE, "ids have rank 1; wanted (B, T)");
    free_model(&model);
}
END_TEST

/* ---- Configurations ---- */

START_TEST(a_configuration_goes_through_json_and_back) {
    wg_model model = models[_i].make();
    char *json = wg_model_config_json(&model);
    void *config = malloc(model.type->settings.size);
    ck_assert_int_eq(wg_model_config_from_json(model.type, json, config), 0);
    char *again = wg_model_config_to_json(model.type, config);
    ck_assert_str_eq(json, again);
    free(config);
    wg_text_free(json);
    wg_text_free(again);
    free_model(&model);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        logits_loss_and_every_gradient_equal_pytorch,
        ten_steps_of_adamw_lose_what_pytorch_loses,
        parameters_have_the_published_paths_and_shapes,
        a_cache_gives_token_by_token_the_logits_of_all_at_once,
        padding_in_front_changes_nothing,
        a_text_that_is_too_long_is_refused,
        a_configuration_goes_through_json_and_back,
    };
    add_suite_of_each("decoders", of_each, WG_COUNT(models), model_name);
}
