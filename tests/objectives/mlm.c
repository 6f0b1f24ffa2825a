/* Masked language modelling on packed text: sequences, what is masked, its share over a run, the
 * hybrid with causal language modelling; and BERT's pretraining. */
#include "objectives/masked_lm.h"

#include <math.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "tests/objectives/task_run.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

enum { ROWS = 6, LENGTH = 24 };

static wg__packed_batch_options options_of(wg_mask_unit unit, double share) {
    return (wg__packed_batch_options){
        .batch = ROWS,
        .sequence = LENGTH,
        .seed = 3,
        .masking = {.masked_share = share, .unit = unit, .span_mean = 3}};
}

/* The ids of a batch with the original of each masked token, and whether it is one. */
typedef struct restored {
    int64_t ids[ROWS * LENGTH];
    bool masked[ROWS * LENGTH];
    int64_t count;
} restored;

static restored restore(const wg__masked_batch *batch, int64_t shift) {
    restored r = {.count = wg_tensor_count(batch->labels)};
    const int64_t *positions = wg_tensor_data(batch->positions);
    const int64_t *labels = wg_tensor_data(batch->labels);
    memcpy(r.ids, wg_tensor_data(batch->ids), sizeof r.ids);
    for (int64_t i = 0; i < r.count; i++) {
        ck_assert(i == 0 || positions[i] > positions[i - 1]);
        r.ids[positions[i] + shift] = labels[i];
        r.masked[positions[i] + shift] = true;
    }
    return r;
}

static int64_t document_of(const wg_dataset *text, int64_t token) {
    int64_t d = 0;
    while (wg__dataset_sentence_start(text, wg__dataset_document_start(text, d + 1)) <= token)
        d++;
    return d;
}

START_TEST(sequences_are_full_and_documents_end_with_sep) {
    word_corpus w = word_corpus_of(20, 5, 4);
    const wg__packed_batch_options options = options_of(WG_MASK_TOKENS, 0.3);
    wg_batches *batches = wg__packed_batches_new(w.corpus, w.tokenizer, &options);
    int separators = 0;
    for (int n = 0; n < 4; n++) {
        wg__masked_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        ck_assert_int_eq(batch.tokens, ROWS * LENGTH);
        ck_assert_ptr_null(batch.causal_ids);
        const restored r = restore(&batch, 0);
        for (int64_t row = 0; row < ROWS; row++) {
            const int64_t *ids = r.ids + row * LENGTH;
            ck_assert_int_eq(ids[0], CLS);
            int64_t last = ids[1] - SPECIALS; /* a token tells its place in the text */
            for (int64_t t = 2; t < LENGTH; t++) {
                const bool ends = document_of(w.corpus, last) !=
                                  document_of(w.corpus, last + 1 < w.words ? last + 1 : last);
                if (ids[t] == SEP) {
                    ck_assert(ends);
                    separators++;
                    ck_assert(!r.masked[row * LENGTH + t]);
                    continue;
                }
                ck_assert(!ends || ids[t - 1] == SEP);
                ck_assert_int_eq(ids[t] - SPECIALS, ++last);
            }
        }
    }
    ck_assert_int_gt(separators, 20);
    wg_batches_free(batches);
    word_corpus_free(w);
}
END_TEST

START_TEST(the_share_of_masked_tokens_is_what_is_asked_for) {
    static const struct {
        wg_mask_unit unit;
        double share;
    } cases[] = {
        {WG_MASK_TOKENS, 0.15}, {WG_MASK_TOKENS, 0.5}, {WG_MASK_WORDS, 0.3}, {WG_MASK_SPANS, 0.3}};
    word_corpus w = word_corpus_of(20, 30, 6);
    for (size_t c = 0; c < WG_COUNT(cases); c++) {
        const wg__packed_batch_options options = options_of(cases[c].unit, cases[c].share);
        wg_batches *batches = wg__packed_batches_new(w.corpus, w.tokenizer, &options);
        int64_t masked = 0, hidden = 0, kept = 0, all = 0;
        for (int n = 0; n < 40; n++) {
            wg__masked_batch batch;
            ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
            const restored r = restore(&batch, 0);
            const int64_t *ids = wg_tensor_data(batch.ids);
            for (int64_t i = 0; i < ROWS * LENGTH; i++) {
                all += r.ids[i] >= SPECIALS;
                masked += r.masked[i];
                hidden += r.masked[i] && ids[i] == MASK;
                kept += r.masked[i] && ids[i] == r.ids[i];
            }
        }
        ck_assert_double_eq_tol((double)masked / (double)all, cases[c].share, 0.02);
        ck_assert_double_eq_tol((double)hidden / (double)masked, 0.8, 0.06);
        ck_assert_double_eq_tol((double)kept / (double)masked, 0.1, 0.05);
        wg_batches_free(batches);
    }
    word_corpus_free(w);
}
END_TEST

/* A text whose words are each "ab" and 0 to 3 pieces "##c". */
static word_corpus make_pieces(void) {
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ab", "##c"};
    static const char *const words[] = {"ab", "abc", "abcc", "abccc"};
    static char text[8192];
    size_t used = 0;
    for (int i = 0; i < 800; i++)
        used += (size_t)sprintf(text + used, "%s%s", words[(i * i + i / 7) % 4],
                                i % 40 == 39  ? "\n\n"
                                : i % 10 == 9 ? "\n"
                                              : " ");
    word_corpus w = {.tokenizer = wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL)};
    w.corpus = wg_dataset_from_text(text, -1, NULL, w.tokenizer,
                                    &(wg_dataset_options){.format = WG_SENTENCES_BY_LINE});
    assert_no_error();
    return w;
}

START_TEST(the_pieces_of_a_word_are_masked_together) {
    enum { PIECE = 6 };
    word_corpus w = make_pieces();
    for (int unit = WG_MASK_WORDS; unit <= WG_MASK_SPANS; unit++) {
        const wg__packed_batch_options options = options_of(unit, 0.3);
        wg_batches *batches = wg__packed_batches_new(w.corpus, w.tokenizer, &options);
        int64_t longest = 0;
        for (int n = 0; n < 20; n++) {
            wg__masked_batch batch;
            ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
            const restored r = restore(&batch, 0);
            int64_t words = 0;
            for (int64_t i = 1; i < ROWS * LENGTH; i++) {
                if (r.ids[i] == PIECE && r.ids[i - 1] >= PIECE - 1) /* it goes on with a word */
                    ck_assert_int_eq(r.masked[i], r.masked[i - 1]);
                words = !r.masked[i] ? 0 : words + (r.ids[i] != PIECE);
                longest = words > longest ? words : longest;
            }
        }
        if (unit == WG_MASK_SPANS)
            ck_assert_int_gt(longest, 3);
        wg_batches_free(batches);
    }
    word_corpus_free(w);
}
END_TEST

START_TEST(hybrid_batches_have_causal_rows_and_predict_from_the_position_before) {
    word_corpus w = word_corpus_of(20, 30, 6);
    wg__packed_batch_options options = options_of(WG_MASK_TOKENS, 0.3);
    options.batch = ROWS + 2;
    options.masking.causal_share = 0.25;
    options.predicts_from_before = true;
    wg_batches *batches = wg__packed_batches_new(w.corpus, w.tokenizer, &options);
    wg__masked_batch batch;
    ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
    ck_assert_int_eq(wg_tensor_size(batch.ids, 0), ROWS);
    ck_assert_int_eq(wg_tensor_size(batch.causal_ids, 0), 2);
    const restored r = restore(&batch, 1);
    for (int64_t i = 1; i < ROWS * LENGTH; i++) /* one word after the other */
        if (i % LENGTH > 1 && r.ids[i] >= SPECIALS && r.ids[i - 1] >= SPECIALS)
            ck_assert_int_eq(r.ids[i], r.ids[i - 1] + 1);
    const int64_t *ids = wg_tensor_data(batch.causal_ids);
    const int64_t *labels = wg_tensor_data(batch.causal_labels);
    for (int64_t i = 0; i < 2 * LENGTH; i++) {
        ck_assert_int_ne(ids[i], MASK);
        if (i % LENGTH < LENGTH - 1)
            ck_assert_int_eq(labels[i], ids[i + 1]);
        else
            ck_assert(labels[i] == ids[i] + 1 || labels[i] == SEP || ids[i] == SEP);
    }
    wg_batches_free(batches);
    word_corpus_free(w);
}
END_TEST

/* Draws and their order are those of runs that were begun before. */
START_TEST(packed_batches_are_the_same_on_every_machine) {
    static const struct {
        wg_mask_unit unit;
        double causal_share;
        int64_t fingerprint;
    } cases[] = {{WG_MASK_TOKENS, 0, INT64_C(-3646465318904479854)},
                 {WG_MASK_WORDS, 0, INT64_C(-2501863613164415842)},
                 {WG_MASK_SPANS, 0.25, INT64_C(5129934125970366460)}};
    word_corpus w = make_pieces();
    for (size_t c = 0; c < WG_COUNT(cases); c++) {
        wg__packed_batch_options options = options_of(cases[c].unit, 0.3);
        options.masking.causal_share = cases[c].causal_share;
        options.predicts_from_before = cases[c].causal_share > 0;
        wg_batches *batches = wg__packed_batches_new(w.corpus, w.tokenizer, &options);
        wg__masked_batch batch;
        for (int n = 0; n < 3; n++)
            ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        wg_tensor *const tensors[] = {batch.ids, batch.positions, batch.labels, batch.causal_ids,
                                      batch.causal_labels};
        ck_assert_int_eq(wg_tensors_fingerprint(batch.causal_ids ? 5 : 3, tensors),
                         cases[c].fingerprint);
        wg_batches_free(batches);
    }
    word_corpus_free(w);
}
END_TEST

START_TEST(options_and_tokenizers_that_cannot_be_used_are_refused) {
    word_corpus w = word_corpus_of(4, 30, 6);
    wg__packed_batch_options options = options_of(WG_MASK_TOKENS, 1.5);
    assert_fails(wg__packed_batches_new(w.corpus, w.tokenizer, &options), WG_ERROR_ARGUMENT,
                 "masked_share is 1.5");
    options = options_of(WG_MASK_SPANS + 1, 0.3);
    assert_fails(wg__packed_batches_new(w.corpus, w.tokenizer, &options), WG_ERROR_ARGUMENT,
                 "there is no unit 3");
    options = options_of(WG_MASK_SPANS, 0.3);
    options.masking.span_mean = 0.5;
    assert_fails(wg__packed_batches_new(w.corpus, w.tokenizer, &options), WG_ERROR_ARGUMENT,
                 "span_mean is 0.5");
    options = options_of(WG_MASK_TOKENS, 0.3);
    options.sequence = 100000;
    assert_fails(wg__packed_batches_new(w.corpus, w.tokenizer, &options), WG_ERROR_ARGUMENT,
                 "give more text or shorter sequences");
    static const char *const tokens[] = {"[PAD]", "[UNK]", "w0"};
    wg_tokenizer *plain = wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL);
    options = options_of(WG_MASK_TOKENS, 0.3);
    assert_fails(wg__packed_batches_new(w.corpus, plain, &options), WG_ERROR_ARGUMENT,
                 "has not all of [CLS], [SEP] and [MASK]");
    wg_tokenizer_free(plain);
    word_corpus_free(w);
}
END_TEST

/* ---- Training ---- */

typedef struct setup {
    wg_tokenizer *tokenizer;
    wg_dataset *text, *held_out;
    wg_model model;
    wg_training *training;
} setup;

static const wg_objective *objective;

static setup make_setup(const wg_mlm_options *masking) {
    static const wg_dataset_options by_line = {.format = WG_SENTENCES_BY_LINE};
    setup s = {0};
    const char *text = task_text(0);
    s.tokenizer = wg__wordpiece_train(text, (int64_t)strlen(text),
                                      &(wg_wordpiece_training){.vocabulary_size = 60});
    wg_dataset *all = wg_dataset_from_text(text, -1, NULL, s.tokenizer, &by_line);
    ck_assert_int_eq(wg_dataset_split(all, 0.25, &s.text, &s.held_out), 0);
    wg_dataset_free(all);
    char settings[256];
    snprintf(settings, sizeof settings,
             "'vocab_size': %d, 'hidden_size': 16, 'num_attention_heads': 2, "
             "'num_hidden_layers': 2, 'intermediate_size': 24, 'max_position_embeddings': 24, "
             "'pad_token_id': 0%s",
             (int)wg_tokenizer_size(s.tokenizer),
             objective == &wg_masked_lm ? ""
                                        : ", 'bos_token_id': null, 'eos_token_id': null, "
                                          "'cls_token_id': null, 'sep_token_id': null");
    s.model =
        preset_model(objective == &wg_masked_lm ? "bert-tiny" : "modernbert-mini", settings, 1);
    s.training = training_of(
        objective, &s.model, s.tokenizer, s.text, s.held_out,
        &(wg_training_setup){.batch = 4, .sequence = 24, .seed = 2, .options = masking});
    assert_no_error();
    return s;
}

static void free_setup(setup *s) {
    wg_training_free(s->training);
    wg_model_free(&s->model);
    wg_dataset_free(s->text);
    wg_dataset_free(s->held_out);
    wg_tokenizer_free(s->tokenizer);
}

START_TEST(the_masked_share_falls_over_the_run) {
    objective = &wg_mlm;
    const wg_mlm_options masking = {.masked_share = 0.5, .final_masked_share = 0.1};
    setup s = make_setup(&masking);
    s.training->run_examples = 400;
    const wg_task task = wg_training_task(s.training);
    double first = 0, last = 0;
    for (int step = 0; step < 100; step++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_metrics metrics = {0};
        task.begin_step(task.context);
        ck_assert_ptr_nonnull(task.loss(task.context, &metrics));
        const double count = wg_metrics_weight(&metrics, "mlm_loss");
        first = step == 0 ? count : first;
        last = count;
        wg_scope_end(&scope, NULL);
    }
    ck_assert_double_eq_tol(first / (4 * 24), 0.5, 0.06);
    ck_assert_double_eq_tol(last / (4 * 24), 0.1, 0.04);
    free_setup(&s);
}
END_TEST

/* -log p of a label at a hidden state. */
static double loss_at(const wg_model *model, wg_tensor *hidden, int64_t position, int64_t label) {
    wg_tensor *logits =
        wg_model_logits(model, hidden, wg_from_array(WG_I64, WG_DIMS(1), &position));
    return -wg_item(wg_select(wg_select(wg_log_softmax(logits, 1), 0, 0), 0, label));
}

START_TEST(the_hybrid_loss_weighs_masked_and_next_tokens_by_their_rows) {
    objective = &wg_hybrid;
    const wg_mlm_options masking = {.masked_share = 0.3, .causal_share = 0.25};
    setup s = make_setup(&masking);
    const wg_data_position start = wg__batches_position(s.training->batches);
    const wg_task task = wg_training_task(s.training);
    wg_module_train(s.model.module, false);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_metrics metrics = {0};
    const double found = wg_item(wg_sum(task.loss(task.context, &metrics), WG_ALL, false));
    ck_assert_int_eq(wg__batches_seek(s.training->batches, &start), 0);
    wg__masked_batch batch;
    ck_assert_int_eq(wg_batches_next(s.training->batches, &batch), 0);
    wg_tensor *hidden = wg_model_forward(&s.model, &(wg_model_inputs){.ids = batch.ids});
    const int64_t *positions = wg_tensor_data(batch.positions);
    const int64_t *labels = wg_tensor_data(batch.labels);
    const int64_t count = wg_tensor_count(batch.labels);
    double masked = 0, next = 0;
    for (int64_t i = 0; i < count; i++)
        masked += loss_at(&s.model, hidden, positions[i], labels[i]) / (double)count;
    hidden =
        wg_model_forward(&s.model, &(wg_model_inputs){.ids = batch.causal_ids, .causal = true});
    labels = wg_tensor_data(batch.causal_labels);
    for (int64_t i = 0; i < 24; i++)
        next += loss_at(&s.model, hidden, i, labels[i]) / 24;
    ck_assert_double_eq_tol(found, 0.75 * masked + 0.25 * next, 1e-5);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "mlm_loss"), masked, 1e-5);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "causal_loss"), next, 1e-5);
    wg_scope_end(&scope, NULL);
    free_setup(&s);
}
END_TEST

/* The loss of a run's first batch by that many examples of short sequences. */
static double first_loss(int64_t ramp_examples, double *tokens) {
    setup s = make_setup(NULL);
    s.training->ramp_examples = ramp_examples;
    const wg_task task = wg_training_task(s.training);
    wg_module_train(s.model.module, false);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_metrics metrics = {0};
    const double loss = wg_item(task.loss(task.context, &metrics));
    *tokens = (double)metrics.tokens;
    wg_scope_end(&scope, NULL);
    free_setup(&s);
    return loss;
}

/* The mean loss of the same batch, of which each part of so many tokens is read by itself. */
static double loss_of_parts(int64_t parts) {
    setup s = make_setup(NULL);
    wg__masked_batch batch;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg__packed_batches_set_share(s.training->batches, 0.3);
    ck_assert_int_eq(wg_batches_next(s.training->batches, &batch), 0);
    const wg_model *model = &s.training->model;
    const int64_t *positions = wg_tensor_data(batch.positions);
    const int64_t *labels = wg_tensor_data(batch.labels);
    wg_module_train(model->module, false);
    const int64_t length = 24 / parts, count = wg_tensor_count(batch.labels);
    double sum = 0;
    for (int64_t row = 0; row < 4; row++)
        for (int64_t part = 0; part < parts; part++) {
            wg_tensor *ids = wg_slice(wg_slice(batch.ids, 0, row, row + 1, 1), 1, part * length,
                                      (part + 1) * length, 1);
            wg_tensor *hidden =
                wg_model_forward(model, &(wg_model_inputs){.ids = wg_contiguous(ids)});
            for (int64_t i = 0; i < count; i++) {
                const int64_t at = positions[i];
                if (at / 24 == row && at % 24 / length == part)
                    sum += loss_at(model, hidden, at % length, labels[i]);
            }
        }
    wg_scope_end(&scope, NULL);
    free_setup(&s);
    return sum / (double)count;
}

START_TEST(sequences_of_a_ramp_are_read_in_parts) {
    objective = &wg_mlm;
    double tokens;
    ck_assert_double_eq_tol(first_loss(1000, &tokens), loss_of_parts(4), 1e-5);
    ck_assert_double_eq(tokens, 4 * 24);
    ck_assert_double_eq_tol(first_loss(4, &tokens), loss_of_parts(4), 1e-5);
    ck_assert_double_eq_tol(first_loss(0, &tokens), loss_of_parts(1), 1e-5);
    ck_assert_double_eq(tokens, 4 * 24);
}
END_TEST

/* Of 16 examples, 4 a batch: two batches in four parts, two in two parts, then whole ones. */
START_TEST(a_ramp_goes_from_quarters_by_halves_to_whole_sequences) {
    static const int64_t parts[] = {4, 4, 2, 2, 1, 1};
    objective = &wg_mlm;
    setup s = make_setup(NULL);
    s.training->ramp_examples = 16;
    const wg_task task = wg_training_task(s.training);
    for (size_t i = 0; i < WG_COUNT(parts); i++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_metrics metrics = {0};
        task.begin_step(task.context);
        ck_assert_int_eq(wg__sequence_parts(s.training), parts[i]);
        ck_assert_ptr_nonnull(task.loss(task.context, &metrics));
        wg_scope_end(&scope, NULL);
    }
    free_setup(&s);
}
END_TEST

/* BERT's own pretraining. */
START_TEST(an_untrained_bert_predicts_no_better_than_chance) {
    objective = &wg_masked_lm;
    setup s = make_setup(NULL);
    wg_metrics found = {0};
    ck_assert_int_eq(wg_training_evaluate(s.training, &found), 0);
    const double mlm = wg_metrics_get(&found, "mlm_loss"), nsp = wg_metrics_get(&found, "nsp_loss"),
                 random = wg_metrics_get(&found, "nsp_random");
    ck_assert_double_eq_tol(mlm, log((double)wg_tokenizer_size(s.tokenizer)), 0.1);
    ck_assert_double_eq_tol(nsp, log(2), 0.05);
    ck_assert_double_eq_tol(wg_metrics_get(&found, "loss"), mlm + nsp, 1e-12);
    ck_assert_double_gt(wg_metrics_weight(&found, "mlm_loss"), 0);
    ck_assert_double_gt(wg_metrics_get(&found, "unigram_loss"), 0);
    ck_assert(random > 0 && random < 1);
    free_setup(&s);
}
END_TEST

SUITES {
    const TTest *const batches[] = {
        sequences_are_full_and_documents_end_with_sep,
        the_share_of_masked_tokens_is_what_is_asked_for,
        the_pieces_of_a_word_are_masked_together,
        hybrid_batches_have_causal_rows_and_predict_from_the_position_before,
        packed_batches_are_the_same_on_every_machine,
        options_and_tokenizers_that_cannot_be_used_are_refused};
    add_suite("mlm batches", batches);
    const TTest *const training[] = {an_untrained_bert_predicts_no_better_than_chance,
                                     the_masked_share_falls_over_the_run,
                                     sequences_of_a_ramp_are_read_in_parts,
                                     a_ramp_goes_from_quarters_by_halves_to_whole_sequences,
                                     the_hybrid_loss_weighs_masked_and_next_tokens_by_their_rows};
    add_suite("mlm", training);
}
