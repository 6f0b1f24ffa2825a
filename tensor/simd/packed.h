/* Products with packed rows (packing.h), of f32 alone. A row is read once and never unpacked to
 * memory. */
#if WG__BITS == 32

#if defined(__F16C__)
#include <immintrin.h>
#endif
#include "tensor/packing_rows.h"

enum { PACKED_BLOCK = 32, PACKED_SCALE = 2, BLOCK_VECTORS = PACKED_BLOCK / LANES };

static inline float packed_scale(const uint8_t *block) {
    const uint16_t half = (uint16_t)(block[0] | block[1] << 8);
#if defined(__F16C__)
    return _cvtsh_ss(half);
#else
    return wg__half_to_f32(half);
#endif
}

/* LANES signed bytes as numbers. gcc has no vector conversion that widens bytes well. */
static inline vector numbers_of_bytes(const int8_t *bytes) {
#if defined(__AVX512F__)
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)bytes)));
#elif defined(__AVX2__)
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)bytes)));
#else
    vector numbers;
    for (int i = 0; i < LANES; i++)
        numbers[i] = (real)bytes[i];
    return numbers;
#endif
}

/* LANES bf16 as numbers. */
static inline vector numbers_of_bf16(const uint8_t *bytes) {
    typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
    typedef uint32_t words __attribute__((vector_size(4 * LANES)));
    halves upper;
    memcpy(&upper, bytes, sizeof upper);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    upper = upper >> 8 | upper << 8;
#endif
    return (vector)(__builtin_convertvector(upper, words) << 16);
}

static double packed_dot_bf16(int64_t n, const void *row, const void *x) {
    const uint8_t *bytes = row;
    const real *by = x;
    vector s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        s0 += numbers_of_bf16(bytes + 2 * i) * load(by + i);
        s1 += numbers_of_bf16(bytes + 2 * (i + LANES)) * load(by + i + LANES);
        s2 += numbers_of_bf16(bytes + 2 * (i + 2 * LANES)) * load(by + i + 2 * LANES);
        s3 += numbers_of_bf16(bytes + 2 * (i + 3 * LANES)) * load(by + i + 3 * LANES);
    }
    for (; i + LANES <= n; i += LANES)
        s0 += numbers_of_bf16(bytes + 2 * i) * load(by + i);
    if (i < n) {
        uint8_t rest[2 * LANES] = {0};
        memcpy(rest, bytes + 2 * i, (size_t)(n - i) * 2);
        s1 += numbers_of_bf16(rest) * load_part(by + i, n - i, 0);
    }
    return (double)sum_lanes((s0 + s1) + (s2 + s3));
}

/* The sum of 32 numbers in bytes times x, in lanes. */
static inline vector block_product(const int8_t *bytes, const real *x) {
    vector sum = numbers_of_bytes(bytes) * load(x);
    for (int v = 1; v < BLOCK_VECTORS; v++)
        sum += numbers_of_bytes(bytes + v * LANES) * load(x + v * LANES);
    return sum;
}

static double packed_dot_q8_0(int64_t n, const void *row, const void *x) {
    const uint8_t *block = row;
    const real *by = x;
    vector s0 = {0}, s1 = {0};
    int64_t i = 0;
    for (; i + 2 * PACKED_BLOCK <= n; i += 2 * PACKED_BLOCK) {
        const uint8_t *next = block + PACKED_SCALE + PACKED_BLOCK;
        s0 += packed_scale(block) * block_product((const int8_t *)block + PACKED_SCALE, by + i);
        s1 += packed_scale(next) *
              block_product((const int8_t *)next + PACKED_SCALE, by + i + PACKED_BLOCK);
        block = next + PACKED_SCALE + PACKED_BLOCK;
    }
    if (i < n)
        s0 += packed_scale(block) * block_product((const int8_t *)block + PACKED_SCALE, by + i);
    return (double)sum_lanes(s0 + s1);
}

static inline vector nibble_product(const uint8_t *block, const real *x) {
    typedef uint8_t pairs __attribute__((vector_size(PACKED_BLOCK / 2)));
    pairs bytes, numbers[2];
    memcpy(&bytes, block + PACKED_SCALE, sizeof bytes);
    numbers[0] = (bytes & 15) - 8;
    numbers[1] = (bytes >> 4) - 8;
    return packed_scale(block) * block_product((const int8_t *)numbers, x);
}

static double packed_dot_q4_0(int64_t n, const void *row, const void *x) {
    enum { BYTES = PACKED_SCALE + PACKED_BLOCK / 2 };
    const uint8_t *block = row;
    const real *by = x;
    vector s0 = {0}, s1 = {0};
    int64_t i = 0;
    for (; i + 2 * PACKED_BLOCK <= n; i += 2 * PACKED_BLOCK, block += 2 * BYTES) {
        s0 += nibble_product(block, by + i);
        s1 += nibble_product(block + BYTES, by + i + PACKED_BLOCK);
    }
    if (i < n)
        s0 += nibble_product(block, by + i);
    return (double)sum_lanes(s0 + s1);
}
#endif
