/* Helpers of the tests of vector kernels: the tables of all instruction sets that this CPU has, and
 * arrays of either dtype that are read and written as doubles. */
#ifndef WG_TESTS_SIMD_TABLES_H
#define WG_TESTS_SIMD_TABLES_H

#include "config.h"

#include "tensor/random.h"
#include "tensor/simd/simd.h"
#include "tests/support/testing.h"

#include <math.h>

/* With and without a remainder. */
enum { LENGTH = 203 };
static const int64_t lengths[] = {0, 1, 3, 4, 7, 16, 33, 128, LENGTH};

typedef struct array {
    wg_dtype dtype;
    union {
        float f32[4 * LENGTH];
        double f64[4 * LENGTH];
    } at;
} array;

static inline double get(const array *x, int64_t i) {
    return x->dtype == WG_F32 ? (double)x->at.f32[i] : x->at.f64[i];
}

static inline void set(array *x, int64_t i, double value) {
    if (x->dtype == WG_F32)
        x->at.f32[i] = (float)value;
    else
        x->at.f64[i] = value;
}

static inline void *place(array *x, int64_t i) {
    return x->dtype == WG_F32 ? (void *)&x->at.f32[i] : (void *)&x->at.f64[i];
}

static inline array normal(wg_dtype dtype, uint64_t seed) {
    array x = {.dtype = dtype};
    wg_generator generator = {.seed = seed};
    for (int64_t i = 0; i < 4 * LENGTH; i++)
        set(&x, i, wg_random_normal(&generator));
    return x;
}

/* ---- Every table ---- */

typedef void (*check)(const wg__simd *simd, wg_dtype dtype);

static inline void for_each_table(check check) {
    for (int i = 0; wg__simd_at(WG_F32, i) != NULL; i++) {
        check(wg__simd_at(WG_F32, i), WG_F32);
        check(wg__simd_at(WG_F64, i), WG_F64);
    }
}

/* A test that runs for each of them. */
#define TEST_OF_TABLES(test)                                                                       \
    static void test##_of(const wg__simd *simd, wg_dtype dtype);                                   \
    TEST(test) {                                                                                   \
        for_each_table(test##_of);                                                                 \
    }                                                                                              \
    static void test##_of(const wg__simd *simd, wg_dtype dtype)

/* Those of products in bf16, and then the kernels of AMX compiled with tiles in plain C
 * (tests/support/tiles.h), packed by the code for any processor and by that for AVX512-BF16; NULL
 * beyond. */
extern const wg__bf16_kernels wg__bf16_kernels_tiles_base, wg__bf16_kernels_tiles_bf16;

static inline const wg__bf16_kernels *bf16_kernels_and_tiles_at(int index) {
    int count = 0;
    bool has_bf16 = false;
    for (const wg__bf16_kernels *of_cpu; (of_cpu = wg__bf16_kernels_at(count)) != NULL; count++) {
        if (count == index)
            return of_cpu;
        has_bf16 |= of_cpu->rounds_x;
    }
#ifdef WG_SIMD_X86
    if (index == count + 1 && has_bf16)
        return &wg__bf16_kernels_tiles_bf16;
#endif
    return index == count ? &wg__bf16_kernels_tiles_base : NULL;
}

/* Fails unless value and expected differ by a few roundings of a number of that size at most. */
static inline void assert_near(const wg__simd *simd, const char *what, wg_dtype dtype, double value,
                               double expected, double size) {
    double eps = dtype == WG_F32 ? 3e-7 : 2e-15;
    if (isnan(expected) ? isnan(value) : value == expected)
        return;
    ck_assert_msg(fabs(value - expected) <= eps * (fabs(expected) + size),
                  "%s %s: %s is %.17g; wanted %.17g", simd->name, wg_dtype_name(dtype), what, value,
                  expected);
}

#endif
