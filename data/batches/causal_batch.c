/* Batches of windows: see causal_batch.h. */
#include "data/batches/causal_batch.h"

#include "data/batches/builder.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/span.h"

#define WHERE "causal_batch"

/* ---- A batch ---- */

/* One row; `tokens` has room for sequence + 1. The labels that count, or -1. */
static int64_t read_window(const wg_dataset *stream, wg_token_window window, int64_t sequence,
                           int32_t *tokens, int64_t *ids, int64_t *labels) {
    int64_t count = window.end - window.start - 1;
    if (count < 0)
        return wg_fail(WG_ERROR_INDEX, WHERE, "a window from token %lld to %lld has none",
                       (long long)window.start, (long long)window.end);
    if (count > sequence)
        count = sequence;
    if (wg_dataset_read(stream, window.start, count + 1, tokens) < 0)
        return -1;
    for (int64_t i = 0; i < sequence; i++) {
        ids[i] = i < count ? tokens[i] : tokens[0];
        labels[i] = i < count ? tokens[i + 1] : WG_IGNORE_INDEX;
    }
    return count;
}

static int read_windows(const wg_dataset *stream, int64_t count, const wg_token_window *windows,
                        int64_t sequence, wg_causal_batch *batch) {
    const size_t size = (size_t)(count * sequence);
    int64_t *ids = wg__alloc(2 * size * sizeof *ids), *labels = ids + size;
    int32_t *tokens = wg__alloc((size_t)(sequence + 1) * sizeof *tokens);
    int64_t status = ids && tokens ? 0 : -1;
    *batch = (wg_causal_batch){0};
    for (int64_t i = 0; status >= 0 && i < count; i++) {
        status = read_window(stream, windows[i], sequence, tokens, ids + i * sequence,
                             labels + i * sequence);
        batch->tokens += status;
    }
    if (status >= 0) {
        batch->ids = wg_from_array(WG_I64, WG_DIMS(count, sequence), ids);
        batch->labels = wg_from_array(WG_I64, WG_DIMS(count, sequence), labels);
    }
    wg__free(tokens);
    wg__free(ids);
    return batch->ids && batch->labels ? 0 : -1;
}

int wg_causal_batch_read(const wg_dataset *stream, int64_t count, const wg_token_window *windows,
                         int64_t sequence, wg_causal_batch *batch) {
    wg__span span;
    wg__span_begin(&span, "data", WG_PROFILE_REGION);
    const int status = stream ? read_windows(stream, count, windows, sequence, batch) : -1;
    wg__span_end(&span);
    return status;
}

/* ---- Batches ---- */

typedef struct causal_source {
    int64_t sequence;
    wg__windows windows;
    wg_token_window *chosen; /* (B) scratch */
} causal_source;

static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    causal_source *s = context;
    (void)examples;
    for (int64_t i = 0; i < count; i++)
        s->chosen[i] =
            (wg_token_window){s->windows.starts[i], s->windows.starts[i] + s->sequence + 1};
    return read_windows(s->windows.text, count, s->chosen, s->sequence, batch);
}

static int plan(void *context, wg_epoch *epoch) {
    return wg__windows_plan(&((causal_source *)context)->windows, epoch);
}

static void take(void *context, int64_t row, const wg_example *example) {
    wg__windows_take(&((causal_source *)context)->windows, row, example);
}

static void free_source(void *context) {
    causal_source *s = context;
    wg__free(s->windows.starts);
    wg__free(s->chosen);
    wg__free(s);
}

static int prepare(causal_source *s, const wg_dataset *stream, int64_t batch, int64_t sequence) {
    if (batch < 1 || batch > INT32_MAX || sequence < 1 || sequence > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "batches of %lld sequences of %lld tokens",
                       (long long)batch, (long long)sequence);
    s->sequence = sequence;
    s->chosen = wg__alloc((size_t)batch * sizeof *s->chosen);
    return s->chosen ? wg__windows_begin(&s->windows, WHERE, stream, sequence, batch) : -1;
}

wg_batches *wg_causal_batches_new(const wg_dataset *stream,
                                  const wg_causal_batch_options *options) {
    static const wg_causal_batch_options defaults = {0};
    const wg_causal_batch_options *o = options ? options : &defaults;
    wg_batches_options batching = {.batch = o->batch ? o->batch : 32, .seed = o->seed};
    causal_source *s = stream ? wg__calloc(1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    if (prepare(s, stream, batching.batch, o->sequence ? o->sequence : 128) < 0) {
        free_source(s);
        return NULL;
    }
    wg__use_weights(stream, &batching);
    return wg_batches_new(
        &(wg_batch_source){
            .context = s, .build = build, .plan = plan, .take = take, .free = free_source},
        &batching);
}
