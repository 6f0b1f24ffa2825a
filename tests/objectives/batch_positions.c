/* What holds for every batch builder: the same bits from the same position, others from other seeds
 * and epochs, and nothing left behind without memory. A new builder is a row of the table. */
#include <string.h>

#include "objectives/masked_lm.h"
#include "objectives/causal_lm.h"
#include "objectives/blank_infilling.h"
#include "objectives/span_corruption.h"
#include "objectives/translation.h"
#include "base/alloc.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

/* ---- Texts of each form ---- */

typedef struct texts {
    word_corpus words; /* of BERT and GLM */
    wg_tokenizer *tokenizer;
    wg_dataset *stream;
    wg_dataset *pairs;
} texts;

/* Forty pairs of 1 to 10 words. */
static wg_dataset *make_pairs(const wg_tokenizer *tokenizer) {
    static char source[4096], target[4096];
    char *s = source, *t = target;
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k <= i * 7 % 10; k++)
            s += sprintf(s, "w%d ", (i + k) % 50);
        for (int k = 0; k <= i * 3 % 10; k++)
            t += sprintf(t, "w%d ", 50 + (i + 2 * k) % 50);
        s += sprintf(s, "\n");
        t += sprintf(t, "\n");
    }
    return wg_dataset_from_text(source, -1, target, tokenizer,
                                &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
}

static texts make_texts(void) {
    texts t = {.words = word_corpus_of(6, 30, 6), .tokenizer = words_tokenizer("w", 0, 300)};
    static char text[2048];
    for (int i = 0, used = 0; i < 300; i++)
        used += sprintf(text + used, "w%d ", i);
    t.stream = wg_dataset_from_text(text, -1, NULL, t.tokenizer,
                                    &(wg_dataset_options){.kind = WG_TEXT_STREAM});
    t.pairs = make_pairs(t.tokenizer);
    assert_no_error();
    return t;
}

static void free_texts(texts t) {
    wg_dataset_free(t.pairs);
    wg_dataset_free(t.stream);
    wg_tokenizer_free(t.tokenizer);
    word_corpus_free(t.words);
}

/* ---- Builders of batches ---- */

enum { MOST_TENSORS = 6 };

typedef struct builder {
    const char *name;
    const char *beyond; /* the message for a position outside of an epoch */
    wg_batches *(*begin)(const texts *t, uint64_t seed);
    int (*next)(wg_batches *batches, wg_tensor *tensors[MOST_TENSORS]); /* NULL: no more */
} builder;

/* Takes a batch of one builder by its row of the table; its tensors follow. */
#define BUILDER(kind, type, ...)                                                                   \
    static int kind##_next(wg_batches *batches, wg_tensor *tensors[MOST_TENSORS]) {                \
        type batch;                                                                                \
        if (wg_batches_next(batches, &batch) < 0)                                                  \
            return -1;                                                                             \
        wg_tensor *const all[MOST_TENSORS] = {__VA_ARGS__};                                        \
        memcpy(tensors, all, sizeof all);                                                          \
        return 0;                                                                                  \
    }

BUILDER(masked, wg__masked_batch, batch.ids, batch.token_type_ids, batch.positions, batch.labels,
        batch.next_sentence_labels, batch.keep)
BUILDER(mlm, wg__masked_batch, batch.ids, batch.positions, batch.labels, batch.causal_ids,
        batch.causal_labels)
BUILDER(blank, wg__blank_batch, batch.input_ids, batch.position_ids, batch.block_position_ids,
        batch.part_a, batch.target_positions, batch.labels)
BUILDER(causal, wg_causal_batch, batch.ids, batch.labels)
BUILDER(span, wg__span_batch, batch.input_ids, batch.labels)
BUILDER(translation, wg__translation_batch, batch.source, batch.target, batch.labels)

static wg_batches *masked_begin(const texts *t, uint64_t seed) {
    return wg__pair_batches_new(
        t->words.corpus, t->words.tokenizer,
        &(wg__pair_batch_options){.batch = 7, .sequence = 32, .seed = seed});
}

static wg_batches *mlm_begin(const texts *t, uint64_t seed) {
    return wg__packed_batches_new(
        t->words.corpus, t->words.tokenizer,
        &(wg__packed_batch_options){.batch = 7,
                                    .sequence = 32,
                                    .seed = seed,
                                    .masking = {.masked_share = 0.3, .causal_share = 0.3}});
}

static wg_batches *blank_begin(const texts *t, uint64_t seed) {
    return wg__blank_batches_new(t->words.corpus, t->words.tokenizer,
                                 &(wg__blank_batch_options){.batch = 7,
                                                            .sequence = 32,
                                                            .seed = seed,
                                                            .sentence_share = 0.25,
                                                            .document_share = 0.25});
}

static wg_batches *causal_begin(const texts *t, uint64_t seed) {
    return wg_causal_batches_new(
        t->stream, &(wg_causal_batch_options){.batch = 7, .sequence = 16, .seed = seed});
}

static wg_batches *span_begin(const texts *t, uint64_t seed) {
    return wg__span_batches_new(
        t->stream, t->tokenizer,
        &(wg__span_batch_options){.batch = 7, .sequence = 16, .seed = seed});
}

static wg_batches *translation_begin(const texts *t, uint64_t seed) {
    wg__translation_tokens tokens;
    if (wg__translation_tokens_of(t->tokenizer, &tokens) < 0)
        return NULL;
    return wg__translation_batches_new(
        t->pairs, &tokens,
        &(wg__translation_batch_options){.tokens = 24, .longest = 12, .seed = seed});
}

#define ROW(kind, told)                                                                            \
    { .name = #kind, .beyond = told, .begin = kind##_begin, .next = kind##_next }

static const builder builders[] = {
    ROW(masked, "example 100000 of an epoch of"), ROW(blank, "example 100000 of an epoch of"),
    ROW(causal, "example 100000 of an epoch of"), ROW(span, "example 100000 of an epoch of"),
    ROW(mlm, "example 100000 of an epoch of"),    ROW(translation, "were the data others?"),
};

static const char *builder_name(int index) {
    return builders[index].name;
}

/* A hash of the whole next batch. */
static uint64_t next_hash(const builder *b, wg_batches *batches) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *tensors[MOST_TENSORS];
    ck_assert_int_eq(b->next(batches, tensors), 0);
    wg_tensor *there[MOST_TENSORS];
    int count = 0;
    for (int i = 0; i < MOST_TENSORS; i++)
        if (tensors[i])
            there[count++] = tensors[i];
    const uint64_t hash = hash_of_tensors(count, there);
    wg_scope_end(&scope, NULL);
    return hash;
}

/* ---- Places ---- */

START_TEST(a_resumed_run_sees_the_same_batches_over_the_ends_of_epochs) {
    enum { BATCHES = 60 };
    const builder *b = &builders[_i];
    texts t = make_texts();
    wg_batches *batches = b->begin(&t, 11);
    uint64_t hashes[BATCHES];
    wg_data_position places[BATCHES];
    for (int k = 0; k < BATCHES; k++) {
        places[k] = wg__batches_position(batches);
        hashes[k] = next_hash(b, batches);
        ck_assert(k == 0 || hashes[k] != hashes[k - 1]);
    }
    ck_assert_int_ge(places[BATCHES - 1].epoch, 2);
    wg_batches_free(batches);
    for (int k = 0; k < BATCHES; k += 7) {
        batches = b->begin(&t, 999); /* the position holds the seed */
        ck_assert_int_eq(wg__batches_seek(batches, &places[k]), 0);
        for (int j = k; j < BATCHES; j++)
            ck_assert_uint_eq(next_hash(b, batches), hashes[j]);
        wg_batches_free(batches);
    }
    free_texts(t);
}
END_TEST

/* As three ranks do, of which each takes one batch in three. */
START_TEST(batches_that_are_skipped_leave_the_others_as_they_are) {
    enum { BATCHES = 60, RANKS = 3 };
    const builder *b = &builders[_i];
    texts t = make_texts();
    wg_batches *all = b->begin(&t, 11), *ranks[RANKS];
    for (int r = 0; r < RANKS; r++)
        ranks[r] = b->begin(&t, 11);
    for (int k = 0; k < BATCHES; k++) {
        const uint64_t hash = next_hash(b, all);
        for (int r = 0; r < RANKS; r++) {
            if (k % RANKS == r)
                ck_assert_uint_eq(next_hash(b, ranks[r]), hash);
            else
                ck_assert_int_eq(wg__batches_advance(ranks[r], false, NULL), 0);
            const wg_data_position at = wg__batches_position(ranks[r]),
                                   wanted = wg__batches_position(all);
            ck_assert_mem_eq(&at, &wanted, sizeof at);
        }
    }
    ck_assert_int_ge(wg__batches_position(all).epoch, 2);
    for (int r = 0; r < RANKS; r++)
        wg_batches_free(ranks[r]);
    wg_batches_free(all);
    free_texts(t);
}
END_TEST

START_TEST(seeds_and_epochs_give_other_batches) {
    const builder *b = &builders[_i];
    texts t = make_texts();
    wg_batches *batches = b->begin(&t, 0);
    const uint64_t first = next_hash(b, batches);
    const struct {
        wg_data_position place;
        bool same;
    } cases[] = {{{0, 0, 0}, true}, {{0, 1, 0}, false}, {{1, 0, 0}, false}, {{0, 0, 0}, true}};
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        ck_assert_int_eq(wg__batches_seek(batches, &cases[i].place), 0);
        ck_assert_int_eq(next_hash(b, batches) == first, cases[i].same);
    }
    wg_batches_free(batches);
    free_texts(t);
}
END_TEST

START_TEST(a_position_outside_the_epoch_is_refused_and_changes_nothing) {
    const builder *b = &builders[_i];
    texts t = make_texts();
    wg_batches *batches = b->begin(&t, 5), *untouched = b->begin(&t, 5);
    assert_fails(wg__batches_seek(batches, &(wg_data_position){0, 3, 100000}), WG_ERROR_ARGUMENT,
                 b->beyond);
    assert_fails(wg__batches_seek(batches, &(wg_data_position){0, 0, -1}), WG_ERROR_ARGUMENT, "-1");
    assert_fails(wg__batches_seek(batches, &(wg_data_position){0, -1, 0}), WG_ERROR_ARGUMENT, "-1");
    for (int k = 0; k < 10; k++)
        ck_assert_uint_eq(next_hash(b, batches), next_hash(b, untouched));
    wg_batches_free(batches);
    wg_batches_free(untouched);
    free_texts(t);
}
END_TEST

/* ---- Memory ---- */

START_TEST(a_batch_that_finds_no_memory_can_be_asked_for_again) {
    const builder *b = &builders[_i];
    texts t = make_texts();
    wg_batches *untouched = b->begin(&t, 3);
    const uint64_t wanted = next_hash(b, untouched);
    wg_batches_free(untouched);
    const int64_t live = wg_alloc_get_stats().live_blocks;
    int failures = 0;
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *tensors[MOST_TENSORS];
        wg__alloc_fail_after(n);
        wg_batches *batches = b->begin(&t, 3);
        const wg_data_position start =
            batches ? wg__batches_position(batches) : (wg_data_position){0};
        done = batches && b->next(batches, tensors) == 0;
        wg__alloc_fail_after(-1);
        wg_scope_end(&scope, NULL);
        if (!done) {
            assert_error(WG_ERROR_MEMORY, "");
            failures++;
        }
        if (batches && !done) {
            const wg_data_position now = wg__batches_position(batches);
            ck_assert_mem_eq(&now, &start, sizeof now);
            ck_assert_uint_eq(next_hash(b, batches), wanted);
        }
        wg_batches_free(batches);
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, live);
    }
    ck_assert_int_gt(failures, 3);
    free_texts(t);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_resumed_run_sees_the_same_batches_over_the_ends_of_epochs,
        batches_that_are_skipped_leave_the_others_as_they_are,
        seeds_and_epochs_give_other_batches,
        a_position_outside_the_epoch_is_refused_and_changes_nothing,
        a_batch_that_finds_no_memory_can_be_asked_for_again,
    };
    add_suite_of_each("batch_positions", tests, WG_COUNT(builders), builder_name);
}
