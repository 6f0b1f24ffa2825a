/* Philox over many counters at once. Random123's function is plain arithmetic on words, so a loop
 * over counters that keeps each word in an array of its own is one the compiler vectorises. */
#include <Random123/philox.h>

static void random_words(uint64_t seed, uint64_t offset, uint64_t group, int64_t groups,
                         uint32_t *words) {
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    for (int64_t g = 0; g < groups; g++, words += WG__RANDOM_GROUP) {
        uint64_t first = (group + (uint64_t)g) * 16;
        for (uint32_t b = 0; b < 16; b++) {
            philox4x32_ctr_t counter = {{(uint32_t)first + b, (uint32_t)(first >> 32),
                                         (uint32_t)offset, (uint32_t)(offset >> 32)}};
            philox4x32_ctr_t block = philox4x32(counter, key);
            words[b] = block.v[0];
            words[16 + b] = block.v[1];
            words[32 + b] = block.v[2];
            words[48 + b] = block.v[3];
        }
    }
}

/* y = 0 where the word is below the limit, x * scale elsewhere. */
static void drop_below(int64_t n, const uint32_t *words, uint32_t limit, double scale,
                       const void *x, void *y) {
    const real *from = x;
    real *to = y;
    for (int64_t i = 0; i < n; i++)
        to[i] = words[i] < limit ? 0 : from[i] * (real)scale;
}
