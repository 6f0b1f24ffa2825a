/* BERT's pre-training under the trainer: bits after a resumption, evaluations, refusals. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/wordpiece.h"
#include "tests/testing.h"
#include "train/bert_pretraining.h"

/* A text of 12 documents of 6 sentences of 5 words, of which each document has its own. */
static const char *make_text(int shift) {
    static char text[16384];
    static const char *const words[] = {"cat", "dog", "sun", "sea", "tree", "bird", "wind"};
    size_t length = 0;
    for (int document = 0; document < 12; document++) {
        for (int sentence = 0; sentence < 6; sentence++) {
            for (int word = 0; word < 5; word++)
                length +=
                    (size_t)snprintf(text + length, sizeof text - length, "%s%s", word ? " " : "",
                                     words[(document + shift + sentence * word) % 7]);
            length += (size_t)snprintf(text + length, sizeof text - length, " .\n");
        }
        length += (size_t)snprintf(text + length, sizeof text - length, "\n");
    }
    return text;
}

/* All that a run needs, made anew by each call as a new process would. */
typedef struct setup {
    wg_tokenizer *tokenizer;
    wg_corpus *corpus, *held_out;
    wg_bert_for_pretraining *model;
    wg_bert_pretraining *pretraining;
} setup;

static wg_bert_config small_config(const wg_tokenizer *tokenizer) {
    wg_bert_config config;
    ck_assert_int_eq(wg_bert_config_preset(&config, "bert-tiny"), 0);
    config.vocab_size = wg_tokenizer_size(tokenizer);
    config.hidden_size = 16;
    config.num_attention_heads = 2;
    config.intermediate_size = 32;
    config.max_position_embeddings = 24;
    return config;
}

static setup make_setup(int shift) {
    static const wg_corpus_options by_line = {.format = WG_CORPUS_SENTENCES};
    setup s = {0};
    const char *text = make_text(0);
    s.tokenizer = wg_wordpiece_train(text, (int64_t)strlen(text),
                                     &(wg_wordpiece_training){.vocabulary_size = 60});
    wg_corpus *all = wg_corpus_from_text(make_text(shift), -1, s.tokenizer, &by_line);
    ck_assert_int_eq(wg_corpus_split(all, 0.25, &s.corpus, &s.held_out), 0);
    wg_corpus_free(all);
    wg_bert_config config = small_config(s.tokenizer);
    s.model = wg_bert_for_pretraining_new(&config, 1);
    s.pretraining = wg_bert_pretraining_new(
        s.model, s.tokenizer, s.corpus, s.held_out,
        &(wg_bert_pretraining_options){.batch = 4, .sequence = 24, .seed = 2});
    assert_no_error();
    return s;
}

static void free_setup(setup *s) {
    wg_bert_pretraining_free(s->pretraining);
    wg_module_free(&s->model->module);
    wg_corpus_free(s->corpus);
    wg_corpus_free(s->held_out);
    wg_tokenizer_free(s->tokenizer);
}

static wg_trainer *make_trainer(setup *s, int64_t steps, const char *path) {
    wg_task task = wg_bert_pretraining_task(s->pretraining);
    wg_trainer_options options = {
        .steps = steps,
        .schedule = {.peak = 1e-3, .warmup_steps = 3, .total_steps = 10},
        .evaluate_every = 2,
        .path = path,
    };
    return wg_trainer_new(&task, wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.01}), &options);
}

static const char *run_path(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s/run.h5", scratch());
    return path;
}

/* Fails unless the two files hold the same bits in every dataset that is a tensor of the group. */
typedef struct comparison {
    wg_checkpoint *other, *file;
    const char *group;
    int tensors;
} comparison;

static int compare_dataset(const char *name, const wg_spec *spec, void *context) {
    comparison *c = context;
    if (strncmp(name, c->group, strlen(c->group)) != 0 || spec->ndim == 0)
        return 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *a = wg_checkpoint_get_tensor(c->file, name);
    wg_tensor *b = wg_checkpoint_get_tensor(c->other, name);
    assert_no_error();
    ck_assert_int_eq(wg_tensor_count(a), wg_tensor_count(b));
    size_t bytes = (size_t)wg_tensor_count(a) * wg_dtype_size(spec->dtype);
    ck_assert_msg(memcmp(wg_tensor_data(a), wg_tensor_data(b), bytes) == 0, "%s differs", name);
    wg_scope_end(&scope, NULL);
    c->tensors++;
    return 0;
}

static void assert_same_tensors(const char *path, const char *other, const char *group) {
    comparison c = {
        .file = wg_checkpoint_open(path), .other = wg_checkpoint_open(other), .group = group};
    ck_assert_int_eq(wg_checkpoint_each(c.file, compare_dataset, &c), 0);
    ck_assert_int_gt(c.tensors, 0);
    wg_checkpoint_close(c.file);
    wg_checkpoint_close(c.other);
}

START_TEST(a_resumed_pretraining_gives_the_same_bits) {
    char straight[600], resumed[600];
    snprintf(straight, sizeof straight, "%s/straight.h5", scratch());
    snprintf(resumed, sizeof resumed, "%s/resumed.h5", scratch());

    setup s = make_setup(0);
    wg_trainer *trainer = make_trainer(&s, 10, straight);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    free_setup(&s);

    for (int64_t steps = 4; steps <= 10; steps += 6) {
        s = make_setup(0);
        trainer = make_trainer(&s, steps, resumed);
        if (steps > 4)
            ck_assert_int_eq(wg_trainer_resume(trainer, resumed), 0);
        ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
        wg_trainer_free(trainer);
        free_setup(&s);
    }
    assert_same_tensors(straight, resumed, "/model/");
    assert_same_tensors(straight, resumed, "/optimizer/");
    assert_same_tensors(straight, resumed, "/train/history/");
}
END_TEST

START_TEST(an_evaluation_is_the_same_each_time) {
    setup s = make_setup(0);
    wg_metrics first = {0}, second = {0};
    ck_assert_int_eq(wg_bert_pretraining_evaluate(s.pretraining, &first), 0);
    ck_assert_int_eq(wg_bert_pretraining_evaluate(s.pretraining, &second), 0);
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
    ck_assert_int_eq(wg_bert_pretraining_evaluate(s.pretraining, &metrics), 0);
    double uniform = log((double)wg_tokenizer_size(s.tokenizer));
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "mlm_loss"), uniform, 0.1);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "nsp_loss"), log(2), 0.05);
    free_setup(&s);
}
END_TEST

START_TEST(another_corpus_is_refused_when_a_run_goes_on) {
    setup s = make_setup(0);
    wg_trainer *trainer = make_trainer(&s, 2, run_path());
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    free_setup(&s);

    s = make_setup(1);
    trainer = make_trainer(&s, 4, run_path());
    ck_assert_int_eq(wg_trainer_resume(trainer, run_path()), -1);
    assert_error(WG_ERROR_STATE, "the corpus");
    wg_trainer_free(trainer);
    free_setup(&s);
}
END_TEST

START_TEST(a_checkpoint_gives_back_model_and_tokenizer) {
    setup s = make_setup(0);
    wg_trainer *trainer = make_trainer(&s, 2, run_path());
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);

    wg_bert_for_pretraining *model;
    wg_tokenizer *tokenizer;
    ck_assert_int_eq(wg_bert_load(run_path(), &model, &tokenizer), 0);
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), wg_tokenizer_size(s.tokenizer));
    wg_slot *read = wg_module_find(&model->module, "bert.pooler.dense.weight");
    wg_slot *written = wg_module_find(&s.model->module, "bert.pooler.dense.weight");
    assert_close(read->tensor, written->tensor, 0, 0);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
    free_setup(&s);

    ck_assert_int_eq(wg_bert_load("no-such.h5", &model, &tokenizer), -1);
    assert_error(WG_ERROR_NOT_FOUND, "no-such.h5");
    ck_assert_ptr_null(model);
    ck_assert_ptr_null(tokenizer);
}
END_TEST

START_TEST(a_sequence_beyond_the_positions_is_refused) {
    setup s = make_setup(0);
    ck_assert_ptr_null(wg_bert_pretraining_new(s.model, s.tokenizer, s.corpus, NULL,
                                               &(wg_bert_pretraining_options){.sequence = 25}));
    assert_error(WG_ERROR_ARGUMENT, "24 positions");
    free_setup(&s);
}
END_TEST

START_TEST(there_is_no_evaluation_without_held_out_text) {
    setup s = make_setup(0);
    wg_bert_pretraining *pretraining = wg_bert_pretraining_new(
        s.model, s.tokenizer, s.corpus, NULL, &(wg_bert_pretraining_options){.sequence = 24});
    wg_metrics metrics = {0};
    ck_assert(wg_bert_pretraining_task(pretraining).evaluate == NULL);
    ck_assert_int_eq(wg_bert_pretraining_evaluate(pretraining, &metrics), -1);
    assert_error(WG_ERROR_STATE, "held-out");
    wg_bert_pretraining_free(pretraining);
    free_setup(&s);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_resumed_pretraining_gives_the_same_bits,
        an_evaluation_is_the_same_each_time,
        an_untrained_model_predicts_no_better_than_chance,
        another_corpus_is_refused_when_a_run_goes_on,
        a_checkpoint_gives_back_model_and_tokenizer,
        a_sequence_beyond_the_positions_is_refused,
        there_is_no_evaluation_without_held_out_text,
    };
    return wg_run_tests("bert pretraining", WG_COUNT(tests), tests);
}
