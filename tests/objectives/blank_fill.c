/* Filling blanks with GLM, against forward passes over the whole sequence; ends, limits, text in
 * and out, errors. */
#include "models/glm.h"
#include "objectives/blank_infilling.h"

#include <math.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "data/internal.h"
#include "models/internal.h"

/* ---- A model of some words ---- */

enum { WORDS = 12, SPECIALS = 5, POSITIONS = 24, MOST = 5 };

typedef struct world {
    wg_tokenizer *tokenizer;
    wg_blank_tokens tokens;
    wg_model model;
} world;

/* Weights so large that the most likely token depends on the whole context. */
static world world_of(uint64_t seed) {
    static const char *const vocabulary[SPECIALS + WORDS] = {
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "sun", "moon", "sea", "sky",
        "a",     "the",   "is",    "red",   "blue",   "##s", ".",    "and"};
    world w = {.tokenizer = wg__wordpiece_new(SPECIALS + WORDS, vocabulary, NULL)};
    ck_assert_int_eq(wg__blank_tokens_of(w.tokenizer, &w.tokens), 0);
    char settings[256]; /* three tokens more, as a vocabulary filled up has them */
    snprintf(settings, sizeof settings,
             "'vocab_size': %d, 'hidden_size': 16, 'num_attention_heads': 2, "
             "'max_sequence_length': %d, 'initializer_range': 0.5",
             (int)w.tokens.vocab_size + 3, POSITIONS);
    w.model = preset_model("glm-tiny", settings, seed);
    return w;
}

static void free_world(world *w) {
    wg_scope_clear_root();
    wg_model_free(&w->model);
    wg_tokenizer_free(w->tokenizer);
}

static wg_token_list encode(const world *w, const char *text) {
    wg_token_list list = {0};
    ck_assert_int_eq(wg__blank_encode(&w->tokens, w->tokenizer, text, &list), 0);
    return list;
}

static const char two_blanks[] = "the sun is [MASK] and the sea is [sMASK] .";
static const char three_blanks[] = "[MASK] is [MASK] and [gMASK]";

static void free_blanks(wg__blank *blanks, int count) {
    for (int i = 0; i < count; i++)
        wg_token_list_free(&blanks[i].tokens);
}

/* ---- The same without caches ---- */

/* A sequence as objectives/blank_infilling.h draws it, computed anew for each token. */
typedef struct sequence {
    int64_t ids[128], positions[128], blocks[128];
    int64_t part_a, count;
} sequence;

static void add(sequence *s, int64_t id, int64_t position, int64_t block) {
    s->ids[s->count] = id;
    s->positions[s->count] = position;
    s->blocks[s->count++] = block;
}

static sequence begin_sequence(const wg_token_list *part_a) {
    sequence s = {.part_a = part_a->count};
    for (int64_t i = 0; i < part_a->count; i++)
        add(&s, part_a->ids[i], i, 0);
    return s;
}

/* The logits (V) after its last token. */
static void whole_logits(const world *w, const sequence *s, float *logits) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *ids = wg_from_array(WG_I64, WG_DIMS(1, s->count), s->ids);
    const wg_model_inputs inputs = {
        .ids = ids,
        .position_ids = wg_from_array(WG_I64, WG_DIMS(1, s->count), s->positions),
        .block_position_ids = wg_from_array(WG_I64, WG_DIMS(1, s->count), s->blocks),
        .part_a = wg_full(WG_I64, WG_DIMS(1), (double)s->part_a)};
    wg_tensor *last = wg_full(WG_I64, WG_DIMS(1), (double)s->count - 1);
    wg_tensor *all = wg_model_logits(&w->model, wg_model_forward(&w->model, &inputs), last);
    ck_assert_int_eq(wg_to_array(wg_detach(all), logits), 0);
    wg_scope_end(&scope, NULL);
}

static bool may_be_written(const world *w, int64_t id, bool first) {
    const wg_blank_tokens *t = &w->tokens;
    if (id == t->end)
        return !first;
    return id < t->tokenizer_size && !wg__blank_is_mask(t, (int32_t)id) && id != t->start &&
           id != t->beginning && id != t->pad;
}

static int32_t likeliest(const world *w, const float *logits, bool first) {
    int32_t best = -1;
    for (int32_t v = 0; v < w->tokens.vocab_size + 3; v++)
        if (may_be_written(w, v, first) && (best < 0 || logits[v] > logits[best]))
            best = v;
    return best;
}

/* Greedy filling by its definition. */
static void fill_plainly(const world *w, const wg_token_list *part_a, wg__blank *blanks) {
    float logits[64];
    sequence s = begin_sequence(part_a);
    for (int64_t place = 0; place < part_a->count; place++) {
        if (!wg__blank_is_mask(&w->tokens, part_a->ids[place]))
            continue;
        wg__blank *blank = blanks++;
        blank->end = WG_END_LENGTH;
        add(&s, w->tokens.start, place, 1);
        while (blank->tokens.count < MOST) {
            whole_logits(w, &s, logits);
            const int32_t id = likeliest(w, logits, blank->tokens.count == 0);
            if (id == w->tokens.end) {
                blank->end = WG_END_STOP;
                break;
            }
            wg_token_list_append(&blank->tokens, id);
            add(&s, id, place, blank->tokens.count + 1);
        }
    }
}

static void assert_same_blanks(const wg__blank *a, const wg__blank *b, int count) {
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(a[i].end, b[i].end);
        ck_assert_int_eq(a[i].tokens.count, b[i].tokens.count);
        ck_assert_mem_eq(a[i].tokens.ids, b[i].tokens.ids,
                         (size_t)a[i].tokens.count * sizeof *a[i].tokens.ids);
    }
}

static void check_fills(const char *text, int blanks, int64_t beam, bool ends[4]) {
    enum { MODELS = 12 };
    for (uint64_t seed = 0; seed < MODELS; seed++) {
        world w = world_of(seed);
        wg_module_train(w.model.module, false);
        wg_token_list part_a = encode(&w, text);
        wg__blank filled[3] = {0}, wanted[3] = {0};
        ck_assert_int_eq(wg__blank_count(&w.tokens, &part_a), blanks);
        const wg__blank_fill_options options = {.max_tokens = MOST, .beam = beam};
        ck_assert_int_eq(wg__blank_fill(&w.model, &w.tokens, &part_a, &options, filled), 0);
        fill_plainly(&w, &part_a, wanted);
        assert_same_blanks(filled, wanted, blanks);
        for (int i = 0; i < blanks; i++)
            ends[filled[i].end] = true;
        free_blanks(filled, 3);
        free_blanks(wanted, 3);
        wg_token_list_free(&part_a);
        free_world(&w);
    }
}

START_TEST(greedy_filling_gives_what_whole_forward_passes_give) {
    bool ends[4] = {false};
    check_fills(two_blanks, 2, 0, ends);
    check_fills(three_blanks, 3, 0, ends);
    ck_assert(ends[WG_END_STOP] && ends[WG_END_LENGTH]);
}
END_TEST

/* Each blank sees the search's results for the blanks before it. */
START_TEST(a_search_with_one_hypothesis_is_greedy) {
    bool ends[4] = {false};
    check_fills(three_blanks, 3, 1, ends);
    ck_assert(ends[WG_END_STOP] && ends[WG_END_LENGTH]);
}
END_TEST

/* ---- Logits ---- */

typedef struct recording {
    const world *w;
    sequence sequence;
    const wg_token_list *part_a;
    int64_t blank, place, heard;
} recording;

/* Compares the logits of each draw with those of a forward pass over everything generated so
 * far. */
static void compare_logits(const wg_generated_token *token, void *context) {
    recording *r = context;
    float wanted[64];
    if (r->blank != token->text) {
        r->blank = token->text;
        do
            r->place++;
        while (!wg__blank_is_mask(&r->w->tokens, r->part_a->ids[r->place]));
        add(&r->sequence, r->w->tokens.start, r->place, 1);
    }
    const int64_t block = r->sequence.blocks[r->sequence.count - 1];
    whole_logits(r->w, &r->sequence, wanted);
    for (int64_t v = 0; v < r->w->tokens.vocab_size + 3; v++)
        if (may_be_written(r->w, v, block == 1))
            ck_assert_double_eq_tol(token->logits[v], wanted[v],
                                    1e-4 * fmax(1, fabs((double)wanted[v])));
        else
            ck_assert(isinf(token->logits[v]) && token->logits[v] < 0);
    add(&r->sequence, token->id, r->place, block + 1);
    r->heard++;
}

START_TEST(logits_with_caches_are_those_of_a_whole_forward_pass) {
    world w = world_of(3);
    wg_token_list part_a = encode(&w, three_blanks);
    recording r = {
        .w = &w, .sequence = begin_sequence(&part_a), .part_a = &part_a, .blank = -1, .place = 0};
    wg__blank blanks[3] = {0};
    const wg__blank_fill_options options = {.max_tokens = 8,
                                            .sampling.temperature = 2,
                                            .generator.seed = 1,
                                            .listener = compare_logits,
                                            .listener_context = &r};
    ck_assert_int_eq(wg__blank_fill(&w.model, &w.tokens, &part_a, &options, blanks), 0);
    int64_t written = 0;
    for (int i = 0; i < 3; i++)
        written += blanks[i].tokens.count;
    ck_assert_int_eq(r.heard, written);
    ck_assert_int_gt(written, 8);
    ck_assert(wg_module_is_training(w.model.module)); /* as before */
    free_blanks(blanks, 3);
    wg_token_list_free(&part_a);
    free_world(&w);
}
END_TEST

/* ---- Draws, searches and limits ---- */

static double log_probability(const world *w, const wg_token_list *part_a, const wg__blank *blank) {
    sequence s = begin_sequence(part_a);
    int64_t place = 0;
    while (!wg__blank_is_mask(&w->tokens, part_a->ids[place]))
        place++;
    add(&s, w->tokens.start, place, 1);
    double sum = 0;
    const int64_t count = blank->tokens.count + (blank->end == WG_END_STOP);
    for (int64_t i = 0; i < count; i++) {
        float logits[64];
        double all = 0;
        const int32_t id = i < blank->tokens.count ? blank->tokens.ids[i] : w->tokens.end;
        whole_logits(w, &s, logits);
        for (int64_t v = 0; v < w->tokens.vocab_size + 3; v++)
            all += may_be_written(w, v, i == 0) ? exp((double)logits[v]) : 0;
        sum += (double)logits[id] - log(all);
        add(&s, id, place, i + 2);
    }
    return sum / pow((5 + (double)count) / 6, 0.6);
}

START_TEST(a_wide_search_finds_no_less_likely_a_text_than_a_greedy_one) {
    int better = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        world w = world_of(seed);
        wg_module_train(w.model.module, false);
        wg_token_list part_a = encode(&w, "the [MASK] is red");
        wg__blank greedy = {0}, wide = {0};
        ck_assert_int_eq(wg__blank_fill(&w.model, &w.tokens, &part_a,
                                        &(wg__blank_fill_options){.max_tokens = MOST}, &greedy),
                         0);
        ck_assert_int_eq(wg__blank_fill(&w.model, &w.tokens, &part_a,
                                        &(wg__blank_fill_options){.max_tokens = MOST, .beam = 200},
                                        &wide),
                         0);
        const double a = log_probability(&w, &part_a, &greedy);
        const double b = log_probability(&w, &part_a, &wide);
        if (greedy.end == wide.end) /* hypotheses that ended are preferred to those that were cut */
            ck_assert_double_ge(b, a - 1e-4);
        better += b > a + 1e-4;
        free_blanks(&greedy, 1);
        free_blanks(&wide, 1);
        wg_token_list_free(&part_a);
        free_world(&w);
    }
    ck_assert_int_gt(better, 0);
}
END_TEST

START_TEST(the_same_seed_draws_the_same_text_and_only_tokens_that_are_text) {
    world w = world_of(5);
    wg_token_list part_a = encode(&w, two_blanks);
    int different = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        wg__blank once[2] = {0}, again[2] = {0}, other[2] = {0};
        wg__blank_fill_options options = {
            .max_tokens = 6, .sampling.temperature = 3, .generator.seed = seed};
        ck_assert_int_eq(wg__blank_fill(&w.model, &w.tokens, &part_a, &options, once), 0);
        ck_assert_int_eq(wg__blank_fill(&w.model, &w.tokens, &part_a, &options, again), 0);
        options.generator.seed += 100;
        ck_assert_int_eq(wg__blank_fill(&w.model, &w.tokens, &part_a, &options, other), 0);
        assert_same_blanks(once, again, 2);
        different += once[0].tokens.ids[0] != other[0].tokens.ids[0];
        for (int b = 0; b < 2; b++) {
            ck_assert_int_ge(once[b].tokens.count, 1);
            for (int64_t i = 0; i < once[b].tokens.count; i++)
                ck_assert(once[b].tokens.ids[i] != w.tokens.end &&
                          may_be_written(&w, once[b].tokens.ids[i], false));
        }
        free_blanks(once, 2);
        free_blanks(again, 2);
        free_blanks(other, 2);
    }
    ck_assert_int_gt(different, 5);
    wg_token_list_free(&part_a);
    free_world(&w);
}
END_TEST

START_TEST(a_blank_has_as_many_tokens_as_the_model_has_positions) {
    world w = world_of(0);
    wg_token_list part_a = encode(&w, two_blanks);
    wg__blank blanks[2] = {0};
    /* An end token whose logit is never the largest. */
    float *row =
        (float *)wg_tensor_data(((wg_glm *)w.model.module)->words->weight) + 16 * w.tokens.end;
    memset(row, 0, 16 * sizeof *row);
    for (int64_t beam = 0; beam < 3; beam += 2) {
        const wg__blank_fill_options options = {.beam = beam, .sampling.repetition_penalty = 1.1};
        ck_assert_int_eq(wg__blank_fill(&w.model, &w.tokens, &part_a, &options, blanks), 0);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_le(blanks[i].tokens.count, POSITIONS - 1);
            ck_assert(blanks[i].end ==
                      (blanks[i].tokens.count < POSITIONS - 1 ? WG_END_STOP : WG_END_POSITIONS));
        }
        ck_assert(blanks[0].end == WG_END_POSITIONS || blanks[1].end == WG_END_POSITIONS);
        free_blanks(blanks, 2);
    }
    wg_token_list_free(&part_a);
    free_world(&w);
}
END_TEST

static volatile sig_atomic_t stop;

static void stop_at_third(const wg_generated_token *token, void *context) {
    (void)token;
    stop = ++*(int *)context == 3;
}

START_TEST(writing_can_be_stopped) {
    world w = world_of(0);
    wg_token_list part_a = encode(&w, three_blanks);
    wg__blank blanks[3] = {0};
    int heard = 0;
    const wg__blank_fill_options options = {.listener = stop_at_third,
                                            .listener_context = &heard,
                                            .sampling.temperature = 1,
                                            .stop = &stop};
    stop = 0;
    ck_assert_int_eq(wg__blank_fill(&w.model, &w.tokens, &part_a, &options, blanks), 0);
    ck_assert_int_eq(heard, 3);
    ck_assert_int_eq(blanks[2].end, WG_END_CANCELLED);
    free_blanks(blanks, 3);
    wg_token_list_free(&part_a);
    free_world(&w);
}
END_TEST

/* ---- Text ---- */

static void assert_ids(const wg_token_list *list, int64_t count, const int32_t *wanted) {
    ck_assert_int_eq(list->count, count);
    ck_assert_mem_eq(list->ids, wanted, (size_t)count * sizeof *wanted);
}

START_TEST(masks_are_read_in_a_text_of_any_tokenizer) {
    world w = world_of(0);
    const wg_blank_tokens *t = &w.tokens;
    wg_token_list list = encode(&w, "[MASK][sMASK] the[gMASK]sun");
    assert_ids(&list, 6,
               (int32_t[]){t->beginning, t->mask, t->sentence_mask, 10, t->document_mask, 5});
    wg_token_list_free(&list);
    free_world(&w);

    wg_tokenizer *bytes =
        wg__bpe_train("a", 1, &(wg_bpe_training){.vocabulary_size = 257, .min_frequency = 9});
    wg_blank_tokens of_bytes;
    ck_assert_int_eq(wg__blank_tokens_of(bytes, &of_bytes), 0);
    /* The space before a mask belongs to the blank, that behind it does not. */
    wg_token_list a = {0}, b = {0};
    ck_assert_int_eq(wg__blank_encode(&of_bytes, bytes, "a [MASK] b[MASK", &a), 0);
    wg_token_list_append(&b, of_bytes.beginning);
    wg_tokenizer_encode(bytes, "a", -1, NULL, &b);
    wg_token_list_append(&b, of_bytes.mask);
    wg_tokenizer_encode(bytes, " b[MASK", -1, NULL, &b);
    assert_ids(&a, b.count, b.ids);
    wg_token_list_free(&b);
    assert_fails(wg__blank_encode(&of_bytes, bytes, "fine [MASK] \xff", &a), WG_ERROR_FORMAT,
                 "UTF-8");
    ck_assert_int_gt(a.count, 0);
    wg_token_list_free(&a);
    wg_tokenizer_free(bytes);
}
END_TEST

static void assert_filled(const wg_tokenizer *tokenizer, const char *text,
                          const wg_token_list *blanks, const char *wanted) {
    char *filled = wg__blank_filled_text(tokenizer, text, blanks);
    ck_assert_str_eq(filled, wanted);
    wg_text_free(filled);
}

START_TEST(a_filled_text_is_the_text_with_words_in_its_blanks) {
    world w = world_of(0);
    int32_t red[] = {12}, suns[] = {10, 5, 14, 11};
    const wg_token_list blanks[] = {{.ids = suns, .count = 4}, {.ids = red, .count = 1}};
    assert_filled(w.tokenizer, "Look: [MASK]  [sMASK]!", blanks, "Look: the suns is  red!");
    assert_filled(w.tokenizer, "No blank", blanks, "No blank");
    free_world(&w);

    wg_tokenizer *bytes =
        wg__bpe_train("a", 1, &(wg_bpe_training){.vocabulary_size = 257, .min_frequency = 9});
    wg_token_list written[2] = {{0}, {0}};
    wg_tokenizer_encode(bytes, " b", -1, NULL, &written[0]);
    wg_tokenizer_encode(bytes, " c", -1, NULL, &written[1]);
    assert_filled(bytes, "a [MASK], or[gMASK]", written, "a b, or c");
    wg_token_list_free(&written[0]);
    wg_token_list_free(&written[1]);
    wg_tokenizer_free(bytes);

    /* no spaces between Chinese characters */
    static const char *const tokens[] = {"[UNK]", "\u5317", "\u4eac", "\uff0c", "\u6211"};
    wg_tokenizer *chinese = wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL);
    int32_t ids[] = {1, 2, 3, 4};
    assert_filled(chinese, "\u6211\u611b[MASK]\u3002", &(wg_token_list){.ids = ids, .count = 4},
                  "\u6211\u611b\u5317\u4eac\uff0c\u6211\u3002");
    wg_tokenizer_free(chinese);
}
END_TEST

/* ---- Errors ---- */

static void assert_refused(const world *w, const char *text, wg__blank_fill_options options,
                           wg_error_code code, const char *message) {
    wg_token_list part_a = encode(w, text);
    wg__blank blank = {0};
    assert_fails(wg__blank_fill(&w->model, &w->tokens, &part_a, &options, &blank), code, message);
    wg_token_list_free(&blank.tokens);
    wg_token_list_free(&part_a);
}

START_TEST(what_cannot_be_filled_is_refused) {
    world w = world_of(0);
    const wg__blank_fill_options good = {0};
    assert_refused(&w, "the sun", good, WG_ERROR_ARGUMENT, "no blank in the text");
    char text[512] = "[MASK]";
    for (int i = 0; i < POSITIONS - 1; i++)
        strcat(text, " sun");
    assert_refused(&w, text, good, WG_ERROR_ARGUMENT, "has 25 tokens, and the model has 24");
    assert_refused(&w, "[MASK]", (wg__blank_fill_options){.beam = -1}, WG_ERROR_ARGUMENT, "beam");
    assert_refused(&w, "[MASK]", (wg__blank_fill_options){.max_tokens = -1}, WG_ERROR_ARGUMENT,
                   "max_tokens -1");
    assert_refused(&w, "[MASK]", (wg__blank_fill_options){.sampling.temperature = -1},
                   WG_ERROR_ARGUMENT, "temperature");
    world larger = w;
    larger.tokens.vocab_size += 4;
    assert_refused(&larger, "[MASK]", good, WG_ERROR_ARGUMENT, "vocabulary holds 24");
    wg_token_list part_a = encode(&w, "[MASK]");
    part_a.ids[0] = 24;
    wg__blank blank = {0};
    const wg__blank_fill_options none = {0};
    assert_fails(wg__blank_fill(&w.model, &w.tokens, &part_a, &none, &blank), WG_ERROR_INDEX, "24");
    wg_token_list_free(&part_a);
    *(float *)wg_tensor_data(((wg_glm *)w.model.module)->norm->bias) = NAN;
    assert_refused(&w, "[MASK]", good, WG_ERROR_ARGUMENT, "");
    assert_refused(&w, "[MASK]", (wg__blank_fill_options){.beam = 2}, WG_ERROR_ARGUMENT, "");
    free_world(&w);
}
END_TEST

START_TEST(a_fill_that_finds_no_memory_leaves_nothing_behind) {
    world w = world_of(1);
    for (int64_t beam = 0; beam < 3; beam += 2) {
        const int64_t live = wg_alloc_get_stats().live_blocks;
        int failures = 0;
        for (bool done = false; !done;) {
            wg_token_list part_a = {0};
            wg__blank blanks[2] = {0};
            const wg__blank_fill_options options = {.max_tokens = 2, .beam = beam};
            char *text = NULL;
            wg__alloc_fail_after(failures);
            if (wg__blank_encode(&w.tokens, w.tokenizer, two_blanks, &part_a) == 0 &&
                wg__blank_fill(&w.model, &w.tokens, &part_a, &options, blanks) == 0)
                text = wg__blank_filled_text(w.tokenizer, two_blanks,
                                             (wg_token_list[]){blanks[0].tokens, blanks[1].tokens});
            wg__alloc_fail_after(-1);
            done = text != NULL;
            if (!done)
                assert_error(WG_ERROR_MEMORY, "");
            failures += !done;
            wg_text_free(text);
            free_blanks(blanks, 2);
            wg_token_list_free(&part_a);
            ck_assert_int_eq(wg_alloc_get_stats().live_blocks, live);
        }
        ck_assert_int_gt(failures, 50);
    }
    free_world(&w);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        greedy_filling_gives_what_whole_forward_passes_give,
        a_search_with_one_hypothesis_is_greedy,
        logits_with_caches_are_those_of_a_whole_forward_pass,
        a_wide_search_finds_no_less_likely_a_text_than_a_greedy_one,
        the_same_seed_draws_the_same_text_and_only_tokens_that_are_text,
        a_blank_has_as_many_tokens_as_the_model_has_positions,
        writing_can_be_stopped,
        masks_are_read_in_a_text_of_any_tokenizer,
        a_filled_text_is_the_text_with_words_in_its_blanks,
        what_cannot_be_filled_is_refused,
        a_fill_that_finds_no_memory_leaves_nothing_behind,
    };
    add_suite("glm fill", tests);
}
