/* BERT against PyTorch (tests/fixtures/bert.py): its published names, dropout, errors. */
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"

#include <math.h>
#include <string.h>

#include "gradcheck/gradcheck.h"
#include "models/bert.h"
#include "objectives/masked_lm.h"
#include "optim/optimizer.h"
#include "tensor/ops.h"
#include "models/internal.h"

/* ---- The model and the batch of the fixture ---- */

static wg_tensor *load(const char *name) {
    return fixture_tensor("bert/%s", name);
}

static wg__masked_batch load_batch(void) {
    return (wg__masked_batch){
        .ids = load("input_ids"),
        .token_type_ids = load("token_type_ids"),
        .keep = load("attention_mask"),
        .positions = load("masked_positions"),
        .labels = load("masked_labels"),
        .next_sentence_labels = load("next_sentence_labels"),
    };
}

static wg_bert_for_pretraining *of(const wg_model *model) {
    return (wg_bert_for_pretraining *)model->module;
}

static wg__masked_loss parts_of(const wg_model *model, const wg__masked_batch *batch) {
    wg__masked_loss parts;
    ck_assert_int_eq(wg__masked_loss_of(model, batch, 1, &parts), 0);
    return parts;
}

/* The loss of the fixture's batch. */
static wg_tensor *fixture_loss(void *model) {
    const wg__masked_batch batch = load_batch();
    const wg__masked_loss parts = parts_of(model, &batch);
    return wg_add(parts.parts[0], parts.parts[1]);
}

static wg_tensor *hidden_of(const wg_model *model, const wg__masked_batch *batch) {
    const wg_model_inputs inputs = {
        .ids = batch->ids, .token_type_ids = batch->token_type_ids, .keep = batch->keep};
    return wg_model_forward(model, &inputs);
}

static wg_tensor *sentence_logits(const wg_model *model, wg_tensor *hidden) {
    return wg_linear_forward(of(model)->next_sentence,
                             wg__bert_pool(&of(model)->bert->module, hidden, NULL));
}

static wg_model load_model(wg_dtype dtype) {
    const wg_bert_config config = bert_fixture_config();
    wg_model model;
    ck_assert_int_eq(wg_model_from_config(&wg_bert_type, &config, 1, &model), 0);
    load_model_fixture("bert", model.module, dtype);
    return model;
}

/* ---- Beside PyTorch ---- */

static void check_model(wg_dtype dtype, double tolerance, double gradient_tolerance) {
    wg_model model = load_model(dtype);
    const wg__masked_batch batch = load_batch();
    wg_tensor *hidden = hidden_of(&model, &batch), *losses = load("losses");
    assert_relative(hidden, load("sequence"), tolerance);
    assert_relative(wg__bert_pool(&of(&model)->bert->module, hidden, NULL), load("pooled"),
                    tolerance);
    assert_relative(wg_model_logits(&model, hidden, batch.positions), load("mlm_logits"),
                    tolerance);
    assert_relative(sentence_logits(&model, hidden), load("nsp_logits"), tolerance);
    const wg__masked_loss loss = parts_of(&model, &batch);
    for (int i = 0; i < 2; i++)
        assert_relative(wg_detach(loss.parts[i]), wg_select(losses, 0, i), tolerance);
    wg_tensor *total = wg_add(loss.parts[0], loss.parts[1]);
    assert_relative(wg_detach(total), wg_sum(losses, WG_ALL, false), tolerance);
    ck_assert_int_eq(wg_backward(total, NULL), 0);
    assert_model_gradients("bert", model.module, gradient_tolerance);
    free_model(&model);
}

START_TEST(outputs_losses_and_every_gradient_equal_pytorch) {
    check_model(WG_F32, 1e-5, 1e-5);
    check_model(WG_F64, 1e-12, 1e-11);
}
END_TEST

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    for (int wide = 0; wide < 2; wide++) {
        wg_model model = load_model(wide ? WG_F64 : WG_F32);
        const wg_adamw_options options = {.weight_decay = 0.01};
        assert_model_training("bert", model.module, wg_adamw_new(&options), fixture_loss, &model,
                              wide ? 1e-6 : 1e-4);
        free_model(&model);
    }
}
END_TEST

/* ---- Against central differences ---- */

static int loss_for_check(int input_count, wg_tensor *const *inputs, int output_count,
                          wg_tensor **outputs, void *context) {
    (void)input_count, (void)inputs, (void)output_count;
    wg_model *model = context;
    model->module->generator = (wg_generator){3, 0}; /* the same dropout each time */
    wg_scope scope;
    wg_scope_begin(&scope);
    outputs[0] = wg_scope_end(&scope, fixture_loss(model));
    return outputs[0] ? 0 : -1;
}

/* Parameters are leaves: they are listed as inputs although the function takes them from the model.
 * One of each kind, because each number costs two evaluations. */
START_TEST(the_whole_model_with_dropout_has_the_gradient_of_its_loss) {
    static const char *const paths[] = {
        "bert.embeddings.token_type_embeddings.weight",
        "bert.embeddings.LayerNorm.weight",
        "bert.encoder.layer.0.attention.self.query.weight",
        "bert.encoder.layer.0.attention.self.value.bias",
        "bert.encoder.layer.0.attention.output.LayerNorm.weight",
        "bert.encoder.layer.1.output.dense.bias",
        "bert.pooler.dense.bias",
        "cls.predictions.bias",
        "cls.predictions.transform.dense.bias",
        "cls.seq_relationship.weight",
    };
    wg_model model = load_model(WG_F64);
    wg_bert *bert = of(&model)->bert;
    bert->config.hidden_dropout_prob = 0.1; /* of the embeddings */
    bert->layers[0]->attention->dropout = 0.2;
    bert->layers[0]->attention_norm->dropout = 0.3;
    bert->layers[1]->output_norm->dropout = 0.1;
    wg_tensor *inputs[WG_COUNT(paths)];
    for (size_t i = 0; i < WG_COUNT(paths); i++)
        inputs[i] = wg_module_find(model.module, paths[i])->tensor;
    wg_gradcheck_report report;
    int status = wg_gradcheck(loss_for_check, &model, WG_COUNT(paths), inputs, 1, NULL, &report);
    ck_assert_msg(status == 0, "%s: %s", paths[report.input], report.message);
    ck_assert_int_gt(report.compared, 400);
    free_model(&model);
}
END_TEST

/* ---- Published names, initial values ---- */

START_TEST(parameters_have_the_published_paths_and_shapes) {
    wg_model model = load_model(WG_F32);
    assert_model_paths("bert", model.module);
    ck_assert_ptr_eq(wg_module_find(model.module, "cls.predictions.decoder.weight")->tensor,
                     of(&model)->bert->word_embeddings->weight);
    ck_assert_ptr_eq(wg_module_find(model.module, "cls.predictions.decoder.bias")->tensor,
                     wg_module_find(model.module, "cls.predictions.bias")->tensor);
    free_model(&model);
}
END_TEST

START_TEST(a_new_model_has_the_initial_values_of_the_paper) {
    wg_model model = preset_model("bert-tiny", "", 1);
    wg_state_dict *state = wg_module_state(model.module);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        wg_tensor *x = entry->slot->tensor;
        if (strstr(entry->path, "LayerNorm.weight")) {
            assert_close(x, wg_ones_like(x), 0, 0);
        } else if (strstr(entry->path, "bias")) {
            assert_close(x, wg_zeros_like(x), 0, 0);
        } else {
            double deviation = sqrt(wg_item(wg_var(x, WG_ALL, 0, false)));
            double n = (double)wg_tensor_count(x);
            ck_assert_double_le(wg_item(wg_max(wg_abs(x), WG_ALL, false)), 0.04 * (1 + 1e-6));
            ck_assert_double_eq_tol(deviation, 0.0175925, 0.0175925 * 4 / sqrt(n));
        }
    }
    wg_state_dict_free(state);
    free_model(&model);
}
END_TEST

/* ---- Training and evaluation ---- */

static double loss_of(wg_model *model) {
    return wg_item(fixture_loss(model));
}

START_TEST(dropout_follows_the_generator_and_rests_in_evaluation) {
    wg_bert_config config = bert_fixture_config();
    config.hidden_dropout_prob = 0.1;
    config.attention_probs_dropout_prob = 0.1;
    wg_model model;
    ck_assert_int_eq(wg_model_from_config(&wg_bert_type, &config, 1, &model), 0);
    load_model_fixture("bert", model.module, WG_F32);
    wg_generator *generator = wg_module_generator(model.module), before = *generator;
    double first = loss_of(&model), second = loss_of(&model);
    ck_assert_double_ne(first, second);
    *generator = before;
    ck_assert_double_eq(loss_of(&model), first);

    wg_module_train(model.module, false);
    before = *generator;
    double evaluated = loss_of(&model);
    ck_assert_double_eq(loss_of(&model), evaluated);
    ck_assert_uint_eq(generator->offset, before.offset);
    ck_assert_double_eq_tol(evaluated, 5.94427481, 1e-4); /* the loss without dropout */
    free_model(&model);
}
END_TEST

START_TEST(right_predictions_are_counted) {
    wg_model model = load_model(WG_F32);
    wg__masked_batch batch = load_batch();
    wg_tensor *hidden = hidden_of(&model, &batch);
    wg_tensor *logits = wg_model_logits(&model, hidden, batch.positions);
    /* The ignored label stays; four of the others become the model's predictions. */
    int64_t predicted[8], labels[8], sentences[3];
    wg_to_array(wg_argmax(logits, 1, false), predicted);
    wg_to_array(wg_argmax(sentence_logits(&model, hidden), 1, false), sentences);
    for (int i = 0; i < 8; i++)
        labels[i] = i == 5 ? -100 : i < 4 ? predicted[i] : (predicted[i] + 1) % 64;
    sentences[1] = !sentences[1];
    batch.labels = wg_from_array(WG_I64, WG_DIMS(8), labels);
    batch.next_sentence_labels = wg_from_array(WG_I64, WG_DIMS(3), sentences);
    const wg__masked_loss loss = parts_of(&model, &batch);
    ck_assert(loss.correct[0] == 4 && loss.count[0] == 7);
    ck_assert(loss.correct[1] == 2 && loss.count[1] == 3);
    free_model(&model);
}
END_TEST

START_TEST(a_batch_without_the_sentence_task_has_the_token_loss_alone) {
    wg_model model = load_model(WG_F64);
    wg__masked_batch batch = load_batch();
    const double both = wg_item(parts_of(&model, &batch).parts[0]);
    batch.next_sentence_labels = NULL;
    const wg__masked_loss loss = parts_of(&model, &batch);
    ck_assert_ptr_null(loss.parts[1]);
    ck_assert_double_eq(wg_item(loss.parts[0]), both);
    free_model(&model);
}
END_TEST

START_TEST(what_stands_in_padding_changes_nothing) {
    wg_model model = load_model(WG_F32);
    wg__masked_batch batch = load_batch();
    batch.ids = wg_where(batch.keep, batch.ids, wg_full(WG_I64, WG_DIMS(1), 17));
    const wg__masked_loss loss = parts_of(&model, &batch);
    ck_assert_double_eq(wg_item(wg_add(loss.parts[0], loss.parts[1])), loss_of(&model));
    free_model(&model);
}
END_TEST

/* ---- From embeddings ---- */

/* Word vectors given as embeddings are what the ids stand for, and get their gradient. */
START_TEST(an_encoder_begins_with_embeddings_as_with_the_ids_that_they_stand_for) {
    wg_model model = load_model(WG_F64);
    const wg__masked_batch batch = load_batch();
    wg_tensor *words =
        wg_clone(wg_detach(wg_embedding_forward(of(&model)->bert->word_embeddings, batch.ids)));
    wg_set_requires_grad(words, true);
    const wg_model_inputs inputs = {
        .embeddings = words, .token_type_ids = batch.token_type_ids, .keep = batch.keep};
    wg_tensor *hidden = wg_model_forward(&model, &inputs);
    assert_close(wg_detach(hidden), wg_detach(hidden_of(&model, &batch)), 0, 0);
    wg_tensor *loss = wg_model_loss(&model, hidden, batch.positions, batch.labels, NULL);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    ck_assert_double_gt(wg_item(wg_max(wg_abs(wg_gradient(words)), WG_ALL, false)), 0);
    const wg_model_inputs flat = {.embeddings = wg_zeros(WG_F64, WG_DIMS(3, 12))};
    assert_fails(wg_model_forward(&model, &flat), WG_ERROR_SHAPE,
                 "embeddings have rank 2; wanted (B, T, C)");
    free_model(&model);
}
END_TEST

START_TEST(sequences_beyond_the_positions_are_refused) {
    wg_model model = load_model(WG_F32);
    wg__masked_batch batch = load_batch();
    wg__masked_loss loss;
    batch.ids = wg_zeros(WG_I64, WG_DIMS(3, 15));
    batch.token_type_ids = batch.keep = NULL;
    assert_fails(wg__masked_loss_of(&model, &batch, 1, &loss), WG_ERROR_SHAPE,
                 "15 positions are more than the model's 14");
    batch = load_batch();
    batch.ids = wg_full(WG_I64, WG_DIMS(3, 12), 64);
    assert_fails(wg__masked_loss_of(&model, &batch, 1, &loss), WG_ERROR_INDEX, "64");
    free_model(&model);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        outputs_losses_and_every_gradient_equal_pytorch,
        ten_steps_of_adamw_lose_what_pytorch_loses,
        the_whole_model_with_dropout_has_the_gradient_of_its_loss,
        parameters_have_the_published_paths_and_shapes,
        a_new_model_has_the_initial_values_of_the_paper,
        dropout_follows_the_generator_and_rests_in_evaluation,
        right_predictions_are_counted,
        a_batch_without_the_sentence_task_has_the_token_loss_alone,
        what_stands_in_padding_changes_nothing,
        an_encoder_begins_with_embeddings_as_with_the_ids_that_they_stand_for,
        sequences_beyond_the_positions_are_refused,
    };
    add_suite("bert", tests);
}
