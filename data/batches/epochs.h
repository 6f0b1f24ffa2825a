/* Examples in an endless row of epochs, each in an order of its own: for batch builders whose
 * examples are the same in every epoch, or are made for each.
 *
 *     epoch 0   3 0 2 1          {seed, 0, 2}: example 2 comes next, then 1, then 1 of epoch 1
 *     epoch 1   1 2 0 3 ...
 *
 * The order is a pure function of seed and epoch: to go to any place needs no history. What is
 * drawn for an example comes from wg__chance_of_example of its position (chance.h). */
#ifndef WG_DATA_BATCHES_EPOCHS_H
#define WG_DATA_BATCHES_EPOCHS_H

#include "data/dataset/mixture.h"
#include "data/batches/position.h"

/* Makes the examples of the epoch of a position, and says how many they are: at least 1. */
typedef int64_t (*wg__epoch_maker)(void *context, const wg_data_position *position);

/* {0} is empty and may be cleared. */
typedef struct wg__epochs {
    wg_data_position position;  /* of the example that comes next */
    int64_t count;              /* of examples in this epoch, at least 1 */
    int64_t *order;             /* of this epoch */
    const wg__mixture *mixture; /* NULL: each example once */
    wg__epoch_maker make;       /* NULL: they are the same in every epoch */
    void *context;              /* of `make` */
} wg__epochs;

/* The first epoch of so many examples. Cleared with wg__epochs_clear. -1 with MEMORY */
int wg__epochs_begin(wg__epochs *epochs, int64_t count, uint64_t seed);

/* Has the first epoch, and all others, take examples in proportions, which are borrowed. */
void wg__epochs_mix(wg__epochs *epochs, const wg__mixture *mixture);

/* Has the examples of the first epoch, and of all others, be made: no more than `count` was. */
void wg__epochs_make(wg__epochs *epochs, wg__epoch_maker make, void *context);

void wg__epochs_clear(wg__epochs *epochs);

/* The example that comes next, below count; and going on to the one after it, over the end of an
 * epoch into the next. */
int64_t wg__epochs_example(const wg__epochs *epochs);
void wg__epochs_advance(wg__epochs *epochs);

/* The `count` examples that come next, after which the epochs have gone on. */
void wg__epochs_take(wg__epochs *epochs, int64_t count, int64_t *examples);

/* Back to a position that it has had, when a batch could not be made. */
void wg__epochs_return(wg__epochs *epochs, wg_data_position position);

/* To any position. `where` is for the message. [ARGUMENT for one that no run of these examples
 * has had; then nothing changes] */
int wg__epochs_seek(wg__epochs *epochs, const char *where, const wg_data_position *position);

/* 0 if there is such a position where its epoch has so many examples. [ARGUMENT] */
int wg__position_check(const char *where, const wg_data_position *position, int64_t count);

#endif
