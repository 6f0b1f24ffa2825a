/* What batch builders draw by chance: pure functions of where a run stands, so that going to any
 * place needs no history. */
#ifndef WG_DATA_BATCHES_RNG_H
#define WG_DATA_BATCHES_RNG_H

#include "data/batches/position.h"
#include "tensor/random.h"

/* The generator of the position's epoch, and that of its example: none depends on how many numbers
 * another drew. */
wg_generator wg__chance_of_epoch(const wg_data_position *at);
wg_generator wg__chance_of_example(const wg_data_position *at);

/* An integer from low to high, both included. */
int64_t wg__chance_between(wg_generator *generator, int64_t low, int64_t high);

#endif
