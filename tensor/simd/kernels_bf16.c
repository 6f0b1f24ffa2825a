/* The kernels on pairs of bf16 for the instruction set that this file is compiled for.
 *
 *     a panel: an output in each column     a tile: a row of x in each column
 *     +----+----+---- ... +----+            +----+----+ ...
 *     |0, 1|0, 1|         |0, 1|            |0, 1|0, 1|            A cell is a pair of bf16 in one
 *     |2, 3|2, 3|         |2, 3|            |2, 3|2, 3|            32-bit word or, where x stays
 *     ...                                   ...                    f32, two words of f32.      */
#define WG__BITS 32
#include "tensor/simd/simd.h"
#include "tensor/simd/vector.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

/* As many rows as leave registers for a row of a panel and a word of x. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define WG__PAIR_ROWS 12
#elif defined(__AVX2__)
#define WG__PAIR_ROWS 6
#elif defined(WG__SCALAR)
#define WG__PAIR_ROWS 1
#else
#define WG__PAIR_ROWS 4
#endif

enum { WORD = 4, VECTORS = 2, COLUMNS = VECTORS * LANES };

/* ---- Words ---- */

#if defined(__AVX512BF16__)
enum { PAIR_WORDS = 1 };

/* LANES words of x, rounded to bf16; NaN stays NaN. */
static inline vector words_of(const float *x) {
    return (vector)_mm512_cvtne2ps_pbh((__m512)load(x + LANES), (__m512)load(x));
}

/* The words of LANES pairs of the weight. */
static inline void split(vector pairs, vector *words) {
    words[0] = pairs;
}
#else
enum { PAIR_WORDS = 2 };

static inline vector words_of(const float *x) {
    return load(x);
}

static inline void split(vector pairs, vector *words) {
    words[0] = (vector)((lanes)pairs << 16);
    words[1] = (vector)((lanes)pairs & (lane)-0x10000);
}
#endif

/* ---- Rows of x ---- */

enum { STEP = LANES * 2 / PAIR_WORDS };

/* LANES words of a row, from number `at` on; zeros beyond the last number. */
static inline vector words_at(const float *x, int64_t at, int64_t n) {
    if (n - at >= STEP)
        return words_of(x + at);
    float rest[STEP] = {0};
    memcpy(rest, x + at, (size_t)(n - at) * sizeof *x);
    return words_of(rest);
}

/* Stores the first `count` of LANES words; each vector holds the same word of several rows. */
static inline void store_words(const vector *words, int64_t count, int64_t rows, int64_t row,
                               uint8_t *to, const uint8_t *end) {
    for (int64_t i = 0; i < count; i++, to += rows * WORD) {
        uint8_t *at = to + row * WORD;
        /* Lanes beyond the last row are overwritten by the next word. */
        if (rows <= LANES && end - at >= WG__VECTOR_BYTES)
            memcpy(at, &words[i], sizeof words[i]);
        else
            memcpy(at, &words[i], (size_t)(rows - row < LANES ? rows - row : LANES) * WORD);
    }
}

static void lay_rows(int64_t rows, int64_t n, const float *x, int64_t x_stride, void *tile) {
    const int64_t count = (n + 1) / 2 * PAIR_WORDS;
    uint8_t *end = (uint8_t *)tile + count * rows * WORD;
    for (int64_t word = 0, at = 0; word < count; word += LANES, at += STEP)
        for (int64_t row = 0; row < rows; row += LANES) {
            vector words[LANES] = {{0}};
            for (int64_t i = 0; i < LANES && row + i < rows; i++)
                words[i] = words_at(x + (row + i) * x_stride, at, n);
            transpose_vectors(words);
            store_words(words, count - word < LANES ? count - word : LANES, rows, row,
                        (uint8_t *)tile + word * rows * WORD, end);
        }
}

/* ---- Panels ---- */

/* LANES pairs of a row. The second number of a pair is in the upper half of its word, as in little
 * endian memory. */
static inline vector load_pairs(const uint8_t *row) {
    lanes pairs;
    memcpy(&pairs, row, sizeof pairs);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (int i = 0; i < LANES; i++)
        pairs[i] = (lane)__builtin_bswap32((uint32_t)pairs[i]);
#endif
    return (vector)pairs;
}

/* Stores pairs[i], the pair i of LANES outputs, in row i of a panel. */
static inline void store_columns(const vector *pairs, uint8_t *to) {
    WG__UNROLL for (int i = 0; i < LANES; i++) {
        vector words[PAIR_WORDS];
        split(pairs[i], words);
        for (int w = 0; w < PAIR_WORDS; w++, to += COLUMNS * WORD)
            memcpy(to, &words[w], sizeof words[w]);
    }
}

/* Packs LANES pairs of LANES rows of the weight. */
static inline void lay_whole(const uint8_t *weight, int64_t stride, uint8_t *to) {
    vector pairs[LANES];
    WG__UNROLL for (int i = 0; i < LANES; i++) pairs[i] = load_pairs(weight + i * stride);
    transpose_vectors(pairs);
    store_columns(pairs, to);
}

/* The same with fewer rows or fewer bytes; zeros take the place of the missing ones. */
static void lay_part(int64_t outputs, int64_t bytes, const uint8_t *weight, int64_t stride,
                     uint8_t *to) {
    uint8_t rows[LANES][WG__VECTOR_BYTES] = {{0}};
    for (int64_t i = 0; i < LANES && i < outputs; i++)
        memcpy(rows[i], weight + i * stride,
               (size_t)(bytes < WG__VECTOR_BYTES ? bytes : WG__VECTOR_BYTES));
    lay_whole(rows[0], WG__VECTOR_BYTES, to);
}

static void lay_panel(int64_t outputs, int64_t n, const void *weight, int64_t weight_stride,
                      void *panel) {
    for (int64_t v = 0; v < VECTORS; v++, outputs -= LANES) {
        const uint8_t *rows = (const uint8_t *)weight + v * LANES * weight_stride;
        uint8_t *to = (uint8_t *)panel + v * WG__VECTOR_BYTES;
        for (int64_t bytes = 2 * n; bytes > 0; bytes -= WG__VECTOR_BYTES) {
            if (outputs >= LANES && bytes >= WG__VECTOR_BYTES)
                lay_whole(rows, weight_stride, to);
            else
                lay_part(outputs, bytes, rows, weight_stride, to);
            rows += WG__VECTOR_BYTES;
            to += LANES * PAIR_WORDS * COLUMNS * WORD;
        }
    }
}

/* ---- Products ---- */

static inline vector load_words(const uint8_t *from) {
    vector words;
    memcpy(&words, from, sizeof words);
    return words;
}

/* Adds a word of x times the same word of each output to the outputs' sums. */
static inline vector add_product(vector sum, const uint8_t *x, vector column) {
#if defined(__AVX512BF16__)
    lane pair;
    memcpy(&pair, x, sizeof pair);
    return (vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(pair),
                                    (__m512bh)column);
#else
    real number;
    memcpy(&number, x, sizeof number);
    return sum + number * column;
#endif
}

WG__OF_KNOWN void multiply_rows(const int rows, const wg__pair_product *p) {
    vector totals[WG__PAIR_ROWS][VECTORS];
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < VECTORS; v++)
        totals[r][v] = load(p->from + r * p->from_row + v * LANES);
    /* The results are written at the end, so there is time to fetch their lines from memory. */
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < VECTORS; v++)
        __builtin_prefetch(p->to + r * p->to_row + v * LANES, 1);
    const uint8_t *panel = p->panel, *tile = p->tile;
    for (int64_t i = 0; i < p->pairs * PAIR_WORDS; i++) {
        vector columns[VECTORS];
        WG__UNROLL for (int v = 0; v < VECTORS; v++) columns[v] =
            load_words(panel + v * WG__VECTOR_BYTES);
        WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < VECTORS; v++)
            totals[r][v] = add_product(totals[r][v], tile + r * WORD, columns[v]);
        panel += COLUMNS * WORD;
        tile += rows * WORD;
    }
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < VECTORS; v++)
        store(p->to + r * p->to_row + v * LANES, totals[r][v]);
}

#define OF_ROWS(rows) multiply_rows(rows, p)

static void multiply(const wg__pair_product *p) {
    switch (p->rows) {
        WG__CASES(WG__PAIR_ROWS, OF_ROWS)
    default:
        return;
    }
}

/* ---- The table ---- */

#define WG__TABLE WG__JOIN(wg__bf16_kernels_, WG_SIMD)

extern const wg__bf16_kernels WG__TABLE;

const wg__bf16_kernels WG__TABLE = {
    .name = WG__TEXT(WG_SIMD),
    .rounds_x = PAIR_WORDS == 1,
    .tile_rows = WG__PAIR_ROWS,
    .columns = COLUMNS,
    .pair_bytes = PAIR_WORDS * WORD,
    .lay_rows = lay_rows,
    .lay_panel = lay_panel,
    .multiply = multiply,
};
