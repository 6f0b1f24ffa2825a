/* Classification by GLM: scores against PyTorch's (tests/fixtures/glm.py), which has a sequence for
 * each label; gradients by differences; the task by the trainer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/tokenizer/tokenizer.h"
#include "objectives/cloze.h"
#include "gradcheck/gradcheck.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/objectives/task_run.h"
#include "tests/support/testing.h"
#include "models/glm.h"
#include "data/internal.h"
#include "models/internal.h"

/* ---- The world of the fixture: token i is the word "wi" but for special ones ---- */

enum { VOCAB = 48, FIRST_WORD = 6, MASK = 45, SEQUENCE = 14 };

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
    return wg__wordpiece_new(VOCAB, tokens, NULL);
}

typedef struct world {
    wg_tokenizer *tokenizer;
    wg__cloze *cloze;
    wg__labelled_text *text;
    wg_model model;
} world;

static wg__cloze *fixture_cloze(const wg_tokenizer *tokenizer, const char *pattern) {
    static const char *const verbalizers[] = {"w20", "w21 w22 w23", "w20 w24"};
    wg__labels labels = {0};
    wg__labels_add(&labels, "a");
    wg__labels_add(&labels, "b");
    wg__labels_add(&labels, "c");
    wg__cloze *cloze = wg__cloze_new(tokenizer, pattern, &labels, verbalizers);
    wg__labels_free(&labels);
    return cloze;
}

static world make_world(wg_dtype dtype) {
    world w = {.tokenizer = fixture_tokenizer()};
    w.cloze = fixture_cloze(w.tokenizer, "w7 {text} w8 w9 [MASK] w10");
    w.text = wg__cloze_text_load(
        w.cloze, write_text("text.tsv", "w11 w12 w13\tc\nw14\ta\nw15 w16 w17 w18 w19\tb\n"),
        w.tokenizer);
    w.model = load_fixture_model("glm", dtype);
    wg_module_train(w.model.module, false);
    return w;
}

static void free_world(world *w) {
    free_model(&w->model);
    wg__examples_free((wg__examples *)w->text);
    wg__cloze_free(w->cloze);
    wg_tokenizer_free(w->tokenizer);
}

static wg__cloze_batch read_batch(const world *w) {
    wg__cloze_batch batch;
    ck_assert_int_eq(
        wg__cloze_batch_read(w->cloze, w->text, SEQUENCE, 3, (int64_t[]){0, 1, 2}, &batch), 0);
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
        const wg__cloze_batch batch = read_batch(&w);
        wg_tensor *scores = wg__cloze_scores(&w.model, &batch);
        assert_relative(wg_detach(scores), fixture_tensor("glm_cloze/scores"), cases[i].tolerance);
        wg_tensor *loss = wg_cross_entropy(scores, batch.labels, -100, NULL);
        assert_relative(wg_detach(loss), wg_select(fixture_tensor("glm_cloze/loss"), 0, 0),
                        cases[i].tolerance);
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        assert_model_gradients("glm_cloze", w.model.module, cases[i].tolerance);
        free_world(&w);
    }
}
END_TEST

typedef struct function {
    const wg_model *model;
    wg__cloze_batch batch;
} function;

static int loss_of(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                   void *context) {
    (void)input_count, (void)inputs, (void)output_count;
    function *f = context;
    outputs[0] =
        wg_cross_entropy(wg__cloze_scores(f->model, &f->batch), f->batch.labels, -100, NULL);
    return outputs[0] ? 0 : -1;
}

START_TEST(gradients_equal_differences) {
    world w = make_world(WG_F64);
    function f = {&w.model, read_batch(&w)};
    const wg_gradcheck_options options = {.fast = true};
    wg_gradcheck_report report;
    const int status =
        wg_gradcheck_module(w.model.module, loss_of, &f, 0, NULL, 1, &options, &report);
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
    const wg__cloze_batch batch = read_batch(&w);
    wg_tensor *scores = wg__cloze_scores(&w.model, &batch);
    wg_blank_tokens tokens;
    wg__blank_tokens_of(w.tokenizer, &tokens);
    wg__blank_batch alone;
    const wg__blank_span span = {4, 7};
    const wg__blanked_text blanks = {filled, WG_COUNT(filled), &span, 1, tokens.mask, false};
    ck_assert_int_eq(wg__blanked_batch(&tokens, 1, &blanks, 1, &alone), 0);
    const wg_model_inputs inputs = {.ids = alone.input_ids,
                                    .position_ids = alone.position_ids,
                                    .block_position_ids = alone.block_position_ids,
                                    .part_a = alone.part_a};
    const double mean = wg_item(wg_model_loss(&w.model, wg_model_forward(&w.model, &inputs),
                                              alone.target_positions, alone.labels, NULL));
    ck_assert_double_eq_tol(wg_at(scores, (int64_t[]){1, 1}), -4 * mean, 1e-11);
    free_world(&w);
}
END_TEST

/* ---- The task ---- */

static const char *const fixture_verbalizers[] = {"a=w20", "b=w21 w22 w23", "c=w20 w24"};

static const char usual_pattern[] = "w7 {text} w8 w9 [MASK] w10";

/* A training of a model on the file of make_world. */
static wg_training *new_training(const world *w, const wg_model *model, const char *pattern,
                                 int64_t sequence) {
    const wg_cloze_options options = {
        .pattern = pattern,
        .verbalizer = {WG_COUNT(fixture_verbalizers), (const char **)fixture_verbalizers}};
    const char *path = in_scratch("text.tsv");
    const wg_training_setup setup = {.options = &options,
                                     .batch = 2,
                                     .seed = 3,
                                     .sequence = sequence,
                                     .training_path = path,
                                     .held_out_path = path};
    return training_of(&wg_cloze_objective, model, w->tokenizer, NULL, NULL, &setup);
}

static void train(wg_training *training, int64_t steps) {
    const wg_task task = wg_training_task(training);
    wg_trainer *trainer = task_trainer(&task, steps, in_scratch("run.h5"));
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
}

START_TEST(labels_are_learnt_and_a_checkpoint_tells_them) {
    world w = make_world(WG_F32);
    wg_training *training = new_training(&w, &w.model, usual_pattern, SEQUENCE);
    wg_metrics before = {0}, after = {0}, loaded = {0};
    ck_assert_int_eq(wg_training_evaluate(training, &before), 0);
    train(training, 10);
    const wg_evaluation_options answers = {.predictions = in_scratch("predictions")};
    training->setup.evaluation = &answers;
    ck_assert_int_eq(wg_training_evaluate(training, &after), 0);
    ck_assert_double_lt(wg_metrics_get(&after, "loss"), wg_metrics_get(&before, "loss"));
    wg_training_free(training);

    wg_model model;
    wg_tokenizer *tokenizer;
    const wg_evaluation_options again = {.predictions = in_scratch("again")};
    ck_assert_int_eq(wg_model_load(in_scratch("run.h5"), &model, &tokenizer), 0);
    training = training_of(&wg_cloze_objective, &model, tokenizer, NULL, NULL,
                           &(wg_training_setup){.held_out_path = in_scratch("text.tsv"),
                                                .checkpoint = in_scratch("run.h5"),
                                                .batch = 2,
                                                .sequence = SEQUENCE,
                                                .evaluation = &again});
    ck_assert_int_eq(wg_training_evaluate(training, &loaded), 0);
    ck_assert_double_eq(wg_metrics_get(&loaded, "loss"), wg_metrics_get(&after, "loss"));
    bytes written = read_bytes(answers.predictions), read = read_bytes(again.predictions);
    ck_assert_uint_gt(written.count, 5);
    ck_assert_str_eq((char *)written.data, (char *)read.data);
    free(written.data);
    free(read.data);
    wg_training_free(training);
    wg_tokenizer_free(tokenizer);
    wg_model_free(&model);
    free_world(&w);
}
END_TEST

START_TEST(another_cloze_is_refused_when_a_run_goes_on) {
    world w = make_world(WG_F32);
    wg_training *training = new_training(&w, &w.model, usual_pattern, SEQUENCE);
    train(training, 2);
    wg_training_free(training);
    training = new_training(&w, &w.model, "w7 {text} w9 [MASK]", SEQUENCE);
    const wg_task task = wg_training_task(training);
    wg_trainer *trainer = task_trainer(&task, 4, in_scratch("run.h5"));
    assert_fails(wg_trainer_resume(trainer, in_scratch("run.h5")), WG_ERROR_STATE,
                 "the pattern or the verbalizers are not those");
    wg_trainer_free(trainer);
    wg_training_free(training);
    free_world(&w);
}
END_TEST

/* ---- Refusals ---- */

START_TEST(what_does_not_fit_the_model_is_refused) {
    static const struct {
        const char *settings, *pattern;
        int64_t sequence;
        const char *part;
    } cases[] = {
        {"", usual_pattern, 128, "128 tokens is too long; the model has 16 positions"},
        {"", usual_pattern, 6, "the pattern takes 6 of the 6 tokens of a sequence"},
        {"'vocab_size': 47", usual_pattern, 16, "48 tokens; the model's vocabulary holds 47"},
        {"'max_sequence_length': 8", "{text} w7 w8 w9 w10 w11 w12 [MASK]", 8,
         "the pattern takes 8 of the 8 tokens"},
    };
    world w = make_world(WG_F32);
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        char settings[256];
        snprintf(settings, sizeof settings,
                 "'vocab_size': 48, 'hidden_size': 16, 'num_layers': 2, 'num_attention_heads': 4, "
                 "'max_sequence_length': 16%s%s",
                 cases[i].settings[0] ? ", " : "", cases[i].settings);
        wg_model model = preset_model("glm-tiny", settings, 1);
        assert_fails(new_training(&w, &model, cases[i].pattern, cases[i].sequence),
                     WG_ERROR_ARGUMENT, cases[i].part);
        wg_model_free(&model);
    }
    static const char *const long_verbalizers[] = {
        "a=w6", "b=w6 w6 w6 w6 w6 w6 w6 w6 w6 w6 w6 w6 w6 w6 w6 w6"};
    const wg_cloze_options options = {.pattern = "{text} [MASK]",
                                      .verbalizer = {2, (const char **)long_verbalizers}};
    assert_fails(training_of(&wg_cloze_objective, &w.model, w.tokenizer, NULL, NULL,
                             &(wg_training_setup){.sequence = 16, .options = &options}),
                 WG_ERROR_ARGUMENT, "a verbalizer of 17 tokens, its start among them, is too long");
    free_world(&w);
}
END_TEST

START_TEST(a_checkpoint_of_something_else_is_refused) {
    world w = make_world(WG_F32);
    wg_training_setup rest = {.checkpoint = "no-such.h5"};
    assert_fails(training_of(&wg_cloze_objective, &w.model, w.tokenizer, NULL, NULL, &rest),
                 WG_ERROR_NOT_FOUND, "no-such.h5");
    char *config = wg_model_config_json(&w.model);
    char *words = wg_tokenizer_to_json(w.tokenizer);
    wg_checkpoint *file = wg_checkpoint_create(in_scratch("run.h5"));
    wg_checkpoint_put_module(file, "/model", w.model.module);
    wg_checkpoint_put_text(file, "/config", config);
    wg_checkpoint_put_text(file, "/tokenizer", words);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    rest.checkpoint = in_scratch("run.h5");
    assert_fails(training_of(&wg_cloze_objective, &w.model, w.tokenizer, NULL, NULL, &rest),
                 WG_ERROR_FORMAT, "cloze");
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
        labels_are_learnt_and_a_checkpoint_tells_them,
        another_cloze_is_refused_when_a_run_goes_on,
        what_does_not_fit_the_model_is_refused,
        a_checkpoint_of_something_else_is_refused,
    };
    add_suite("glm cloze", tests);
}
