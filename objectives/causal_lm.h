/* Causal language modelling: predicting the next token   (Bengio et al. 2003; Radford et al. 2018).
 *
 *     stream   t h e   w h i t e   r a b b i t ...
 *     ids      t h e _ w                 labels   h e _ w h        a window of T + 1 tokens
 *              h i t e _                          i t e _ r        the next window
 *
 * Each epoch draws an offset below T, cuts windows one after another from there on, and shuffles
 * them.
 *
 * Metrics of an evaluation:
 *
 *     loss            the mean over tokens
 *     perplexity      exp(loss)
 *     bits_per_byte   loss / log 2 x tokens / bytes of the held-out text: comparable between
 *                     tokenizers
 *     unigram_loss    the loss of predicting tokens by their frequency in the training text */
#ifndef WG_OBJECTIVES_CAUSAL_LM_H
#define WG_OBJECTIVES_CAUSAL_LM_H

#include "objective.h"

WG_BEGIN_DECLS

/* Owned by the scope that was open. */
typedef struct wg_causal_batch {
    wg_tensor *ids;    /* (B, T) i64 */
    wg_tensor *labels; /* (B, T) i64: the token after each; -100 beyond the window's end */
    int64_t tokens;    /* labels that count */
} wg_causal_batch;

/* Tokens of a stream: from `start` up to but without `end`. */
typedef struct wg_token_window {
    int64_t start, end;
} wg_token_window;

/* Fills `batch` with these windows: ids are all tokens of a window but the last, labels all but the
 * first, both cut to `sequence`. [scope; INDEX for a window outside the stream; MEMORY] */
int wg__causal_batch_read(const wg_dataset *stream, int64_t count, const wg_token_window *windows,
                          int64_t sequence, wg_causal_batch *batch);

typedef struct wg_causal_batch_options {
    int64_t batch;    /* B; 0: 32 */
    int64_t sequence; /* T; 0: 128 */
    uint64_t seed;    /* of offsets and order */
} wg_causal_batch_options;

/* Batches (wg_causal_batch) of a stream, which must outlive them; an example is a window.
 * [ARGUMENT for options out of range or a stream of fewer than T + 1 tokens; MEMORY] */
WG_API wg_batches *wg_causal_batches_new(const wg_dataset *stream,
                                         const wg_causal_batch_options *options);

WG_END_DECLS

#endif
