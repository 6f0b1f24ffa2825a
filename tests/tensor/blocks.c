/* The kernels on blocks of integers, of every instruction set that this CPU has, against plain C,
 * for every number of rows that a tile can have. */
#include "tensor/quantize_rows.h"
#include "tensor/random.h"
#include "tensor/simd/simd.h"
#include "tests/support/testing.h"

#include <math.h>
#include <string.h>

enum { BLOCKS = 3, COLUMNS = 32 * BLOCKS, ROWS = WG__MOST_TILE_ROWS, OUTPUTS = 16 };

/* ---- Rows of x ---- */

typedef struct rounded {
    int32_t levels[ROWS][COLUMNS];
    float scales[ROWS][BLOCKS];
} rounded;

static void draw_rows(uint64_t seed, float (*x)[COLUMNS]) {
    wg_generator generator = {.seed = seed};
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < COLUMNS; i++)
            x[r][i] = (float)(wg_random_normal(&generator) * pow(10, r % 5 - 2));
}

static void round_rows(float (*x)[COLUMNS], rounded *to) {
    for (int r = 0; r < ROWS; r++)
        for (int b = 0; b < BLOCKS; b++) {
            float largest = 0;
            for (int i = 32 * b; i < 32 * b + 32; i++)
                largest = fmaxf(largest, fabsf(x[r][i]));
            const float scale = largest / 127, inverse = isfinite(1 / scale) ? 1 / scale : 0;
            to->scales[r][b] = scale;
            for (int i = 32 * b; i < 32 * b + 32; i++) {
                const float level = x[r][i] * inverse;
                to->levels[r][i] = (int32_t)nearbyint((double)level);
            }
        }
}

static int32_t integer_at(const uint8_t *bytes) {
    int32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static void assert_tile(const wg__block_kernels *kernels, int rows, float (*x)[COLUMNS]) {
    static rounded expected;
    uint8_t tile[ROWS * BLOCKS * WG__TILE_BLOCK];
    round_rows(x, &expected);
    kernels->quantize(rows, BLOCKS, x[0], COLUMNS, -8, tile);
    for (int b = 0; b < BLOCKS; b++)
        for (int r = 0; r < rows; r++) {
            const uint8_t *block = tile + b * rows * WG__TILE_BLOCK;
            int32_t sum = 0;
            for (int i = 0; i < 32; i++) {
                const int32_t level = (int8_t)block[(i / 4 * rows + r) * 4 + i % 4];
                ck_assert_int_eq(level, expected.levels[r][32 * b + i]);
                sum += level;
            }
            float scale;
            memcpy(&scale, block + rows * 32 + r * 4, sizeof scale);
            ck_assert_mem_eq(&scale, &expected.scales[r][b], sizeof scale);
            ck_assert_int_eq(integer_at(block + rows * 36 + r * 4), -8 * sum);
        }
}

TEST(rows_become_the_blocks_of_plain_c) {
    const wg__block_kernels *kernels;
    static float x[ROWS][COLUMNS];
    draw_rows(1, x);
    memset(x[0], 0, sizeof x[0]);
    for (int i = 0; i < COLUMNS; i++)
        x[1][i] = (float)(i - 40) / 2; /* ties, where the largest is 27.5 */
    x[1][0] = x[1][32] = x[1][64] = -63.5F;
    x[2][3] = 1e-44F;
    x[2][40] = 3e38F;
    for (int k = 0; (kernels = wg__block_kernels_at(k)) != NULL; k++)
        for (int rows = 1; rows <= kernels->tile_rows; rows++)
            assert_tile(kernels, rows, x);
}

TEST(the_scale_of_a_block_that_is_not_finite_is_nan) {
    const wg__block_kernels *kernels;
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    static float x[ROWS][COLUMNS];
    for (int k = 0; (kernels = wg__block_kernels_at(k)) != NULL; k++)
        for (int i = 0; i < 4; i++)
            for (int at = 0; at < 32; at++) {
                draw_rows(2, x);
                x[0][32 + at] = bad[i];
                uint8_t tile[BLOCKS * WG__TILE_BLOCK];
                kernels->quantize(1, BLOCKS, x[0], COLUMNS, 1, tile);
                for (int b = 0; b < BLOCKS; b++) {
                    float scale;
                    memcpy(&scale, tile + b * WG__TILE_BLOCK + 32, sizeof scale);
                    ck_assert_int_eq(isnan(scale), b == 1);
                }
            }
}

/* ---- Products ---- */

/* A block of 16 rows with random levels and scales; `w` gets the numbers of its rows. */
static void draw_group(wg_generator *generator, wg_quantization quantization, uint8_t *group,
                       int32_t (*levels)[COLUMNS], float (*scales)[BLOCKS]) {
    const int64_t size = wg__quantization_block_bytes(quantization);
    for (int b = 0; b < BLOCKS; b++)
        for (int o = 0; o < OUTPUTS; o++) {
            uint8_t block[34];
            const uint16_t half = wg__f32_to_half((float)wg_random_normal(generator));
            block[0] = (uint8_t)half;
            block[1] = (uint8_t)(half >> 8);
            for (int i = 2; i < size; i++)
                block[i] = o == 0   ? 0x80 /* the levels of largest magnitude */
                           : o == 1 ? 0x7f
                                    : (uint8_t)(256 * wg_random_uniform(generator));
            wg__group_put(quantization, o, block, group + b * OUTPUTS * size);
            scales[o][b] = wg__half_to_f32(half);
            for (int i = 0; i < 32; i++)
                levels[o][32 * b + i] = quantization == WG_QUANTIZATION_Q8_0 ? (int8_t)block[2 + i]
                                        : i < 16 ? (block[2 + i] & 15) - 8
                                                 : (block[2 + i - 16] >> 4) - 8;
        }
}

static void assert_products(const wg__block_kernels *kernels, wg_quantization quantization,
                            int rows) {
    static float x[ROWS][COLUMNS];
    static rounded met;
    int32_t levels[OUTPUTS][COLUMNS];
    float scales[OUTPUTS][BLOCKS], sums[ROWS * OUTPUTS];
    uint8_t group[34 * BLOCKS * OUTPUTS], tile[ROWS * BLOCKS * WG__TILE_BLOCK];
    wg_generator generator = {.seed = 9};
    draw_rows(3, x);
    for (int i = 0; i < COLUMNS; i++)
        x[0][i] = i % 64 < 32 ? 1 : -1; /* the largest sums */
    round_rows(x, &met);
    draw_group(&generator, quantization, group, levels, scales);
    const int32_t offset =
        quantization == WG_QUANTIZATION_Q8_0 ? kernels->q8_0_offset : kernels->q4_0_offset;
    kernels->quantize(rows, BLOCKS, x[0], COLUMNS, offset, tile);
    for (int i = 0; i < rows * OUTPUTS; i++)
        sums[i] = (float)i;
    kernels->multiply(quantization, rows, BLOCKS, group, tile, sums);
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < OUTPUTS; o++) {
            double expected = r * OUTPUTS + o, size = fabs(expected);
            for (int b = 0; b < BLOCKS; b++) {
                int32_t sum = 0;
                for (int i = 32 * b; i < 32 * b + 32; i++)
                    sum += met.levels[r][i] * levels[o][i];
                const double product =
                    (double)sum * (double)scales[o][b] * (double)met.scales[r][b];
                expected += product;
                size += fabs(product);
            }
            ck_assert_msg(fabs((double)sums[r * OUTPUTS + o] - expected) <= 3e-7 * size,
                          "%s %s, %d rows, (%d, %d): %.9g, wanted %.9g", kernels->name,
                          wg_quantization_name(quantization), rows, r, o,
                          (double)sums[r * OUTPUTS + o], expected);
        }
}

TEST(products_of_blocks_are_those_of_plain_c) {
    const wg__block_kernels *kernels;
    for (int k = 0; (kernels = wg__block_kernels_at(k)) != NULL; k++)
        for (int rows = 1; rows <= kernels->tile_rows; rows++) {
            assert_products(kernels, WG_QUANTIZATION_Q8_0, rows);
            assert_products(kernels, WG_QUANTIZATION_Q4_0, rows);
        }
}
