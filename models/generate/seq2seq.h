/* Encoder-decoders as beam search sees them: the source is encoded once, and each step gives the
 * decoder one token a hypothesis, with caches of what it said and of what it sees of the source. */
#ifndef WG_MODELS_GENERATE_SEQ2SEQ_H
#define WG_MODELS_GENERATE_SEQ2SEQ_H

#include "models/generate/beam.h"
#include "nn/attention.h"

/* What the decoder is given beside its tokens. */
typedef struct wg__seq2seq_inputs {
    wg_tensor *memory;       /* (B, S, C), what `encode` gave */
    wg_tensor *keep;         /* (R, S) bool, a row a hypothesis; NULL: no padding */
    wg_kv_cache *own, *seen; /* a cache a layer: of self-attention, and of the memory */
} wg__seq2seq_inputs;

typedef struct wg__seq2seq {
    void *model;
    wg_module *module;
    int64_t vocabulary, layers;
    int32_t start_id, end_id;
    wg_tensor *(*encode)(void *model, wg_tensor *source, wg_tensor *keep);

    /* The logits (R, 1, V) that follow ids (R, 1). */
    wg_tensor *(*decode)(void *model, wg_tensor *ids, const wg__seq2seq_inputs *inputs);

    /* What may be said, for models that know; both NULL: everything. `restrict_` is told the newest
     * tokens as wg_beam_model's step is, and makes -inf of what must not follow them. */
    void *rules;
    void (*restrict_)(void *rules, int64_t rows, const int32_t *last, float *log_probabilities);
    void (*reorder)(void *rules, int64_t rows, const int64_t *from);
} wg__seq2seq;

/* Searches for what is said of B sources (B, S), in evaluation mode and without recording: as
 * wg_beam_search, with the model's own start and end. [also SHAPE, INDEX, DTYPE] */
int wg__seq2seq_search(const wg__seq2seq *model, wg_tensor *source, wg_tensor *keep,
                       const int64_t *max_lengths, const wg_beam_options *options,
                       wg_beam_result *results);

#endif
