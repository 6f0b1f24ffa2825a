/* Products of bf16 by tiles (Intel's AMX), in the table of kernels_bf16.c. WG__TILES is the header
 * of the intrinsics: the compiler's, or in tests an emulation after the manual.
 *
 *        B     +----+----+      A tile has 16 rows of 64 bytes: of A 16 pairs of a row, of B a pair
 *              |  6 |  7 |      of each of 16 columns, of C 16 sums in f32. Four tiles of C are
 *     A        +----+----+      computed at a time. A product of tiles adds 32 numbers of k:
 *    +----+    +----+----+
 *    |  4 |    |  0 |  1 |          even = sum a_l b_l over l = 0, 2, 4, ... 30    (by fma, from 0)
 *    +----+    +----+----+          odd  = sum a_l b_l over l = 1, 3, 5, ... 31
 *    |  5 |    |  2 |  3 |          c    = c + (even + odd)
 *    +----+    +----+----+
 *
 * Each sum is rounded to nearest, ties to even; numbers and sums below 2^-126 are 0 (Intel 64 and
 * IA-32 Architectures Software Developer's Manual, volume 2: TDPBF16PS). */
#ifndef WG_TENSOR_SIMD_TILES_H
#define WG_TENSOR_SIMD_TILES_H

enum { TILE = 16, TILE_BYTES = TILE * WORD };

/* gcc's intrinsics do not declare that they read memory, so the memory is written before them. */
#define WG__WRITTEN() __asm__ volatile("" ::: "memory")

/* All eight tiles have 16 rows of 64 bytes. */
typedef struct tile_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_configuration;

static void configure_tiles(void) {
    static const tile_configuration all = {
        .palette = 1,
        .row_bytes = {TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES,
                      TILE_BYTES, TILE_BYTES},
        .rows = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};
    WG__WRITTEN();
    _tile_loadconfig(&all);
}

static void release_tiles(void) {
    _tile_release();
}

/* Packed operands: for each block of pairs, up to two tiles of A and of B. Steps are in bytes: from
 * row to row, and from block to block. */
typedef struct tile_operands {
    int64_t blocks;
    const char *a, *b;
    int64_t a_row, a_block, b_row;
} tile_operands;

/* The sums of the upper and of the lower tiles in memory, their rows `row` elements apart. */
typedef struct tile_rows {
    float *of[2];
    int64_t row[2]; /* in elements */
} tile_rows;

WG__ALWAYS_INLINE void add_blocks(const bool below, const bool beside, const tile_operands *o) {
    const char *a = o->a, *b = o->b;
    for (int64_t i = 0; i < o->blocks; i++, a += o->a_block, b += TILE * o->b_row) {
        _tile_loadd(4, a, o->a_row);
        _tile_loadd(6, b, o->b_row);
        _tile_dpbf16ps(0, 4, 6);
        if (beside) {
            _tile_loadd(7, b + TILE_BYTES, o->b_row);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (below) {
            _tile_loadd(5, a + TILE * o->a_row, o->a_row);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (below && beside)
            _tile_dpbf16ps(3, 5, 7);
    }
}

/* c = d + A B, of 16 or 32 rows by 16 or 32 columns. A d of NULL is zeros. */
WG__ALWAYS_INLINE void tile_product(const bool below, const bool beside, const tile_operands *o,
                                    const tile_rows *d, const tile_rows *c) {
    WG__WRITTEN();
    if (d) {
        _tile_loadd(0, d->of[0], d->row[0] * WORD);
        if (beside)
            _tile_loadd(1, d->of[0] + TILE, d->row[0] * WORD);
        if (below)
            _tile_loadd(2, d->of[1], d->row[1] * WORD);
        if (below && beside)
            _tile_loadd(3, d->of[1] + TILE, d->row[1] * WORD);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    add_blocks(below, beside, o);
    _tile_stored(0, c->of[0], c->row[0] * WORD);
    if (beside)
        _tile_stored(1, c->of[0] + TILE, c->row[0] * WORD);
    if (below)
        _tile_stored(2, c->of[1], c->row[1] * WORD);
    if (below && beside)
        _tile_stored(3, c->of[1] + TILE, c->row[1] * WORD);
    WG__WRITTEN();
}

static void copy_rows(int64_t rows, int64_t columns, const float *from, int64_t from_row, float *to,
                      int64_t to_row) {
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * to_row, from + r * from_row, (size_t)columns * sizeof *to);
}

/* The same for up to 32 rows, and columns in whole tiles. If the last tile has fewer than 16 rows,
 * its sums are computed in a buffer, where the products of missing rows of A remain. */
static void add_tiles(int64_t rows, int64_t columns, const tile_operands *o, const float *d,
                      int64_t d_row, float *c, int64_t c_row) {
    _Alignas(TILE_BYTES) float buffer[TILE * COLUMNS];
    const bool below = rows > TILE, beside = columns > TILE;
    const int64_t last = below, first = last * TILE, of_last = rows - first;
    tile_rows from = {.of = {(float *)d, (float *)d + (d ? TILE * d_row : 0)},
                      .row = {d_row, d_row}};
    tile_rows to = {.of = {c, c + TILE * c_row * last}, .row = {c_row, c_row}};
    if (of_last < TILE) {
        if (d && d_row != 0) {
            memset(buffer, 0, sizeof buffer);
            copy_rows(of_last, columns, d + first * d_row, d_row, buffer, COLUMNS);
            from.of[last] = buffer;
            from.row[last] = COLUMNS;
        }
        to.of[last] = buffer;
        to.row[last] = COLUMNS;
    }
    const tile_rows *begin = d ? &from : NULL;
    if (below && beside)
        tile_product(true, true, o, begin, &to);
    else if (below)
        tile_product(true, false, o, begin, &to);
    else if (beside)
        tile_product(false, true, o, begin, &to);
    else
        tile_product(false, false, o, begin, &to);
    if (of_last < TILE)
        copy_rows(of_last, columns, buffer, COLUMNS, c + first * c_row, c_row);
}

static void multiply(const wg__pair_product *p) {
    const tile_operands o = {.blocks = p->pairs / BLOCK_PAIRS,
                             .a = p->tile,
                             .b = p->panel,
                             .a_row = TILE_BYTES,
                             .a_block = p->rows * TILE_BYTES,
                             .b_row = COLUMNS * WORD};
    add_tiles(p->rows, COLUMNS, &o, p->from, p->from_row, p->to, p->to_row);
}

static void rounded_product(const wg__panel_product *p) {
    for (int64_t j = 0; j < p->n; j += COLUMNS)
        for (int64_t i = 0; i < p->m; i += 2 * TILE) {
            const tile_operands o = {.blocks = (p->k + BLOCK_PAIRS - 1) / BLOCK_PAIRS,
                                     .a = (const char *)p->a + i * p->a_row * WORD,
                                     .b = (const char *)p->b + j / COLUMNS * p->b_panel * WORD,
                                     .a_row = p->a_row * WORD,
                                     .a_block = TILE_BYTES,
                                     .b_row = p->b_row * WORD};
            add_tiles(p->m - i < 2 * TILE ? p->m - i : 2 * TILE, p->n - j <= TILE ? TILE : COLUMNS,
                      &o, p->d ? (const float *)p->d + i * p->d_row + j : NULL, p->d_row,
                      (float *)p->c + i * p->c_row + j, p->c_row);
        }
}

#endif
