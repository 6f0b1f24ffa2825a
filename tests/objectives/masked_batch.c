/* BERT's batches: layout, statistics, and the same bits on every machine.  Most tests use a corpus
 * whose k-th token is the word "wk", so that each token shows its position. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "objectives/masked_lm.h"
#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

/* ---- A corpus in which each token tells its place ---- */

/* The document of a token of the corpus. */
static int64_t document_of(const wg_dataset *corpus, int64_t token) {
    int64_t d = 0;
    while (wg__dataset_sentence_start(corpus, wg__dataset_document_start(corpus, d + 1)) <= token)
        d++;
    return d;
}

/* ---- Reading a batch ---- */

typedef struct view {
    wg__masked_batch batch;
    int64_t rows, length, masked;
    const int64_t *ids, *types, *places, *labels, *next;
    const bool *attention;
} view;

static view view_of(const wg__masked_batch *batch) {
    return (view){.batch = *batch,
                  .rows = wg_tensor_size(batch->ids, 0),
                  .length = wg_tensor_size(batch->ids, 1),
                  .masked = wg_tensor_count(batch->positions),
                  .ids = wg_tensor_data(batch->ids),
                  .types = wg_tensor_data(batch->token_type_ids),
                  .places = wg_tensor_data(batch->positions),
                  .labels = wg_tensor_data(batch->labels),
                  .next = wg_tensor_data(batch->next_sentence_labels),
                  .attention = wg_tensor_data(batch->keep)};
}

/* The first batch by these options. */
static view first_view(const word_corpus *w, const wg__pair_batch_options *options) {
    wg__masked_batch batch;
    wg_batches *batches = wg__pair_batches_new(w->corpus, w->tokenizer, options);
    ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
    wg_batches_free(batches);
    return view_of(&batch);
}

/* The ids with the original of each masked token. */
static int64_t *restored(const view *v) {
    int64_t *ids = malloc((size_t)(v->rows * v->length) * sizeof *ids);
    memcpy(ids, v->ids, (size_t)(v->rows * v->length) * sizeof *ids);
    for (int64_t i = 0; i < v->masked; i++)
        ids[v->places[i]] = v->labels[i];
    return ids;
}

/* One sequence taken apart: [CLS] a.. [SEP] b.. [SEP]. */
typedef struct pair {
    const int64_t *a, *b;
    int64_t a_count, b_count, length;
} pair;

static pair pair_of(const int64_t *ids, int64_t length) {
    pair p = {.a = ids + 1};
    while (p.a[p.a_count] != SEP)
        p.a_count++;
    p.b = p.a + p.a_count + 1;
    while (p.b[p.b_count] != SEP)
        p.b_count++;
    p.length = p.a_count + p.b_count + 3;
    ck_assert_int_le(p.length, length);
    return p;
}

/* ---- Layout ---- */

/* Neighbours in a segment have to be neighbours in the corpus. */
static void assert_contiguous(const int64_t *tokens, int64_t count) {
    ck_assert_int_ge(count, 1);
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(tokens[i], tokens[0] + i);
}

static void assert_layout(const view *v, const int64_t *ids, int64_t row) {
    const int64_t *types = v->types + row * v->length;
    const bool *attention = v->attention + row * v->length;
    ids += row * v->length;
    ck_assert_int_eq(ids[0], CLS);
    pair p = pair_of(ids, v->length);
    assert_contiguous(p.a, p.a_count);
    assert_contiguous(p.b, p.b_count);
    for (int64_t t = 0; t < v->length; t++) {
        ck_assert_int_eq(types[t], t >= p.a_count + 2 && t < p.length);
        ck_assert_int_eq(attention[t], t < p.length);
        ck_assert(t < p.length || ids[t] == PAD);
    }
}

START_TEST(sequences_are_cls_first_sep_second_sep_and_padding) {
    word_corpus w = word_corpus_of(12, 40, 9);
    wg_batches *batches = wg__pair_batches_new(
        w.corpus, w.tokenizer, &(wg__pair_batch_options){.batch = 8, .sequence = 48, .seed = 3});
    int64_t padded = 0;
    for (int k = 0; k < 40; k++) {
        wg__masked_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        view v = view_of(&batch);
        int64_t *ids = restored(&v), tokens = 0;
        for (int64_t row = 0; row < v.rows; row++) {
            assert_layout(&v, ids, row);
            int64_t length = pair_of(ids + row * v.length, v.length).length;
            tokens += length;
            padded += length < v.length;
        }
        ck_assert_int_eq(batch.tokens, tokens);
        free(ids);
    }
    ck_assert_int_gt(padded, 0);
    wg_batches_free(batches);
    word_corpus_free(w);
}
END_TEST

START_TEST(a_batch_has_the_documented_shapes_and_dtypes) {
    word_corpus w = word_corpus_of(4, 20, 5);
    const view v = first_view(&w, &(wg__pair_batch_options){.batch = 3, .sequence = 16});
    const int64_t grid[] = {3, 16}, masked[] = {v.masked}, rows[] = {3};
    const struct {
        const wg_tensor *x;
        wg_dtype dtype;
        int ndim;
        const int64_t *shape;
    } parts[] = {
        {v.batch.ids, WG_I64, 2, grid},      {v.batch.token_type_ids, WG_I64, 2, grid},
        {v.batch.keep, WG_BOOL, 2, grid},    {v.batch.positions, WG_I64, 1, masked},
        {v.batch.labels, WG_I64, 1, masked}, {v.batch.next_sentence_labels, WG_I64, 1, rows}};
    for (size_t i = 0; i < WG_COUNT(parts); i++) {
        ck_assert_int_eq(wg_tensor_dtype(parts[i].x), parts[i].dtype);
        ck_assert_int_eq(wg_tensor_ndim(parts[i].x), parts[i].ndim);
        ck_assert_mem_eq(wg_tensor_shape(parts[i].x), parts[i].shape,
                         (size_t)parts[i].ndim * sizeof(int64_t));
    }
    word_corpus_free(w);
}
END_TEST

/* ---- Next sentence prediction ---- */

START_TEST(a_random_second_segment_is_from_another_document_and_a_next_one_follows) {
    word_corpus w = word_corpus_of(10, 60, 7);
    wg_batches *batches = wg__pair_batches_new(
        w.corpus, w.tokenizer, &(wg__pair_batch_options){.batch = 16, .sequence = 32, .seed = 1});
    int64_t random = 0, rows = 0;
    for (int k = 0; k < 120; k++) {
        wg__masked_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        view v = view_of(&batch);
        int64_t *ids = restored(&v);
        for (int64_t row = 0; row < v.rows; row++, rows++) {
            pair p = pair_of(ids + row * v.length, v.length);
            int64_t a = document_of(w.corpus, p.a[0] - SPECIALS);
            int64_t b = document_of(w.corpus, p.b[0] - SPECIALS);
            ck_assert_int_eq(v.next[row], a != b);
            random += v.next[row];
            /* Less than a sentence may have been cut out between the two. */
            int64_t gap = p.b[0] - p.a[p.a_count - 1] - 1;
            ck_assert(a != b || (gap >= 0 && gap < 7));
        }
        free(ids);
    }
    /* Half, and a few more because a document's last sentence is alone; within 4 deviations. */
    double share = (double)random / (double)rows, deviation = sqrt(0.25 / (double)rows);
    ck_assert_double_gt(share, 0.5 - 4 * deviation);
    ck_assert_double_lt(share, 0.54 + 4 * deviation);
    wg_batches_free(batches);
    word_corpus_free(w);
}
END_TEST

START_TEST(half_of_the_seconds_are_random_even_where_sentences_are_long) {
    word_corpus w = word_corpus_of(20, 120, 60); /* most are longer than the target of 13 */
    const view v = first_view(
        &w, &(wg__pair_batch_options){.batch = 1500, .sequence = 16, .short_share = -1, .seed = 8});
    int64_t random = 0;
    for (int64_t row = 0; row < v.rows; row++)
        random += v.next[row];
    /* At most 20 of about 1600 examples stand alone at the end of a document. */
    ck_assert_double_gt((double)random, 750 - 4 * sqrt(375));
    ck_assert_double_lt((double)random, 750 + 4 * sqrt(375) + 10);
    word_corpus_free(w);
}
END_TEST

START_TEST(an_epoch_goes_through_every_token_once) {
    word_corpus w = word_corpus_of(5, 101, 1); /* sentences of one word: nothing is truncated */
    wg_batches *batches = wg__pair_batches_new(
        w.corpus, w.tokenizer, &(wg__pair_batch_options){.batch = 1, .sequence = 24});
    int64_t examples = wg__batches_examples(batches);
    int *seen = calloc((size_t)w.words, sizeof *seen);
    for (int64_t k = 0; k < examples; k++) {
        ck_assert_int_eq(wg__batches_position(batches).epoch, 0);
        wg__masked_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        view v = view_of(&batch);
        int64_t *ids = restored(&v);
        pair p = pair_of(ids, v.length);
        for (int64_t i = 0; i < p.a_count; i++)
            seen[p.a[i] - SPECIALS]++;
        for (int64_t i = 0; v.next[0] == 0 && i < p.b_count; i++)
            seen[p.b[i] - SPECIALS]++;
        free(ids);
    }
    for (int64_t i = 0; i < w.words; i++)
        ck_assert_int_eq(seen[i], 1);
    ck_assert_int_eq(wg__batches_position(batches).epoch, 1);
    ck_assert_int_eq(wg__batches_position(batches).next, 0);
    free(seen);
    wg_batches_free(batches);
    word_corpus_free(w);
}
END_TEST

/* Rows that end with padding. */
static int64_t shorter_rows(const view *v) {
    int64_t shorter = 0;
    for (int64_t row = 0; row < v->rows; row++)
        shorter += !v->attention[row * v->length + v->length - 1];
    return shorter;
}

START_TEST(one_in_ten_examples_has_a_shorter_target) {
    word_corpus w = word_corpus_of(10, 3000, 1);
    const view v = first_view(&w, &(wg__pair_batch_options){.batch = 1000, .sequence = 32});
    /* A target from 2 to 29 is below 29 in 27 of 28 cases, and documents end. */
    double expected = 0.1 * 27 / 28 * 1000, deviation = sqrt(expected * 0.9);
    ck_assert_double_gt((double)shorter_rows(&v), expected - 4 * deviation);
    ck_assert_double_lt((double)shorter_rows(&v), expected + 4 * deviation + 20);
    const view all =
        first_view(&w, &(wg__pair_batch_options){.batch = 500, .sequence = 32, .short_share = -1});
    ck_assert_int_lt(shorter_rows(&all), 20);
    word_corpus_free(w);
}
END_TEST

/* ---- Masking ---- */

typedef struct mask_counts {
    int64_t chosen, masked, kept, replaced, tokens;
} mask_counts;

static void count_masks(const view *v, mask_counts *c) {
    for (int64_t i = 0; i < v->masked; i++) {
        int64_t place = v->places[i], now = v->ids[place];
        ck_assert(i == 0 || place > v->places[i - 1]);
        ck_assert_int_ge(v->labels[i], SPECIALS); /* never [CLS], [SEP], [PAD] */
        ck_assert(v->attention[place]);
        c->chosen++;
        c->masked += now == MASK;
        c->kept += now == v->labels[i];
        c->replaced += now != MASK && now != v->labels[i];
    }
}

/* round(0.15 length) of each row, at least 1, at most ceil(0.15 T). */
static void assert_mask_count(const view *v, int64_t most) {
    int64_t i = 0;
    for (int64_t row = 0; row < v->rows; row++) {
        int64_t length = 0, count = 0;
        while (length < v->length && v->attention[row * v->length + length])
            length++;
        for (; i < v->masked && v->places[i] < (row + 1) * v->length; i++)
            count++;
        int64_t expected = (int64_t)fmax(1, rint(0.15 * (double)length));
        ck_assert_int_eq(count, expected < most ? expected : most);
    }
}

START_TEST(masking_is_eighty_ten_ten_of_fifteen_percent) {
    word_corpus w = word_corpus_of(20, 200, 12);
    wg_batches *batches = wg__pair_batches_new(
        w.corpus, w.tokenizer, &(wg__pair_batch_options){.batch = 32, .sequence = 60, .seed = 9});
    mask_counts c = {0};
    for (int k = 0; k < 100; k++) {
        wg__masked_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        view v = view_of(&batch);
        count_masks(&v, &c);
        assert_mask_count(&v, 9);
        c.tokens += batch.tokens;
    }
    ck_assert_int_gt(c.chosen, 20000);
    assert_share(c.masked, c.chosen, 0.8);
    assert_share(c.kept, c.chosen, 0.1);
    assert_share(c.replaced, c.chosen, 0.1);
    ck_assert_double_eq_tol((double)c.chosen / (double)c.tokens, 0.15, 0.005);
    wg_batches_free(batches);
    word_corpus_free(w);
}
END_TEST

START_TEST(every_place_is_masked_as_often_as_any_other) {
    word_corpus w = word_corpus_of(10, 3000, 1);
    const view v = first_view(
        &w, &(wg__pair_batch_options){.batch = 2000, .sequence = 16, .short_share = -1, .seed = 5});
    int64_t masked[16] = {0}, present[16] = {0};
    for (int64_t i = 0; i < v.rows * v.length; i++)
        present[i % 16] += v.ids[i] != CLS && v.ids[i] != SEP && v.attention[i];
    for (int64_t i = 0; i < v.masked; i++)
        masked[v.places[i] % 16]++;
    for (int t = 1; t < 15; t++)
        assert_share(masked[t], present[t], (double)v.masked / (13.0 * (double)v.rows));
    word_corpus_free(w);
}
END_TEST

/* ---- Determinism ---- */

START_TEST(batches_are_the_same_on_every_machine) {
    word_corpus w = word_corpus_of(6, 30, 6);
    wg_batches *batches = wg__pair_batches_new(
        w.corpus, w.tokenizer, &(wg__pair_batch_options){.batch = 8, .sequence = 32, .seed = 42});
    uint64_t hash = 0;
    for (int k = 0; k < 10; k++) {
        wg__masked_batch b;
        ck_assert_int_eq(wg_batches_next(batches, &b), 0);
        wg_tensor *const all[] = {b.ids,       b.token_type_ids, b.keep,
                                  b.positions, b.labels,         b.next_sentence_labels};
        hash ^= hash_of_tensors(WG_COUNT(all), all);
    }
    ck_assert_uint_eq(hash, UINT64_C(80428024308835467));
    wg_batches_free(batches);
    word_corpus_free(w);
}
END_TEST

/* ---- Bad input ---- */

static void assert_refused(const word_corpus *w, wg__pair_batch_options options,
                           const char *message) {
    assert_fails(wg__pair_batches_new(w->corpus, w->tokenizer, &options), WG_ERROR_ARGUMENT,
                 message);
}

START_TEST(options_out_of_range_are_refused) {
    word_corpus w = word_corpus_of(2, 3, 2);
    assert_refused(&w, (wg__pair_batch_options){.batch = -1}, "batches of -1");
    assert_refused(&w, (wg__pair_batch_options){.sequence = 7}, "sequences of 7 tokens");
    word_corpus_free(w);
}
END_TEST

START_TEST(a_corpus_or_tokenizer_that_does_not_fit_is_refused) {
    word_corpus w = word_corpus_of(1, 3, 2);
    assert_refused(&w, (wg__pair_batch_options){0}, "two are needed");
    wg_tokenizer *other = words_tokenizer("w", 0, w.words + 1);
    assert_fails(wg__pair_batches_new(w.corpus, other, &(wg__pair_batch_options){0}),
                 WG_ERROR_ARGUMENT, "vocabulary of 9 tokens, this one has 10");
    wg_tokenizer_free(other);
    other = wg__wordpiece_new(2, (const char *[]){"[UNK]", "a"}, NULL);
    assert_fails(wg__pair_batches_new(w.corpus, other, &(wg__pair_batch_options){0}),
                 WG_ERROR_ARGUMENT, "[MASK]");
    wg_tokenizer_free(other);
    ck_assert_ptr_null(wg__pair_batches_new(NULL, w.tokenizer, &(wg__pair_batch_options){0}));
    assert_no_error();
    word_corpus_free(w);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        sequences_are_cls_first_sep_second_sep_and_padding,
        a_batch_has_the_documented_shapes_and_dtypes,
        a_random_second_segment_is_from_another_document_and_a_next_one_follows,
        half_of_the_seconds_are_random_even_where_sentences_are_long,
        an_epoch_goes_through_every_token_once,
        one_in_ten_examples_has_a_shorter_target,
        masking_is_eighty_ten_ten_of_fifteen_percent,
        every_place_is_masked_as_often_as_any_other,
        batches_are_the_same_on_every_machine,
        options_out_of_range_are_refused,
        a_corpus_or_tokenizer_that_does_not_fit_is_refused,
    };
    add_suite("bert_batch", tests);
}
