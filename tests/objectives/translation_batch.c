/* Batches of sentence pairs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "objectives/translation.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "base/internal.h"
#include "data/internal.h"

/* A tokenizer of bytes, in GPT-2's order, and <|endoftext|> for both ends. */
static wg_tokenizer *byte_tokenizer(void) {
    wg_tokenizer *tokenizer =
        wg__bpe_train("a", 1, &(wg_bpe_training){.vocabulary_size = 257, .min_frequency = 9});
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 257);
    return tokenizer;
}

enum { END = 256 };

/* Sixty different pairs of 1 to 12 letters. */
static void make_texts(char *source, char *target) {
    for (int i = 0; i < 60; i++) {
        const int s = 1 + i * 7 % 12, t = 1 + i * 5 % 11;
        for (int k = 0; k < s; k++)
            *source++ = (char)('a' + (i + k) % 26);
        for (int k = 0; k < t; k++)
            *target++ = (char)('A' + (i + 2 * k) % 26);
        *source++ = *target++ = '\n';
    }
    *source = *target = '\0';
}

typedef struct setup {
    wg_tokenizer *tokenizer;
    wg_dataset *pairs;
    wg__translation_tokens tokens;
} setup;

static setup make_setup(void) {
    static char source[2048], target[2048];
    make_texts(source, target);
    setup s = {.tokenizer = byte_tokenizer()};
    s.pairs = wg_dataset_from_text(source, -1, target, s.tokenizer,
                                   &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    ck_assert_int_eq(wg__translation_tokens_of(s.tokenizer, &s.tokens), 0);
    assert_no_error();
    return s;
}

static void free_setup(setup *s) {
    wg_dataset_free(s->pairs);
    wg_tokenizer_free(s->tokenizer);
}

static wg_batches *make_batches(const setup *s, int64_t tokens, int64_t longest) {
    return wg__translation_batches_new(
        s->pairs, &s->tokens,
        &(wg__translation_batch_options){.tokens = tokens, .longest = longest, .seed = 5});
}

/* ---- A batch ---- */

static void assert_ids(const wg_tensor *x, int64_t rows, int64_t columns, const int64_t *wanted) {
    assert_close(x, wg_from_array(WG_I64, WG_DIMS(rows, columns), wanted), 0, 0);
}

START_TEST(a_batch_is_what_the_model_is_given) {
    wg_tokenizer *tokenizer = byte_tokenizer();
    wg_dataset *pairs = wg_dataset_from_text("ab\nc", -1, "A\nBCD", tokenizer,
                                             &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    const int32_t a = wg_tokenizer_id(tokenizer, "a"), A = wg_tokenizer_id(tokenizer, "A");
    wg__translation_tokens tokens;
    ck_assert_int_eq(wg__translation_tokens_of(tokenizer, &tokens), 0);
    ck_assert(tokens.start == END && tokens.end == END && tokens.pad == -1);
    wg__translation_batch batch;
    ck_assert_int_eq(wg__translation_batch_read(pairs, &tokens, 2, (const int64_t[]){0, 1}, &batch),
                     0);
    assert_ids(batch.source, 2, 3, (const int64_t[]){a, a + 1, END, a + 2, END, END});
    assert_close(batch.source_keep,
                 wg_from_array(WG_BOOL, WG_DIMS(2, 3), (const bool[]){1, 1, 1, 1, 1, 0}), 0, 0);
    assert_ids(batch.target, 2, 4, (const int64_t[]){END, A, END, END, END, A + 1, A + 2, A + 3});
    assert_ids(batch.labels, 2, 4, (const int64_t[]){A, END, -100, -100, A + 1, A + 2, A + 3, END});
    ck_assert_int_eq(batch.tokens, 6);

    /* Without padding if all sources have the same length. */
    ck_assert_int_eq(wg__translation_batch_read(pairs, &tokens, 1, (const int64_t[]){1}, &batch),
                     0);
    ck_assert_ptr_null(batch.source_keep);
    assert_fails(wg__translation_batch_read(pairs, &tokens, 1, (const int64_t[]){2}, &batch),
                 WG_ERROR_INDEX, "pair 2 of 2");
    wg_dataset_free(pairs);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(a_tokenizer_without_an_end_is_refused) {
    wg_tokenizer *tokenizer = wg_byte_new();
    wg__translation_tokens tokens;
    assert_fails(wg__translation_tokens_of(tokenizer, &tokens), WG_ERROR_ARGUMENT,
                 "no token that ends a sentence");
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- An epoch ---- */

/* The key of a pair: its first letters and its lengths. */
static int pair_of(const setup *s, const int64_t *source, int64_t width) {
    for (int64_t i = 0; i < wg__dataset_documents(s->pairs); i++) {
        int32_t ids[16];
        int64_t count = side_of_pair(s->pairs, WG_SOURCE, i, ids), k = 0;
        while (k < count && k < width && ids[k] == source[k])
            k++;
        if (k == count && k < width && source[k] == END)
            return (int)i;
    }
    return -1;
}

/* Counts how often each pair occurs in a batch, and checks the batch's size. */
static void count_pairs(const setup *s, const wg__translation_batch *batch, int64_t most,
                        int *seen) {
    const int64_t rows = wg_tensor_size(batch->source, 0), width = wg_tensor_size(batch->source, 1);
    int64_t ids[1024];
    ck_assert_int_le(rows * width, most);
    ck_assert_int_le(rows * wg_tensor_size(batch->target, 1), most);
    ck_assert_int_eq(wg_to_array(batch->source, ids), 0);
    for (int64_t i = 0; i < rows; i++) {
        const int pair = pair_of(s, ids + i * width, width);
        ck_assert_int_ge(pair, 0);
        seen[pair]++;
    }
}

START_TEST(an_epoch_has_every_pair_once_in_batches_of_their_size) {
    setup s = make_setup();
    wg_batches *batches = make_batches(&s, 40, 13);
    const int64_t count = wg__batches_examples(batches);
    ck_assert_int_eq(wg__translation_batches_left_out(batches), 0);
    for (int epoch = 1; epoch <= 3; epoch++) {
        int seen[60] = {0};
        for (int64_t i = 0; i < count; i++) {
            wg__translation_batch batch;
            ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
            count_pairs(&s, &batch, 40, seen);
        }
        for (int i = 0; i < 60; i++)
            ck_assert_int_eq(seen[i], 1);
        ck_assert_int_eq(wg__batches_position(batches).epoch, epoch);
        ck_assert_int_eq(wg__batches_position(batches).next, 0);
    }
    wg_batches_free(batches);
    free_setup(&s);
}
END_TEST

/* Nearly all positions of batches are used by the longer sides of pairs. */
START_TEST(sentences_of_like_length_stand_together) {
    setup s = make_setup();
    wg_batches *batches = make_batches(&s, 64, 13);
    const int64_t count = wg__batches_examples(batches);
    int64_t room = 0, needed = 0;
    for (int64_t i = 0; i < count; i++) {
        wg__translation_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        const int64_t sources = wg_tensor_count(batch.source);
        const int64_t targets = wg_tensor_count(batch.target);
        room += sources > targets ? sources : targets;
    }
    for (int64_t i = 0; i < 60; i++) {
        const int64_t source = side_of_pair(s.pairs, WG_SOURCE, i, NULL);
        const int64_t target = side_of_pair(s.pairs, WG_TARGET, i, NULL);
        needed += (source > target ? source : target) + 1;
    }
    ck_assert_double_gt((double)needed / (double)room, 0.9);
    wg_batches_free(batches);
    free_setup(&s);
}
END_TEST

START_TEST(epochs_differ_and_neighbours_change) {
    setup s = make_setup();
    wg_batches *batches = make_batches(&s, 40, 13);
    const int64_t count = wg__batches_examples(batches);
    uint64_t first[60];
    int same = 0;
    for (int64_t i = 0; i < 2 * count; i++) {
        wg__translation_batch batch;
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        const uint64_t hash = hash_of_tensors(1, &batch.source);
        if (i < count)
            first[i] = hash;
        for (int64_t k = 0; i >= count && k < count; k++)
            same += first[k] == hash;
    }
    ck_assert_int_lt(same, (int)count / 2);
    wg_batches_free(batches);
    free_setup(&s);
}
END_TEST

START_TEST(what_is_too_long_is_left_out) {
    setup s = make_setup();
    wg_batches *batches = make_batches(&s, 40, 8);
    int64_t longer = 0;
    for (int64_t i = 0; i < 60; i++) {
        const int64_t source = side_of_pair(s.pairs, WG_SOURCE, i, NULL);
        const int64_t target = side_of_pair(s.pairs, WG_TARGET, i, NULL);
        longer += source > 7 || target > 7;
    }
    ck_assert_int_gt(longer, 0);
    ck_assert_int_eq(wg__translation_batches_left_out(batches), longer);
    wg_batches_free(batches);
    assert_fails(make_batches(&s, 40, 1), WG_ERROR_ARGUMENT,
                 "every pair has a sentence of more than 1 tokens");
    assert_fails(make_batches(&s, 12, 13), WG_ERROR_ARGUMENT, "do not hold one sentence of 13");
    free_setup(&s);
}
END_TEST

/* ---- Weights ---- */

enum { FEW = 20, MANY = 60 };

/* Two sources, of pairs of the letters a and b, of many lengths. */
static wg_dataset *load_letters(const wg_tokenizer *tokenizer) {
    const char *list[4];
    for (int i = 0; i < 2; i++) {
        char text[1024], *end = text;
        for (int k = 0; k < (i == 0 ? FEW : MANY); k++)
            for (int c = k % 9; c >= 0; c--)
                end += sprintf(end, "%c%s", 'a' + i, c == 0 ? "\n" : "");
        list[2 * i] = list[2 * i + 1] = write_text(i == 0 ? "a.txt" : "b.txt", text);
    }
    return wg_dataset_load(4, list, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
}

/* Counts the pairs of a batch by their letter. */
static void count_letters(const wg__translation_batch *batch, const wg_tokenizer *tokenizer,
                          int64_t counts[2]) {
    const int64_t rows = wg_tensor_size(batch->source, 0), width = wg_tensor_size(batch->source, 1);
    const int64_t *ids = wg_tensor_data(batch->source);
    for (int64_t i = 0; i < rows; i++)
        counts[ids[i * width] == wg_tokenizer_id(tokenizer, "b")]++;
}

START_TEST(pairs_come_in_the_proportions_and_go_on_where_they_were) {
    wg_tokenizer *tokenizer = byte_tokenizer();
    const wg__translation_tokens tokens = {END, END, -1};
    const wg__translation_batch_options options = {.tokens = 40, .longest = 12, .seed = 3};
    wg_dataset *pairs = load_letters(tokenizer);
    ck_assert_int_eq(wg_dataset_weigh(pairs, 2, (const double[]){3, 1}), 0);
    wg_batches *batches = wg__translation_batches_new(pairs, &tokens, &options);
    wg_batches *others = wg__translation_batches_new(pairs, &tokens, &options);
    assert_no_error();
    int64_t sizes[2] = {0};
    for (int epoch = 0; epoch < 6; epoch++) {
        int64_t counts[2] = {0}, made = 0;
        const int64_t count = wg__batches_examples(batches);
        for (; wg__batches_position(batches).epoch == epoch; made++) {
            wg__translation_batch batch, again;
            const wg_data_position position = wg__batches_position(batches);
            ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
            ck_assert_int_eq(wg__batches_seek(others, &position), 0);
            ck_assert_int_eq(wg_batches_next(others, &again), 0);
            assert_close(again.source, batch.source, 0, 0);
            assert_close(again.labels, batch.labels, 0, 0);
            ck_assert_int_le(wg_tensor_count(batch.source), 40);
            count_letters(&batch, tokenizer, counts);
        }
        ck_assert_int_eq(made, count);
        ck_assert_int_eq(counts[0], (FEW + MANY) * 3 / 4);
        ck_assert_int_eq(counts[1], (FEW + MANY) / 4);
        sizes[0] = epoch == 0 || made < sizes[0] ? made : sizes[0];
        sizes[1] = made > sizes[1] ? made : sizes[1];
        assert_fails(
            wg__batches_seek(others, &(wg_data_position){.seed = 3, .epoch = epoch, .next = made}),
            WG_ERROR_ARGUMENT, "were the data others?");
    }
    ck_assert_int_gt(sizes[1], sizes[0]); /* the number of batches depends on the epoch */
    wg_batches_free(batches);
    wg_batches_free(others);
    wg_dataset_free(pairs);
    wg_tokenizer_free(tokenizer);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_batch_is_what_the_model_is_given,
        a_tokenizer_without_an_end_is_refused,
        an_epoch_has_every_pair_once_in_batches_of_their_size,
        sentences_of_like_length_stand_together,
        epochs_differ_and_neighbours_change,
        what_is_too_long_is_left_out,
        pairs_come_in_the_proportions_and_go_on_where_they_were,
    };
    add_suite("translation batches", tests);
}
