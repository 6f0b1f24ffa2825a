/* Sampling tokens and continuing texts: see decode.h.
 *
 * Letters: R rows of the batch (texts that have not ended), T new positions, V logits. */
#include "models/generate/decode.h"

#include <float.h>
#include <math.h>

#include "base/array.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "models/internal.h"

#define WHERE "generate"

/* ---- Sampling ---- */

int wg__sampling_validate(const wg_sampling *s) {
    const struct {
        const char *name;
        double value, most;
    } rows[] = {{"temperature", s->temperature, DBL_MAX},
                {"top_k", (double)s->top_k, DBL_MAX},
                {"top_p", s->top_p, 1},
                {"min_p", s->min_p, 1},
                {"repetition_penalty", s->repetition_penalty, DBL_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(rows[i].value >= 0 && rows[i].value <= rows[i].most))
            return wg__settings_refuse("sampling", rows[i].name, rows[i].value,
                                       rows[i].most == 1 ? "from 0 to 1" : "0 or more");
    return 0;
}

static int64_t likeliest(int64_t count, const double *scores) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

/* Sets all weights to 0 but the likeliest, as top_k and top_p say. */
static int keep_likeliest(const wg_sampling *sampling, int64_t count, double *weights) {
    int64_t *order = wg__sorted_indices(0, count, wg__largest_first, weights);
    if (!order)
        return -1;
    const int64_t most = sampling->top_k > 0 && sampling->top_k < count ? sampling->top_k : count;
    int64_t kept = most; /* in the order of the weights */
    if (sampling->top_p != 0 && sampling->top_p != 1) {
        double total = 0, before = 0;
        for (int64_t i = 0; i < most; i++)
            total += weights[order[i]];
        for (kept = 0; kept < most && before < sampling->top_p * total; kept++)
            before += weights[order[kept]];
    }
    for (int64_t i = kept; i < count; i++)
        weights[order[i]] = 0;
    wg__free(order);
    return 0;
}

int wg__sampling_probabilities(const wg_sampling *sampling, int64_t count, const float *logits,
                               int64_t seen_count, const int32_t *seen, double *probabilities) {
    if (wg__sampling_validate(sampling) < 0)
        return -1;
    bool any = false;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return wg_fail(WG_ERROR_ARGUMENT, "sampling",
                           "the logit of token %lld is %g; the model is broken", (long long)i,
                           (double)logits[i]);
        any = any || logits[i] > -INFINITY;
    }
    if (!any)
        return wg_fail(WG_ERROR_ARGUMENT, "sampling", "no token has a logit above -inf");
    double *weights = probabilities;
    for (int64_t i = 0; i < count; i++)
        weights[i] = logits[i];
    for (int64_t i = 0; sampling->repetition_penalty != 0 && i < seen_count; i++) {
        if (seen[i] < 0 || seen[i] >= count)
            return wg_fail(WG_ERROR_INDEX, "sampling",
                           "token %ld was seen; there are logits of %lld", (long)seen[i],
                           (long long)count);
        const double logit = logits[seen[i]];
        weights[seen[i]] =
            logit > 0 ? logit / sampling->repetition_penalty : logit * sampling->repetition_penalty;
    }
    const int64_t best = likeliest(count, weights);
    const double highest = weights[best]; /* weights are relative to it, so that none overflows */
    for (int64_t i = 0; i < count; i++)
        weights[i] = sampling->temperature == 0
                         ? i == best
                         : exp((weights[i] - highest) / sampling->temperature);
    const bool sorts = sampling->top_k > 0 || (sampling->top_p > 0 && sampling->top_p < 1);
    if (sorts && sampling->temperature > 0 && keep_likeliest(sampling, count, weights) < 0)
        return -1;
    double total = 0;
    for (int64_t i = 0; i < count; i++) {
        weights[i] = weights[i] < sampling->min_p ? 0 : weights[i];
        total += weights[i];
    }
    for (int64_t i = 0; i < count; i++)
        weights[i] /= total;
    return 0;
}

/* Draws a token: the tokens divide [0, 1) by their probabilities. Rounding may leave a gap at the
 * end, which belongs to the last token with a probability above 0. */
static int64_t draw(int64_t count, const double *probabilities, wg_generator *generator) {
    const double at = wg_random_uniform(generator);
    double end = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        if (probabilities[i] == 0)
            continue;
        end += probabilities[i];
        last = i;
        if (at < end)
            break;
    }
    return last;
}

/* The first of the largest logits; -1 if a logit is NaN or inf, or all are -inf. */
static int64_t largest_logit(int64_t count, const float *logits) {
    enum { LANES = 16 }; /* independent, so that comparisons run in parallel */
    float largest[LANES];
    int broken[LANES] = {0};
    int64_t i = 0;
    for (int j = 0; j < LANES; j++)
        largest[j] = -INFINITY;
    for (; i + LANES <= count; i += LANES)
        for (int j = 0; j < LANES; j++) {
            largest[j] = logits[i + j] > largest[j] ? logits[i + j] : largest[j];
            broken[j] |= !(logits[i + j] < INFINITY);
        }
    for (; i < count; i++) {
        largest[0] = logits[i] > largest[0] ? logits[i] : largest[0];
        broken[0] |= !(logits[i] < INFINITY);
    }
    for (int j = 1; j < LANES; j++) {
        largest[0] = largest[j] > largest[0] ? largest[j] : largest[0];
        broken[0] |= broken[j];
    }
    if (broken[0] || largest[0] == -INFINITY)
        return -1;
    for (i = 0; logits[i] != largest[0];)
        i++;
    return i;
}

int32_t wg__sample_token(const wg_sampling *sampling, int64_t count, const float *logits,
                         int64_t seen_count, const int32_t *seen, wg_generator *generator) {
    if (sampling->temperature == 0 && sampling->repetition_penalty == 0) {
        const int64_t id = wg__sampling_validate(sampling) < 0 ? -1 : largest_logit(count, logits);
        if (id >= 0)
            return (int32_t)id;
    }
    double *probabilities = wg__alloc_array(count, sizeof *probabilities);
    if (!probabilities)
        return -1;
    int64_t id = -1;
    if (wg__sampling_probabilities(sampling, count, logits, seen_count, seen, probabilities) == 0)
        id = sampling->temperature == 0 ? likeliest(count, probabilities)
                                        : draw(count, probabilities, generator);
    wg__free(probabilities);
    return (int32_t)id;
}

/* The batch of texts that have not ended. */
typedef struct decoding {
    const wg_language_model *model;
    int64_t positions; /* of the model; INT64_MAX: any */
    const wg_generation_options *options;
    wg_generation *texts;
    int64_t vocabulary;
    int64_t most;     /* tokens that a text may be given */
    int64_t rows;     /* R */
    int64_t *text_of; /* (R) the number of each row's text */
    int64_t *padding; /* (R) padding tokens at the beginning of each row */
    int64_t *kept;    /* (R) scratch: rows that go on */
    int64_t seen;     /* positions that the state holds, padding included */
    void *state;      /* the model's */
    float *logits;    /* (R, V) */
} decoding;

/* ---- Texts: beginning ---- */

static int check(const decoding *d, int64_t count) {
    const wg_generation_options *options = d->options;
    if (wg__sampling_validate(&options->sampling) < 0)
        return -1;
    if (options->max_tokens < 0)
        return wg__settings_refuse(WHERE, "max_tokens", (double)options->max_tokens, "0 or more");
    if (options->max_tokens == 0 && d->positions == INT64_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "max_tokens is 0, and the model has any number of positions; say how many "
                       "tokens are wanted");
    if (options->vocabulary < 0 || options->vocabulary > d->model->vocabulary)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a vocabulary of %lld; the model has %lld tokens",
                       (long long)options->vocabulary, (long long)d->model->vocabulary);
    for (int64_t i = 0; i < count; i++) {
        const wg_token_list *prompt = &d->texts[i].tokens;
        if (prompt->count == 0)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the prompt of text %lld is empty",
                           (long long)i);
        if (prompt->count >= d->positions)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "the prompt has %lld tokens, and the model has %lld positions for "
                           "prompt and answer; shorten it",
                           (long long)prompt->count, (long long)d->positions);
        for (int64_t k = 0; k < prompt->count; k++)
            if (prompt->ids[k] < 0 || prompt->ids[k] >= d->model->vocabulary)
                return wg_fail(WG_ERROR_INDEX, WHERE,
                               "token %ld of a prompt is outside the model's vocabulary of %lld",
                               (long)prompt->ids[k], (long long)d->model->vocabulary);
    }
    return 0;
}

static int begin(decoding *d, int64_t count) {
    d->rows = count;
    d->text_of = wg__alloc_array(count, sizeof *d->text_of);
    d->padding = wg__calloc((size_t)count, sizeof *d->padding);
    d->kept = wg__alloc_array(count, sizeof *d->kept);
    d->logits = wg__alloc_array(wg__times(count, d->model->vocabulary), sizeof *d->logits);
    if (!d->text_of || !d->padding || !d->kept || !d->logits)
        return -1;
    int64_t longest = 0, shortest = d->positions;
    for (int64_t i = 0; i < count; i++) {
        const int64_t length = d->texts[i].tokens.count;
        longest = length > longest ? length : longest;
        shortest = length < shortest ? length : shortest;
    }
    const int64_t room = d->positions - shortest, wanted = d->options->max_tokens;
    d->most = wanted > 0 && wanted < room ? wanted : room;
    for (int64_t i = 0; i < count; i++) {
        wg_token_list *list = &d->texts[i].tokens;
        if (wg__reserve(&list->ids, list->count, &list->capacity, list->count + d->most,
                        sizeof *list->ids) < 0)
            return -1;
        d->texts[i].generated = 0;
        d->texts[i].end = WG_END_CANCELLED; /* until it has ended by itself */
        d->text_of[i] = i;
        if (d->model->takes_padding)
            d->padding[i] = longest - d->texts[i].tokens.count;
    }
    d->state = d->model->begin(d->model->context, count, longest + d->most);
    if (!d->state && !wg_error_pending())
        return wg_fail(WG_ERROR_STATE, WHERE, "the model's `begin' gave no state");
    return d->state ? 0 : -1;
}

/* ---- Texts: the model's input ---- */

static int64_t row_length(const decoding *d, int64_t row) {
    return d->padding[row] + d->texts[d->text_of[row]].tokens.count;
}

/* The tokens that the state lacks: ids (R, T), and the position of each in its text. */
static wg_new_tokens gather_new(const decoding *d) {
    int64_t length = row_length(d, 0); /* of all rows: with padding each row has these */
    for (int64_t r = 1; r < d->rows; r++)
        length = row_length(d, r) < length ? row_length(d, r) : length;
    const int64_t t = length - d->seen;
    int64_t *ids = wg__calloc((size_t)wg__times(wg__times(d->rows, t), 2), sizeof *ids),
            *positions = ids;
    if (!ids)
        return (wg_new_tokens){0};
    positions += d->rows * t;
    for (int64_t r = 0; r < d->rows; r++)
        for (int64_t i = 0; i < t; i++) {
            const int64_t at = d->seen + i - d->padding[r];
            if (at >= 0) { /* else it is padding: token 0 at position 0 */
                ids[r * t + i] = d->texts[d->text_of[r]].tokens.ids[at];
                positions[r * t + i] = at;
            }
        }
    wg_new_tokens result = {.ids = wg_from_array(WG_I64, WG_DIMS(d->rows, t), ids)};
    bool is_padded = false;
    for (int64_t r = 0; r < d->rows; r++)
        is_padded |= d->padding[r] > 0;
    if (is_padded) { /* (R, T) bool: true for all positions so far that are not padding */
        result.position_ids = wg_from_array(WG_I64, WG_DIMS(d->rows, t), positions);
        result.keep = wg_empty(WG_BOOL, WG_DIMS(d->rows, length));
        bool *keep = result.keep ? wg_tensor_data(result.keep) : NULL;
        for (int64_t i = 0; keep && i < d->rows * length; i++)
            keep[i] = i % length >= d->padding[i / length];
    }
    wg__free(ids);
    return result;
}

/* ---- Texts: choosing the next tokens ---- */

/* Gives the text of a row its next token, unless its prompt is not read yet. 1 if the text goes on,
 * 0 if it has ended, -1 on failure. */
static int extend(decoding *d, int64_t row) {
    const wg_generation_options *options = d->options;
    wg_generation *text = &d->texts[d->text_of[row]];
    const float *logits = d->logits + row * d->model->vocabulary;
    if (row_length(d, row) > d->seen)
        return 1;
    int32_t id = wg__sample_token(&options->sampling, d->vocabulary, logits, text->tokens.count,
                                  text->tokens.ids, &text->generator);
    if (id < 0)
        return -1;
    for (int i = 0; i < options->stop_count; i++)
        if (options->stop_ids[i] == id) {
            text->end = WG_END_STOP;
            return 0;
        }
    if (wg_token_list_append(&text->tokens, id) < 0)
        return -1;
    text->generated++;
    if (options->listener)
        options->listener(
            &(wg_generated_token){.text = d->text_of[row], .id = id, .logits = logits},
            options->listener_context);
    if (options->max_tokens > 0 && text->generated == options->max_tokens)
        text->end = WG_END_LENGTH;
    else if (text->tokens.count == d->positions)
        text->end = WG_END_POSITIONS;
    else
        return 1;
    return 0;
}

/* Gives each text its next token, by d->logits, and drops the rows of ended texts. */
static int extend_all(decoding *d) {
    int64_t kept = 0;
    for (int64_t r = 0; r < d->rows; r++) {
        const int goes_on = extend(d, r);
        if (goes_on < 0)
            return -1;
        if (goes_on)
            d->kept[kept++] = r;
    }
    if (kept == d->rows)
        return 0;
    for (int64_t r = 0; r < kept; r++) {
        d->text_of[r] = d->text_of[d->kept[r]];
        d->padding[r] = d->padding[d->kept[r]];
    }
    d->rows = kept;
    if (kept == 0)
        return 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(kept), d->kept);
    int result = index ? d->model->reorder(d->model->context, d->state, index) : -1;
    wg_scope_end(&scope, NULL);
    return result;
}

int wg_language_model_generate(const wg_language_model *model, int64_t count, wg_generation *texts,
                               const wg_generation_options *options) {
    static const wg_generation_options defaults = {0};
    if (!model || !model->begin || !model->read || !model->reorder || !model->end ||
        model->vocabulary < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "a language model has a vocabulary, and the functions begin, read, reorder "
                       "and end");
    if (count < 1)
        return 0;
    decoding d = {.model = model,
                  .positions = model->positions > 0 ? model->positions : INT64_MAX,
                  .options = options ? options : &defaults,
                  .texts = texts};
    if (check(&d, count) < 0)
        return -1;
    d.vocabulary = d.options->vocabulary ? d.options->vocabulary : model->vocabulary;
    const bool recorded = wg_set_grad_enabled(false);
    const bool training = model->module && wg_module_is_training(model->module);
    if (model->module)
        wg_module_train(model->module, false);
    int result = begin(&d, count);
    while (result == 0 && d.rows > 0 && !(d.options->stop && *d.options->stop)) {
        wg_scope scope;
        wg_scope_begin(&scope);
        const wg_new_tokens new = gather_new(&d);
        const wg_tensor *logits = new.ids ? model->read(model->context, d.state, &new) : NULL;
        d.seen += new.ids ? wg_tensor_size(new.ids, 1) : 0;
        char text[160];
        if (!logits)
            result = wg_error_pending()
                         ? -1
                         : wg_fail(WG_ERROR_STATE, WHERE, "the model gave no logits");
        else if (logits->spec.ndim != 2 || logits->spec.shape[0] != d.rows ||
                 logits->spec.shape[1] != model->vocabulary)
            result = wg_fail(WG_ERROR_SHAPE, WHERE, "the logits are %s; wanted (%lld, %lld)",
                             wg_spec_text(text, sizeof text, &logits->spec), (long long)d.rows,
                             (long long)model->vocabulary);
        else
            result = wg_to_array(wg_cast((wg_tensor *)logits, WG_F32), d.logits);
        wg_scope_end(&scope, NULL);
        if (result == 0)
            result = extend_all(&d);
    }
    if (d.state)
        model->end(model->context, d.state);
    wg__free(d.logits);
    wg__free(d.kept);
    wg__free(d.padding);
    wg__free(d.text_of);
    if (model->module)
        wg_module_train(model->module, training);
    wg_set_grad_enabled(recorded);
    return result;
}

/* ---- The decoders of the library ---- */

/* The state of a decoder: a cache for each layer, and the last tokens that they hold. */
typedef struct caches {
    wg_tensor *last; /* (R), kept; NULL before the first ones */
    int64_t layers;
    wg_kv_cache of_layer[];
} caches;

static void *begin_caches(void *context, int64_t texts, int64_t length) {
    const int64_t layers = wg_model_sizes_of(context).layers;
    caches *c = wg__alloc_array(wg__times(layers, sizeof *c->of_layer) + sizeof *c, 1);
    (void)texts;
    if (!c)
        return NULL;
    *c = (caches){.layers = layers};
    for (int64_t i = 0; i < layers; i++)
        wg_kv_cache_init(&c->of_layer[i], length);
    return c;
}

/* The logits of the last position. Calls the type's forward: wg_model_forward only adds the choice
 * between encoders and others. */
static wg_tensor *read_tokens(void *context, void *state, const wg_new_tokens *tokens) {
    const wg_model *model = context;
    caches *c = state;
    const wg_model_inputs inputs = {.ids = tokens->ids,
                                    .caches = c->of_layer,
                                    .previous_ids = c->last,
                                    .position_ids = tokens->position_ids,
                                    .keep = tokens->keep};
    wg_tensor *hidden = model->type->forward(model->module, &inputs); /* (R, T, C) */
    wg_release(c->last);
    c->last = wg_keep(wg_contiguous(wg_select(tokens->ids, 1, -1)));
    return wg_model_logits(model, wg_select(hidden, 1, -1), NULL);
}

static int reorder_caches(void *context, void *state, wg_tensor *index) {
    caches *c = state;
    int result = 0;
    (void)context;
    for (int64_t i = 0; result == 0 && i < c->layers; i++)
        result = wg__kv_cache_reorder(&c->of_layer[i], index);
    wg_scope scope;
    wg_scope_begin(&scope);
    if (result == 0 && c->last) {
        wg_tensor *last = wg_keep(wg_index_select(c->last, 0, index));
        wg_release(c->last);
        c->last = last;
    }
    wg_scope_end(&scope, NULL);
    return wg_error_pending() ? -1 : result;
}

static void end_caches(void *context, void *state) {
    caches *c = state;
    (void)context;
    for (int64_t i = 0; i < c->layers; i++)
        wg_kv_cache_clear(&c->of_layer[i]);
    wg_release(c->last);
    wg__free(c);
}

int wg_generate(const wg_model *model, int64_t count, wg_generation *texts,
                const wg_generation_options *options) {
    if (count < 1)
        return 0;
    if (model->type->shape != WG_DECODER)
        return wg_fail(WG_ERROR_STATE, WHERE, "%s is no decoder; it cannot continue texts",
                       model->type->name);
    const wg_model_sizes sizes = wg_model_sizes_of(model);
    const wg_language_model decoder = {.context = (void *)model,
                                       .module = model->module,
                                       .vocabulary = sizes.vocabulary,
                                       .positions = sizes.positions,
                                       .takes_padding = true,
                                       .begin = begin_caches,
                                       .read = read_tokens,
                                       .reorder = reorder_caches,
                                       .end = end_caches};
    return wg_language_model_generate(&decoder, count, texts, options);
}
