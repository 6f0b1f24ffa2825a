/* Continuing texts: see decode.h.
 *
 * Letters: R rows of the batch (texts that go on), T positions that are new, V logits. */
#include "models/generate/decode.h"

#include "base/array.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "nn/internal.h"

#define WHERE "generate"

/* The texts that go on. */
typedef struct decoding {
    const wg_language_model *model;
    const wg_generation_options *options;
    wg_generation *texts;
    int64_t vocabulary;
    int64_t most;        /* tokens that a text may be given */
    int64_t rows;        /* R */
    int64_t *text_of;    /* (R) the number of each row's text */
    int64_t *padding;    /* (R) what each row begins with */
    int64_t *kept;       /* (R) scratch: rows of the step before that go on */
    int64_t seen;        /* positions that the caches hold, padding included */
    wg_kv_cache *caches; /* one a layer */
    float *logits;       /* (R, V) */
} decoding;

/* ---- Beginning ---- */

static int check_text(const wg_language_model *model, const wg_generation *text, int64_t number) {
    if (text->tokens.count == 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the prompt of text %lld is empty",
                       (long long)number);
    if (text->tokens.count >= model->max_positions)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the prompt has %lld tokens, and the model has %lld positions for prompt "
                       "and answer; shorten it",
                       (long long)text->tokens.count, (long long)model->max_positions);
    for (int64_t i = 0; i < text->tokens.count; i++)
        if (text->tokens.ids[i] < 0 || text->tokens.ids[i] >= model->vocab_size)
            return wg_fail(WG_ERROR_INDEX, WHERE,
                           "token %ld of a prompt is outside the model's vocabulary of %lld",
                           (long)text->tokens.ids[i], (long long)model->vocab_size);
    return 0;
}

static int check(const wg_language_model *model, int64_t count, const wg_generation *texts,
                 const wg_generation_options *options) {
    if (wg_sampling_validate(&options->sampling) < 0)
        return -1;
    if (options->max_tokens < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "max_tokens is %lld; it must be 0 or more",
                       (long long)options->max_tokens);
    if (options->vocabulary < 0 || options->vocabulary > model->vocab_size)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a vocabulary of %lld; the model has %lld tokens",
                       (long long)options->vocabulary, (long long)model->vocab_size);
    for (int64_t i = 0; i < count; i++)
        if (check_text(model, &texts[i], i) < 0)
            return -1;
    return 0;
}

static int allocate(decoding *d) {
    const size_t rows = (size_t)d->rows;
    d->text_of = wg__alloc(rows * sizeof *d->text_of);
    d->padding = wg__alloc(rows * sizeof *d->padding);
    d->kept = wg__alloc(rows * sizeof *d->kept);
    d->logits = wg__alloc(rows * (size_t)d->model->vocab_size * sizeof *d->logits);
    d->caches = wg__calloc((size_t)d->model->layers, sizeof *d->caches);
    return d->text_of && d->padding && d->kept && d->logits && d->caches ? 0 : -1;
}

static int reserve(wg_token_list *list, int64_t more) {
    int32_t *ids =
        wg__grow(list->ids, list->count, &list->capacity, list->count + more, sizeof *ids);
    if (ids)
        list->ids = ids;
    return ids ? 0 : -1;
}

static int begin(decoding *d, int64_t count) {
    d->rows = count;
    if (allocate(d) < 0)
        return -1;
    int64_t longest = 0, shortest = d->model->max_positions;
    for (int64_t i = 0; i < count; i++) {
        const int64_t length = d->texts[i].tokens.count;
        longest = length > longest ? length : longest;
        shortest = length < shortest ? length : shortest;
    }
    const int64_t room = d->model->max_positions - shortest, wanted = d->options->max_tokens;
    d->most = wanted > 0 && wanted < room ? wanted : room;
    for (int64_t i = 0; i < count; i++) {
        if (reserve(&d->texts[i].tokens, d->most) < 0)
            return -1;
        d->texts[i].generated = 0;
        d->text_of[i] = i;
        d->padding[i] = longest - d->texts[i].tokens.count;
    }
    for (int64_t i = 0; i < d->model->layers; i++)
        wg_kv_cache_init(&d->caches[i], longest + d->most);
    return 0;
}

static void end(decoding *d) {
    for (int64_t i = 0; d->caches && i < d->model->layers; i++)
        wg_kv_cache_clear(&d->caches[i]);
    wg__free(d->caches);
    wg__free(d->logits);
    wg__free(d->kept);
    wg__free(d->padding);
    wg__free(d->text_of);
}

/* ---- A step of the model ---- */

/* How many positions a row has, padding included. */
static int64_t row_length(const decoding *d, int64_t row) {
    return d->padding[row] + d->texts[d->text_of[row]].tokens.count;
}

static bool is_padded(const decoding *d) {
    for (int64_t r = 0; r < d->rows; r++)
        if (d->padding[r] > 0)
            return true;
    return false;
}

/* What is new, (R, T) i64: ids, and the position of each in its own text. */
typedef struct new_tokens {
    wg_tensor *ids, *position_ids;
} new_tokens;

static new_tokens gather_new(const decoding *d, int64_t t) {
    int64_t *ids = wg__calloc((size_t)(d->rows * t), 2 * sizeof *ids), *positions = ids;
    if (!ids)
        return (new_tokens){0};
    positions += d->rows * t;
    for (int64_t r = 0; r < d->rows; r++)
        for (int64_t i = 0; i < t; i++) {
            const int64_t at = d->seen + i - d->padding[r];
            if (at >= 0) { /* else it is padding: token 0 at position 0 */
                ids[r * t + i] = d->texts[d->text_of[r]].tokens.ids[at];
                positions[r * t + i] = at;
            }
        }
    new_tokens result = {wg_from_array(WG_I64, WG_DIMS(d->rows, t), ids),
                         wg_from_array(WG_I64, WG_DIMS(d->rows, t), positions)};
    wg__free(ids);
    return result;
}

/* (R, T) bool: what is no padding of all positions so far. */
static wg_tensor *keep_mask(const decoding *d, int64_t t) {
    bool *keep = wg__alloc((size_t)(d->rows * t) * sizeof *keep);
    if (!keep)
        return NULL;
    for (int64_t r = 0; r < d->rows; r++)
        for (int64_t i = 0; i < t; i++)
            keep[r * t + i] = i >= d->padding[r];
    wg_tensor *result = wg_from_array(WG_BOOL, WG_DIMS(d->rows, t), keep);
    wg__free(keep);
    return result;
}

/* Lets the model see what it has not seen, and fills d->logits. */
static int compute_logits(decoding *d) {
    const wg_language_model *model = d->model;
    const int64_t length = row_length(d, 0), t = length - d->seen;
    wg_scope scope;
    wg_scope_begin(&scope);
    new_tokens new = gather_new(d, t);
    wg_decoder_inputs inputs = {.caches = d->caches};
    if (is_padded(d)) {
        inputs.position_ids = new.position_ids;
        inputs.keep = keep_mask(d, length);
    }
    wg_tensor *hidden = model->forward(model->model, new.ids, &inputs);
    wg_tensor *logits = model->logits(model->model, wg_select(hidden, 1, t - 1));
    int result = wg_to_array(wg_cast(logits, WG_F32), d->logits);
    wg_scope_end(&scope, NULL);
    d->seen = length;
    return result;
}

/* ---- A step of the texts ---- */

static bool is_stop(const wg_generation_options *options, int32_t id) {
    for (int i = 0; i < options->stop_count; i++)
        if (options->stop_ids[i] == id)
            return true;
    return false;
}

/* Gives the text of a row its next token. 1 if it goes on, 0 if it has ended, -1 on failure. */
static int extend(decoding *d, int64_t row) {
    const wg_generation_options *options = d->options;
    wg_generation *text = &d->texts[d->text_of[row]];
    const float *logits = d->logits + row * d->model->vocab_size;
    int32_t id = wg_sample_token(&options->sampling, d->vocabulary, logits, text->tokens.count,
                                 text->tokens.ids, &text->generator);
    if (id < 0)
        return -1;
    if (is_stop(options, id)) {
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
    else if (text->tokens.count == d->model->max_positions)
        text->end = WG_END_POSITIONS;
    else
        return 1;
    return 0;
}

/* Lets only the rows d->kept go on. */
static int drop_rows(decoding *d, int64_t kept) {
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
    int result = index ? 0 : -1;
    for (int64_t i = 0; result == 0 && i < d->model->layers; i++)
        result = wg__kv_cache_reorder(&d->caches[i], index);
    wg_scope_end(&scope, NULL);
    return result;
}

static int step(decoding *d) {
    if (compute_logits(d) < 0)
        return -1;
    int64_t kept = 0;
    for (int64_t r = 0; r < d->rows; r++) {
        int goes_on = extend(d, r);
        if (goes_on < 0)
            return -1;
        if (goes_on)
            d->kept[kept++] = r;
    }
    return drop_rows(d, kept);
}

static bool is_cancelled(const decoding *d) {
    return d->options->stop && *d->options->stop;
}

static int run(decoding *d) {
    int result = 0;
    while (result == 0 && d->rows > 0 && !is_cancelled(d))
        result = step(d);
    for (int64_t r = 0; r < d->rows; r++)
        d->texts[d->text_of[r]].end = WG_END_CANCELLED;
    return result;
}

int wg_generate(const wg_language_model *model, int64_t count, wg_generation *texts,
                const wg_generation_options *options) {
    static const wg_generation_options defaults = {0};
    if (!options)
        options = &defaults;
    if (count < 1)
        return 0;
    if (check(model, count, texts, options) < 0)
        return -1;
    decoding d = {.model = model,
                  .options = options,
                  .texts = texts,
                  .vocabulary = options->vocabulary ? options->vocabulary : model->vocab_size};
    const bool recorded = wg_set_grad_enabled(false);
    const bool training = wg_module_is_training(model->module);
    wg_module_train(model->module, false);
    int result = begin(&d, count) < 0 ? -1 : run(&d);
    end(&d);
    wg_module_train(model->module, training);
    wg_set_grad_enabled(recorded);
    return result;
}
