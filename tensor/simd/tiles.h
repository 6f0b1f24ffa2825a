/* The inner part of matrix products: tiles of C, made in registers out of packed slivers.
 *
 *         B: TILE_COLUMNS wide, k long         A sliver, packed:  k times TILE_ROWS elements
 *             | | | | |                        B sliver, packed:  k times TILE_COLUMNS elements
 *     A  -- [ a tile of C ]
 *        -- [             ]    TILE_ROWS       the rest of a sliver that is not full is zeros
 *
 * An element of C is one sum in the order of k, by the same instructions wherever in a tile it
 * stands and whatever the tile's size, so that it does not matter how C is cut. */

#if defined(__AVX512F__) || defined(__aarch64__)
#define WG__MANY_REGISTERS
enum { TILE_ROWS = 14 }; /* of 32 registers: 28 sums, 2 vectors of B, an element of A */
#else
enum { TILE_ROWS = 6 }; /* of 16 registers: 12 sums */
#endif
enum { TILE_VECTORS = 2, TILE_COLUMNS = TILE_VECTORS * LANES };

/* ---- A tile ---- */

/* What becomes of a sum: alpha sum, plus beta C or a row. */
typedef struct tile_ends {
    real alpha, beta;
    const real *row; /* NULL: none */
} tile_ends;

static inline void store_sum(vector sum, const tile_ends *ends, int64_t column, int64_t count,
                             real *to) {
    vector y = ends->alpha * sum;
    if (count >= LANES) {
        if (ends->row)
            y += load(ends->row + column);
        else if (ends->beta != 0)
            y += ends->beta * load(to);
        store(to, y);
        return;
    }
    if (ends->row)
        y += load_part(ends->row + column, count, 0);
    else if (ends->beta != 0)
        y += ends->beta * load_part(to, count, 0);
    store_part(to, y, count);
}

static __attribute__((noinline)) void finish_tile(int rows, int vectors, int64_t columns,
                                                  const vector *sums, const tile_ends *ends,
                                                  real *c, int64_t c_row) {
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            store_sum(sums[r * vectors + v], ends, v * LANES, columns - v * LANES,
                      c + r * c_row + v * LANES);
}

static inline __attribute__((always_inline)) void make_tile(const int rows, const int vectors,
                                                            int64_t columns, int64_t k,
                                                            const real *a, const real *b,
                                                            const tile_ends *ends, real *c,
                                                            int64_t c_row) {
    vector sum[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vector){0};
    for (int r = 0; r < rows; r++) { /* C is wanted at the end */
        __builtin_prefetch(c + r * c_row, 1);
        __builtin_prefetch(c + r * c_row + (vectors - 1) * LANES + LANES - 1, 1);
    }
    for (int64_t l = 0; l < k; l++, a += TILE_ROWS, b += TILE_COLUMNS) {
        vector of_b[TILE_VECTORS];
        for (int v = 0; v < vectors; v++)
            of_b[v] = load(b + v * LANES);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                sum[r][v] += a[r] * of_b[v];
    }
    /* Whole tiles straight from the registers; others, and with a row, by way of memory. */
    if (columns == vectors * LANES && !ends->row) {
        const bool adds = ends->beta != 0;
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) {
                real *to = c + r * c_row + v * LANES;
                const vector y = ends->alpha * sum[r][v];
                store(to, adds ? y + ends->beta * load(to) : y);
            }
        return;
    }
    vector kept[TILE_ROWS * TILE_VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            kept[r * vectors + v] = sum[r][v];
    finish_tile(rows, vectors, columns, kept, ends, c, c_row);
}

/* Sums of a known number of rows and vectors stay in registers. */
#define WG__TILE(rows)                                                                             \
    static __attribute__((noinline)) void make_tile_##rows(                                        \
        int64_t columns, int64_t k, const real *a, const real *b, const tile_ends *ends, real *c,  \
        int64_t c_row) {                                                                           \
        if (columns > LANES)                                                                       \
            make_tile(rows, 2, columns, k, a, b, ends, c, c_row);                                  \
        else                                                                                       \
            make_tile(rows, 1, columns, k, a, b, ends, c, c_row);                                  \
    }

typedef void (*tile_maker)(int64_t columns, int64_t k, const real *a, const real *b,
                           const tile_ends *ends, real *c, int64_t c_row);

WG__TILE(1)
WG__TILE(2)
WG__TILE(3)
WG__TILE(4)
WG__TILE(5)
WG__TILE(6)
#ifdef WG__MANY_REGISTERS
WG__TILE(7)
WG__TILE(8)
WG__TILE(9)
WG__TILE(10)
WG__TILE(11)
WG__TILE(12)
WG__TILE(13)
WG__TILE(14)
#endif

static const tile_maker tile_makers[TILE_ROWS] = {
    make_tile_1,  make_tile_2,  make_tile_3, make_tile_4,  make_tile_5,  make_tile_6,
#ifdef WG__MANY_REGISTERS
    make_tile_7,  make_tile_8,  make_tile_9, make_tile_10, make_tile_11, make_tile_12,
    make_tile_13, make_tile_14,
#endif
};

static void product_tile(int64_t rows, int64_t columns, int64_t k, const void *a, const void *b,
                         double alpha, double beta, const void *row, void *c, int64_t c_row) {
    const tile_ends ends = {(real)alpha, (real)beta, row};
    tile_makers[rows - 1](columns, k, a, b, &ends, c, c_row);
}

/* ---- Packing ---- */

/* The elements of two vectors of which the place number has bit d clear, or set. */
#if WG__LANES == 16
#define WG__EVENS1(a, b)                                                                           \
    __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
#define WG__ODDS1(a, b)                                                                            \
    __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
#define WG__EVENS2(a, b)                                                                           \
    __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define WG__ODDS2(a, b)                                                                            \
    __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define WG__EVENS4(a, b)                                                                           \
    __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
#define WG__ODDS4(a, b)                                                                            \
    __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
#define WG__EVENS8(a, b)                                                                           \
    __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define WG__ODDS8(a, b)                                                                            \
    __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#elif WG__LANES == 8
#define WG__EVENS1(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define WG__ODDS1(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define WG__EVENS2(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define WG__ODDS2(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define WG__EVENS4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define WG__ODDS4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#elif WG__LANES == 4
#define WG__EVENS1(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define WG__ODDS1(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#define WG__EVENS2(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define WG__ODDS2(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#elif WG__LANES == 2
#define WG__EVENS1(a, b) __builtin_shufflevector(a, b, 0, 2)
#define WG__ODDS1(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

/* Swaps blocks of d x d across the diagonal of each block of 2d x 2d. */
#define WG__SWAP_BLOCKS(d, evens, odds)                                                            \
    for (int i = 0; i < LANES; i++)                                                                \
        if (!(i & d)) {                                                                            \
            vector top = x[i], bottom = x[i + d];                                                  \
            x[i] = evens(top, bottom);                                                             \
            x[i + d] = odds(top, bottom);                                                          \
        }

static inline __attribute__((always_inline)) void transpose_block(vector *x) {
#if WG__LANES >= 16
    WG__SWAP_BLOCKS(8, WG__EVENS8, WG__ODDS8)
#endif
#if WG__LANES >= 8
    WG__SWAP_BLOCKS(4, WG__EVENS4, WG__ODDS4)
#endif
#if WG__LANES >= 4
    WG__SWAP_BLOCKS(2, WG__EVENS2, WG__ODDS2)
#endif
#if WG__LANES >= 2
    WG__SWAP_BLOCKS(1, WG__EVENS1, WG__ODDS1)
#endif
    (void)x;
}

/* to[l width + i] = x[i stride + l] of LANES rows i, the first `count` of which exist; the others
 * are zeros. */
static inline __attribute__((always_inline)) void pack_rows(const int64_t width, int64_t count,
                                                            int64_t k, const real *x,
                                                            int64_t stride, real *to) {
    int64_t l = 0;
    for (; l + LANES <= k; l += LANES) {
        vector block[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            block[i] = i < count ? load(x + i * stride + l) : (vector){0};
        transpose_block(block);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            store(to + (l + i) * width, block[i]);
    }
    for (; l < k; l++)
        for (int64_t i = 0; i < LANES; i++)
            to[l * width + i] = i < count ? x[i * stride + l] : 0;
}

static inline __attribute__((always_inline)) void pack_columns(const int64_t width, int64_t k,
                                                               const real *x, int64_t k_stride,
                                                               real *to) {
    for (int64_t l = 0; l < k; l++, x += k_stride, to += width)
        memcpy(to, x, (size_t)width * sizeof(real));
}

static inline __attribute__((always_inline)) void pack(const int64_t width, int64_t count,
                                                       int64_t k, const real *x, int64_t stride,
                                                       int64_t k_stride, real *to) {
    /* The last rows first: where they are no whole vector, what they write beyond is written anew.
     */
    if (k_stride == 1 && stride != 1) {
        for (int64_t i = (width - 1) / LANES * LANES; i >= 0; i -= LANES)
            pack_rows(width, count - i, k, x + i * stride, stride, to + i);
    } else if (stride == 1 && count == width) {
        pack_columns(width, k, x, k_stride, to);
    } else {
        for (int64_t l = 0; l < k; l++, to += width)
            for (int64_t i = 0; i < width; i++)
                to[i] = i < count ? x[i * stride + l * k_stride] : 0;
    }
}

static void pack_tile_rows(int64_t count, int64_t k, const void *x, int64_t stride,
                           int64_t k_stride, void *to) {
    pack(TILE_ROWS, count, k, x, stride, k_stride, to);
}

static void pack_tile_columns(int64_t count, int64_t k, const void *x, int64_t stride,
                              int64_t k_stride, void *to) {
    pack(TILE_COLUMNS, count, k, x, stride, k_stride, to);
}
