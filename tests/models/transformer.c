/* The Transformer on the models of tests/fixtures/transformer.py: word tables, padding,
 * translation, learned positions. A case is one of its forms. */
#include "base/alloc.h"
#include "models/transformer.h"
#include "objectives/translation.h"
#include "tensor/ops.h"
#include "nn/positions.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "models/internal.h"
#include "nn/internal.h"

/* The sizes of the fixture. */
enum { B = 3, S = 9, T = 7, TARGETS = 48, POSITIONS = 16 };

static const char *const folders[] = {"transformer/post", "transformer/pre"};

/* Post-norm with one word table; pre-norm with two. */
static const char *form_name(int index) {
    return folders[index];
}

static wg_tensor *load(int form, const char *name) {
    return fixture_tensor("%s/%s", folders[form], name);
}

/* Pairs of sentences. */
typedef struct pairs {
    wg_tensor *source, *source_keep; /* (B, S) */
    wg_tensor *target, *target_keep; /* (B, T): what is given to the decoder */
    wg_tensor *labels;               /* (B, T) */
} pairs;

static const wg_transformer_config *config_of(const wg_model *model) {
    return wg_transformer_type.config(model->module);
}

static wg_tensor *run(const wg_model *model, const pairs *batch) {
    const wg_model_inputs inputs = {.ids = batch->target,
                                    .keep = batch->target_keep,
                                    .memory =
                                        wg_model_encode(model, batch->source, batch->source_keep),
                                    .memory_keep = batch->source_keep};
    return wg_model_forward(model, &inputs);
}

static wg_tensor *logits_of(const wg_model *model, const pairs *batch) {
    return wg_model_logits(model, run(model, batch), NULL);
}

static wg_tensor *loss_of_pairs(const wg_model *model, const pairs *batch) {
    return wg_model_loss(model, run(model, batch), NULL, batch->labels, NULL);
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

START_TEST(in_evaluation_the_loss_is_not_smoothed) {
    wg_model model = load_fixture_model(folders[_i], WG_F64);
    const pairs batch = load_batch(_i);
    wg_module_train(model.module, false);
    wg_tensor *loss = loss_of_pairs(&model, &batch);
    assert_relative(wg_detach(loss), wg_select(load(_i, "loss"), 0, 1), 1e-11);
    free_model(&model);
}
END_TEST

START_TEST(word_tables_are_shared_as_the_configuration_says) {
    wg_model model = new_fixture_model(folders[_i]);
    wg_slot *source = wg_module_find(model.module, "encoder.embed_tokens.weight");
    wg_slot *target = wg_module_find(model.module, "decoder.embed_tokens.weight");
    wg_slot *output = wg_module_find(model.module, "decoder.output_projection.weight");
    ck_assert(output->tied && output->tensor == target->tensor);
    ck_assert(target->tied == (_i == 0));
    ck_assert((source->tensor == target->tensor) == (_i == 0));
    free_model(&model);
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
    wg_model model = load_fixture_model(folders[_i], WG_F32);
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
    wg_tensor *logits = logits_of(&model, &padded);
    assert_relative(wg_slice(logits, 1, 0, T, 1), logits_of(&model, &alone), 1e-5);
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

/* ---- Generation ---- */

/* The log probability of a translation and its end, by one forward without caches. */
static double probability_of(const wg_model *model, wg_tensor *source, wg_tensor *keep,
                             const wg_beam_result *result) {
    const wg_token_list *said = &result->tokens;
    const int64_t count = said->count + result->ended;
    int64_t ids[POSITIONS] = {config_of(model)->decoder_start_token_id}, labels[POSITIONS];
    for (int64_t i = 0; i < said->count; i++) {
        labels[i] = said->ids[i];
        if (i + 1 < count)
            ids[i + 1] = said->ids[i];
    }
    if (result->ended)
        labels[count - 1] = config_of(model)->eos_token_id;
    const pairs batch = {
        .source = source,
        .source_keep = keep,
        .target = wg_from_array(WG_I64, WG_DIMS(1, count), ids),
        .labels = wg_from_array(WG_I64, WG_DIMS(1, count), labels),
    };
    wg_module_train(model->module, false);
    const double loss = wg_item(loss_of_pairs(model, &batch));
    wg_module_train(model->module, true);
    return -loss * (double)count;
}

START_TEST(a_batch_is_translated_as_each_of_it_alone_with_the_probabilities_of_a_forward) {
    wg_model model = load_fixture_model(folders[_i], WG_F32);
    wg_tensor *source = load(_i, "source"), *keep = load(_i, "source_keep");
    wg_beam_result together[B], alone;
    const wg_beam_options options = {.beam = 3};
    ck_assert_int_eq(wg__translate_batch(&model, source, keep, &options, together), 0);
    ck_assert(wg_module_is_training(model.module));
    for (int64_t b = 0; b < B; b++) {
        wg_tensor *one = wg_slice(source, 0, b, b + 1, 1), *kept = wg_slice(keep, 0, b, b + 1, 1);
        ck_assert_int_eq(wg__translate_batch(&model, one, kept, &options, &alone), 0);
        ck_assert_int_eq(alone.tokens.count, together[b].tokens.count);
        if (alone.tokens.count > 0)
            ck_assert_mem_eq(alone.tokens.ids, together[b].tokens.ids,
                             (size_t)alone.tokens.count * sizeof *alone.tokens.ids);
        const double wanted = probability_of(&model, one, kept, &alone);
        ck_assert_double_eq_tol(together[b].log_probability, wanted, 1e-4 * -wanted);
        wg_token_list_free(&alone.tokens);
        wg_token_list_free(&together[b].tokens);
    }
    free_model(&model);
}
END_TEST

START_TEST(a_translation_that_finds_no_memory_leaves_nothing_behind) {
    wg_model whole = new_fixture_model(folders[_i]);
    wg_transformer_config config = *config_of(&whole);
    wg_model_free(&whole);
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
        wg_model model;
        done = wg_model_from_config(&wg_transformer_type, &config, 1, &model) == 0 &&
               wg__translate_batch(&model, source, keep, &options, results) == 0;
        wg__alloc_fail_after(-1);
        if (!done) {
            assert_error(WG_ERROR_MEMORY, "");
            failures++;
        }
        ck_assert(!model.module || wg_module_is_training(model.module));
        for (int b = 0; b < 2; b++)
            wg_token_list_free(&results[b].tokens);
        wg_model_free(&model);
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, live);
    }
    ck_assert_int_gt(failures, 50);
}
END_TEST

/* ---- Learned positions ---- */

/* Copies the parameters of one model to another by their paths. */
static void copy_shared(const wg_model *from, const wg_model *to) {
    wg_state_dict *state = wg_module_state(from->module);
    wg_set_grad_enabled(false);
    for (int64_t i = 0; i < state->count; i++)
        ck_assert_int_eq(wg_copy_(wg_module_find(to->module, state->entries[i].path)->tensor,
                                  state->entries[i].slot->tensor),
                         0);
    wg_set_grad_enabled(true);
    wg_state_dict_free(state);
}

START_TEST(learned_positions_with_the_values_of_sinusoids_give_the_same) {
    wg_model fixed = new_fixture_model(folders[_i]), learned;
    wg_transformer_config config = *config_of(&fixed);
    config.static_position_embeddings = false;
    ck_assert_int_eq(wg_model_from_config(&wg_transformer_type, &config, 2, &learned), 0);
    copy_shared(&fixed, &learned);
    wg_tensor *sinusoids = wg__sinusoidal_table(WG_F32, config.d_model, 0, POSITIONS, NULL);
    static const char *const tables[] = {"encoder.embed_positions.weight",
                                         "decoder.embed_positions.weight"};
    wg_tensor *weights[2];
    for (int i = 0; i < 2; i++) {
        weights[i] = wg_module_find(learned.module, tables[i])->tensor;
        wg_set_grad_enabled(false);
        ck_assert_int_eq(wg_copy_(weights[i], sinusoids), 0);
        wg_set_grad_enabled(true);
    }
    const pairs batch = load_batch(_i);
    wg_tensor *loss = loss_of_pairs(&learned, &batch);
    ck_assert(wg_item(loss) == wg_item(loss_of_pairs(&fixed, &batch)));
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
                              .memory = wg_model_encode(&learned, batch.source, batch.source_keep),
                              .memory_keep = batch.source_keep};
    wg_tensor *counted = wg_model_forward(&learned, &inputs);
    inputs.position_ids = places;
    ck_assert(wg_item(wg_sum(wg_abs(wg_sub(wg_model_forward(&learned, &inputs), counted)), WG_ALL,
                             false)) == 0);
    free_model(&fixed);
    free_model(&learned);
}
END_TEST

/* ---- Errors ---- */

START_TEST(what_does_not_fit_is_refused) {
    wg_model model = new_fixture_model(folders[_i]);
    assert_fails(
        wg_model_forward(&model, &(wg_model_inputs){.ids = wg_zeros(WG_I64, WG_DIMS(1, 2))}),
        WG_ERROR_ARGUMENT, "there is no memory");
    wg_beam_result result;
    wg_tensor *foreign = wg_full(WG_I64, WG_DIMS(1, 2), TARGETS);
    assert_fails(wg__translate_batch(&model, foreign, NULL, NULL, &result), WG_ERROR_INDEX, "48");
    free_model(&model);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        in_evaluation_the_loss_is_not_smoothed,
        word_tables_are_shared_as_the_configuration_says,
        padding_of_source_and_target_changes_nothing,
        a_batch_is_translated_as_each_of_it_alone_with_the_probabilities_of_a_forward,
        a_translation_that_finds_no_memory_leaves_nothing_behind,
        learned_positions_with_the_values_of_sinusoids_give_the_same,
        what_does_not_fit_is_refused,
    };
    add_suite_of_each("transformer", of_each, WG_COUNT(folders), form_name);
}
