/* Blank infilling by the trainer: its loss, the bits of a resumed run, evaluation, refusals. */
#include "objectives/blank_infilling.h"

#include <math.h>
#include <stdio.h>

#include "data/tokenizer/tokenizer.h"
#include "models/glm.h"
#include "tests/objectives/task_run.h"
#include "tests/support/testing.h"
#include "data/internal.h"
#include "models/internal.h"

/* All that a run needs, created by each call as in a new process. */
typedef struct setup {
    wg_tokenizer *tokenizer;
    wg_dataset *corpus, *held_out;
    wg_glm *model;
    wg_model net; /* the same */
    wg_training *infilling;
} setup;

enum { SEQUENCE = 24, BATCH = 5 };

static const wg_blank_infilling_options shares = {
    .masked_share = 0.15, .span_mean = 3, .sentence_share = 0.2, .document_share = 0.3};

static const wg_training_setup options = {
    .batch = BATCH, .sequence = SEQUENCE, .seed = 2, .options = &shares};

static const wg__blank_batch_options batches_options = {.batch = BATCH,
                                                        .sequence = SEQUENCE,
                                                        .seed = 2,
                                                        .masked_share = 0.15,
                                                        .span_mean = 3,
                                                        .sentence_share = 0.2,
                                                        .document_share = 0.3};

static wg_glm_config small_config(const wg_tokenizer *tokenizer) {
    wg_blank_tokens tokens;
    wg_glm_config config;
    ck_assert_int_eq(wg__blank_tokens_of(tokenizer, &tokens), 0);
    ck_assert_int_eq(wg_model_preset_config(&wg_glm_type, "glm-tiny", &config), 0);
    config.vocab_size = tokens.vocab_size;
    config.hidden_size = 16;
    config.num_attention_heads = 2;
    config.max_sequence_length = SEQUENCE;
    return config;
}

static setup make_setup(int shift) {
    static const wg_dataset_options by_line = {.format = WG_SENTENCES_BY_LINE};
    setup s = {0};
    s.tokenizer =
        wg__wordpiece_train(task_text(0), -1, &(wg_wordpiece_training){.vocabulary_size = 60});
    wg_dataset *all = wg_dataset_from_text(task_text(shift), -1, NULL, s.tokenizer, &by_line);
    ck_assert_int_eq(wg_dataset_split(all, 0.25, &s.corpus, &s.held_out), 0);
    wg_dataset_free(all);
    const wg_glm_config config = small_config(s.tokenizer);
    s.model = wg__glm_new(&config, 1);
    s.net = (wg_model){.type = &wg_glm_type, .module = &s.model->module};
    s.infilling =
        training_of(&wg_blank_infilling, &s.net, s.tokenizer, s.corpus, s.held_out, &options);
    assert_no_error();
    return s;
}

static void free_setup(setup *s) {
    wg_training_free(s->infilling);
    wg_module_free(&s->model->module);
    wg_dataset_free(s->corpus);
    wg_dataset_free(s->held_out);
    wg_tokenizer_free(s->tokenizer);
}

static void train(setup *s, int64_t steps) {
    const wg_task task = wg_training_task(s->infilling);
    wg_trainer *trainer = task_trainer(&task, steps, in_scratch("run.h5"));
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
}

/* ---- Training ---- */

/* The task's loss is the mean cross-entropy of a GLM's logits, which tests/models/glm.c compares with PyTorch's. */
START_TEST(a_step_loses_what_the_model_loses_on_its_batch) {
    setup s = make_setup(0);
    wg_module_train(&s.model->module, false);
    const wg_task task = wg_training_task(s.infilling);
    wg_batches *batches = wg__blank_batches_new(s.corpus, s.tokenizer, &batches_options);
    for (int step = 0; step < 4; step++) {
        wg_metrics metrics = {0};
        wg__blank_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        const wg_model_inputs inputs = {.ids = batch.input_ids,
                                        .position_ids = batch.position_ids,
                                        .block_position_ids = batch.block_position_ids,
                                        .part_a = batch.part_a};
        wg_tensor *loss = task.loss(task.context, &metrics);
        ck_assert(wg_requires_grad(loss));
        ck_assert_double_eq(wg_item(loss),
                            wg_item(wg_model_loss(&s.net, wg_model_forward(&s.net, &inputs),
                                                  batch.target_positions, batch.labels, NULL)));
        ck_assert_int_eq(metrics.tokens, batch.tokens);
    }
    wg_scope_clear_root();
    wg_batches_free(batches);
    free_setup(&s);
}
END_TEST

static setup resumed;

static wg_task begin_resumed(void) {
    resumed = make_setup(0);
    return wg_training_task(resumed.infilling);
}

static void end_resumed(void) {
    free_setup(&resumed);
}

START_TEST(a_resumed_run_gives_the_same_bits) {
    assert_resumed_bits(begin_resumed, end_resumed);
}
END_TEST

START_TEST(another_corpus_is_refused_when_a_run_goes_on) {
    setup s = make_setup(0);
    train(&s, 2);
    free_setup(&s);
    s = make_setup(1);
    const wg_task task = wg_training_task(s.infilling);
    wg_trainer *trainer = task_trainer(&task, 4, in_scratch("run.h5"));
    ck_assert_int_eq(wg_trainer_resume(trainer, in_scratch("run.h5")), -1);
    assert_error(WG_ERROR_STATE, "the corpus");
    wg_trainer_free(trainer);
    free_setup(&s);
}
END_TEST

/* ---- Evaluation ---- */

/* Every text once: 3 sentences of 6 tokens fit into 23, so a document of 6 is two texts, and the
 * last batch is smaller. */
START_TEST(an_evaluation_takes_each_text_once_and_is_the_same_each_time) {
    setup s = make_setup(0);
    wg_metrics first = {0}, second = {0};
    ck_assert_int_eq(wg_training_evaluate(s.infilling, &first), 0);
    ck_assert_int_eq(wg_training_evaluate(s.infilling, &second), 0);
    ck_assert_mem_eq(&first, &second, sizeof first);

    const wg__blank_batch_options spans = {.batch = BATCH, .sequence = SEQUENCE, .seed = 2};
    wg_batches *batches = wg__blank_batches_new(s.held_out, s.tokenizer, &spans);
    wg_blank_tokens tokens;
    wg__blank_tokens_of(s.tokenizer, &tokens);
    int64_t rows = 0, labels = 0, words = 0;
    while (wg__batches_position(batches).epoch == 0) {
        wg__blank_batch batch;
        ck_assert_int_eq(wg__batches_advance(batches, true, &batch), 0);
        rows += wg_tensor_size(batch.input_ids, 0);
        labels += wg_tensor_count(batch.labels);
        for (int64_t i = 0; i < wg_tensor_count(batch.labels); i++)
            words += ((const int64_t *)wg_tensor_data(batch.labels))[i] != tokens.end;
    }
    ck_assert_int_eq(rows, wg__batches_examples(batches));
    ck_assert_int_ne(rows % BATCH, 0);
    ck_assert_int_eq((int64_t)wg_metrics_weight(&first, "loss"), labels);
    ck_assert_int_eq((int64_t)wg_metrics_weight(&first, "word_loss"), words);
    ck_assert_int_lt(words, labels);
    wg_batches_free(batches);
    free_setup(&s);
}
END_TEST

START_TEST(an_untrained_model_fills_no_better_than_chance) {
    setup s = make_setup(0);
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_training_evaluate(s.infilling, &metrics), 0);
    const double uniform = log((double)s.model->config.vocab_size);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "loss"), uniform, 0.1);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "word_loss"), uniform, 0.1);
    /* 7 words and a full stop, each about as frequent; a few counts of add-one smoothing more. */
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "unigram_loss"), log(8), 0.3);
    free_setup(&s);
}
END_TEST

START_TEST(there_is_no_evaluation_without_held_out_text) {
    setup s = make_setup(0);
    wg_training *infilling =
        training_of(&wg_blank_infilling, &s.net, s.tokenizer, s.corpus, NULL, &options);
    wg_metrics metrics = {0};
    ck_assert(wg_training_task(infilling).evaluate == NULL);
    ck_assert_int_eq(wg_training_evaluate(infilling, &metrics), -1);
    assert_error(WG_ERROR_STATE, "held-out");
    wg_training_free(infilling);
    free_setup(&s);
}
END_TEST

/* ---- Checkpoints and refusals ---- */

START_TEST(a_checkpoint_gives_back_model_and_tokenizer) {
    setup s = make_setup(0);
    train(&s, 2);
    wg_model read;
    wg_tokenizer *tokenizer;
    ck_assert_int_eq(wg_model_load(in_scratch("run.h5"), &read, &tokenizer), 0);
    const wg_glm *model = (const wg_glm *)read.module;
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), wg_tokenizer_size(s.tokenizer));
    ck_assert_int_eq(model->config.max_sequence_length, SEQUENCE);
    assert_close(model->words->weight, s.model->words->weight, 0, 0);
    wg_tokenizer_free(tokenizer);
    wg_model_free(&read);
    free_setup(&s);

    ck_assert_int_eq(wg_model_load("no-such.h5", &read, &tokenizer), -1);
    assert_error(WG_ERROR_NOT_FOUND, "no-such.h5");
    ck_assert_ptr_null(read.module);
    ck_assert_ptr_null(tokenizer);
}
END_TEST

START_TEST(what_does_not_fit_the_model_is_refused) {
    setup s = make_setup(0);
    wg_training_setup longer = options;
    longer.sequence = SEQUENCE + 1;
    ck_assert_ptr_null(
        training_of(&wg_blank_infilling, &s.net, s.tokenizer, s.corpus, NULL, &longer));
    assert_error(WG_ERROR_ARGUMENT, "24 positions");
    longer.sequence = 128;
    ck_assert_ptr_null(
        training_of(&wg_blank_infilling, &s.net, s.tokenizer, s.corpus, NULL, &longer));
    assert_error(WG_ERROR_ARGUMENT, "a sequence of 128 tokens is too long");
    wg_glm_config config = s.model->config;
    config.vocab_size--;
    wg_glm *smaller = wg__glm_new(&config, 1);
    ck_assert_ptr_null(training_of(&wg_blank_infilling,
                                   &(wg_model){.type = &wg_glm_type, .module = &smaller->module},
                                   s.tokenizer, s.corpus, NULL, &options));
    assert_error(WG_ERROR_ARGUMENT, "the tokens of blanks");
    wg_module_free(&smaller->module);
    free_setup(&s);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_step_loses_what_the_model_loses_on_its_batch,
        a_resumed_run_gives_the_same_bits,
        another_corpus_is_refused_when_a_run_goes_on,
        an_evaluation_takes_each_text_once_and_is_the_same_each_time,
        an_untrained_model_fills_no_better_than_chance,
        there_is_no_evaluation_without_held_out_text,
        a_checkpoint_gives_back_model_and_tokenizer,
        what_does_not_fit_the_model_is_refused,
    };
    add_suite("blank infilling", tests);
}
