/* Matrix products by BLIS, through its typed API, which takes any strides.
 *
 * BLIS always runs on one thread here; the product is cut into tiles of C and each thread takes the
 * next tile that is free. Unlike BLIS's own threads, ours never wait for each other within a
 * product, which costs most where other programs share the processors.
 *
 *     tiny, or with a few vectors            not by BLIS: gemm_small.c
 *     small     (up to SMALL multiply-adds)  one tile, mostly by the kernels that do not pack
 *     skinny    (a side below SKINNY)        strips of STRIP, by the same kernels
 *     large                                  a grid, by the kernels that pack
 *
 * Which of them is a matter of the shape alone, and so are the strips. The grid depends on the
 * number of threads, but its lines lie on multiples of both sides of BLIS's register block: each
 * element is then computed by the same instructions in any grid, and the same bits come at any
 * thread count. (Kernels without packing do not promise that.) */
#include "tensor/gemm.h"

#include <blis.h>
#include <math.h>

#include "tensor/gemm_integer.h"
#include "tensor/gemm_small.h"
#include "tensor/iter.h"

enum { SKINNY = 64, STRIP = 1024 };
#define SMALL 4.0e6

typedef struct product {
    wg_dtype dtype;
    int64_t m, n, k;
    double alpha, beta;
    wg__matrix a, b, c;
    const void *row; /* if not NULL, what each row of C starts from */
    bool packs;
    int64_t tile_m, tile_n; /* all tiles but the last of a row or column have this size */
    int64_t tiles_m, tiles_n;
} product;

_Thread_local double wg__product_flops;

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t ceil_divide(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static void *element(const product *p, wg__matrix matrix, int64_t i, int64_t j) {
    int64_t place = i * matrix.row_stride + j * matrix.column_stride;
    return (char *)matrix.data + place * (int64_t)wg_dtype_size(p->dtype);
}

/* ---- One tile ---- */

/* BLIS refuses a stride of 0 and strides that make rows overlap, even along an axis of size 1,
 * where the stride is never used: such an axis gets one that steps over the whole matrix. */
static wg__matrix with_valid_strides(wg__matrix a, int64_t rows, int64_t columns) {
    if (rows == 1 && columns == 1)
        a.row_stride = a.column_stride = 1;
    else if (rows == 1)
        a.row_stride = columns * a.column_stride;
    else if (columns == 1)
        a.column_stride = rows * a.row_stride;
    return a;
}

static void fill_rows(const product *p, int64_t i, int64_t m, int64_t j, int64_t n) {
    size_t size = wg_dtype_size(p->dtype);
    const char *row = (const char *)p->row + (size_t)j * size;
    for (int64_t y = i; y < i + m; y++) {
        if (p->c.column_stride == 1)
            memcpy(element(p, p->c, y, j), row, (size_t)n * size);
        else
            for (int64_t x = 0; x < n; x++)
                memcpy(element(p, p->c, y, j + x), row + (size_t)x * size, size);
    }
}

/* Rows i.. and columns j.. of C. */
static void run_tile(const product *p, int64_t i, int64_t m, int64_t j, int64_t n) {
    double beta = p->beta;
    if (p->row) {
        fill_rows(p, i, m, j, n);
        beta = 1;
    }
    rntm_t runtime;
    bli_rntm_init(&runtime);
    bli_rntm_set_num_threads(1, &runtime);
    bli_rntm_set_l3_sup(!p->packs, &runtime);
    void *a = element(p, p->a, i, 0), *b = element(p, p->b, 0, j), *c = element(p, p->c, i, j);
    if (p->dtype == WG_F32) {
        float alpha_f32 = (float)p->alpha, beta_f32 = (float)beta;
        bli_sgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, m, n, p->k, &alpha_f32, a,
                     p->a.row_stride, p->a.column_stride, b, p->b.row_stride, p->b.column_stride,
                     &beta_f32, c, p->c.row_stride, p->c.column_stride, NULL, &runtime);
    } else {
        double alpha = p->alpha;
        bli_dgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, m, n, p->k, &alpha, a, p->a.row_stride,
                     p->a.column_stride, b, p->b.row_stride, p->b.column_stride, &beta, c,
                     p->c.row_stride, p->c.column_stride, NULL, &runtime);
    }
}

static void run_tiles(int64_t begin, int64_t end, void *context) {
    const product *p = context;
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t i = tile / p->tiles_n * p->tile_m, j = tile % p->tiles_n * p->tile_n;
        run_tile(p, i, smaller(p->tile_m, p->m - i), j, smaller(p->tile_n, p->n - j));
    }
}

/* ---- The tiles ---- */

static void set_tiles(product *p, int64_t tile_m, int64_t tile_n) {
    p->tile_m = tile_m;
    p->tile_n = tile_n;
    p->tiles_m = ceil_divide(p->m, tile_m);
    p->tiles_n = ceil_divide(p->n, tile_n);
}

/* The least common multiple of the sides of BLIS's register block on this processor. */
static int64_t grid_unit(wg_dtype dtype) {
    num_t type = dtype == WG_F32 ? BLIS_FLOAT : BLIS_DOUBLE;
    cntx_t *kernels = bli_gks_query_cntx();
    int64_t height = bli_cntx_get_blksz_def_dt(type, BLIS_MR, kernels);
    int64_t width = bli_cntx_get_blksz_def_dt(type, BLIS_NR, kernels);
    int64_t unit = height;
    while (unit % width)
        unit += height;
    return unit;
}

/* The time of the grid that p has, in multiply-adds: that of the busiest thread, and a share of one
 * tile's, by which threads that other programs hold up are waited for. Each tile packs its parts of
 * A and B. */
static double grid_time(const product *p, int threads) {
    const double packing = 12, waiting = 0.25;
    double tiles = (double)p->tiles_m * p->tiles_n;
    double mean = ((double)p->m * p->n + packing * (p->m * p->tiles_n + p->n * p->tiles_m)) / tiles;
    double largest = (double)p->tile_m * p->tile_n + packing * (p->tile_m + p->tile_n);
    return (double)p->k * (mean * ceil(tiles / threads) + waiting * largest);
}

/* The quickest of the grids that cut either side into up to 4 parts a thread. */
static void choose_grid(product *p, int threads) {
    int64_t unit = grid_unit(p->dtype);
    int64_t units_m = ceil_divide(p->m, unit), units_n = ceil_divide(p->n, unit);
    int64_t most = 4 * (int64_t)threads;
    double best = INFINITY;
    product chosen = *p;
    for (int64_t parts_m = 1; parts_m <= smaller(most, units_m); parts_m++) {
        for (int64_t parts_n = 1; parts_n <= smaller(most, units_n); parts_n++) {
            set_tiles(p, ceil_divide(units_m, parts_m) * unit,
                      ceil_divide(units_n, parts_n) * unit);
            double time = grid_time(p, threads);
            if (time < best) {
                best = time;
                chosen = *p;
            }
        }
    }
    *p = chosen;
}

/* Without packing, rows of A against columns of B are dot products, which are slow when short. */
static bool small_packs(const product *p) {
    bool dots = p->a.column_stride == 1 && p->b.row_stride == 1 && p->b.column_stride != 1;
    return dots && p->k <= 128 && p->m >= SKINNY && p->n >= SKINNY;
}

static void run(product *p) {
    if (p->m == 0 || p->n == 0)
        return;
    wg__product_flops += 2 * (double)p->m * (double)p->n * (double)p->k;
    if (wg__gemm_is_small(p->m, p->n, p->k, p->a, p->b, p->c)) {
        if (p->row)
            fill_rows(p, 0, p->m, 0, p->n);
        wg__gemm_small(p->dtype, p->m, p->n, p->k, p->alpha, p->a, p->b, p->row ? 1 : p->beta,
                       p->c);
        return;
    }
    p->a = with_valid_strides(p->a, p->m, p->k);
    p->b = with_valid_strides(p->b, p->k, p->n);
    p->c = with_valid_strides(p->c, p->m, p->n);
    p->packs = small_packs(p);
    set_tiles(p, p->m, p->n);
    double multiply_adds = (double)p->m * p->n * p->k;
    if (multiply_adds > SMALL) {
        int threads = wg__gemm_threads(multiply_adds);
        p->packs = smaller(p->m, p->n) >= SKINNY;
        if (!p->packs)
            set_tiles(p, smaller(p->m, STRIP), smaller(p->n, STRIP));
        else if (threads > 1)
            choose_grid(p, threads);
    }
    wg__parallel_tasks(p->tiles_m * p->tiles_n, run_tiles, p);
}

void wg__gemm(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
              wg__matrix b, double beta, wg__matrix c) {
    if (!wg_dtype_is_float(dtype)) {
        wg__gemm_integer(dtype, m, n, k, alpha, a, b, beta, c);
        return;
    }
    product p = {.dtype = dtype,
                 .m = m,
                 .n = n,
                 .k = k,
                 .alpha = alpha,
                 .beta = beta,
                 .a = a,
                 .b = b,
                 .c = c};
    run(&p);
}

void wg__gemm_plus_row(wg_dtype dtype, int64_t m, int64_t n, int64_t k, wg__matrix a, wg__matrix b,
                       const void *row, wg__matrix c) {
    product p = {
        .dtype = dtype, .m = m, .n = n, .k = k, .alpha = 1, .a = a, .b = b, .c = c, .row = row};
    run(&p);
}
