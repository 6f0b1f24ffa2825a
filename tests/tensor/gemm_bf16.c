/* Products that round their operands to bf16, by the kernels of every instruction set that this CPU
 * has and by those of AMX with tiles in plain C (tests/support/tiles.h), against the definition in
 * gemm.h, bit for bit, with operands and C in every layout. */
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tensor/gemm/gemm.h"
#include "tensor/kernels.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/testing.h"
#include "tests/support/tiles.h"
#include "tests/tensor/layouts.h"
#include "tests/tensor/simd_tables.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* m, k and n: one and several pieces of k, even and odd, m or n the larger, with and without ragged
 * edges, and less than a tile. */
static const int64_t sizes[][3] = {{96, 128, 64},  {130, 501, 70}, {301, 40, 203}, {69, 771, 202},
                                   {70, 1603, 65}, {5, 9, 3},      {1, 1, 1},      {2, 33, 17}};

static float element(bool is_bf16, wg__matrix x, int64_t i, int64_t j) {
    const int64_t place = i * x.row_stride + j * x.column_stride;
    return is_bf16 ? wg__bf16_to_f32(((uint16_t *)x.data)[place]) : ((float *)x.data)[place];
}

/* The operands of a product, rounded: the rows of A and the columns of B, of `k` numbers each. */
typedef struct rounded {
    int64_t k;
    float *rows, *columns;
} rounded;

static rounded round_operands(const wg__product *p) {
    const rounded r = {p->k, wg_tensor_data(wg_zeros(WG_F32, WG_DIMS(p->m, p->k))),
                       wg_tensor_data(wg_zeros(WG_F32, WG_DIMS(p->n, p->k)))};
    for (int64_t l = 0; l < p->k; l++) {
        for (int64_t i = 0; i < p->m; i++)
            r.rows[i * p->k + l] =
                wg__bf16_to_f32(wg__f32_to_bf16(element(p->a_is_bf16, p->a, i, l)));
        for (int64_t j = 0; j < p->n; j++)
            r.columns[j * p->k + l] =
                wg__bf16_to_f32(wg__f32_to_bf16(element(p->b_is_bf16, p->b, l, j)));
    }
    return r;
}

/* AMX takes numbers and sums below 2^-126 for 0. */
UNCHECKED static float flushed(float x) {
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

/* The sum of a row and a column by AMX, from `sum`: 32 numbers of k at a time, the even and the odd
 * apart. */
UNCHECKED static float defined_by_tiles(int64_t k, const float *row, const float *column,
                                        float sum) {
    enum { BLOCK = 32 };
    for (int64_t begin = 0; begin < k; begin += BLOCK) {
        float of[2] = {0, 0};
        for (int64_t l = begin; l < begin + BLOCK; l++) {
            const float a = l < k ? flushed(row[l]) : 0, b = l < k ? flushed(column[l]) : 0;
            of[l % 2] = flushed(fmaf(a, b, of[l % 2]));
        }
        sum = flushed(flushed(sum) + flushed(of[0] + of[1]));
    }
    return sum;
}

/* The same by the kernels without tiles: of each pair the second product first. */
UNCHECKED static float defined_by_pairs(int64_t k, const float *row, const float *column,
                                        float sum) {
    for (int64_t l = 0; l < k; l += 2) {
        const bool whole = l + 1 < k;
        sum = fmaf(whole ? row[l + 1] : 0, whole ? column[l + 1] : 0, sum);
        sum = fmaf(row[l], column[l], sum);
    }
    return sum;
}

static bool has_tiles(const wg__gemm_kernel *kernel) {
    return kernel->rounded->block_pairs > 1;
}

/* Element (i, j) of C by the definition, from its old value. */
static float defined(const wg__gemm_kernel *kernel, const wg__product *p, const rounded *r,
                     int64_t i, int64_t j, float before) {
    const float sum = p->row ? ((const float *)p->row)[j] : p->beta == 1 ? before : 0;
    return (has_tiles(kernel) ? defined_by_tiles : defined_by_pairs)(r->k, r->rows + i * r->k,
                                                                     r->columns + j * r->k, sum);
}

/* The same bits, or both NaN. */
static bool same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void assert_defined(const wg__gemm_kernel *kernel, const wg__product *p,
                           const wg_tensor *memory, const wg_tensor *before) {
    const int64_t r = p->c.row_stride, c = p->c.column_stride;
    const float *now = wg_tensor_data(memory), *then = wg_tensor_data(before);
    bool *is_of_c = wg_tensor_data(wg_zeros(WG_BOOL, WG_DIMS(wg_tensor_count(memory))));
    const rounded operands = round_operands(p);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t place = i * r + j * c;
            const float wanted = defined(kernel, p, &operands, i, j, then[place]);
            is_of_c[place] = true;
            ck_assert_msg(same(now[place], wanted), "%s, %lldx%lldx%lld at %lld, %lld: %a, not %a",
                          kernel->rounded->name, (long long)p->m, (long long)p->n, (long long)p->k,
                          (long long)i, (long long)j, (double)now[place], (double)wanted);
        }
    for (int64_t place = 0; place < wg_tensor_count(memory); place++)
        ck_assert(is_of_c[place] || same(now[place], then[place]));
}

/* Which operands are stored in bf16, and what C begins with: 0, its old value, or a row. */
enum { A_IS_BF16 = 1, B_IS_BF16 = 2, FORMS = 4 };
enum { FROM_ZERO, FROM_C, FROM_ROW, BEGINNINGS };

/* C begins as noise, or as NaN where it must not be read. */
static void check_product(const wg__gemm_kernel *kernel, const int64_t *size, int layouts,
                          int forms, int beginning, bool finds_memory) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *memory[4];
    wg__product p =
        laid_out_product(size, layouts, WG_F32, forms & A_IS_BF16, forms & B_IS_BF16, memory);
    p.rounds = true;
    p.beta = beginning == FROM_C;
    p.row = beginning == FROM_ROW ? laid_out(BY_ROWS, &memory[3], 4, WG_F32, 1, p.n).data : NULL;
    if (beginning != FROM_C)
        wg_fill_(memory[2], NAN);
    wg_tensor *before = wg_clone(memory[2]);
    if (!finds_memory)
        wg__alloc_fail_after(0);
    wg__gemm_large(&p, *kernel);
    wg__alloc_fail_after(-1);
    assert_defined(kernel, &p, memory[2], before);
    wg_scope_end(&scope, NULL);
}

static void for_each_kernel(void (*body)(const wg__gemm_kernel *)) {
    const wg__bf16_kernels *kernels;
    for (int i = 0; (kernels = bf16_kernels_and_tiles_at(i)) != NULL; i++) {
        const wg__gemm_kernel kernel = wg__gemm_kernel_of_bf16(kernels);
        body(&kernel);
    }
}

TEST_OF_KERNELS(a_bf16_product_has_the_bits_of_its_definition_in_every_layout) {
    const int apart = has_tiles(kernel) ? 13 : 4; /* tiles in plain C are slow */
    for (size_t s = 0; s < WG_COUNT(sizes); s++)
        for (int layouts = 0; layouts < ALL_LAYOUTS; layouts++)
            if (s >= 5 || layouts % apart == (int)s % 4)
                check_product(kernel, sizes[s], layouts, layouts % FORMS, layouts % BEGINNINGS,
                              true);
}

TEST_OF_KERNELS(a_bf16_product_reads_either_operand_in_bf16_and_begins_with_c_or_a_row) {
    for (int forms = 0; forms < FORMS; forms++)
        for (int beginning = 0; beginning < BEGINNINGS; beginning++)
            for (int layouts = 0; layouts < LAYOUTS * LAYOUTS; layouts++) {
                check_product(kernel, sizes[5], layouts, forms, beginning, true);
                check_product(kernel, sizes[7], layouts, forms, beginning, true);
            }
}

TEST_OF_KERNELS(a_bf16_product_does_without_memory_to_pack_into) {
    for (int layouts = 0; layouts < ALL_LAYOUTS; layouts += has_tiles(kernel) ? 8 : 3)
        check_product(kernel, sizes[1], layouts, layouts % FORMS, layouts % BEGINNINGS, false);
}

/* ---- Special numbers ---- */

static const float specials[] = {
    1,     -1,       INFINITY,  -INFINITY,       NAN,       0,
    -0.0F, 0x1p127F, -0x1p127F, 0x1.fffffep127F, 0x1p-100F, 1.00390625F /* a tie */,
    3,     0x1.01p0F};

static wg__product rounded_product(int64_t m, int64_t k, int64_t n, void *a, void *b, void *c) {
    wg__product p = product_by_rows(WG_F32, m, k, n, a, b, c);
    p.rounds = true;
    return p;
}

/* Whether a kernel adds a product with one rounding: all that are compiled for instructions that
 * do. */
static bool fuses_products(const char *kernel) {
    return strcmp(kernel, "base") != 0;
}

/* Every product of two of them, alone and beside another. The definition's own sums overflow where
 * the kernels' do. */
TEST_OF_KERNELS(infinities_and_nans_pass_through_a_bf16_product_as_ieee_754_says) {
    enum { COUNT = WG_COUNT(specials), K = 3 };
    float a[COUNT * K], b[K * COUNT], c[COUNT * COUNT];
    const bool fuses = fuses_products(kernel->rounded->name);
    for (int beside = 0; beside < COUNT; beside++) {
        if (!fuses && fabsf(specials[beside]) > 1e30F)
            continue; /* products that overflow are not fused with the sum there */
        for (int i = 0; i < COUNT; i++) {
            a[i * K] = b[i] = specials[i];
            a[i * K + 1] = b[COUNT + i] = specials[beside];
            a[i * K + 2] = b[2 * COUNT + i] = 1;
        }
        const wg__product p = rounded_product(COUNT, K, COUNT, a, b, c);
        wg__gemm_large(&p, *kernel);
        const rounded operands = round_operands(&p);
        for (int i = 0; i < COUNT; i++)
            for (int j = 0; j < COUNT; j++) {
                const float wanted = defined(kernel, &p, &operands, i, j, 0);
                ck_assert_msg(same(c[i * COUNT + j], wanted), "%s: %a * %a beside %a: %a, not %a",
                              kernel->rounded->name, (double)specials[i], (double)specials[j],
                              (double)specials[beside], (double)c[i * COUNT + j], (double)wanted);
            }
    }
}

/* Numbers and sums below 2^-126 are kept, or are 0. */
TEST_OF_KERNELS(a_bf16_product_keeps_or_zeroes_what_is_below_the_normal_numbers) {
    float a[] = {0x1p-130F, 0x1p-100F, -0x1p-126F}, b[] = {1, 0x1p-30F, 0x1p-1F}, c;
    for (int i = 0; i < 3; i++) {
        const wg__product p = rounded_product(1, 1, 1, &a[i], &b[i], &c);
        wg__gemm_large(&p, *kernel);
        ck_assert(c == 0 || c == a[i] * b[i]);
    }
}

/* ---- Tiles ---- */

/* Every m and n around the sizes of tiles and of pairs of tiles, and k around blocks. */
TEST_OF_KERNELS(a_product_by_tiles_has_the_bits_of_its_definition_at_every_edge) {
    static const int64_t k[] = {1, 2, 31, 32, 33, 64, 95};
    for (int64_t m = 1; m <= 66 && has_tiles(kernel); m += m % 16 == 1 ? 13 : 1)
        for (int64_t n = 1; n <= 66; n += n % 16 == 1 ? 13 : 1) {
            const int64_t size[] = {m, k[(m + 3 * n) % (int64_t)WG_COUNT(k)], n};
            const int layouts = (int)((5 * m + n) % (ALL_LAYOUTS));
            check_product(kernel, size, layouts, (int)(m % FORMS), (int)(n % BEGINNINGS), true);
        }
}

/* Products and sums on both sides of 2^-126, from operands that are normal numbers and some that
 * are not. */
TEST_OF_KERNELS(a_product_by_tiles_takes_what_is_below_the_normal_numbers_for_zero) {
    enum { M = 33, N = 40, K = 67 };
    wg_generator generator = {.seed = 9};
    wg_tensor *a = wg_mul_scalar(wg_randn(&generator, WG_F32, WG_DIMS(M, K)), 0x1p-63);
    wg_tensor *b = wg_mul_scalar(wg_randn(&generator, WG_F32, WG_DIMS(K, N)), 0x1p-63);
    wg_tensor *c = wg_mul_scalar(wg_randn(&generator, WG_F32, WG_DIMS(M, N)), 0x1p-126);
    float *numbers = wg_tensor_data(a);
    for (int i = 0; i < M * K; i += 5)
        numbers[i] *= 0x1p-64F;
    numbers[K + 1] = -0.0F;
    wg_tensor *before = wg_clone(c);
    wg__product p =
        rounded_product(M, K, N, wg_tensor_data(a), wg_tensor_data(b), wg_tensor_data(c));
    p.beta = 1;
    if (!has_tiles(kernel))
        return;
    wg__gemm_large(&p, *kernel);
    assert_defined(kernel, &p, c, before);
}

static void product_with_a_wrong_sum(const wg__panel_product *p) {
    wg__bf16_kernels_tiles_base.rounded_product(p);
    ((float *)p->c)[(p->m - 1) * p->c_row + p->n - 1] += 1;
}

#ifdef __x86_64__
/* Both signs, 24 bits, and an exponent from `least` on, of which 0 is that of denormals. */
static float drawn(wg_generator *generator, uint32_t least, uint32_t exponents) {
    const uint32_t word = (uint32_t)(wg_random_uniform(generator) * 0x1p32);
    const uint32_t exponent = (uint32_t)(wg_random_uniform(generator) * exponents);
    return tiles_f32((word & 0x807fffff) | (least + exponent) << 23);
}

/* As assembly, which compilers do not move over a change of MXCSR. */
static float processor_fma(float a, float b, float c) {
    __asm__ volatile("vfmadd231ss %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
}

static float processor_add(float a, float b) {
    __asm__ volatile("addss %1, %0" : "+x"(a) : "x"(b));
    return a;
}

/* The processor's own FMA and addition, with denormals taken for 0 (DAZ) and flushed (FTZ). */
TEST(tiles_in_plain_c_flush_as_the_processor_does) {
    enum { FLUSH = 0x8040, TIMES = 200000 };
    const unsigned before = _mm_getcsr();
    wg_generator generator = {.seed = 3};
    for (int i = 0; i < TIMES && __builtin_cpu_supports("fma"); i++) {
        const float a = drawn(&generator, 61, 5), b = drawn(&generator, 61, 5),
                    c = drawn(&generator, 0, 5), d = drawn(&generator, 0, 5);
        _mm_setcsr(before | FLUSH);
        const float product = processor_fma(a, b, c), sum = processor_add(c, d);
        _mm_setcsr(before);
        ck_assert_msg(same(tiles_fma(a, b, c), product), "%a %a + %a: %a", (double)a, (double)b,
                      (double)c, (double)product);
        ck_assert_msg(same(tiles_add(c, d), sum), "%a + %a: %a", (double)c, (double)d, (double)sum);
    }
}
#endif

/* Multiplies small integers, whose sums are exact in any order. */
static bool tables_agree(const wg__bf16_kernels *a, const wg__bf16_kernels *b) {
    enum { M = 29, N = 64, K = 71, STEP = 128, ROWS = 32 };
    const wg__bf16_kernels *const kernels[] = {a, b};
    static const int64_t mixing = 40503;
    float x[M * K], y[K * N], c[2][M * N];
    for (int64_t i = 0; i < M * K; i++)
        x[i] = (float)(i * mixing / 64 % 19 - 9);
    for (int64_t i = 0; i < K * N; i++)
        y[i] = (float)(i * mixing / 128 % 23 - 11);
    for (int t = 0; t < 2; t++) {
        const int64_t columns = kernels[t]->columns;
        float words[ROWS * STEP], panels[WG__MOST_PAIR_COLUMNS * STEP];
        const wg__bf16_operand of_x = {x, false, K, 1};
        kernels[t]->pack_operand(M, K, &of_x, true, STEP, words);
        if (kernels[t]->begin)
            kernels[t]->begin();
        for (int64_t j = 0; j < N; j += columns) {
            const wg__bf16_operand of_y = {y + j, false, 1, N};
            kernels[t]->pack_operand(columns, K, &of_y, false, columns, panels);
            kernels[t]->rounded_product(&(wg__panel_product){.m = M,
                                                             .n = columns,
                                                             .k = (K + 1) / 2,
                                                             .alpha = 1,
                                                             .a = words,
                                                             .a_row = STEP,
                                                             .a_column = 1,
                                                             .b = panels,
                                                             .b_row = columns,
                                                             .c = c[t] + j,
                                                             .c_row = N});
        }
        if (kernels[t]->end)
            kernels[t]->end();
    }
    /* NOLINTNEXTLINE: compares the bits of both results */
    return memcmp(c[0], c[1], sizeof c[0]) == 0;
}

TEST(tables_that_multiply_integers_alike_agree) {
    const wg__bf16_kernels *kernels, *base = wg__bf16_kernels_at(0);
    for (int i = 0; (kernels = bf16_kernels_and_tiles_at(i)) != NULL; i++)
        ck_assert_msg(tables_agree(kernels, base), "%s", kernels->name);
    wg__bf16_kernels wrong = wg__bf16_kernels_tiles_base;
    wrong.rounded_product = product_with_a_wrong_sum;
    ck_assert(!tables_agree(&wrong, base));
}

TEST(the_tiles_of_the_processor_do_what_the_manual_says) {
    if (strcmp(wg__kernels_in_use().tiles, "in use") != 0) {
        fprintf(stderr, "skipped: %s\n", wg__kernels_in_use().tiles);
        return;
    }
    const wg__gemm_kernel kernel = wg__gemm_kernel_of_bf16(wg__bf16_kernels_at(WG__BEST));
    ck_assert_str_eq(kernel.rounded->name, "amx");
    a_bf16_product_has_the_bits_of_its_definition_in_every_layout_of(&kernel);
    a_product_by_tiles_has_the_bits_of_its_definition_at_every_edge_of(&kernel);
    a_product_by_tiles_takes_what_is_below_the_normal_numbers_for_zero_of(&kernel);
    infinities_and_nans_pass_through_a_bf16_product_as_ieee_754_says_of(&kernel);
}

/* ---- Threads ---- */

static const wg__gemm_kernel *tested;
static const int64_t threaded[][3] = {{130, 500, 250}, {301, 150, 203}, {203, 1601, 402}};

static void products(int count, wg_tensor **results) {
    for (int i = 0; i < count; i++) {
        const int64_t *size = threaded[i / 2];
        wg_tensor *memory[3];
        results[i] = wg_zeros(WG_F32, WG_DIMS(size[0], size[2]));
        const int layouts = i % 2 ? BY_COLUMNS + LAYOUTS * BY_ROWS : BY_ROWS + LAYOUTS * BY_COLUMNS;
        wg__product p = laid_out_product(size, layouts, WG_F32, false, false, memory);
        p.rounds = true;
        p.c = (wg__matrix){wg_tensor_data(results[i]), size[2], 1};
        wg__gemm_large(&p, *tested);
    }
}

TEST_OF_KERNELS(a_bf16_product_has_the_same_bits_at_any_thread_count) {
    tested = kernel;
    const int sizes = has_tiles(kernel) ? 1 : WG_COUNT(threaded); /* tiles in plain C are slow */
    assert_same_bits_at_any_thread_count(2 * sizes, products);
}
