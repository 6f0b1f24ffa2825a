/* Filling blanks: T5 as beam search sees it, and what it may say.
 *
 *     <extra_id_0> tokens of the text... <extra_id_1> ... <extra_id_n> </s>       n blanks
 *
 * Letters: B texts, S tokens of each, R hypotheses, V = vocab_size. */
#include "models/load.h"
#include "models/generate/seq2seq.h"
#include "models/t5.h"

#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#include <math.h>

#define WHERE "t5_fill"

/* ---- What may be said ---- */

/* A hypothesis: sentinels below `next` were said; there are `blanks` in its text. */
typedef struct progress {
    int next, blanks;
    bool empty; /* nothing is written into the blank as yet */
} progress;

typedef struct rules {
    const wg_t5_tokens *tokens;
    int64_t vocabulary;
    bool *is_text;             /* (V) true for what stands in texts */
    progress *rows, *new_rows; /* (R) */
} rules;

/* Makes -inf of what must not be said next. Spans of training are never empty, so no blank is. */
static void restrict_row(const rules *r, const progress *row, float *log_probabilities) {
    const bool in_blank = row->next > 0 && row->next <= row->blanks;
    const int32_t due = row->next <= row->blanks ? r->tokens->sentinels[row->next] : r->tokens->end;
    for (int64_t v = 0; v < r->vocabulary; v++)
        if (v == due ? in_blank && row->empty : !(in_blank && r->is_text[v]))
            log_probabilities[v] = -INFINITY;
}

static void restrict_all(void *context, int64_t rows, const int32_t *last,
                         float *log_probabilities) {
    rules *r = context;
    for (int64_t i = 0; i < rows; i++) {
        progress *row = &r->rows[i];
        row->empty = row->next <= row->blanks && last[i] == r->tokens->sentinels[row->next];
        row->next += row->empty;
        restrict_row(r, row, log_probabilities + i * r->vocabulary);
    }
}

static void reorder(void *context, int64_t rows, const int64_t *from) {
    rules *r = context;
    for (int64_t i = 0; i < rows; i++)
        r->new_rows[i] = r->rows[from[i]];
    progress *before = r->rows;
    r->rows = r->new_rows;
    r->new_rows = before;
}

/* ---- The model ---- */

static wg_tensor *encode(void *model, wg_tensor *source, wg_tensor *keep) {
    return wg_t5_encode(model, source, keep);
}

static wg_tensor *decode(void *model, wg_tensor *ids, const wg__seq2seq_inputs *inputs) {
    const wg_t5_caches caches = {inputs->own, inputs->seen};
    return wg_t5_logits(model, wg_t5_decode(model, ids, inputs->memory, inputs->keep, &caches));
}

/* ---- A batch ---- */

/* How many sentinels stand in a text. */
static int64_t count_blanks(const wg_t5_tokens *tokens, const int64_t *ids, int64_t count) {
    int64_t blanks = 0;
    for (int64_t i = 0; i < count; i++)
        blanks += wg_t5_sentinel_number(tokens, (int32_t)ids[i]) >= 0;
    if (blanks > 0 && blanks < tokens->sentinel_count)
        return blanks;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a text has %lld blanks; it must have 1 to %d",
                   (long long)blanks, tokens->sentinel_count - 1);
}

static int begin_rules(rules *r, wg_tensor *ids, int64_t beam) {
    const int64_t texts = wg_tensor_size(ids, 0), length = wg_tensor_size(ids, 1);
    r->is_text = wg__calloc((size_t)r->vocabulary, sizeof *r->is_text);
    r->rows = wg__calloc((size_t)(texts * beam), sizeof *r->rows);
    r->new_rows = wg__calloc((size_t)(texts * beam), sizeof *r->new_rows);
    int64_t *read = wg__alloc((size_t)(texts * length) * sizeof *read);
    int result = r->is_text && r->rows && r->new_rows && read ? 0 : -1;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (result == 0)
        result = wg_to_array(wg_cast(ids, WG_I64), read);
    wg_scope_end(&scope, NULL);
    for (int64_t b = 0; result == 0 && b < texts; b++) {
        const int64_t blanks = count_blanks(r->tokens, read + b * length, length);
        r->rows[b].blanks = (int)blanks;
        result = blanks < 0 ? -1 : 0;
    }
    for (int32_t v = 0; result == 0 && v < r->tokens->tokenizer_size && v < r->vocabulary; v++)
        r->is_text[v] =
            v != r->tokens->pad && v != r->tokens->end && wg_t5_sentinel_number(r->tokens, v) < 0;
    wg__free(read);
    return result;
}

static int check(const wg_t5 *model, const wg_t5_tokens *tokens, const wg_tensor *ids,
                 const wg_beam_options *options) {
    if (!ids)
        return -1;
    if (wg_tensor_ndim(ids) != 2)
        return wg_fail(WG_ERROR_SHAPE, WHERE, "the ids have rank %d; wanted (B, S)",
                       wg_tensor_ndim(ids));
    if (tokens->vocab_size > model->config.vocab_size)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the tokenizer has %lld tokens with its sentinels; the model's vocabulary "
                       "holds %lld",
                       (long long)tokens->vocab_size, (long long)model->config.vocab_size);
    if (options->beam < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "beam is %lld; it must be at least 1",
                       (long long)options->beam);
    return 0;
}

int wg_t5_fill(wg_t5 *model, const wg_t5_tokens *tokens, wg_tensor *ids, wg_tensor *keep,
               int64_t max_tokens, const wg_beam_options *options, wg_beam_result *results) {
    wg_beam_options how = options ? *options : (wg_beam_options){.beam = 1};
    how.beam = how.beam == 0 ? 4 : how.beam;
    if (check(model, tokens, ids, &how) < 0)
        return -1;
    const int64_t texts = wg_tensor_size(ids, 0);
    for (int64_t b = 0; b < texts; b++)
        results[b] = (wg_beam_result){0};
    rules r = {.tokens = tokens, .vocabulary = model->config.vocab_size};
    const wg__seq2seq seen = {
        .model = model,
        .module = &model->module,
        .vocabulary = model->config.vocab_size,
        .layers = model->decoder->count,
        .start_id = (int32_t)model->config.decoder_start_token_id,
        .end_id = (int32_t)model->config.eos_token_id,
        .encode = encode,
        .decode = decode,
        .rules = &r,
        .restrict_ = restrict_all,
        .reorder = reorder,
    };
    int64_t *lengths = wg__alloc((size_t)texts * sizeof *lengths);
    int result = lengths ? begin_rules(&r, ids, how.beam) : -1;
    for (int64_t b = 0; result == 0 && b < texts; b++)
        lengths[b] = max_tokens;
    if (result == 0)
        result = wg__seq2seq_search(&seen, ids, keep, lengths, &how, results);
    wg__free(lengths);
    wg__free(r.is_text);
    wg__free(r.rows);
    wg__free(r.new_rows);
    return result;
}

/* ---- From a checkpoint ---- */

static wg_module *make(const char *json, void *context) {
    wg_t5_config config;
    wg_t5 **model = context;
    *model = wg_t5_config_from_json(&config, json) < 0 ? NULL : wg_t5_new(&config, 0);
    return *model ? &(*model)->module : NULL;
}

int wg_t5_load(const char *path, wg_t5 **model, wg_tokenizer **tokenizer) {
    *model = NULL;
    if (wg__model_load(path, make, model, tokenizer))
        return 0;
    *model = NULL;
    return -1;
}
