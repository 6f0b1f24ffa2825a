/* Vector kernels, compiled once for each instruction set and picked at run time for this CPU.
 *
 *     kernels_f32.c, kernels_f64.c   compiled as base, x86-64-v3 and x86-64-v4, a table from each
 *       `-- vector.h                 the vectors of that instruction set, and SLEEF's functions
 *       `-- functions.h ...          the kernels, written once, for any of them
 *     simd.c                         picks the table
 *
 * Kernels work on contiguous arrays of the table's dtype, f32 or f64; pointers need no alignment.
 * They run on the calling thread. What a kernel gives for an element depends on that element (a row
 * kernel: that row) alone, never on its place in the array: remainders go through the same vector
 * code as the rest, padded. So results have the same bits however the work is cut. */
#ifndef WG_TENSOR_SIMD_SIMD_H
#define WG_TENSOR_SIMD_SIMD_H

#include "tensor/dtype.h"
#include "tensor/quantize.h"

#include <stdbool.h>
#include <stdint.h>

/* y = f(x), n elements; y may be x. Errors are below 2 ulp where SLEEF computes f,
 * and lgamma's below 1e-8 (f32) or 1e-15 (f64) beside its zeros below 0; NaN and infinities give
 * what C's math library gives. */
typedef void (*wg__simd_map)(int64_t n, const void *x, void *y);

/* dx = dy f', n elements, from x or from y = f(x) as the member says; dx may be dy or x. */
typedef void (*wg__simd_vjp)(int64_t n, const void *x_or_y, const void *dy, void *dx);

/* The same for functions of two plain numbers beside x. */
typedef void (*wg__simd_map_by)(int64_t n, double a, double b, const void *x, void *y);
typedef void (*wg__simd_vjp_by)(int64_t n, double a, double b, const void *x, const void *dy,
                                void *dx);

/* y = f(gate) value; and its two gradients, dgate = dy value f' and dvalue = dy f. dgate and dvalue
 * may be any of the operands, but not the same. */
typedef void (*wg__simd_gate)(int64_t n, const void *gate, const void *value, void *y);
typedef void (*wg__simd_gate_vjp)(int64_t n, const void *gate, const void *value, const void *dy,
                                  void *dgate, void *dvalue);
/* y = f(a, b), n elements; as a map otherwise. */
typedef void (*wg__simd_pair)(int64_t n, const void *a, const void *b, void *y);

/* Words of randomness in a group: element i of a draw uses word i % 64 of group i / 64, which is
 * word (i % 64) / 16 of Philox block 16 (i / 64) + i % 16. */
#define WG__RANDOM_GROUP 64

/* y = alpha x A^T + beta y: every row of A, which is read once for up to so many rows of x, by
 * every row of x. With beta 0, y is not read. Strides are in elements. */
#define WG__ROWS_AT_ONCE 4
typedef struct wg__row_products {
    const void *a, *x;
    int64_t n; /* elements in a row of A and of x */
    int64_t a_stride, x_rows, x_stride;
    double alpha, beta;
    void *y;
    int64_t y_stride, y_step; /* from row to row, and from element to element */
} wg__row_products;

/* y = x W^T + bias, W being quantized (quantize.h). */
typedef struct wg__quantized_product {
    const char *weight; /* rows of whole blocks */
    int64_t weight_stride /* in bytes */, outputs /* rows */, n /* numbers in a row */;
    const float *x, *bias; /* bias NULL: 0 */
    int64_t x_rows, x_stride;
    float *y;
    int64_t y_stride;
} wg__quantized_product;

/* C (m, n) = alpha A (m, k) B (k, n) + D. B is in panels of WG__PANEL_VECTORS vectors, which
 * pack_columns and pack_rows make, b_panel elements from one to the next. Rows of C have room for
 * whole vectors, all of which are written, and those of D, which may be C, can be read as far. */
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

/* Of up to so many heads: a matrix of rows each, and a vector. */
#define WG__HEADS_AT_ONCE 4
typedef struct wg__head_products {
    int64_t rows, width, row_stride; /* of each matrix */
    const void *a[WG__HEADS_AT_ONCE], *vector[WG__HEADS_AT_ONCE];
    double scale;
    void *y[WG__HEADS_AT_ONCE];
} wg__head_products;

typedef struct wg__simd {
    const char *name; /* of the instruction set */

    /* Those of C's math library: */
    wg__simd_map exp, exp2, expm1, log, log2, log10, log1p;
    wg__simd_map sin, cos, tan, asin, acos, atan;
    wg__simd_map sinh, cosh, tanh, asinh, acosh, atanh;
    wg__simd_map cbrt, erf, erfc, lgamma;
    wg__simd_map floor, ceil, rint, trunc;

    wg__simd_pair pow, atan2, hypot;
    wg__simd_pair logaddexp; /* log(e^a + e^b) */
    wg__simd_pair xlogy;     /* a log b, and 0 where a is 0, unless b is NaN */

    wg__simd_map sigmoid;
    wg__simd_map gelu;      /* x/2 (1 + erf(x / sqrt 2)) */
    wg__simd_map gelu_tanh; /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */

    wg__simd_vjp tanh_vjp;      /* from y: dy (1 - y^2) */
    wg__simd_vjp sigmoid_vjp;   /* from y: dy y (1 - y) */
    wg__simd_vjp erf_vjp;       /* from x: dy 2/sqrt(pi) e^(-x^2) */
    wg__simd_vjp gelu_vjp;      /* from x: dy (Phi(x) + x phi(x)) */
    wg__simd_vjp gelu_tanh_vjp; /* from x */

    /* Activations (ops/activation.c has their formulas); all derivatives are from x. */
    wg__simd_map silu, mish, log_sigmoid, hardsigmoid, hardswish;
    wg__simd_vjp silu_vjp, mish_vjp, log_sigmoid_vjp, hardsigmoid_vjp, hardswish_vjp;
    wg__simd_map_by leaky_relu, elu, softplus; /* by slope; by alpha; by beta and threshold */
    wg__simd_vjp_by leaky_relu_vjp, elu_vjp, softplus_vjp;
    wg__simd_gate glu, swiglu, geglu, reglu; /* f: sigmoid, silu, gelu, relu */
    wg__simd_gate_vjp glu_vjp, swiglu_vjp, geglu_vjp, reglu_vjp;

    /* Of one row: its largest element, -inf for none and NaN if there is one; sum e^(x - shift);
     * y = scale e^(x - shift), where y may be x. */
    double (*row_max)(int64_t n, const void *x);
    double (*row_sum_exp)(int64_t n, const void *x, double shift);
    void (*row_exp)(int64_t n, const void *x, double shift, double scale, void *y);

    /* With weights a b, of which each may be NULL for ones: sum a b (shift - x), and into `total`
     * sum a b; and y -= scale a b. */
    double (*row_excess)(int64_t n, const void *x, double shift, const void *a, const void *b,
                         double *total);
    void (*row_subtract)(int64_t n, double scale, const void *a, const void *b, void *y);

    /* Normalisation of a row: its mean and (biased) variance; y = (x - mean) scale weight + bias,
     * without weight or bias where they are NULL, where y may be x; and the gradients of that, the
     * scale being made of the row: dx is written, dweight and dbias are added onto, each unless
     * NULL. `centered` says that the mean is the row's, too; `share` of what the scale passes back
     * is 1 where it is 1 / sqrt(variance + eps). */
    void (*row_moments)(int64_t n, const void *x, double *mean, double *variance);
    void (*row_normalize)(int64_t n, const void *x, double mean, double scale, const void *weight,
                          const void *bias, void *y);
    void (*row_normalize_vjp)(int64_t n, const void *x, double mean, double scale,
                              const void *weight, const void *dy, bool centered, double share,
                              void *dx, void *dweight, void *dbias);

    /* Attention: scores s of a row become e^(s + bias - max) keep. Returns 1 / sum e^(s + bias -
     * max), by which they are yet to be multiplied, and log sum e^(s + bias). Where all s + bias
     * are -inf, scores become 0, and these are 0 and +inf. bias and keep may each be NULL, for
     * zeros and for ones. All rows have room for whole vectors; what is beyond n is overwritten. */
    double (*row_attention)(int64_t n, const void *bias, const void *keep, void *scores,
                            double *log_sum_exp);

    /* With p = e^(s + bias - log_sum_exp) and g the gradient of the weights p keep: g becomes scale
     * p (g keep - sum p g keep), that of the scores before scaling, and s becomes p keep. Rows as
     * above. */
    void (*row_attention_vjp)(int64_t n, const void *bias, const void *keep, double log_sum_exp,
                              double scale, void *scores, void *gradient);

    /* 0 where the mask is true, -inf elsewhere. */
    void (*mask_to_bias)(int64_t n, const bool *mask, int64_t step, void *bias);

    /* Matrices in the nearest caches: their product; B of `count` columns of n elements each, with
     * zeros beyond the last, in panels n WG__PANEL_VECTORS lanes elements apart; and B of `count`
     * rows of n elements each, its panels side by side, with zeros up to whole vectors. stride
     * leads from one column or row to the next, step to its next element. */
    int64_t lanes; /* elements of a vector */
    void (*panel_product)(const wg__panel_product *p);
    void (*pack_columns)(int64_t count, int64_t n, const void *x, int64_t stride, int64_t step,
                         void *panels);
    void (*pack_rows)(int64_t count, int64_t n, const void *x, int64_t stride, int64_t step,
                      void *rows);

    /* For each head y = scale A x, (rows), of a vector (width); and y = scale x A, (width), of a
     * vector (rows). */
    void (*head_dots)(int heads, const wg__head_products *p);
    void (*head_sums)(int heads, const wg__head_products *p);

    /* Adds rows of x to the row of sums; rows of x are row_stride elements apart. */
    void (*add_rows)(int64_t rows, int64_t columns, int64_t row_stride, const void *x, void *sums);

    /* Elements begin..end of each row of y. */
    void (*row_products)(const wg__row_products *p, int64_t begin, int64_t end);

    /* y += the sum of rows of a, of n elements each and row_stride apart, each times its element of
     * x and `scale`. */
    void (*add_scaled_rows)(int64_t rows, int64_t n, int64_t row_stride, const void *a,
                            double scale, const void *x, int64_t x_stride, void *y);

    /* Elements begin..end of each row of y, W being of bf16, of which a row is read once for up to
     * WG__ROWS_AT_ONCE rows of x; and the numbers of a row by itself, by quantization. Of f32
     * alone. */
    void (*bf16_product)(const wg__quantized_product *p, int64_t begin, int64_t end);
    void (*dequantize[WG_QUANTIZATION_COUNT])(int64_t n, const void *row, void *numbers);

    /* C (m, n) = alpha A (m, k) B (k, n) + beta C, where k is at most WG__SMALL_K and the rows of
     * C are contiguous. With beta 0, C is not read. */
#define WG__SMALL_K 64
    void (*small_product)(int64_t m, int64_t n, int64_t k, double alpha, const void *a,
                          int64_t a_row, int64_t a_column, const void *b, int64_t b_row,
                          int64_t b_column, double beta, void *c, int64_t c_row);

    /* The words of `groups` groups of a draw, from `group` on. The same in both tables. */
    void (*random_words)(uint64_t seed, uint64_t offset, uint64_t group, int64_t groups,
                         uint32_t *words);

    /* y = 0 where the word is below the limit, x * scale elsewhere; y may be x. */
    void (*drop_below)(int64_t n, const uint32_t *words, uint32_t limit, double scale,
                       const void *x, void *y);
} wg__simd;

/* The instruction sets that files of simd_kernels are compiled for, and the best of them here. */
typedef enum wg__simd_level { WG__SIMD_BASE, WG__SIMD_V3, WG__SIMD_V4 } wg__simd_level;

wg__simd_level wg__simd_level_of_cpu(void);

/* The kernels that this CPU runs, from the plainest, 0, to the best; NULL beyond. dtype is f32 or
 * f64. */
const wg__simd *wg__simd_at(wg_dtype dtype, int index);

/* The best of them. */
const wg__simd *wg__simd_for(wg_dtype dtype);

/* ---- Weights in bf16 ----
 *
 * Products with weights in bf16 (quantize.h) of many rows of x, two numbers of a row at a time.
 *
 *     kernels_bf16.c   compiled as the kernels of simd.h are, and once more for processors that
 *                      multiply pairs of bf16 (AVX512-BF16)
 *     simd.c           picks the table
 *
 * A lane of a vector sums the products of one output in the order of the row's numbers: so a row
 * of x has the same bits whichever others are multiplied with it. Processors that multiply pairs
 * take x rounded to bf16, to nearest and ties to even; others take it as it is. Sums are f32. */

enum { WG__MOST_PAIR_COLUMNS = 32 }; /* of a panel */

/* The products of a tile with a panel, added to `from`, go to `to`: (rows, columns), with so many
 * elements from row to row. `to` may be `from`. */
typedef struct wg__pair_product {
    int64_t rows, pairs;
    const void *panel, *tile;
    const float *from;
    int64_t from_row;
    float *to;
    int64_t to_row;
} wg__pair_product;

typedef struct wg__bf16_kernels {
    const char *name;   /* of the instruction set */
    bool rounds_x;      /* to bf16 */
    int64_t tile_rows;  /* at most, in a tile */
    int64_t columns;    /* of a panel: so many outputs */
    int64_t pair_bytes; /* of two numbers of x in a tile */

    /* Up to tile_rows rows of x, x_stride apart, of n numbers each become a tile: the first pair of
     * row 0, of row 1..., the second pairs... A 0 follows an odd n. */
    void (*lay_rows)(int64_t rows, int64_t n, const float *x, int64_t x_stride, void *tile);

    /* Up to `columns` rows of the weight, weight_stride bytes apart, of n numbers each become a
     * panel in the same way, with zeros for the rows that are not there. A panel has room for n up
     * to a multiple of `columns`. */
    void (*lay_panel)(int64_t outputs, int64_t n, const void *weight, int64_t weight_stride,
                      void *panel);

    void (*multiply)(const wg__pair_product *p);
} wg__bf16_kernels;

/* The kernels that this CPU runs, from the plainest, 0, to the best; NULL beyond. */
const wg__bf16_kernels *wg__bf16_kernels_at(int index);

/* The best of them. */
const wg__bf16_kernels *wg__bf16_kernels_for_cpu(void);

/* ---- Weights in blocks of integers ----
 *
 * Products of blocks of integers, with quantized weights (quantize.h): the rows of x become blocks
 * of 32 signed bytes and an f32 scale, and what is summed are products of integers.
 *
 *     kernels_i8.c   compiled as the kernels of simd.h are, and once more for processors whose
 *                    vectors multiply four bytes at once (VNNI)
 *     simd.c         picks the table
 *
 *     y_o = sum over blocks b, in their order, of (sum of levels x_b w_ob) (scale x_b  scale w_ob)
 *
 * The sums of integers are exact, and a block adds one rounded product to y_o whichever rows are
 * multiplied with it: so the same bits come from one row of x and from many. */

/* A few rows of x as `multiply` takes them; of each block in turn, R being the number of rows:
 *
 *     4 levels of row 0 | of row 1 | ...   the next 4 of row 0 | ...   8 times in all
 *     R scales f32      R offsets i32: the sum of the block's levels, times the kernel's offset
 */
#define WG__TILE_BLOCK 40 /* bytes of a block of a row */
#define WG__MOST_TILE_ROWS 12

typedef struct wg__block_products {
    /* What a product of a block begins with is that many times the sum of x's levels. */
    int32_t offset;

    /* Adds to sums, (rows, 16), the products of a tile with 16 rows side by side. */
    void (*multiply)(int64_t rows, int64_t blocks, const uint8_t *weights, const void *tile,
                     float *sums);
} wg__block_products;

typedef struct wg__block_kernels {
    const char *name;  /* of the instruction set */
    int64_t tile_rows; /* at most, in a tile */

    /* Rows of x, x_stride apart, of 32 `blocks` numbers each. The scale of a block is its largest
     * magnitude / 127 and NaN where a number is not finite; a level is a number times the inverse
     * of the scale, to the nearest integer, ties to even. */
    void (*quantise)(int64_t rows, int64_t blocks, const float *x, int64_t x_stride, int32_t offset,
                     void *tile);

    wg__block_products q8_0, q4_0;
} wg__block_kernels;

/* The kernels that this CPU runs, from the plainest, 0, to the best; NULL beyond. */
const wg__block_kernels *wg__block_kernels_at(int index);

/* The best of them. */
const wg__block_kernels *wg__block_kernels_for_cpu(void);

#endif
