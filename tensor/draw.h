/* One draw of a generator, for files that fill tensors from it. */
#ifndef WG_TENSOR_DRAW_H
#define WG_TENSOR_DRAW_H

#include "tensor/random.h"

/* The generator's next draw, which it consumes; NULL is the default generator. */
wg_generator wg__next_draw(wg_generator *generator);

/* Number `index` of a draw: uniform in [0, 1) with 53 bits. */
double wg__draw_uniform(wg_generator draw, uint64_t index);

#endif
