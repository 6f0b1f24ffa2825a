/* T5's batches: the figure of the paper, the published lengths, and statistics of spans.  Most
 * tests use a stream whose k-th token has the id k, so that each token shows its position. */
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "objectives/span_corruption.h"
#include "base/alloc.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

/* ---- A stream in which each token tells its place ---- */

typedef struct world {
    wg_tokenizer *tokenizer;
    wg_dataset *stream;
    wg__sentinels tokens;
} world;

/* The first so many characters, in the order of their code points. */
static world world_of(int count) {
    char *text = malloc((size_t)count * 3);
    for (int i = 0; i < count; i++) {
        const int code = 0x4e00 + i;
        text[3 * i] = (char)(0xe0 | code >> 12);
        text[3 * i + 1] = (char)(0x80 | (code >> 6 & 0x3f));
        text[3 * i + 2] = (char)(0x80 | (code & 0x3f));
    }
    world w = {.tokenizer = wg__char_train(text, 3 * (int64_t)count, NULL)};
    w.stream = wg_dataset_from_text(text, 3 * (int64_t)count, NULL, w.tokenizer,
                                    &(wg_dataset_options){.kind = WG_TEXT_STREAM});
    free(text);
    assert_no_error();
    ck_assert_int_eq(wg_dataset_tokens(w.stream), count);
    ck_assert_int_eq(wg__sentinels_of(w.tokenizer, &w.tokens), 0);
    return w;
}

static void free_world(world w) {
    wg_dataset_free(w.stream);
    wg_tokenizer_free(w.tokenizer);
}

/* ---- Tokens ---- */

START_TEST(a_vocabulary_without_sentinels_gets_a_hundred_from_the_top_downwards) {
    world w = world_of(50);
    ck_assert_int_eq(w.tokens.tokenizer_size, 50);
    ck_assert_int_eq(w.tokens.vocab_size, 50 + 2 + 100);
    ck_assert_int_eq(w.tokens.end, 50);
    ck_assert_int_eq(w.tokens.pad, 51);
    ck_assert_int_eq(w.tokens.sentinel_count, 100);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(w.tokens.sentinels[i], 151 - i);
        ck_assert_int_eq(wg__sentinel_number(&w.tokens, 151 - i), i);
    }
    ck_assert_int_eq(wg__sentinel_number(&w.tokens, 51), -1);
    ck_assert_int_eq(wg__sentinels_of(NULL, &w.tokens), -1);
    free_world(w);
}
END_TEST

START_TEST(a_vocabulary_with_sentinels_keeps_its_own) {
    static const char *const tokens[] = {"[PAD]", "[UNK]",        "a",           "<extra_id_2>",
                                         "b",     "<extra_id_1>", "<extra_id_0>"};
    wg_tokenizer *tokenizer = wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL);
    wg__sentinels found;
    assert_no_error();
    ck_assert_int_eq(wg__sentinels_of(tokenizer, &found), 0);
    ck_assert_int_eq(found.sentinel_count, 3);
    ck_assert_int_eq(found.sentinels[0], 6);
    ck_assert_int_eq(found.sentinels[1], 5);
    ck_assert_int_eq(found.sentinels[2], 3);
    ck_assert_int_eq(found.pad, 0);
    ck_assert_int_eq(found.end, 7);
    ck_assert_int_eq(found.vocab_size, 8);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- One text ---- */

static void assert_ids(const wg_tensor *x, int count, const int64_t *wanted) {
    ck_assert_int_eq(wg_tensor_ndim(x), 2);
    ck_assert_int_eq(wg_tensor_size(x, 0), 1);
    ck_assert_int_eq(wg_tensor_size(x, 1), count);
    ck_assert_mem_eq(wg_tensor_data(x), wanted, (size_t)count * sizeof *wanted);
}

/* Thank you for inviting me to your party last week, figure 2. */
static const int32_t figure[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

START_TEST(spans_become_sentinels_as_in_figure_2) {
    world w = world_of(20);
    const int64_t x = w.tokens.sentinels[0], y = x - 1, z = x - 2, end = w.tokens.end;
    wg__span_batch batch;
    const wg_token_window spans[] = {{2, 4}, {8, 9}};
    ck_assert_int_eq(wg__span_batch_of_spans(&w.tokens, figure, 10, spans, 2, &batch), 0);
    assert_ids(batch.input_ids, 10, (int64_t[]){1, 2, x, 5, 6, 7, 8, y, 10, end});
    assert_ids(batch.labels, 7, (int64_t[]){x, 3, 4, y, 9, z, end});
    ck_assert_int_eq(batch.tokens, 17);
    free_world(w);
}
END_TEST

START_TEST(spans_may_begin_and_end_a_text_or_be_none) {
    world w = world_of(20);
    const int64_t x = w.tokens.sentinels[0], y = x - 1, z = x - 2, end = w.tokens.end;
    wg__span_batch batch;
    const wg_token_window spans[] = {{0, 1}, {8, 10}};
    ck_assert_int_eq(wg__span_batch_of_spans(&w.tokens, figure, 10, spans, 2, &batch), 0);
    assert_ids(batch.input_ids, 10, (int64_t[]){x, 2, 3, 4, 5, 6, 7, 8, y, end});
    assert_ids(batch.labels, 7, (int64_t[]){x, 1, y, 9, 10, z, end});
    ck_assert_int_eq(wg__span_batch_of_spans(&w.tokens, figure, 2, NULL, 0, &batch), 0);
    assert_ids(batch.input_ids, 3, (int64_t[]){1, 2, end});
    assert_ids(batch.labels, 2, (int64_t[]){x, end});
    free_world(w);
}
END_TEST

/* ---- Lengths ---- */

/* The lengths of random_spans_helper, with one more target for the last sentinel. */
START_TEST(lengths_are_the_published_ones) {
    static const struct {
        int64_t sequence, text, noise, spans, inputs, targets;
    } known[] = {{512, 568, 85, 28, 512, 114}, {128, 141, 21, 7, 128, 29}, {64, 70, 10, 3, 64, 14}};
    world w = world_of(1200);
    for (size_t i = 0; i < WG_COUNT(known); i++) {
        wg_batches *batches = wg__span_batches_new(
            w.stream, w.tokenizer,
            &(wg__span_batch_options){.batch = 2, .sequence = known[i].sequence});
        assert_no_error();
        const wg__span_lengths lengths = wg__span_batches_lengths(batches);
        ck_assert_int_eq(lengths.text, known[i].text);
        ck_assert_int_eq(lengths.noise, known[i].noise);
        ck_assert_int_eq(lengths.spans, known[i].spans);
        ck_assert_int_eq(lengths.inputs, known[i].inputs);
        ck_assert_int_eq(lengths.targets, known[i].targets + 1);
        wg_batches_free(batches);
    }
    free_world(w);
}
END_TEST

START_TEST(halves_are_rounded_to_even_and_something_always_goes_and_stays) {
    ck_assert_int_eq(wg__span_lengths_of(10, 0.25, 3).noise, 2);
    ck_assert_int_eq(wg__span_lengths_of(14, 0.25, 3).noise, 4);
    ck_assert_int_eq(wg__span_lengths_of(20, 0.25, 2).spans, 2); /* 5 / 2 */
    ck_assert_int_eq(wg__span_lengths_of(2, 0.01, 3).noise, 1);
    ck_assert_int_eq(wg__span_lengths_of(2, 0.99, 3).noise, 1);
    ck_assert_int_eq(wg__span_lengths_of(10, 0.9, 1).spans, 1); /* one token stays */
}
END_TEST

/* ---- Spans ---- */

/* There are 3 ways to cut 4 tokens into 2 parts, and 4 ways to cut the 5 others into 2: each of the
 * 12 is equally frequent. */
START_TEST(all_ways_to_cut_are_equally_likely) {
    const wg__span_lengths lengths = {.text = 9, .noise = 4, .spans = 2};
    enum { DRAWS = 24000 };
    int counts[4][5] = {{0}};
    wg_generator generator = {.seed = 3};
    for (int i = 0; i < DRAWS; i++) {
        wg_token_window spans[2];
        wg__span_draw(&lengths, &generator, spans);
        const int64_t first = spans[0].end - spans[0].start;
        ck_assert_int_ge(spans[0].start, 1);
        ck_assert_int_gt(spans[1].start, spans[0].end);
        ck_assert_int_eq(first + spans[1].end - spans[1].start, 4);
        ck_assert_int_eq(spans[1].end, 9); /* the last part is removed */
        counts[first][spans[0].start]++;
    }
    for (int noise = 1; noise < 4; noise++)
        for (int rest = 1; rest < 5; rest++) /* 2000 expected, a deviation of 43 */
            ck_assert_int_le(abs(counts[noise][rest] - DRAWS / 12), 4 * 43);
}
END_TEST

/* ---- Batches ---- */

/* Restores the text of a row: the first token; the others follow it. */
static int64_t check_row(const wg__sentinels *t, const wg__span_lengths *lengths,
                         const int64_t *inputs, const int64_t *labels) {
    int64_t token = inputs[0], label = 0, span = 0;
    for (int64_t i = 0; i < lengths->inputs - 1; i++) {
        if (inputs[i] < t->tokenizer_size) {
            ck_assert_int_eq(inputs[i], token++);
            continue;
        }
        ck_assert_int_eq(inputs[i], t->sentinels[span]);
        ck_assert_int_eq(labels[label++], t->sentinels[span++]);
        ck_assert_int_lt(labels[label], t->tokenizer_size);
        while (labels[label] < t->tokenizer_size)
            ck_assert_int_eq(labels[label++], token++);
    }
    ck_assert_int_eq(span, lengths->spans);
    ck_assert_int_eq(token - inputs[0], lengths->text);
    ck_assert_int_eq(inputs[lengths->inputs - 1], t->end);
    ck_assert_int_eq(labels[label], t->sentinels[span]);
    ck_assert_int_eq(labels[label + 1], t->end);
    ck_assert_int_eq(label + 2, lengths->targets);
    return inputs[0];
}

START_TEST(an_epoch_takes_each_token_of_the_text_once) {
    world w = world_of(1000);
    wg_batches *batches = wg__span_batches_new(
        w.stream, w.tokenizer, &(wg__span_batch_options){.batch = 1, .sequence = 20, .seed = 4});
    const wg__span_lengths lengths = wg__span_batches_lengths(batches);
    const int64_t texts = wg__batches_examples(batches);
    ck_assert_int_ge(texts, 1000 / lengths.text - 1);
    bool seen[1000] = {false};
    for (int64_t i = 0; i < texts; i++) {
        wg__span_batch batch;
        ck_assert_int_eq(wg__batches_position(batches).epoch, 0);
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        const int64_t first = check_row(&w.tokens, &lengths, wg_tensor_data(batch.input_ids),
                                        wg_tensor_data(batch.labels));
        for (int64_t k = first; k < first + lengths.text; k++) {
            ck_assert(!seen[k]);
            seen[k] = true;
        }
    }
    ck_assert_int_eq(wg__batches_position(batches).epoch, 1);
    wg_batches_free(batches);
    free_world(w);
}
END_TEST

START_TEST(spans_have_three_tokens_in_the_mean_wherever_they_are) {
    world w = world_of(2000);
    wg_batches *batches = wg__span_batches_new(
        w.stream, w.tokenizer, &(wg__span_batch_options){.batch = 50, .sequence = 128, .seed = 1});
    const wg__span_lengths lengths = wg__span_batches_lengths(batches);
    int64_t rows = 0, ones = 0;
    for (int i = 0; i < 20; i++) {
        wg__span_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        const int64_t *inputs = wg_tensor_data(batch.input_ids);
        const int64_t *labels = wg_tensor_data(batch.labels);
        ck_assert_int_eq(batch.tokens, 50 * (lengths.inputs + lengths.targets));
        for (int64_t r = 0; r < 50; r++, rows++) {
            const int64_t *row = labels + r * lengths.targets;
            check_row(&w.tokens, &lengths, inputs + r * lengths.inputs, row);
            for (int64_t k = 0; k + 2 < lengths.targets; k++) /* spans of one token */
                ones += row[k] >= w.tokens.tokenizer_size && row[k + 2] >= w.tokens.tokenizer_size;
        }
    }
    /* Of all ways to cut 21 into 7 parts, a part is 1 in C(19, 5) / C(20, 6) = 3 / 10. */
    ck_assert_int_eq(rows, 1000);
    ck_assert_double_eq_tol((double)ones / (double)(rows * lengths.spans), 0.3, 0.02);
    wg_batches_free(batches);
    free_world(w);
}
END_TEST

/* ---- What is refused ---- */

static void assert_refused(const world *w, wg__span_batch_options options, const char *part) {
    assert_fails(wg__span_batches_new(w->stream, w->tokenizer, &options), WG_ERROR_ARGUMENT, part);
}

START_TEST(options_out_of_range_are_refused) {
    world w = world_of(500), other = world_of(40);
    assert_refused(&w, (wg__span_batch_options){.batch = -1}, "batches of -1");
    assert_refused(&w, (wg__span_batch_options){.sequence = 7}, "sequences of 7 tokens");
    assert_refused(&w, (wg__span_batch_options){.sequence = 4096}, "are enough for 99");
    assert_refused(&w, (wg__span_batch_options){.sequence = 512}, "the text has 500 tokens");
    assert_fails(wg__span_batches_new(w.stream, other.tokenizer, NULL), WG_ERROR_ARGUMENT,
                 "a vocabulary of 500 tokens, this one has 40");
    free_world(other);
    free_world(w);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_vocabulary_without_sentinels_gets_a_hundred_from_the_top_downwards,
        a_vocabulary_with_sentinels_keeps_its_own,
        spans_become_sentinels_as_in_figure_2,
        spans_may_begin_and_end_a_text_or_be_none,
        lengths_are_the_published_ones,
        halves_are_rounded_to_even_and_something_always_goes_and_stays,
        all_ways_to_cut_are_equally_likely,
        an_epoch_takes_each_token_of_the_text_once,
        spans_have_three_tokens_in_the_mean_wherever_they_are,
        options_out_of_range_are_refused,
    };
    add_suite("t5_batch", tests);
}
