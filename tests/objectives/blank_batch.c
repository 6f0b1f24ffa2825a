/* GLM's batches: the figure of the paper, and statistics.  Most tests use a corpus whose k-th token
 * is the word "wk", so that each token shows its position. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "objectives/blank_infilling.h"
#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

/* ---- A corpus in which each token tells its place ---- */

typedef struct world {
    wg_tokenizer *tokenizer;
    wg_dataset *corpus;
    wg_blank_tokens tokens;
    int64_t words;
} world;

static world world_of(int documents, int sentences, int longest) {
    const word_corpus words = word_corpus_of(documents, sentences, longest);
    world w = {.tokenizer = words.tokenizer, .corpus = words.corpus, .words = words.words};
    ck_assert_int_eq(wg__blank_tokens_of(w.tokenizer, &w.tokens), 0);
    return w;
}

static void free_world(world w) {
    word_corpus_free((word_corpus){.tokenizer = w.tokenizer, .corpus = w.corpus});
}

/* ---- Reading a batch ---- */

typedef struct view {
    wg__blank_batch batch;
    int64_t rows, length, targets;
    const int64_t *ids, *positions, *blocks, *part_a, *places, *labels;
} view;

static view view_of(const wg__blank_batch *batch) {
    return (view){.batch = *batch,
                  .rows = wg_tensor_size(batch->input_ids, 0),
                  .length = wg_tensor_size(batch->input_ids, 1),
                  .targets = wg_tensor_count(batch->labels),
                  .ids = wg_tensor_data(batch->input_ids),
                  .positions = wg_tensor_data(batch->position_ids),
                  .blocks = wg_tensor_data(batch->block_position_ids),
                  .part_a = wg_tensor_data(batch->part_a),
                  .places = wg_tensor_data(batch->target_positions),
                  .labels = wg_tensor_data(batch->labels)};
}

/* The label of a position, or -1. */
static int64_t label_at(const view *v, int64_t place) {
    int64_t low = 0, high = v->targets;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (v->places[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->targets && v->places[low] == place ? v->labels[low] : -1;
}

/* A row split into its parts, and its text restored. */
typedef struct sequence {
    int64_t text[512], count;    /* the text with the spans in place of their blanks */
    int64_t spans[256], lengths; /* lengths of spans, in the order of Part B */
    int64_t firsts[256];         /* and their first tokens */
    int64_t mask;                /* the token in place of each */
    int64_t masked, tokens;
    bool untold; /* the end of the last span is not predicted */
} sequence;

static bool is_mask(const wg_blank_tokens *t, int64_t id) {
    return id == t->mask || id == t->sentence_mask || id == t->document_mask;
}

/* Checks everything that holds for each sequence. */
static sequence sequence_of(const view *v, int64_t row, const wg_blank_tokens *t) {
    const int64_t base = row * v->length, part_a = v->part_a[row];
    const int64_t *ids = v->ids + base, *positions = v->positions + base,
                  *blocks = v->blocks + base;
    static int64_t span_at[512], length_at[512]; /* by position of the mask */
    memset(length_at, 0, sizeof length_at);
    sequence s = {.mask = -1};
    int64_t i = part_a;
    while (i < v->length && blocks[i] > 0) {
        const int64_t start = i, place = positions[i];
        ck_assert_int_eq(ids[i], t->start);
        ck_assert_int_eq(blocks[i], 1);
        ck_assert(place > 0 && place < part_a && is_mask(t, ids[place]));
        ck_assert_int_eq(length_at[place], 0); /* one span a mask */
        for (i++; i < v->length && blocks[i] > 1; i++) {
            ck_assert_int_eq(label_at(v, base + i - 1), ids[i]);
            ck_assert_int_eq(positions[i], place);
            ck_assert_int_eq(blocks[i], i - start + 1);
        }
        const int64_t last = label_at(v, base + i - 1);
        ck_assert(last == t->end || (last == -1 && !s.untold));
        s.untold = last == -1;
        span_at[place] = start + 1;
        length_at[place] = i - start - 1;
        ck_assert_int_ge(length_at[place], 1);
        s.firsts[s.lengths] = ids[start + 1];
        s.spans[s.lengths++] = length_at[place];
        s.masked += length_at[place];
    }
    s.tokens = i;
    for (; i < v->length; i++)
        ck_assert(ids[i] == t->pad && positions[i] == 0 && label_at(v, base + i) == -1);
    ck_assert_int_eq(ids[0], t->beginning);
    for (int64_t a = 0; a < part_a; a++) {
        ck_assert_int_eq(positions[a], a);
        ck_assert_int_eq(blocks[a], 0);
        ck_assert_int_eq(label_at(v, base + a), -1);
        const bool masked = is_mask(t, ids[a]);
        ck_assert(masked == (length_at[a] > 0)); /* every mask has its span */
        ck_assert(!masked || s.mask == -1 || s.mask == ids[a]);
        s.mask = masked ? ids[a] : s.mask;
        for (int64_t k = 0; k < length_at[a]; k++)
            s.text[s.count++] = ids[span_at[a] + k];
        if (a > 0 && !masked)
            s.text[s.count++] = ids[a];
    }
    for (int64_t k = 0; k < s.count; k++)
        ck_assert_int_eq(s.text[k], s.text[0] + k); /* neighbours in the corpus */
    return s;
}

static wg__blank_batch next_batch(wg_batches *batches) {
    wg__blank_batch batch;
    ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
    return batch;
}

/* The first batch by these options. */
static view first_view(const world *w, const wg__blank_batch_options *options) {
    wg_batches *batches = wg__blank_batches_new(w->corpus, w->tokenizer, options);
    const wg__blank_batch batch = next_batch(batches);
    wg_batches_free(batches);
    return view_of(&batch);
}

/* ---- The figure of the paper ---- */

static void assert_row(wg_tensor *x, int count, const int64_t *expected) {
    ck_assert_int_eq(wg_tensor_count(x), count);
    ck_assert_mem_eq(wg_tensor_data(x), expected, (size_t)count * sizeof *expected);
}

/* Figure 2: x1 .. x6 with the spans x3 and x5 x6 in reverse order. A [CLS] precedes the text, at
 * position 0, as in the published code. */
START_TEST(the_example_of_figure_2_has_its_masks_and_both_its_positions) {
    wg_tokenizer *tokenizer = words_tokenizer("x", 1, 6);
    wg_blank_tokens t;
    ck_assert_int_eq(wg__blank_tokens_of(tokenizer, &t), 0);
    enum { X1 = SPECIALS, X2, X3, X4, X5, X6 };
    const int32_t text[6] = {X1, X2, X3, X4, X5, X6};
    const wg__blank_span spans[2] = {{4, 6}, {2, 3}};
    wg__blank_batch batch;
    const wg__blanked_text blanks = {text, 6, spans, 2, t.mask, false};
    ck_assert_int_eq(wg__blanked_batch(&t, 1, &blanks, 1, &batch), 0);
    assert_row(batch.input_ids, 11,
               (int64_t[]){CLS, X1, X2, MASK, X4, MASK, t.start, X5, X6, t.start, X3});
    assert_row(batch.position_ids, 11, (int64_t[]){0, 1, 2, 3, 4, 5, 5, 5, 5, 3, 3});
    assert_row(batch.block_position_ids, 11, (int64_t[]){0, 0, 0, 0, 0, 0, 1, 2, 3, 1, 2});
    assert_row(batch.part_a, 1, (int64_t[]){6});
    assert_row(batch.target_positions, 5, (int64_t[]){6, 7, 8, 9, 10});
    assert_row(batch.labels, 5, (int64_t[]){X5, X6, t.end, X3, t.end});
    ck_assert_int_eq(batch.tokens, 11);
    char *shown = wg__blank_batch_show(&batch, 0, tokenizer);
    ck_assert_str_eq(shown,
                     "part  token             position  block  predicts          sees\n"
                     "A     [CLS]                    0      0                    ######.....\n"
                     "A     x1                       1      0                    ######.....\n"
                     "A     x2                       2      0                    ######.....\n"
                     "A     [MASK]                   3      0                    ######.....\n"
                     "A     x4                       4      0                    ######.....\n"
                     "A     [MASK]                   5      0                    ######.....\n"
                     "B     <|startofpiece|>         5      1  x5                #######....\n"
                     "B     x5                       5      2  x6                ########...\n"
                     "B     x6                       5      3  <|endofpiece|>    #########..\n"
                     "B     <|startofpiece|>         3      1  x3                ##########.\n"
                     "B     x3                       3      2  <|endofpiece|>    ###########\n");
    wg_text_free(shown);
    assert_fails(wg__blank_batch_show(&batch, 1, tokenizer), WG_ERROR_INDEX,
                 "sequence 1 of a batch of 1");
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(tokens_that_a_vocabulary_lacks_are_numbered_after_it) {
    const char *const some[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[gMASK]", "a"};
    wg_tokenizer *tokenizer = wg__wordpiece_new(7, some, NULL);
    wg_blank_tokens t;
    ck_assert_int_eq(wg__blank_tokens_of(tokenizer, &t), 0);
    ck_assert_int_eq(t.beginning, CLS);
    ck_assert_int_eq(t.mask, MASK);
    ck_assert_int_eq(t.document_mask, 5);
    ck_assert_int_eq(t.start, 7);
    ck_assert_int_eq(t.end, 8);
    ck_assert_int_eq(t.sentence_mask, 9);
    ck_assert_int_eq(t.vocab_size, 10);
    wg_tokenizer_free(tokenizer);
    ck_assert_int_eq(wg__blank_tokens_of(NULL, &t), -1);
}
END_TEST

/* ---- Epochs ---- */

/* All objectives, and sentences longer than a text may be. */
START_TEST(every_token_of_an_epoch_is_in_part_a_or_in_part_b_once) {
    world w = world_of(7, 60, 40);
    wg_batches *batches = wg__blank_batches_new(
        w.corpus, w.tokenizer,
        &(wg__blank_batch_options){
            .batch = 1, .sequence = 25, .sentence_share = 0.3, .document_share = 0.3});
    int *seen = calloc((size_t)w.words, sizeof *seen);
    int64_t examples = wg__batches_examples(batches), masks[3] = {0};
    for (int64_t k = 0; k < examples; k++) {
        ck_assert_int_eq(wg__batches_position(batches).epoch, 0);
        wg__blank_batch batch = next_batch(batches);
        view v = view_of(&batch);
        sequence s = sequence_of(&v, 0, &w.tokens);
        ck_assert_int_eq(batch.tokens, s.tokens);
        ck_assert_int_lt(s.count, 25);
        for (int64_t i = 0; i < s.count; i++)
            seen[s.text[i] - SPECIALS]++;
        masks[0] += s.mask == w.tokens.mask;
        masks[1] += s.mask == w.tokens.sentence_mask;
        masks[2] += s.mask == w.tokens.document_mask;
    }
    for (int64_t i = 0; i < w.words; i++)
        ck_assert_int_eq(seen[i], 1);
    ck_assert(masks[0] > 0 && masks[1] > 0 && masks[2] > 0);
    ck_assert_int_eq(wg__batches_position(batches).epoch, 1);
    ck_assert_int_eq(wg__batches_position(batches).next, 0);
    free(seen);
    wg_batches_free(batches);
    free_world(w);
}
END_TEST

START_TEST(a_batch_has_the_documented_shapes_and_dtypes) {
    world w = world_of(3, 60, 5);
    wg_batches *batches = wg__blank_batches_new(
        w.corpus, w.tokenizer, &(wg__blank_batch_options){.batch = 6, .sequence = 30});
    wg__blank_batch batch = next_batch(batches);
    const int64_t length = wg_tensor_size(batch.input_ids, 1);
    ck_assert_int_eq(length % 8, 0);
    wg_tensor *const grids[] = {batch.input_ids, batch.position_ids, batch.block_position_ids};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(wg_tensor_dtype(grids[i]), WG_I64);
        ck_assert_int_eq(wg_tensor_size(grids[i], 0), 6);
        ck_assert_int_eq(wg_tensor_size(grids[i], 1), length);
    }
    ck_assert_int_eq(wg_tensor_dtype(batch.part_a), WG_I64);
    ck_assert_int_eq(wg_tensor_count(batch.part_a), 6);
    view v = view_of(&batch);
    int64_t tokens = 0, targets = 0;
    for (int64_t row = 0; row < 6; row++) {
        sequence s = sequence_of(&v, row, &w.tokens);
        tokens += s.tokens;
        targets += s.masked + s.lengths;
    }
    ck_assert_int_eq(batch.tokens, tokens);
    ck_assert_int_eq(v.targets, targets);
    for (int64_t i = 1; i < v.targets; i++)
        ck_assert_int_lt(v.places[i - 1], v.places[i]);
    wg_batches_free(batches);
    free_world(w);
}
END_TEST

/* ---- Spans ---- */

typedef struct statistics {
    int64_t lengths[64], spans, masked, tokens, texts, orders, turned, first_masked, last_masked;
} statistics;

static void add_row(statistics *c, const sequence *s) {
    c->texts++;
    c->tokens += s->count;
    c->masked += s->masked;
    c->spans += s->lengths;
    ck_assert_double_ge((double)s->masked, 0.15 * (double)s->count);
    ck_assert_double_lt((double)s->masked, 0.15 * (double)s->count + 40);
    for (int64_t i = 0; i < s->lengths; i++)
        c->lengths[s->spans[i]]++;
    c->orders += s->lengths > 1;
    c->turned += s->lengths > 1 && s->firsts[0] > s->firsts[1];
    for (int64_t i = 0; i < s->lengths; i++) {
        c->first_masked += s->firsts[i] == s->text[0];
        c->last_masked += s->firsts[i] + s->spans[i] - 1 == s->text[s->count - 1];
        for (int64_t j = 0; j < i; j++) /* there is a token between any two */
            ck_assert(s->firsts[i] > s->firsts[j] + s->spans[j] ||
                      s->firsts[j] > s->firsts[i] + s->spans[i]);
    }
}

static statistics count_spans(const world *w, const wg__blank_batch_options *options, int batches) {
    statistics c = {0};
    wg_batches *all = wg__blank_batches_new(w->corpus, w->tokenizer, options);
    for (int k = 0; k < batches; k++) {
        wg__blank_batch batch = next_batch(all);
        view v = view_of(&batch);
        for (int64_t row = 0; row < v.rows; row++) {
            sequence s = sequence_of(&v, row, &w->tokens);
            ck_assert_int_eq(s.mask, w->tokens.mask);
            add_row(&c, &s);
        }
    }
    wg_batches_free(all);
    return c;
}

START_TEST(spans_are_poisson_until_fifteen_percent_is_masked) {
    world w = world_of(4, 1000, 1);
    const statistics c =
        count_spans(&w, &(wg__blank_batch_options){.batch = 20, .sequence = 101, .seed = 4}, 100);
    /* By Wald's identity the share of each length is its probability, although lengths are drawn
     * until they suffice. */
    double chance = 1 / expm1(3);
    for (int k = 1; k <= 9; k++) {
        chance *= 3.0 / k;
        assert_share(c.lengths[k], c.spans, chance);
    }
    ck_assert_int_gt(c.spans, 9000);
    /* 15 of 100, and the part of the last span beyond that, about (E[k^2] / E[k] - 1) / 2 = 1.5. */
    ck_assert_double_eq_tol((double)c.masked / (double)c.tokens, 0.165, 0.003);
    assert_share(c.turned, c.orders, 0.5);
    ck_assert_int_gt(c.first_masked, 0);
    ck_assert_int_gt(c.last_masked, 0);
    free_world(w);
}
END_TEST

START_TEST(other_means_and_shares_are_kept) {
    world w = world_of(4, 1000, 1);
    const statistics c =
        count_spans(&w,
                    &(wg__blank_batch_options){
                        .batch = 20, .sequence = 101, .masked_share = 0.4, .span_mean = 1},
                    50);
    ck_assert_double_eq_tol((double)c.masked / (double)c.tokens, 0.405, 0.01);
    assert_share(c.lengths[1], c.spans, 1 / expm1(1));
    const statistics all =
        count_spans(&w, &(wg__blank_batch_options){.batch = 20, .sequence = 8, .span_mean = 30}, 5);
    ck_assert_int_eq(all.masked, all.tokens); /* a span is no longer than the text */
    free_world(w);
}
END_TEST

/* Sentences of 1 to 7 words in turn: a span is one of them if it begins where one does. */
START_TEST(whole_sentences_are_masked_until_it_is_fifteen_percent) {
    world w = world_of(5, 140, 7);
    const view v = first_view(
        &w, &(wg__blank_batch_options){.batch = 50, .sequence = 60, .sentence_share = 1});
    for (int64_t row = 0; row < v.rows; row++) {
        sequence s = sequence_of(&v, row, &w.tokens);
        ck_assert_int_eq(s.mask, w.tokens.sentence_mask);
        for (int64_t i = 0; i < s.lengths; i++) {
            int64_t sentence = 0;
            while (wg__dataset_sentence_start(w.corpus, sentence) != s.firsts[i] - SPECIALS)
                ck_assert_int_lt(sentence++, wg__dataset_sentences(w.corpus));
            ck_assert_int_eq(s.spans[i], 1 + sentence % 7);
        }
        ck_assert_double_ge((double)s.masked, 0.15 * (double)s.count);
        ck_assert_double_lt((double)s.masked - 7, 0.15 * (double)s.count);
    }
    free_world(w);
}
END_TEST

START_TEST(a_text_of_one_sentence_is_masked_by_spans) {
    world w = world_of(20, 1, 1);
    const view v = first_view(&w, &(wg__blank_batch_options){.sentence_share = 1});
    for (int64_t row = 0; row < v.rows; row++)
        ck_assert_int_eq(sequence_of(&v, row, &w.tokens).mask, MASK);
    free_world(w);
}
END_TEST

START_TEST(the_last_half_or_more_of_a_document_is_one_span_whose_end_is_told_at_its_end) {
    world w = world_of(10, 100, 1); /* texts of 40, 40 and 20 */
    wg_batches *batches = wg__blank_batches_new(
        w.corpus, w.tokenizer,
        &(wg__blank_batch_options){.batch = 300, .sequence = 41, .document_share = 1});
    ck_assert_int_eq(wg__batches_examples(batches), 30);
    wg__blank_batch batch = next_batch(batches);
    view v = view_of(&batch);
    int64_t untold = 0, least = 40, most = 0;
    for (int64_t row = 0; row < v.rows; row++) {
        sequence s = sequence_of(&v, row, &w.tokens);
        ck_assert_int_eq(s.mask, w.tokens.document_mask);
        ck_assert_int_eq(s.lengths, 1);
        ck_assert_int_eq(s.firsts[0] + s.spans[0] - 1, s.text[s.count - 1]);
        ck_assert_int_ge(2 * s.masked, s.count);
        ck_assert(s.untold == ((s.text[s.count - 1] - SPECIALS) % 100 != 99));
        untold += s.untold;
        if (s.count == 40) {
            least = s.masked < least ? s.masked : least;
            most = s.masked > most ? s.masked : most;
        }
    }
    ck_assert_int_eq(untold, 200);
    ck_assert_int_eq(least, 20);
    ck_assert_int_eq(most, 40);
    wg_batches_free(batches);
    free_world(w);
}
END_TEST

START_TEST(objectives_are_mixed_as_their_shares_say) {
    world w = world_of(10, 1000, 3);
    const view v = first_view(
        &w, &(wg__blank_batch_options){
                .batch = 2000, .sequence = 24, .sentence_share = 0.3, .document_share = 0.2});
    int64_t sentences = 0, documents = 0;
    for (int64_t row = 0; row < v.rows; row++) {
        sequence s = sequence_of(&v, row, &w.tokens);
        sentences += s.mask == w.tokens.sentence_mask;
        documents += s.mask == w.tokens.document_mask;
    }
    assert_share(sentences, v.rows, 0.3);
    assert_share(documents, v.rows, 0.2);
    free_world(w);
}
END_TEST

START_TEST(a_table_that_finds_no_memory_says_so) {
    world w = world_of(6, 30, 6);
    wg_batches *batches =
        wg__blank_batches_new(w.corpus, w.tokenizer, &(wg__blank_batch_options){.sequence = 16});
    const wg__blank_batch batch = next_batch(batches);
    const int64_t live = wg_alloc_get_stats().live_blocks;
    char *shown = NULL;
    int failures = 0;
    for (int64_t n = 0; !shown; n++) {
        wg__alloc_fail_after(n);
        shown = wg__blank_batch_show(&batch, 0, w.tokenizer);
        wg__alloc_fail_after(-1);
        if (shown)
            break;
        assert_error(WG_ERROR_MEMORY, "");
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, live);
        failures++;
    }
    ck_assert_int_gt(failures, 2);
    wg_text_free(shown);
    wg_batches_free(batches);
    free_world(w);
}
END_TEST

/* ---- Bad input ---- */

static void assert_refused(const world *w, wg__blank_batch_options options, const char *message) {
    assert_fails(wg__blank_batches_new(w->corpus, w->tokenizer, &options), WG_ERROR_ARGUMENT,
                 message);
}

START_TEST(options_out_of_range_are_refused) {
    world w = world_of(2, 3, 2);
    assert_refused(&w, (wg__blank_batch_options){.batch = -1}, "batches of -1");
    assert_refused(&w, (wg__blank_batch_options){.sequence = 7}, "sequences of 7 tokens");
    assert_refused(&w, (wg__blank_batch_options){.masked_share = 1.5}, "masked_share is 1.5");
    assert_refused(&w, (wg__blank_batch_options){.masked_share = NAN}, "masked_share is");
    assert_refused(&w, (wg__blank_batch_options){.span_mean = -3}, "span_mean is -3");
    assert_refused(&w, (wg__blank_batch_options){.sentence_share = 0.7, .document_share = 0.7},
                   "sentence_share is 0.7 and document_share 0.7");
    free_world(w);
}
END_TEST

START_TEST(a_tokenizer_that_does_not_fit_is_refused) {
    world w = world_of(1, 3, 2);
    wg_tokenizer *other = words_tokenizer("w", 0, w.words + 1);
    assert_fails(wg__blank_batches_new(w.corpus, other, &(wg__blank_batch_options){0}),
                 WG_ERROR_ARGUMENT, "vocabulary of 9 tokens, this one has 10");
    wg_tokenizer_free(other);
    ck_assert_ptr_null(wg__blank_batches_new(NULL, w.tokenizer, &(wg__blank_batch_options){0}));
    assert_no_error();
    free_world(w);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        the_example_of_figure_2_has_its_masks_and_both_its_positions,
        tokens_that_a_vocabulary_lacks_are_numbered_after_it,
        every_token_of_an_epoch_is_in_part_a_or_in_part_b_once,
        a_batch_has_the_documented_shapes_and_dtypes,
        spans_are_poisson_until_fifteen_percent_is_masked,
        other_means_and_shares_are_kept,
        whole_sentences_are_masked_until_it_is_fifteen_percent,
        a_text_of_one_sentence_is_masked_by_spans,
        the_last_half_or_more_of_a_document_is_one_span_whose_end_is_told_at_its_end,
        objectives_are_mixed_as_their_shares_say,
        a_table_that_finds_no_memory_says_so,
        options_out_of_range_are_refused,
        a_tokenizer_that_does_not_fit_is_refused,
    };
    add_suite("glm_batch", tests);
}
