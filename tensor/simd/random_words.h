/* Philox4x32-10 (Salmon et al. 2011) on many counters at once; random.c defines a block.
 *
 * Random123, which wg__random_bits uses, computes one block at a time; the tests compare the two.
 * Here a vector holds one word of as many blocks as it has lanes. */
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { BLOCKS = WG__VECTOR_BYTES < 16 ? 1 : WG__VECTOR_BYTES / 4, ROUNDS = 10, GROUP_BLOCKS = 16 };

typedef uint32_t words_of_blocks __attribute__((vector_size(4 * BLOCKS)));

/* The halves of the 64-bit products of all words with a constant. x86 multiplies only the even
 * words; the odd ones are shifted into their place for a second product. */
static inline void multiply_words(words_of_blocks words, uint32_t constant, words_of_blocks *high,
                                  words_of_blocks *low) {
#if defined(__AVX512F__)
    __m512i c = _mm512_set1_epi32((int)constant), w = (__m512i)words;
    __m512i even = _mm512_mul_epu32(w, c), odd = _mm512_mul_epu32(_mm512_srli_epi64(w, 32), c);
    *high = (words_of_blocks)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    *low = (words_of_blocks)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
#elif defined(__AVX2__)
    __m256i c = _mm256_set1_epi32((int)constant), w = (__m256i)words;
    __m256i even = _mm256_mul_epu32(w, c), odd = _mm256_mul_epu32(_mm256_srli_epi64(w, 32), c);
    *high = (words_of_blocks)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *low = (words_of_blocks)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
#elif defined(__SSE2__)
    __m128i c = _mm_set1_epi32((int)constant), w = (__m128i)words;
    __m128i upper = _mm_set_epi32(-1, 0, -1, 0);
    __m128i even = _mm_mul_epu32(w, c), odd = _mm_mul_epu32(_mm_srli_epi64(w, 32), c);
    *high = (words_of_blocks)_mm_or_si128(_mm_srli_epi64(even, 32), _mm_and_si128(upper, odd));
    *low = (words_of_blocks)_mm_or_si128(_mm_andnot_si128(upper, even), _mm_slli_epi64(odd, 32));
#else
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t product = (uint64_t)words[i] * constant;
        (*high)[i] = (uint32_t)(product >> 32);
        (*low)[i] = (uint32_t)product;
    }
#endif
}

/* One round, with the paper's multipliers. */
static inline void philox_round(words_of_blocks c[4], uint32_t key0, uint32_t key1) {
    words_of_blocks high0, low0, high2, low2;
    multiply_words(c[0], 0xD2511F53u, &high0, &low0);
    multiply_words(c[2], 0xCD9E8D57u, &high2, &low2);
    c[0] = high2 ^ c[1] ^ key0;
    c[1] = low2;
    c[2] = high0 ^ c[3] ^ key1;
    c[3] = low0;
}

/* The words of 2 BLOCKS blocks from `first` on, as two independent chains: the instructions of one
 * wait for one another, and those of the other fill the gaps. */
static inline void philox_blocks(uint32_t key[ROUNDS][2], uint64_t offset, uint64_t first,
                                 words_of_blocks c[2][4]) {
    words_of_blocks zero = {0}, ahead = {0};
    for (int i = 0; i < BLOCKS; i++)
        ahead[i] = (uint32_t)i;
    for (int half = 0; half < 2; half++) {
        uint64_t block = first + (uint64_t)half * BLOCKS; /* BLOCKS divides 2^32: no carry */
        c[half][0] = ahead + (uint32_t)block;
        c[half][1] = zero + (uint32_t)(block >> 32);
        c[half][2] = zero + (uint32_t)offset;
        c[half][3] = zero + (uint32_t)(offset >> 32);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int half = 0; half < 2; half++)
            philox_round(c[half], key[round][0], key[round][1]);
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
    for (int64_t done = 0; done < blocks; done += 2 * BLOCKS) {
        words_of_blocks c[2][4];
        philox_blocks(key, offset, group * GROUP_BLOCKS + (uint64_t)done, c);
        for (int half = 0; half < 2; half++) {
            int64_t block = done + half * BLOCKS;
            uint32_t *to = words + block / GROUP_BLOCKS * WG__RANDOM_GROUP + block % GROUP_BLOCKS;
            for (int word = 0; word < 4 && block < blocks; word++)
                memcpy(to + word * GROUP_BLOCKS, &c[half][word], sizeof c[half][word]);
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
