/* A product with a vector reads each element of the matrix once, so its time is that of memory:
 *
 *     contiguous rows       a dot product each; chunks of rows
 *     contiguous columns    added up, each times an element of the vector; chunks of their length
 *
 * A vector on the left is one on the right of the transposed matrix. A few vectors, up to FEW, are
 * multiplied with contiguous rows in the same way. */
#include "tensor/gemm/small.h"

#include "tensor/iter.h"
#include "tensor/simd/simd.h"

/* Multiply-adds of the largest small product, about where BLIS overtakes. */
enum { SMALL = 32768 };

/* Elements of the matrix that are worth a chunk; the length of columns in one. */
enum { CHUNK = 16384, COLUMN_CHUNK = 512 };

/* Vectors up to which dot products are quicker than BLIS, where the matrix has so many elements. */
enum { FEW = 8, MANY = 65536 };

static void *element(wg_dtype dtype, const void *data, int64_t place) {
    return (char *)data + place * (int64_t)wg_dtype_size(dtype);
}

/* ---- By contiguous rows ---- */

typedef struct rows_job {
    const wg__simd *simd;
    wg__row_products products;
} rows_job;

static void multiply_rows(int64_t begin, int64_t end, void *context) {
    const rows_job *job = context;
    job->simd->row_products(&job->products, begin, end);
}

/* C^T = alpha A B + beta C^T, of the contiguous rows of A and the contiguous columns of B. */
static void by_rows(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
                    wg__matrix b, double beta, wg__matrix c) {
    rows_job job = {.simd = wg__simd_for(dtype),
                    .products = {.a = a.data,
                                 .a_stride = a.row_stride,
                                 .n = k,
                                 .x = b.data,
                                 .x_rows = n,
                                 .x_stride = b.column_stride,
                                 .alpha = alpha,
                                 .beta = beta,
                                 .y = c.data,
                                 .y_stride = c.column_stride,
                                 .y_step = c.row_stride}};
    wg__parallel_for(m, 1 + CHUNK / (k + 1), multiply_rows, &job);
}

/* ---- By contiguous columns, with one vector: y = alpha A x + beta y ---- */

typedef struct columns_job {
    const wg__simd *simd;
    wg_dtype dtype;
    int64_t k;
    double alpha, beta;
    wg__matrix a;
    const void *x;
    int64_t x_stride;
    void *y; /* contiguous */
} columns_job;

static void scale(const columns_job *job, int64_t i) {
    void *y = element(job->dtype, job->y, i);
    if (job->dtype == WG_F32)
        *(float *)y = (float)(job->beta == 0 ? 0 : job->beta * *(float *)y);
    else
        *(double *)y = job->beta == 0 ? 0 : job->beta * *(double *)y;
}

static void add_columns(int64_t begin, int64_t end, void *context) {
    const columns_job *job = context;
    for (int64_t i = begin; job->beta != 1 && i < end; i++)
        scale(job, i);
    job->simd->add_scaled_rows(job->k, end - begin, job->a.column_stride,
                               element(job->dtype, job->a.data, begin), job->alpha, job->x,
                               job->x_stride, element(job->dtype, job->y, begin));
}

static void by_columns(wg_dtype dtype, int64_t m, int64_t k, double alpha, wg__matrix a,
                       wg__matrix x, double beta, wg__matrix y) {
    columns_job job = {.simd = wg__simd_for(dtype),
                       .dtype = dtype,
                       .k = k,
                       .alpha = alpha,
                       .beta = beta,
                       .a = a,
                       .x = x.data,
                       .x_stride = x.row_stride,
                       .y = y.data};
    wg__parallel_for(m, COLUMN_CHUNK, add_columns, &job);
}

/* ---- The choice ---- */

/* A product A B = C with a vector, or few of them, on the right: on the left they are that of the
 * transposed matrices. */
typedef struct oriented {
    int64_t m, n;
    wg__matrix a, b, c;
} oriented;

static wg__matrix transposed(wg__matrix a) {
    return (wg__matrix){a.data, a.column_stride, a.row_stride};
}

static oriented orient(int64_t m, int64_t n, wg__matrix a, wg__matrix b, wg__matrix c) {
    if (n == 1 || (m != 1 && n < m))
        return (oriented){m, n, a, b, c};
    return (oriented){n, m, transposed(b), transposed(a), transposed(c)};
}

static bool has_dots(const oriented *p, int64_t k) {
    return (p->a.column_stride == 1 && p->b.row_stride == 1) || k <= 1;
}

static bool has_columns(const oriented *p) {
    return p->a.row_stride == 1 && p->c.row_stride == 1;
}

static bool is_few(const oriented *p, int64_t k) {
    return p->n <= FEW && p->m >= MANY / (k + 1) && k > 1 && has_dots(p, k);
}

static bool is_tiny(int64_t m, int64_t n, int64_t k, wg__matrix c) {
    return k <= WG__SMALL_K && m <= SMALL && n <= SMALL && m * n * k <= SMALL &&
           c.column_stride == 1;
}

bool wg__gemm_is_small(int64_t m, int64_t n, int64_t k, wg__matrix a, wg__matrix b, wg__matrix c) {
    const oriented p = orient(m, n, a, b, c);
    if (p.n == 1)
        return has_dots(&p, k) || has_columns(&p);
    return is_tiny(m, n, k, c) || is_few(&p, k);
}

void wg__gemm_small(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
                    wg__matrix b, double beta, wg__matrix c) {
    const oriented p = orient(m, n, a, b, c);
    if (p.n != 1 && is_tiny(m, n, k, c))
        wg__simd_for(dtype)->small_product(m, n, k, alpha, a.data, a.row_stride, a.column_stride,
                                           b.data, b.row_stride, b.column_stride, beta, c.data,
                                           c.row_stride);
    else if (has_dots(&p, k) && !(k <= 1 && has_columns(&p))) /* of one element a dot is dear */
        by_rows(dtype, p.m, p.n, k, alpha, p.a, p.b, beta, p.c);
    else
        by_columns(dtype, p.m, k, alpha, p.a, p.b, beta, p.c);
}
