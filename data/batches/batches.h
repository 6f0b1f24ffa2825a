/* Batches of any kind of data: an infinite sequence of examples, shuffled per epoch.
 *
 *     epoch 0   3 0 2 | 1                {seed, 0, 3}: example 1 comes next, then two of epoch 1
 *     epoch 1         | 1 2 | 0 3 ...
 *
 * A source builds a batch from the indices of examples. The order depends only on seed and epoch;
 * the random numbers of an example also depend on its place in the epoch. So a run can resume at
 * any position, and sees the same bits.
 *
 *     static int build(void *context, int64_t count, const wg_example *examples, void *batch);
 *
 *     wg_batch_source source = {.context = images, .build = build};
 *     wg_batches *batches =
 *         wg_batches_new(&source, &(wg_batches_options){.batch = 64, .examples = 60000});
 *     while (wg_batches_next(batches, &batch) == 0) ... */
#ifndef WG_DATA_BATCHES_BATCHES_H
#define WG_DATA_BATCHES_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "../../io/checkpoint/checkpoint.h"
#include "../../tensor/random.h"
#include "../../tensor/tensor.h"

WG_BEGIN_DECLS

/* A position in the sequence; a checkpoint saves it. */
typedef struct wg_data_position {
    uint64_t seed;
    int64_t epoch;
    int64_t next; /* examples of this epoch that were used */
} wg_data_position;

typedef struct wg_example {
    int64_t index;          /* below the number of examples of its epoch */
    int64_t place;          /* the number of examples before it in the epoch */
    wg_generator generator; /* independent random numbers for this example in this epoch */
} wg_example;

/* An epoch that is being planned. */
typedef struct wg_epoch {
    wg_data_position position; /* its beginning */
    wg_generator generator;    /* random numbers of the plan, and then of the shuffling */
    int64_t examples;          /* to be set: their number, 1 or more */
    int64_t *source_ends; /* of weighted sources: to be set, as in wg_batches_options; or NULL */
} wg_epoch;

/* The data. Functions return 0, or -1 with an error. */
typedef struct wg_batch_source {
    void *context; /* handed to every function */

    /* Fills the caller's batch struct. The examples may belong to several epochs. [scope] */
    int (*build)(void *context, int64_t count, const wg_example *examples, void *batch);

    /* Prepares an epoch; NULL: every epoch has the same examples. */
    int (*plan)(void *context, wg_epoch *epoch);

    /* With `plan`: copies what `build` needs of the plan for row `row` of the batch. A batch may
     * contain examples of two epochs, so `build` is called when the next epoch may be planned
     * already. NULL: `build` does not read the plan. */
    void (*take)(void *context, int64_t row, const wg_example *example);

    /* Frees the context; NULL: it is borrowed. */
    void (*free)(void *context);
} wg_batch_source;

typedef struct wg_batches_options {
    int64_t batch;    /* examples in a batch; 0: 32 */
    int64_t examples; /* in an epoch, if the source has no plan */
    uint64_t seed;    /* of order and random numbers */

    /* Weights distribute the examples of an epoch over the sources; the number of examples stays
     * the same. A source that is smaller than its share is repeated as often as it fits; the
     * remaining examples of the share are drawn at random in each epoch.
     *
     *     examples    |0 a 1 a 2 a|3 b 4 b 5 b 6 b 7 b|       weights 3 and 1, ends 3 and 8
     *     an epoch     0 1 2 0 1 2 5 6                        before it is shuffled
     */
    int64_t sources;       /* 0: each example once */
    const double *weights; /* (sources), above 0 */
    const int64_t
        *source_ends; /* (sources) examples up to the end of each, if the source has no plan */

    bool shuffle_from_last; /* shuffles from the last example down, as masked language models do */
} wg_batches_options;

typedef struct wg_batches wg_batches;

/* Batches of a source, which is copied; its context is freed in every case, also after an error.
 * Freed with wg_batches_free. NULL with [ARGUMENT for a batch or an epoch without examples, or for
 * sources whose ends do not ascend up to the examples or whose weights are not above 0; MEMORY; as
 * the source's plan] */
WG_API wg_batches *wg_batches_new(const wg_batch_source *source, const wg_batches_options *options);

#define WG_MAX_BATCH_TENSORS 16

/* Batches of corresponding rows of tensors, for example of images and labels.
 *
 *     wg_tensor *batch[2];
 *     wg_batches *batches = wg_tensor_batches_new(
 *         WG_TENSORS(images, labels), &(wg_batches_options){.batch = 64});
 *     while (wg_batches_next(batches, batch) == 0) ...
 *
 * tensors[i]: (N, ...)   ->   batch[i]: (B, ...), of any dtypes. N replaces options->examples. The
 * tensors' memory is shared, not copied, and the caller may release its handles.
 * [as wg_batches_new; SHAPE for tensors without rows, or of different numbers of them; ARGUMENT for
 * none, or more than WG_MAX_BATCH_TENSORS] */
WG_API wg_batches *wg_tensor_batches_new(int count, wg_tensor *const *tensors,
                                         const wg_batches_options *options);

/* A hash of dtypes, shapes and all elements of tensors, for wg_batches_save. 0 with [MEMORY] */
WG_API int64_t wg_tensors_fingerprint(int count, wg_tensor *const *tensors);

/* NULL is allowed. */
WG_API void wg_batches_free(wg_batches *batches);

/* Fills `batch`, the struct that the source builds, with the next batch. A batch continues into the
 * next epoch. After a failure the position is unchanged. [scope] 0 or -1 */
WG_API int wg_batches_next(wg_batches *batches, void *batch);

/* Saves the position to a checkpoint, below /train/data, and restores it; for wg_task. The
 * fingerprint is a hash of the data. [STATE for other data than were saved;
 * ARGUMENT for a position that no run of these examples has; as checkpoints] */
WG_API int wg_batches_save(const wg_batches *batches, wg_checkpoint *file, int64_t fingerprint);
WG_API int wg_batches_restore(wg_batches *batches, wg_checkpoint *file, int64_t fingerprint);

WG_END_DECLS

#endif
