/* Classification by GLM: scores against PyTorch's (tests/fixtures/glm.py), which has a sequence for
 * each label; gradients by differences; the task by the trainer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/tokenizer/wordpiece.h"
#include "objectives/glm_cloze.h"
#include "gradcheck/gradcheck.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/objectives/task_run.h"
#include "tests/support/testing.h"
#include "objectives/classification.h"

/* ---- The world of the fixture: token i is the word "wi" but for special ones ---- */

enum { VOCAB = 48, FIRST_WORD = 6, MASK = 45, POSITIONS = 16, SEQUENCE = 14 };

static wg_tokenizer *fixture_tokenizer(void) {
    static const char *const first[FIRST_WORD] = {"[PAD]", "[UNK]",   "[CLS]",
                                                  "[SEP]", "[sMASK]", "[gMASK]"};
    static const char *const last[] = {"[MASK]", "<|startofpiece|>", "<|endofpiece|>"};
    char words[VOCAB][16];
    const char *tokens[VOCAB];
    for (int i = 0; i < VOCAB; i++) {
        snprintf(words[i], sizeof words[i], "w%d", i);
        tokens[i] = i < FIRST_WORD ? first[i] : i < MASK ? words[i] : last[i - MASK];
    }
    return wg_wordpiece_new(VOCAB, tokens, NULL);
}

typedef struct world {
    wg_tokenizer *tokenizer;
    wg_cloze *cloze;
    wg_labelled_text *text;
    wg_glm *model;
} world;

static wg_cloze *fixture_cloze(const wg_tokenizer *tokenizer, const char *pattern) {
    static const char *const verbalizers[] = {"w20", "w21 w22 w23", "w20 w24"};
    wg_labels labels = {0};
    wg_labels_add(&labels, "a");
    wg_labels_add(&labels, "b");
    wg_labels_add(&labels, "c");
    wg_cloze *cloze = wg_cloze_new(tokenizer, pattern, &labels, verbalizers);
    wg_labels_free(&labels);
    return cloze;
}

static wg_glm_config fixture_config(void) {
    wg_glm_config config;
    wg_glm_config_preset(&config, "glm-tiny");
    config.vocab_size = VOCAB;
    config.hidden_size = 16;
    config.num_layers = 2;
    config.num_attention_heads = 4;
    config.max_sequence_length = POSITIONS;
    return config;
}

static world make_world(wg_dtype dtype) {
    world w = {.tokenizer = fixture_tokenizer()};
    w.cloze = fixture_cloze(w.tokenizer, "w7 {text} w8 w9 [MASK] w10");
    w.text = wg_cloze_text_load(
        w.cloze, write_text("text.tsv", "w11 w12 w13\tc\nw14\ta\nw15 w16 w17 w18 w19\tb\n"),
        w.tokenizer);
    const wg_glm_config config = fixture_config();
    w.model = wg_glm_new(&config, 1);
    assert_no_error();
    load_model_fixture("glm", &w.model->module, dtype);
    wg_module_train(&w.model->module, false);
    return w;
}

static void free_world(world *w) {
    wg_scope_clear_root();
    wg_module_free(&w->model->module);
    wg_labelled_text_free(w->text);
    wg_cloze_free(w->cloze);
    wg_tokenizer_free(w->tokenizer);
}

static wg_cloze_batch read_batch(const world *w) {
    wg_cloze_batch batch;
    ck_assert_int_eq(
        wg_cloze_batch_read(w->cloze, w->text, SEQUENCE, 3, (int64_t[]){0, 1, 2}, &batch), 0);
    return batch;
}

/* ---- Scores ---- */

START_TEST(scores_loss_and_every_gradient_equal_pytorch) {
    static const struct {
        wg_dtype dtype;
        double tolerance;
    } cases[] = {{WG_F64, 1e-11}, {WG_F32, 1e-5}};
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        world w = make_world(cases[i].dtype);
        const wg_cloze_batch batch = read_batch(&w);
        wg_tensor *scores = wg_glm_cloze_scores(w.model, &batch);
        assert_relative(wg_detach(scores), model_fixture("glm_cloze", "scores"),
                        cases[i].tolerance);
        wg_tensor *loss = wg_cross_entropy(scores, batch.labels, -100, NULL);
        assert_relative(wg_detach(loss), wg_select(model_fixture("glm_cloze", "loss"), 0, 0),
                        cases[i].tolerance);
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        assert_model_gradients("glm_cloze", &w.model->module, cases[i].tolerance);
        free_world(&w);
    }
}
END_TEST

typedef struct function {
    wg_glm *model;
    wg_cloze_batch batch;
} function;

static int loss_of(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                   void *context) {
    (void)input_count, (void)inputs, (void)output_count;
    function *f = context;
    outputs[0] =
        wg_cross_entropy(wg_glm_cloze_scores(f->model, &f->batch), f->batch.labels, -100, NULL);
    return outputs[0] ? 0 : -1;
}

START_TEST(gradients_equal_differences) {
    world w = make_world(WG_F64);
    function f = {w.model, read_batch(&w)};
    const wg_gradcheck_options options = {.fast = true};
    wg_gradcheck_report report;
    const int status =
        wg_gradcheck_module(&w.model->module, loss_of, &f, 0, NULL, 1, &options, &report);
    ck_assert_msg(status == 0, "%s", report.message);
    ck_assert_int_gt(report.compared, 0);
    free_world(&w);
}
END_TEST

/* The score of a label is the pretraining objective's loss on a text with its verbalizer in the
 * blank. */
START_TEST(a_score_is_what_pretraining_would_lose_on_the_filled_text) {
    static const int32_t filled[] = {7, 14, 8, 9, 21, 22, 23, 10};
    world w = make_world(WG_F64);
    const wg_cloze_batch batch = read_batch(&w);
    wg_tensor *scores = wg_glm_cloze_scores(w.model, &batch);
    wg_glm_tokens tokens;
    wg_glm_tokens_of(w.tokenizer, &tokens);
    wg_glm_batch alone;
    ck_assert_int_eq(wg_glm_batch_of_spans(&tokens, filled, WG_COUNT(filled), &(wg_glm_span){4, 7},
                                           1, tokens.mask, &alone),
                     0);
    const wg_glm_inputs inputs = {.position_ids = alone.position_ids,
                                  .block_position_ids = alone.block_position_ids,
                                  .part_a = alone.part_a};
    const double mean = wg_item(
        wg_glm_loss(w.model, alone.input_ids, &inputs, alone.target_positions, alone.labels));
    ck_assert_double_eq_tol(wg_at(scores, (int64_t[]){1, 1}), -4 * mean, 1e-11);
    free_world(&w);
}
END_TEST

/* ---- The task ---- */

static const wg_classification_options options = {.batch = 2, .sequence = SEQUENCE, .seed = 3};

static world resumed;
static wg_classification *resumed_classification;

/* With dropout, whose counters a checkpoint keeps. */
static wg_task begin_resumed(void) {
    resumed = make_world(WG_F32);
    wg_module_train(&resumed.model->module, true);
    resumed_classification = wg_cloze_classification_new(
        resumed.model, resumed.cloze, resumed.tokenizer, resumed.text, resumed.text, &options);
    assert_no_error();
    return wg_classification_task(resumed_classification);
}

static void end_resumed(void) {
    wg_classification_free(resumed_classification);
    free_world(&resumed);
}

START_TEST(a_resumed_run_gives_the_same_bits) {
    assert_resumed_bits(begin_resumed, end_resumed);
}
END_TEST

static void train(wg_classification *classification, int64_t steps) {
    const wg_task task = wg_classification_task(classification);
    wg_trainer *trainer = task_trainer(&task, steps, in_scratch("run.h5"));
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
}

START_TEST(labels_are_learnt_and_a_checkpoint_tells_them) {
    world w = make_world(WG_F32);
    wg_classification *c =
        wg_cloze_classification_new(w.model, w.cloze, w.tokenizer, w.text, w.text, &options);
    wg_metrics before = {0}, after = {0};
    ck_assert_int_eq(wg_classification_evaluate(c, &before, NULL), 0);
    train(c, 10);
    int64_t predictions[3], again[3];
    ck_assert_int_eq(wg_classification_evaluate(c, &after, predictions), 0);
    ck_assert_double_lt(wg_metrics_get(&after, "loss"), wg_metrics_get(&before, "loss"));
    wg_classification_free(c);

    wg_glm *model;
    wg_tokenizer *tokenizer;
    wg_cloze *cloze;
    ck_assert_int_eq(wg_glm_cloze_load(in_scratch("run.h5"), &model, &tokenizer, &cloze), 0);
    ck_assert(wg_labels_equal(wg_cloze_labels(cloze), wg_cloze_labels(w.cloze)));
    c = wg_cloze_classification_new(model, cloze, tokenizer, NULL, w.text, &options);
    wg_metrics loaded = {0};
    ck_assert_int_eq(wg_classification_evaluate(c, &loaded, again), 0);
    ck_assert_double_eq(wg_metrics_get(&loaded, "loss"), wg_metrics_get(&after, "loss"));
    ck_assert_mem_eq(predictions, again, sizeof again);
    wg_classification_free(c);
    wg_cloze_free(cloze);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
    free_world(&w);
}
END_TEST

START_TEST(another_cloze_is_refused_when_a_run_goes_on) {
    world w = make_world(WG_F32);
    wg_classification *c =
        wg_cloze_classification_new(w.model, w.cloze, w.tokenizer, w.text, w.text, &options);
    train(c, 2);
    wg_classification_free(c);
    wg_cloze *other = fixture_cloze(w.tokenizer, "w7 {text} w9 [MASK]");
    c = wg_cloze_classification_new(w.model, other, w.tokenizer, w.text, w.text, &options);
    const wg_task task = wg_classification_task(c);
    wg_trainer *trainer = task_trainer(&task, 4, in_scratch("run.h5"));
    ck_assert_int_eq(wg_trainer_resume(trainer, in_scratch("run.h5")), -1);
    assert_error(WG_ERROR_STATE, "the pattern or the verbalizers are not those");
    wg_trainer_free(trainer);
    wg_classification_free(c);
    wg_cloze_free(other);
    free_world(&w);
}
END_TEST

/* ---- Refusals ---- */

static void assert_refused(const wg_glm_config *config, int64_t sequence, const char *part) {
    world w = make_world(WG_F32);
    wg_glm *model = wg_glm_new(config, 1);
    const wg_classification_options asked = {.sequence = sequence};
    ck_assert_ptr_null(
        wg_cloze_classification_new(model, w.cloze, w.tokenizer, NULL, w.text, &asked));
    assert_error(WG_ERROR_ARGUMENT, part);
    wg_module_free(&model->module);
    free_world(&w);
}

START_TEST(what_does_not_fit_the_model_is_refused) {
    wg_glm_config config = fixture_config();
    assert_refused(&config, 0, "a sequence of 128 tokens is too long; the model has 16 positions");
    assert_refused(&config, 7, "they must have 8");
    config.vocab_size--;
    assert_refused(&config, 16, "GLM's own tokens are 48");
}
END_TEST

START_TEST(a_pattern_or_verbalizer_beyond_the_model_is_refused) {
    static const char pattern[] = "{text} w7 w8 w9 w10 w11 w12 [MASK]";
    wg_tokenizer *tokenizer = fixture_tokenizer();
    wg_glm_config config = fixture_config();
    config.max_sequence_length = 8;
    wg_glm *model = wg_glm_new(&config, 1);
    const wg_classification_options asked = {.sequence = 8};
    wg_cloze *cloze = fixture_cloze(tokenizer, pattern);
    ck_assert_ptr_null(wg_cloze_classification_new(model, cloze, tokenizer, NULL, NULL, &asked));
    assert_error(WG_ERROR_ARGUMENT, "the pattern takes 8 of the 8 tokens");
    wg_cloze_free(cloze);
    cloze = wg_cloze_from_json("{\"pattern\": \"{text} [MASK]\", \"verbalizers\": {\"a\": \"w6\", "
                               "\"b\": \"w6 w6 w6 w6 w6 w6 w6 w6\"}}",
                               tokenizer);
    ck_assert_ptr_null(wg_cloze_classification_new(model, cloze, tokenizer, NULL, NULL, &asked));
    assert_error(WG_ERROR_ARGUMENT, "a verbalizer of 9 tokens, its start among them, is too long");
    wg_cloze_free(cloze);
    wg_module_free(&model->module);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(a_checkpoint_of_something_else_is_refused) {
    wg_glm *model;
    wg_tokenizer *tokenizer;
    wg_cloze *cloze;
    ck_assert_int_eq(wg_glm_cloze_load("no-such.h5", &model, &tokenizer, &cloze), -1);
    assert_error(WG_ERROR_NOT_FOUND, "no-such.h5");
    world w = make_world(WG_F32);
    char *config = wg_glm_config_to_json(&w.model->config);
    char *words = wg_tokenizer_to_json(w.tokenizer);
    wg_checkpoint *file = wg_checkpoint_create(in_scratch("run.h5"));
    wg_checkpoint_put_module(file, "/model", &w.model->module);
    wg_checkpoint_put_text(file, "/config", config);
    wg_checkpoint_put_text(file, "/tokenizer", words);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    ck_assert_int_eq(wg_glm_cloze_load(in_scratch("run.h5"), &model, &tokenizer, &cloze), -1);
    assert_error(WG_ERROR_FORMAT, "cloze");
    ck_assert(!model && !tokenizer && !cloze);
    wg_text_free(config);
    wg_text_free(words);
    free_world(&w);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        scores_loss_and_every_gradient_equal_pytorch,
        gradients_equal_differences,
        a_score_is_what_pretraining_would_lose_on_the_filled_text,
        a_resumed_run_gives_the_same_bits,
        labels_are_learnt_and_a_checkpoint_tells_them,
        another_cloze_is_refused_when_a_run_goes_on,
        what_does_not_fit_the_model_is_refused,
        a_pattern_or_verbalizer_beyond_the_model_is_refused,
        a_checkpoint_of_something_else_is_refused,
    };
    add_suite("glm cloze", tests);
}
