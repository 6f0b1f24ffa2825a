/* Large products, by BLIS's kernel and by ours, whichever of them this processor would choose,
 * against plain sums, with operands and C in every layout. */
#include "base/alloc.h"
#include "tensor/gemm/gemm.h"
#include "tensor/kernels.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"
#include "tests/tensor/layouts.h"

#include <math.h>
#include <string.h>

/* One and several pieces of k, m or n the larger, with and without ragged edges, and less than a
 * tile. */
static const int64_t sizes[][3] = {{96, 128, 64},  {130, 500, 70}, {301, 40, 203},
                                   {69, 385, 202}, {70, 901, 65},  {5, 9, 3}};

/* x in f64, by rows. */
static double *wide(wg_dtype dtype, wg__matrix x, int64_t rows, int64_t columns) {
    wg_tensor *copy = wg_zeros(WG_F64, WG_DIMS(rows, columns));
    double *to = wg_tensor_data(copy);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const int64_t place = i * x.row_stride + j * x.column_stride;
            to[i * columns + j] =
                dtype == WG_F32 ? (double)((float *)x.data)[place] : ((double *)x.data)[place];
        }
    return to;
}

/* y += factor x, for each of n numbers. */
UNCHECKED static void add_row(int64_t n, double factor, const double *x, double *y) {
    for (int64_t j = 0; j < n; j++)
        y[j] += factor * x[j];
}

/* The expected C, from its old values. */
static void multiply(const wg__product *p, double *c) {
    const double *a = wide(p->dtype, p->a, p->m, p->k), *b = wide(p->dtype, p->b, p->k, p->n);
    const wg__matrix rows = {(void *)p->row, 0, 1};
    const double *row = p->row ? wide(p->dtype, rows, 1, p->n) : NULL;
    for (int64_t i = 0; i < p->m; i++, c += p->n) {
        for (int64_t j = 0; j < p->n; j++)
            c[j] = row ? row[j] : p->beta == 0 ? 0 : p->beta * c[j];
        for (int64_t l = 0; l < p->k; l++)
            add_row(p->n, p->alpha * a[i * p->k + l], b + l * p->n, c);
    }
}

static void assert_is_the_sum(const wg__product *p, wg_tensor *memory, wg_tensor *before) {
    wg__matrix c_before = p->c;
    c_before.data = wg_tensor_data(before);
    double *wanted = wide(p->dtype, c_before, p->m, p->n);
    const double *c = wide(p->dtype, p->c, p->m, p->n), eps = p->dtype == WG_F32 ? 1e-6 : 1e-14;
    multiply(p, wanted);
    int64_t wrong = 0, touched = 0;
    bool *is_of_c = wg_tensor_data(wg_zeros(WG_BOOL, WG_DIMS(wg_tensor_count(memory))));
    for (int64_t i = 0; i < p->m * p->n; i++) {
        wrong += !(fabs(c[i] - wanted[i]) <= 8 * eps * sqrt((double)p->k + 1));
        is_of_c[i / p->n * p->c.row_stride + i % p->n * p->c.column_stride] = true;
    }
    const size_t size = wg_dtype_size(p->dtype);
    const char *now = wg_tensor_data(memory), *then = wg_tensor_data(before);
    for (int64_t place = 0; place < wg_tensor_count(memory); place++)
        if (!is_of_c[place])
            touched += memcmp(now + (size_t)place * size, then + (size_t)place * size, size) != 0;
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(touched, 0);
}

/* C begins as noise, or as NaN where it must not be read. */
static void check(const wg__gemm_kernel *kernel, const int64_t *size, int layouts, double alpha,
                  double beta, bool with_row, bool finds_memory) {
    IN_SCOPE() {
        wg_tensor *memory[4];
        wg__product p = laid_out_product(size, layouts, kernel->dtype, false, false, memory);
        p.alpha = alpha;
        p.beta = beta;
        p.row = with_row ? laid_out(BY_ROWS, &memory[3], 4, p.dtype, 1, p.n).data : NULL;
        if (beta == 0)
            wg_fill_(memory[2], NAN);
        wg_tensor *before = wg_clone(memory[2]);
        if (!finds_memory)
            wg__alloc_fail_after(0);
        wg__gemm_large(&p, *kernel);
        wg__alloc_fail_after(-1);
        assert_is_the_sum(&p, memory[2], before);
    }
}

static void for_each_kernel(void (*body)(const wg__gemm_kernel *)) {
    for (int dtype = WG_F32; dtype <= WG_F64; dtype++) {
        const wg__gemm_kernel kernel = wg__gemm_kernel_of_panels((wg_dtype)dtype);
        body(&kernel);
    }
}

TEST_OF_KERNELS(a_large_product_is_the_sum_in_every_layout) {
    for (size_t s = 0; s < WG_COUNT(sizes); s++)
        for (int layouts = 0; layouts < ALL_LAYOUTS; layouts++)
            if (s == 0 || s == 5 || layouts % 4 == (int)s % 4)
                check(kernel, sizes[s], layouts, 1, 0, false, true);
}

TEST_OF_KERNELS(a_large_product_takes_alpha_and_beta) {
    static const double factors[][2] = {{1, 1}, {-0.5, 0}, {0.5, 1}, {2, -0.25}};
    for (size_t f = 0; f < WG_COUNT(factors); f++)
        for (int layouts = 0; layouts < ALL_LAYOUTS; layouts += 4)
            for (int s = 0; s < 2; s++)
                check(kernel, sizes[s], layouts, factors[f][0], factors[f][1], false, true);
}

TEST_OF_KERNELS(a_row_is_added_to_each_row_of_a_large_product) {
    for (int layouts = 0; layouts < ALL_LAYOUTS; layouts += 2)
        for (size_t s = 0; s < WG_COUNT(sizes); s += 1 + (layouts > 8))
            check(kernel, sizes[s], layouts, 1, 0, true, true);
}

TEST_OF_KERNELS(a_large_product_does_without_memory_to_pack_into) {
    for (int layouts = 0; layouts < ALL_LAYOUTS; layouts += 3)
        check(kernel, sizes[1], layouts, 1, 0, layouts % 2, false);
}

/* ---- A gathered B ---- */

/* Reads B from a matrix in memory, writing noise into every gap between rows (or columns). */
static void read_part(const void *context, int64_t row, int64_t rows, int64_t column,
                      int64_t columns, int64_t step, void *to) {
    const wg__product *p = context;
    const size_t size = wg_dtype_size(p->dtype);
    const bool down = p->gather->down;
    const int64_t count = down ? columns : rows, length = down ? rows : columns;
    ck_assert_int_le(rows, WG__MOST_GATHERED);
    ck_assert_int_le(columns, WG__MOST_GATHERED);
    ck_assert_int_ge(step, length);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < (i + 1 < count ? step : length); j++) {
            char *place = (char *)to + (size_t)(i * step + j) * size;
            memset(place, 0x55, size);
            if (j < length)
                memcpy(place,
                       wg__matrix_at(p->dtype, p->b, row + (down ? j : i), column + (down ? i : j))
                           .data,
                       size);
        }
}

/* With C by rows and by columns, and so with B gathered as either operand of the kernel. */
TEST_OF_KERNELS(a_large_product_gathers_an_operand) {
    for (size_t s = 0; s < 8 * WG_COUNT(sizes); s++) {
        const int64_t *size = sizes[s / 8];
        IN_SCOPE() {
            wg_tensor *memory[3];
            const int layout = s / 2 % 2 ? BY_ROWS : BY_COLUMNS;
            const wg__product p = laid_out_product(size, layout * LAYOUTS * LAYOUTS, kernel->dtype,
                                                   false, false, memory);
            wg_tensor *before = wg_clone(memory[2]);
            wg__product gathered = p;
            const wg__gather gather = {read_part, &gathered, s % 2 == 1};
            gathered.gather = &gather;
            if (s / 4 % 2)
                wg__alloc_fail_after(0);
            wg__gemm_large(&gathered, *kernel);
            wg__alloc_fail_after(-1);
            assert_is_the_sum(&p, memory[2], before);
        }
    }
}

/* The kernel's results for A by rows, which ours reads in place, and by columns. */
static const wg__gemm_kernel *tested;
static const int64_t threaded[][3] = {{130, 500, 250}, {301, 150, 203}, {203, 385, 402}};

static void products(int count, wg_tensor **results) {
    for (int i = 0; i < count; i++) {
        const int64_t *size = threaded[i / 2];
        wg_tensor *memory[3];
        results[i] = wg_zeros(tested->dtype, WG_DIMS(size[0], size[2]));
        const int layouts = i % 2 ? BY_COLUMNS + LAYOUTS * BY_ROWS : BY_ROWS + LAYOUTS * BY_COLUMNS;
        wg__product p = laid_out_product(size, layouts, tested->dtype, false, false, memory);
        p.c = (wg__matrix){wg_tensor_data(results[i]), size[2], 1};
        wg__gemm_large(&p, *tested);
    }
}

TEST_OF_KERNELS(a_large_product_has_the_same_bits_at_any_thread_count) {
    tested = kernel;
    assert_same_bits_at_any_thread_count(2 * WG_COUNT(threaded), products);
}

/* The sums have no terms, whichever kernel would add them. */
TEST(a_product_of_nothing_is_beta_times_c_or_the_row) {
    static const double betas[] = {0, 1, 0.5};
    for (int tries = 0; tries < 24; tries++) {
        const wg_dtype dtype = tries % 2 ? WG_F64 : WG_F32;
        const int64_t side = tries / 2 % 2 ? 301 : 20;
        const int64_t size[] = {side, 0, side};
        wg_tensor *memory[3], *row = wg_randn(NULL, dtype, WG_DIMS(side));
        wg__product p = laid_out_product(size, tries % LAYOUTS * LAYOUTS * LAYOUTS, dtype, false,
                                         false, memory);
        p.beta = betas[tries % 3];
        p.row = tries / 4 % 3 == 0 ? wg_tensor_data(row) : NULL;
        wg_tensor *before = wg_clone(memory[2]);
        ck_assert_int_eq(wg_set_deterministic(tries >= 12), 0);
        wg__gemm(&p);
        ck_assert_int_eq(wg_set_deterministic(false), 0);
        assert_is_the_sum(&p, memory[2], before);
    }
}
