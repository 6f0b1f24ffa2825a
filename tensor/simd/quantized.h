/* Dequantizing rows (quantize.h), and products with few rows of x and weights in bf16, in the table
 * of f32 only. Products with blocks of integers are in kernels_i8.c. */
#if WG__BITS == 32

#if defined(__F16C__)
#include <immintrin.h>
#endif
#include "tensor/quantize_rows.h"

enum { BLOCK_VECTORS = WG__BLOCK / LANES };

/* The scale of a block, in all lanes. Loading 8 bytes goes straight to a vector register, which
 * loading the 2 bytes of the scale does not. */
static inline vector quantized_scale(const uint8_t *block) {
#if defined(__AVX512F__)
    return _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)block)));
#elif defined(__F16C__)
    return _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)block)));
#else
    return wg__half_to_f32((uint16_t)(block[0] | block[1] << 8)) + (vector){0};
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
    return (vector)(__builtin_convertvector(upper, words) << 16);
}

/* The 32 unscaled numbers of a q4_0 block: each byte has a number of the block's first half and a
 * number of its second half. */
static inline void numbers_of_nibbles(const uint8_t *bytes, vector *numbers) {
#if defined(__AVX512F__)
    const vector levels = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    const __m512i pairs = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
    numbers[0] = _mm512_permutexvar_ps(pairs, levels);
    numbers[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(pairs, 4), levels);
#else
    typedef uint8_t pairs __attribute__((vector_size(WG__BLOCK / 2)));
    pairs both, halves[2];
    memcpy(&both, bytes, sizeof both);
    halves[0] = (both & 15) - 8;
    halves[1] = (both >> 4) - 8;
    for (int v = 0; v < BLOCK_VECTORS; v++)
        numbers[v] = numbers_of_bytes((const int8_t *)halves + v * LANES);
#endif
}

/* The 32 numbers of a block; unscaled for q8_0 and q4_0. */
static inline void numbers_of_block(wg_quantization quantization, const uint8_t *block,
                                    vector *numbers) {
    if (quantization == WG_QUANTIZATION_Q4_0) {
        numbers_of_nibbles(block + WG__BLOCK_SCALE, numbers);
        return;
    }
    for (int v = 0; v < BLOCK_VECTORS; v++)
        numbers[v] = quantization == WG_QUANTIZATION_BF16
                         ? numbers_of_bf16(block + 2 * v * LANES)
                         : numbers_of_bytes((const int8_t *)block + WG__BLOCK_SCALE + v * LANES);
}

/* ---- Products of bf16, with a constant number of rows of x: sums stay in registers ---- */

/* Adds the products of 32 numbers with each row of x to the first or second of its two sums. */
WG__ALWAYS_INLINE void add_to_rows(const int x_rows, const uint8_t *block, const real *x,
                                   int64_t x_stride, const int which, vector (*sums)[2]) {
    vector numbers[BLOCK_VECTORS];
    numbers_of_block(WG_QUANTIZATION_BF16, block, numbers);
    for (int r = 0; r < x_rows; r++)
        for (int v = 0; v < BLOCK_VECTORS; v++)
            sums[r][which] += numbers[v] * load(x + r * x_stride + v * LANES);
}

/* Rows of the weight by each row of x. Two sums for each product hide the latency of additions. */
WG__ALWAYS_INLINE void bf16_rows(const int x_rows, const wg__quantized_product *p, int64_t begin,
                                 int64_t end, const real *x, real *y) {
    const int64_t size = 2 * WG__BLOCK, n = p->n, stride = p->x_stride;
    for (int64_t o = begin; o < end; o++) {
        const uint8_t *block = (const uint8_t *)p->weight + o * p->weight_stride;
        const double bias = p->bias ? (double)p->bias[o] : 0;
        vector sums[WG__ROWS_AT_ONCE][2] = {{{0}}};
        int64_t i = 0;
        for (; i + 2 * WG__BLOCK <= n; i += 2 * WG__BLOCK, block += 2 * size) {
            add_to_rows(x_rows, block, x + i, stride, 0, sums);
            add_to_rows(x_rows, block + size, x + i + WG__BLOCK, stride, 1, sums);
        }
        if (i + WG__BLOCK <= n) {
            add_to_rows(x_rows, block, x + i, stride, 0, sums);
            i += WG__BLOCK;
            block += size;
        }
        if (i < n) {
            uint8_t last[2 * WG__BLOCK] = {0};
            real last_x[WG__ROWS_AT_ONCE][WG__BLOCK] = {{0}};
            memcpy(last, block, (size_t)(n - i) * 2);
            for (int r = 0; r < x_rows; r++)
                memcpy(last_x[r], x + r * stride + i, (size_t)(n - i) * sizeof *x);
            add_to_rows(x_rows, last, last_x[0], WG__BLOCK, 1, sums);
        }
        for (int r = 0; r < x_rows; r++)
            y[o + r * p->y_stride] = (real)(bias + (double)sum_lanes(sums[r][0] + sums[r][1]));
    }
}

static void bf16_product(const wg__quantized_product *p, int64_t begin, int64_t end) {
#define OF(rows) bf16_rows(rows, p, begin, end, x, y)
    for (int64_t r = 0; r < p->x_rows; r += WG__ROWS_AT_ONCE) {
        const real *x = p->x + r * p->x_stride;
        real *y = p->y + r * p->y_stride;
        const int64_t left = p->x_rows - r;
        switch (left < WG__ROWS_AT_ONCE ? left : WG__ROWS_AT_ONCE) {
            WG__CASES(WG__ROWS_AT_ONCE, OF)
        }
    }
#undef OF
}

/* ---- Dequantizing ---- */

WG__ALWAYS_INLINE void dequantize(const wg_quantization quantization, int64_t n,
                                  const uint8_t *block, real *to) {
    const int64_t size = quantization == WG_QUANTIZATION_BF16   ? 2 * WG__BLOCK
                         : quantization == WG_QUANTIZATION_Q8_0 ? WG__BLOCK_SCALE + WG__BLOCK
                                                                : WG__BLOCK_SCALE + WG__BLOCK / 2;
    vector numbers[BLOCK_VECTORS];
    int64_t i = 0;
    for (; i + WG__BLOCK <= n; i += WG__BLOCK, block += size) {
        numbers_of_block(quantization, block, numbers);
        for (int v = 0; v < BLOCK_VECTORS; v++)
            store(to + i + v * LANES, quantization == WG_QUANTIZATION_BF16
                                          ? numbers[v]
                                          : quantized_scale(block) * numbers[v]);
    }
    for (; i < n; i++, block += 2) { /* bf16 alone may end within a block */
        uint8_t one[2 * LANES] = {block[0], block[1]};
        to[i] = numbers_of_bf16(one)[0];
    }
}

static void dequantize_row(wg_quantization quantization, int64_t n, const void *row,
                           void *numbers) {
    if (quantization == WG_QUANTIZATION_BF16)
        dequantize(WG_QUANTIZATION_BF16, n, row, numbers);
    else if (quantization == WG_QUANTIZATION_Q8_0)
        dequantize(WG_QUANTIZATION_Q8_0, n, row, numbers);
    else
        dequantize(WG_QUANTIZATION_Q4_0, n, row, numbers);
}
#endif
