/* Translation: sentences and their translations, for encoder-decoders   (Vaswani et al. 2017,
 * section 5.1).
 *
 *     source   Ein Hund läuft . [end]                  S, padded
 *     target   [start] A dog runs .                    input of the decoder
 *     labels   A dog runs . [end]                      tokens to predict
 *
 * A batch has pairs of similar length: it is filled until a side, with its padding, has a given
 * number of tokens. Each epoch shuffles the pairs of equal lengths, and the batches. Only the
 * lengths of a pair are in memory, 16 bytes (40 with weights); its tokens are read when its batch
 * is built.
 *
 * Metrics of an evaluation: `loss` and `perplexity`; with wg_evaluation_options also sacreBLEU's
 * figures of the translations. */
#ifndef WG_OBJECTIVES_TRANSLATION_H
#define WG_OBJECTIVES_TRANSLATION_H

#include "../data/tokenizer/kind.h"
#include "objective.h"

/* Owned by the scope that was open. */
typedef struct wg__translation_batch {
    wg_tensor *source;      /* (B, S) i64 */
    wg_tensor *source_keep; /* (B, S) bool, false for padding; NULL where there is none */
    wg_tensor *target;      /* (B, T) i64; padding is last: causal attention does not see it */
    wg_tensor *labels;      /* (B, T) i64; -100 for padding */
    int64_t tokens;         /* labels that count */
} wg__translation_batch;

/* Fills `batch` with these pairs. [scope; INDEX, MEMORY; FORMAT, IO] */
int wg__translation_batch_read(const wg_dataset *pairs, const wg__translation_tokens *tokens,
                               int64_t count, const int64_t *indices, wg__translation_batch *batch);

/* Makes the sources of a batch from B rows of ids: (B, S) i64, and keep as above.
 * [scope; MEMORY] */
int wg__translation_sources(int64_t count, const wg_token_list *rows,
                            const wg__translation_tokens *tokens, wg_tensor **source,
                            wg_tensor **keep);

typedef struct wg__translation_batch_options {
    int64_t tokens;  /* of a side in a batch, with padding, at most; 0: 4096 */
    int64_t longest; /* pairs with more tokens in a side, the end included, are left out; 0: 128 */
    uint64_t seed;   /* of all choices */
} wg__translation_batch_options;

/* Batches (wg__translation_batch) of pairs, which must outlive them; an example of wg_batches is a
 * whole batch of pairs. An epoch has the number of pairs of the dataset, drawn from each source by
 * its current weight; the number of batches may differ between epochs. [ARGUMENT for options out of
 * range, a batch that does not hold one sentence of the longest, or pairs that are all too long;
 * MEMORY; as reading pairs] */
wg_batches *wg__translation_batches_new(const wg_dataset *pairs,
                                        const wg__translation_tokens *tokens,
                                        const wg__translation_batch_options *options);

/* Pairs that are left out because they are too long. */
int64_t wg__translation_batches_left_out(const wg_batches *batches);

/* Translates B sources (B, S), with `keep` (B, S), false for padding, or NULL, by beam search, in
 * evaluation mode and without recording; beam.h explains the options, NULL for their defaults, and
 * results[0 .. B-1]. Start and end are the model's. A translation has at most 50 tokens more than
 * its source, as in the paper, and no more than the model has positions. The caller frees
 * results[i].tokens, also after a failure. [SHAPE, INDEX, DTYPE, ARGUMENT, MEMORY] */
int wg__translate_batch(const wg_model *model, wg_tensor *source, wg_tensor *keep,
                        const wg_beam_options *options, wg_beam_result *results);

#endif
