/* T5, 1.0 and 1.1, against PyTorch (tests/fixtures/t5.py): generation with caches, buckets,
 * configurations. A case is a version. */
#include <stdio.h>

#include "base/alloc.h"
#include "models/t5.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "models/internal.h"

/* The sizes of the fixture. */
enum { B = 3, TS = 13, TT = 9, LAYERS = 2 };

static const char *version_name(int version) {
    return version == 0 ? "1_0" : "1_1";
}

static const char *folder(int version) {
    return version == 0 ? "t5/1_0" : "t5/1_1";
}

static wg_tensor *load(int version, const char *name) {
    return fixture_tensor("%s/%s", folder(version), name);
}

static wg_model t5_new(int version) {
    wg_t5_config config;
    wg_model_preset_config(&wg_t5_type, version == 0 ? "t5-small" : "t5-v1_1-small", &config);
    config.vocab_size = 40;
    config.d_model = 16;
    config.d_kv = 6;
    config.d_ff = 20;
    config.num_heads = 3;
    config.num_layers = config.num_decoder_layers = LAYERS;
    config.relative_attention_num_buckets = 8;
    config.relative_attention_max_distance = 10;
    config.dropout_rate = 0;
    return (wg_model){.type = &wg_t5_type, .module = wg__t5_new(&config, 1)};
}

static wg_model load_model(int version, wg_dtype dtype) {
    wg_model model = t5_new(version);
    load_model_fixture(folder(version), model.module, dtype);
    return model;
}

static void free_model(wg_model *model) {
    wg_scope_clear_root();
    wg_model_free(model);
}

/* The logits of a target that is given to the decoder. */
static wg_tensor *decode(const wg_model *model, const wg_model_inputs *inputs) {
    return wg_model_logits(model, wg_model_forward(model, inputs), NULL);
}

/* ---- Beside PyTorch ---- */

static void check_model(int version, wg_dtype dtype, double tolerance) {
    wg_model model = load_model(version, dtype);
    wg_tensor *ids = load(version, "ids"), *keep = load(version, "keep");
    wg_tensor *memory = wg_model_encode(&model, ids, keep);
    assert_relative(wg_detach(memory), load(version, "memory"), tolerance);
    const wg_model_inputs inputs = {
        .ids = load(version, "read"), .memory = memory, .memory_keep = keep};
    assert_relative(wg_detach(decode(&model, &inputs)), load(version, "logits"), tolerance);
    wg_tensor *loss = pair_loss_of(&model, ids, keep, load(version, "labels"));
    assert_relative(wg_detach(loss), wg_select(load(version, "loss"), 0, 0), tolerance);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    assert_model_gradients(folder(version), model.module, tolerance);
    free_model(&model);
}

START_TEST(memory_logits_loss_and_every_gradient_equal_pytorch) {
    check_model(_i, WG_F64, 1e-11);
    check_model(_i, WG_F32, 1e-5);
}
END_TEST

typedef struct fixture_batch {
    wg_model model;
    wg_tensor *ids, *keep, *labels;
} fixture_batch;

static wg_tensor *batch_loss(void *context) {
    const fixture_batch *batch = context;
    return pair_loss_of(&batch->model, batch->ids, batch->keep, batch->labels);
}

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    fixture_batch batch = {load_model(_i, WG_F32), load(_i, "ids"), load(_i, "keep"),
                           load(_i, "labels")};
    assert_model_training(folder(_i), batch.model.module, wg_adamw_new(NULL), batch_loss, &batch,
                          1e-4);
    free_model(&batch.model);
}
END_TEST

START_TEST(parameters_have_the_published_paths_and_shapes) {
    wg_model model = t5_new(_i);
    assert_model_paths(folder(_i), model.module);
    free_model(&model);
}
END_TEST

/* ---- Generation ---- */

START_TEST(caches_give_token_by_token_the_logits_of_all_at_once) {
    wg_model model = load_model(_i, WG_F32);
    wg_kv_cache own[LAYERS], seen[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        wg_kv_cache_init(&own[i], TT);
        wg_kv_cache_init(&seen[i], TS);
    }
    wg_set_grad_enabled(false);
    wg_tensor *keep = load(_i, "keep"), *read = load(_i, "read"), *parts[TT];
    wg_tensor *memory = wg_model_encode(&model, load(_i, "ids"), keep);
    int count = 0;
    for (int64_t begin = 0, step = 3; begin < TT; begin += step, step = 1) {
        const wg_model_inputs inputs = {.ids = wg_slice(read, 1, begin, begin + step, 1),
                                        .memory = memory,
                                        .memory_keep = keep,
                                        .caches = own,
                                        .memory_caches = seen};
        parts[count++] = decode(&model, &inputs);
    }
    assert_relative(wg_cat(count, parts, 1), load(_i, "logits"), 1e-5);
    wg_set_grad_enabled(true);
    for (int i = 0; i < LAYERS; i++) {
        wg_kv_cache_clear(&own[i]);
        wg_kv_cache_clear(&seen[i]);
    }
    free_model(&model);
}
END_TEST

/* ---- Configurations and errors ---- */

START_TEST(a_configuration_goes_through_json_and_back) {
    wg_model model = t5_new(_i);
    wg_t5_config config;
    char *json = wg_model_config_json(&model);
    ck_assert_int_eq(wg_model_config_from_json(&wg_t5_type, json, &config), 0);
    char *again = wg_model_config_to_json(&wg_t5_type, &config);
    ck_assert_str_eq(json, again);
    wg_text_free(json);
    wg_text_free(again);
    free_model(&model);
}
END_TEST

START_TEST(what_cannot_be_is_refused_by_name) {
    wg_t5_config config;
    wg_model_preset_config(&wg_t5_type, "t5-small", &config);
    config.d_kv = 0;
    ck_assert_ptr_null(wg__t5_new(&config, 1));
    assert_error(WG_ERROR_ARGUMENT, "d_kv is 0; it must be from 1 to 2147483647");
    config.d_kv = 64;
    config.relative_attention_num_buckets = 6;
    ck_assert_ptr_null(wg__t5_new(&config, 1));
    assert_error(WG_ERROR_ARGUMENT, "6 buckets up to distance 128; wanted a multiple of 4");
    wg_model model = t5_new(_i);
    ck_assert_ptr_null(wg_model_encode(&model, wg_zeros(WG_I64, WG_DIMS(3)), NULL));
    assert_error(WG_ERROR_SHAPE, "ids have rank 1; wanted (B, T)");
    free_model(&model);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        memory_logits_loss_and_every_gradient_equal_pytorch,
        ten_steps_of_adamw_lose_what_pytorch_loses,
        parameters_have_the_published_paths_and_shapes,
        caches_give_token_by_token_the_logits_of_all_at_once,
        a_configuration_goes_through_json_and_back,
        what_cannot_be_is_refused_by_name,
    };
    add_suite_of_each("t5", tests, 2, version_name);
}
