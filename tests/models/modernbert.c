/* ModernBERT against PyTorch (tests/fixtures/modernbert.py): what its layers see, causal masks,
 * heads, initial values. A case of the suite "modernbert" is a folder of the fixture. */
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
enum { T = 11, VOCAB = 48 };

static const char *const folders[] = {"modernbert/published", "modernbert/biased"};

static const char *folder_name(int index) {
    return folders[index];
}

static wg_tensor *load(int index, const char *name) {
    return fixture_tensor("%s/%s", folders[index], name);
}

static wg_modernbert *encoder_of(const wg_model *model) {
    return ((wg_modernbert_for_masked_lm *)model->module)->encoder;
}

static wg_model_inputs load_inputs(int index) {
    return (wg_model_inputs){.ids = load(index, "ids"), .keep = load(index, "keep")};
}

static wg_tensor *logits_of(const wg_model *model, const wg_model_inputs *inputs) {
    return wg_detach(wg_model_logits(model, wg_model_forward(model, inputs), NULL));
}

/* ---- Beside PyTorch ---- */

START_TEST(causal_logits_equal_pytorch) {
    wg_model model = load_fixture_model(folders[_i], WG_F64);
    wg_model_inputs inputs = load_inputs(_i);
    inputs.causal = true;
    wg_tensor *kept = wg_cast(wg_unsqueeze(inputs.keep, -1), WG_F64); /* padding has zeros */
    assert_relative(wg_mul(logits_of(&model, &inputs), kept), load(_i, "causal_logits"), 1e-10);
    free_model(&model);
}
END_TEST

START_TEST(pooled_states_equal_pytorch) {
    static const char *const names[] = {"pooled_cls", "pooled_mean"};
    wg_model model = load_fixture_model(folders[_i], WG_F64);
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
    wg_model model = load_fixture_model(folders[_i], WG_F32);
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

/* Reach T - 1 covers the text, and needs no mask; T - 2 leaves out the corners. */
START_TEST(a_window_that_covers_the_text_hides_nothing) {
    wg_model model = load_fixture_model(folders[_i], WG_F32);
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

START_TEST(an_encoder_begins_with_embeddings_as_with_the_ids_that_they_stand_for) {
    wg_model model = load_fixture_model(folders[_i], WG_F32);
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
    wg_model plain = new_fixture_model(folders[_i]), model;
    wg_modernbert_config config = encoder_of(&plain)->config;
    config.bigram_vocab_size = 30;
    ck_assert_int_eq(wg_model_from_config(&wg_modernbert_type, &config, 1, &model), 0);
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
    assert_fails(logits_of(&model, &inputs), WG_ERROR_ARGUMENT, "a model with bigrams reads ids");
    wg_set_grad_enabled(true);
    free_model(&plain);
    free_model(&model);
}
END_TEST

START_TEST(bert_refuses_causal_attention) {
    wg_model model;
    ck_assert_int_eq(wg_model_new(&wg_bert_type, "bert-tiny", 1, &model), 0);
    const wg_model_inputs inputs = {.ids = wg_zeros(WG_I64, WG_DIMS(1, 4)), .causal = true};
    assert_fails(wg_model_forward(&model, &inputs), WG_ERROR_ARGUMENT, "no causal attention");
    free_model(&model);
}
END_TEST

/* ---- Heads ---- */

/* The heads of labels, on the pooled state, and of answers, on every position. */
START_TEST(heads_read_the_states_of_the_encoder) {
    static const char *const paths[] = {"model.layers.0.attn.Wqkv.weight", "head.dense.weight",
                                        "classifier.weight"};
    wg_model pretrained = new_fixture_model(folders[0]);
    wg__labels labels = {0};
    wg__labels_add(&labels, "no");
    wg__labels_add(&labels, "yes");
    for (int answers = 0; answers < 2; answers++) {
        wg__headed_encoder *model =
            wg__headed_encoder_new(&wg_modernbert_type, answers ? WG_HEAD_ANSWERS : WG_HEAD_LABELS,
                                   &encoder_of(&pretrained)->config, answers ? NULL : &labels, 1);
        const wg_model_inputs inputs = load_inputs(0);
        wg_module *encoder = &((wg_modernbert *)model->encoder)->module;
        wg_tensor *hidden = wg__modernbert_forward(encoder, &inputs), *outputs[2];
        wg_tensor *states = answers ? wg__modernbert_head(encoder, hidden)
                                    : wg__modernbert_pool(encoder, hidden, inputs.keep);
        wg_tensor *logits = wg_linear_forward(model->head, states);
        for (size_t i = 0; i < WG_COUNT(paths); i++)
            ck_assert_ptr_nonnull(wg_module_find(&model->module, paths[i]));
        ck_assert_int_eq(wg__headed_encoder_forward(model, &inputs, outputs), 0);
        assert_close(outputs[0], answers ? wg_select(logits, 2, 0) : logits, 0, 1e-6);
        if (answers)
            assert_close(outputs[1], wg_select(logits, 2, 1), 0, 1e-6);
        wg_scope_clear_root();
        wg_module_free(&model->module);
    }
    wg__labels_free(&labels);
    free_model(&pretrained);
}
END_TEST

/* ---- Configurations ---- */

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

SUITES {
    const TTest *const of_each[] = {
        causal_logits_equal_pytorch,
        pooled_states_equal_pytorch,
        a_causal_logit_does_not_depend_on_later_tokens,
        a_window_that_covers_the_text_hides_nothing,
        an_encoder_begins_with_embeddings_as_with_the_ids_that_they_stand_for,
        bigrams_are_added_to_the_words_before_their_norm,
    };
    const TTest *const others[] = {
        bert_refuses_causal_attention,
        heads_read_the_states_of_the_encoder,
        a_new_model_has_the_initial_values_of_the_published_code,
    };
    add_suite_of_each("modernbert", of_each, WG_COUNT(folders), folder_name);
    add_suite("modernbert_parts", others);
}
