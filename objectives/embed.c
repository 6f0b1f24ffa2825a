/* Embeddings of texts: one vector a text, from the hidden states of its tokens
 * (Reimers & Gurevych 2019, arXiv:1908.10084, section 3).
 *
 *     encoders    [CLS] text [SEP]      decoders    <s> text      those tokens that there are
 *
 *     mean        the mean of the hidden states of all positions
 *     token       the hidden state of the first position, of decoders the last, which sees them all
 */
#include <math.h>
#include <string.h>

#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "embed"

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
    const int64_t axis = 1;
    if (pooling == WG_POOL_TOKEN)
        return wg_select(hidden, 1, place);
    if (!keep)
        return wg_mean(hidden, 1, &axis, false);
    wg_tensor *weights = wg_cast(keep, wg_tensor_dtype(hidden));
    wg_tensor *sum = wg_sum(wg_mul(hidden, wg_unsqueeze(weights, 2)), 1, &axis, false);
    return wg_div(sum, wg_sum(weights, 1, &axis, true));
}

static int run(void *context, const wg_text_batch *batch, void *results) {
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
        return wg_fail(WG_ERROR_STATE, WHERE,
                       "a %s model gives no vectors of texts; encoders and decoders do",
                       model->type->name);
    const bool encodes = model->type->shape == WG_ENCODER;
    e.before = wg_tokenizer_special(tokenizer, encodes ? WG_TOKEN_CLASS : WG_TOKEN_BEGIN);
    e.behind = encodes ? wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR) : -1;
    const wg__text_job job = {.where = WHERE,
                              .model = model,
                              .tokenizer = tokenizer,
                              .frame = (e.before >= 0) + (e.behind >= 0),
                              .batch_tokens = e.options.batch_tokens,
                              .run = run,
                              .context = &e,
                              .result_size = (size_t)e.width * sizeof *vectors,
                              .stop = e.options.stop,
                              .group = e.options.group};
    return wg__run_texts(&job, count, texts, vectors);
}
