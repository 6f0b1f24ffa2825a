/* The Transformer against PyTorch (tests/fixtures/transformer.py): its names, padding, generation
 * with caches, translation, configurations. A case is one of its forms. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "models/transformer.h"
#include "objectives/translation.h"
#include "optim/optimizer.h"
#include "tensor/ops.h"
#include "nn/positions.h"
#include "tests/support/testing.h"
#include "models/internal.h"
#include "nn/internal.h"

/* The sizes of the fixture. */
enum { B = 3, S = 9, T = 7, SOURCES = 40, TARGETS = 48, POSITIONS = 16, LAYERS = 2 };

/* ---- The models of the fixture ---- */

/* Post-norm with one word table; pre-norm with two. */
static const char *const forms[] = {"post", "pre"};

static const char *form_name(int index) {
    return forms[index];
}

static wg_transformer_config config_of(int form) {
    wg_transformer_config config;
    wg_model_preset_config(&wg_transformer_type, "transformer-tiny", &config);
    config.normalize_before = form == 1;
    config.share_encoder_decoder_embeddings = form == 0;
    config.vocab_size = form == 0 ? TARGETS : SOURCES;
    config.decoder_vocab_size = TARGETS;
    config.d_model = 16;
    config.encoder_layers = config.decoder_layers = LAYERS;
    config.encoder_ffn_dim = config.decoder_ffn_dim = 24;
    config.dropout = 0;
    config.max_position_embeddings = POSITIONS;
    return config;
}

static wg_transformer *make(int form) {
    const wg_transformer_config config = config_of(form);
    return wg__transformer_new(&config, 1);
}

static wg_tensor *load(int form, const char *name) {
    return fixture_tensor("transformer/%s/%s", forms[form], name);
}

/* Pairs of sentences. */
typedef struct pairs {
    wg_tensor *source, *source_keep; /* (B, S) */
    wg_tensor *target, *target_keep; /* (B, T): what is given to the decoder */
    wg_tensor *labels;               /* (B, T) */
} pairs;

static wg_model model_of(wg_transformer *model) {
    return (wg_model){.type = &wg_transformer_type, .module = &model->module};
}

static wg_tensor *encode(wg_transformer *model, wg_tensor *source, wg_tensor *keep) {
    const wg_model all = model_of(model);
    return wg_model_encode(&all, source, keep);
}

static wg_tensor *decode(wg_transformer *model, const wg_model_inputs *inputs) {
    const wg_model all = model_of(model);
    return wg_model_forward(&all, inputs);
}

static wg_tensor *logits_at(wg_transformer *model, wg_tensor *hidden) {
    const wg_model all = model_of(model);
    return wg_model_logits(&all, hidden, NULL);
}

static wg_tensor *run(wg_transformer *model, const pairs *batch) {
    return decode(model,
                  &(wg_model_inputs){.ids = batch->target,
                                     .keep = batch->target_keep,
                                     .memory = encode(model, batch->source, batch->source_keep),
                                     .memory_keep = batch->source_keep});
}

static wg_tensor *forward(wg_transformer *model, const pairs *batch) {
    return logits_at(model, run(model, batch));
}

static wg_tensor *loss_of_pairs(wg_transformer *model, const pairs *batch) {
    const wg_model all = model_of(model);
    return wg_model_loss(&all, run(model, batch), NULL, batch->labels, NULL);
}

static pairs load_batch(int form) {
    return (pairs){
        .source = load(form, "source"),
        .source_keep = load(form, "source_keep"),
        .target = load(form, "target"),
        .target_keep = load(form, "target_keep"),
        .labels = load(form, "labels"),
    };
}

/* The next part of a flat file, in a parameter's shape and dtype; advances *at. */
static wg_tensor *take(wg_tensor *flat, int64_t *at, const wg_tensor *like) {
    wg_tensor *part = wg_slice(flat, 0, *at, *at + wg_tensor_count(like), 1);
    *at += wg_tensor_count(like);
    part = wg_reshape(part, wg_tensor_ndim(like), wg_tensor_shape(like));
    return wg_cast(part, wg_tensor_dtype(like));
}

static wg_transformer *load_model(int form, wg_dtype dtype) {
    wg_transformer *model = make(form);
    assert_no_error();
    wg_state_dict *state = wg_module_state(&model->module);
    wg_tensor *flat = load(form, "weights");
    int64_t at = 0;
    bool recording = wg_set_grad_enabled(false);
    for (int64_t i = 0; i < state->count; i++)
        if (!state->entries[i].slot->tied)
            wg_copy_(state->entries[i].slot->tensor,
                     take(flat, &at, state->entries[i].slot->tensor));
    wg_set_grad_enabled(recording);
    ck_assert_int_eq(at, wg_tensor_count(flat));
    wg_state_dict_free(state);
    ck_assert_int_eq(wg_module_to(&model->module, dtype), 0);
    return model;
}

static void free_model(wg_transformer *model) {
    wg_scope_clear_root();
    wg_module_free(&model->module);
}

/* |x - expected| <= tolerance * max |expected|, everywhere. */
static void assert_relative(wg_tensor *x, wg_tensor *expected, double tolerance) {
    wg_tensor *wanted = wg_cast(expected, wg_tensor_dtype(x));
    assert_close(x, wanted, 0, tolerance * wg_item(wg_max(wg_abs(wanted), WG_ALL, false)));
}

/* ---- Beside PyTorch ---- */

static void check_gradients(int form, wg_module *module, double tolerance) {
    wg_state_dict *state = wg_module_state(module);
    wg_tensor *flat = load(form, "gradients");
    wg_tensor *largest = wg_max(wg_abs(flat), WG_ALL, false);
    int64_t at = 0;
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        if (entry->slot->tied)
            continue;
        wg_tensor *parameter = entry->slot->tensor, *wanted = take(flat, &at, parameter);
        /* The bias of the keys changes no softmax: its gradient is only rounding, PyTorch's too. */
        if (strstr(entry->path, "k_proj.bias"))
            assert_close(wg_gradient(parameter), wanted, 0, tolerance * wg_item(largest));
        else
            assert_relative(wg_gradient(parameter), wanted, tolerance);
    }
    wg_state_dict_free(state);
}

static void check_model(int form, wg_dtype dtype, double tolerance) {
    wg_transformer *model = load_model(form, dtype);
    const pairs batch = load_batch(form);
    assert_relative(wg_detach(forward(model, &batch)), load(form, "logits"), tolerance);
    wg_tensor *loss = loss_of_pairs(model, &batch);
    assert_relative(wg_detach(loss), wg_select(load(form, "loss"), 0, 0), tolerance);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    check_gradients(form, &model->module, tolerance);
    free_model(model);
}

START_TEST(logits_loss_and_every_gradient_equal_pytorch) {
    check_model(_i, WG_F64, 1e-11);
    check_model(_i, WG_F32, 1e-5);
}
END_TEST

START_TEST(in_evaluation_the_loss_is_not_smoothed) {
    wg_transformer *model = load_model(_i, WG_F64);
    const pairs batch = load_batch(_i);
    wg_module_train(&model->module, false);
    wg_tensor *loss = loss_of_pairs(model, &batch);
    assert_relative(wg_detach(loss), wg_select(load(_i, "loss"), 0, 1), 1e-11);
    free_model(model);
}
END_TEST

static void add_to_optimizer(wg_optimizer *optimizer, wg_module *module) {
    wg_state_dict *state = wg_module_state(module);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        if (!entry->slot->tied)
            wg_optimizer_add(optimizer, entry->path, entry->slot->tensor, entry->slot->no_decay);
    }
    wg_state_dict_free(state);
}

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    wg_transformer *model = load_model(_i, WG_F32);
    const pairs batch = load_batch(_i);
    wg_tensor *wanted = load(_i, "adamw_losses");
    const wg_adamw_options options = {.beta2 = 0.98, .eps = 1e-9, .weight_decay = 0.1};
    wg_optimizer *optimizer = wg_adamw_new(&options);
    add_to_optimizer(optimizer, &model->module);
    for (int64_t step = 0; step < 10; step++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *loss = loss_of_pairs(model, &batch);
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
    wg_transformer *model = make(_i);
    wg_state_dict *state = wg_module_state(&model->module);
    char path[128], line[256], wanted[256];
    snprintf(path, sizeof path, "transformer/%s/parameters.txt", forms[_i]);
    FILE *file = fopen(fixture(path), "r");
    ck_assert_ptr_nonnull(file);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        if (entry->slot->tied)
            continue;
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

START_TEST(word_tables_are_shared_as_the_configuration_says) {
    wg_transformer *model = make(_i);
    wg_slot *source = wg_module_find(&model->module, "encoder.embed_tokens.weight");
    wg_slot *target = wg_module_find(&model->module, "decoder.embed_tokens.weight");
    wg_slot *output = wg_module_find(&model->module, "decoder.output_projection.weight");
    ck_assert(output->tied && output->tensor == target->tensor);
    ck_assert(target->tied == (_i == 0));
    ck_assert((source->tensor == target->tensor) == (_i == 0));
    free_model(model);
}
END_TEST

/* ---- Padding ---- */

/* (1, count) bool, true for the first `kept`. */
static wg_tensor *keep_first(int64_t kept, int64_t count) {
    wg_tensor *keep = wg_zeros(WG_BOOL, WG_DIMS(1, count));
    wg_copy_(wg_slice(keep, 1, 0, kept, 1), wg_ones(WG_BOOL, WG_DIMS(1)));
    return keep;
}

static wg_tensor *pad(wg_tensor *ids, int64_t count) {
    wg_tensor *padding = wg_full(WG_I64, WG_DIMS(1, count), 5);
    return wg_cat(2, (wg_tensor *[]){ids, padding}, 1);
}

START_TEST(padding_of_source_and_target_changes_nothing) {
    enum { PADDING = 4 };
    wg_transformer *model = load_model(_i, WG_F32);
    wg_set_grad_enabled(false);
    pairs alone = {
        .source = wg_slice(load(_i, "source"), 0, 0, 1, 1),
        .target = wg_slice(load(_i, "target"), 0, 0, 1, 1),
    };
    const pairs padded = {
        .source = pad(alone.source, PADDING),
        .source_keep = keep_first(S, S + PADDING),
        .target = pad(alone.target, PADDING),
        .target_keep = keep_first(T, T + PADDING),
    };
    wg_tensor *logits = forward(model, &padded);
    assert_relative(wg_slice(logits, 1, 0, T, 1), forward(model, &alone), 1e-5);
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

START_TEST(padding_in_front_of_a_target_changes_nothing_at_positions_of_its_own) {
    enum { PADDING = 3 };
    wg_transformer *model = load_model(_i, WG_F32);
    wg_set_grad_enabled(false);
    wg_tensor *source = wg_slice(load(_i, "source"), 0, 0, 1, 1);
    wg_tensor *target = wg_slice(load(_i, "target"), 0, 0, 1, 1);
    wg_tensor *memory = encode(model, source, NULL);
    wg_tensor *wanted = decode(model, &(wg_model_inputs){.ids = target, .memory = memory});
    wg_tensor *front = wg_zeros(WG_I64, WG_DIMS(1, PADDING));
    const wg_model_inputs inputs = {
        .ids = wg_cat(2, (wg_tensor *[]){front, target}, 1),
        .memory = memory,
        .keep = wg_logical_not(keep_first(PADDING, T + PADDING)),
        .position_ids = wg_unsqueeze(wg_relu(wg_arange(WG_I64, -PADDING, T, 1)), 0),
    };
    wg_tensor *hidden = decode(model, &inputs);
    assert_relative(wg_slice(hidden, 1, PADDING, WG_END, 1), wanted, 1e-5);
    wg_set_grad_enabled(true);
    free_model(model);
}
END_TEST

/* ---- Generation ---- */

static void clear_caches(wg_kv_cache *caches) {
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_clear(&caches[i]);
}

START_TEST(caches_give_token_by_token_the_logits_of_all_at_once) {
    wg_transformer *model = load_model(_i, WG_F32);
    const pairs all = load_batch(_i);
    wg_set_grad_enabled(false);
    wg_kv_cache caches[LAYERS], memory_caches[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        wg_kv_cache_init(&caches[i], T);
        wg_kv_cache_init(&memory_caches[i], S);
    }
    wg_model_inputs inputs = {
        .memory = encode(model, all.source, all.source_keep),
        .memory_keep = all.source_keep,
        .memory_caches = memory_caches,
        .caches = caches,
    };
    wg_tensor *parts[T];
    int count = 0;
    for (int64_t begin = 0, step = 3; begin < T; begin += step, step = 1) {
        inputs.ids = wg_slice(all.target, 1, begin, begin + step, 1);
        parts[count++] = logits_at(model, decode(model, &inputs));
    }
    pairs unmasked = all; /* causal: padding that follows is not seen anyhow */
    unmasked.target_keep = NULL;
    assert_relative(wg_cat(count, parts, 1), forward(model, &unmasked), 1e-5);
    ck_assert_int_eq(memory_caches[0].length, S);
    ck_assert_int_eq(caches[0].length, T);
    wg_set_grad_enabled(true);
    clear_caches(caches);
    clear_caches(memory_caches);
    free_model(model);
}
END_TEST

/* The log probability of a translation and its end, by one forward without caches. */
static double probability_of(wg_transformer *model, wg_tensor *source, wg_tensor *keep,
                             const wg_beam_result *result) {
    const wg_token_list *said = &result->tokens;
    const int64_t count = said->count + result->ended;
    int64_t ids[POSITIONS] = {model->config.decoder_start_token_id}, labels[POSITIONS];
    for (int64_t i = 0; i < said->count; i++) {
        labels[i] = said->ids[i];
        if (i + 1 < count)
            ids[i + 1] = said->ids[i];
    }
    if (result->ended)
        labels[count - 1] = model->config.eos_token_id;
    const pairs batch = {
        .source = source,
        .source_keep = keep,
        .target = wg_from_array(WG_I64, WG_DIMS(1, count), ids),
        .labels = wg_from_array(WG_I64, WG_DIMS(1, count), labels),
    };
    wg_module_train(&model->module, false);
    const double loss = wg_item(loss_of_pairs(model, &batch));
    wg_module_train(&model->module, true);
    return -loss * (double)count;
}

START_TEST(a_batch_is_translated_as_each_of_it_alone_with_the_probabilities_of_a_forward) {
    wg_transformer *model = load_model(_i, WG_F32);
    wg_tensor *source = load(_i, "source"), *keep = load(_i, "source_keep");
    wg_beam_result together[B], alone;
    const wg_beam_options options = {.beam = 3};
    ck_assert_int_eq(
        wg__translate_batch(&(wg_model){.type = &wg_transformer_type, .module = &model->module},
                            source, keep, &options, together),
        0);
    ck_assert(wg_module_is_training(&model->module));
    for (int64_t b = 0; b < B; b++) {
        wg_tensor *one = wg_slice(source, 0, b, b + 1, 1), *kept = wg_slice(keep, 0, b, b + 1, 1);
        ck_assert_int_eq(
            wg__translate_batch(&(wg_model){.type = &wg_transformer_type, .module = &model->module},
                                one, kept, &options, &alone),
            0);
        ck_assert_int_eq(alone.tokens.count, together[b].tokens.count);
        if (alone.tokens.count > 0)
            ck_assert_mem_eq(alone.tokens.ids, together[b].tokens.ids,
                             (size_t)alone.tokens.count * sizeof *alone.tokens.ids);
        const double wanted = probability_of(model, one, kept, &alone);
        ck_assert_double_eq_tol(together[b].log_probability, wanted, 1e-4 * -wanted);
        wg_token_list_free(&alone.tokens);
        wg_token_list_free(&together[b].tokens);
    }
    free_model(model);
}
END_TEST

START_TEST(a_translation_that_finds_no_memory_leaves_nothing_behind) {
    wg_transformer_config config = config_of(_i);
    config.encoder_layers = config.decoder_layers = 1;
    config.max_position_embeddings = 3;
    wg_tensor *source = wg_slice(wg_slice(load(_i, "source"), 0, 0, 2, 1), 1, 0, 3, 1);
    wg_tensor *keep = wg_slice(wg_ones(WG_BOOL, WG_DIMS(2, 4)), 1, 0, 3, 1);
    const wg_beam_options options = {.beam = 2};
    const int64_t live = wg_alloc_get_stats().live_blocks;
    int failures = 0;
    bool done = false;
    for (int64_t n = 0; !done; n += 7) {
        wg__alloc_fail_after(n);
        wg_beam_result results[2] = {0};
        wg_transformer *model = wg__transformer_new(&config, 1);
        done = model && wg__translate_batch(
                            &(wg_model){.type = &wg_transformer_type, .module = &model->module},
                            source, keep, &options, results) == 0;
        wg__alloc_fail_after(-1);
        if (!done) {
            assert_error(WG_ERROR_MEMORY, "");
            failures++;
        }
        ck_assert(!model || wg_module_is_training(&model->module));
        for (int b = 0; b < 2; b++)
            wg_token_list_free(&results[b].tokens);
        if (model)
            wg_module_free(&model->module);
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, live);
    }
    ck_assert_int_gt(failures, 50);
}
END_TEST

/* ---- Learned positions ---- */

/* Copies the parameters of one model to another by their paths. */
static void copy_shared(wg_transformer *from, wg_transformer *to) {
    wg_state_dict *state = wg_module_state(&from->module);
    wg_set_grad_enabled(false);
    for (int64_t i = 0; i < state->count; i++)
        ck_assert_int_eq(wg_copy_(wg_module_find(&to->module, state->entries[i].path)->tensor,
                                  state->entries[i].slot->tensor),
                         0);
    wg_set_grad_enabled(true);
    wg_state_dict_free(state);
}

START_TEST(learned_positions_with_the_values_of_sinusoids_give_the_same) {
    wg_transformer_config config = config_of(_i);
    wg_transformer *fixed = wg__transformer_new(&config, 1);
    config.static_position_embeddings = false;
    wg_transformer *learned = wg__transformer_new(&config, 2);
    assert_no_error();
    copy_shared(fixed, learned);
    wg_tensor *sinusoids = wg__sinusoidal_table(WG_F32, config.d_model, 0, POSITIONS, NULL);
    static const char *const tables[] = {"encoder.embed_positions.weight",
                                         "decoder.embed_positions.weight"};
    wg_tensor *weights[2];
    for (int i = 0; i < 2; i++) {
        weights[i] = wg_module_find(&learned->module, tables[i])->tensor;
        wg_set_grad_enabled(false);
        ck_assert_int_eq(wg_copy_(weights[i], sinusoids), 0);
        wg_set_grad_enabled(true);
    }
    const pairs batch = load_batch(_i);
    wg_tensor *loss = loss_of_pairs(learned, &batch);
    ck_assert(wg_item(loss) == wg_item(loss_of_pairs(fixed, &batch)));
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    for (int i = 0; i < 2; i++) {
        wg_tensor *size = wg_sum(wg_abs(wg_gradient(weights[i])), WG_DIMS(1), false);
        ck_assert(wg_item(wg_select(size, 0, 0)) > 0);
        ck_assert(wg_item(wg_select(size, 0, POSITIONS - 1)) == 0);
    }
    /* Positions that are named: the same as those that are counted. */
    const int64_t length = wg_tensor_size(batch.target, 1), rows = wg_tensor_size(batch.target, 0);
    wg_tensor *places =
        wg_add(wg_zeros(WG_I64, WG_DIMS(rows, length)), wg_arange(WG_I64, 0, (double)length, 1));
    wg_model_inputs inputs = {.ids = batch.target,
                              .memory = encode(learned, batch.source, batch.source_keep),
                              .memory_keep = batch.source_keep};
    wg_tensor *counted = decode(learned, &inputs);
    inputs.position_ids = places;
    ck_assert(wg_item(wg_sum(wg_abs(wg_sub(decode(learned, &inputs), counted)), WG_ALL, false)) ==
              0);
    free_model(fixed);
    free_model(learned);
}
END_TEST

/* ---- Errors ---- */

START_TEST(what_does_not_fit_is_refused) {
    wg_transformer *model = make(_i);
    ck_assert_ptr_null(encode(model, wg_zeros(WG_I64, WG_DIMS(1, POSITIONS + 1)), NULL));
    assert_error(WG_ERROR_SHAPE, "17 positions are more than the model's 16");
    ck_assert_ptr_null(encode(model, wg_zeros(WG_I64, WG_DIMS(3)), NULL));
    assert_error(WG_ERROR_SHAPE, "ids have rank 1; wanted (B, T)");
    ck_assert_ptr_null(decode(model, &(wg_model_inputs){.ids = wg_zeros(WG_I64, WG_DIMS(1, 2))}));
    assert_error(WG_ERROR_ARGUMENT, "there is no memory");
    wg_beam_result result;
    wg_tensor *foreign = wg_full(WG_I64, WG_DIMS(1, 2), TARGETS);
    ck_assert_int_eq(
        wg__translate_batch(&(wg_model){.type = &wg_transformer_type, .module = &model->module},
                            foreign, NULL, NULL, &result),
        -1);
    assert_error(WG_ERROR_INDEX, "48");
    free_model(model);
}
END_TEST

/* ---- Configurations ---- */

START_TEST(a_configuration_goes_through_json_and_back) {
    const wg_transformer_config config = config_of(_i);
    wg_transformer_config read;
    char *json = wg_model_config_to_json(&wg_transformer_type, &config);
    ck_assert_int_eq(wg_model_config_from_json(&wg_transformer_type, json, &read), 0);
    char *again = wg_model_config_to_json(&wg_transformer_type, &read);
    ck_assert_str_eq(json, again);
    wg_text_free(json);
    wg_text_free(again);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        logits_loss_and_every_gradient_equal_pytorch,
        in_evaluation_the_loss_is_not_smoothed,
        ten_steps_of_adamw_lose_what_pytorch_loses,
        parameters_have_the_published_paths_and_shapes,
        word_tables_are_shared_as_the_configuration_says,
        padding_of_source_and_target_changes_nothing,
        padding_in_front_of_a_target_changes_nothing_at_positions_of_its_own,
        caches_give_token_by_token_the_logits_of_all_at_once,
        a_batch_is_translated_as_each_of_it_alone_with_the_probabilities_of_a_forward,
        a_translation_that_finds_no_memory_leaves_nothing_behind,
        learned_positions_with_the_values_of_sinusoids_give_the_same,
        what_does_not_fit_is_refused,
        a_configuration_goes_through_json_and_back,
    };
    add_suite_of_each("transformer", of_each, WG_COUNT(forms), form_name);
}
