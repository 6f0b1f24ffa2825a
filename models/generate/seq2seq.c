/* Encoder-decoders as beam search sees them: see seq2seq.h.
 *
 * Letters: B sources of up to S tokens, R hypotheses, V tokens of the vocabulary. */
#include "models/generate/seq2seq.h"

#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "nn/internal.h"

typedef struct search {
    const wg__seq2seq *model;
    wg__seq2seq_inputs inputs; /* `keep` is kept */
} search;

/* ---- What the search calls ---- */

static int step(void *context, int64_t rows, const int32_t *last, float *log_probabilities) {
    const search *s = context;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(rows, 1), last);
    wg_tensor *logits = wg_cast(s->model->decode(s->model->model, ids, &s->inputs), WG_F32);
    int result = wg_to_array(wg_log_softmax(logits, -1), log_probabilities);
    wg_scope_end(&scope, NULL);
    if (result == 0 && s->model->restrict_)
        s->model->restrict_(s->model->rules, rows, last, log_probabilities);
    return result;
}

static int reorder_keep(search *s, wg_tensor *index) {
    if (!s->inputs.keep)
        return 0;
    wg_tensor *keep = wg_index_select(s->inputs.keep, 0, index);
    if (!keep)
        return -1;
    wg_release(s->inputs.keep);
    s->inputs.keep = wg_keep(keep);
    return 0;
}

static int reorder(void *context, int64_t rows, const int64_t *from) {
    search *s = context;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(rows), from);
    int result = index ? reorder_keep(s, index) : -1;
    for (int64_t i = 0; result == 0 && i < s->model->layers; i++)
        if (wg__kv_cache_reorder(&s->inputs.own[i], index) < 0 ||
            wg__kv_cache_reorder(&s->inputs.seen[i], index) < 0)
            result = -1;
    wg_scope_end(&scope, NULL);
    if (result == 0 && s->model->reorder)
        s->model->reorder(s->model->rules, rows, from);
    return result;
}

/* ---- A batch ---- */

static int begin(search *s, wg_tensor *source, wg_tensor *keep, const int64_t *max_lengths) {
    const wg__seq2seq *model = s->model;
    s->inputs.memory = model->encode(model->model, source, keep);
    if (!s->inputs.memory)
        return -1;
    s->inputs.keep = keep ? wg_keep(wg_alias(keep)) : NULL;
    if (keep && !s->inputs.keep)
        return -1;
    int64_t longest = 0;
    for (int64_t i = 0; i < wg_tensor_size(source, 0); i++)
        longest = max_lengths[i] > longest ? max_lengths[i] : longest;
    for (int64_t i = 0; i < model->layers; i++) {
        wg_kv_cache_init(&s->inputs.own[i], longest);
        wg_kv_cache_init(&s->inputs.seen[i], wg_tensor_size(source, 1));
    }
    return 0;
}

static int run(search *s, wg_tensor *source, wg_tensor *keep, const int64_t *max_lengths,
               const wg_beam_options *options, wg_beam_result *results) {
    const size_t layers = (size_t)s->model->layers;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_kv_cache *caches = wg__calloc(2 * layers, sizeof *caches);
    s->inputs.own = caches;
    s->inputs.seen = caches ? caches + layers : NULL;
    int result = caches ? begin(s, source, keep, max_lengths) : -1;
    const wg_beam_model seen = {
        .context = s, .vocabulary = s->model->vocabulary, .step = step, .reorder = reorder};
    if (result == 0)
        result = wg_beam_search(&seen, wg_tensor_size(source, 0), max_lengths, options, results);
    for (size_t i = 0; caches && i < 2 * layers; i++)
        wg_kv_cache_clear(&caches[i]);
    wg_release(s->inputs.keep);
    wg__free(caches);
    wg_scope_end(&scope, NULL);
    return result;
}

int wg__seq2seq_search(const wg__seq2seq *model, wg_tensor *source, wg_tensor *keep,
                       const int64_t *max_lengths, const wg_beam_options *options,
                       wg_beam_result *results) {
    for (int64_t i = 0; i < wg_tensor_size(source, 0); i++)
        results[i] = (wg_beam_result){0};
    wg_beam_options all = options ? *options : (wg_beam_options){0};
    all.start_id = model->start_id;
    all.end_id = model->end_id;
    search s = {.model = model};
    const bool recorded = wg_set_grad_enabled(false);
    const bool training = wg_module_is_training(model->module);
    wg_module_train(model->module, false);
    int result = run(&s, source, keep, max_lengths, &all, results);
    wg_module_train(model->module, training);
    wg_set_grad_enabled(recorded);
    return result;
}
