/* The widest vector type of the instruction set that this file is compiled for, and SLEEF's
 * functions on it. The including file defines WG__BITS as 32 or 64, the size of the element type
 * `real`.
 *
 * The build defines WG__VECTOR_BYTES as 32 for the table of deterministic mode on arm64: its
 * vectors are two of NEON, and so its sums have the order of AVX2's.
 *
 * SLEEF's functions are the deterministic ones: finz_ with fused multiply-add, cinz_ without it. A
 * sine of Sleef_sinf8_u10 depends on its neighbours in the vector; a sine of Sleef_finz_sinf8_u10
 * does not. The finz_ functions have the same bits on all processors.
 *
 * Vectors are the vector extension of gcc and clang: + - * / < work element by element, and a
 * comparison gives a `lanes` of -1 where it holds and 0 elsewhere. */
#ifndef WG_TENSOR_SIMD_VECTOR_H
#define WG_TENSOR_SIMD_VECTOR_H

#include <math.h>
#include <sleef.h>
#include <stdint.h>
#include <string.h>

#if defined(WG__VECTOR_BYTES)
#define WG__NEON_PAIRS
#elif defined(__AVX512F__)
#define WG__VECTOR_BYTES 64
#elif defined(__AVX2__)
#define WG__VECTOR_BYTES 32
#elif defined(__SSE2__) || (defined(__aarch64__) && defined(__ARM_NEON))
#define WG__VECTOR_BYTES 16
#else
#define WG__VECTOR_BYTES (WG__BITS / 8)
#define WG__SCALAR
#endif

#if WG__BITS == 32
typedef float real;
typedef int32_t lane;
#if defined(__AVX512F__)
#define WG__SLEEF(function, accuracy) Sleef_finz_##function##f16_##accuracy##avx512f
#elif defined(__AVX2__)
#define WG__SLEEF(function, accuracy) Sleef_finz_##function##f8_##accuracy##avx2
#elif defined(__SSE2__)
#define WG__SLEEF(function, accuracy) Sleef_cinz_##function##f4_##accuracy##sse2
#elif !defined(WG__SCALAR)
#define WG__SLEEF(function, accuracy) Sleef_finz_##function##f4_##accuracy##advsimd
#else
#define WG__SLEEF(function, accuracy) Sleef_##function##f_##accuracy
#endif
#else
typedef double real;
typedef int64_t lane;
#if defined(__AVX512F__)
#define WG__SLEEF(function, accuracy) Sleef_finz_##function##d8_##accuracy##avx512f
#elif defined(__AVX2__)
#define WG__SLEEF(function, accuracy) Sleef_finz_##function##d4_##accuracy##avx2
#elif defined(__SSE2__)
#define WG__SLEEF(function, accuracy) Sleef_cinz_##function##d2_##accuracy##sse2
#elif !defined(WG__SCALAR)
#define WG__SLEEF(function, accuracy) Sleef_finz_##function##d2_##accuracy##advsimd
#else
#define WG__SLEEF(function, accuracy) Sleef_##function##_##accuracy
#endif
#endif

typedef real vector __attribute__((vector_size(WG__VECTOR_BYTES)));
typedef lane lanes __attribute__((vector_size(WG__VECTOR_BYTES)));

/* GCC 11 lacks __builtin_shufflevector. */
#if !__has_builtin(__builtin_shufflevector)
#define __builtin_shufflevector(a, b, ...) __builtin_shuffle(a, b, (lanes){__VA_ARGS__})
#endif

#define WG__LANES (WG__VECTOR_BYTES * 8 / WG__BITS)
enum { LANES = WG__LANES };

/* The part of a vector that fits into a register: the whole, or half. gcc keeps pairs in memory, so
 * the hottest kernels work on pieces. */
#ifdef WG__NEON_PAIRS
typedef real piece __attribute__((vector_size(16)));
#else
typedef vector piece;
#endif
enum { PIECES = sizeof(vector) / sizeof(piece), PIECE_LANES = LANES / PIECES };

/* Unrolls a loop of few, constant iterations, so that its arrays stay in registers. */
#ifdef __clang__
#define WG__UNROLL _Pragma("clang loop unroll(full)")
#else
#define WG__UNROLL _Pragma("GCC unroll 16")
#endif

static inline vector load(const real *from) {
    vector v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* A load in a sequential read of memory. Two loads of 32 bytes keep more requests in flight than
 * one of 64: a fifth more bandwidth on a Zen 4 whose memory gives 50 GB/s. */
static inline vector load_stream(const void *from) {
#if defined(__AVX512F__)
    __m256d low = _mm256_loadu_pd(from);
    const __m256d high = _mm256_loadu_pd((const double *)from + 4);
    __asm__("" : "+v"(low)); /* keeps the compiler from merging the two loads */
    return (vector)_mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1);
#else
    vector v;
    memcpy(&v, from, sizeof v);
    return v;
#endif
}

static inline void store(real *to, vector v) {
    memcpy(to, &v, sizeof v);
}

static inline piece load_piece(const real *from) {
    piece p;
    memcpy(&p, from, sizeof p);
    return p;
}

static inline void store_piece(real *to, piece p) {
    memcpy(to, &p, sizeof p);
}

/* a where the condition holds, b elsewhere. */
static inline vector choose(lanes condition, vector a, vector b) {
    return (vector)((condition & (lanes)a) | (~condition & (lanes)b));
}

#if WG__BITS == 32
typedef uint32_t lane_bits __attribute__((vector_size(WG__VECTOR_BYTES)));

/* Rounds numbers to bf16, to nearest, ties to even; NaN stays NaN. */
static inline vector rounded_to_bf16(vector v) {
    const lane_bits bits = (lane_bits)v, up = bits + 0x7fff + (bits >> 16 & 1);
    return choose(v != v, (vector)((bits | 0x400000) & 0xffff0000), (vector)(up & 0xffff0000));
}
#endif

static inline vector square_root(vector x) {
#if defined(__AVX512F__) && WG__BITS == 32
    return (vector)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX512F__)
    return (vector)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__) && WG__BITS == 32
    return (vector)_mm256_sqrt_ps((__m256)x);
#elif defined(__AVX2__)
    return (vector)_mm256_sqrt_pd((__m256d)x);
#else
    for (int i = 0; i < LANES; i++)
        x[i] = WG__BITS == 32 ? (real)sqrtf((float)x[i]) : (real)sqrt((double)x[i]);
    return x;
#endif
}

/* Whether a condition holds in any lane. */
static inline int any(lanes condition) {
#if defined(__AVX512F__) && WG__BITS == 32
    return _mm512_test_epi32_mask((__m512i)condition, (__m512i)condition) != 0;
#elif defined(__AVX512F__)
    return _mm512_test_epi64_mask((__m512i)condition, (__m512i)condition) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)condition, (__m256i)condition);
#else
    lane found = 0;
    for (int i = 0; i < LANES; i++)
        found |= condition[i];
    return found != 0;
#endif
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/* True in the first n lanes. */
static inline lanes lanes_before(int64_t n) {
#if WG__BITS == 32
    const lanes index = {0, 1, 2, 3, 4, 5, 6, 7};
#else
    const lanes index = {0, 1, 2, 3};
#endif
    return index < (lane)n;
}
#endif

/* The first n <= LANES elements, and `rest` beyond them. */
static inline vector load_part(const real *from, int64_t n, real rest) {
    vector v = rest + (vector){0};
#if defined(__AVX512F__) && WG__BITS == 32
    v = (vector)_mm512_mask_loadu_ps((__m512)v, (__mmask16)((1u << n) - 1), from);
#elif defined(__AVX512F__)
    v = (vector)_mm512_mask_loadu_pd((__m512d)v, (__mmask8)((1u << n) - 1), from);
#elif defined(__AVX2__) && WG__BITS == 32
    const lanes first = lanes_before(n);
    v = choose(first, (vector)_mm256_maskload_ps(from, (__m256i)first), v);
#elif defined(__AVX2__)
    const lanes first = lanes_before(n);
    v = choose(first, (vector)_mm256_maskload_pd(from, (__m256i)first), v);
#else
    memcpy(&v, from, (size_t)n * sizeof(real));
#endif
    return v;
}

static inline void store_part(real *to, vector v, int64_t n) {
#if defined(__AVX512F__) && WG__BITS == 32
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(__AVX512F__)
    _mm512_mask_storeu_pd(to, (__mmask8)((1u << n) - 1), (__m512d)v);
#elif defined(__AVX2__) && WG__BITS == 32
    _mm256_maskstore_ps(to, (__m256i)lanes_before(n), (__m256)v);
#elif defined(__AVX2__)
    _mm256_maskstore_pd(to, (__m256i)lanes_before(n), (__m256d)v);
#else
    memcpy(to, &v, (size_t)n * sizeof(real));
#endif
}

/* The first `count` elements, and zeros; for the constant LANES, the whole vector. */
WG__ALWAYS_INLINE vector load_first(const int64_t count, const real *from) {
    return count == LANES ? load(from) : load_part(from, count, 0);
}

WG__ALWAYS_INLINE void store_first(const int64_t count, real *to, vector v) {
    if (count == LANES)
        store(to, v);
    else
        store_part(to, v, count);
}

/* WG__TURNn: the vector rotated by n elements. */
#if WG__LANES == 16
#define WG__TURN8(v)                                                                               \
    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define WG__TURN4(v)                                                                               \
    __builtin_shufflevector(v, v, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3)
#define WG__TURN2(v)                                                                               \
    __builtin_shufflevector(v, v, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1)
#define WG__TURN1(v)                                                                               \
    __builtin_shufflevector(v, v, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0)
#elif WG__LANES == 8
#define WG__TURN4(v) __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3)
#define WG__TURN2(v) __builtin_shufflevector(v, v, 2, 3, 4, 5, 6, 7, 0, 1)
#define WG__TURN1(v) __builtin_shufflevector(v, v, 1, 2, 3, 4, 5, 6, 7, 0)
#elif WG__LANES == 4
#define WG__TURN2(v) __builtin_shufflevector(v, v, 2, 3, 0, 1)
#define WG__TURN1(v) __builtin_shufflevector(v, v, 1, 2, 3, 0)
#elif WG__LANES == 2
#define WG__TURN1(v) __builtin_shufflevector(v, v, 1, 0)
#endif

/* Combines a vector with its rotations until each lane holds the result over all lanes: `fold`
 * combines v with `turned`. The order is always the same. */
#if WG__LANES == 16
#define WG__OVER_LANES(turned, v, fold)                                                            \
    WG__FOLD(turned, WG__TURN8(v), fold)                                                           \
    WG__FOLD(turned, WG__TURN4(v), fold)                                                           \
    WG__FOLD(turned, WG__TURN2(v), fold) WG__FOLD(turned, WG__TURN1(v), fold)
#elif WG__LANES == 8
#define WG__OVER_LANES(turned, v, fold)                                                            \
    WG__FOLD(turned, WG__TURN4(v), fold)                                                           \
    WG__FOLD(turned, WG__TURN2(v), fold) WG__FOLD(turned, WG__TURN1(v), fold)
#elif WG__LANES == 4
#define WG__OVER_LANES(turned, v, fold)                                                            \
    WG__FOLD(turned, WG__TURN2(v), fold) WG__FOLD(turned, WG__TURN1(v), fold)
#elif WG__LANES == 2
#define WG__OVER_LANES(turned, v, fold) WG__FOLD(turned, WG__TURN1(v), fold)
#else
#define WG__OVER_LANES(turned, v, fold)
#endif
#define WG__FOLD(turned, value, fold)                                                              \
    {                                                                                              \
        const __typeof__(value) turned = value;                                                    \
        fold;                                                                                      \
    }

static inline real sum_lanes(vector v) {
    WG__OVER_LANES(turned, v, v += turned)
    return v[0];
}

static inline vector larger(vector a, vector b) {
    return choose(a > b, a, b);
}

static inline real largest_lane(vector v) {
    WG__OVER_LANES(turned, v, v = larger(v, turned))
    return v[0];
}

/* SLEEF's functions; the error is below 1 ulp (1.5 for erfc). */
#ifdef WG__SCALAR
#define WG__FUNCTION(NAME, function, accuracy)                                                     \
    static inline vector NAME(vector x) {                                                          \
        return (vector){WG__SLEEF(function, accuracy)(x[0])};                                      \
    }
#define WG__ROUNDING(NAME, function)                                                               \
    static inline vector NAME(vector x) {                                                          \
        return (vector){(real)function(x[0])};                                                     \
    }
#define WG__PAIR_FUNCTION(NAME, function, accuracy)                                                \
    static inline vector NAME(vector a, vector b) {                                                \
        return (vector){WG__SLEEF(function, accuracy)(a[0], b[0])};                                \
    }
#elif defined(WG__NEON_PAIRS)
typedef union halves {
    vector whole;
    piece half[2];
} halves;

#define WG__FUNCTION(NAME, function, accuracy)                                                     \
    static inline vector NAME(vector x) {                                                          \
        halves y = {x};                                                                            \
        for (int h = 0; h < 2; h++)                                                                \
            y.half[h] = WG__SLEEF(function, accuracy)(y.half[h]);                                  \
        return y.whole;                                                                            \
    }
#define WG__ROUNDING(NAME, function) WG__FUNCTION(NAME, function, )
#define WG__PAIR_FUNCTION(NAME, function, accuracy)                                                \
    static inline vector NAME(vector a, vector b) {                                                \
        halves y = {a}, other = {b};                                                               \
        for (int h = 0; h < 2; h++)                                                                \
            y.half[h] = WG__SLEEF(function, accuracy)(y.half[h], other.half[h]);                   \
        return y.whole;                                                                            \
    }
#else
#define WG__FUNCTION(NAME, function, accuracy)                                                     \
    static inline vector NAME(vector x) {                                                          \
        return WG__SLEEF(function, accuracy)(x);                                                   \
    }
#define WG__ROUNDING(NAME, function) WG__FUNCTION(NAME, function, )
#define WG__PAIR_FUNCTION(NAME, function, accuracy)                                                \
    static inline vector NAME(vector a, vector b) {                                                \
        return WG__SLEEF(function, accuracy)(a, b);                                                \
    }
#endif

WG__FUNCTION(vector_exp, exp, u10)
WG__FUNCTION(vector_exp2, exp2, u10)
WG__FUNCTION(vector_expm1, expm1, u10)
WG__FUNCTION(vector_log, log, u10)
WG__FUNCTION(vector_log2, log2, u10)
WG__FUNCTION(vector_log10, log10, u10)
WG__FUNCTION(vector_log1p, log1p, u10)
WG__FUNCTION(vector_sin, sin, u10)
WG__FUNCTION(vector_cos, cos, u10)
WG__FUNCTION(vector_tan, tan, u10)
WG__FUNCTION(vector_asin, asin, u10)
WG__FUNCTION(vector_acos, acos, u10)
WG__FUNCTION(vector_atan, atan, u10)
WG__FUNCTION(vector_sinh, sinh, u10)
WG__FUNCTION(vector_cosh, cosh, u10)
WG__FUNCTION(vector_tanh, tanh, u10)
WG__FUNCTION(vector_asinh, asinh, u10)
WG__FUNCTION(vector_acosh, acosh, u10)
WG__FUNCTION(vector_atanh, atanh, u10)
WG__FUNCTION(vector_cbrt, cbrt, u10)
WG__FUNCTION(vector_erf, erf, u10)
WG__FUNCTION(vector_erfc, erfc, u15)
WG__FUNCTION(vector_lgamma, lgamma, u10)
WG__ROUNDING(vector_floor, floor)
WG__ROUNDING(vector_ceil, ceil)
WG__ROUNDING(vector_rint, rint)
WG__ROUNDING(vector_trunc, trunc)
WG__PAIR_FUNCTION(vector_pow, pow, u10)
WG__PAIR_FUNCTION(vector_atan2, atan2, u10)
WG__PAIR_FUNCTION(vector_hypot, hypot, u05)

/* ---- Names of tables, which contain the instruction set ---- */

#define WG__JOIN_EXPANDED(a, b) a##b
#define WG__JOIN(a, b) WG__JOIN_EXPANDED(a, b)
#define WG__TEXT_EXPANDED(a) #a
#define WG__TEXT(a) WG__TEXT_EXPANDED(a)

/* A case of a switch over constants, with a copy of a function for each. */
#define WG__CASE(constant, OF)                                                                     \
    case constant:                                                                                 \
        OF(constant);                                                                              \
        break;

/* OF(rows) for 1 to `most` rows, which is 1, 4, 6 or 12. */
#define WG__CASES(most, OF) WG__JOIN(WG__CASES_, most)(OF)
#define WG__CASES_1(OF) WG__CASE(1, OF)
#define WG__CASES_4(OF) WG__CASES_1(OF) WG__CASE(2, OF) WG__CASE(3, OF) WG__CASE(4, OF)
#define WG__CASES_6(OF) WG__CASES_4(OF) WG__CASE(5, OF) WG__CASE(6, OF)
#define WG__CASES_12(OF)                                                                           \
    WG__CASES_6(OF)                                                                                \
    WG__CASE(7, OF)                                                                                \
    WG__CASE(8, OF) WG__CASE(9, OF) WG__CASE(10, OF) WG__CASE(11, OF) WG__CASE(12, OF)

/* ---- Transposing LANES vectors ---- */

/* One exchange of a transposition by blocks: a takes the first block of each pair of blocks of both
 * vectors, b the second. */
#define WG__PAIR_UP(a, b, first, second)                                                           \
    do {                                                                                           \
        const vector x = a, y = b;                                                                 \
        a = __builtin_shufflevector(x, y, WG__LIST first);                                         \
        b = __builtin_shufflevector(x, y, WG__LIST second);                                        \
    } while (0)
#define WG__LIST(...) __VA_ARGS__

#define WG__STAGE(blocks, first, second)                                                           \
    WG__UNROLL for (int i = 0; i < LANES; i++) if (!(i & (blocks)))                                \
        WG__PAIR_UP(v[i], v[i + (blocks)], first, second);

/* v[i][j] becomes v[j][i]. */
static inline void transpose_vectors(vector *v) {
#if WG__LANES == 16
    WG__STAGE(8, (0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
              (8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
    WG__STAGE(4, (0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
              (4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    WG__STAGE(2, (0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
              (2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    WG__STAGE(1, (0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
              (1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#elif WG__LANES == 8
    WG__STAGE(4, (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))
    WG__STAGE(2, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
    WG__STAGE(1, (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15))
#elif WG__LANES == 4
    WG__STAGE(2, (0, 1, 4, 5), (2, 3, 6, 7))
    WG__STAGE(1, (0, 4, 2, 6), (1, 5, 3, 7))
#elif WG__LANES == 2
    WG__STAGE(1, (0, 2), (1, 3))
#else
    (void)v;
#endif
}

#endif
