/* Helpers of the functions that build batches of text. */
#ifndef WG_DATA_BATCHES_BUILDER_H
#define WG_DATA_BATCHES_BUILDER_H

#include "data/batches/batches.h"
#include "data/dataset/dataset.h"
#include "data/internal.h"

/* Replaces zeros by a batch of 32 and sequences of 128 tokens, and checks both; without `sequence`
 * the batch alone. [ARGUMENT for a batch of none, or sequences of fewer than 8 tokens] */
int wg__batch_sizes(const char *where, int64_t *batch, int64_t *sequence);

/* [ARGUMENT unless the text was tokenised with a vocabulary of this size] */
int wg__batch_vocabulary(const char *where, const wg_dataset *text, int64_t size);

/* An integer from low to high, both included. */
int64_t wg__random_between(wg_generator *generator, int64_t low, int64_t high);

/* Notes in `ends` that the first `documents` of a text have so many examples, for the sources that
 * end there. Called with ascending numbers; *source is 0 at first. `ends` may be NULL. */
void wg__note_source_ends(const wg_dataset *text, int64_t documents, int64_t examples,
                          int64_t *source, int64_t *ends);

/* Fills order[0 .. count - 1] with the examples of an epoch of weighted sources, not yet shuffled.
 */
void wg__weigh_examples(const wg_batches_options *options, const int64_t *ends, int64_t count,
                        wg_generator *generator, int64_t *order);

/* Windows of a text: in each epoch cut one after the other, `length` tokens apart, from a random
 * offset below `length` on. */
typedef struct wg__windows {
    const wg_dataset *text;
    int64_t length;
    int64_t offset;  /* of the epoch that was planned last */
    int64_t *starts; /* (batch) the tokens with which those of the batch begin */
} wg__windows;

/* [ARGUMENT for a text of fewer than length + 1 tokens; MEMORY] */
int wg__windows_begin(wg__windows *windows, const char *where, const wg_dataset *text,
                      int64_t length, int64_t batch);

/* Batches whose context begins with these windows, by the source's `build` and `free`; with the
 * text's sources and their weights. */
wg_batches *wg__window_batches_new(wg__windows *windows, wg_batch_source source, int64_t batch,
                                   uint64_t seed);

/* The token with which a document of a text of any kind begins. */
int64_t wg__document_token(const wg_dataset *text, int64_t document);

/* The batches' options with the text's sources and their weights, which are borrowed. */
void wg__use_weights(const wg_dataset *text, wg_batches_options *options);

/* Goes past the next batch of wg__batches_next_of_epoch without building it. */
int wg__batches_skip_of_epoch(wg_batches *batches);

/* How many batches wg__batches_next_of_epoch gives of this epoch. */
int64_t wg__batches_in_epoch(const wg_batches *batches);

/* wg_batches_restore with the message "WHERE: WHAT are not those that the run was begun with". */
int wg__batches_restore(wg_batches *batches, wg_checkpoint *file, int64_t fingerprint,
                        const char *where, const char *what);

/* The context of the source. */
void *wg__batches_context(const wg_batches *batches);

#endif
