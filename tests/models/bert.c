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

static wg_model model_of(wg_bert_for_pretraining *model) {
    return (wg_model){.type = &wg_bert_type, .module = &model->module};
}

typedef struct pretraining_losses {
    wg_tensor *total, *mlm, *nsp;
    int64_t mlm_correct, mlm_count, nsp_correct, nsp_count;
} pretraining_losses;

static int pretraining_loss(wg_bert_for_pretraining *model, const wg__masked_batch *batch,
                            pretraining_losses *loss) {
    const wg_model all = model_of(model);
    wg__masked_loss parts;
    const int status = wg__masked_loss_of(&all, batch, 1, &parts);
    *loss = (pretraining_losses){.mlm = parts.parts[0],
                                 .nsp = parts.parts[1],
                                 .mlm_correct = parts.correct[0],
                                 .mlm_count = parts.count[0],
                                 .nsp_correct = parts.correct[1],
                                 .nsp_count = parts.count[1]};
    loss->total = loss->nsp ? wg_add(loss->mlm, loss->nsp) : loss->mlm;
    return status;
}

static wg_tensor *mlm_logits(wg_bert_for_pretraining *model, wg_tensor *sequence,
                             wg_tensor *positions) {
    const wg_model all = model_of(model);
    return wg_model_logits(&all, sequence, positions);
}

static wg_tensor *forward(wg_bert *bert, wg_tensor *ids, wg_tensor *segments, wg_tensor *keep) {
    return wg__bert_forward(
        &bert->module, &(wg_model_inputs){.ids = ids, .token_type_ids = segments, .keep = keep});
}

static wg_bert_for_pretraining *load_model(wg_dtype dtype) {
    wg_bert_config config = bert_fixture_config();
    wg_bert_for_pretraining *model = wg__bert_for_pretraining_new(&config, 1);
    assert_no_error();
    load_model_fixture("bert", &model->module, dtype);
    return model;
}

/* ---- Beside PyTorch ---- */

static void check_outputs(wg_dtype dtype, double tolerance) {
    wg_bert_for_pretraining *model = load_model(dtype);
    wg__masked_batch batch = load_batch();
    wg_tensor *sequence = forward(model->bert, batch.ids, batch.token_type_ids, batch.keep);
    assert_relative(sequence, load("sequence"), tolerance);
    assert_relative(wg__bert_pool(&model->bert->module, sequence, NULL), load("pooled"), tolerance);
    assert_relative(mlm_logits(model, sequence, batch.positions), load("mlm_logits"), tolerance);
    assert_relative(wg_linear_forward(model->next_sentence,
                                      wg__bert_pool(&model->bert->module, sequence, NULL)),
                    load("nsp_logits"), tolerance);
    pretraining_losses loss;
    ck_assert_int_eq(pretraining_loss(model, &batch, &loss), 0);
    wg_tensor *losses = load("losses");
    assert_relative(loss.mlm, wg_select(losses, 0, 0), tolerance);
    assert_relative(loss.nsp, wg_select(losses, 0, 1), tolerance);
    assert_relative(loss.total, wg_sum(losses, WG_ALL, false), tolerance);
    wg_scope_clear_root();
    wg_module_free(&model->module);
}

START_TEST(outputs_and_losses_equal_pytorch) {
    check_outputs(WG_F32, 1e-5);
    check_outputs(WG_F64, 1e-12);
}
END_TEST

static void check_gradients(wg_dtype dtype, double tolerance) {
    wg_bert_for_pretraining *model = load_model(dtype);
    wg__masked_batch batch = load_batch();
    pretraining_losses loss;
    ck_assert_int_eq(pretraining_loss(model, &batch, &loss), 0);
    ck_assert_int_eq(wg_backward(loss.total, NULL), 0);
    assert_model_gradients("bert", &model->module, tolerance);
    wg_scope_clear_root();
    wg_module_free(&model->module);
}

START_TEST(every_gradient_equals_pytorch) {
    check_gradients(WG_F32, 1e-5);
    check_gradients(WG_F64, 1e-11);
}
END_TEST

static wg_tensor *fixture_loss(void *model) {
    const wg__masked_batch batch = load_batch();
    pretraining_losses loss;
    ck_assert_int_eq(pretraining_loss(model, &batch, &loss), 0);
    return loss.total;
}

static void check_training(wg_dtype dtype, double tolerance) {
    wg_bert_for_pretraining *model = load_model(dtype);
    assert_model_training("bert", &model->module,
                          wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.01}), fixture_loss,
                          model, tolerance);
    wg_scope_clear_root();
    wg_module_free(&model->module);
}

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    check_training(WG_F32, 1e-4);
    check_training(WG_F64, 1e-6);
}
END_TEST

/* ---- Against central differences ---- */

static int loss_for_check(int input_count, wg_tensor *const *inputs, int output_count,
                          wg_tensor **outputs, void *context) {
    (void)input_count, (void)inputs, (void)output_count;
    wg_bert_for_pretraining *model = context;
    model->module.generator = (wg_generator){3, 0}; /* the same dropout each time */
    wg_scope scope;
    wg_scope_begin(&scope);
    wg__masked_batch batch = load_batch();
    pretraining_losses loss;
    int status = pretraining_loss(model, &batch, &loss);
    outputs[0] = wg_scope_end(&scope, loss.total);
    return status;
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
    wg_bert_for_pretraining *model = load_model(WG_F64);
    model->bert->config.hidden_dropout_prob = 0.1; /* of the embeddings */
    model->bert->layers[0]->attention->dropout = 0.2;
    model->bert->layers[0]->attention_norm->dropout = 0.3;
    model->bert->layers[1]->output_norm->dropout = 0.1;
    wg_tensor *inputs[WG_COUNT(paths)];
    for (size_t i = 0; i < WG_COUNT(paths); i++)
        inputs[i] = wg_module_find(&model->module, paths[i])->tensor;
    wg_gradcheck_report report;
    int status = wg_gradcheck(loss_for_check, model, WG_COUNT(paths), inputs, 1, NULL, &report);
    ck_assert_msg(status == 0, "%s: %s", paths[report.input], report.message);
    ck_assert_int_gt(report.compared, 400);
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

/* ---- Published names, initial values ---- */

START_TEST(parameters_have_the_published_paths_and_shapes) {
    wg_bert_config config = bert_fixture_config();
    wg_bert_for_pretraining *model = wg__bert_for_pretraining_new(&config, 1);
    assert_model_paths("bert", &model->module);
    ck_assert_ptr_eq(wg_module_find(&model->module, "cls.predictions.decoder.weight")->tensor,
                     model->bert->word_embeddings->weight);
    ck_assert_ptr_eq(wg_module_find(&model->module, "cls.predictions.decoder.bias")->tensor,
                     wg_module_find(&model->module, "cls.predictions.bias")->tensor);
    wg_module_free(&model->module);
}
END_TEST

START_TEST(a_new_model_has_the_initial_values_of_the_paper) {
    wg_bert_config config;
    wg_model_preset_config(&wg_bert_type, "bert-tiny", &config);
    wg_bert_for_pretraining *model = wg__bert_for_pretraining_new(&config, 1);
    wg_state_dict *state = wg_module_state(&model->module);
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
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

/* ---- Training and evaluation ---- */

static double loss_of(wg_bert_for_pretraining *model) {
    wg_scope scope;
    wg_scope_begin(&scope);
    double value = wg_item(fixture_loss(model));
    wg_scope_end(&scope, NULL);
    return value;
}

START_TEST(dropout_follows_the_generator_and_rests_in_evaluation) {
    wg_bert_config config = bert_fixture_config();
    config.hidden_dropout_prob = 0.1;
    config.attention_probs_dropout_prob = 0.1;
    wg_bert_for_pretraining *model = wg__bert_for_pretraining_new(&config, 1);
    load_model_fixture("bert", &model->module, WG_F32);
    wg_generator before = model->module.generator;
    double first = loss_of(model), second = loss_of(model);
    ck_assert_double_ne(first, second);
    model->module.generator = before;
    ck_assert_double_eq(loss_of(model), first);

    wg_module_train(&model->module, false);
    before = model->module.generator;
    double evaluated = loss_of(model);
    ck_assert_double_eq(loss_of(model), evaluated);
    ck_assert_uint_eq(model->module.generator.offset, before.offset);
    ck_assert_double_eq_tol(evaluated, 5.94427481, 1e-4); /* the loss without dropout */
    wg_module_free(&model->module);
}
END_TEST

START_TEST(right_predictions_are_counted) {
    wg_bert_for_pretraining *model = load_model(WG_F32);
    wg__masked_batch batch = load_batch();
    wg_tensor *sequence = forward(model->bert, batch.ids, batch.token_type_ids, batch.keep);
    wg_tensor *logits = mlm_logits(model, sequence, batch.positions);
    /* The ignored label stays; four of the others become the model's predictions. */
    int64_t predicted[8], labels[8], sentences[3];
    wg_to_array(wg_argmax(logits, 1, false), predicted);
    wg_to_array(wg_argmax(wg_linear_forward(model->next_sentence,
                                            wg__bert_pool(&model->bert->module, sequence, NULL)),
                          1, false),
                sentences);
    for (int i = 0; i < 8; i++)
        labels[i] = i == 5 ? -100 : i < 4 ? predicted[i] : (predicted[i] + 1) % 64;
    sentences[1] = !sentences[1];
    batch.labels = wg_from_array(WG_I64, WG_DIMS(8), labels);
    batch.next_sentence_labels = wg_from_array(WG_I64, WG_DIMS(3), sentences);
    pretraining_losses loss;
    ck_assert_int_eq(pretraining_loss(model, &batch, &loss), 0);
    ck_assert_int_eq(loss.mlm_correct, 4);
    ck_assert_int_eq(loss.mlm_count, 7);
    ck_assert_int_eq(loss.nsp_correct, 2);
    ck_assert_int_eq(loss.nsp_count, 3);
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

START_TEST(a_batch_without_the_sentence_task_has_the_token_loss_alone) {
    wg_bert_for_pretraining *model = load_model(WG_F64);
    wg__masked_batch batch = load_batch();
    batch.next_sentence_labels = NULL;
    pretraining_losses loss;
    ck_assert_int_eq(pretraining_loss(model, &batch, &loss), 0);
    ck_assert_ptr_null(loss.nsp);
    ck_assert_double_eq(wg_item(loss.total), wg_item(loss.mlm));
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

START_TEST(what_stands_in_padding_changes_nothing) {
    wg_bert_for_pretraining *model = load_model(WG_F32);
    double before = loss_of(model);
    wg__masked_batch batch = load_batch();
    batch.ids = wg_where(batch.keep, batch.ids, wg_full(WG_I64, WG_DIMS(1), 17));
    pretraining_losses loss;
    ck_assert_int_eq(pretraining_loss(model, &batch, &loss), 0);
    ck_assert_double_eq(wg_item(loss.total), before);
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

/* ---- From embeddings ---- */

/* Word vectors given as embeddings are what the ids stand for, and get their gradient. */
START_TEST(an_encoder_begins_with_embeddings_as_with_the_ids_that_they_stand_for) {
    wg_bert_for_pretraining *model = load_model(WG_F64);
    const wg__masked_batch batch = load_batch();
    wg_tensor *words =
        wg_clone(wg_detach(wg_embedding_forward(model->bert->word_embeddings, batch.ids)));
    wg_set_requires_grad(words, true);
    const wg_model_inputs inputs = {
        .embeddings = words, .token_type_ids = batch.token_type_ids, .keep = batch.keep};
    const wg_model all = model_of(model);
    wg_tensor *hidden = wg_model_forward(&all, &inputs);
    assert_close(wg_detach(hidden),
                 wg_detach(forward(model->bert, batch.ids, batch.token_type_ids, batch.keep)), 0,
                 0);
    wg_tensor *loss = wg_model_loss(&all, hidden, batch.positions, batch.labels, NULL);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    ck_assert_double_gt(wg_item(wg_max(wg_abs(wg_gradient(words)), WG_ALL, false)), 0);
    assert_fails(
        wg_model_forward(&all, &(wg_model_inputs){.embeddings = wg_zeros(WG_F64, WG_DIMS(3, 12))}),
        WG_ERROR_SHAPE, "embeddings have rank 2; wanted (B, T, C)");
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

START_TEST(sequences_beyond_the_positions_are_refused) {
    wg_bert_for_pretraining *model = load_model(WG_F32);
    wg__masked_batch batch = load_batch();
    batch.ids = wg_zeros(WG_I64, WG_DIMS(3, 15));
    batch.token_type_ids = batch.keep = NULL;
    pretraining_losses loss;
    ck_assert_int_eq(pretraining_loss(model, &batch, &loss), -1);
    assert_fails(loss.total, WG_ERROR_SHAPE, "15 positions are more than the model's 14");
    batch = load_batch();
    batch.ids = wg_full(WG_I64, WG_DIMS(3, 12), 64);
    assert_fails(pretraining_loss(model, &batch, &loss), WG_ERROR_INDEX, "64");
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        outputs_and_losses_equal_pytorch,
        every_gradient_equals_pytorch,
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
