/* T5's pretraining by the trainer: evaluation, refusals; and filling blanks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/objectives/task_run.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "models/t5.h"
#include "objectives/span_corruption.h"
#include "data/internal.h"
#include "models/internal.h"

/* ---- A text, and all that a run needs, made anew by each call as a new process would ---- */

/* The alphabet, repeated: missing letters follow from their neighbours. */
static const char *make_text(void) {
    static char text[8001];
    for (int i = 0; i < 8000; i++)
        text[i] = (char)('a' + i % 26);
    return text;
}

typedef struct setup {
    wg_tokenizer *tokenizer;
    wg_dataset *training, *held_out;
    wg__sentinels tokens;
    wg_model model;
    wg_training *pretraining;
} setup;

static setup make_setup(int version) {
    setup s = {.tokenizer = wg__char_train("abcdefghijklmnopqrstuvwxyz", -1, NULL)};
    const char *text = make_text();
    s.training = wg_dataset_from_text(text, -1, NULL, s.tokenizer,
                                      &(wg_dataset_options){.kind = WG_TEXT_STREAM, .end = 0.9});
    s.held_out = wg_dataset_from_text(text, -1, NULL, s.tokenizer,
                                      &(wg_dataset_options){.kind = WG_TEXT_STREAM, .begin = 0.9});
    ck_assert_int_eq(wg__sentinels_of(s.tokenizer, &s.tokens), 0);
    char settings[256];
    snprintf(settings, sizeof settings,
             "'vocab_size': %d, 'd_model': 32, 'd_kv': 16, 'd_ff': 48, 'num_heads': 2, "
             "'num_layers': 2, 'num_decoder_layers': 2, 'pad_token_id': %d, "
             "'decoder_start_token_id': %d, 'eos_token_id': %d",
             (int)s.tokens.vocab_size, s.tokens.pad, s.tokens.pad, s.tokens.end);
    s.model = preset_model(version == 0 ? "t5-tiny" : "t5-v1_1-tiny", settings, 1);
    s.pretraining = training_of(
        &wg_span_corruption, &s.model, s.tokenizer, s.training, s.held_out,
        &(wg_training_setup){.batch = 8, .sequence = 48, .seed = 2, .evaluation_batches = 2});
    assert_no_error();
    return s;
}

static void free_setup(setup *s) {
    wg_training_free(s->pretraining);
    wg_model_free(&s->model);
    wg_dataset_free(s->training);
    wg_dataset_free(s->held_out);
    wg_tokenizer_free(s->tokenizer);
}

static wg_t5 *t5_of(const setup *s) {
    return (wg_t5 *)s->model.module;
}

static const char *version_name(int version) {
    return version == 0 ? "1_0" : "1_1";
}

/* ---- Training ---- */

START_TEST(training_writes_spans_better_than_the_frequencies) {
    setup s = make_setup(_i);
    const wg_task task = wg_training_task(s.pretraining);
    const wg_trainer_options options = {
        .steps = 100, .schedule = {.peak = 5e-2, .warmup_steps = 10, .total_steps = 100}};
    wg_trainer *trainer = wg_trainer_new(&task, wg_adafactor_new(NULL), &options);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_training_evaluate(s.pretraining, &metrics), 0);
    ck_assert_double_lt(wg_metrics_get(&metrics, "word_loss"),
                        wg_metrics_get(&metrics, "unigram_loss") - 0.5);
    free_setup(&s);
}
END_TEST

/* ---- Evaluation ---- */

START_TEST(an_evaluation_is_the_mean_over_an_epoch_of_the_same_batches) {
    setup s = make_setup(_i);
    wg_metrics first = {0};
    ck_assert_int_eq(wg_training_evaluate(s.pretraining, &first), 0);
    wg_batches *batches = wg__span_batches_new(
        s.held_out, s.tokenizer, &(wg__span_batch_options){.batch = 8, .sequence = 48, .seed = 2});
    const wg__span_lengths lengths = wg__span_batches_lengths(batches);
    const int64_t count = (wg__batches_examples(batches) + 7) / 8;
    double sum = 0;
    wg_set_grad_enabled(false);
    wg_module_train(s.model.module, false);
    for (int64_t i = 0; i < count; i++) {
        wg__span_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        sum += wg_item(pair_loss_of(&s.model, batch.input_ids, NULL, batch.labels));
    }
    wg_set_grad_enabled(true);
    ck_assert_double_eq_tol(wg_metrics_get(&first, "loss"), sum / (double)count, 1e-5);
    ck_assert_double_eq(wg_metrics_weight(&first, "loss"), (double)(8 * count * lengths.targets));
    ck_assert_double_eq(wg_metrics_weight(&first, "word_loss"),
                        (double)(8 * count * lengths.noise));
    ck_assert_double_eq_tol(wg_metrics_get(&first, "unigram_loss"),
                            wg_dataset_unigram_loss(s.training, NULL, s.held_out), 1e-12);
    wg_batches_free(batches);
    free_setup(&s);
}
END_TEST

START_TEST(only_tokens_of_the_text_count_for_the_spans) {
    setup s = make_setup(_i);
    wg_metrics metrics = {0};
    wg_set_grad_enabled(false);
    wg_fill_(t5_of(&s)->words->weight,
             0); /* in version 1.0 all logits are equal: the first token is taken */
    if (t5_of(&s)->head)
        wg_fill_(t5_of(&s)->head->weight, 0);
    wg_set_grad_enabled(true);
    ck_assert_int_eq(wg_training_evaluate(s.pretraining, &metrics), 0);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "loss"), log((double)s.tokens.vocab_size),
                            1e-5);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "word_loss"), log((double)s.tokens.vocab_size),
                            1e-5);
    /* Token 0 is "a", one in 26 of the text. */
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "word_accuracy"), 1.0 / 26, 0.02);
    free_setup(&s);
}
END_TEST

/* ---- Filling ---- */

enum { MOST = 12 };

static wg_tensor *encode(const setup *s, const char *text, int blanks) {
    wg_token_list list = {0};
    ck_assert_int_eq(wg__span_encode_blanks(s->tokenizer, &s->tokens, text, &list), blanks);
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, list.count), list.ids);
    wg_token_list_free(&list);
    return ids;
}

/* Greedy search by whole forwards without caches; the test says which tokens are allowed. */
static void fill_plainly(setup *s, wg_tensor *ids, int blanks, wg_token_list *said) {
    wg_set_grad_enabled(false);
    wg_module_train(s->model.module, false);
    int next = 0;
    for (int64_t t = 1; t <= MOST; t++) {
        int64_t labels[MOST];
        for (int64_t i = 0; i < t; i++)
            labels[i] = i < said->count ? said->ids[i] : 0;
        const wg_model_inputs inputs = {
            .ids = wg_model_shift_right(&s->model, wg_from_array(WG_I64, WG_DIMS(1, t), labels)),
            .memory = wg_model_encode(&s->model, ids, NULL)};
        wg_tensor *logits = wg_model_logits(&s->model, wg_model_forward(&s->model, &inputs), NULL);
        wg_tensor *last = wg_cast(wg_select(wg_select(logits, 0, 0), 0, t - 1), WG_F64);
        const double *values = wg_tensor_data(last);
        const int32_t due = next <= blanks ? s->tokens.sentinels[next] : s->tokens.end;
        const bool in_blank = next > 0 && next <= blanks;
        const bool empty = in_blank && said->ids[said->count - 1] == s->tokens.sentinels[next - 1];
        int32_t best = empty ? 0 : due;
        for (int32_t v = 0; in_blank && v < s->tokens.tokenizer_size; v++)
            if (values[v] > values[best])
                best = v;
        if (best == s->tokens.end)
            break;
        next += best == due;
        wg_token_list_append(said, best);
    }
    wg_set_grad_enabled(true);
}

START_TEST(greedy_filling_says_what_whole_forwards_find_likeliest) {
    setup s = make_setup(_i);
    static const char *const texts[] = {"abc<extra_id_0>ghi[MASK]n", "[MASK]z", "z[MASK]",
                                        "abcdef<extra_id_0>klm"};
    for (size_t i = 0; i < WG_COUNT(texts); i++) {
        const int blanks = i == 0 ? 2 : 1;
        wg_tensor *ids = encode(&s, texts[i], blanks);
        wg_beam_result result;
        ck_assert_int_eq(wg__span_fill(&s.model, &s.tokens, ids, NULL, MOST, NULL, &result), 0);
        wg_token_list wanted = {0};
        fill_plainly(&s, ids, blanks, &wanted);
        ck_assert_int_eq(result.tokens.count, wanted.count);
        ck_assert_mem_eq(result.tokens.ids, wanted.ids, (size_t)wanted.count * sizeof *wanted.ids);
        ck_assert_int_eq(result.tokens.ids[0], s.tokens.sentinels[0]);
        wg_token_list_free(&wanted);
        wg_token_list_free(&result.tokens);
    }
    free_setup(&s);
}
END_TEST

/* Untrained models, many of which prefer the next sentinel to any letter. */
START_TEST(no_blank_is_left_empty) {
    setup s = make_setup(_i);
    for (char letter = 'a'; letter <= 'z'; letter++) {
        const char text[] = {letter, '[', 'M', 'A', 'S', 'K',    ']',    letter, '[',
                             'M',    'A', 'S', 'K', ']', letter, letter, 0};
        wg_beam_result result;
        ck_assert_int_eq(
            wg__span_fill(&s.model, &s.tokens, encode(&s, text, 2), NULL, MOST, NULL, &result), 0);
        for (int blank = 0; blank < 2; blank++) {
            const wg_token_window found = wg__span_answer(&s.tokens, &result.tokens, blank);
            ck_assert(found.start < found.end || found.end == MOST);
        }
        wg_token_list_free(&result.tokens);
    }
    free_setup(&s);
}
END_TEST

START_TEST(a_batch_of_texts_is_filled_as_each_alone_and_beams_are_likelier) {
    setup s = make_setup(_i);
    wg_tensor *one = encode(&s, "xyzab[MASK]defg[MASK]", 2), *two = encode(&s, "j[MASK]lmn", 1);
    const int64_t length = wg_tensor_size(one, 1), shorter = wg_tensor_size(two, 1);
    wg_tensor *padding = wg_full(WG_I32, WG_DIMS(1, length - shorter), (double)s.tokens.pad);
    wg_tensor *both =
        wg_cat(2, (wg_tensor *[]){one, wg_cat(2, (wg_tensor *[]){two, padding}, 1)}, 0);
    wg_tensor *keep = wg_ne(both, wg_scalar(WG_I32, (double)s.tokens.pad));
    const wg_beam_options beams = {.beam = 3, .alpha = WG_ZERO};
    wg_beam_result together[2], alone[2], greedy[2];
    ck_assert_int_eq(wg__span_fill(&s.model, &s.tokens, both, keep, MOST, &beams, together), 0);
    ck_assert_int_eq(wg__span_fill(&s.model, &s.tokens, one, NULL, MOST, &beams, &alone[0]), 0);
    ck_assert_int_eq(wg__span_fill(&s.model, &s.tokens, two, NULL, MOST, &beams, &alone[1]), 0);
    ck_assert_int_eq(wg__span_fill(&s.model, &s.tokens, both, keep, MOST, NULL, greedy), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(together[i].tokens.count, alone[i].tokens.count);
        ck_assert_mem_eq(together[i].tokens.ids, alone[i].tokens.ids,
                         (size_t)alone[i].tokens.count * sizeof(int32_t));
        ck_assert_double_eq_tol(together[i].log_probability, alone[i].log_probability, 1e-3);
        if (together[i].ended && greedy[i].ended)
            ck_assert_double_ge(together[i].log_probability, greedy[i].log_probability - 1e-3);
        wg_token_list_free(&together[i].tokens);
        wg_token_list_free(&alone[i].tokens);
        wg_token_list_free(&greedy[i].tokens);
    }
    free_setup(&s);
}
END_TEST

/* ---- Texts ---- */

START_TEST(blanks_are_read_with_the_white_space_before_them) {
    wg_tokenizer *tokenizer = wg__char_train(" \nab<>[]_MASKextraid0123456789", -1, NULL);
    wg__sentinels tokens;
    ck_assert_int_eq(wg__sentinels_of(tokenizer, &tokens), 0);
    static const char text[] = "a <extra_id_0> b[MASK]<extra_id_2>[MAS] <extra_id_> \n [MASK]";
    wg_token_list list = {0}, rest = {0};
    wg_token_list_append(&list, 7);
    ck_assert_int_eq(wg__span_encode_blanks(tokenizer, &tokens, text, &list), 4);
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, "a b[MAS] <extra_id_>", -1, NULL, &rest), 0);
    int64_t from = 0;
    int sentinel = 0;
    for (int64_t i = 1; i + 1 < list.count; i++)
        if (list.ids[i] >= tokens.tokenizer_size)
            ck_assert_int_eq(list.ids[i], tokens.sentinels[sentinel++]);
        else
            ck_assert_int_eq(list.ids[i], rest.ids[from++]);
    ck_assert_int_eq(from, rest.count);
    ck_assert_int_eq(list.ids[list.count - 1], tokens.end);
    ck_assert_int_eq(list.ids[2], tokens.sentinels[0]); /* right after the a */
    wg_token_list_free(&rest);
    const int64_t before = list.count;
    assert_fails(wg__span_encode_blanks(tokenizer, &tokens, "a<extra_id_1>", &list),
                 WG_ERROR_ARGUMENT, "<extra_id_1> stands where <extra_id_0> is due");
    assert_fails(wg__span_encode_blanks(tokenizer, &tokens, "[MASK]<extra_id_0>", &list),
                 WG_ERROR_ARGUMENT, "<extra_id_0> stands where <extra_id_1> is due");
    char many[100 * 6 + 1];
    for (int i = 0; i < 100; i++)
        memcpy(many + 6 * i, "[MASK]", 7);
    assert_fails(wg__span_encode_blanks(tokenizer, &tokens, many, &list), WG_ERROR_ARGUMENT,
                 "more than 99 blanks");
    ck_assert_int_eq(list.count, before);
    ck_assert_int_eq(wg__span_encode_blanks(tokenizer, &tokens, many + 6, &list), 99);
    wg_token_list_free(&list);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(answers_stand_between_sentinels) {
    setup s = make_setup(_i);
    const int32_t *mark = s.tokens.sentinels;
    int32_t ids[] = {mark[0], 5, 6, mark[1], mark[2], 7};
    const wg_token_list list = {.ids = ids, .count = 6};
    const wg_token_window wanted[] = {{1, 3}, {4, 4}, {5, 6}, {6, 6}};
    for (int i = 0; i < 4; i++) {
        const wg_token_window found = wg__span_answer(&s.tokens, &list, i);
        ck_assert_int_eq(found.start, wanted[i].start);
        ck_assert_int_eq(found.end, wanted[i].end);
    }
    free_setup(&s);
}
END_TEST

/* ---- Memory, refusals ---- */

START_TEST(filling_without_memory_leaves_nothing_behind) {
    setup s = make_setup(_i);
    wg_tensor *ids = encode(&s, "a[MASK]c", 1);
    int failures = 0, result = -1;
    for (int64_t n = 0; result < 0; n += 1 + n / 16) {
        const int64_t live = wg_alloc_get_stats().live_blocks;
        wg_beam_result filled = {0};
        wg__alloc_fail_after(n);
        result = wg__span_fill(&s.model, &s.tokens, ids, NULL, 3, &(wg_beam_options){.beam = 2},
                               &filled);
        wg__alloc_fail_after(-1);
        wg_token_list_free(&filled.tokens);
        if (result < 0) {
            assert_error(WG_ERROR_MEMORY, "");
            failures++;
        }
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, live);
    }
    ck_assert_int_gt(failures, 20);
    free_setup(&s);
}
END_TEST

START_TEST(what_does_not_fit_is_refused) {
    setup s = make_setup(_i);
    wg_beam_result result;
    wg_tensor *plain = wg_zeros(WG_I64, WG_DIMS(1, 3));
    assert_fails(wg__span_fill(&s.model, &s.tokens, plain, NULL, MOST, NULL, &result),
                 WG_ERROR_ARGUMENT, "a text has 0 blanks; it must have 1 to 99");
    assert_fails(
        wg__span_fill(&s.model, &s.tokens, wg_zeros(WG_I64, WG_DIMS(3)), NULL, MOST, NULL, &result),
        WG_ERROR_SHAPE, "rank 1; wanted (B, S)");
    wg_tokenizer *wider = wg_byte_new();
    wg__sentinels wide;
    ck_assert_int_eq(wg__sentinels_of(wider, &wide), 0);
    assert_fails(wg__span_fill(&s.model, &wide, plain, NULL, MOST, NULL, &result),
                 WG_ERROR_ARGUMENT, "358 tokens with its sentinels; the model's vocabulary holds");
    assert_fails(training_of(&wg_span_corruption, &s.model, wider, s.training, NULL, NULL),
                 WG_ERROR_ARGUMENT, "256 tokens; the model's vocabulary holds");
    t5_of(&s)->config.eos_token_id = 3;
    assert_fails(training_of(&wg_span_corruption, &s.model, s.tokenizer, s.training, NULL, NULL),
                 WG_ERROR_ARGUMENT,
                 "the model's eos_token_id is 3, and the tokenizer's </s> is 26");
    wg_tokenizer_free(wider);
    free_setup(&s);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        training_writes_spans_better_than_the_frequencies,
        an_evaluation_is_the_mean_over_an_epoch_of_the_same_batches,
        only_tokens_of_the_text_count_for_the_spans,
        greedy_filling_says_what_whole_forwards_find_likeliest,
        no_blank_is_left_empty,
        a_batch_of_texts_is_filled_as_each_alone_and_beams_are_likelier,
        blanks_are_read_with_the_white_space_before_them,
        answers_stand_between_sentinels,
        filling_without_memory_leaves_nothing_behind,
        what_does_not_fit_is_refused,
    };
    add_suite_of_each("t5_pretraining", tests, 2, version_name);
}
