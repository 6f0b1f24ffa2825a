/* Weights of files: the proportions of an epoch, and resuming in the middle of one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "objectives/masked_lm.h"
#include "objectives/causal_lm.h"
#include "data/tokenizer/tokenizer.h"
#include "objectives/blank_infilling.h"
#include "data/internal.h"
#include "data/batches/batches.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"

/* ---- Helpers ---- */

static const char *const letters[] = {"a", "b", "c"};

/* Files of documents of one letter each, as a word and in sentences. */
static const char **write_files(int count, const int *documents) {
    static char paths[3][700];
    static const char *list[3];
    for (int i = 0; i < count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s.txt", scratch(), letters[i]);
        FILE *file = fopen(paths[i], "w");
        for (int d = 0; d < documents[i]; d++) {
            for (int s = 0; s < 4; s++)
                fprintf(file, "%s %s %s %s %s %s %s\n", letters[i], letters[i], letters[i],
                        letters[i], letters[i], letters[i], letters[i]);
            fputc('\n', file);
        }
        fclose(file);
        list[i] = paths[i];
    }
    return list;
}

static wg_tokenizer *words(void) {
    return owned(wg__wordpiece_train("a b c", -1, &(wg_wordpiece_training){.min_frequency = 1000}));
}

static wg_dataset *load(int count, const int *documents, const double *weights,
                        const wg_tokenizer *tokenizer) {
    wg_dataset *corpus =
        owned(wg_dataset_load(count, write_files(count, documents), tokenizer,
                              &(wg_dataset_options){.format = WG_SENTENCES_BY_LINE}));
    assert_no_error();
    if (weights)
        ck_assert_int_eq(wg_dataset_weigh(corpus, count, weights), 0);
    return corpus;
}

/* How often an id occurs in a tensor of ids. */
static int64_t count_of(const wg_tensor *ids, int64_t id) {
    const int64_t *values = wg_tensor_data(ids);
    int64_t count = 0;
    for (int64_t i = 0; i < wg_tensor_count(ids); i++)
        count += values[i] == id;
    return count;
}

/* ---- The epoch ---- */

TEST(an_epoch_has_of_each_source_as_many_as_its_weight_asks) {
    int64_t ends[] = {10, 10, 50}, order[50];
    double weights[] = {3, 7, 1};
    const wg_batches_options mixture = {.sources = 3, .weights = weights};
    wg_generator generator = {.seed = 5};
    int counts[2][50] = {{0}};
    for (int epoch = 0; epoch < 2; epoch++) {
        wg__weigh_examples(&mixture, ends, 50, &generator, order);
        for (int i = 0; i < 50; i++)
            counts[epoch][order[i]]++;
        int first = 0, second = 0;
        for (int i = 0; i < 10; i++) {
            ck_assert(counts[epoch][i] == 3 || counts[epoch][i] == 4);
            first += counts[epoch][i];
        }
        for (int i = 10; i < 50; i++) {
            ck_assert_int_le(counts[epoch][i], 1);
            second += counts[epoch][i];
        }
        ck_assert_int_eq(first, 38); /* 3/4 of 50; the empty source has no share */
        ck_assert_int_eq(second, 12);
    }
    ck_assert_int_ne(memcmp(counts[0], counts[1], sizeof counts[0]), 0);
}

TEST(sources_that_do_not_fit_the_examples_are_refused) {
    static const struct {
        int64_t sources, ends[2];
        double weights[2];
    } cases[] = {
        {2, {0, 0}, {1, 1}},          {2, {5, 11}, {1, 1}},   {2, {8, 5}, {1, 1}},
        {2, {-1, 10}, {1, 1}},        {-1, {5, 10}, {1, 1}},  {2, {5, 10}, {1, 0}},
        {2, {5, 10}, {1e308, 1e308}}, {2, {5, 10}, {NAN, 1}},
    };
    wg_tensor *rows = wg_arange(WG_F32, 0, 10, 1);
    for (size_t i = 0; i <= WG_COUNT(cases); i++) { /* the last time without ends */
        const size_t at = i % WG_COUNT(cases);
        const wg_batches_options options = {.batch = 4,
                                            .sources = cases[at].sources,
                                            .weights = cases[at].weights,
                                            .source_ends =
                                                i < WG_COUNT(cases) ? cases[i].ends : NULL};
        assert_fails(wg_tensor_batches_new(WG_TENSORS(rows), &options), WG_ERROR_ARGUMENT,
                     "source");
    }
}

/* ---- Batches ---- */

/* The next batch, after the same one was read by other batches that begin at its position. */
static void next_of_both(wg_batches *batches, wg_batches *others, void *batch, void *again) {
    const wg_data_position position = wg__batches_position(batches);
    ck_assert_int_eq(wg_batches_next(batches, batch), 0);
    ck_assert_int_eq(wg__batches_seek(others, &position), 0);
    ck_assert_int_eq(wg_batches_next(others, again), 0);
}

TEST(causal_windows_come_in_the_proportions_and_go_on_where_they_were) {
    const int documents[] = {20, 60};
    wg_tokenizer *tokenizer = owned(wg_byte_new());
    wg_dataset *stream = load_as(WG_TEXT_STREAM, 2, write_files(2, documents), tokenizer);
    assert_no_error();
    ck_assert_int_eq(wg_dataset_weigh(stream, 2, (const double[]){3, 1}), 0);
    const wg_causal_batch_options options = {.batch = 8, .sequence = 16, .seed = 3};
    wg_batches *batches = owned(wg_causal_batches_new(stream, &options));
    wg_batches *others = owned(wg_causal_batches_new(stream, &options));
    int64_t a = 0, b = 0;
    while (wg__batches_position(batches).epoch < 4) {
        wg_causal_batch batch, again;
        next_of_both(batches, others, &batch, &again);
        assert_close(again.ids, batch.ids, 0, 0);
        a += count_of(batch.ids, 'a');
        b += count_of(batch.ids, 'b');
    }
    ck_assert_double_eq_tol((double)a / (double)(a + b), 0.75, 0.01);
}

TEST(berts_first_segments_come_in_the_proportions_and_go_on_where_they_were) {
    const int documents[] = {20, 30, 80};
    const double weights[] = {5, 2, 1};
    wg_tokenizer *tokenizer = words();
    wg_dataset *all = load(3, documents, weights, tokenizer), *corpus, *held_out;
    split_dataset(all, 0.1, &corpus, &held_out);
    const wg__pair_batch_options options = {.batch = 4, .sequence = 32, .seed = 3};
    wg_batches *batches = owned(wg__pair_batches_new(corpus, tokenizer, &options));
    wg_batches *others = owned(wg__pair_batches_new(corpus, tokenizer, &options));
    int64_t counts[3] = {0}, total = 0;
    while (wg__batches_position(batches).epoch < 6) {
        wg__masked_batch batch, again;
        next_of_both(batches, others, &batch, &again);
        assert_close(again.ids, batch.ids, 0, 0);
        const int64_t *ids = wg_tensor_data(batch.ids);
        for (int row = 0; row < 4; row++) { /* a first segment is of one document */
            int64_t first[3] = {0};
            for (int t = 1; t < 32 && ids[row * 32 + t] != wg_tokenizer_id(tokenizer, "[SEP]"); t++)
                for (int i = 0; i < 3; i++)
                    first[i] += ids[row * 32 + t] == wg_tokenizer_id(tokenizer, letters[i]);
            for (int i = 0; i < 3; i++) /* a masked word may be replaced by any other */
                if (first[i] * 2 > first[0] + first[1] + first[2]) {
                    counts[i]++;
                    total++;
                }
        }
    }
    ck_assert_int_gt(total, 1000);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol((double)counts[i] / (double)total, weights[i] / 8, 0.02);
}

TEST(glms_texts_come_in_the_proportions_and_go_on_where_they_were) {
    const int documents[] = {20, 60};
    wg_tokenizer *tokenizer = words();
    wg_dataset *corpus = load(2, documents, (const double[]){3, 1}, tokenizer);
    const wg__blank_batch_options options = {.batch = 4, .sequence = 16, .seed = 3};
    wg_batches *batches = owned(wg__blank_batches_new(corpus, tokenizer, &options));
    wg_batches *others = owned(wg__blank_batches_new(corpus, tokenizer, &options));
    int64_t a = 0, b = 0;
    while (wg__batches_position(batches).epoch < 4) {
        wg__blank_batch batch, again;
        next_of_both(batches, others, &batch, &again);
        assert_close(again.input_ids, batch.input_ids, 0, 0);
        a += count_of(batch.input_ids, wg_tokenizer_id(tokenizer, "a"));
        b += count_of(batch.input_ids, wg_tokenizer_id(tokenizer, "b"));
    }
    ck_assert_double_eq_tol((double)a / (double)(a + b), 0.75, 0.01);
}
