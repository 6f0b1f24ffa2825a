/* GLM: held against PyTorch (tests/fixtures/glm.py), its published names, who sees whom,
 * configurations, errors. */
#include <stdio.h>
#include <string.h>

#include "io/text.h"
#include "models/glm.h"
#include "optim/optimizer.h"
#include "tensor/npy.h"
#include "tensor/ops.h"
#include "tests/testing.h"

/* The sizes of the fixture. */
enum { B = 3, T = 16, VOCAB = 48, POSITIONS = 16, LAYERS = 2 };

/* ---- The model of the fixture ---- */

static wg_glm *glm_new(void) {
    wg_glm_config config;
    wg_glm_config_preset(&config, "glm-tiny");
    config.vocab_size = VOCAB;
    config.hidden_size = 16;
    config.num_layers = LAYERS;
    config.num_attention_heads = 4;
    config.max_sequence_length = POSITIONS;
    config.embedding_dropout_prob = config.attention_dropout_prob = config.output_dropout_prob = 0;
    wg_glm *model = wg_glm_new(&config, 1);
    assert_no_error();
    return model;
}

static wg_tensor *load(const char *name) {
    char path[64];
    snprintf(path, sizeof path, "glm/%s.npy", name);
    return wg_npy_load(fixture(path));
}

/* The part of a flat file that belongs to a parameter, in its shape and dtype; moves *at on. */
static wg_tensor *take(wg_tensor *flat, int64_t *at, const wg_tensor *like) {
    wg_tensor *part = wg_slice(flat, 0, *at, *at + wg_tensor_count(like), 1);
    *at += wg_tensor_count(like);
    part = wg_reshape(part, wg_tensor_ndim(like), wg_tensor_shape(like));
    return wg_cast(part, wg_tensor_dtype(like));
}

static wg_glm *load_model(wg_dtype dtype) {
    wg_glm *model = glm_new();
    wg_state_dict *state = wg_module_state(&model->module);
    wg_tensor *flat = load("weights");
    int64_t at = 0;
    bool recording = wg_set_grad_enabled(false);
    for (int64_t i = 0; i < state->count; i++)
        wg_copy_(state->entries[i].slot->tensor, take(flat, &at, state->entries[i].slot->tensor));
    wg_set_grad_enabled(recording);
    ck_assert_int_eq(at, wg_tensor_count(flat));
    wg_state_dict_free(state);
    ck_assert_int_eq(wg_module_to(&model->module, dtype), 0);
    return model;
}

static void free_model(wg_glm *model) {
    wg_scope_clear_root();
    wg_module_free(&model->module);
}

/* |x - expected| <= tolerance * max |expected|, everywhere. */
static void assert_relative(wg_tensor *x, wg_tensor *expected, double tolerance) {
    wg_tensor *wanted = wg_cast(expected, wg_tensor_dtype(x));
    assert_close(x, wanted, 0, tolerance * wg_item(wg_max(wg_abs(wanted), WG_ALL, false)));
}

static wg_glm_inputs load_inputs(void) {
    return (wg_glm_inputs){.position_ids = load("position_ids"),
                           .block_position_ids = load("block_position_ids"),
                           .part_a = load("part_a")};
}

static wg_tensor *loss_of(wg_glm *model, wg_tensor *ids, const wg_glm_inputs *inputs) {
    return wg_glm_loss(model, ids, inputs, load("targets"), load("labels"));
}

/* ---- Beside PyTorch ---- */

static void check_gradients(wg_module *module, double tolerance) {
    wg_state_dict *state = wg_module_state(module);
    wg_tensor *flat = load("gradients");
    int64_t at = 0;
    for (int64_t i = 0; i < state->count; i++) {
        wg_tensor *parameter = state->entries[i].slot->tensor;
        assert_relative(wg_gradient(parameter), take(flat, &at, parameter), tolerance);
    }
    wg_state_dict_free(state);
}

static void check_model(wg_dtype dtype, double tolerance) {
    wg_glm *model = load_model(dtype);
    wg_tensor *ids = load("ids");
    wg_glm_inputs inputs = load_inputs();
    wg_tensor *hidden = wg_glm_forward(model, ids, &inputs);
    wg_tensor *logits = wg_detach(wg_glm_logits(model, hidden, NULL));
    assert_relative(logits, load("logits"), tolerance);
    wg_tensor *rows = wg_reshape(logits, WG_DIMS(B * T, VOCAB));
    assert_relative(wg_detach(wg_glm_logits(model, hidden, load("targets"))),
                    wg_index_select(rows, 0, load("targets")), tolerance);
    wg_tensor *loss = loss_of(model, ids, &inputs);
    assert_relative(wg_detach(loss), wg_select(load("loss"), 0, 0), tolerance);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    check_gradients(&model->module, tolerance);
    free_model(model);
}

START_TEST(logits_loss_and_every_gradient_equal_pytorch) {
    check_model(WG_F64, 1e-11);
    check_model(WG_F32, 1e-5);
}
END_TEST

static void add_to_optimizer(wg_optimizer *optimizer, wg_module *module) {
    wg_state_dict *state = wg_module_state(module);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        wg_optimizer_add(optimizer, entry->path, entry->slot->tensor, entry->slot->no_decay);
    }
    wg_state_dict_free(state);
}

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    wg_glm *model = load_model(WG_F32);
    wg_tensor *ids = load("ids"), *wanted = load("adamw_losses");
    wg_glm_inputs inputs = load_inputs();
    wg_optimizer *optimizer = wg_adamw_new(&(wg_adamw_options){.beta2 = 0.95, .weight_decay = 0.1});
    add_to_optimizer(optimizer, &model->module);
    for (int64_t step = 0; step < 10; step++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *loss = loss_of(model, ids, &inputs);
        double expected = wg_at(wanted, &step);
        ck_assert_double_eq_tol(wg_item(loss), expected, 1e-4 * expected);
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        ck_assert_int_eq(wg_optimizer_step(optimizer, 2e-3), 0);
        wg_scope_end(&scope, NULL);
    }
    wg_optimizer_free(optimizer);
    free_model(model);
}
END_TEST

START_TEST(parameters_have_the_published_paths_and_shapes) {
    wg_glm *model = glm_new();
    wg_state_dict *state = wg_module_state(&model->module);
    char line[256], wanted[256];
    FILE *file = fopen(fixture("glm/parameters.txt"), "r");
    ck_assert_ptr_nonnull(file);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        size_t used = (size_t)snprintf(line, sizeof line, "%s", entry->path);
        for (int d = 0; d < wg_tensor_ndim(entry->slot->tensor); d++)
            used += (size_t)snprintf(line + used, sizeof line - used, " %lld",
                                     (long long)wg_tensor_size(entry->slot->tensor, d));
        snprintf(line + used, sizeof line - used, "\n");
        ck_assert_ptr_nonnull(fgets(wanted, sizeof wanted, file));
        ck_assert_str_eq(line, wanted);
    }
    ck_assert_ptr_null(fgets(wanted, sizeof wanted, file));
    fclose(file);
    wg_state_dict_free(state);
    free_model(model);
}
END_TEST

/* ---- Who sees whom ---- */

/* How much the hidden state at each place of a sequence of 6, of which 3 are Part A, changes when
 * the token at `changed` does. */
static void changes(wg_glm *model, int64_t changed, double out[6]) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_glm_inputs inputs = {.part_a = wg_full(WG_I64, WG_DIMS(1), 3)};
    wg_tensor *before = wg_zeros(WG_I64, WG_DIMS(1, 6)), *after = wg_zeros(WG_I64, WG_DIMS(1, 6));
    ((int64_t *)wg_tensor_data(after))[changed] = 7;
    wg_tensor *difference =
        wg_sub(wg_glm_forward(model, after, &inputs), wg_glm_forward(model, before, &inputs));
    wg_tensor *most = wg_max(wg_abs(difference), WG_DIMS(-1), false);
    for (int64_t i = 0; i < 6; i++)
        out[i] = wg_at(most, (int64_t[]){0, i});
    wg_scope_end(&scope, NULL);
}

START_TEST(part_a_is_seen_by_all_and_part_b_by_what_follows) {
    wg_glm *model = load_model(WG_F64);
    wg_set_grad_enabled(false);
    for (int64_t j = 0; j < 6; j++) {
        double change[6];
        changes(model, j, change);
        for (int64_t i = 0; i < 6; i++)
            ck_assert_msg((change[i] > 0) == (j < 3 || j <= i), "%d of %d", (int)i, (int)j);
    }
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

START_TEST(a_mask_says_the_same_as_part_a_does) {
    wg_glm *model = load_model(WG_F32);
    wg_set_grad_enabled(false);
    wg_glm_inputs inputs = load_inputs();
    wg_tensor *ids = load("ids");
    wg_tensor *wanted = wg_glm_forward(model, ids, &inputs);
    wg_tensor *row = wg_reshape(wg_arange(WG_I64, 0, T, 1), WG_DIMS(T, 1));
    wg_tensor *column = wg_arange(WG_I64, 0, T, 1);
    wg_tensor *part_a = wg_reshape(inputs.part_a, WG_DIMS(B, 1, 1, 1));
    inputs.mask = wg_logical_or(wg_le(column, row), wg_lt(column, part_a));
    ck_assert_ptr_null(wg_glm_forward(model, ids, &inputs));
    assert_error(WG_ERROR_ARGUMENT, "part_a and a mask");
    inputs.part_a = NULL;
    assert_close(wg_glm_forward(model, ids, &inputs), wanted, 0, 0);
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

START_TEST(without_inputs_all_is_part_a_and_none_of_it_in_a_block) {
    wg_glm *model = load_model(WG_F32);
    wg_set_grad_enabled(false);
    wg_tensor *ids = load("ids");
    wg_tensor *positions = wg_arange(WG_I64, 0, T, 1);
    wg_glm_inputs inputs = {.position_ids = wg_cat(WG_TENSORS(wg_reshape(positions, WG_DIMS(1, T)),
                                                              wg_reshape(positions, WG_DIMS(1, T)),
                                                              wg_reshape(positions, WG_DIMS(1, T))),
                                                   0),
                            .block_position_ids = wg_zeros(WG_I64, WG_DIMS(B, T)),
                            .part_a = wg_full(WG_I64, WG_DIMS(B), T)};
    assert_close(wg_glm_forward(model, ids, NULL), wg_glm_forward(model, ids, &inputs), 0, 0);
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

/* ---- Generation ---- */

/* Part A at once, then Part B token by token, gives what all gives at once. */
START_TEST(a_cache_gives_part_b_token_by_token) {
    enum { ROW = 1, PART_A = 4, LENGTH = 11 };
    wg_glm *model = load_model(WG_F32);
    wg_set_grad_enabled(false);
    wg_kv_cache caches[LAYERS];
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_init(&caches[i], LENGTH);
    wg_tensor *ids = wg_slice(load("ids"), 0, ROW, ROW + 1, 1);
    wg_glm_inputs all = load_inputs();
    wg_tensor *positions = wg_slice(all.position_ids, 0, ROW, ROW + 1, 1);
    wg_tensor *blocks = wg_slice(all.block_position_ids, 0, ROW, ROW + 1, 1);
    wg_tensor *wanted = wg_slice(load("logits"), 0, ROW, ROW + 1, 1);
    for (int64_t at = 0, end = PART_A + 2; at < LENGTH; at = end++) {
        wg_glm_inputs inputs = {.position_ids = wg_slice(positions, 1, at, end, 1),
                                .block_position_ids = wg_slice(blocks, 1, at, end, 1),
                                .part_a = wg_full(WG_I64, WG_DIMS(1), PART_A),
                                .caches = caches};
        wg_tensor *hidden = wg_glm_forward(model, wg_slice(ids, 1, at, end, 1), &inputs);
        assert_relative(wg_glm_logits(model, hidden, NULL), wg_slice(wanted, 1, at, end, 1), 1e-5);
    }
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_clear(&caches[i]);
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

/* ---- Errors ---- */

START_TEST(inputs_that_do_not_fit_are_refused) {
    wg_glm *model = glm_new();
    ck_assert_ptr_null(wg_glm_forward(model, wg_zeros(WG_I64, WG_DIMS(3)), NULL));
    assert_error(WG_ERROR_SHAPE, "ids have rank 1; wanted (B, T)");
    wg_tensor *ids = wg_zeros(WG_I64, WG_DIMS(2, 3));
    wg_glm_inputs inputs = {.part_a = wg_zeros(WG_I64, WG_DIMS(3))};
    ck_assert_ptr_null(wg_glm_forward(model, ids, &inputs));
    assert_error(WG_ERROR_SHAPE, "part_a has rank 1 and 3 elements");
    ck_assert_ptr_null(wg_glm_forward(model, wg_zeros(WG_I64, WG_DIMS(1, POSITIONS + 2)), NULL));
    assert_error(WG_ERROR_INDEX, "17");
    ck_assert_ptr_null(wg_glm_forward(model, wg_full(WG_I64, WG_DIMS(1, 2), VOCAB), NULL));
    assert_error(WG_ERROR_INDEX, "48");
    free_model(model);
}
END_TEST

/* ---- Configurations ---- */

START_TEST(a_published_configuration_is_read) {
    wg_glm_config config;
    ck_assert_int_eq(
        wg_glm_config_from_json(
            &config,
            "{\"architectures\": [\"GLMModel\"], \"attention_dropout_prob\": 0.1,"
            "\"attention_scale\": 1.0, \"block_position_encoding\": true,"
            "\"checkpoint_activations\": false, \"checkpoint_num_layers\": 1,"
            "\"embedding_dropout_prob\": 0.1, \"hidden_size\": 1024, \"initializer_range\": 0.02,"
            "\"max_sequence_length\": 512, \"model_type\": \"glm\", \"num_attention_heads\": 16,"
            "\"num_layers\": 24, \"output_dropout_prob\": 0.1, \"output_predict\": true,"
            "\"parallel_output\": true, \"pool_token\": \"cls\", \"relative_encoding\": false,"
            "\"spell_func\": \"lstm\", \"spell_length\": null, \"torch_dtype\": \"float32\","
            "\"vocab_size\": 30592}"),
        0);
    ck_assert_int_eq(config.num_layers, 24);
    ck_assert_int_eq(config.vocab_size, 30592);
    char *json = wg_glm_config_to_json(&config);
    wg_glm_config again;
    ck_assert_int_eq(wg_glm_config_from_json(&again, json), 0);
    ck_assert_mem_eq(&again, &config, sizeof config);
    wg_text_free(json);
}
END_TEST

START_TEST(a_configuration_that_cannot_be_is_refused_by_its_key) {
    wg_glm_config config;
    wg_glm_config_preset(&config, "glm-tiny");
    config.num_attention_heads = 3;
    ck_assert_ptr_null(wg_glm_new(&config, 1));
    assert_error(WG_ERROR_ARGUMENT, "num_attention_heads 3 does not divide hidden_size 128");
    config.num_attention_heads = 2;
    config.output_dropout_prob = 1;
    ck_assert_ptr_null(wg_glm_new(&config, 1));
    assert_error(WG_ERROR_ARGUMENT, "output_dropout_prob is 1; it must be");
    ck_assert_int_eq(wg_glm_config_preset(&config, "glm-huge"), -1);
    assert_error(WG_ERROR_ARGUMENT, "there is no preset \"glm-huge\"; there are glm-tiny");
    ck_assert_int_eq(wg_glm_config_from_json(&config, "{\"hidden_size\": 8}"), -1);
    assert_error(WG_ERROR_FORMAT, "vocab_size");
    ck_assert_int_eq(wg_glm_config_from_json(
                         &config, "{\"hidden_size\": 8, \"vocab_size\": 9, \"num_layers\": 1,"
                                  "\"num_attention_heads\": 2, \"relative_encoding\": true}"),
                     -1);
    assert_error(WG_ERROR_FORMAT, "relative_encoding is true");
}
END_TEST

/* 110 M as published: 12 layers, 30592 words, two tables of 513 positions. */
START_TEST(the_base_preset_has_its_published_number_of_parameters) {
    wg_glm_config config;
    ck_assert_str_eq(wg_glm_preset_name(2), "glm-base");
    wg_glm_config_preset(&config, wg_glm_preset_name(2));
    wg_glm *model = wg_glm_new(&config, 1);
    const int64_t c = 768, tables = 30592 + 2 * 513;
    const int64_t layer = 4 * c * c + 4 * c + 8 * c * c + 5 * c + 4 * c;
    ck_assert_int_eq(wg_module_parameter_count(&model->module), tables * c + 12 * layer + 2 * c);
    wg_module_free(&model->module);
    ck_assert_ptr_null(wg_glm_preset_name(4));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        logits_loss_and_every_gradient_equal_pytorch,
        ten_steps_of_adamw_lose_what_pytorch_loses,
        parameters_have_the_published_paths_and_shapes,
        part_a_is_seen_by_all_and_part_b_by_what_follows,
        a_mask_says_the_same_as_part_a_does,
        without_inputs_all_is_part_a_and_none_of_it_in_a_block,
        a_cache_gives_part_b_token_by_token,
        inputs_that_do_not_fit_are_refused,
        a_published_configuration_is_read,
        a_configuration_that_cannot_be_is_refused_by_its_key,
        the_base_preset_has_its_published_number_of_parameters,
    };
    return wg_run_tests("glm", WG_COUNT(tests), tests);
}
