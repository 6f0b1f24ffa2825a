/* A product with a vector reads each element of the matrix once, so its time is that of memory:
 *
 *     contiguous rows       a dot product each; chunks of rows
 *     contiguous columns    added up, each times an element of the vector; chunks of their length
 *
 * A vector on the left is one on the right of the transposed matrix. */
#include "tensor/gemm_small.h"

#include "tensor/iter.h"
#include "tensor/simd/simd.h"

/* Multiply-adds of the largest small product, about where BLIS overtakes. */
enum { SMALL = 32768 };

/* Elements of the matrix that are worth a chunk; the length of columns in one. */
enum { CHUNK = 16384, COLUMN_CHUNK = 512 };

/* y = alpha A x + beta y */
typedef struct vector_product {
    const wg__simd *simd;
    wg_dtype dtype;
    int64_t m, k;
    double alpha, beta;
    wg__matrix a;
    const void *x;
    int64_t x_stride;
    void *y;
    int64_t y_stride;
} vector_product;

static void *element(wg_dtype dtype, const void *data, int64_t place) {
    return (char *)data + place * (int64_t)wg_dtype_size(dtype);
}

static void set(const vector_product *p, int64_t i, double product) {
    if (p->dtype == WG_F32) {
        float *y = element(p->dtype, p->y, i * p->y_stride);
        *y = (float)(p->beta == 0 ? p->alpha * product : p->alpha * product + p->beta * *y);
    } else {
        double *y = element(p->dtype, p->y, i * p->y_stride);
        *y = p->beta == 0 ? p->alpha * product : p->alpha * product + p->beta * *y;
    }
}

static void dot_rows(int64_t begin, int64_t end, void *context) {
    const vector_product *p = context;
    for (int64_t i = begin; i < end; i++)
        set(p, i, p->simd->dot(p->k, element(p->dtype, p->a.data, i * p->a.row_stride), p->x));
}

static void add_columns(int64_t begin, int64_t end, void *context) {
    const vector_product *p = context;
    for (int64_t i = begin; p->beta != 1 && i < end; i++)
        set(&(vector_product){.dtype = p->dtype, .beta = p->beta, .y = p->y, .y_stride = 1}, i, 0);
    p->simd->add_scaled_rows(p->k, end - begin, p->a.column_stride,
                             element(p->dtype, p->a.data, begin), p->alpha, p->x, p->x_stride,
                             element(p->dtype, p->y, begin));
}

static bool by_rows(const vector_product *p) {
    return (p->a.column_stride == 1 && p->x_stride == 1) || p->k <= 1;
}

static bool by_columns(const vector_product *p) {
    return p->a.row_stride == 1 && p->y_stride == 1;
}

/* The product as one with a vector on the right, if n or m is 1. */
static vector_product oriented(wg_dtype dtype, int64_t m, int64_t n, int64_t k, wg__matrix a,
                               wg__matrix b, wg__matrix c) {
    vector_product p = {.dtype = dtype, .m = m, .k = k, .a = a, .x = b.data, .y = c.data};
    p.x_stride = b.row_stride;
    p.y_stride = c.row_stride;
    if (n != 1) {
        p.m = n;
        p.a = (wg__matrix){b.data, b.column_stride, b.row_stride};
        p.x = a.data;
        p.x_stride = a.column_stride;
        p.y_stride = c.column_stride;
    }
    return p;
}

bool wg__gemm_is_small(wg_dtype dtype, int64_t m, int64_t n, int64_t k, wg__matrix a, wg__matrix b,
                       wg__matrix c) {
    if (m == 1 || n == 1) {
        const vector_product p = oriented(dtype, m, n, k, a, b, c);
        return by_rows(&p) || by_columns(&p);
    }
    return k <= WG__SMALL_K && m <= SMALL && n <= SMALL && m * n * k <= SMALL &&
           c.column_stride == 1;
}

void wg__gemm_small(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
                    wg__matrix b, double beta, wg__matrix c) {
    const wg__simd *simd = wg__simd_for(dtype);
    if (m != 1 && n != 1) {
        simd->small_product(m, n, k, alpha, a.data, a.row_stride, a.column_stride, b.data,
                            b.row_stride, b.column_stride, beta, c.data, c.row_stride);
        return;
    }
    vector_product p = oriented(dtype, m, n, k, a, b, c);
    p.simd = simd;
    p.alpha = alpha;
    p.beta = beta;
    if (by_rows(&p) && !(p.k <= 1 && by_columns(&p))) /* of one element a dot is dear */
        wg__parallel_for(p.m, 1 + CHUNK / (p.k + 1), dot_rows, &p);
    else
        wg__parallel_for(p.m, COLUMN_CHUNK, add_columns, &p);
}
