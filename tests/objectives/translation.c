/* Translation as a task: losses, evaluation, BLEU, and texts through the translator. */
#include "models/transformer.h"
#include "objectives/translation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/score/score.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/ops.h"
#include "tests/objectives/task_run.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "data/internal.h"
#include "io/internal.h"
#include "models/internal.h"

/* ---- Three-letter words, which are translated by being said backwards ---- */

enum { PAIRS = 48, LETTERS = 4 };

static void make_texts(char *source, char *target) {
    for (int i = 0; i < PAIRS; i++) {
        const int word = 5 * i % 64;
        const char letters[3] = {(char)('a' + word % 4), (char)('a' + word / 4 % 4),
                                 (char)('a' + word / 16)};
        source += sprintf(source, "%c%c%c\n", letters[0], letters[1], letters[2]);
        target += sprintf(target, "%c%c%c\n", letters[2], letters[1], letters[0]);
    }
}

typedef struct setup {
    wg_tokenizer *tokenizer;
    wg_dataset *training, *held_out;
    wg_model model;
    wg_training *translation;
} setup;

static setup make_setup(void) {
    static char source[1024], target[1024]; /* the held-out pairs, which BLEU reads again */
    wg_dataset *rest;
    setup s = {.tokenizer = wg__bpe_train(
                   "a", 1, &(wg_bpe_training){.vocabulary_size = 257, .min_frequency = 9})};
    make_texts(source, target);
    s.training = wg_dataset_from_text(source, -1, target, s.tokenizer,
                                      &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    ck_assert_int_eq(wg_dataset_split(s.training, 0.25, &rest, &s.held_out), 0);
    wg_dataset_free(rest);
    s.model = preset_model(
        "transformer-tiny",
        "'vocab_size': 257, 'decoder_vocab_size': 257, 'd_model': 16, 'encoder_layers': 1, "
        "'decoder_layers': 1, 'encoder_attention_heads': 2, 'decoder_attention_heads': 2, "
        "'encoder_ffn_dim': 32, 'decoder_ffn_dim': 32, 'max_position_embeddings': 16, "
        "'dropout': 0.1, 'pad_token_id': null, 'eos_token_id': 256, "
        "'decoder_start_token_id': 256",
        3);
    s.translation = training_of(&wg_translation, &s.model, s.tokenizer, s.training, s.held_out,
                                &(wg_training_setup){.batch = 64, .sequence = 8, .seed = 2});
    assert_no_error();
    return s;
}

static void free_setup(setup *s) {
    wg_training_free(s->translation);
    wg_model_free(&s->model);
    wg_dataset_free(s->training);
    wg_dataset_free(s->held_out);
    wg_tokenizer_free(s->tokenizer);
}

/* ---- Training ---- */

START_TEST(a_step_loses_what_the_model_loses_on_its_batch) {
    setup s = make_setup();
    const wg__translation_tokens tokens = {256, 256, -1};
    wg_batches *batches = wg__translation_batches_new(
        s.training, &tokens,
        &(wg__translation_batch_options){.tokens = 64, .longest = 8, .seed = 2});
    const wg_task task = wg_training_task(s.translation);
    for (int i = 0; i < 5; i++) {
        wg__translation_batch batch;
        wg_metrics metrics = {0};
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        const wg_generator before = *wg_module_generator(task.module);
        wg_tensor *loss = task.loss(task.context, &metrics);
        *wg_module_generator(task.module) = before;
        const wg_model_inputs inputs = {
            .ids = batch.target,
            .memory = wg_model_encode(&s.model, batch.source, batch.source_keep),
            .memory_keep = batch.source_keep};
        wg_tensor *wanted =
            wg_model_loss(&s.model, wg_model_forward(&s.model, &inputs), NULL, batch.labels, NULL);
        assert_close(loss, wanted, 0, 0);
        ck_assert_int_eq(metrics.tokens, batch.tokens);
    }
    wg_batches_free(batches);
    free_setup(&s);
}
END_TEST

/* ---- Measuring ---- */

/* The mean over all labels, one pair at a time, without label smoothing. */
static double loss_of_pairs(const setup *s) {
    const wg__translation_tokens tokens = {256, 256, -1};
    double sum = 0, count = 0;
    wg_set_grad_enabled(false);
    wg_module_train(s->model.module, false);
    for (int64_t i = 0; i < wg__dataset_documents(s->held_out); i++) {
        wg__translation_batch batch;
        ck_assert_int_eq(wg__translation_batch_read(s->held_out, &tokens, 1, &i, &batch), 0);
        const wg_model_inputs inputs = {.ids = batch.target,
                                        .memory = wg_model_encode(&s->model, batch.source, NULL)};
        wg_tensor *logits = wg_model_logits(&s->model, wg_model_forward(&s->model, &inputs), NULL);
        wg_tensor *rows = wg_reshape(logits, WG_DIMS(-1, 257));
        wg_tensor *loss = wg_cross_entropy(rows, wg_reshape(batch.labels, WG_DIMS(-1)), -100, NULL);
        sum += wg_item(loss) * (double)batch.tokens;
        count += (double)batch.tokens;
    }
    wg_set_grad_enabled(true);
    wg_module_train(s->model.module, true);
    return sum / count;
}

START_TEST(an_evaluation_counts_every_label_once_without_smoothing) {
    setup s = make_setup();
    wg_metrics first = {0};
    ck_assert_int_eq(wg_training_evaluate(s.translation, &first), 0);
    const double loss = wg_metrics_get(&first, "loss");
    ck_assert_double_eq(wg_metrics_weight(&first, "loss"), 12 * LETTERS);
    ck_assert_double_eq_tol(loss, loss_of_pairs(&s), 1e-5);
    ck_assert_double_eq_tol(wg_metrics_get(&first, "perplexity"), exp(loss), 1e-9);
    free_setup(&s);
}
END_TEST

START_TEST(a_trained_model_translates_and_is_scored) {
    setup s = make_setup();
    const wg_task task = wg_training_task(s.translation);
    const wg_trainer_options options = {.steps = 400,
                                        .schedule = {.kind = WG_SCHEDULE_CONSTANT, .peak = 0.01}};
    wg_trainer *trainer =
        wg_trainer_new(&task, wg_adam_new(&(wg_adam_options){.beta2 = 0.98}), &options);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    const char *texts[] = {"abc", "", "dca", " \t"};
    char *translations[4];
    ck_assert_int_eq(wg_translate_texts(&s.model, s.tokenizer,
                                        &(wg_translation_use){.batch = 1, .beam = {.beam = 1}}, 4,
                                        texts, translations),
                     0);
    ck_assert_str_eq(translations[0], "cba");
    ck_assert_str_eq(translations[1], "");
    ck_assert_str_eq(translations[2], "acd");
    ck_assert_str_eq(translations[3], "");
    for (int i = 0; i < 4; i++)
        wg_text_free(translations[i]);

    /* The score is the BLEU of the lines that are written. */
    const char *output = in_scratch("output.h5");
    wg_metrics metrics = {0};
    const wg_evaluation_options answers = {.predictions = output};
    wg_training *scored =
        training_of(&wg_translation, &s.model, s.tokenizer, NULL, s.held_out,
                    &(wg_training_setup){.batch = 64, .sequence = 8, .evaluation = &answers});
    ck_assert_int_eq(wg_training_evaluate(scored, &metrics), 0);
    wg_training_free(scored);
    wg__bleu bleu = {0};
    bytes written = read_bytes(output);
    char *line = strtok((char *)written.data, "\n");
    for (int64_t i = 0; i < 12; i++, line = strtok(NULL, "\n")) {
        ck_assert_ptr_nonnull(line);
        char *reference = wg__dataset_pair_text(s.held_out, WG_TARGET, i);
        ck_assert_int_eq(wg__bleu_add(&bleu, line, reference, (wg_bleu_rules){0}), 0);
        wg_text_free(reference);
    }
    ck_assert_ptr_null(line);
    free(written.data);
    ck_assert_double_eq(wg_metrics_get(&metrics, "bleu"), wg__bleu_measure(&bleu).score);
    ck_assert_double_eq(wg_metrics_get(&metrics, "hypothesis_tokens"), 12);
    ck_assert_double_ge(wg_metrics_get(&metrics, "bleu_precision_1"), 90);
    free_setup(&s);
}
END_TEST

START_TEST(a_translation_may_be_cut) {
    setup s = make_setup();
    const char *texts[] = {"abcabcabc"};
    char *translation;
    ck_assert_int_eq(wg_translate_texts(&s.model, s.tokenizer,
                                        &(wg_translation_use){.beam = {.max_length = 2}}, 1, texts,
                                        &translation),
                     0);
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(s.tokenizer, translation, -1, NULL, &list), 0);
    ck_assert_int_le(list.count, 6); /* invalid bytes become U+FFFD, of three bytes */
    wg_token_list_free(&list);
    wg_text_free(translation);
    free_setup(&s);
}
END_TEST

/* ---- Refusals ---- */

static void assert_text_refused(const setup *s, const char *text, wg_error_code code,
                                const char *why) {
    const char *texts[] = {"a", text};
    char *translations[2];
    assert_fails(wg_translate_texts(&s->model, s->tokenizer,
                                    &(wg_translation_use){.first_number = 7}, 2, texts,
                                    translations),
                 code, why);
    ck_assert(translations[0] == NULL && translations[1] == NULL);
}

START_TEST(texts_that_cannot_be_translated_are_named) {
    setup s = make_setup();
    assert_text_refused(&s, "abcdefghijklmnop", WG_ERROR_ARGUMENT,
                        "text 8 has 16 tokens; the model takes 15");
    assert_text_refused(&s, "a\xff", WG_ERROR_FORMAT, "text 8 is not UTF-8");
    free_setup(&s);
}
END_TEST

START_TEST(what_does_not_fit_the_model_is_refused) {
    setup s = make_setup();
    wg_tokenizer *larger =
        wg__bpe_train("aaaa aaaa", 9, &(wg_bpe_training){.vocabulary_size = 258});
    assert_fails(training_of(&wg_translation, &s.model, larger, s.training, NULL, NULL),
                 WG_ERROR_ARGUMENT, "the tokenizer has 258 tokens; the model's vocabulary holds");
    wg_tokenizer_free(larger);
    wg_transformer_config *config = &((wg_transformer *)s.model.module)->config;
    config->eos_token_id = 5;
    assert_fails(training_of(&wg_translation, &s.model, s.tokenizer, s.training, NULL, NULL),
                 WG_ERROR_ARGUMENT, "eos_token_id of the model is 5");
    config->eos_token_id = 256;
    wg_dataset *longer = wg_dataset_from_text("a\nb", -1, "a\nabcdefghijklmnop", s.tokenizer,
                                              &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    assert_fails(training_of(&wg_translation, &s.model, s.tokenizer, NULL, longer, NULL),
                 WG_ERROR_ARGUMENT, "1 of the pairs to measure on are longer");
    wg_dataset_free(longer);
    free_setup(&s);
}
END_TEST

START_TEST(files_of_other_models_are_not_averaged) {
    const char *paths[] = {in_scratch("one.h5"), in_scratch("other.h5")},
               *out = in_scratch("mean.h5");
    setup s = make_setup();
    const wg_task task = wg_training_task(s.translation);
    wg_trainer *trainer = task_trainer(&task, 1, paths[0]);
    ck_assert_int_eq(wg_trainer_save(trainer, paths[0]), 0);
    wg_trainer_free(trainer);
    free_setup(&s);
    assert_fails(wg_checkpoint_average_files(0, paths, out), WG_ERROR_ARGUMENT, "0 files");
    assert_fails(wg_checkpoint_average_files(2, paths, out), WG_ERROR_NOT_FOUND, "other.h5");
    wg_checkpoint *file = wg_checkpoint_create(paths[1]);
    ck_assert_int_eq(wg_checkpoint_put_text(file, "/config", "{}"), 0);
    ck_assert_int_eq(wg__checkpoint_put_number(file, "/model/x", 1), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    assert_fails(wg_checkpoint_average_files(2, paths, out), WG_ERROR_STATE,
                 "another one than that of");
    ck_assert_ptr_null(fopen(out, "rb"));
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_step_loses_what_the_model_loses_on_its_batch,
        an_evaluation_counts_every_label_once_without_smoothing,
        a_trained_model_translates_and_is_scored,
        a_translation_may_be_cut,
        texts_that_cannot_be_translated_are_named,
        what_does_not_fit_the_model_is_refused,
        files_of_other_models_are_not_averaged,
    };
    add_suite("translation", tests);
}
