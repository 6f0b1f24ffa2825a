/* Philox4x32-10 (Salmon et al. 2011) on many counters at once; random.c defines a block.
 *
 * Random123, which wg__random_bits uses, computes one block at a time; the tests compare the two.
 * Here a vector holds one word of several blocks, one in each 64 bits: a product of 32 by 32 bits
 * fills these, its low half is the next factor where it lies, and bits above a word are ignored.
 * A vector has the even blocks, a second vector the odd blocks:
 *
 *     words of blocks    | 0 1 2 3 4 5 .. |   =   | 0 . 2 . 4 . .. |  with  | 1 . 3 . 5 . .. | */
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { BLOCKS = WG__VECTOR_BYTES < 16 ? 2 : WG__VECTOR_BYTES / 4, ROUNDS = 10, GROUP_BLOCKS = 16 };

/* Chains of even and of odd blocks that are computed at once. Within a chain each instruction waits
 * for the one before; instructions of more chains fill the gaps, as far as registers go. */
#if defined(__AVX512F__)
enum { CHAINS = 4 };
#else
enum { CHAINS = 2 };
#endif

enum { BLOCKS_AT_ONCE = CHAINS / 2 * BLOCKS };

typedef uint32_t words_of_blocks __attribute__((vector_size(4 * BLOCKS)));
typedef uint64_t wide_words __attribute__((vector_size(4 * BLOCKS)));

/* The products of the low halves of all elements with a constant. */
static inline wide_words multiply_words(wide_words words, uint32_t constant) {
#if defined(__AVX512F__)
    return (wide_words)_mm512_mul_epu32((__m512i)words, _mm512_set1_epi64(constant));
#elif defined(__AVX2__)
    return (wide_words)_mm256_mul_epu32((__m256i)words, _mm256_set1_epi64x(constant));
#elif defined(__SSE2__)
    return (wide_words)_mm_mul_epu32((__m128i)words, _mm_set1_epi64x(constant));
#else
    return (words & UINT32_MAX) * constant;
#endif
}

/* One round, with the paper's multipliers. */
static inline void philox_round(wide_words c[4], uint32_t key0, uint32_t key1) {
    const wide_words product0 = multiply_words(c[0], 0xD2511F53u);
    const wide_words product2 = multiply_words(c[2], 0xCD9E8D57u);
    c[0] = (product2 >> 32) ^ c[1] ^ key0;
    c[1] = product2;
    c[2] = (product0 >> 32) ^ c[3] ^ key1;
    c[3] = product0;
}

/* The words of BLOCKS_AT_ONCE blocks from `first` on, a multiple of BLOCKS. */
static inline void philox_blocks(uint32_t key[ROUNDS][2], uint64_t offset, uint64_t first,
                                 words_of_blocks words[CHAINS / 2][4]) {
    wide_words c[CHAINS][4], zero = {0}, even = {0};
    for (int i = 0; i < BLOCKS / 2; i++)
        even[i] = 2 * (uint64_t)i;
    for (int chain = 0; chain < CHAINS; chain++) {
        /* BLOCKS divides 2^32: no carry */
        const uint64_t block = first + (uint64_t)(chain / 2 * BLOCKS);
        c[chain][0] = even + ((block & UINT32_MAX) + (uint64_t)(chain % 2));
        c[chain][1] = zero + (block >> 32);
        c[chain][2] = zero + (offset & UINT32_MAX);
        c[chain][3] = zero + (offset >> 32);
    }
#pragma GCC unroll 10
    for (int round = 0; round < ROUNDS; round++)
        for (int chain = 0; chain < CHAINS; chain++)
            philox_round(c[chain], key[round][0], key[round][1]);
    for (int half = 0; half < CHAINS / 2; half++)
        for (int word = 0; word < 4; word++)
            words[half][word] =
                (words_of_blocks)((c[2 * half][word] & UINT32_MAX) | c[2 * half + 1][word] << 32);
}

/* Word j of block b of a group is at index 16 j + b. */
static void random_words(uint64_t seed, uint64_t offset, uint64_t group, int64_t groups,
                         uint32_t *words) {
    uint32_t key[ROUNDS][2] = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    for (int round = 1; round < ROUNDS; round++) {
        key[round][0] = key[round - 1][0] + 0x9E3779B9u;
        key[round][1] = key[round - 1][1] + 0xBB67AE85u;
    }
    int64_t blocks = groups * GROUP_BLOCKS;
    for (int64_t done = 0; done < blocks; done += BLOCKS_AT_ONCE) {
        words_of_blocks c[CHAINS / 2][4];
        philox_blocks(key, offset, group * GROUP_BLOCKS + (uint64_t)done, c);
        for (int half = 0; half < CHAINS / 2; half++) {
            int64_t block = done + half * BLOCKS;
            uint32_t *to = words + block / GROUP_BLOCKS * WG__RANDOM_GROUP + block % GROUP_BLOCKS;
            for (int word = 0; word < 4 && block < blocks; word++)
                memcpy(to + word * GROUP_BLOCKS, &c[half][word], sizeof c[half][word]);
        }
    }
}

static void drop_below(int64_t n, const uint32_t *words, uint32_t limit, double scale,
                       const void *x, void *y) {
    const real *from = x;
    real *to = y;
    for (int64_t i = 0; i < n; i++)
        to[i] = words[i] < limit ? 0 : from[i] * (real)scale;
}
