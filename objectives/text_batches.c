/* Runs a model on texts in batches, to score or to embed them. Texts are sorted by length, so that
 * a batch has texts of equal length and no padding.
 *
 *     texts    b d   a   c e f   b d   a c        encoded
 *     sorted   c e f | a c   b d   b d | a        the longest first, equal ones beside each other
 *     batches  c e f   a c   b d         a        one row for equal texts
 *
 * Equal texts share a row of a batch, so their results are identical. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"
#include "data/tokenizer/text_file.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

enum { USUAL_BATCH_TOKENS = 4096 };

int64_t wg__texts_in_batch(int64_t batch_tokens, int64_t length) {
    const int64_t tokens = batch_tokens ? batch_tokens : USUAL_BATCH_TOKENS;
    return tokens > length ? tokens / length : 1;
}

typedef struct placed_text {
    const int32_t *ids;
    int64_t count;
    int64_t number; /* among the texts that were given */
    int64_t row;    /* of its batch */
} placed_text;

typedef struct batching {
    const wg__text_job *job;
    wg_token_list tokens; /* of all texts */
    placed_text *texts;
    int64_t count;
    int *owners;  /* (count) the rank that runs each text, by `number` */
    int32_t *ids; /* of a batch */
    char *rows;   /* the results of a batch */
} batching;

static int encode(batching *b, const wg_text_source *sources) {
    const wg__text_job *job = b->job;
    const int64_t most = wg_model_sizes_of(job->model).positions - job->frame;
    for (int64_t i = 0; i < b->count; i++) {
        const wg_text_source *source = &sources[i];
        const int64_t before = b->tokens.count;
        const int64_t invalid = wg__utf8_invalid(source->text, (int64_t)strlen(source->text));
        char name[512];
        if (source->file)
            snprintf(name, sizeof name, "%s, line %lld", source->file, (long long)source->line);
        else
            snprintf(name, sizeof name, "text %lld", (long long)i + 1);
        if (invalid >= 0)
            return wg_fail(WG_ERROR_FORMAT, job->where, "%s: the text is not UTF-8 at byte %lld",
                           name, (long long)invalid);
        if (wg_tokenizer_encode(job->tokenizer, source->text, -1, NULL, &b->tokens) < 0)
            return -1;
        const int64_t length = b->tokens.count - before;
        if (length == 0)
            return wg_fail(WG_ERROR_ARGUMENT, job->where, "%s: the text is empty", name);
        if (length > most)
            return wg_fail(WG_ERROR_ARGUMENT, job->where,
                           "%s: the text has %lld tokens; the model takes %lld at most", name,
                           (long long)length, (long long)most);
        b->texts[i] = (placed_text){.count = length, .number = i};
    }
    const int32_t *ids = b->tokens.ids;
    for (int64_t i = 0; i < b->count; ids += b->texts[i++].count)
        b->texts[i].ids = ids;
    return 0;
}

/* The longest first, equal ones beside each other. */
static int compare(const void *left, const void *right) {
    const placed_text *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    const int order = memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids);
    return order ? order : a->number < b->number ? -1 : 1;
}

/* Runs a batch if `owner` is this rank: the texts of equal length from number `first` on, until the
 * batch is full. Returns the number of the next text, or -1. */
static int64_t run_batch(batching *b, int64_t first, int owner, char *results) {
    const wg__text_job *job = b->job;
    const int64_t length = b->texts[first].count,
                  most = wg__texts_in_batch(job->batch_tokens, length);
    const size_t size = job->result_size;
    int64_t rows = 0, end = first;
    for (; end < b->count && b->texts[end].count == length; end++) {
        placed_text *text = &b->texts[end];
        if (end == first ||
            memcmp(text->ids, text[-1].ids, (size_t)length * sizeof *text->ids) != 0) {
            if (rows == most)
                break;
            memcpy(b->ids + rows++ * length, text->ids, (size_t)length * sizeof *b->ids);
        }
        text->row = rows - 1;
        b->owners[text->number] = owner;
    }
    if (owner != wg_group_rank(job->group))
        return end;
    memset(b->rows, 0, (size_t)rows * size);
    const wg_text_batch batch = {.count = rows, .length = length, .ids = b->ids};
    wg_scope scope;
    wg_scope_begin(&scope);
    const int status = job->run(job->context, &batch, b->rows);
    wg_scope_end(&scope, NULL);
    for (int64_t i = first; status == 0 && i < end; i++)
        memcpy(results + (size_t)b->texts[i].number * size,
               b->rows + (size_t)b->texts[i].row * size, size);
    return status == 0 ? end : -1;
}

static int run_all(batching *b, char *results) {
    const wg__text_job *job = b->job;
    qsort(b->texts, (size_t)b->count, sizeof *b->texts, compare);
    const int64_t longest = b->count ? b->texts[0].count : 1;
    const int64_t most = wg__texts_in_batch(job->batch_tokens, 1);
    b->ids = wg__alloc_array(most > longest ? most : longest, sizeof *b->ids);
    b->rows = wg__alloc_array(most, job->result_size);
    b->owners = wg__alloc_array(b->count + 1, sizeof *b->owners);
    if (!b->ids || !b->rows || !b->owners)
        return -1;
    int64_t next = 0;
    for (int owner = 0; next < b->count; owner = (owner + 1) % wg_group_size(job->group)) {
        if (job->stop && *job->stop)
            return 1;
        next = run_batch(b, next, owner, results);
        if (next < 0)
            return job->stop && *job->stop && !wg_error_pending() ? 1 : -1;
        if (job->listener)
            job->listener(next, b->count, job->listener_context);
    }
    return 0;
}

int wg__run_texts(const wg__text_job *job, int64_t count, const wg_text_source *texts,
                  void *results) {
    batching b = {.job = job, .count = count};
    if (wg__check_vocabulary(job->where, wg_tokenizer_size(job->tokenizer), "",
                             wg_model_sizes_of(job->model).vocabulary) < 0)
        return -1;
    const bool recorded = wg_set_grad_enabled(false);
    wg_module *module = job->model->module;
    const bool training = wg_module_is_training(module);
    wg_module_train(module, false);
    b.texts = wg__alloc_array(count + 1, sizeof *b.texts);
    int status = b.texts && encode(&b, texts) == 0 ? run_all(&b, results) : -1;
    /* Sends the results of each rank to all ranks, unless one was stopped. */
    double stopped = status > 0;
    if (wg_group_check(job->group, status < 0 ? -1 : 0) < 0 ||
        wg__group_max(job->group, WG_GROUP_F64, 1, &stopped) < 0)
        status = -1;
    else
        status = stopped > 0
                     ? 1
                     : wg__group_collect(job->group, count, job->result_size, b.owners, results);
    wg_module_train(module, training);
    wg_set_grad_enabled(recorded);
    wg_token_list_free(&b.tokens);
    wg__free(b.texts);
    wg__free(b.ids);
    wg__free(b.rows);
    wg__free(b.owners);
    return status;
}

/* ---- Scores of texts: their log probability by a model. The objective scores a batch. ---- */

int wg__score_losses(const wg_model *model, const wg_score_options *options,
                     const wg_model_inputs *inputs, wg_tensor *positions, wg_tensor *labels,
                     double *losses) {
    static const wg_cross_entropy_options each = {.reduction = WG_REDUCTION_NONE};
    if (options->stop && *options->stop)
        return -1;
    wg_model_inputs at_positions = *inputs;
    at_positions.output_positions = positions;
    wg_tensor *hidden = wg_model_forward(model, &at_positions);
    wg_tensor *loss = wg_model_loss(model, hidden, NULL, labels, &each);
    return loss ? wg_to_array(wg_cast(loss, WG_F64), losses) : -1;
}

typedef struct scoring {
    const wg_objective *objective;
    const wg_model *model;
    const wg_tokenizer *tokenizer;
    wg_score_options options;
} scoring;

static int run_scoring(void *context, const wg_text_batch *batch, void *scores) {
    const scoring *s = context;
    return s->objective->use.score(s->model, s->tokenizer, &s->options, batch, scores);
}

int wg_score_texts(const wg_objective *objective, const wg_model *model,
                   const wg_tokenizer *tokenizer, const wg_score_options *options, int64_t count,
                   const wg_text_source *texts, wg_score *scores) {
    scoring s = {.objective = objective, .model = model, .tokenizer = tokenizer};
    if (options)
        s.options = *options;
    if (!s.objective->use.score)
        return wg_fail(WG_ERROR_STATE, "score", "%s does not score texts", s.objective->name);
    if (s.options.within_words && !s.objective->use.scores_within_words)
        return wg_fail(WG_ERROR_ARGUMENT, "score",
                       "%s masks no tokens: scoring within words is for models that do",
                       s.objective->name);
    if (s.options.causal && !s.objective->use.scores_causally)
        return wg_fail(WG_ERROR_ARGUMENT, "score",
                       "%s does not predict both masked and next tokens: scoring causally is for "
                       "objectives that do",
                       s.objective->name);
    if (s.options.batch_tokens < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "score", "batches of %lld tokens; wanted 0 or more",
                       (long long)s.options.batch_tokens);
    const wg__text_job job = {.where = "score",
                              .model = model,
                              .tokenizer = tokenizer,
                              .frame = objective->use.score_frame,
                              .batch_tokens = s.options.batch_tokens,
                              .run = run_scoring,
                              .context = &s,
                              .result_size = sizeof(wg_score),
                              .listener = s.options.listener,
                              .listener_context = s.options.context,
                              .stop = s.options.stop,
                              .group = s.options.group};
    return wg__run_texts(&job, count, texts, scores);
}

/* ---- Embeddings of texts: one vector a text, from the hidden states of its tokens
 * (Reimers & Gurevych 2019, arXiv:1908.10084, section 3).
 *
 *     encoders    [CLS] text [SEP]      decoders    <s> text      if the tokenizer has the tokens
 *
 *     mean        the mean of the hidden states of all positions
 *     token       the hidden state of [CLS]; in decoders of the last token, which sees all tokens
 */

typedef struct embedding {
    const wg_model *model;
    wg_embed_options options;
    int32_t before, behind; /* tokens around a text, or -1 */
    int64_t width;
} embedding;

/* (B, T) with the tokens around each text. */
static wg_tensor *frame(const embedding *e, const wg_text_batch *batch) {
    const int64_t first = e->before >= 0, length = first + batch->length + (e->behind >= 0);
    int32_t *ids = wg__alloc_array(wg__times(batch->count, length), sizeof *ids);
    for (int64_t b = 0; ids && b < batch->count; b++) {
        int32_t *row = ids + b * length;
        row[0] = e->before;
        row[length - 1] = e->behind;
        memcpy(row + first, batch->ids + b * batch->length, (size_t)batch->length * sizeof *row);
    }
    wg_tensor *x = ids ? wg_from_array(WG_I32, WG_DIMS(batch->count, length), ids) : NULL;
    wg__free(ids);
    return x;
}

wg_tensor *wg__pool_texts(wg_tensor *hidden, wg_tensor *keep, wg_text_pooling pooling, int place) {
    if (pooling == WG_POOL_TOKEN)
        return wg_select(hidden, 1, place);
    if (!keep)
        return wg_mean(hidden, WG_DIMS(1), false);
    wg_tensor *weights = wg_cast(keep, wg_tensor_dtype(hidden));
    wg_tensor *sum = wg_sum(wg_mul(hidden, wg_unsqueeze(weights, 2)), WG_DIMS(1), false);
    return wg_div(sum, wg_sum(weights, WG_DIMS(1), true));
}

static int run_embedding(void *context, const wg_text_batch *batch, void *results) {
    const embedding *e = context;
    wg_tensor *hidden = wg_model_forward(e->model, &(wg_model_inputs){.ids = frame(e, batch)});
    const int place = e->model->type->shape == WG_ENCODER ? 0 : -1;
    wg_tensor *pooled = wg__pool_texts(hidden, NULL, e->options.pooling, place);
    if (wg_to_array(wg_cast(pooled, WG_F32), results) < 0)
        return -1;
    for (int64_t b = 0; !e->options.not_normalized && b < batch->count; b++) {
        float *vector = (float *)results + b * e->width;
        double sum = 0;
        for (int64_t i = 0; i < e->width; i++)
            sum += (double)vector[i] * vector[i];
        for (int64_t i = 0; sum > 0 && i < e->width; i++)
            vector[i] = (float)(vector[i] / sqrt(sum));
    }
    return 0;
}

int wg_embed_texts(const wg_model *model, const wg_tokenizer *tokenizer,
                   const wg_embed_options *options, int64_t count, const wg_text_source *texts,
                   float *vectors) {
    embedding e = {.model = model, .width = wg_model_sizes_of(model).width};
    if (options)
        e.options = *options;
    if (!(model->type->shape & (WG_ENCODER | WG_DECODER)))
        return wg_fail(WG_ERROR_STATE, "embed",
                       "a %s model gives no vectors of texts; encoders and decoders do",
                       model->type->name);
    const bool encodes = model->type->shape == WG_ENCODER;
    e.before = wg_tokenizer_special(tokenizer, encodes ? WG_TOKEN_CLASS : WG_TOKEN_BEGIN);
    e.behind = encodes ? wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR) : -1;
    const wg__text_job job = {.where = "embed",
                              .model = model,
                              .tokenizer = tokenizer,
                              .frame = (e.before >= 0) + (e.behind >= 0),
                              .batch_tokens = e.options.batch_tokens,
                              .run = run_embedding,
                              .context = &e,
                              .result_size = (size_t)e.width * sizeof *vectors,
                              .stop = e.options.stop,
                              .group = e.options.group};
    return wg__run_texts(&job, count, texts, vectors);
}
