/* Translating: the Transformer as beam search sees it. */
#include "models/generate/seq2seq.h"
#include "models/transformer.h"

#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

/* How much longer than its source a translation may be (Vaswani et al. 2017, section 6.1). */
enum { LONGER = 50 };

static wg_tensor *encode(void *model, wg_tensor *source, wg_tensor *keep) {
    return wg_transformer_encode(model, source, keep);
}

static wg_tensor *decode(void *model, wg_tensor *ids, const wg__seq2seq_inputs *inputs) {
    const wg_transformer_memory memory = {inputs->memory, inputs->keep, inputs->seen};
    const wg_decoder_inputs own = {.caches = inputs->own};
    return wg_transformer_logits(model, wg_transformer_decode(model, ids, &memory, &own));
}

/* How long the translation of each source may be, (B) in i64. 0 or -1 */
static int limit_lengths(const wg_transformer *model, const wg_tensor *source, wg_tensor *keep,
                         int64_t *lengths) {
    const int64_t rows = wg_tensor_size(source, 0), most = model->config.max_position_embeddings;
    wg_scope scope;
    wg_scope_begin(&scope);
    int result = 0;
    if (keep)
        result = wg_to_array(wg_sum(wg_cast(keep, WG_I64), WG_DIMS(1), false), lengths);
    wg_scope_end(&scope, NULL);
    for (int64_t i = 0; result == 0 && i < rows; i++) {
        const int64_t wanted = (keep ? lengths[i] : wg_tensor_size(source, 1)) + LONGER;
        lengths[i] = wanted < most ? wanted : most;
    }
    return result;
}

int wg_transformer_translate(wg_transformer *model, wg_tensor *source, wg_tensor *keep,
                             const wg_beam_options *options, wg_beam_result *results) {
    if (!source)
        return -1;
    if (wg_tensor_ndim(source) != 2)
        return wg_fail(WG_ERROR_SHAPE, "translate", "the source has rank %d; wanted (B, S)",
                       wg_tensor_ndim(source));
    for (int64_t i = 0; i < wg_tensor_size(source, 0); i++)
        results[i] = (wg_beam_result){0};
    const wg__seq2seq seen = {
        .model = model,
        .module = &model->module,
        .vocabulary = model->config.decoder_vocab_size,
        .layers = model->decoder.layer_count,
        .start_id = (int32_t)model->config.decoder_start_token_id,
        .end_id = (int32_t)model->config.eos_token_id,
        .encode = encode,
        .decode = decode,
    };
    int64_t *lengths = wg__alloc((size_t)wg_tensor_size(source, 0) * sizeof *lengths);
    int result = lengths ? limit_lengths(model, source, keep, lengths) : -1;
    if (result == 0)
        result = wg__seq2seq_search(&seen, source, keep, lengths, options, results);
    wg__free(lengths);
    return result;
}
