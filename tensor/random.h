/* Counter-based random numbers (Philox4x32-10; Salmon et al. 2011), through Random123.
 *
 * The i-th number of a draw is a pure function of (seed, offset, i), so any thread count gives the
 * same numbers, dropout can be replayed in backward without a stored mask, and the whole state is
 * two integers that a checkpoint can hold. */
#ifndef WG_TENSOR_RANDOM_H
#define WG_TENSOR_RANDOM_H

#include <stdint.h>

#include "../base/api.h"

WG_BEGIN_DECLS

typedef struct wg_generator {
    uint64_t seed;
    uint64_t offset; /* of the next draw; every draw increments it */
} wg_generator;

/* The generator that is used where NULL is given; one per thread, seeded with 0 at first. */
WG_API wg_generator *wg_default_generator(void);

/* Seeds this thread's default generator and sets its offset to 0. */
WG_API void wg_manual_seed(uint64_t seed);

/* One number from the generator's next draw (which it consumes): uniform in [0, 1) with 53 bits. */
WG_API double wg_random_uniform(wg_generator *generator);

/* An integer in [0, bound), without modulo bias, consuming one draw. bound >= 1. */
WG_API uint64_t wg_random_below(wg_generator *generator, uint64_t bound);

/* One number from the standard normal distribution, consuming one draw (Box-Muller). */
WG_API double wg_random_normal(wg_generator *generator);

WG_END_DECLS

#endif
