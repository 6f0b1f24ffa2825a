/* GLM against PyTorch (tests/fixtures/glm.py): its published names, its attention mask,
 * configurations, errors. */
#include <string.h>

#include "objectives/blank_infilling.h"
#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "models/glm.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "data/internal.h"
#include "models/internal.h"

/* The sizes of the fixture. */
enum { B = 3, T = 16, VOCAB = 48, POSITIONS = 16, LAYERS = 2 };

/* ---- The model of the fixture ---- */

static wg_glm *glm_new(void) {
    wg_glm_config config;
    wg_model_preset_config(&wg_glm_type, "glm-tiny", &config);
    config.vocab_size = VOCAB;
    config.hidden_size = 16;
    config.num_layers = LAYERS;
    config.num_attention_heads = 4;
    config.max_sequence_length = POSITIONS;
    config.embedding_dropout_prob = config.attention_dropout_prob = config.output_dropout_prob = 0;
    wg_glm *model = wg__glm_new(&config, 1);
    assert_no_error();
    return model;
}

static wg_tensor *load(const char *name) {
    return fixture_tensor("glm/%s", name);
}

static wg_glm *load_model(wg_dtype dtype) {
    wg_glm *model = glm_new();
    load_model_fixture("glm", &model->module, dtype);
    return model;
}

static void free_model(wg_glm *model) {
    wg_scope_clear_root();
    wg_module_free(&model->module);
}

static wg_tensor *forward(wg_glm *model, wg_tensor *ids, const wg_model_inputs *inputs) {
    wg_model_inputs all = inputs ? *inputs : (wg_model_inputs){0};
    all.ids = ids;
    return wg_model_forward(&(wg_model){.type = &wg_glm_type, .module = &model->module}, &all);
}

static wg_tensor *logits_at(wg_glm *model, wg_tensor *hidden, wg_tensor *positions) {
    return wg_model_logits(&(wg_model){.type = &wg_glm_type, .module = &model->module}, hidden,
                           positions);
}

static wg_tensor *loss_at(wg_glm *model, wg_tensor *ids, const wg_model_inputs *inputs,
                          wg_tensor *positions, wg_tensor *labels) {
    wg_tensor *hidden = forward(model, ids, inputs);
    return wg_model_loss(&(wg_model){.type = &wg_glm_type, .module = &model->module}, hidden,
                         positions, labels, NULL);
}

static wg_model_inputs load_inputs(void) {
    return (wg_model_inputs){.position_ids = load("position_ids"),
                             .block_position_ids = load("block_position_ids"),
                             .part_a = load("part_a")};
}

/* ---- Beside PyTorch ---- */

typedef struct fixture_batch {
    wg_glm *model;
    wg_model_inputs inputs;
    wg_tensor *ids, *targets, *labels;
} fixture_batch;

static fixture_batch load_batch(wg_glm *model) {
    return (fixture_batch){model, load_inputs(), load("ids"), load("targets"), load("labels")};
}

static wg_tensor *batch_loss(void *context) {
    const fixture_batch *batch = context;
    return loss_at(batch->model, batch->ids, &batch->inputs, batch->targets, batch->labels);
}

static void check_model(wg_dtype dtype, double tolerance) {
    wg_glm *model = load_model(dtype);
    fixture_batch batch = load_batch(model);
    wg_tensor *hidden = forward(model, batch.ids, &batch.inputs);
    wg_tensor *logits = wg_detach(logits_at(model, hidden, NULL));
    assert_relative(logits, load("logits"), tolerance);
    wg_tensor *rows = wg_reshape(logits, WG_DIMS(B * T, VOCAB));
    assert_relative(wg_detach(logits_at(model, hidden, batch.targets)),
                    wg_index_select(rows, 0, batch.targets), tolerance);
    wg_tensor *loss = batch_loss(&batch);
    assert_relative(wg_detach(loss), wg_select(load("loss"), 0, 0), tolerance);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    assert_model_gradients("glm", &model->module, tolerance);
    free_model(model);
}

START_TEST(logits_loss_and_every_gradient_equal_pytorch) {
    check_model(WG_F64, 1e-11);
    check_model(WG_F32, 1e-5);
}
END_TEST

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    wg_glm *model = load_model(WG_F32);
    fixture_batch batch = load_batch(model);
    const wg_adamw_options options = {.beta2 = 0.95, .weight_decay = 0.1};
    assert_model_training("glm", &model->module, wg_adamw_new(&options), batch_loss, &batch, 1e-4);
    free_model(model);
}
END_TEST

START_TEST(parameters_have_the_published_paths_and_shapes) {
    wg_glm *model = glm_new();
    assert_model_paths("glm", &model->module);
    free_model(model);
}
END_TEST

/* ---- Who sees whom ---- */

/* The change of the hidden state at each position of a sequence of 6, of which 3 are Part A, when
 * the token at `changed` changes. */
static void changes(wg_glm *model, int64_t changed, double out[6]) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_model_inputs inputs = {.part_a = wg_full(WG_I64, WG_DIMS(1), 3)};
    wg_tensor *before = wg_zeros(WG_I64, WG_DIMS(1, 6)), *after = wg_zeros(WG_I64, WG_DIMS(1, 6));
    ((int64_t *)wg_tensor_data(after))[changed] = 7;
    wg_tensor *difference = wg_sub(forward(model, after, &inputs), forward(model, before, &inputs));
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
    wg_model_inputs inputs = load_inputs();
    wg_tensor *ids = load("ids");
    wg_tensor *wanted = forward(model, ids, &inputs);
    wg_tensor *row = wg_reshape(wg_arange(WG_I64, 0, T, 1), WG_DIMS(T, 1));
    wg_tensor *column = wg_arange(WG_I64, 0, T, 1);
    wg_tensor *part_a = wg_reshape(inputs.part_a, WG_DIMS(B, 1, 1, 1));
    inputs.mask = wg_logical_or(wg_le(column, row), wg_lt(column, part_a));
    ck_assert_ptr_null(forward(model, ids, &inputs));
    assert_error(WG_ERROR_ARGUMENT, "part_a and a mask");
    inputs.part_a = NULL;
    assert_close(forward(model, ids, &inputs), wanted, 0, 0);
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

START_TEST(without_inputs_all_is_part_a_and_none_of_it_in_a_block) {
    wg_glm *model = load_model(WG_F32);
    wg_set_grad_enabled(false);
    wg_tensor *ids = load("ids");
    wg_tensor *positions = wg_arange(WG_I64, 0, T, 1);
    wg_model_inputs inputs = {.position_ids =
                                  wg_cat(WG_TENSORS(wg_reshape(positions, WG_DIMS(1, T)),
                                                    wg_reshape(positions, WG_DIMS(1, T)),
                                                    wg_reshape(positions, WG_DIMS(1, T))),
                                         0),
                              .block_position_ids = wg_zeros(WG_I64, WG_DIMS(B, T)),
                              .part_a = wg_full(WG_I64, WG_DIMS(B), T)};
    assert_close(forward(model, ids, NULL), forward(model, ids, &inputs), 0, 0);
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

/* ---- Generation ---- */

/* Part A at once and Part B token by token give the results of the whole sequence at once. */
START_TEST(a_cache_gives_part_b_token_by_token) {
    enum { ROW = 1, PART_A = 4, LENGTH = 11 };
    wg_glm *model = load_model(WG_F32);
    wg_set_grad_enabled(false);
    wg_kv_cache caches[LAYERS];
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_init(&caches[i], LENGTH);
    wg_tensor *ids = wg_slice(load("ids"), 0, ROW, ROW + 1, 1);
    wg_model_inputs all = load_inputs();
    wg_tensor *positions = wg_slice(all.position_ids, 0, ROW, ROW + 1, 1);
    wg_tensor *blocks = wg_slice(all.block_position_ids, 0, ROW, ROW + 1, 1);
    wg_tensor *wanted = wg_slice(load("logits"), 0, ROW, ROW + 1, 1);
    for (int64_t at = 0, end = PART_A + 2; at < LENGTH; at = end++) {
        wg_model_inputs inputs = {.position_ids = wg_slice(positions, 1, at, end, 1),
                                  .block_position_ids = wg_slice(blocks, 1, at, end, 1),
                                  .part_a = wg_full(WG_I64, WG_DIMS(1), PART_A),
                                  .caches = caches};
        wg_tensor *hidden = forward(model, wg_slice(ids, 1, at, end, 1), &inputs);
        assert_relative(logits_at(model, hidden, NULL), wg_slice(wanted, 1, at, end, 1), 1e-5);
    }
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_clear(&caches[i]);
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

/* Texts with Parts A of different lengths in one batch: the shorter ones begin with padding, which
 * is masked. (B, 1, T, seen + T): `end` is where Parts A end and Parts B begin. */
static wg_tensor *padded_mask(const int64_t *part_a, int64_t end, int64_t seen, int64_t count) {
    static bool sees[B * T * 2 * T];
    bool *next = sees;
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = seen; i < seen + count; i++)
            for (int64_t key = 0; key < seen + count; key++)
                *next++ = key >= end - part_a[b] && (key < end || key <= i);
    return wg_from_array(WG_BOOL, WG_DIMS(B, 1, count, seen + count), sees);
}

/* Columns of a fixture (B, T): row b from part_a[b] + first on; 0 in front of it. */
static wg_tensor *columns(const char *name, const int64_t *part_a, int64_t first, int64_t count) {
    const int64_t *from = wg_tensor_data(load(name));
    int64_t rows[B * T];
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = part_a[b] + first + i;
            rows[b * count + i] = at < 0 ? 0 : from[b * T + at];
        }
    return wg_from_array(WG_I64, WG_DIMS(B, count), rows);
}

START_TEST(a_batch_of_texts_of_other_lengths_has_by_caches_the_logits_of_full_forwards) {
    wg_glm *model = load_model(WG_F32);
    const int64_t *part_a = wg_tensor_data(load("part_a"));
    int64_t end = 0, shortest = T;
    for (int b = 0; b < B; b++) {
        end = part_a[b] > end ? part_a[b] : end;
        shortest = part_a[b] < shortest ? part_a[b] : shortest;
    }
    ck_assert_int_lt(shortest, end);
    wg_set_grad_enabled(false);
    wg_kv_cache caches[LAYERS];
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_init(&caches[i], 2 * T);
    for (int64_t seen = 0, count = end; seen < T; seen += count, count = 1) {
        const int64_t first = seen - end; /* of Part B */
        const wg_model_inputs inputs = {
            .position_ids = columns("position_ids", part_a, first, count),
            .block_position_ids = columns("block_position_ids", part_a, first, count),
            .mask = padded_mask(part_a, end, seen, count),
            .caches = caches,
        };
        wg_tensor *ids = columns("ids", part_a, first, count);
        wg_tensor *logits = logits_at(model, forward(model, ids, &inputs), NULL);
        for (int64_t b = 0; b < B; b++) {
            wg_tensor *wanted =
                wg_select(wg_select(load("logits"), 0, b), 0, part_a[b] + first + count - 1);
            assert_relative(wg_select(wg_select(logits, 0, b), 0, count - 1), wanted, 1e-4);
        }
    }
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_clear(&caches[i]);
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

/* ---- Training ---- */

/* A corpus of the alphabet, repeated: a blank follows from its neighbours, while all letters are
 * equally frequent. */
static wg_dataset *alphabet(wg_tokenizer **tokenizer) {
    const char *tokens[31] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    char letters[26][2], text[26 * 2 * 40 + 1];
    for (int i = 0; i < 26; i++) {
        memcpy(letters[i], (char[2]){(char)('a' + i)}, 2);
        tokens[5 + i] = letters[i];
    }
    for (int i = 0; i < 26 * 40; i++) {
        text[2 * i] = (char)('a' + i % 26);
        text[2 * i + 1] = i % 13 == 12 ? '\n' : ' ';
    }
    *tokenizer = wg__wordpiece_new(31, tokens, NULL);
    const wg_dataset_options options = {.format = WG_SENTENCES_BY_LINE};
    return wg_dataset_from_text(text, 26 * 2 * 40, NULL, *tokenizer, &options);
}

static double train_step(wg_glm *model, wg_batches *batches, wg_optimizer *optimizer) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg__blank_batch batch;
    ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
    const wg_model_inputs inputs = {.position_ids = batch.position_ids,
                                    .block_position_ids = batch.block_position_ids,
                                    .part_a = batch.part_a};
    wg_tensor *loss =
        loss_at(model, batch.input_ids, &inputs, batch.target_positions, batch.labels);
    const double value = wg_item(loss);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 3e-3), 0);
    wg_scope_end(&scope, NULL);
    return value;
}

START_TEST(blanks_of_an_alphabet_are_learned) {
    wg_tokenizer *tokenizer;
    wg_dataset *corpus = alphabet(&tokenizer);
    wg_batches *batches = wg__blank_batches_new(
        corpus, tokenizer, &(wg__blank_batch_options){.batch = 8, .sequence = 16});
    assert_no_error();
    wg_glm *model = glm_new(); /* of 48 words; this tokenizer has 35 of them */
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_state_dict *state = wg_module_state(&model->module);
    for (int64_t i = 0; i < state->count; i++)
        wg_optimizer_add(optimizer, state->entries[i].path, state->entries[i].slot->tensor, false);
    wg_state_dict_free(state);
    double first = 0, last = 0;
    for (int step = 0; step < 200; step++) {
        const double loss = train_step(model, batches, optimizer);
        first += step < 10 ? loss / 10 : 0;
        last += step >= 190 ? loss / 10 : 0;
    }
    ck_assert_double_gt(first, 3);
    ck_assert_double_lt(last, 1); /* log 26 is 3.3 */
    wg_optimizer_free(optimizer);
    wg_batches_free(batches);
    free_model(model);
    wg_dataset_free(corpus);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Errors ---- */

START_TEST(inputs_that_do_not_fit_are_refused) {
    wg_glm *model = glm_new();
    ck_assert_ptr_null(forward(model, wg_zeros(WG_I64, WG_DIMS(3)), NULL));
    assert_error(WG_ERROR_SHAPE, "ids have rank 1; wanted (B, T)");
    wg_tensor *ids = wg_zeros(WG_I64, WG_DIMS(2, 3));
    wg_model_inputs inputs = {.part_a = wg_zeros(WG_I64, WG_DIMS(3))};
    ck_assert_ptr_null(forward(model, ids, &inputs));
    assert_error(WG_ERROR_SHAPE, "part_a has rank 1 and 3 elements");
    ck_assert_ptr_null(forward(model, wg_zeros(WG_I64, WG_DIMS(1, POSITIONS + 2)), NULL));
    assert_error(WG_ERROR_INDEX, "17");
    ck_assert_ptr_null(forward(model, wg_full(WG_I64, WG_DIMS(1, 2), VOCAB), NULL));
    assert_error(WG_ERROR_INDEX, "48");
    free_model(model);
}
END_TEST

/* ---- Configurations ---- */

START_TEST(a_published_configuration_is_read) {
    wg_glm_config config;
    ck_assert_int_eq(
        wg_model_config_from_json(
            &wg_glm_type,
            "{\"architectures\": [\"GLMModel\"], \"attention_dropout_prob\": 0.1,"
            "\"attention_scale\": 1.0, \"block_position_encoding\": true,"
            "\"checkpoint_activations\": false, \"checkpoint_num_layers\": 1,"
            "\"embedding_dropout_prob\": 0.1, \"hidden_size\": 1024, \"initializer_range\": 0.02,"
            "\"max_sequence_length\": 512, \"model_type\": \"glm\", \"num_attention_heads\": 16,"
            "\"num_layers\": 24, \"output_dropout_prob\": 0.1, \"output_predict\": true,"
            "\"parallel_output\": true, \"pool_token\": \"cls\", \"relative_encoding\": false,"
            "\"spell_func\": \"lstm\", \"spell_length\": null, \"torch_dtype\": \"float32\","
            "\"vocab_size\": 30592}",
            &config),
        0);
    ck_assert_int_eq(config.num_layers, 24);
    ck_assert_int_eq(config.vocab_size, 30592);
    char *json = wg_model_config_to_json(&wg_glm_type, &config);
    wg_glm_config again;
    ck_assert_int_eq(wg_model_config_from_json(&wg_glm_type, json, &again), 0);
    ck_assert_mem_eq(&again, &config, sizeof config);
    wg_text_free(json);
}
END_TEST

START_TEST(a_configuration_that_cannot_be_is_refused_by_its_key) {
    wg_glm_config config;
    wg_model_preset_config(&wg_glm_type, "glm-tiny", &config);
    config.num_attention_heads = 3;
    ck_assert_ptr_null(wg__glm_new(&config, 1));
    assert_error(WG_ERROR_ARGUMENT, "num_attention_heads 3 does not divide hidden_size 128");
    config.num_attention_heads = 2;
    config.output_dropout_prob = 1;
    ck_assert_ptr_null(wg__glm_new(&config, 1));
    assert_error(WG_ERROR_ARGUMENT, "output_dropout_prob is 1; it must be");
    ck_assert_int_eq(wg_model_preset_config(&wg_glm_type, "glm-huge", &config), -1);
    assert_error(WG_ERROR_ARGUMENT, "there is no preset \"glm-huge\"; there are glm-tiny");
    ck_assert_int_eq(wg_model_config_from_json(&wg_glm_type, "{\"hidden_size\": 8}", &config), -1);
    assert_error(WG_ERROR_FORMAT, "vocab_size");
    ck_assert_int_eq(
        wg_model_config_from_json(&wg_glm_type,
                                  "{\"hidden_size\": 8, \"vocab_size\": 9, \"num_layers\": 1,"
                                  "\"num_attention_heads\": 2, \"relative_encoding\": true}",
                                  &config),
        -1);
    assert_error(WG_ERROR_FORMAT, "\"relative_encoding\" is true; wanted false");
}
END_TEST

/* Two tables of positions that begin at 0 and include max_sequence_length; no word table but one.
 */
static int64_t parameters_of(const wg_glm_config *config) {
    const int64_t c = config->hidden_size;
    const int64_t tables = config->vocab_size + 2 * (config->max_sequence_length + 1);
    const int64_t attention = 4 * c * c + 4 * c, mlp = 8 * c * c + 5 * c, norms = 4 * c;
    return tables * c + config->num_layers * (attention + mlp + norms) + 2 * c;
}

START_TEST(presets_have_their_published_numbers_of_parameters) {
    wg_glm_config config;
    ck_assert_int_eq(wg_model_preset_config(&wg_glm_type, "glm-base", &config), 0);
    ck_assert_int_eq(parameters_of(&config) / 1000000, 109); /* "110M" */
    ck_assert_int_eq(wg_model_preset_config(&wg_glm_type, "glm-large", &config), 0);
    ck_assert_int_eq(parameters_of(&config) / 1000000, 334); /* "335M" */
    ck_assert_str_eq(wg_glm_type.presets[0].name, "glm-tiny");
    ck_assert_ptr_null(wg_glm_type.presets[4].name);
    ck_assert_int_eq(wg_model_preset_config(&wg_glm_type, wg_glm_type.presets[0].name, &config), 0);
    wg_glm *model = wg__glm_new(&config, 1);
    ck_assert_int_eq(wg_module_parameter_count(&model->module), parameters_of(&config));
    wg_module_free(&model->module);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        logits_loss_and_every_gradient_equal_pytorch,
        ten_steps_of_adamw_lose_what_pytorch_loses,
        parameters_have_the_published_paths_and_shapes,
        part_a_is_seen_by_all_and_part_b_by_what_follows,
        a_mask_says_the_same_as_part_a_does,
        without_inputs_all_is_part_a_and_none_of_it_in_a_block,
        a_cache_gives_part_b_token_by_token,
        a_batch_of_texts_of_other_lengths_has_by_caches_the_logits_of_full_forwards,
        blanks_of_an_alphabet_are_learned,
        inputs_that_do_not_fit_are_refused,
        a_published_configuration_is_read,
        a_configuration_that_cannot_be_is_refused_by_its_key,
        presets_have_their_published_numbers_of_parameters,
    };
    add_suite("glm", tests);
}
