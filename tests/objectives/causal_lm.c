/* Language modeling: streams of tokens, windows, the task by the trainer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/tokenizer/tokenizer.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "tests/objectives/task_run.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "objectives/causal_lm.h"
#include "data/internal.h"

/* ---- A tokenizer of bytes and <|endoftext|>, and a text ---- */

static wg_tokenizer *byte_tokenizer(void) {
    wg_tokenizer *tokenizer =
        wg__bpe_train("a", 1, &(wg_bpe_training){.vocabulary_size = 257, .min_frequency = 9});
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 257);
    return tokenizer;
}

/* Each number below 1000 twice: "037=037; 074=074; "..., 9 bytes each, so that
 * all windows differ. */
static const char *make_text(void) {
    static char text[9216];
    size_t length = 0;
    for (int i = 0; i < 1000; i++) {
        const int number = 37 * i % 1000;
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%03d=%03d; ", number, number);
    }
    return text;
}

static wg_dataset *read_stream(const char *text, int64_t bytes, const wg_tokenizer *tokenizer) {
    return wg_dataset_from_text(text, bytes, NULL, tokenizer,
                                &(wg_dataset_options){.kind = WG_TEXT_STREAM});
}

/* The text of a stream's tokens; freed by wg_text_free. */
static char *say(const wg_dataset *stream, const wg_tokenizer *tokenizer) {
    const int64_t count = wg_dataset_tokens(stream);
    int32_t *ids = malloc((size_t)count * sizeof *ids);
    ck_assert_int_eq(wg__dataset_read(stream, 0, count, ids), 0);
    char *text = wg_tokenizer_decode(tokenizer, ids, count, NULL);
    free(ids);
    return text;
}

static void assert_stream(const char *text, const wg_dataset_options *part, const char *wanted,
                          int64_t documents, int64_t bytes) {
    wg_tokenizer *tokenizer = byte_tokenizer();
    wg_dataset_options options = part ? *part : (wg_dataset_options){0};
    options.kind = WG_TEXT_STREAM;
    wg_dataset *stream = wg_dataset_from_text(text, -1, NULL, tokenizer, &options);
    assert_no_error();
    char *said = say(stream, tokenizer);
    ck_assert_str_eq(said, wanted);
    ck_assert_int_eq(wg__dataset_documents(stream), documents);
    ck_assert_int_eq(wg__dataset_bytes(stream), bytes);
    wg_text_free(said);
    wg_dataset_free(stream);
    wg_tokenizer_free(tokenizer);
}

START_TEST(a_stream_keeps_a_text_as_it_is) {
    assert_stream("One.\n\n\n  Two \n", NULL, "<|endoftext|>One.\n\n\n  Two \n", 1, 14);
}
END_TEST

START_TEST(lines_of_endoftext_part_documents) {
    assert_stream("One.\nTwo. \n<|endoftext|>\n\n\tThree.\n<|endoftext|>\r\n<|endoftext|>\n4", NULL,
                  "<|endoftext|>One.\nTwo.<|endoftext|>Three.<|endoftext|>4", 3, 16);
    /* Within a line it is ordinary text. */
    assert_stream("a <|endoftext|> b", NULL, "<|endoftext|>a <|endoftext|> b", 1, 17);
}
END_TEST

START_TEST(parts_of_a_text_are_cut_between_characters_and_documents) {
    assert_stream("aaaaabbbbb", &(wg_dataset_options){.end = 0.5}, "<|endoftext|>aaaaa", 1, 5);
    assert_stream("aaaaabbbbb", &(wg_dataset_options){.begin = 0.5}, "<|endoftext|>bbbbb", 1, 5);
    const char *umlauts = "\u00e4\u00e4\u00e4"; /* half of it is in the second */
    assert_stream(umlauts, &(wg_dataset_options){.end = 0.5}, "<|endoftext|>\u00e4\u00e4", 1, 4);
    assert_stream(umlauts, &(wg_dataset_options){.begin = 0.5}, "<|endoftext|>\u00e4", 1, 2);
    const char *documents = "One.\n<|endoftext|>\nTwo.\n<|endoftext|>\nThree.\n";
    assert_stream(documents, &(wg_dataset_options){.end = 0.05}, "<|endoftext|>One.", 1, 4);
    assert_stream(documents, &(wg_dataset_options){.begin = 0.05},
                  "<|endoftext|>Two.<|endoftext|>Three.", 2, 10);
}
END_TEST

START_TEST(texts_that_are_none_are_refused) {
    static const char *const none[] = {"no-such.txt"};
    wg_tokenizer *tokenizer = byte_tokenizer();
    assert_fails(wg_dataset_load(1, none, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_STREAM}),
                 WG_ERROR_NOT_FOUND, "no-such.txt");
    assert_fails(
        wg_dataset_from_text("", 0, NULL, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_STREAM}),
        WG_ERROR_FORMAT, "no text");
    assert_fails(wg_dataset_from_text("a\xff", 2, NULL, tokenizer,
                                      &(wg_dataset_options){.kind = WG_TEXT_STREAM}),
                 WG_ERROR_FORMAT, "UTF-8");
    assert_fails(wg_dataset_from_text("a", 1, NULL, tokenizer,
                                      &(wg_dataset_options){.kind = WG_TEXT_STREAM, .begin = 1}),
                 WG_ERROR_ARGUMENT, "from 1 to 1");
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Windows ---- */

enum { B = 3, T = 7 };

START_TEST(an_epoch_goes_through_each_window_once) {
    wg_tokenizer *tokenizer = byte_tokenizer();
    wg_dataset *stream = read_stream(make_text(), 100, tokenizer);
    wg_batches *batches =
        wg_causal_batches_new(stream, &(wg_causal_batch_options){.batch = 1, .sequence = T});
    int32_t tokens[101];
    ck_assert_int_eq(wg__dataset_read(stream, 0, 101, tokens), 0);
    int64_t offset = -1;
    for (int epoch = 0; epoch < 3; epoch++) {
        int seen[101] = {0}, windows = 0;
        for (; wg__batches_position(batches).epoch == epoch; windows++) {
            wg_causal_batch batch;
            int64_t ids[T], labels[T], start = 0;
            ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
            ck_assert_int_eq(batch.tokens, T);
            wg_to_array(batch.ids, ids);
            wg_to_array(batch.labels, labels);
            for (int i = 0; i + 1 < T; i++)
                ck_assert_int_eq(labels[i], ids[i + 1]);
            /* The text's windows of 8 tokens are all different. */
            for (bool same = false; !same; start += !same) {
                ck_assert_int_le(start + T, 100);
                same = tokens[start + T] == labels[T - 1];
                for (int i = 0; same && i < T; i++)
                    same = tokens[start + i] == ids[i];
            }
            if (windows == 0)
                offset = start % T;
            ck_assert_int_eq(start % T, offset);
            ck_assert_int_eq(seen[start]++, 0);
        }
        ck_assert_int_eq(windows, (100 - offset) / T);
    }
    wg_batches_free(batches);
    wg_dataset_free(stream);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(a_text_shorter_than_a_window_is_refused) {
    wg_tokenizer *tokenizer = byte_tokenizer();
    wg_dataset *stream = read_stream("abcdef", -1, tokenizer);
    wg_batches *batches =
        wg_causal_batches_new(stream, &(wg_causal_batch_options){.batch = 1, .sequence = 6});
    wg_causal_batch batch;
    for (int i = 0; i < 3; i++) /* the only window */
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
    ck_assert_int_eq(wg__batches_position(batches).epoch, 3);
    wg_batches_free(batches);
    assert_fails(
        wg_causal_batches_new(stream, &(wg_causal_batch_options){.batch = 1, .sequence = 7}),
        WG_ERROR_ARGUMENT, "7 tokens, and one sequence of 7 takes 8");
    wg_dataset_free(stream);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- The task: a case of each model ---- */

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"vocab_size\": 260, \"n_embd\": 16, \"n_layer\": 1, \"n_head\": 2,"
    " \"n_positions\": 16, \"bos_token_id\": 256, \"eos_token_id\": 256}",
    "{\"model_type\": \"llama\", \"vocab_size\": 260, \"hidden_size\": 16, \"num_hidden_layers\": "
    "1, \"num_attention_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16}",
};

static const char *model_name(int index) {
    return index == 0 ? "gpt" : "llama";
}

/* All that a run needs, created by each call as in a new process. */
typedef struct setup {
    wg_tokenizer *tokenizer;
    wg_dataset *training, *held_out;
    wg_model model;
    wg_training *modeling;
} setup;

static setup make_setup(int model) {
    setup s = {.tokenizer = byte_tokenizer()};
    const char *text = make_text();
    s.training = wg_dataset_from_text(text, -1, NULL, s.tokenizer,
                                      &(wg_dataset_options){.kind = WG_TEXT_STREAM, .end = 0.9});
    s.held_out = wg_dataset_from_text(text, -1, NULL, s.tokenizer,
                                      &(wg_dataset_options){.kind = WG_TEXT_STREAM, .begin = 0.9});
    ck_assert_int_eq(wg_model_from_json(configs[model], 1, &s.model), 0);
    s.modeling = training_of(&wg_causal_lm, &s.model, s.tokenizer, s.training, s.held_out,
                             &(wg_training_setup){.batch = 4, .sequence = 16, .seed = 2});
    assert_no_error();
    return s;
}

static void free_setup(setup *s) {
    wg_training_free(s->modeling);
    wg_model_free(&s->model);
    wg_dataset_free(s->training);
    wg_dataset_free(s->held_out);
    wg_tokenizer_free(s->tokenizer);
}

/* The mean over all tokens at once. */
static double loss_of_windows(const setup *s) {
    const int64_t tokens = wg_dataset_tokens(s->held_out);
    double sum = 0;
    wg_set_grad_enabled(false);
    wg_module_train(s->model.module, false);
    for (int64_t start = 0; start < tokens - 1; start += 16) {
        const int64_t count = tokens - 1 - start < 16 ? tokens - 1 - start : 16;
        int32_t ids[17];
        ck_assert_int_eq(wg__dataset_read(s->held_out, start, count + 1, ids), 0);
        sum += (double)count *
               wg_item(loss_of_ids(&s->model, wg_from_array(WG_I32, WG_DIMS(1, count), ids),
                                   wg_from_array(WG_I32, WG_DIMS(1, count), ids + 1)));
    }
    wg_set_grad_enabled(true);
    return sum / (double)(tokens - 1);
}

START_TEST(an_evaluation_predicts_every_token_once) {
    setup s = make_setup(_i);
    wg_metrics first = {0};
    ck_assert_int_eq(wg_training_evaluate(s.modeling, &first), 0);
    const double tokens = (double)wg_dataset_tokens(s.held_out);
    const double loss = wg_metrics_get(&first, "loss");
    ck_assert_double_eq(wg_metrics_weight(&first, "loss"), tokens - 1);
    ck_assert_double_eq_tol(loss, loss_of_windows(&s), 1e-5);
    ck_assert_double_eq_tol(loss, log(260), 0.1);
    ck_assert_double_eq_tol(wg_metrics_get(&first, "perplexity"), exp(loss), 1e-9);
    ck_assert_double_eq_tol(wg_metrics_get(&first, "bits_per_byte"),
                            loss / log(2) * tokens / (tokens - 1), 1e-9);
    ck_assert_double_eq_tol(wg_metrics_get(&first, "unigram_loss"),
                            wg_dataset_unigram_loss(s.training, NULL, s.held_out), 1e-12);
    free_setup(&s);
}
END_TEST

START_TEST(an_evaluation_by_document_begins_with_each) {
    setup s = make_setup(_i);
    wg_dataset *text =
        wg_dataset_from_text("One.\n<|endoftext|>\nTwo has more tokens than a sequence.\n", -1,
                             NULL, s.tokenizer, &(wg_dataset_options){.kind = WG_TEXT_STREAM});
    ck_assert_int_eq(wg__dataset_document_start(text, 1), 5);
    wg_training *modeling = training_of(
        &wg_causal_lm, &s.model, s.tokenizer, NULL, text,
        &(wg_training_setup){.batch = 4,
                             .sequence = 16,
                             .evaluation = &(wg_evaluation_options){.by_document = true}});
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_training_evaluate(modeling, &metrics), 0);
    int32_t ids[22];
    ck_assert_int_eq(wg__dataset_read(text, 0, 22, ids), 0);
    ck_assert_int_eq(ids[5], ids[0]);
    wg_set_grad_enabled(false);
    wg_module_train(s.model.module, false);
    double first = wg_item(loss_of_ids(&s.model, wg_from_array(WG_I32, WG_DIMS(1, 4), ids),
                                       wg_from_array(WG_I32, WG_DIMS(1, 4), ids + 1)));
    double second = wg_item(loss_of_ids(&s.model, wg_from_array(WG_I32, WG_DIMS(1, 16), ids + 5),
                                        wg_from_array(WG_I32, WG_DIMS(1, 16), ids + 6)));
    wg_set_grad_enabled(true);
    ck_assert_double_eq(wg_metrics_weight(&metrics, "loss"), 20);
    ck_assert_double_eq_tol(wg_metrics_get(&metrics, "loss"), (4 * first + 16 * second) / 20, 1e-5);
    wg_training_free(modeling);
    wg_dataset_free(text);
    free_setup(&s);
}
END_TEST

START_TEST(training_beats_the_frequencies) {
    setup s = make_setup(_i);
    const wg_task task = wg_training_task(s.modeling);
    const wg_trainer_options options = {
        .steps = 200, .schedule = {.peak = 1e-2, .warmup_steps = 3, .total_steps = 200}};
    wg_trainer *trainer = wg_trainer_new(&task, wg_adamw_new(NULL), &options);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_training_evaluate(s.modeling, &metrics), 0);
    ck_assert_double_lt(wg_metrics_get(&metrics, "loss"),
                        wg_metrics_get(&metrics, "unigram_loss") - 0.3);
    free_setup(&s);
}
END_TEST

START_TEST(what_is_no_language_model_is_refused) {
    wg_model model;
    assert_fails(wg_model_from_json("{\"model_type\": \"x\"}", 0, &model), WG_ERROR_STATE, "\"x\"");
    assert_fails(wg_model_from_json("{}", 0, &model), WG_ERROR_FORMAT, "model_type");
    wg_model_free(&model);

    setup s = make_setup(_i);
    wg_model encoder;
    ck_assert_int_eq(wg_model_new(&wg_bert_type, NULL, 1, &encoder), 0);
    assert_fails(training_of(&wg_causal_lm, &encoder, s.tokenizer, s.training, NULL, NULL),
                 WG_ERROR_ARGUMENT, "a bert model is not trained by this objective");
    wg_model_free(&encoder);
    free_setup(&s);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_stream_keeps_a_text_as_it_is,
        lines_of_endoftext_part_documents,
        parts_of_a_text_are_cut_between_characters_and_documents,
        texts_that_are_none_are_refused,
        an_epoch_goes_through_each_window_once,
        a_text_shorter_than_a_window_is_refused,
    };
    add_suite("streams and windows", tests);
    const TTest *const of_each[] = {
        an_evaluation_predicts_every_token_once,
        an_evaluation_by_document_begins_with_each,
        training_beats_the_frequencies,
        what_is_no_language_model_is_refused,
    };
    add_suite_of_each("language modeling", of_each, WG_COUNT(configs), model_name);
}
