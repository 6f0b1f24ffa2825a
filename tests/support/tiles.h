/* The intrinsics of AMX tiles in plain C, by the pseudo code of Intel's manual (Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 2: LDTILECFG, TILELOADD, TILESTORED, TILEZERO,
 * TILERELEASE, TDPBF16PS). The kernels of tensor/simd/tiles.h are compiled with them for tests, so
 * that every machine can run them. What a processor would raise #UD or #GP for aborts; so does
 * configuring tiles that were not released. */
#ifndef WG_TESTS_SUPPORT_TILES_H
#define WG_TESTS_SUPPORT_TILES_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h> /* whose intrinsics are replaced at the end */
#endif

enum { TILES_COUNT = 8, TILES_ROWS = 16, TILES_ROW_BYTES = 64 };

/* The state of a thread: TILECFG and TILEDATA. */
static _Thread_local struct {
    bool configured;
    uint16_t row_bytes[TILES_COUNT];
    uint8_t rows[TILES_COUNT];
    uint32_t data[TILES_COUNT][TILES_ROWS][TILES_ROW_BYTES / 4];
} tiles_state;

static inline void tiles_check(bool holds, const char *rule) {
    if (holds)
        return;
    fprintf(stderr, "tiles: %s\n", rule);
    abort();
}

static inline void tiles_check_named(int tile) {
    tiles_check(tiles_state.configured, "#UD: tiles are not configured");
    tiles_check(tile >= 0 && tile < TILES_COUNT && tiles_state.rows[tile] > 0, "#UD: no such tile");
    tiles_check(tiles_state.row_bytes[tile] % 4 == 0, "#UD: a row is no multiple of 4 bytes");
}

static inline void tiles_loadconfig(const void *config) {
    uint8_t bytes[64];
    memcpy(bytes, config, sizeof bytes);
    tiles_check(!tiles_state.configured, "tiles are configured that were not released");
    tiles_check(bytes[0] == 1, "#GP: the palette is not 1");
    for (int i = 1; i < 16; i++)
        tiles_check(bytes[i] == 0, "#GP: a row to restart at, or reserved bytes, are not 0");
    memset(&tiles_state, 0, sizeof tiles_state);
    for (int tile = 0; tile < 16; tile++) {
        const int row_bytes = bytes[16 + 2 * tile] + 256 * bytes[17 + 2 * tile],
                  rows = bytes[48 + tile];
        tiles_check(row_bytes <= TILES_ROW_BYTES && rows <= TILES_ROWS, "#GP: a tile too large");
        tiles_check((row_bytes == 0) == (rows == 0), "#GP: a tile of rows or columns alone");
        tiles_check(tile < TILES_COUNT || rows == 0, "#GP: more tiles than 8");
        if (tile < TILES_COUNT) {
            tiles_state.row_bytes[tile] = (uint16_t)row_bytes;
            tiles_state.rows[tile] = (uint8_t)rows;
        }
    }
    tiles_state.configured = true;
}

static inline void tiles_release(void) {
    memset(&tiles_state, 0, sizeof tiles_state);
}

static inline void tiles_zero(int tile) {
    tiles_check_named(tile);
    memset(tiles_state.data[tile], 0, sizeof tiles_state.data[tile]);
}

static inline void tiles_load(int tile, const void *base, int64_t stride) {
    tiles_zero(tile);
    for (int r = 0; r < tiles_state.rows[tile]; r++)
        memcpy(tiles_state.data[tile][r], (const char *)base + r * stride,
               tiles_state.row_bytes[tile]);
}

static inline void tiles_store(int tile, void *base, int64_t stride) {
    tiles_check_named(tile);
    for (int r = 0; r < tiles_state.rows[tile]; r++)
        memcpy((char *)base + r * stride, tiles_state.data[tile][r], tiles_state.row_bytes[tile]);
}

/* DAZ: numbers below the normal ones are 0. */
static inline float tiles_normal(float x) {
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

/* FTZ: so are sums that stay below the normal numbers when they are rounded to 24 bits, whatever
 * their exponent. `exact` is the sum in f64. */
static inline float tiles_flushed(float rounded, double exact) {
    return fabs(exact) < 0x1p-126 * (1 - 0x1p-25) ? copysignf(0, rounded) : rounded;
}

static inline float tiles_fma(float a, float b, float sum) {
    a = tiles_normal(a);
    b = tiles_normal(b);
    sum = tiles_normal(sum);
    const float rounded = fmaf(a, b, sum);
    return fabsf(rounded) > FLT_MIN
               ? rounded
               : tiles_flushed(rounded, fma((double)a, (double)b, (double)sum));
}

static inline float tiles_add(float a, float b) {
    a = tiles_normal(a);
    b = tiles_normal(b);
    return tiles_flushed(a + b, (double)a + (double)b);
}

typedef union tiles_number {
    float number;
    uint32_t bits;
} tiles_number;

static inline float tiles_f32(uint32_t bits) {
    return (tiles_number){.bits = bits}.number;
}

/* The numbers of a pair in bf16. */
static inline float tiles_lower(uint32_t pair) {
    return tiles_f32(pair << 16);
}

static inline float tiles_upper(uint32_t pair) {
    return tiles_f32(pair & 0xffff0000);
}

static inline void tiles_dpbf16ps(int c, int a, int b) {
    tiles_check_named(c);
    tiles_check_named(a);
    tiles_check_named(b);
    tiles_check(c != a && c != b && a != b, "#UD: a tile is named twice");
    const int m = tiles_state.rows[c], n = tiles_state.row_bytes[c] / 4, k = tiles_state.rows[b];
    tiles_check(tiles_state.rows[a] == m && tiles_state.row_bytes[b] / 4 == n &&
                    tiles_state.row_bytes[a] / 4 == k,
                "#UD: the shapes of the tiles do not fit");
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float even = 0, odd = 0, sum = tiles_f32(tiles_state.data[c][i][j]);
            for (int l = 0; l < k; l++) {
                const uint32_t x = tiles_state.data[a][i][l], y = tiles_state.data[b][l][j];
                even = tiles_fma(tiles_lower(x), tiles_lower(y), even);
                odd = tiles_fma(tiles_upper(x), tiles_upper(y), odd);
            }
            sum = tiles_add(sum, tiles_add(even, odd));
            tiles_state.data[c][i][j] = (tiles_number){sum}.bits;
        }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) tiles_loadconfig(config)
#define _tile_release() tiles_release()
#define _tile_zero(tile) tiles_zero(tile)
#define _tile_loadd(tile, base, stride) tiles_load(tile, base, stride)
#define _tile_stored(tile, base, stride) tiles_store(tile, base, stride)
#define _tile_dpbf16ps(c, a, b) tiles_dpbf16ps(c, a, b)

#endif
