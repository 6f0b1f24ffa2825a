/* Products of matrices in memory by rows, by columns, or with gaps between all elements. */
#ifndef WG_TESTS_LAYOUTS_H
#define WG_TESTS_LAYOUTS_H

#include "tensor/gemm/gemm.h"
#include "tensor/ops.h"

enum { BY_ROWS, BY_COLUMNS, APART, LAYOUTS, ALL_LAYOUTS = LAYOUTS * LAYOUTS * LAYOUTS };

enum { SPARE = 7 };

static inline wg__matrix laid_out(int layout, wg_tensor **memory, uint64_t seed, wg_dtype dtype,
                                  int64_t rows, int64_t columns) {
    const int64_t across = columns + SPARE, down = rows + SPARE;
    const int64_t strides[LAYOUTS][2] = {{across, 1}, {1, down}, {2 * across, 2}};
    wg_generator generator = {.seed = seed};
    wg_tensor *numbers =
        wg_randn(&generator, dtype == WG_F64 ? WG_F64 : WG_F32, WG_DIMS(2 * across * down));
    *memory = wg_cast(numbers, dtype);
    return (wg__matrix){wg_tensor_data(*memory), strides[layout][0], strides[layout][1]};
}

/* A product of the sizes m, k, n. `layouts` has that of A, times LAYOUTS that of B, and so on;
 * memory gets that of A, B and C. */
static inline wg__product laid_out_product(const int64_t *size, int layouts, wg_dtype dtype,
                                           bool a_is_bf16, bool b_is_bf16, wg_tensor **memory) {
    wg__product p = {.dtype = dtype, .m = size[0], .k = size[1], .n = size[2], .alpha = 1};
    p.a_is_bf16 = a_is_bf16;
    p.b_is_bf16 = b_is_bf16;
    p.a = laid_out(layouts % LAYOUTS, &memory[0], 1, a_is_bf16 ? WG_BF16 : dtype, p.m, p.k);
    p.b =
        laid_out(layouts / LAYOUTS % LAYOUTS, &memory[1], 2, b_is_bf16 ? WG_BF16 : dtype, p.k, p.n);
    p.c = laid_out(layouts / LAYOUTS / LAYOUTS, &memory[2], 3, dtype, p.m, p.n);
    return p;
}

/* A product of contiguous matrices by rows. */
static inline wg__product product_by_rows(wg_dtype dtype, int64_t m, int64_t k, int64_t n, void *a,
                                          void *b, void *c) {
    wg__product p = {.dtype = dtype, .m = m, .n = n, .k = k, .alpha = 1};
    p.a = (wg__matrix){a, k, 1};
    p.b = (wg__matrix){b, n, 1};
    p.c = (wg__matrix){c, n, 1};
    return p;
}

/* A test that runs for each of the kernels for which the file's for_each_kernel calls a function.
 */
#define TEST_OF_KERNELS(test)                                                                      \
    static void test##_of(const wg__gemm_kernel *kernel);                                          \
    TEST(test) {                                                                                   \
        for_each_kernel(test##_of);                                                                \
    }                                                                                              \
    static void test##_of(const wg__gemm_kernel *kernel)

#endif
