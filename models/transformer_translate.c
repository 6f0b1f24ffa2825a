/* Translating: the Transformer as beam search sees it.
 *
 * Letters: B sources of up to S tokens, R hypotheses, V = decoder_vocab_size. */
#include "models/transformer.h"

#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

/* How much longer than its source a translation may be (Vaswani et al. 2017, section 6.1). */
enum { LONGER = 50 };

typedef struct translation {
    wg_transformer *model;
    wg_transformer_memory memory; /* `keep` has a row a hypothesis, and is kept */
    wg_kv_cache *caches;          /* of self-attention, one a layer */
} translation;

/* ---- What the search calls ---- */

static int step(void *context, int64_t rows, const int32_t *last, float *log_probabilities) {
    translation *t = context;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(rows, 1), last);
    const wg_decoder_inputs inputs = {.caches = t->caches};
    wg_tensor *hidden = wg_transformer_decode(t->model, ids, &t->memory, &inputs);
    wg_tensor *logits = wg_cast(wg_transformer_logits(t->model, hidden), WG_F32);
    int result = wg_to_array(wg_log_softmax(logits, -1), log_probabilities);
    wg_scope_end(&scope, NULL);
    return result;
}

static int reorder_keep(translation *t, wg_tensor *index) {
    if (!t->memory.keep)
        return 0;
    wg_tensor *keep = wg_index_select(t->memory.keep, 0, index);
    if (!keep)
        return -1;
    wg_release(t->memory.keep);
    t->memory.keep = wg_keep(keep);
    return 0;
}

static int reorder(void *context, int64_t rows, const int64_t *from) {
    translation *t = context;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(rows), from);
    int result = index ? reorder_keep(t, index) : -1;
    for (int64_t i = 0; result == 0 && i < t->model->decoder.layer_count; i++)
        if (wg_kv_cache_reorder(&t->caches[i], index) < 0 ||
            wg_kv_cache_reorder(&t->memory.caches[i], index) < 0)
            result = -1;
    wg_scope_end(&scope, NULL);
    return result;
}

/* ---- A batch ---- */

/* How long the translation of each source may be, (B) in i64; gives the longest, or -1. */
static int64_t limit_lengths(const wg_transformer *model, const wg_tensor *source, wg_tensor *keep,
                             int64_t *lengths) {
    const int64_t rows = wg_tensor_size(source, 0), most = model->config.max_position_embeddings;
    int64_t longest = 0;
    if (keep && wg_to_array(wg_sum(wg_cast(keep, WG_I64), WG_DIMS(1), false), lengths) < 0)
        return -1;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t wanted = (keep ? lengths[i] : wg_tensor_size(source, 1)) + LONGER;
        lengths[i] = wanted < most ? wanted : most;
        longest = lengths[i] > longest ? lengths[i] : longest;
    }
    return longest;
}

static int search(translation *t, wg_tensor *source, wg_tensor *keep, int64_t *lengths,
                  const wg_beam_options *options, wg_beam_result *results) {
    wg_transformer *model = t->model;
    t->memory.states = wg_transformer_encode(model, source, keep);
    const int64_t longest = t->memory.states ? limit_lengths(model, source, keep, lengths) : -1;
    if (longest < 0)
        return -1;
    t->memory.keep = keep ? wg_keep(wg_alias(keep)) : NULL;
    if (keep && !t->memory.keep)
        return -1;
    for (int64_t i = 0; i < model->decoder.layer_count; i++) {
        wg_kv_cache_init(&t->caches[i], longest);
        wg_kv_cache_init(&t->memory.caches[i], wg_tensor_size(source, 1));
    }
    const wg_beam_model seen = {
        .context = t,
        .vocabulary = model->config.decoder_vocab_size,
        .step = step,
        .reorder = reorder,
    };
    return wg_beam_search(&seen, wg_tensor_size(source, 0), lengths, options, results);
}

static int translate(wg_transformer *model, wg_tensor *source, wg_tensor *keep,
                     const wg_beam_options *options, wg_beam_result *results) {
    const size_t layers = (size_t)model->decoder.layer_count;
    wg_scope scope;
    wg_scope_begin(&scope);
    translation t = {.model = model};
    int64_t *lengths = wg__alloc((size_t)wg_tensor_size(source, 0) * sizeof *lengths);
    wg_kv_cache *caches = wg__calloc(2 * layers, sizeof *caches);
    t.caches = caches;
    t.memory.caches = caches ? caches + layers : NULL;
    int result = lengths && caches ? search(&t, source, keep, lengths, options, results) : -1;
    for (size_t i = 0; caches && i < 2 * layers; i++)
        wg_kv_cache_clear(&caches[i]);
    wg_release(t.memory.keep);
    wg__free(caches);
    wg__free(lengths);
    wg_scope_end(&scope, NULL);
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
    wg_beam_options all = options ? *options : (wg_beam_options){0};
    all.start_id = (int32_t)model->config.decoder_start_token_id;
    all.end_id = (int32_t)model->config.eos_token_id;
    const bool recorded = wg_set_grad_enabled(false);
    const bool training = wg_module_is_training(&model->module);
    wg_module_train(&model->module, false);
    int result = translate(model, source, keep, &all, results);
    wg_module_train(&model->module, training);
    wg_set_grad_enabled(recorded);
    return result;
}
