/* Beam search: see beam.h.
 *
 * Letters: R rows, V the vocabulary, B sources of up to S tokens of encoder-decoders. The rows of a
 * sentence are adjacent, the likeliest first, and all rows have the same number of tokens. */
#include "models/generate/beam.h"

#include <math.h>
#include <string.h>

#include "tensor/easy.h"
#include "models/internal.h"

#define WHERE "beam_search"

/* An open hypothesis, one without an end token. */
typedef struct row {
    int64_t sentence;
    double log_probability;
} row;

/* A hypothesis and a token that may follow it. */
typedef struct candidate {
    int64_t row;
    int32_t token;
    double log_probability; /* of both */
} candidate;

typedef struct search {
    const wg_beam_model *model;
    wg_beam_options options; /* with the defaults filled in */
    const int64_t *max_lengths;
    wg_beam_result *results;
    int64_t longest;              /* of max_lengths */
    int64_t length;               /* tokens of each row, start not counted */
    int64_t rows, new_rows;       /* R, of this step and the next */
    row *alive, *new_alive;       /* (R) */
    int32_t *tokens, *new_tokens; /* (R, longest) */
    int32_t *last;                /* (R) the newest token of each */
    int64_t *from;  /* (R) for each row of the next step, the row of this step that it continues */
    int64_t *ended; /* (sentences) how many hypotheses have ended */
    float *log_probabilities; /* (R, V) */
    candidate *candidates;    /* (2 beam) of a sentence, the likeliest first */
} search;

static int check_token(const char *what, int32_t id, const wg_beam_model *model) {
    if (id >= 0 && id < model->vocabulary)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s %ld is outside the vocabulary of %lld", what,
                   (long)id, (long long)model->vocabulary);
}

static int check(const wg_beam_model *model, int64_t sentences, const int64_t *max_lengths,
                 const wg_beam_options *options) {
    if (options->beam < 0)
        return wg__settings_refuse(WHERE, "beam", (double)options->beam, "at least 1");
    if (options->max_length < 0)
        return wg__settings_refuse(WHERE, "max_length", (double)options->max_length, "at least 1");
    if (!(options->alpha >= 0 && isfinite(options->alpha)))
        return wg__settings_refuse(WHERE, "alpha", options->alpha, "a number from 0 on");
    for (int64_t i = 0; i < sentences; i++)
        if (max_lengths[i] < 1)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "max_length %lld of sentence %lld; it must be at least 1",
                           (long long)max_lengths[i], (long long)i);
    return check_token("start_id", options->start_id, model) < 0
               ? -1
               : check_token("end_id", options->end_id, model);
}

/* The largest number of tokens of a hypothesis, the end included. */
static int64_t most_tokens(const search *s, int64_t sentence) {
    const int64_t most = s->max_lengths[sentence], limit = s->options.max_length;
    return limit > 0 && limit < most ? limit : most;
}

/* Inserts a candidate among the `count` likeliest so far; returns their new number. */
static int64_t insert(search *s, int64_t count, candidate new) {
    const int64_t most = 2 * s->options.beam;
    if (count == most) {
        if (new.log_probability <= s->candidates[most - 1].log_probability)
            return count;
        count--;
    }
    int64_t at = count;
    for (; at > 0 && s->candidates[at - 1].log_probability < new.log_probability; at--)
        s->candidates[at] = s->candidates[at - 1];
    s->candidates[at] = new;
    return count + 1;
}

/* Finds the 2 beam likeliest continuations of the rows `first` to `stop` - 1. At least `beam` of
 * them do not end, since each of `beam` rows has one end token. Returns their number, or -1. */
static int64_t choose(search *s, int64_t first, int64_t stop) {
    const int64_t vocabulary = s->model->vocabulary;
    int64_t count = 0;
    for (int64_t r = first; r < stop; r++)
        for (int64_t v = 0; v < vocabulary; v++) {
            const float p = s->log_probabilities[r * vocabulary + v];
            if (isnan(p) || p == INFINITY)
                return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the model gives token %lld %g",
                               (long long)v, (double)p);
            if (p == -INFINITY)
                continue;
            const candidate new = {r, (int32_t)v, s->alive[r].log_probability + (double)p};
            count = insert(s, count, new);
        }
    if (count == 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the model gives no token that may follow in sentence %lld",
                       (long long)s->alive[first].sentence);
    return count;
}

static double score(const search *s, double log_probability, int64_t length) {
    return log_probability / pow((5 + (double)length) / 6, s->options.alpha);
}

/* Makes the hypothesis of `best` the sentence's result if it has the highest score so far. */
static int offer(search *s, int64_t sentence, const candidate *best, bool ended) {
    wg_beam_result *result = &s->results[sentence];
    const double value = score(s, best->log_probability, s->length);
    if (s->ended[sentence] > 0 && value <= result->score)
        return 0;
    result->log_probability = best->log_probability;
    result->score = value;
    result->ended = ended;
    result->tokens.count = 0;
    for (int64_t t = 0; t + 1 < s->length; t++)
        if (wg_token_list_append(&result->tokens, s->tokens[best->row * s->longest + t]) < 0)
            return -1;
    return ended ? 0 : wg_token_list_append(&result->tokens, best->token);
}

static int advance(search *s, int64_t first, int64_t stop) {
    const int64_t sentence = s->alive[first].sentence, beam = s->options.beam;
    const int64_t count = choose(s, first, stop), before = s->new_rows;
    if (count < 0)
        return -1;
    const candidate *next = NULL;
    for (int64_t i = 0; i < count; i++) {
        const candidate *c = &s->candidates[i];
        if (c->token != s->options.end_id) {
            if (s->new_rows - before < beam) {
                const int64_t r = s->new_rows++;
                int32_t *tokens = s->new_tokens + r * s->longest;
                memcpy(tokens, s->tokens + c->row * s->longest,
                       (size_t)(s->length - 1) * sizeof *tokens);
                tokens[s->length - 1] = c->token;
                s->new_alive[r] = (row){s->alive[c->row].sentence, c->log_probability};
                s->from[r] = c->row;
            }
            next = next ? next : c;
        } else if (i < beam) { /* an end must be among the likeliest, as any other token */
            if (offer(s, sentence, c, true) < 0)
                return -1;
            s->ended[sentence]++;
        }
    }
    const int64_t most = most_tokens(s, sentence), ended = s->ended[sentence];
    if (next && s->length < most && ended < beam &&
        (ended == 0 || score(s, next->log_probability, most) > s->results[sentence].score))
        return 0; /* an open row can still become the result */
    s->new_rows = before;
    return ended > 0 || !next ? 0 : offer(s, sentence, next, false);
}

static int step(search *s) {
    if (s->model->step(s->model->context, s->rows, s->last, s->log_probabilities) < 0)
        return -1;
    s->length++;
    s->new_rows = 0;
    for (int64_t first = 0, stop; first < s->rows; first = stop) {
        for (stop = first + 1;
             stop < s->rows && s->alive[stop].sentence == s->alive[first].sentence;)
            stop++;
        if (advance(s, first, stop) < 0)
            return -1;
    }
    bool same_rows = s->new_rows == s->rows;
    for (int64_t r = 0; r < s->new_rows; r++)
        same_rows = same_rows && s->from[r] == r;
    if (s->new_rows > 0 && !same_rows &&
        s->model->reorder(s->model->context, s->new_rows, s->from) < 0)
        return -1;
    row *alive = s->alive;
    s->alive = s->new_alive;
    s->new_alive = alive;
    int32_t *tokens = s->tokens;
    s->tokens = s->new_tokens;
    s->new_tokens = tokens;
    s->rows = s->new_rows;
    for (int64_t r = 0; r < s->rows; r++)
        s->last[r] = s->tokens[r * s->longest + s->length - 1];
    return 0;
}

int wg__beam_search(const wg_beam_model *model, int64_t sentences, const int64_t *max_lengths,
                    const wg_beam_options *options, wg_beam_result *results) {
    for (int64_t i = 0; i < sentences; i++)
        results[i] = (wg_beam_result){0};
    if (sentences < 1)
        return 0;
    if (check(model, sentences, max_lengths, options) < 0)
        return -1;
    search s = {
        .model = model, .options = *options, .max_lengths = max_lengths, .results = results};
    if (s.options.beam == 0)
        s.options.beam = 4;
    s.options.alpha = wg__option(s.options.alpha, 0.6);
    for (int64_t i = 0; i < sentences; i++)
        s.longest = wg__larger(s.longest, most_tokens(&s, i));
    const size_t rows = (size_t)wg__times(sentences, s.options.beam);
    s.alive = wg__alloc_array(rows, sizeof *s.alive);
    s.new_alive = wg__alloc_array(rows, sizeof *s.new_alive);
    s.tokens = wg__alloc_array(wg__times(rows, s.longest), sizeof *s.tokens);
    s.new_tokens = wg__alloc_array(wg__times(rows, s.longest), sizeof *s.new_tokens);
    s.last = wg__alloc_array(rows, sizeof *s.last);
    s.from = wg__alloc_array(rows, sizeof *s.from);
    s.ended = wg__calloc((size_t)sentences, sizeof *s.ended);
    s.log_probabilities =
        wg__alloc_array(wg__times(rows, model->vocabulary), sizeof *s.log_probabilities);
    s.candidates = wg__alloc_array(wg__times(2, (size_t)s.options.beam), sizeof *s.candidates);
    int result = s.alive && s.new_alive && s.tokens && s.new_tokens && s.last && s.from &&
                         s.ended && s.log_probabilities && s.candidates
                     ? 0
                     : -1;
    for (int64_t i = 0; result == 0 && i < sentences; i++) {
        s.alive[i] = (row){.sentence = i};
        s.last[i] = s.options.start_id;
    }
    s.rows = sentences;
    while (result == 0 && s.rows > 0)
        result = step(&s);
    wg__free(s.alive);
    wg__free(s.new_alive);
    wg__free(s.tokens);
    wg__free(s.new_tokens);
    wg__free(s.last);
    wg__free(s.from);
    wg__free(s.ended);
    wg__free(s.log_probabilities);
    wg__free(s.candidates);
    return result;
}

typedef struct model_search {
    const wg_model *model;
    const wg_beam_rules *rules;
    wg_model_inputs inputs; /* `memory_keep` is kept */
    int64_t layers;
} model_search;

static int model_step(void *context, int64_t rows, const int32_t *last, float *log_probabilities) {
    model_search *s = context;
    wg_scope scope;
    wg_scope_begin(&scope);
    s->inputs.ids = wg_from_array(WG_I32, WG_DIMS(rows, 1), last);
    wg_tensor *hidden = wg_model_forward(s->model, &s->inputs);
    wg_tensor *logits = wg_cast(wg_model_logits(s->model, hidden, NULL), WG_F32);
    int result = wg_to_array(wg_log_softmax(logits, -1), log_probabilities);
    wg_scope_end(&scope, NULL);
    if (result == 0 && s->rules)
        s->rules->restrict_rows(s->rules->context, rows, last, log_probabilities);
    return result;
}

static int model_reorder(void *context, int64_t rows, const int64_t *from) {
    model_search *s = context;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(rows), from);
    int result = index ? 0 : -1;
    if (index && s->inputs.memory_keep) {
        wg_tensor *keep = wg_index_select(s->inputs.memory_keep, 0, index);
        result = keep ? 0 : -1;
        if (keep) {
            wg_release(s->inputs.memory_keep);
            s->inputs.memory_keep = wg_keep(keep);
        }
    }
    for (int64_t i = 0; result == 0 && i < s->layers; i++)
        if (wg__kv_cache_reorder(&s->inputs.caches[i], index) < 0 ||
            wg__kv_cache_reorder(&s->inputs.memory_caches[i], index) < 0)
            result = -1;
    wg_scope_end(&scope, NULL);
    if (result == 0 && s->rules)
        s->rules->reorder(s->rules->context, rows, from);
    return result;
}

int wg__model_search(const wg_model *model, wg_tensor *source, wg_tensor *keep,
                     const int64_t *max_lengths, const wg_beam_options *options,
                     wg_beam_result *results) {
    if (!source)
        return -1;
    for (int64_t i = 0; i < wg_tensor_size(source, 0); i++)
        results[i] = (wg_beam_result){0};
    const wg_model_sizes sizes = wg_model_sizes_of(model);
    wg_beam_options all = options ? *options : (wg_beam_options){0};
    all.start_id = (int32_t)sizes.start_id;
    all.end_id = (int32_t)sizes.end_id;
    model_search s = {.model = model, .rules = all.rules, .layers = sizes.layers};
    const bool recorded = wg_set_grad_enabled(false);
    const bool training = wg_module_is_training(model->module);
    wg_module_train(model->module, false);
    const size_t layers = (size_t)s.layers;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_kv_cache *caches = wg__calloc((size_t)wg__times(2, layers), sizeof *caches);
    s.inputs.caches = caches;
    s.inputs.memory_caches = caches ? caches + layers : NULL;
    s.inputs.memory = caches ? wg_model_encode(model, source, keep) : NULL;
    s.inputs.memory_keep = s.inputs.memory && keep ? wg_keep(wg_alias(keep)) : NULL;
    int result = s.inputs.memory && (!keep || s.inputs.memory_keep) ? 0 : -1;
    int64_t longest = 0;
    for (int64_t i = 0; i < wg_tensor_size(source, 0); i++)
        longest = wg__larger(longest, max_lengths[i]);
    for (int64_t i = 0; result == 0 && i < s.layers; i++) {
        wg_kv_cache_init(&s.inputs.caches[i], longest);
        wg_kv_cache_init(&s.inputs.memory_caches[i], wg_tensor_size(source, 1));
    }
    const wg_beam_model seen = {.context = &s,
                                .vocabulary = sizes.vocabulary,
                                .step = model_step,
                                .reorder = model_reorder};
    if (result == 0)
        result = wg__beam_search(&seen, wg_tensor_size(source, 0), max_lengths, &all, results);
    for (size_t i = 0; caches && i < 2 * layers; i++)
        wg_kv_cache_clear(&caches[i]);
    wg_release(s.inputs.memory_keep);
    wg__free(caches);
    wg_scope_end(&scope, NULL);
    wg_module_train(model->module, training);
    wg_set_grad_enabled(recorded);
    return result;
}
