/* The kernels on pairs of bf16 for the instruction set that this file is compiled for.
 *
 *     a panel: an output in each column     a tile: a row of x in each column
 *     +----+----+---- ... +----+            +----+----+ ...
 *     |0, 1|0, 1|         |0, 1|            |0, 1|0, 1|            A cell is a pair of bf16 in one
 *     |2, 3|2, 3|         |2, 3|            |2, 3|2, 3|            32-bit word or, where x stays
 *     ...                                   ...                    f32, two words of f32.
 *
 * The BFDOT and BFMMLA of arm64 are not used: they round a sum to odd and take small numbers for 0,
 * or, by FEAT_EBF16, round once for a pair. gemm.h rounds once for each product. */
#define WG__BITS 32
#include "tensor/internal.h"
#include "tensor/simd/simd.h"
#include "tensor/simd/vector.h"

/* WG__TILES names the header with the intrinsics of tiles, for products by tiles (tiles.h). */
#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif
#ifdef WG__TILES
#include WG__TILES
#endif

/* The most rows that leave registers for a row of a panel and a word of x. */
#if defined(WG__TILES)
#define WG__PAIR_ROWS 32
#elif defined(__AVX512F__) || defined(__aarch64__)
#define WG__PAIR_ROWS 12
#elif defined(__AVX2__)
#define WG__PAIR_ROWS 6
#elif defined(WG__SCALAR)
#define WG__PAIR_ROWS 1
#else
#define WG__PAIR_ROWS 4
#endif

#ifdef WG__TILES
enum { WORD = 4, COLUMNS = 32, VECTORS = COLUMNS / LANES, BLOCK_PAIRS = 16 };
#else
enum { WORD = 4, VECTORS = 2, COLUMNS = VECTORS * LANES, BLOCK_PAIRS = 1 };
#endif

/* ---- Words ---- */

static inline vector load_words(const uint8_t *from) {
    vector words;
    memcpy(&words, from, sizeof words);
    return words;
}

/* A word is a pair of numbers in bf16, or a number in f32. */
#if defined(__AVX512BF16__) || defined(WG__TILES)
#define WG__WORDS_ARE_PAIRS
enum { PAIR_WORDS = 1 };
#else
enum { PAIR_WORDS = 2 };
#endif

#if defined(WG__TILES) && !defined(__AVX512BF16__)
/* A word of two numbers, rounded to bf16. */
static inline lane word_of(float low, float high) {
    return (lane)(wg__f32_to_bf16(low) | (uint32_t)wg__f32_to_bf16(high) << 16);
}
#endif

/* LANES words of x; pairs are rounded to bf16, where NaN stays NaN. */
static inline vector words_of(const float *x) {
#if defined(__AVX512BF16__)
    return (vector)_mm512_cvtne2ps_pbh((__m512)load(x + LANES), (__m512)load(x));
#elif defined(WG__TILES)
    lanes words;
    for (int i = 0; i < LANES; i++)
        words[i] = word_of(x[2 * i], x[2 * i + 1]);
    return (vector)words;
#else
    return load(x);
#endif
}

/* ---- Rows of x ---- */

enum { STEP = LANES * 2 / PAIR_WORDS };

/* The words of k numbers, in whole blocks of pairs. */
static inline int64_t words_in(int64_t k) {
    return (k + 2 * BLOCK_PAIRS - 1) / (2 * BLOCK_PAIRS) * BLOCK_PAIRS * PAIR_WORDS;
}

/* LANES words of a row, from number `at` on; zeros beyond the last number. */
static inline vector words_at(const float *x, int64_t at, int64_t n) {
    if (n - at >= STEP)
        return words_of(x + at);
    float rest[STEP] = {0};
    memcpy(rest, x + at, (size_t)(n - at) * sizeof *x);
    return words_of(rest);
}

#ifdef WG__TILES
/* Block after block, with the 16 pairs of row 0, of row 1... in each. */
static void pack_tile(int64_t rows, int64_t n, const float *x, int64_t x_stride, void *tile) {
    uint8_t *to = tile;
    for (int64_t at = 0; at < n; at += 2 * BLOCK_PAIRS)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t word = 0; word < BLOCK_PAIRS; word += LANES, to += WG__VECTOR_BYTES) {
                const int64_t l = at + 2 * word;
                const vector words = l < n ? words_at(x + row * x_stride, l, n) : (vector){0};
                memcpy(to, &words, sizeof words);
            }
}
#else
static void pack_tile(int64_t rows, int64_t n, const float *x, int64_t x_stride, void *tile) {
    const int64_t count = (n + 1) / 2 * PAIR_WORDS;
    uint8_t *end = (uint8_t *)tile + count * rows * WORD;
    for (int64_t word = 0, at = 0; word < count; word += LANES, at += STEP)
        for (int64_t row = 0; row < rows; row += LANES) {
            vector words[LANES] = {{0}};
            for (int64_t i = 0; i < LANES && row + i < rows; i++)
                words[i] = words_at(x + (row + i) * x_stride, at, n);
            transpose_vectors(words); /* each vector has the same word of several rows */
            for (int64_t i = 0; i < LANES && word + i < count; i++) {
                uint8_t *to = (uint8_t *)tile + ((word + i) * rows + row) * WORD;
                /* Lanes beyond the last row are overwritten by the next word. */
                if (rows <= LANES && end - to >= WG__VECTOR_BYTES)
                    memcpy(to, &words[i], sizeof words[i]);
                else
                    memcpy(to, &words[i], (size_t)(rows - row < LANES ? rows - row : LANES) * WORD);
            }
        }
}
#endif

/* ---- Panels ---- */

/* Packs LANES pairs of LANES rows of the weight: pair i of the rows becomes row i of a panel. The
 * second number of a pair is in the upper half of its word. */
static inline void pack_pairs(const uint8_t *weight, int64_t stride, uint8_t *to) {
    vector pairs[LANES];
    WG__UNROLL for (int i = 0; i < LANES; i++) pairs[i] = load_words(weight + i * stride);
    transpose_vectors(pairs);
    WG__UNROLL for (int i = 0; i < LANES; i++) {
#ifdef WG__WORDS_ARE_PAIRS
        const vector words[] = {pairs[i]};
#else
        const vector words[] = {(vector)((lanes)pairs[i] << 16),
                                (vector)((lanes)pairs[i] & (lane)-0x10000)};
#endif
        for (int w = 0; w < PAIR_WORDS; w++, to += COLUMNS * WORD)
            memcpy(to, &words[w], sizeof words[w]);
    }
}

static void pack_panel(int64_t outputs, int64_t n, const void *weight, int64_t weight_stride,
                       void *panel) {
    for (int64_t v = 0; v < VECTORS; v++, outputs -= LANES) {
        const uint8_t *rows = (const uint8_t *)weight + v * LANES * weight_stride;
        uint8_t *to = (uint8_t *)panel + v * WG__VECTOR_BYTES;
        for (int64_t bytes = 2 * n; bytes > 0; bytes -= WG__VECTOR_BYTES) {
            if (outputs >= LANES && bytes >= WG__VECTOR_BYTES) {
                pack_pairs(rows, weight_stride, to);
            } else { /* zeros take the place of missing rows and bytes */
                uint8_t some[LANES][WG__VECTOR_BYTES] = {{0}};
                for (int64_t i = 0; i < LANES && i < outputs; i++)
                    memcpy(some[i], rows + i * weight_stride,
                           (size_t)(bytes < WG__VECTOR_BYTES ? bytes : WG__VECTOR_BYTES));
                pack_pairs(some[0], WG__VECTOR_BYTES, to);
            }
            rows += WG__VECTOR_BYTES;
            to += LANES * PAIR_WORDS * COLUMNS * WORD;
        }
        for (int64_t row = (n + 2 * LANES - 1) / (2 * LANES) * LANES * PAIR_WORDS;
             row < words_in(n); row++, to += COLUMNS * WORD)
            memset(to, 0, WG__VECTOR_BYTES);
    }
}

/* ---- Products ---- */

#ifndef WG__TILES

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

WG__ALWAYS_INLINE void multiply_rows(const int rows, const wg__pair_product *p) {
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

static void multiply(const wg__pair_product *p) {
#define OF(rows) multiply_rows(rows, p)
    switch (p->rows) { WG__CASES(WG__PAIR_ROWS, OF) }
#undef OF
}
#endif

/* ---- Products of two operands that are rounded to bf16: packing ---- */

/* LANES words of f32 numbers, rounded to bf16; where a word is a single number, it stays f32. */
static inline vector rounded_words(const float *x) {
#ifdef WG__WORDS_ARE_PAIRS
    return words_of(x);
#else
    return rounded_to_bf16(load(x));
#endif
}

/* LANES words of bf16 numbers. */
static inline vector narrow_words(const uint16_t *x) {
#ifdef WG__WORDS_ARE_PAIRS
    return load_words((const uint8_t *)x);
#else
    lane_bits wide = {0};
    for (int i = 0; i < LANES; i++)
        wide[i] = (uint32_t)x[i] << 16;
    return (vector)wide;
#endif
}

#ifdef WG__WORDS_ARE_PAIRS
/* Words with the numbers of x, rounded to bf16, in the lower halves, and y in the upper halves. */
static inline vector join_rows(vector x, vector y) {
#if defined(__AVX512BF16__)
    const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh((__m512)y, (__m512)x);
    static const uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                       21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                       11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return (vector)_mm512_permutexvar_epi16(_mm512_loadu_si512(order), halves);
#else
    lanes words;
    for (int i = 0; i < LANES; i++)
        words[i] = word_of(x[i], y[i]);
    return (vector)words;
#endif
}

/* The same of bf16 numbers. */
static inline vector join_narrow_rows(const uint16_t *x, const uint16_t *y) {
#if defined(__AVX512BF16__)
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)x));
    const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)y));
    return (vector)_mm512_or_si512(low, _mm512_slli_epi32(high, 16));
#else
    lanes words;
    for (int i = 0; i < LANES; i++)
        words[i] = (lane)(x[i] | (uint32_t)y[i] << 16);
    return (vector)words;
#endif
}
#endif

/* LANES words of vector i of the operand, from number l on; zeros beyond the last of k. */
static inline vector words_of_operand(const wg__bf16_operand *x, int64_t i, int64_t l, int64_t k) {
    if (k - l >= STEP && x->k_stride == 1) {
        const int64_t at = i * x->stride + l;
        return x->is_bf16 ? narrow_words((const uint16_t *)x->data + at)
                          : rounded_words((const float *)x->data + at);
    }
    float rest[STEP] = {0};
    for (int64_t n = 0; n < STEP && l + n < k; n++) {
        const int64_t at = i * x->stride + (l + n) * x->k_stride;
        rest[n] = x->is_bf16 ? wg__bf16_to_f32(((const uint16_t *)x->data)[at])
                             : ((const float *)x->data)[at];
    }
    return rounded_words(rest);
}

/* Vectors whose numbers are adjacent: each becomes a row of words. */
static void pack_along(int64_t count, int64_t k, const wg__bf16_operand *x, int64_t step,
                       float *to) {
    const int64_t numbers = words_in(k);
    for (int64_t i = 0; i < count; i++)
        for (int64_t word = 0, l = 0; word < numbers; word += LANES, l += STEP) {
            const vector v = words_of_operand(x, i, l, k);
            const int64_t left = numbers - word;
            memcpy(to + i * step + word, &v, (size_t)(left < LANES ? left : LANES) * WORD);
        }
}

/* A row of words for each number or pair, transposed from vectors of any stride. */
static void pack_transposed(int64_t count, int64_t k, const wg__bf16_operand *x, int64_t step,
                            float *to) {
    const int64_t rows = words_in(k);
    for (int64_t begin = 0; begin < step; begin += LANES)
        for (int64_t word = 0, l = 0; word < rows; word += LANES, l += STEP) {
            vector v[LANES];
            for (int i = 0; i < LANES; i++)
                v[i] = begin + i < count ? words_of_operand(x, begin + i, l, k) : (vector){0};
            transpose_vectors(v);
            const int64_t width = step - begin < LANES ? step - begin : LANES;
            for (int64_t w = 0; w < LANES && word + w < rows; w++)
                memcpy(to + (word + w) * step + begin, &v[w], (size_t)width * WORD);
        }
}

/* The first `count` numbers from x on, of bf16: `room` has zeros beyond them. */
static inline const uint16_t *first_narrow(int64_t count, const uint16_t *x, uint16_t *room) {
    if (count == LANES)
        return x;
    memcpy(room, x, (size_t)count * sizeof *x);
    return room;
}

/* The words of number or pair `row` of `count` vectors from vector i on, which are adjacent; zeros
 * beyond them. */
WG__ALWAYS_INLINE vector joined_words(const wg__bf16_operand *x, int64_t i, int64_t count,
                                      int64_t row, int64_t k) {
    uint16_t rooms[2][LANES] = {{0}};
#ifdef WG__WORDS_ARE_PAIRS
    if (2 * row >= k)
        return (vector){0};
    const int64_t low = 2 * row * x->k_stride + i, high = low + x->k_stride;
    const bool is_last = 2 * row + 1 == k; /* of an odd k: the pair's second number is 0 */
    if (x->is_bf16) {
        const uint16_t *numbers = x->data;
        const uint16_t *first = first_narrow(count, numbers + low, rooms[0]);
        return join_narrow_rows(first,
                                is_last ? rooms[1] : first_narrow(count, numbers + high, rooms[1]));
    }
    const float *numbers = x->data;
    return join_rows(load_first(count, numbers + low),
                     is_last ? (vector){0} : load_first(count, numbers + high));
#else
    if (row == k)
        return (vector){0};
    const int64_t at = row * x->k_stride + i;
    return x->is_bf16 ? narrow_words(first_narrow(count, (const uint16_t *)x->data + at, rooms[0]))
                      : rounded_to_bf16(load_first(count, (const float *)x->data + at));
#endif
}

/* The same from interleaved vectors. */
static void pack_adjacent(int64_t count, int64_t k, const wg__bf16_operand *x, int64_t step,
                          float *to) {
    const int64_t rows = words_in(k), whole = count / LANES * LANES;
    for (int64_t row = 0; row < rows; row++, to += step) {
        for (int64_t i = 0; i < whole; i += LANES)
            store(to + i, joined_words(x, i, LANES, row, k));
        for (int64_t i = whole; i < step; i += LANES) {
            const vector v = i < count ? joined_words(x, i, count - i, row, k) : (vector){0};
            if (step - i < LANES)
                store_part(to + i, v, step - i);
            else
                store(to + i, v);
        }
    }
}

#ifdef WG__TILES
/* Interleaved vectors become rows of words, transposed a block at a time. */
static void pack_adjacent_along(int64_t count, int64_t k, const wg__bf16_operand *x, int64_t step,
                                float *to) {
    const int64_t whole = count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int64_t word = 0; word < words_in(k); word += LANES) {
            vector v[LANES];
            for (int r = 0; r < LANES; r++)
                v[r] = joined_words(x, i, LANES, word + r, k);
            transpose_vectors(v);
            for (int r = 0; r < LANES; r++)
                memcpy(to + (i + r) * step + word, &v[r], sizeof v[r]);
        }
    wg__bf16_operand rest = *x;
    rest.data = (const char *)x->data + whole * (x->is_bf16 ? 2 : 4);
    pack_along(count - whole, k, &rest, step, to + whole * step);
}
#endif

static void pack_operand(int64_t count, int64_t k, const wg__bf16_operand *x, bool along,
                         int64_t step, void *to) {
#ifdef WG__TILES
    for (int64_t i = count; along && i % BLOCK_PAIRS; i++)
        memset((char *)to + i * step * WORD, 0, (size_t)words_in(k) * WORD);
    if (along && x->stride == 1 && x->k_stride != 1)
        pack_adjacent_along(count, k, x, step, to);
    else
#endif
        if (along)
        pack_along(count, k, x, step, to);
    else if (x->stride == 1)
        pack_adjacent(count, k, x, step, to);
    else
        pack_transposed(count, k, x, step, to);
}

/* ---- Products of two operands that are rounded to bf16: tiles ---- */

#ifdef WG__TILES
#include "tensor/simd/tiles.h"
#else
WG__ALWAYS_INLINE void rounded_tile(const int rows, const int vectors, const bool along,
                                    const wg__panel_product *p, const real *a, const real *b,
                                    const real *d, real *c) {
    const int64_t a_row = along ? p->a_row : 1, a_column = along ? 1 : p->a_column;
    vector sums[WG__PAIR_ROWS][VECTORS];
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < vectors; v++)
        sums[r][v] = d ? load(d + r * p->d_row + v * LANES) : (vector){0};
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < vectors; v++)
        __builtin_prefetch(c + r * p->c_row + v * LANES, 1);
    for (int64_t l = 0; l < p->k; l++) {
        /* Of a pair in two words, the second is added first, as AVX512-BF16 does. */
        WG__UNROLL for (int w = PAIR_WORDS - 1; w >= 0; w--) {
            vector columns[VECTORS];
            WG__UNROLL for (int v = 0; v < vectors; v++) columns[v] =
                load(b + w * p->b_row + v * LANES);
            WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < vectors; v++)
                sums[r][v] = add_product(
                    sums[r][v], (const uint8_t *)(a + r * a_row + w * a_column), columns[v]);
        }
        a += PAIR_WORDS * a_column;
        b += PAIR_WORDS * p->b_row;
    }
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < vectors; v++)
        store(c + r * p->c_row + v * LANES, sums[r][v]);
}

/* Computes tiles of `rows` rows while at least `rows` rows are left. */
#define ROUNDED_TILES(rows)                                                                        \
    for (; i + (rows) <= p->m; i += (rows))                                                        \
        rounded_tile(rows, vectors, along, p, (const real *)p->a + i * (along ? p->a_row : 1), b,  \
                     d ? d + i * p->d_row : NULL, c + i * p->c_row);

WG__ALWAYS_INLINE void rounded_column(const int vectors, const bool along,
                                      const wg__panel_product *p, const real *b, const real *d,
                                      real *c) {
    int64_t i = 0;
    ROUNDED_TILES(WG__PAIR_ROWS)
#if WG__PAIR_ROWS > 4
    ROUNDED_TILES(4)
#endif
#if WG__PAIR_ROWS > 1
    ROUNDED_TILES(2)
    ROUNDED_TILES(1)
#endif
}

static void rounded_product(const wg__panel_product *p) {
    const bool along = p->a_column == 1;
    for (int64_t j = 0; j < p->n; j += COLUMNS) {
        const real *b = (const real *)p->b + j / COLUMNS * p->b_panel;
        const real *d = p->d ? (const real *)p->d + j : NULL;
        real *c = (real *)p->c + j;
        if (p->n - j <= LANES)
            (along ? rounded_column(1, true, p, b, d, c) : rounded_column(1, false, p, b, d, c));
        else
            (along ? rounded_column(VECTORS, true, p, b, d, c)
                   : rounded_column(VECTORS, false, p, b, d, c));
    }
}
#endif

#define WG__TABLE WG__JOIN(wg__bf16_kernels_, WG_SIMD)

extern const wg__bf16_kernels WG__TABLE;

const wg__bf16_kernels WG__TABLE = {
    .name = WG__TEXT(WG_SIMD),
    .rounds_x = PAIR_WORDS == 1,
    .tile_rows = WG__PAIR_ROWS,
    .columns = COLUMNS,
    .pair_bytes = PAIR_WORDS * WORD,
    .block_pairs = BLOCK_PAIRS,
    .pack_tile = pack_tile,
    .pack_panel = pack_panel,
    .multiply = multiply,
    .pack_operand = pack_operand,
    .rounded_product = rounded_product,
#ifdef WG__TILES
    .packs_along = true,
    .begin = configure_tiles,
    .end = release_tiles,
#endif
};
