/* BERT's pretraining by the trainer: the bits of a resumed run, evaluation, refusals. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "tests/objectives/task_run.h"
#include "tests/support/testing.h"
#include "models/bert.h"
#include "objectives/masked_lm.h"
#include "data/internal.h"
#include "models/internal.h"

/* All that a run needs, created by each call as in a new process. */
typedef struct setup {
    wg_tokenizer *tokenizer;
    wg_dataset *corpus, *held_out;
    wg_bert_for_pretraining *model;
    wg_model net; /* the same */
    wg_training *pretraining;
} setup;

static wg_bert_config small_config(const wg_tokenizer *tokenizer) {
    wg_bert_config config;
    ck_assert_int_eq(wg_model_preset_config(&wg_bert_type, "bert-tiny", &config), 0);
    config.vocab_size = wg_tokenizer_size(tokenizer);
    config.hidden_size = 16;
    config.num_attention_heads = 2;
    config.intermediate_size = 32;
    config.max_position_embeddings = 24;
    return config;
}

static setup make_setup(int shift) {
    static const wg_dataset_options by_line = {.format = WG_SENTENCES_BY_LINE};
    setup s = {0};
    const char *text = task_text(0);
    s.tokenizer = wg__wordpiece_train(text, (int64_t)strlen(text),
                                      &(wg_wordpiece_training){.vocabulary_size = 60});
    wg_dataset *all = wg_dataset_from_text(task_text(shift), -1, NULL, s.tokenizer, &by_line);
    ck_assert_int_eq(wg_dataset_split(all, 0.25, &s.corpus, &s.held_out), 0);
    wg_dataset_free(all);
    wg_bert_config config = small_config(s.tokenizer);
    s.model = wg__bert_for_pretraining_new(&config, 1);
    s.net = (wg_model){.type = &wg_bert_type, .module = &s.model->module};
    s.pretraining = training_of(&wg_masked_lm, &s.net, s.tokenizer, s.corpus, s.held_out,
                                &(wg_training_setup){.batch = 4, .sequence = 24, .seed = 2});
    assert_no_error();
    return s;
}

static void free_setup(setup *s) {
    wg_training_free(s->pretraining);
    wg_module_free(&s->model->module);
    wg_dataset_free(s->corpus);
    wg_dataset_free(s->held_out);
    wg_tokenizer_free(s->tokenizer);
}

static wg_trainer *make_trainer(setup *s, int64_t steps, const char *path) {
    const wg_task task = wg_training_task(s->pretraining);
    return task_trainer(&task, steps, path);
}

static setup resumed;

static wg_task begin_resumed(void) {
    resumed = make_setup(0);
    return wg_training_task(resumed.pretraining);
}

static void end_resumed(void) {
    free_setup(&resumed);
}

START_TEST(a_resumed_pretraining_gives_the_same_bits) {
    assert_resumed_bits(begin_resumed, end_resumed);
}
END_TEST

START_TEST(an_evaluation_is_the_same_each_time) {
    setup s = make_setup(0);
    wg_metrics first = {0}, second = {0};
    ck_assert_int_eq(wg_training_evaluate(s.pretraining, &first), 0);
    ck_assert_int_eq(wg_training_evaluate(s.pretraining, &second), 0);
    ck_assert_mem_eq(&first, &second, sizeof first);
    ck_assert_double_gt(wg_metrics_weight(&first, "mlm_loss"), 0);
    ck_assert_double_gt(wg_metrics_get(&first, "unigram_loss"), 0);
    double random = wg_metrics_get(&first, "nsp_random");
    ck_assert(random > 0 && random < 1);
    ck_assert_double_eq_tol(wg_metrics_get(&first, "loss"),
                            wg_metrics_get(&first, "mlm_loss") + wg_metrics_get(&first, "nsp_loss"),
                            1e-12);
    free_setup(&s);
}
END_TEST

START_TEST(an_untrained_model_predicts_no_better_than_chance) {
    setup s = make_setup(0);
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_training_evaluate(s.pretraining, &metrics), 0);
    double uniform = log((double)wg_tokenizer_size(s.tokenizer));
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "mlm_loss"), uniform, 0.1);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "nsp_loss"), log(2), 0.05);
    free_setup(&s);
}
END_TEST

START_TEST(another_corpus_is_refused_when_a_run_goes_on) {
    setup s = make_setup(0);
    wg_trainer *trainer = make_trainer(&s, 2, in_scratch("run.h5"));
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    free_setup(&s);

    s = make_setup(1);
    trainer = make_trainer(&s, 4, in_scratch("run.h5"));
    ck_assert_int_eq(wg_trainer_resume(trainer, in_scratch("run.h5")), -1);
    assert_error(WG_ERROR_STATE, "the corpus");
    wg_trainer_free(trainer);
    free_setup(&s);
}
END_TEST

START_TEST(a_checkpoint_gives_back_model_and_tokenizer) {
    setup s = make_setup(0);
    wg_trainer *trainer = make_trainer(&s, 2, in_scratch("run.h5"));
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);

    wg_model model;
    wg_tokenizer *tokenizer;
    ck_assert_int_eq(wg_model_load(in_scratch("run.h5"), &model, &tokenizer), 0);
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), wg_tokenizer_size(s.tokenizer));
    wg_slot *read = wg_module_find(model.module, "bert.pooler.dense.weight");
    wg_slot *written = wg_module_find(&s.model->module, "bert.pooler.dense.weight");
    assert_close(read->tensor, written->tensor, 0, 0);
    wg_tokenizer_free(tokenizer);
    wg_model_free(&model);
    free_setup(&s);

    ck_assert_int_eq(wg_model_load("no-such.h5", &model, &tokenizer), -1);
    assert_error(WG_ERROR_NOT_FOUND, "no-such.h5");
    ck_assert_ptr_null(model.module);
    ck_assert_ptr_null(tokenizer);
}
END_TEST

START_TEST(a_sequence_beyond_the_positions_is_refused) {
    setup s = make_setup(0);
    ck_assert_ptr_null(training_of(&wg_masked_lm, &s.net, s.tokenizer, s.corpus, NULL,
                                   &(wg_training_setup){.sequence = 25}));
    assert_error(WG_ERROR_ARGUMENT, "24 positions");
    free_setup(&s);
}
END_TEST

START_TEST(there_is_no_evaluation_without_held_out_text) {
    setup s = make_setup(0);
    wg_training *pretraining = training_of(&wg_masked_lm, &s.net, s.tokenizer, s.corpus, NULL,
                                           &(wg_training_setup){.sequence = 24});
    wg_metrics metrics = {0};
    ck_assert(wg_training_task(pretraining).evaluate == NULL);
    ck_assert_int_eq(wg_training_evaluate(pretraining, &metrics), -1);
    assert_error(WG_ERROR_STATE, "held-out");
    wg_training_free(pretraining);
    free_setup(&s);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_resumed_pretraining_gives_the_same_bits,
        an_evaluation_is_the_same_each_time,
        an_untrained_model_predicts_no_better_than_chance,
        another_corpus_is_refused_when_a_run_goes_on,
        a_checkpoint_gives_back_model_and_tokenizer,
        a_sequence_beyond_the_positions_is_refused,
        there_is_no_evaluation_without_held_out_text,
    };
    add_suite("bert pretraining", tests);
}
