/* Examples in an endless row of epochs: see epochs.h. */
#include "data/batches/epochs.h"

#include "data/batches/rng.h"
#include "tensor/internal.h"

/* Shuffles the epoch of `position`, which becomes the epochs' own (Fisher & Yates). */
static void shuffle(wg__epochs *epochs, wg_data_position position) {
    wg_generator g = wg__chance_of_epoch(&position);
    epochs->position = position;
    if (epochs->make)
        epochs->count = epochs->make(epochs->context, &position);
    wg__mixture_fill(epochs->mixture, &g, epochs->count, epochs->order);
    for (int64_t i = 0; i < epochs->count; i++) {
        const int64_t j = wg__chance_between(&g, 0, i), example = epochs->order[i];
        epochs->order[i] = epochs->order[j];
        epochs->order[j] = example;
    }
}

int wg__epochs_begin(wg__epochs *epochs, int64_t count, uint64_t seed) {
    *epochs = (wg__epochs){.count = count};
    epochs->order = wg__alloc((size_t)count * sizeof *epochs->order);
    if (!epochs->order)
        return -1;
    shuffle(epochs, (wg_data_position){.seed = seed});
    return 0;
}

void wg__epochs_mix(wg__epochs *epochs, const wg__mixture *mixture) {
    epochs->mixture = mixture;
    shuffle(epochs, epochs->position);
}

void wg__epochs_make(wg__epochs *epochs, wg__epoch_maker make, void *context) {
    epochs->make = make;
    epochs->context = context;
    shuffle(epochs, epochs->position);
}

void wg__epochs_clear(wg__epochs *epochs) {
    wg__free(epochs->order);
    *epochs = (wg__epochs){0};
}

int64_t wg__epochs_example(const wg__epochs *epochs) {
    return epochs->order[epochs->position.next];
}

void wg__epochs_advance(wg__epochs *epochs) {
    const wg_data_position now = epochs->position;
    if (++epochs->position.next == epochs->count)
        shuffle(epochs, (wg_data_position){.seed = now.seed, .epoch = now.epoch + 1});
}

void wg__epochs_take(wg__epochs *epochs, int64_t count, int64_t *examples) {
    for (int64_t i = 0; i < count; i++) {
        examples[i] = wg__epochs_example(epochs);
        wg__epochs_advance(epochs);
    }
}

void wg__epochs_return(wg__epochs *epochs, wg_data_position position) {
    if (position.seed == epochs->position.seed && position.epoch == epochs->position.epoch)
        epochs->position = position;
    else
        shuffle(epochs, position);
}

int wg__epochs_seek(wg__epochs *epochs, const char *where, const wg_data_position *position) {
    const wg_data_position before = epochs->position;
    if (!position || wg__position_check(where, position, INT64_MAX) < 0)
        return -1;
    wg__epochs_return(epochs, *position);
    if (wg__position_check(where, position, epochs->count) == 0)
        return 0;
    wg__epochs_return(epochs, before);
    return -1;
}

int wg__position_check(const char *where, const wg_data_position *position, int64_t count) {
    if (position->epoch < 0 || position->next < 0)
        return wg_fail(WG_ERROR_ARGUMENT, where, "epoch %lld, example %lld is no position",
                       (long long)position->epoch, (long long)position->next);
    if (position->next >= count)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "example %lld of an epoch of %lld: was the corpus another one?",
                       (long long)position->next, (long long)count);
    return 0;
}
