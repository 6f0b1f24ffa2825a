/* What batch builders draw by chance. */
#include "data/batches/rng.h"

/* The finaliser of SplitMix64 (Steele et al. 2014): one-to-one, every bit depends on all. */
static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static wg_generator generator_for(const wg_data_position *at, uint64_t use) {
    return (wg_generator){.seed = mix(mix(mix(at->seed) ^ (uint64_t)at->epoch) ^ use)};
}

wg_generator wg__chance_of_epoch(const wg_data_position *at) {
    return generator_for(at, 0);
}

wg_generator wg__chance_of_example(const wg_data_position *at) {
    return generator_for(at, (uint64_t)at->next + 1);
}

int64_t wg__chance_between(wg_generator *generator, int64_t low, int64_t high) {
    return low + (int64_t)wg_random_below(generator, (uint64_t)(high - low + 1));
}
