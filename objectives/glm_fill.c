/* Writing into blanks: see glm_fill.h.
 *
 * Letters: R hypotheses, 1 unless there is a search, T tokens that are new, V logits. */
#include "objectives/glm_fill.h"

#include <math.h>

#include "models/generate/beam.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "nn/internal.h"

#define WHERE "fill"

typedef struct filling {
    wg_glm *model;
    const wg_glm_tokens *tokens;
    wg_glm_fill_options options;
    wg_kv_cache *caches; /* one a layer */
    wg_token_list text;  /* Part A and what was written: what the repetition penalty looks at */
    int64_t part_a;      /* tokens */
    int64_t most;        /* tokens of a blank */
    float *logits;       /* (V), where there is no search */
    /* The blank that is written. */
    int64_t place;   /* of its mask: the first position of all its tokens */
    int64_t written; /* how many tokens of it, the start token included, the caches hold */
} filling;

/* ---- Beginning ---- */

int64_t wg_glm_blank_count(const wg_glm_tokens *tokens, const wg_token_list *part_a) {
    int64_t count = 0;
    for (int64_t i = 0; i < part_a->count; i++)
        count += wg_glm_is_mask(tokens, part_a->ids[i]);
    return count;
}

static int check(const wg_glm *model, const wg_glm_tokens *tokens, const wg_token_list *part_a,
                 const wg_glm_fill_options *options) {
    const int64_t longest = model->config.max_sequence_length;
    if (wg_sampling_validate(&options->sampling) < 0)
        return -1;
    if (options->beam < 0 || options->max_tokens < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "beam is %lld and max_tokens %lld; they must be 0 or more",
                       (long long)options->beam, (long long)options->max_tokens);
    if (wg_glm_blank_count(tokens, part_a) == 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "there is no blank in the text; write [MASK], [sMASK] or [gMASK] where "
                       "something is wanted");
    if (part_a->count > longest)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the text has %lld tokens, and the model has %lld positions; shorten it",
                       (long long)part_a->count, (long long)longest);
    if (tokens->vocab_size > model->config.vocab_size)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the tokenizer and GLM's own tokens are %lld; the model's vocabulary holds "
                       "%lld",
                       (long long)tokens->vocab_size, (long long)model->config.vocab_size);
    return 0;
}

static int begin(filling *f, int64_t blanks) {
    const int64_t layers = f->model->config.num_layers;
    const int64_t wanted = f->options.max_tokens;
    const int64_t room = f->model->config.max_sequence_length - 1; /* 1 is the start token's */
    f->most = wanted > 0 && wanted < room ? wanted : room;
    f->caches = wg__calloc((size_t)layers, sizeof *f->caches);
    f->logits = wg__alloc((size_t)f->model->config.vocab_size * sizeof *f->logits);
    for (int64_t i = 0; f->caches && i < layers; i++)
        wg_kv_cache_init(&f->caches[i], f->part_a + blanks * (1 + f->most));
    return f->caches && f->logits ? 0 : -1;
}

static void end(filling *f) {
    for (int64_t i = 0; f->caches && i < f->model->config.num_layers; i++)
        wg_kv_cache_clear(&f->caches[i]);
    wg__free(f->caches);
    wg__free(f->logits);
    wg_token_list_free(&f->text);
}

/* ---- Steps of the model ---- */

/* Lets the model see ids (R, T) with these positions, behind what it has seen; gives the hidden
 * state of the last, (R, C). */
static wg_tensor *see(filling *f, wg_tensor *ids, wg_tensor *positions, wg_tensor *blocks) {
    if (!ids)
        return NULL;
    const wg_glm_inputs inputs = {
        .position_ids = positions,
        .block_position_ids = blocks,
        .part_a = wg_full(WG_I64, WG_DIMS(wg_tensor_size(ids, 0)), (double)f->part_a),
        .caches = f->caches};
    wg_tensor *hidden = wg_glm_forward(f->model, ids, &inputs);
    return hidden ? wg_select(hidden, 1, wg_tensor_size(ids, 1) - 1) : NULL;
}

static int see_part_a(filling *f) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, f->part_a), f->text.ids);
    wg_tensor *positions = wg_arange(WG_I64, 0, (double)f->part_a, 1);
    wg_tensor *hidden = see(f, ids, positions, wg_zeros(WG_I64, WG_DIMS(f->part_a)));
    wg_scope_end(&scope, NULL);
    return hidden ? 0 : -1;
}

/* The next tokens of the blank, (R, T) of them. `logits` (R, V) of what may follow are filled in
 * unless it is NULL. */
static int see_part_b(filling *f, int64_t rows, int64_t count, const int32_t *tokens,
                      float *logits) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t first = f->written + 1; /* the start token has 1 */
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(rows, count), tokens);
    wg_tensor *positions = wg_full(WG_I64, WG_DIMS(count), (double)f->place);
    wg_tensor *blocks = wg_arange(WG_I64, (double)first, (double)(first + count), 1);
    wg_tensor *hidden = see(f, ids, positions, blocks);
    int result = hidden ? 0 : -1;
    if (result == 0 && logits)
        result = wg_to_array(wg_cast(wg_glm_logits(f->model, hidden, NULL), WG_F32), logits);
    wg_scope_end(&scope, NULL);
    f->written += count;
    return result;
}

/* Takes from the logits of a row what is no text, and the end of a blank without any. */
static void forbid(const filling *f, float *logits) {
    const wg_glm_tokens *t = f->tokens;
    const float end = logits[t->end];
    const int32_t own[] = {t->start,         t->end,       t->mask, t->sentence_mask,
                           t->document_mask, t->beginning, t->pad};
    for (int64_t v = t->tokenizer_size; v < f->model->config.vocab_size; v++)
        logits[v] = -INFINITY;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        logits[own[i]] = -INFINITY;
    if (f->written > 1)
        logits[t->end] = end;
}

/* ---- Drawing ---- */

static bool is_stopped(const filling *f) {
    return f->options.stop && *f->options.stop;
}

static int append(filling *f, int64_t number, int32_t id, wg_glm_blank *blank) {
    if (wg_token_list_append(&blank->tokens, id) < 0 || wg_token_list_append(&f->text, id) < 0)
        return -1;
    const wg_generated_token heard = {.text = number, .id = id, .logits = f->logits};
    if (f->options.listener)
        f->options.listener(&heard, f->options.listener_context);
    return 0;
}

/* Draws one token after the other, until the end token. */
static int draw(filling *f, int64_t number, wg_glm_blank *blank) {
    const int64_t vocabulary = f->model->config.vocab_size;
    int32_t id = f->tokens->start;
    for (int64_t i = 0;; i++) {
        blank->end = is_stopped(f)                      ? WG_END_CANCELLED
                     : i < f->most                      ? WG_END_STOP
                     : f->most == f->options.max_tokens ? WG_END_LENGTH
                                                        : WG_END_POSITIONS;
        const bool goes_on = blank->end == WG_END_STOP;
        if (see_part_b(f, 1, 1, &id, goes_on ? f->logits : NULL) < 0)
            return -1;
        if (!goes_on)
            return 0;
        forbid(f, f->logits);
        id = wg_sample_token(&f->options.sampling, vocabulary, f->logits, f->text.count,
                             f->text.ids, &f->options.generator);
        if (id < 0 || id == f->tokens->end)
            return id < 0 ? -1 : 0;
        if (append(f, number, id, blank) < 0)
            return -1;
    }
}

/* ---- Searching ---- */

/* Logits to logarithms of probabilities, in place. */
static void normalise(int64_t count, float *logits) {
    double most = -INFINITY, sum = 0;
    for (int64_t v = 0; v < count; v++)
        most = fmax(most, (double)logits[v]);
    for (int64_t v = 0; v < count; v++)
        sum += exp((double)logits[v] - most);
    const double total = most + log(sum);
    for (int64_t v = 0; v < count; v++)
        logits[v] = (float)((double)logits[v] - total);
}

static int search_step(void *context, int64_t rows, const int32_t *last, float *probabilities) {
    filling *f = context;
    const int64_t vocabulary = f->model->config.vocab_size;
    if (see_part_b(f, rows, 1, last, probabilities) < 0)
        return -1;
    for (int64_t r = 0; r < rows; r++) {
        forbid(f, probabilities + r * vocabulary);
        normalise(vocabulary, probabilities + r * vocabulary);
    }
    return 0;
}

static int search_reorder(void *context, int64_t rows, const int64_t *from) {
    filling *f = context;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(rows), from);
    int result = index ? 0 : -1;
    for (int64_t i = 0; result == 0 && i < f->model->config.num_layers; i++)
        result = wg__kv_cache_reorder(&f->caches[i], index);
    wg_scope_end(&scope, NULL);
    return result;
}

/* Back to where the search began, one row, which then sees what was found. */
static int settle(filling *f, int64_t seen, const wg_token_list *found) {
    if (search_reorder(f, 1, (int64_t[]){0}) < 0)
        return -1;
    for (int64_t i = 0; i < f->model->config.num_layers; i++)
        if (wg__kv_cache_truncate(&f->caches[i], seen) < 0)
            return -1;
    f->written = 0;
    if (see_part_b(f, 1, 1, &f->tokens->start, NULL) < 0)
        return -1;
    return see_part_b(f, 1, found->count, found->ids, NULL);
}

static int take(filling *f, const wg_beam_result *found, wg_glm_blank *blank) {
    for (int64_t i = 0; i < found->tokens.count; i++)
        if (wg_token_list_append(&blank->tokens, found->tokens.ids[i]) < 0)
            return -1;
    blank->end = found->ended                       ? WG_END_STOP
                 : f->most == f->options.max_tokens ? WG_END_LENGTH
                                                    : WG_END_POSITIONS;
    return 0;
}

static int search(filling *f, wg_glm_blank *blank) {
    const wg_beam_model model = {.context = f,
                                 .vocabulary = f->model->config.vocab_size,
                                 .step = search_step,
                                 .reorder = search_reorder};
    const wg_beam_options options = {.beam = f->options.beam,
                                     .alpha = f->options.alpha,
                                     .start_id = f->tokens->start,
                                     .end_id = f->tokens->end};
    const int64_t seen = f->caches[0].length;
    wg_beam_result found = {0};
    int result = wg_beam_search(&model, 1, &f->most, &options, &found);
    if (result == 0)
        result = settle(f, seen, &found.tokens);
    if (result == 0)
        result = take(f, &found, blank);
    wg_token_list_free(&found.tokens);
    return result;
}

/* ---- All blanks ---- */

static int fill(filling *f, const wg_token_list *part_a, wg_glm_blank *blanks) {
    for (int64_t i = 0; i < part_a->count; i++)
        if (wg_token_list_append(&f->text, part_a->ids[i]) < 0)
            return -1;
    if (see_part_a(f) < 0)
        return -1;
    for (int64_t i = 0, number = 0; i < part_a->count; i++) {
        if (!wg_glm_is_mask(f->tokens, part_a->ids[i]))
            continue;
        f->place = i;
        f->written = 0;
        const int result =
            f->options.beam > 0 ? search(f, &blanks[number]) : draw(f, number, &blanks[number]);
        if (result < 0)
            return -1;
        number++;
    }
    return 0;
}

int wg_glm_fill(wg_glm *model, const wg_glm_tokens *tokens, const wg_token_list *part_a,
                const wg_glm_fill_options *options, wg_glm_blank *blanks) {
    static const wg_glm_fill_options defaults = {0};
    if (!options)
        options = &defaults;
    if (check(model, tokens, part_a, options) < 0)
        return -1;
    filling f = {.model = model, .tokens = tokens, .options = *options, .part_a = part_a->count};
    const bool recorded = wg_set_grad_enabled(false);
    const bool training = wg_module_is_training(&model->module);
    wg_module_train(&model->module, false);
    int result = begin(&f, wg_glm_blank_count(tokens, part_a)) < 0 ? -1 : fill(&f, part_a, blanks);
    end(&f);
    wg_module_train(&model->module, training);
    wg_set_grad_enabled(recorded);
    return result;
}
