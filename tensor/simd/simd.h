/* Vector kernels, compiled once for each instruction set; the CPU's are chosen at run time.
 *
 *     kernels_f32.c, kernels_f64.c   compiled for base, x86-64-v3 and x86-64-v4, one table each
 *       `-- vector.h                 the vectors of that instruction set, and SLEEF's functions
 *       `-- functions.h ...          the kernels, written once for all instruction sets
 *     kernels_bf16.c, kernels_i8.c   the same for weights in bf16 and in blocks of integers
 *     simd.c                         chooses the tables
 *
 * Kernels work on contiguous arrays of the table's dtype, f32 or f64; pointers need no alignment.
 * They run on the calling thread. The result of an element (of a row, in a row kernel) depends on
 * its value alone, never on its place in the array: the remainder of an array is padded and uses
 * the same vector code. So results have the same bits however the work is split. */
#ifndef WG_TENSOR_SIMD_SIMD_H
#define WG_TENSOR_SIMD_SIMD_H

#include "tensor/ops.h"

#include <stdbool.h>
#include <stdint.h>

/* For functions that callers inline with constant arguments. */
#define WG__ALWAYS_INLINE static inline __attribute__((always_inline))

/* The results of an elementwise kernel on arrays x0, x1... of n elements each. y0 and y1 may each
 * be an input, but not the same one. */
typedef enum wg__map_kind {
    WG__VALUES,     /* y0 = f(x0) */
    WG__SLOPES,     /* y0 = x1 f'(x0), or x0 is y where its op saves outputs (functions.def) */
    WG__PAIRS,      /* y0 = f(x0, x1) */
    WG__GATE_SLOPES /* of y = f(x0) x1 and its cotangent x2: y0 = x2 x1 f'(x0), y1 = x2 f(x0) */
} wg__map_kind;

/* A kernel of functions.def. The error of values is below 2 ulp where SLEEF computes f; of lgamma
 * near its negative zeros it is below 1e-8 (f32) or 1e-15 (f64). NaN and infinities give what C's
 * math library gives. */
typedef struct wg__map {
    wg__map_kind kind;
    int function; /* wg_elementwise_op, or a function of the enum below */
    double p, q;  /* options of the functions below */
} wg__map;

enum {
    WG__ELEMENTWISE_COUNT = WG_REGLU + 1,
    WG__POW,        /* p: the exponent */
    WG__ROOT,       /* C's pow(x, 0.5): unlike the square root, inf for -inf and 0 for -0 */
    WG__LEAKY_RELU, /* p: the slope below 0 */
    WG__ELU,        /* p: alpha */
    WG__SOFTPLUS,   /* p: beta, q: the threshold */
    WG__POLYGAMMA,  /* p: the order. Of f64 alone, as are WG_DIGAMMA and the slopes below */
    WG__BCE,        /* cross entropy of logits and targets, in the places of gate and value */

    /* Exact to 1e-8: the derivatives of gamma samples b of concentrations a, by a series for b
     * below a + 2 + sqrt(a), by a continued fraction from there on. */
    WG__GAMMA_SLOPE_SERIES,
    WG__GAMMA_SLOPE_FRACTION
};

static inline int wg__map_inputs(wg__map_kind kind) {
    return kind == WG__VALUES ? 1 : kind == WG__GATE_SLOPES ? 3 : 2;
}

#define WG__MAP_NUMBER(KIND, FUNCTION) ((int)(KIND) << 8 | (int)(FUNCTION))

/* The random words in a group. Element i of a draw uses word i % 64 of group i / 64, which is word
 * (i % 64) / 16 of Philox block 16 (i / 64) + i % 16. */
#define WG__RANDOM_GROUP 64

/* y = alpha x A^T + beta y. A row of A is read once for up to WG__ROWS_AT_ONCE rows of x. With beta
 * 0, y is not read. Strides are in elements. */
#define WG__ROWS_AT_ONCE 4
typedef struct wg__row_products {
    const void *a, *x;
    int64_t n; /* elements in a row of A and of x */
    int64_t a_stride, x_rows, x_stride;
    double alpha, beta;
    void *y;
    int64_t y_stride, y_step; /* from row to row, and from element to element */
} wg__row_products;

/* y = x W^T + bias with a quantized W (quantize.h). */
typedef struct wg__quantized_product {
    const char *weight; /* rows of whole blocks */
    int64_t weight_stride /* in bytes */, outputs /* rows */, n /* numbers in a row */;
    const float *x, *bias; /* bias NULL: 0 */
    int64_t x_rows, x_stride;
    float *y;
    int64_t y_stride;
} wg__quantized_product;

/* y = (x - center) scale + shift + (g - g_center) share; y may be x or g. The coefficients are
 * arrays with an element for each of x, or a single element for all. A NULL center, shift or
 * g_center means zeros, a NULL g omits its term. */
typedef struct wg__affine_row {
    const void *x, *g;
    const void *center, *scale, *shift, *g_center, *share;
    void *y;
} wg__affine_row;

/* C (m, n) = alpha A (m, k) B (k, n) + D. B is packed by pack_columns or pack_rows into panels that
 * are WG__PANEL_VECTORS vectors wide and b_panel elements apart. Rows of C and D have room for
 * whole vectors: the kernel writes and reads them beyond n. D may be C. */
#define WG__PANEL_VECTORS 2
typedef struct wg__panel_product {
    int64_t m, n, k;
    double alpha;
    const void *a;
    int64_t a_row, a_column;
    const void *b;
    int64_t b_panel, b_row;
    const void *d; /* NULL: zeros */
    int64_t d_row;
    void *c;
    int64_t c_row;
} wg__panel_product;

/* Up to WG__HEADS_AT_ONCE heads, each with a matrix and a vector. */
#define WG__HEADS_AT_ONCE 4
typedef struct wg__head_products {
    int64_t rows, width, row_stride; /* of each matrix */
    const void *a[WG__HEADS_AT_ONCE], *vector[WG__HEADS_AT_ONCE];
    double scale;
    void *y[WG__HEADS_AT_ONCE];
} wg__head_products;

/* A distance from the differences of coordinates: the sum of their magnitudes, squares or powers;
 * the largest magnitude; the number of differences that are not 0. */
typedef enum wg__distance {
    WG__DISTANCE_SUM,
    WG__DISTANCE_SQUARES,
    WG__DISTANCE_POWERS,
    WG__DISTANCE_MAX,
    WG__DISTANCE_COUNT
} wg__distance;

/* ---- Fourier transforms (fft.h) ---- */

enum { WG__FFT_MOST_RADIX = 31, WG__FFT_MOST_PASSES = 64 };

/* How lines of n elements are transformed. Tables hold pairs of reals of the kernels' dtype. */
typedef struct wg__fft_plan {
    int64_t n;    /* of the complex transform */
    int64_t real; /* the size of a real one: n, or 2 n if there are `halves` */
    int passes;
    int radix[WG__FFT_MOST_PASSES]; /* from 2 to WG__FFT_MOST_RADIX; their product is n */
    const void *twiddles;           /* e^(-2 pi i k / n) is pair k `step` */
    int64_t step;
    const void *halves; /* e^(-2 pi i k / real) for k up to n; NULL: not by halves */

    /* For an n with a larger prime factor: a plan of 2 n - 1 elements or more, n pairs of the
     * chirp, and the transform of its conjugate, divided by its size. NULL without. */
    const struct wg__fft_plan *convolution;
    const void *chirp, *spectrum;
} wg__fft_plan;

/* Where lines lie, in reals: line (i, j) begins at data[i outer + j line], its elements are `step`
 * apart, and the imaginary part is `imaginary` behind the real one; 0 if there is none. A line has
 * `count` elements: missing elements of an operand are 0, and superfluous ones are not read. */
typedef struct wg__fft_side {
    void *data;
    int64_t outer, line, step, imaginary;
    int64_t count;
} wg__fft_side;

typedef enum wg__fft_kind {
    WG__FFT_FORWARD,
    WG__FFT_INVERSE,
    WG__FFT_REAL,     /* of real elements: if by halves, a pair of them is an element */
    WG__FFT_HERMITIAN /* to real elements, from the first half of a symmetric spectrum */
} wg__fft_kind;

typedef struct wg__fft {
    const wg__fft_plan *plan;
    wg__fft_kind kind;
    int64_t inner; /* lines (i, j) with j < inner; the lines of a group have one i */
    wg__fft_side from, to;
    double scale;
    int64_t room; /* elements of a line that a buffer needs */
} wg__fft;

/* Functions of a row of n elements, unless said otherwise. */
typedef struct wg__simd_rows {
    /* The largest element (-inf if the row is empty, NaN if it has a NaN); sum e^(x - shift);
     * y = scale e^(x - shift), where y may be x; softmax, zeros for a row of -inf, where y may be
     * x. */
    double (*max)(int64_t n, const void *x);
    double (*sum_exp)(int64_t n, const void *x, double shift);
    void (*exp)(int64_t n, const void *x, double shift, double scale, void *y);
    void (*softmax)(int64_t n, const void *x, void *y);

    /* Of f32 alone: the sum, in f64; and conversions by the rules of wg_cast, to nearest, ties to
     * even, where a NaN stays one. */
    double (*sum)(int64_t n, const void *x);
    void (*round_to_bf16)(int64_t n, const void *x, uint16_t *y);
    void (*widen_bf16)(int64_t n, const uint16_t *x, void *y);

    /* The gradient of softmax from y, dx = y (dy - sum dy y), or of its logarithm, dy - e^y sum dy.
     * dx may be dy. */
    void (*softmax_vjp)(bool logarithm, int64_t n, const void *y, const void *dy, void *dx);

    /* Softmax, or its logarithm, along each of `columns` lines of n elements that lie side by side:
     * element i of line j is x[i stride + j]. With dy, the gradient from the softmax x instead; y
     * may be dy. A line's result does not depend on its neighbours. A line of -inf has a softmax of
     * 0 and a logarithm of NaN. */
    void (*softmax_columns)(bool logarithm, int64_t n, int64_t columns, int64_t stride,
                            const void *x, const void *dy, void *y);

    /* The same of contiguous rows of 1 to WG__SHORT_LINE elements, with the bits of lines side by
     * side. */
#define WG__SHORT_LINE 32
    void (*softmax_short)(bool logarithm, int64_t rows, int64_t n, const void *x, const void *dy,
                          void *y);

    /* With weights a b, where a NULL operand means ones: excess returns sum a b (shift - x) and
     * sets `total` to sum a b; subtract computes y -= scale a b. */
    double (*excess)(int64_t n, const void *x, double shift, const void *a, const void *b,
                     double *total);
    void (*subtract)(int64_t n, double scale, const void *a, const void *b, void *y);

    /* Normalization of a row: its mean and (biased) variance; y = (x - mean) scale weight + bias,
     * where y may be x and a NULL weight or bias is left out; and its gradients, where scale is a
     * function of the row: dx is written, dweight and dbias are accumulated, each unless NULL. If
     * `centered`, the mean is a function of the row, too. `share` multiplies the gradient through
     * the scale; it is 1 for scale = 1 / sqrt(variance + eps). */
    void (*moments)(int64_t n, const void *x, double *mean, double *variance);
    void (*normalize)(int64_t n, const void *x, double mean, double scale, const void *weight,
                      const void *bias, void *y);
    void (*normalize_vjp)(int64_t n, const void *x, double mean, double scale, const void *weight,
                          const void *dy, bool centered, double share, void *dx, void *dweight,
                          void *dbias);

    /* Normalization of channels: wg__affine_row, with coefficients for `each` element or for all;
     * sums of g and of (x - center) g over a row; and the addition of g and (x - center) g to rows
     * of sums, where a NULL g means x - center. */
    void (*affine)(int64_t n, bool each, const wg__affine_row *row);
    void (*centered_sums)(int64_t n, const void *x, double center, const void *g, double *sum,
                          double *sum_x);
    void (*add_centered)(int64_t n, const void *x, const void *center, const void *g, void *sum,
                         void *sum_x);

    /* Attention: replaces the scores s of a row by e^(s + bias - max) keep. Returns the factor that
     * normalizes them, 1 / sum e^(s + bias - max), and sets log_sum_exp to log sum e^(s + bias).
     * If all s + bias are -inf, the row becomes 0, the factor 0 and log_sum_exp +inf. A NULL bias
     * means zeros, a NULL keep ones. All rows have room for whole vectors; elements beyond n are
     * overwritten. */
    double (*attention)(int64_t n, const void *bias, const void *keep, void *scores,
                        double *log_sum_exp);

    /* With p = e^(s + bias - log_sum_exp) and g the gradient of the weights p keep: g becomes
     * scale p (g keep - sum p g keep), the gradient of the scores before scaling, and s becomes
     * p keep. Rows are as above. */
    void (*attention_vjp)(int64_t n, const void *bias, const void *keep, double log_sum_exp,
                          double scale, void *scores, void *gradient);

    /* bias = 0 where the mask is true, -inf elsewhere. */
    void (*mask_to_bias)(int64_t n, const bool *mask, int64_t step, void *bias);

    /* Adds the rows of x, row_stride elements apart, to the row `sums`. */
    void (*add)(int64_t rows, int64_t columns, int64_t row_stride, const void *x, void *sums);

    /* For max_pool: y[i] = x[i stride], and place[i] = at + i stride, where that is larger than
     * y[i] or NaN. `place` has room for whole vectors. Of f32 alone. */
    void (*max_pool_step)(int64_t n, int64_t stride, const void *x, int32_t at, void *y,
                          int32_t *place);
} wg__simd_rows;

typedef struct wg__simd_products {
    /* The product of matrices that fit in the L1 and L2 caches. pack_columns packs the `count`
     * columns of B, of n elements each, into panels n WG__PANEL_VECTORS lanes elements apart, with
     * zeros beyond the last column. pack_rows packs the `count` rows of B, of n elements each, with
     * the panels side by side and zeros up to whole vectors. `stride` is the distance from one
     * column or row of x to the next, and `step` that from one of its elements to the next. */
    void (*panel)(const wg__panel_product *p);
    void (*pack_columns)(int64_t count, int64_t n, const void *x, int64_t stride, int64_t step,
                         void *panels);
    void (*pack_rows)(int64_t count, int64_t n, const void *x, int64_t stride, int64_t step,
                      void *rows);

    /* C (m, n) = alpha A (m, k) B (k, n) + beta C, where k is at most WG__SMALL_K and the rows of
     * C are contiguous. With beta 0, C is not read. */
#define WG__SMALL_K 64
    void (*small)(int64_t m, int64_t n, int64_t k, double alpha, const void *a, int64_t a_row,
                  int64_t a_column, const void *b, int64_t b_row, int64_t b_column, double beta,
                  void *c, int64_t c_row);

    /* For each head: y (rows) = scale A x of a vector x (width); and y (width) = scale x A of a
     * vector x (rows). */
    void (*head_dots)(int heads, const wg__head_products *p);
    void (*head_sums)(int heads, const wg__head_products *p);

    /* Computes elements begin..end of each row of y. `context` is a const wg__row_products *, so
     * that wg__parallel_for can call this function. */
    void (*row_products)(int64_t begin, int64_t end, void *context);

    /* y += scale sum_i x_i a_i over the rows a_i of a, of n elements each and row_stride apart. */
    void (*add_scaled_rows)(int64_t rows, int64_t n, int64_t row_stride, const void *a,
                            double scale, const void *x, int64_t x_stride, void *y);

    /* Computes elements begin..end of each row of y with W in bf16; a row of W is read once for up
     * to WG__ROWS_AT_ONCE rows of x. dequantize writes the n numbers of a row (not one of a group
     * of 16). Only in the table of f32. */
    void (*bf16)(const wg__quantized_product *p, int64_t begin, int64_t end);
    void (*dequantize)(wg_quantization quantization, int64_t n, const void *row, void *numbers);

    /* Convolution of contiguous planes: tap t of output i is element offsets[t] + i of x.
     *
     *     tap_sums   y_i = start + sum_t weights_t x[offsets_t + i]         n outputs
     *     tap_dots   sums_t += sum_i g_i x[offsets_t + i]
     */
    void (*tap_sums)(int64_t n, int64_t taps, const int64_t *offsets, const void *x,
                     const void *weights, double start, void *y);
    void (*tap_dots)(int64_t n, int64_t taps, const int64_t *offsets, const void *x, const void *g,
                     void *sums);
} wg__simd_products;

typedef struct wg__simd_matrices {
    /* y_j = the sum or the maximum of the differences between the point a, of k coordinates, and
     * each of n points b, whose coordinate c is b[c b_row + j]; no root is taken. */
    void (*distances)(wg__distance kind, double p, int64_t n, int64_t k, const void *a,
                      const void *b, int64_t b_row, void *y);

    /* da += sum_j weights_j f(a - b_j) over the n rows b_j of b. f is the derivative of the
     * distance without its factor p or 2: sign(d) |d|^(p-1); for MAX sign(d) where |d| is
     * distance_j. f(0) is 0. */
    void (*distances_vjp)(wg__distance kind, double p, int64_t n, int64_t k, const void *a,
                          const void *b, const void *weights, const void *distance, void *da);

    /* Transforms groups begin..end of `lanes` lines each; the last group of an outer index may have
     * fewer. For each outer index there are inner / lanes groups, rounded up. `room` has 4 room
     * `lanes` reals. */
    void (*fft_groups)(const wg__fft *job, int64_t begin, int64_t end, void *room);

    /* Factors of a small matrix (n, n) in column-major order, with LAPACK's arguments and INFO
     * (getrf, getrs, trtrs without its check, potrf of a lower triangle, which overwrites the upper
     * one): factor.h. b is (n, k). */
    int64_t (*lu_factors)(int64_t n, void *a, int32_t *pivots);
    void (*lu_solve)(int64_t n, int64_t k, const void *a, const int32_t *pivots, void *b);
    void (*triangular_solve)(int64_t n, int64_t k, bool upper, bool unit, const void *a, void *b);
    int64_t (*cholesky_factor)(int64_t n, void *a);
} wg__simd_matrices;

typedef struct wg__simd_random {
    /* Writes the words of `groups` groups of a draw, beginning with `group`. The same in both
     * tables. */
    void (*words)(uint64_t seed, uint64_t offset, uint64_t group, int64_t groups, uint32_t *words);

    /* y = 0 where the word is below the limit, x * scale elsewhere; y may be x. */
    void (*drop_below)(int64_t n, const uint32_t *words, uint32_t limit, double scale,
                       const void *x, void *y);

    /* Of f64 alone: two normals, written over two uniform numbers in [0, 1), of each of n pairs. */
    void (*normal_pairs)(int64_t n, void *u, void *v);
} wg__simd_random;

typedef struct wg__simd {
    const char *name; /* of the instruction set */
    int64_t lanes;    /* elements of a vector */

    /* Elementwise functions of n elements. */
    void (*map)(const wg__map *map, int64_t n, const void *const *x, void *const *y);

    wg__simd_rows rows;
    wg__simd_products products;
    wg__simd_matrices matrices;
    wg__simd_random random;
} wg__simd;

/* y = f(x), n elements; y may be x. */
static inline void wg__map_values(const wg__simd *simd, wg__map map, int64_t n, const void *x,
                                  void *y) {
    simd->map(&map, n, &x, &y);
}

/* The instruction sets that the kernels are compiled for. The best one for this CPU is used, or a
 * lower one in deterministic mode (kernels.h) or by the environment: WENGERT_SIMD=base, v3 or v4
 * makes the library treat the CPU as a lesser one (v4: AVX-512 and its extensions, without AMX). */
typedef enum wg__simd_level { WG__SIMD_BASE, WG__SIMD_V3, WG__SIMD_V4 } wg__simd_level;

wg__simd_level wg__simd_level_in_use(void);

/* The tables of kernels that this CPU supports, from the base instruction set (index 0) to the
 * best; NULL beyond. dtype is f32 or f64. */
const wg__simd *wg__simd_at(wg_dtype dtype, int index);

/* The best table. */
const wg__simd *wg__simd_for(wg_dtype dtype);

/* ---- Weights in bf16 ----
 *
 * Products of many rows of x with weights in bf16 (quantize.h), two numbers of a row at a time.
 * kernels_bf16.c is also compiled for processors that multiply pairs of bf16 (AVX512-BF16) and
 * tiles of pairs (AMX: tiles.h).
 *
 * A lane of a vector sums the products of an output in the order of the row's numbers, so a row's
 * result has the same bits whichever rows are multiplied with it. Processors that multiply pairs
 * need x rounded to bf16 (to nearest, ties to even); others use x in f32. Sums are f32. */

enum { WG__MOST_PAIR_COLUMNS = 32 }; /* of a panel */

/* to = from + tile panel, (rows, columns). from_row and to_row are the elements from one row to the
 * next. `to` may be `from`. */
typedef struct wg__pair_product {
    int64_t rows, pairs;
    const void *panel, *tile;
    const float *from;
    int64_t from_row;
    float *to;
    int64_t to_row;
} wg__pair_product;

/* Vectors of numbers in f32 or bf16, to be multiplied in bf16. */
typedef struct wg__bf16_operand {
    const void *data;
    bool is_bf16;
    int64_t stride, k_stride; /* in elements: from vector to vector, and within one */
} wg__bf16_operand;

typedef struct wg__bf16_kernels {
    const char *name;   /* of the instruction set */
    bool rounds_x;      /* to bf16 */
    int64_t tile_rows;  /* at most, in a tile */
    int64_t columns;    /* the outputs in a panel */
    int64_t pair_bytes; /* of two numbers of x in a tile */

    /* A product adds 2 block_pairs numbers of k to its sums at a time, in the order of gemm.h: 1
     * pair, or the 16 of an AMX tile. Packed rows are padded with zeros to whole blocks. */
    int64_t block_pairs;

    /* rounded_product takes A packed along, whatever its strides were, and pack_operand adds rows
     * of zeros up to a multiple of 16 rows. */
    bool packs_along;

    /* A thread calls `begin` before a loop of multiply or rounded_product, and `end` after it: AMX
     * needs its tiles configured, and released. NULL: nothing to do. */
    void (*begin)(void);
    void (*end)(void);

    /* Packs up to tile_rows rows of x, x_stride apart, of n numbers each, into a tile: the first
     * block of row 0, of row 1..., then the second blocks... `multiply` may read
     * WG__TILE_ROOM bytes beyond a tile's end. */
#define WG__TILE_ROOM 1024
    void (*pack_tile)(int64_t rows, int64_t n, const float *x, int64_t x_stride, void *tile);

    /* Packs up to `columns` rows of the weight, weight_stride bytes apart, of n numbers each, into
     * a panel: the first pair of row 0, of row 1..., with zeros for missing rows. A panel has room
     * for n rounded up to a multiple of `columns`. */
    void (*pack_panel)(int64_t outputs, int64_t n, const void *weight, int64_t weight_stride,
                       void *panel);

    void (*multiply)(const wg__pair_product *p);

    /* Packs `count` vectors of k numbers, rounded to bf16, as words: `words` of them a pair, two of
     * f32 where pair_bytes is 8. The words of a vector follow each other and vectors are `step`
     * words apart (`along`), or each word of all vectors is a row, `step` words from the next; the
     * rows have zeros after the last vector. k is padded with zeros to whole blocks. */
    void (*pack_operand)(int64_t count, int64_t k, const wg__bf16_operand *x, bool along,
                         int64_t step, void *words);

    /* C = D + A B of packed operands; alpha is 1. Strides of A and B are in words, and k is in
     * pairs. Either a_column is 1 (A was packed along), or a_row is. */
    void (*rounded_product)(const wg__panel_product *p);
} wg__bf16_kernels;

/* The tables that this CPU supports, from the base instruction set (index 0) to the best (also
 * index WG__BEST); NULL beyond. The table for AMX is included if the processor and the system
 * support it. Thread safe. */
enum { WG__BEST = -1 };
const wg__bf16_kernels *wg__bf16_kernels_at(int index);

/* ---- Weights in blocks of integers ----
 *
 * Integer products with quantized weights (quantize.h): the rows of x are quantized to blocks of 32
 * signed bytes (the levels) and an f32 scale. kernels_i8.c is also compiled for processors that
 * multiply and add four bytes at once (VNNI).
 *
 *     y_o = sum over blocks b, in their order, of (sum of levels x_b w_ob) (scale x_b  scale w_ob)
 *
 * The integer sums are exact, and each block adds one rounded product to y_o. So a row of x gives
 * the same bits alone and among many. */

/* A tile: R rows of x as `multiply` reads them. For each block in turn:
 *
 *     4 levels of row 0 | of row 1 | ...   the next 4 of row 0 | ...   8 times in all
 *     R scales f32      R offsets i32: the sum of the block's levels, times the kernel's offset
 */
#define WG__TILE_BLOCK 40 /* bytes of a row's block in a tile */
#define WG__MOST_TILE_ROWS 12

typedef struct wg__block_kernels {
    const char *name;  /* of the instruction set */
    int64_t tile_rows; /* at most, in a tile */

    /* Quantizes rows of x, x_stride apart, of 32 * `blocks` numbers each, into a tile. The scale of
     * a block is its largest magnitude / 127, or NaN if a number is not finite; a level is a number
     * times the inverse of the scale, rounded to the nearest integer, ties to even. */
    void (*quantize)(int64_t rows, int64_t blocks, const float *x, int64_t x_stride, int32_t offset,
                     void *tile);

    /* Constants added to each weight: a block's integer sum begins with offset sum x_b. */
    int32_t q8_0_offset, q4_0_offset;

    /* Adds the products of a tile, quantized with the offset of the quantization (q8_0 or q4_0),
     * with a group of 16 interleaved rows to sums, (rows, 16). */
    void (*multiply)(wg_quantization quantization, int64_t rows, int64_t blocks,
                     const uint8_t *weights, const void *tile, float *sums);
} wg__block_kernels;

/* The tables that this CPU supports, from the base instruction set (index 0) to the best (also
 * index WG__BEST); NULL beyond. */
const wg__block_kernels *wg__block_kernels_at(int index);

#endif
