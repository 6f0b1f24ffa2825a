/* The kernels on blocks of integers for the instruction set that this file is compiled for.
 *
 *     a block of 16 rows of the weight     a block of a row of x
 *     +----+----+---- ... +----+
 *     |0..3|0..3|         |0..3|      x    0..3, in every lane     16 sums, a lane for each output
 *     |4..7|4..7|         |4..7|      x    4..7
 *     ...                                                                                       */
#define WG__BITS 32
#include <stdbool.h>

#include "tensor/quantize_rows.h"
#include "tensor/simd/simd.h"
#include "tensor/simd/vector.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { STEP = 4, STEPS = WG__BLOCK / STEP, PARTS = WG__GROUP / LANES };

#if defined(__AVX512F__)
#define WG__I8_ROWS 12
#elif defined(WG__SCALAR)
#define WG__I8_ROWS 1
#else
#define WG__I8_ROWS 4
#endif

typedef uint8_t bytes __attribute__((vector_size(WG__VECTOR_BYTES)));

/* The same 4 bytes for every lane. */
static inline lanes spread(const uint8_t *from) {
    lane four;
    memcpy(&four, from, sizeof four);
    return four + (lanes){0};
}

/* ---- Sums of four products in each lane ----
 *
 * dot takes weights from -128 to 127 with their bits SIGN flipped, which adds -LEVEL_OFFSET to
 * them. dot_of_nibbles takes weights from 0 to 15. */

#if defined(__AVX512VNNI__)
enum { LEVEL_OFFSET = -128, SIGN = 128 };
#else
enum { LEVEL_OFFSET = 0, SIGN = 0 };
#endif

static inline lanes dot_of_nibbles(lanes sum, bytes weights, lanes x);

/* AVX multiplies unsigned by signed bytes and adds pairs of products in 16 bits: |w| times x with
 * the sign of w fits. */
static inline lanes dot(lanes sum, bytes weights, lanes x) {
#if defined(__AVX512VNNI__)
    return (lanes)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, (__m512i)x);
#elif defined(__AVX512BW__)
    const __m512i w = (__m512i)weights, zero = _mm512_setzero_si512();
    const __m512i turned =
        _mm512_mask_sub_epi8((__m512i)x, _mm512_movepi8_mask(w), zero, (__m512i)x);
    return dot_of_nibbles(sum, (bytes)_mm512_abs_epi8(w), (lanes)turned);
#elif defined(__AVX2__)
    const __m256i w = (__m256i)weights;
    return dot_of_nibbles(sum, (bytes)_mm256_abs_epi8(w), (lanes)_mm256_sign_epi8((__m256i)x, w));
#elif defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
    return (lanes)vdotq_s32((int32x4_t)sum, (int8x16_t)weights, (int8x16_t)x);
#elif defined(__aarch64__) && defined(__ARM_NEON)
    const int8x16_t w = (int8x16_t)weights, levels = (int8x16_t)x;
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(levels)),
                    high = vmull_high_s8(w, levels);
    return (lanes)vpadalq_s16((int32x4_t)sum, vpaddq_s16(low, high));
#elif defined(__SSE2__)
    /* Bytes are sign-extended to 16 bits; the lower and the upper half of x are equal. */
    const __m128i w = (__m128i)weights, four = (__m128i)x;
    const __m128i levels = _mm_srai_epi16(_mm_unpacklo_epi8(four, four), 8);
    const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(w, w), 8),
                  high = _mm_srai_epi16(_mm_unpackhi_epi8(w, w), 8);
    const lanes first = (lanes)_mm_madd_epi16(low, levels),
                second = (lanes)_mm_madd_epi16(high, levels);
    return sum + __builtin_shufflevector(first, second, 0, 2, 4, 6) +
           __builtin_shufflevector(first, second, 1, 3, 5, 7);
#else
    int8_t w[sizeof weights], levels[sizeof x];
    memcpy(w, &weights, sizeof w);
    memcpy(levels, &x, sizeof levels);
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < STEP; j++)
            sum[i] += w[i * STEP + j] * levels[i * STEP + j];
    return sum;
#endif
}

static inline lanes dot_of_nibbles(lanes sum, bytes weights, lanes x) {
#if defined(__AVX512VNNI__) || !defined(__AVX2__)
    return dot(sum, weights, x);
#elif defined(__AVX512BW__)
    const __m512i pairs = _mm512_maddubs_epi16((__m512i)weights, (__m512i)x);
    return sum + (lanes)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#else
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)weights, (__m256i)x);
    return sum + (lanes)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* ---- Products ---- */

static inline vector load_halves(const uint8_t *halves) {
#if defined(__AVX512F__)
    return (vector)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)halves));
#elif defined(__F16C__)
    return (vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)halves));
#else
    vector numbers;
    for (int i = 0; i < LANES; i++)
        numbers[i] = wg__half_to_f32((uint16_t)(halves[2 * i] | halves[2 * i + 1] << 8));
    return numbers;
#endif
}

/* Products of a block of some rows of x with LANES rows of the weight; `x` is the block in the
 * tile. */
WG__ALWAYS_INLINE void dots_of_bytes(const int rows, const uint8_t *weights, const uint8_t *x,
                                     lanes *sums) {
    WG__UNROLL for (int s = 0; s < STEPS; s++) {
        const bytes levels = (bytes)load_stream(weights + s * WG__GROUP * STEP) ^ SIGN;
        WG__UNROLL for (int r = 0; r < rows; r++) sums[r] =
            dot(sums[r], levels, spread(x + (s * rows + r) * STEP));
    }
}

/* The same for 4-bit weights: the low bits belong to the block's first half, the high bits to its
 * second half. */
WG__ALWAYS_INLINE void dots_of_nibbles(const int rows, const uint8_t *weights, const uint8_t *x,
                                       lanes *sums) {
    enum { HALF_STEPS = STEPS / 2 };
    const uint8_t *other = x + HALF_STEPS * rows * STEP;
    WG__UNROLL for (int s = 0; s < HALF_STEPS; s++) {
        const bytes pairs = (bytes)load_stream(weights + s * WG__GROUP * STEP);
        WG__UNROLL for (int r = 0; r < rows; r++) {
            const int at = (s * rows + r) * STEP;
            sums[r] = dot_of_nibbles(sums[r], pairs & 15, spread(x + at));
            sums[r] = dot_of_nibbles(sums[r], pairs >> 4, spread(other + at));
        }
    }
}

WG__ALWAYS_INLINE void multiply(const bool nibbles, const int rows, int64_t blocks,
                                const uint8_t *weights, const uint8_t *tile, float *sums) {
    vector totals[WG__I8_ROWS][PARTS];
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int p = 0; p < PARTS; p++)
        totals[r][p] = load(sums + r * WG__GROUP + p * LANES);
    for (int64_t b = 0; b < blocks; b++) {
        const uint8_t *levels = weights + WG__GROUP * WG__BLOCK_SCALE;
        const uint8_t *x_scales = tile + rows * WG__BLOCK,
                      *offsets = x_scales + rows * sizeof(real);
        WG__UNROLL for (int p = 0; p < PARTS; p++) {
            lanes integers[WG__I8_ROWS];
            WG__UNROLL for (int r = 0; r < rows; r++) integers[r] =
                spread(offsets + r * sizeof(lane));
            if (nibbles)
                dots_of_nibbles(rows, levels + p * WG__VECTOR_BYTES, tile, integers);
            else
                dots_of_bytes(rows, levels + p * WG__VECTOR_BYTES, tile, integers);
            const vector scale = load_halves(weights + p * LANES * WG__BLOCK_SCALE);
            WG__UNROLL for (int r = 0; r < rows; r++) {
                real x_scale;
                memcpy(&x_scale, x_scales + r * sizeof x_scale, sizeof x_scale);
                totals[r][p] += __builtin_convertvector(integers[r], vector) * (scale * x_scale);
            }
        }
        weights += WG__GROUP * (WG__BLOCK_SCALE + (nibbles ? WG__BLOCK / 2 : WG__BLOCK));
        tile += rows * WG__TILE_BLOCK;
    }
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int p = 0; p < PARTS; p++)
        store(sums + r * WG__GROUP + p * LANES, totals[r][p]);
}

static void multiply_tile(wg_quantization quantization, int64_t rows, int64_t blocks,
                          const uint8_t *weights, const void *tile, float *sums) {
#define OF_NIBBLES(rows) multiply(true, rows, blocks, weights, tile, sums)
#define OF_BYTES(rows) multiply(false, rows, blocks, weights, tile, sums)
    if (quantization == WG_QUANTIZATION_Q4_0)
        switch (rows) { WG__CASES(WG__I8_ROWS, OF_NIBBLES) }
    else
        switch (rows) { WG__CASES(WG__I8_ROWS, OF_BYTES) }
#undef OF_NIBBLES
#undef OF_BYTES
}

/* ---- Rows of x ---- */

/* Rounds to the nearest integers, ties to even. */
static inline lanes to_levels(vector v) {
#if defined(__AVX512F__)
    return (lanes)_mm512_cvtps_epi32((__m512)v);
#elif defined(__AVX2__)
    return (lanes)_mm256_cvtps_epi32((__m256)v);
#elif defined(__SSE2__)
    return (lanes)_mm_cvtps_epi32((__m128)v);
#else
    lanes levels;
    for (int i = 0; i < LANES; i++)
        levels[i] = (lane)lrintf(v[i]);
    return levels;
#endif
}

/* The largest magnitude of 32 numbers; NaN if there is one. The bits of magnitudes, compared as
 * integers, have the order of the magnitudes, with NaN above infinity. */
static inline real largest_magnitude(const vector *numbers) {
    lanes most = (lanes)numbers[0] & INT32_MAX;
    for (int v = 1; v < WG__BLOCK / LANES; v++) {
        const lanes bits = (lanes)numbers[v] & INT32_MAX, larger_ones = bits > most;
        most = (bits & larger_ones) | (most & ~larger_ones);
    }
    WG__OVER_LANES(turned, most, most = (turned & (turned > most)) | (most & ~(turned > most)))
    real magnitude;
    memcpy(&magnitude, &most, sizeof magnitude);
    return magnitude;
}

/* Writes the levels of a block, 4 bytes in every 4 * rows, and returns their sum. */
static inline lane store_levels(const vector *numbers, real inverse, int64_t rows, uint8_t *to) {
    lanes sum = {0};
    for (int v = 0; v < WG__BLOCK / LANES; v++) {
        const lanes levels = to_levels(numbers[v] * inverse);
        sum += levels;
        uint8_t low[LANES];
        for (int i = 0; i < LANES; i++)
            low[i] = (uint8_t)levels[i];
        for (int i = 0; i < LANES / STEP; i++)
            memcpy(to + (v * (LANES / STEP) + i) * rows * STEP, low + i * STEP, STEP);
    }
    WG__OVER_LANES(turned, sum, sum += turned)
    return sum[0];
}

static void quantize(int64_t rows, int64_t blocks, const float *x, int64_t x_stride, int32_t offset,
                     void *tiles) {
    uint8_t *tile = tiles;
    for (int64_t block = 0; block < blocks; block++, tile += rows * WG__TILE_BLOCK) {
        uint8_t *scales = tile + rows * WG__BLOCK;
        for (int64_t row = 0; row < rows; row++) {
            vector numbers[WG__BLOCK / LANES];
            for (int v = 0; v < WG__BLOCK / LANES; v++)
                numbers[v] = load(x + row * x_stride + block * WG__BLOCK + v * LANES);
            const real largest = largest_magnitude(numbers);
            const bool finite = isfinite(largest);
            const real scale = finite ? largest / 127 : NAN;
            const real inverse = finite && isfinite(1 / scale) ? 1 / scale : 0;
            lane sum = 0;
            if (finite)
                sum = store_levels(numbers, inverse, rows, tile + row * STEP);
            else
                sum = store_levels((vector[WG__BLOCK / LANES]){{0}}, 0, rows, tile + row * STEP);
            sum *= offset;
            memcpy(scales + row * (int64_t)sizeof scale, &scale, sizeof scale);
            memcpy(scales + (rows + row) * (int64_t)sizeof scale, &sum, sizeof sum);
        }
    }
}

#define WG__TABLE WG__JOIN(wg__block_kernels_, WG_SIMD)

extern const wg__block_kernels WG__TABLE;

const wg__block_kernels WG__TABLE = {
    .name = WG__TEXT(WG_SIMD),
    .tile_rows = WG__I8_ROWS,
    .quantize = quantize,
    .q8_0_offset = LEVEL_OFFSET,
    .q4_0_offset = -8,
    .multiply = multiply_tile,
};
