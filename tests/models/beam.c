/* Beam search over small random models whose probabilities depend on the whole history: against
 * exhaustive and greedy search, and where it cannot continue. */
#include <math.h>
#include <string.h>

#include "models/generate/beam.h"
#include "tensor/random.h"
#include "tests/support/testing.h"
#include "models/internal.h"

/* The tokens are 0 .. V-1; END ends, START is never generated. WIDE is more than the number of
 * hypotheses. */
enum { V = 5, END = 3, START = 4, LONGEST = 5, ROWS = 1024, WIDE = 200 };

/* ---- The model ---- */

/* The rows are the histories, with the seed of their sentence. */
typedef struct history {
    uint64_t seed;
    int32_t tokens[LONGEST + 1]; /* START first */
    int count;
} history;

typedef struct toy {
    history rows[ROWS], copies[ROWS];
    bool never_ends;
    double broken; /* log probability of token 0, if not 0 */
    int steps;
} toy;

/* The log probabilities after a history: a softmax of normal numbers seeded by its hash. */
static void follow(const toy *model, const history *h, float *out) {
    uint64_t hash = h->seed;
    for (int i = 0; i < h->count; i++)
        hash = (hash ^ (uint64_t)(h->tokens[i] + 1)) * 1099511628211u;
    wg_generator generator = {.seed = hash};
    wg_tensor *x = wg_randn(&generator, WG_F64, WG_DIMS(V));
    double logits[V], sum = 0;
    wg_to_array(x, logits);
    logits[START] = -INFINITY;
    if (model->never_ends)
        logits[END] = -INFINITY;
    for (int v = 0; v < V; v++)
        sum += exp(2 * logits[v]);
    for (int v = 0; v < V; v++)
        out[v] = (float)(2 * logits[v] - log(sum));
    if (model->broken != 0)
        out[0] = (float)model->broken;
}

static int toy_step(void *context, int64_t rows, const int32_t *last, float *log_probabilities) {
    toy *model = context;
    model->steps++;
    for (int64_t r = 0; r < rows; r++) {
        history *h = &model->rows[r];
        h->tokens[h->count++] = last[r];
        wg_scope scope;
        wg_scope_begin(&scope);
        follow(model, h, log_probabilities + r * V);
        wg_scope_end(&scope, NULL);
    }
    return 0;
}

static int toy_reorder(void *context, int64_t rows, const int64_t *from) {
    toy *model = context;
    memcpy(model->copies, model->rows, sizeof model->rows);
    for (int64_t r = 0; r < rows; r++)
        model->rows[r] = model->copies[from[r]];
    return 0;
}

static toy *toy_of(uint64_t seed) {
    static toy model;
    memset(&model, 0, sizeof model);
    for (int r = 0; r < ROWS; r++)
        model.rows[r].seed = seed + (uint64_t)r;
    return &model;
}

static int run(toy *model, int64_t sentences, const int64_t *lengths, wg_beam_options options,
               wg_beam_result *results) {
    const wg_beam_model seen = {model, V, toy_step, toy_reorder};
    options.start_id = START;
    options.end_id = END;
    return wg__beam_search(&seen, sentences, lengths, &options, results);
}

static wg_beam_result run_one(uint64_t seed, int64_t length, wg_beam_options options) {
    wg_beam_result result;
    ck_assert_int_eq(run(toy_of(seed), 1, &length, options, &result), 0);
    return result;
}

/* ---- Exhaustive search ---- */

typedef struct best {
    int32_t tokens[LONGEST];
    int count;
    double score, log_probability;
} best;

static double score_of(double log_probability, int length, const wg_beam_options *options) {
    const double alpha = options->alpha == 0 ? 0.6 : options->alpha;
    return options->alpha == WG_ZERO ? log_probability
                                     : log_probability / (pow(5 + length, alpha) / pow(6, alpha));
}

/* Visits all sequences that begin with h and end within LONGEST tokens. */
static void exhaust(history h, double log_probability, const wg_beam_options *options,
                    best *found) {
    static const toy plain;
    float p[V];
    follow(&plain, &h, p);
    const double ended = log_probability + (double)p[END];
    const double score = score_of(ended, h.count, options);
    if (score > found->score) {
        found->score = score;
        found->log_probability = ended;
        found->count = h.count - 1;
        memcpy(found->tokens, h.tokens + 1, sizeof found->tokens);
    }
    if (h.count == LONGEST)
        return;
    for (int32_t v = 0; v < END; v++) {
        history longer = h;
        longer.tokens[longer.count++] = v;
        exhaust(longer, log_probability + (double)p[v], options, found);
    }
}

static best exhaust_all(uint64_t seed, const wg_beam_options *options) {
    best found = {.score = -INFINITY};
    exhaust((history){.seed = seed, .tokens = {START}, .count = 1}, 0, options, &found);
    return found;
}

static const wg_beam_options penalties[] = {{0}, {.alpha = WG_ZERO}, {.alpha = 1}, {.alpha = 3}};

START_TEST(a_wide_beam_finds_what_exhaustive_search_finds) {
    for (size_t p = 0; p < WG_COUNT(penalties); p++)
        for (uint64_t seed = 1; seed <= 12; seed++) {
            wg_beam_options options = penalties[p];
            const best wanted = exhaust_all(seed, &options);
            options.beam = WIDE;
            wg_beam_result result = run_one(seed, LONGEST, options);
            ck_assert(result.ended);
            ck_assert_int_eq(result.tokens.count, wanted.count);
            for (int i = 0; i < wanted.count; i++)
                ck_assert_int_eq(result.tokens.ids[i], wanted.tokens[i]);
            ck_assert_double_eq_tol(result.log_probability, wanted.log_probability, 1e-12);
            ck_assert_double_eq_tol(result.score, wanted.score, 1e-12);
            wg_token_list_free(&result.tokens);
        }
}
END_TEST

/* ---- Greedy ---- */

START_TEST(a_beam_of_one_is_greedy) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        static const toy plain;
        history h = {.seed = seed, .tokens = {START}, .count = 1};
        double log_probability = 0;
        bool ended = false;
        while (!ended && h.count <= LONGEST) {
            float p[V];
            follow(&plain, &h, p);
            int32_t likeliest = 0;
            for (int32_t v = 1; v < V; v++)
                likeliest = p[v] > p[likeliest] ? v : likeliest;
            log_probability += (double)p[likeliest];
            ended = likeliest == END;
            if (!ended)
                h.tokens[h.count++] = likeliest;
        }
        wg_beam_result result = run_one(seed, LONGEST, (wg_beam_options){.beam = 1});
        ck_assert_int_eq(result.ended, ended);
        ck_assert_int_eq(result.tokens.count, h.count - 1);
        for (int i = 0; i + 1 < h.count; i++)
            ck_assert_int_eq(result.tokens.ids[i], h.tokens[i + 1]);
        ck_assert_double_eq_tol(result.log_probability, log_probability, 1e-12);
        wg_token_list_free(&result.tokens);
    }
}
END_TEST

/* ---- Several sentences ---- */

START_TEST(sentences_of_a_batch_are_searched_as_each_alone) {
    static const int64_t lengths[] = {5, 1, 3, 5, 4, 2, 5, 5};
    enum { SENTENCES = WG_COUNT(lengths), FIRST = 70 };
    wg_beam_result together[SENTENCES];
    const wg_beam_options options = {.beam = 3};
    ck_assert_int_eq(run(toy_of(FIRST), SENTENCES, lengths, options, together), 0);
    for (int i = 0; i < SENTENCES; i++) {
        wg_beam_result alone = run_one(FIRST + (uint64_t)i, lengths[i], options);
        ck_assert_int_eq(alone.ended, together[i].ended);
        ck_assert_double_eq(alone.score, together[i].score);
        ck_assert_int_eq(alone.tokens.count, together[i].tokens.count);
        ck_assert_int_le(alone.tokens.count + alone.ended, lengths[i]);
        for (int64_t t = 0; t < alone.tokens.count; t++)
            ck_assert_int_eq(alone.tokens.ids[t], together[i].tokens.ids[t]);
        wg_token_list_free(&alone.tokens);
        wg_token_list_free(&together[i].tokens);
    }
}
END_TEST

/* ---- Ends ---- */

START_TEST(what_does_not_end_is_cut_at_its_longest) {
    const int64_t length = 4;
    toy *model = toy_of(3);
    model->never_ends = true;
    wg_beam_result result;
    ck_assert_int_eq(run(model, 1, &length, (wg_beam_options){.beam = 2}, &result), 0);
    ck_assert(!result.ended);
    ck_assert_int_eq(result.tokens.count, length);
    ck_assert_double_eq_tol(result.score, result.log_probability / pow(9.0 / 6, 0.6), 1e-12);
    ck_assert_int_eq(model->steps, length);
    wg_token_list_free(&result.tokens);
}
END_TEST

START_TEST(a_search_stops_when_nothing_can_become_better) {
    int64_t length = LONGEST, steps = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        toy *model = toy_of(seed);
        wg_beam_result result;
        const wg_beam_options options = {.beam = WIDE, .alpha = WG_ZERO};
        ck_assert_int_eq(run(model, 1, &length, options, &result), 0);
        steps += model->steps;
        wg_token_list_free(&result.tokens);
    }
    ck_assert_int_lt(steps, 12 * LONGEST);
}
END_TEST

/* ---- Errors ---- */

START_TEST(probabilities_that_are_no_numbers_are_refused) {
    const int64_t length = LONGEST;
    wg_beam_result result;
    toy *model = toy_of(1);
    model->broken = NAN;
    assert_fails(run(model, 1, &length, (wg_beam_options){0}, &result), WG_ERROR_ARGUMENT,
                 "the model gives token 0 nan");
    wg_token_list_free(&result.tokens);
}
END_TEST

static int say_nothing(void *context, int64_t rows, const int32_t *last, float *p) {
    (void)context;
    (void)last;
    for (int64_t i = 0; i < rows * V; i++)
        p[i] = -INFINITY;
    return 0;
}

static int break_off(void *context, int64_t rows, const int32_t *last, float *p) {
    (void)context;
    (void)rows;
    (void)last;
    (void)p;
    return wg_fail(WG_ERROR_IO, "toy", "gone");
}

START_TEST(a_model_that_gives_nothing_or_fails_ends_the_search) {
    const int64_t length = LONGEST;
    const wg_beam_options options = {.start_id = START, .end_id = END};
    wg_beam_result result;
    const wg_beam_model silent = {NULL, V, say_nothing, toy_reorder};
    assert_fails(wg__beam_search(&silent, 1, &length, &options, &result), WG_ERROR_ARGUMENT,
                 "the model gives no token that may follow in sentence 0");
    const wg_beam_model broken = {NULL, V, break_off, toy_reorder};
    assert_fails(wg__beam_search(&broken, 1, &length, &options, &result), WG_ERROR_IO, "gone");
}
END_TEST

START_TEST(options_that_cannot_be_are_refused) {
    int64_t length = LONGEST;
    wg_beam_result result;
    assert_fails(run(toy_of(1), 1, &length, (wg_beam_options){.beam = -1}, &result),
                 WG_ERROR_ARGUMENT, "beam is -1");
    assert_fails(run(toy_of(1), 1, &length, (wg_beam_options){.alpha = -1}, &result),
                 WG_ERROR_ARGUMENT, "alpha is -1");
    length = 0;
    assert_fails(run(toy_of(1), 1, &length, (wg_beam_options){0}, &result), WG_ERROR_ARGUMENT,
                 "max_length 0 of sentence 0");
    length = 1;
    const wg_beam_model seen = {toy_of(1), V, toy_step, toy_reorder};
    const wg_beam_options foreign = {.start_id = START, .end_id = V};
    assert_fails(wg__beam_search(&seen, 1, &length, &foreign, &result), WG_ERROR_ARGUMENT,
                 "end_id 5 is outside the vocabulary of 5");
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_wide_beam_finds_what_exhaustive_search_finds,
        a_beam_of_one_is_greedy,
        sentences_of_a_batch_are_searched_as_each_alone,
        what_does_not_end_is_cut_at_its_longest,
        a_search_stops_when_nothing_can_become_better,
        probabilities_that_are_no_numbers_are_refused,
        a_model_that_gives_nothing_or_fails_ends_the_search,
        options_that_cannot_be_are_refused,
    };
    add_suite("beam", tests);
}
