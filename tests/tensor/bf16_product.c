/* Products of many rows with weights in bf16, by the kernels of every instruction set that this CPU
 * has, against plain C in f64. The shapes end inside every kind of tile, panel and piece. */
#include "base/alloc.h"
#include "tensor/gemm/gemm.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/random.h"
#include "tests/support/testing.h"
#include "tests/tensor/simd_tables.h"

#include <math.h>
#include <string.h>

/* ---- Operands ---- */

/* The strides between rows are in elements for x and y, in bytes for the weights. */
typedef struct operands {
    int64_t rows, n, outputs, x_stride, weight_stride, y_stride;
    float *x, *bias, *y;
    char *weight;
} operands;

static const float untouched = 12345;

static float weight_at(const operands *o, int64_t output, int64_t i) {
    const uint8_t *bytes = (const uint8_t *)o->weight + output * o->weight_stride + 2 * i;
    const uint32_t bits = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 24;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static void put_weight(const operands *o, int64_t output, int64_t i, float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    o->weight[output * o->weight_stride + 2 * i] = (char)(bits >> 16);
    o->weight[output * o->weight_stride + 2 * i + 1] = (char)(bits >> 24);
}

static void *bytes_for(int64_t bytes) {
    void *memory = wg__alloc((size_t)bytes);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void forget_y(operands *o) {
    for (int64_t i = 0; i < o->rows * o->y_stride; i++)
        o->y[i] = untouched;
}

static operands draw(int64_t rows, int64_t n, int64_t outputs, int64_t apart, bool has_bias) {
    wg_generator generator = {.seed = (uint64_t)(rows + 1000 * n + 1000000 * outputs)};
    operands o = {.rows = rows,
                  .n = n,
                  .outputs = outputs,
                  .x_stride = n + apart,
                  .weight_stride = 2 * n + apart,
                  .y_stride = outputs + apart};
    o.x = bytes_for(rows * o.x_stride * 4);
    o.y = bytes_for(rows * o.y_stride * 4);
    o.weight = bytes_for(outputs * o.weight_stride);
    o.bias = has_bias ? bytes_for(outputs * 4) : NULL;
    for (int64_t i = 0; i < rows * o.x_stride; i++)
        o.x[i] = (float)wg_random_normal(&generator);
    for (int64_t output = 0; output < outputs; output++)
        for (int64_t i = 0; i < n; i++)
            put_weight(&o, output, i, (float)wg_random_normal(&generator));
    for (int64_t output = 0; has_bias && output < outputs; output++)
        o.bias[output] = (float)wg_random_normal(&generator);
    forget_y(&o);
    return o;
}

static void release(operands *o) {
    wg__free(o->x);
    wg__free(o->y);
    wg__free(o->weight);
    wg__free(o->bias);
}

/* x as the kernel reads it: some kernels round it to bf16. */
static float *met_by(const wg__bf16_kernels *kernels, int64_t count, const float *x) {
    wg_tensor *numbers = wg_empty(WG_F32, WG_DIMS(count));
    memcpy(wg_tensor_data(numbers), x, (size_t)count * sizeof *x);
    return wg_tensor_data(kernels->rounds_x ? wg_cast(wg_cast(numbers, WG_BF16), WG_F32) : numbers);
}

static wg__quantized_product product_of(const operands *o) {
    return (wg__quantized_product){.weight = o->weight,
                                   .outputs = o->outputs,
                                   .weight_stride = o->weight_stride,
                                   .n = o->n,
                                   .x = o->x,
                                   .bias = o->bias,
                                   .x_rows = o->rows,
                                   .x_stride = o->x_stride,
                                   .y = o->y,
                                   .y_stride = o->y_stride};
}

static int run(const wg__bf16_kernels *kernels, const operands *o) {
    const wg__quantized_product product = product_of(o);
    return wg__bf16_product(kernels, 1, &product);
}

/* ---- Products ---- */

/* A bound on the error of a sum of n products and the bias, each step rounded to f32, as are the
 * products where they are not fused. */
static void assert_sums(const wg__bf16_kernels *kernels, const operands *o) {
    const float *x = met_by(kernels, o->rows * o->x_stride, o->x);
    for (int64_t r = 0; r < o->rows; r++)
        for (int64_t output = 0; output < o->y_stride; output++) {
            const float y = o->y[r * o->y_stride + output];
            if (output >= o->outputs) {
                ck_assert(y == untouched);
                continue;
            }
            double sum = o->bias ? (double)o->bias[output] : 0, size = fabs(sum);
            for (int64_t i = 0; i < o->n; i++) {
                const double product =
                    (double)x[r * o->x_stride + i] * (double)weight_at(o, output, i);
                sum += product;
                size += fabs(product);
            }
            ck_assert_msg(fabs((double)y - sum) <= (double)(o->n + 2) * 0x1p-24 * size,
                          "%s, (%lld, %lld) x %lld, at %lld, %lld: %.9g, wanted %.9g",
                          kernels->name, (long long)o->rows, (long long)o->n, (long long)o->outputs,
                          (long long)r, (long long)output, (double)y, sum);
        }
}

static void assert_product(int64_t rows, int64_t n, int64_t outputs, int64_t apart, bool bias) {
    const wg__bf16_kernels *kernels;
    operands o = draw(rows, n, outputs, apart, bias);
    for (int i = 0; (kernels = bf16_kernels_and_tiles_at(i)) != NULL; i++) {
        ck_assert_int_eq(run(kernels, &o), 0);
        assert_sums(kernels, &o);
    }
    release(&o);
}

TEST(any_number_of_rows_is_multiplied) {
    for (int64_t rows = 1; rows <= 40; rows++)
        assert_product(rows, 37, 33, rows % 3, rows % 2);
    assert_product(239, 8, 40, 0, true);
    assert_product(241, 8, 40, 0, false);
    assert_product(700, 5, 3, 1, true);
}

/* Some of the strides are an odd number of bytes. */
TEST(any_number_of_outputs_is_multiplied) {
    for (int64_t outputs = 1; outputs <= 70; outputs++)
        assert_product(17, 37, outputs, outputs % 4, outputs % 2);
}

TEST(any_length_of_a_row_is_multiplied) {
    for (int64_t n = 1; n <= 70; n++)
        assert_product(18, n, 33, n % 3, n % 2);
    const int64_t around_pieces[] = {127, 128, 129, 255, 256, 257, 300, 511, 513, 768, 1031};
    for (size_t i = 0; i < WG_COUNT(around_pieces); i++) {
        assert_product(29, around_pieces[i], 64, 0, true);
        assert_product(29, around_pieces[i], 45, 1, true);
    }
}

TEST(nothing_of_nothing_is_nothing) {
    assert_product(0, 16, 16, 0, false);
    assert_product(16, 16, 0, 0, false);
}

/* ---- Bits ---- */

/* Ties in both directions, numbers that round up to the next power of 2 and to infinity, NaNs whose
 * upper half is that of an infinity, and zeros of both signs, times 1. */
TEST(x_is_rounded_as_a_cast_rounds) {
    const uint32_t bits[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff, 0xbf818000,
                             0x3fffffff, 0x7f7fffff, 0xff7fffff, 0x7f7f7fff, 0x7f800000,
                             0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x00000000,
                             0x80000000, 0x00800000, 0x00ffffff};
    enum { COUNT = sizeof bits / sizeof *bits };
    const wg__bf16_kernels *kernels;
    operands o = draw(COUNT, 1, 1, 0, false);
    memcpy(o.x, bits, sizeof bits);
    put_weight(&o, 0, 0, 1);
    for (int i = 0; (kernels = bf16_kernels_and_tiles_at(i)) != NULL; i++) {
        ck_assert_int_eq(run(kernels, &o), 0);
        const float *expected = met_by(kernels, COUNT, o.x);
        for (int r = 0; r < COUNT; r++)
            ck_assert_msg(isnan(expected[r]) ? isnan(o.y[r]) : o.y[r] == expected[r],
                          "%s: %a, wanted %a", kernels->name, (double)o.y[r], (double)expected[r]);
    }
    release(&o);
}

/* A number that is not finite reaches every output of its row, and no other row. */
TEST(what_is_not_finite_stays_in_its_row) {
    const wg__bf16_kernels *kernels;
    operands o = draw(20, 35, 37, 0, false);
    o.x[3 * o.x_stride + 5] = NAN;
    o.x[7 * o.x_stride + 34] = INFINITY;
    for (int i = 0; (kernels = bf16_kernels_and_tiles_at(i)) != NULL; i++) {
        ck_assert_int_eq(run(kernels, &o), 0);
        for (int64_t r = 0; r < o.rows; r++)
            for (int64_t output = 0; output < o.outputs; output++) {
                const float y = o.y[r * o.y_stride + output];
                ck_assert(r == 3 ? isnan(y) : r == 7 ? isinf(y) : isfinite(y));
            }
    }
    release(&o);
}

static float *bits_of(const wg__bf16_kernels *kernels, const operands *o, int threads) {
    const int before = wg_threads();
    wg_set_threads(threads);
    ck_assert_int_eq(run(kernels, o), 0);
    wg_set_threads(before);
    float *y = bytes_for(o->rows * o->y_stride * 4);
    memcpy(y, o->y, (size_t)(o->rows * o->y_stride * 4));
    return y;
}

TEST(any_number_of_threads_gives_the_same_bits) {
    const wg__bf16_kernels *kernels;
    operands o = draw(250, 300, 150, 1, true);
    for (int i = 0; (kernels = bf16_kernels_and_tiles_at(i)) != NULL; i++) {
        float *first = bits_of(kernels, &o, 1);
        for (int threads = 2; threads <= 3; threads++) {
            float *y = bits_of(kernels, &o, threads);
            ck_assert_mem_eq(y, first, o.rows * o.y_stride * 4);
            wg__free(y);
        }
        wg__free(first);
    }
    release(&o);
}

TEST(a_row_gives_the_same_bits_among_any_others) {
    const wg__bf16_kernels *kernels;
    operands o = draw(250, 300, 70, 0, true);
    for (int i = 0; (kernels = bf16_kernels_and_tiles_at(i)) != NULL; i++) {
        float *all = bits_of(kernels, &o, 2);
        for (int64_t rows = 1; rows < 30; rows++) {
            operands some = o;
            some.rows = rows;
            some.x = o.x + 9 * rows * o.x_stride;
            if (9 * rows + rows > o.rows)
                break;
            float *y = bits_of(kernels, &some, 2);
            ck_assert_mem_eq(y, all + 9 * rows * o.y_stride, rows * o.y_stride * 4);
            wg__free(y);
        }
        wg__free(all);
    }
    release(&o);
}

/* One of the weights has no rows. */
TEST(products_of_one_x_have_the_bits_of_each_alone) {
    enum { COUNT = 4 };
    const int64_t outputs[COUNT] = {70, 33, 0, 5};
    const wg__bf16_kernels *kernels;
    for (int i = 0; (kernels = bf16_kernels_and_tiles_at(i)) != NULL; i++) {
        operands o[COUNT];
        wg__quantized_product products[COUNT];
        for (int w = 0; w < COUNT; w++) {
            o[w] = draw(250, 300, outputs[w], w, w % 2 == 0);
            products[w] = product_of(&o[w]);
            products[w].x = o->x;
            products[w].x_stride = o->x_stride;
        }
        ck_assert_int_eq(wg__bf16_product(kernels, COUNT, products), 0);
        for (int w = 0; w < COUNT; w++) {
            const int64_t bytes = o[w].rows * o[w].y_stride * 4;
            float *together = bytes_for(bytes);
            memcpy(together, o[w].y, (size_t)bytes);
            forget_y(&o[w]);
            ck_assert_int_eq(wg__bf16_product(kernels, 1, &products[w]), 0);
            ck_assert_mem_eq(together, o[w].y, bytes);
            wg__free(together);
        }
        for (int w = 0; w < COUNT; w++)
            release(&o[w]);
    }
}

TEST(a_product_without_memory_fails) {
    operands o = draw(20, 30, 40, 0, false);
    wg__alloc_fail_after(0);
    const int result = run(wg__bf16_kernels_at(WG__BEST), &o);
    wg__alloc_fail_after(-1);
    assert_fails(result, WG_ERROR_MEMORY, "");
    release(&o);
}
