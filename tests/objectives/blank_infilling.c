/* Blank infilling by the trainer: its loss, evaluation, refusals. */
#include "objectives/blank_infilling.h"

#include <math.h>
#include <stdio.h>

#include "data/tokenizer/tokenizer.h"
#include "models/glm.h"
#include "tests/objectives/task_run.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "data/internal.h"
#include "models/internal.h"

typedef struct setup {
    wg_tokenizer *tokenizer;
    wg_blank_tokens tokens;
    wg_dataset *corpus, *held_out;
    wg_model model;
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

static wg_model make_model(int64_t vocabulary) {
    char settings[128];
    snprintf(settings, sizeof settings,
             "'vocab_size': %d, 'hidden_size': 16, 'num_attention_heads': 2, "
             "'max_sequence_length': %d",
             (int)vocabulary, SEQUENCE);
    return preset_model("glm-tiny", settings, 1);
}

static setup make_setup(void) {
    static const wg_dataset_options by_line = {.format = WG_SENTENCES_BY_LINE};
    setup s = {0};
    s.tokenizer =
        wg__wordpiece_train(task_text(0), -1, &(wg_wordpiece_training){.vocabulary_size = 60});
    wg_dataset *all = wg_dataset_from_text(task_text(0), -1, NULL, s.tokenizer, &by_line);
    ck_assert_int_eq(wg_dataset_split(all, 0.25, &s.corpus, &s.held_out), 0);
    wg_dataset_free(all);
    ck_assert_int_eq(wg__blank_tokens_of(s.tokenizer, &s.tokens), 0);
    s.model = make_model(s.tokens.vocab_size);
    s.infilling =
        training_of(&wg_blank_infilling, &s.model, s.tokenizer, s.corpus, s.held_out, &options);
    assert_no_error();
    return s;
}

static void free_setup(setup *s) {
    wg_training_free(s->infilling);
    wg_model_free(&s->model);
    wg_dataset_free(s->corpus);
    wg_dataset_free(s->held_out);
    wg_tokenizer_free(s->tokenizer);
}

/* ---- Training ---- */

/* The loss of the task is the mean cross-entropy of a GLM's logits, which tests/models/pytorch.c
 * compares with those of PyTorch. */
START_TEST(a_step_loses_what_the_model_loses_on_its_batch) {
    setup s = make_setup();
    wg_module_train(s.model.module, false);
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
                            wg_item(wg_model_loss(&s.model, wg_model_forward(&s.model, &inputs),
                                                  batch.target_positions, batch.labels, NULL)));
        ck_assert_int_eq(metrics.tokens, batch.tokens);
    }
    wg_scope_clear_root();
    wg_batches_free(batches);
    free_setup(&s);
}
END_TEST

/* ---- Evaluation ---- */

/* Every text once: 3 sentences of 6 tokens fit into 23, so a document of 6 is two texts, and the
 * last batch is smaller. */
START_TEST(an_evaluation_takes_each_text_once) {
    setup s = make_setup();
    wg_metrics first = {0};
    ck_assert_int_eq(wg_training_evaluate(s.infilling, &first), 0);
    const wg__blank_batch_options spans = {.batch = BATCH, .sequence = SEQUENCE, .seed = 2};
    wg_batches *batches = wg__blank_batches_new(s.held_out, s.tokenizer, &spans);
    int64_t rows = 0, labels = 0, words = 0;
    while (wg__batches_position(batches).epoch == 0) {
        wg__blank_batch batch;
        ck_assert_int_eq(wg__batches_advance(batches, true, &batch), 0);
        rows += wg_tensor_size(batch.input_ids, 0);
        labels += wg_tensor_count(batch.labels);
        for (int64_t i = 0; i < wg_tensor_count(batch.labels); i++)
            words += ((const int64_t *)wg_tensor_data(batch.labels))[i] != s.tokens.end;
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
    setup s = make_setup();
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_training_evaluate(s.infilling, &metrics), 0);
    const double uniform = log((double)s.tokens.vocab_size);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "loss"), uniform, 0.1);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "word_loss"), uniform, 0.1);
    /* 7 words and a full stop, each about as frequent; a few counts of add-one smoothing more. */
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "unigram_loss"), log(8), 0.3);
    free_setup(&s);
}
END_TEST

START_TEST(a_model_without_the_tokens_of_blanks_is_refused) {
    setup s = make_setup();
    wg_model smaller = make_model(s.tokens.vocab_size - 1);
    assert_fails(training_of(&wg_blank_infilling, &smaller, s.tokenizer, s.corpus, NULL, &options),
                 WG_ERROR_ARGUMENT, "the tokens of blanks");
    wg_model_free(&smaller);
    free_setup(&s);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_step_loses_what_the_model_loses_on_its_batch,
        an_evaluation_takes_each_text_once,
        an_untrained_model_fills_no_better_than_chance,
        a_model_without_the_tokens_of_blanks_is_refused,
    };
    add_suite("blank infilling", tests);
}
