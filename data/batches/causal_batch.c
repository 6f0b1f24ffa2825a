/* Batches of windows: see causal_batch.h. */
#include "data/batches/causal_batch.h"

#include "data/dataset/mixture.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/span.h"

#define WHERE "causal_batch"

/* ---- A batch ---- */

/* One row; `tokens` has room for sequence + 1. The labels that count, or -1. */
static int64_t read_window(const wg_token_stream *stream, wg_token_window window, int64_t sequence,
                           int32_t *tokens, int64_t *ids, int64_t *labels) {
    int64_t count = window.end - window.start - 1;
    if (count < 0)
        return wg_fail(WG_ERROR_INDEX, WHERE, "a window from token %lld to %lld has none",
                       (long long)window.start, (long long)window.end);
    if (count > sequence)
        count = sequence;
    if (wg_token_stream_read(stream, window.start, count + 1, tokens) < 0)
        return -1;
    for (int64_t i = 0; i < sequence; i++) {
        ids[i] = i < count ? tokens[i] : tokens[0];
        labels[i] = i < count ? tokens[i + 1] : WG_IGNORE_INDEX;
    }
    return count;
}

int wg_causal_batch_read(const wg_token_stream *stream, int64_t count,
                         const wg_token_window *windows, int64_t sequence, wg_causal_batch *batch) {
    if (!stream)
        return -1;
    const size_t size = (size_t)(count * sequence);
    int64_t *ids = wg__alloc(2 * size * sizeof *ids), *labels = ids + size;
    int32_t *tokens = wg__alloc((size_t)(sequence + 1) * sizeof *tokens);
    int64_t status = ids && tokens ? 0 : -1;
    wg__span span;
    wg__span_begin(&span, "data", WG_PROFILE_REGION);
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
    wg__span_end(&span);
    return batch->ids && batch->labels ? 0 : -1;
}

/* ---- An epoch ---- */

struct wg_causal_batches {
    const wg_token_stream *stream;
    wg_causal_batch_options options;
    wg_data_position position;
    int64_t count;   /* windows in this epoch */
    int64_t *starts; /* where each begins, in the order in which they come; room for the most */
    wg_token_window *chosen; /* (B) scratch */
    wg__mixture mixture;
};

/* Draws of an epoch are far from those of the next. */
enum { DRAWS_BITS = 40 };

/* Cuts and shuffles the windows of an epoch. */
static void plan(wg_causal_batches *batches, wg_data_position position) {
    const int64_t sequence = batches->options.sequence;
    const int64_t labels = wg_token_stream_tokens(batches->stream) - 1;
    wg_generator generator = {.seed = position.seed,
                              .offset = (uint64_t)position.epoch << DRAWS_BITS};
    const int64_t spare = labels - sequence + 1;
    const int64_t choices = spare < sequence ? spare : sequence;
    const int64_t offset = (int64_t)wg_random_below(&generator, (uint64_t)choices);
    batches->position = position;
    batches->count = (labels - offset) / sequence;
    wg__mixture_windows(&batches->mixture, wg__token_stream_view(batches->stream), offset, sequence,
                        batches->count);
    wg__mixture_fill(&batches->mixture, &generator, batches->count, batches->starts);
    for (int64_t i = 0; i < batches->count; i++) { /* Fisher & Yates */
        const int64_t j = (int64_t)wg_random_below(&generator, (uint64_t)(i + 1));
        const int64_t start = offset + batches->starts[i] * sequence;
        batches->starts[i] = batches->starts[j];
        batches->starts[j] = start;
    }
}

int wg_causal_batches_next(wg_causal_batches *batches, wg_causal_batch *batch) {
    if (!batches)
        return -1;
    const wg_data_position before = batches->position;
    for (int64_t i = 0; i < batches->options.batch; i++) {
        wg_data_position *position = &batches->position;
        const int64_t start = batches->starts[position->next++];
        batches->chosen[i] = (wg_token_window){start, start + batches->options.sequence + 1};
        if (position->next == batches->count)
            plan(batches, (wg_data_position){.seed = position->seed, .epoch = position->epoch + 1});
    }
    const int result = wg_causal_batch_read(batches->stream, batches->options.batch,
                                            batches->chosen, batches->options.sequence, batch);
    if (result < 0)
        plan(batches, before);
    return result;
}

int64_t wg_causal_batches_examples(const wg_causal_batches *batches) {
    return batches ? batches->count : 0;
}

wg_data_position wg_causal_batches_position(const wg_causal_batches *batches) {
    return batches ? batches->position : (wg_data_position){0};
}

int wg_causal_batches_seek(wg_causal_batches *batches, const wg_data_position *position) {
    if (!batches || !position)
        return -1;
    const wg_data_position before = batches->position;
    if (position->epoch >= 0 && position->epoch < INT64_C(1) << (63 - DRAWS_BITS)) {
        plan(batches, *position);
        if (position->next >= 0 && position->next < batches->count)
            return 0;
        plan(batches, before);
    }
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "epoch %lld, window %lld is no position here: was the text another one?",
                   (long long)position->epoch, (long long)position->next);
}

/* ---- Making them ---- */

static int check(const wg_causal_batches *batches) {
    const wg_causal_batch_options *o = &batches->options;
    if (o->batch < 1 || o->batch > INT32_MAX || o->sequence < 1 || o->sequence > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "batches of %lld sequences of %lld tokens",
                       (long long)o->batch, (long long)o->sequence);
    if (wg_token_stream_tokens(batches->stream) <= o->sequence)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the text has %lld tokens, and one sequence of %lld takes %lld; give more "
                       "text or shorter sequences",
                       (long long)wg_token_stream_tokens(batches->stream), (long long)o->sequence,
                       (long long)o->sequence + 1);
    return 0;
}

static int allocate(wg_causal_batches *batches) {
    const int64_t labels = wg_token_stream_tokens(batches->stream) - 1;
    const int64_t most = labels / batches->options.sequence;
    batches->starts = wg__alloc((size_t)most * sizeof *batches->starts);
    batches->chosen = wg__alloc((size_t)batches->options.batch * sizeof *batches->chosen);
    return batches->starts && batches->chosen ? 0 : -1;
}

wg_causal_batches *wg_causal_batches_new(const wg_token_stream *stream,
                                         const wg_causal_batch_options *options) {
    if (!stream)
        return NULL;
    wg_causal_batches *batches = wg__calloc(1, sizeof *batches);
    if (!batches)
        return NULL;
    batches->stream = stream;
    if (options)
        batches->options = *options;
    if (batches->options.batch == 0)
        batches->options.batch = 32;
    if (batches->options.sequence == 0)
        batches->options.sequence = 128;
    if (check(batches) < 0 || allocate(batches) < 0 ||
        wg__mixture_of(&batches->mixture, wg__token_stream_view(stream)) < 0) {
        wg_causal_batches_free(batches);
        return NULL;
    }
    plan(batches, (wg_data_position){.seed = batches->options.seed});
    return batches;
}

void wg_causal_batches_free(wg_causal_batches *batches) {
    if (!batches)
        return;
    wg__free(batches->starts);
    wg__free(batches->chosen);
    wg__mixture_clear(&batches->mixture);
    wg__free(batches);
}
