/* Matrix products.
 *
 *     tiny, or with a vector     gemm_small.c
 *     all others                 tiles of C, which tensor/simd/tiles.h makes of packed slivers:
 *
 *            B, packed by blocks of columns, a block to a worker
 *           +---+---+---+
 *     A     |   |   |   |     k is cut into pieces of PIECE, and C takes the sums of one after the
 *    +---+  +---+---+---+     other. The operand with the shorter side (here A) is packed first,
 *    |   |  |   |   |   |     for a few pieces at a time, and shared; the other one in blocks that
 *    +---+  +---+---+---+     stay in a processor's own cache, each by the worker that needs it.
 *    |   |  |   |   |   |     Either is packed just once.
 *    +---+  +---+---+---+
 *
 * Workers take the next block that is free and never wait for each other within a product but for
 * the shared operand. The pieces depend on k alone, and how a tile comes about on nothing else: the
 * same bits come at any number of threads. */
#include "tensor/gemm.h"

#include <stdatomic.h>
#include <string.h>

#include "tensor/gemm_integer.h"
#include "tensor/gemm_small.h"
#include "tensor/internal.h"
#include "tensor/iter.h"
#include "tensor/simd/simd.h"

/* The longest piece of k, in elements of f32; of f64 it is half as long. */
enum { PIECE = 384 };

/* Of a worker's block of slivers, and about of the shared operand. */
enum { BLOCK_BYTES = 320 << 10, SHARED_BYTES = 4 << 20 };

/* What products of up to that size ask for: so they get the memory that the last one used, which is
 * in the cache still. */
static const int64_t usual_bytes[] = {256 << 10, 1 << 20, 8 << 20};

typedef struct product {
    const wg__simd *simd;
    wg_dtype dtype;
    int64_t size; /* of an element */
    int64_t m, n, k;
    double alpha, beta;
    wg__matrix a, b, c;
    const void *row;       /* if not NULL, what each row of C starts from */
    bool shares_a;         /* else B is the operand that is packed first */
    int64_t piece, pieces; /* of k; of them, in `shared`: */
    int64_t first_piece, last_piece;
    char *shared;
    int64_t slivers, blocks; /* of the other operand */
    char *workspaces;
    int64_t workspace_bytes; /* of one worker */
    atomic_int_fast64_t next;
} product;

_Thread_local double wg__product_flops;

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t ceil_divide(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static char *element(const product *p, wg__matrix matrix, int64_t i, int64_t j) {
    return (char *)matrix.data + (i * matrix.row_stride + j * matrix.column_stride) * p->size;
}

/* ---- Slivers ---- */

static int64_t sliver_width(const product *p, bool of_a) {
    return of_a ? p->simd->tile_rows : p->simd->tile_columns;
}

static int64_t sliver_bytes(const product *p, bool of_a) {
    return ceil_divide(sliver_width(p, of_a) * p->piece * p->size, 64) * 64 + 64;
}

static int64_t side(const product *p, bool of_a) {
    return of_a ? p->m : p->n;
}

static int64_t piece_length(const product *p, int64_t piece) {
    return smaller(p->piece, p->k - piece * p->piece);
}

/* Packs what a sliver, counted along the side of its operand, has in a piece. */
static void pack_sliver(const product *p, bool of_a, int64_t sliver, int64_t piece, char *to) {
    int64_t width = sliver_width(p, of_a), begin = sliver * width, l = piece * p->piece;
    int64_t count = smaller(width, side(p, of_a) - begin), k = piece_length(p, piece);
    if (of_a)
        p->simd->pack_rows(count, k, element(p, p->a, begin, l), p->a.row_stride,
                           p->a.column_stride, to);
    else
        p->simd->pack_columns(count, k, element(p, p->b, l, begin), p->b.column_stride,
                              p->b.row_stride, to);
}

static int64_t shared_slivers(const product *p) {
    return ceil_divide(side(p, p->shares_a), sliver_width(p, p->shares_a));
}

static char *shared_sliver(const product *p, int64_t sliver, int64_t piece) {
    int64_t number = (piece - p->first_piece) * shared_slivers(p) + sliver;
    return p->shared + number * sliver_bytes(p, p->shares_a);
}

static void pack_shared(int64_t begin, int64_t end, void *context) {
    const product *p = context;
    const int64_t slivers = shared_slivers(p);
    for (int64_t i = begin; i < end; i++) {
        int64_t piece = p->first_piece + i / slivers;
        pack_sliver(p, p->shares_a, i % slivers, piece, shared_sliver(p, i % slivers, piece));
    }
}

/* ---- Tiles ---- */

/* Where the elements of a row of C do not lie one after the other, a tile is made beside it. */
static void scatter_tile(const product *p, int64_t i, int64_t m, int64_t j, int64_t n, double beta,
                         const char *tile, int64_t stride) {
    for (int64_t y = 0; y < m; y++)
        for (int64_t x = 0; x < n; x++) {
            char *c = element(p, p->c, i + y, j + x);
            if (p->dtype == WG_F32) {
                float *to = (float *)c, sum = ((const float *)tile)[y * stride + x];
                *to = beta == 0 ? sum : sum + (float)beta * *to;
            } else {
                double *to = (double *)c, sum = ((const double *)tile)[y * stride + x];
                *to = beta == 0 ? sum : sum + beta * *to;
            }
        }
}

static void run_tile(const product *p, int64_t piece, const char *a, int64_t i, const char *b,
                     int64_t j) {
    const wg__simd *simd = p->simd;
    int64_t m = smaller(simd->tile_rows, p->m - i), n = smaller(simd->tile_columns, p->n - j);
    int64_t k = piece_length(p, piece);
    const char *row = piece == 0 && p->row ? (const char *)p->row + j * p->size : NULL;
    double beta = piece == 0 ? p->beta : 1;
    if (p->c.column_stride == 1) {
        simd->product_tile(m, n, k, a, b, p->alpha, beta, row, element(p, p->c, i, j),
                           p->c.row_stride);
        return;
    }
    double tile[WG__TILE_BYTES / sizeof(double)];
    simd->product_tile(m, n, k, a, b, p->alpha, 0, row, tile, simd->tile_columns);
    scatter_tile(p, i, m, j, n, row ? 0 : beta, (const char *)tile, simd->tile_columns);
}

/* All tiles of a packed block of slivers. Of the two operands, it is A's slivers that stay in the
 * nearest cache, or B's, whichever are shared. */
static void run_block(const product *p, int64_t piece, int64_t begin, int64_t slivers,
                      const char *block) {
    const int64_t rows = p->simd->tile_rows, columns = p->simd->tile_columns;
    const int64_t bytes = sliver_bytes(p, !p->shares_a), shared = shared_slivers(p);
    for (int64_t s = 0; s < shared; s++) {
        const char *sliver = shared_sliver(p, s, piece);
        for (int64_t t = 0; t < slivers; t++)
            if (p->shares_a)
                run_tile(p, piece, sliver, s * rows, block + t * bytes, (begin + t) * columns);
            else
                run_tile(p, piece, block + t * bytes, (begin + t) * rows, sliver, s * columns);
    }
}

static void work(int64_t begin, int64_t end, void *context) {
    product *p = context;
    const bool of_a = !p->shares_a;
    for (int64_t worker = begin; worker < end; worker++) {
        char *block = p->workspaces + worker * p->workspace_bytes;
        for (;;) {
            int64_t number = atomic_fetch_add(&p->next, 1);
            if (number >= p->blocks)
                break;
            int64_t first = number * p->slivers / p->blocks;
            int64_t slivers = (number + 1) * p->slivers / p->blocks - first;
            for (int64_t piece = p->first_piece; piece < p->last_piece; piece++) {
                for (int64_t t = 0; t < slivers; t++)
                    pack_sliver(p, of_a, first + t, piece, block + t * sliver_bytes(p, of_a));
                run_block(p, piece, first, slivers, block);
            }
        }
    }
}

/* ---- A product ---- */

static void transpose(product *p) {
    const wg__matrix a = p->a;
    const int64_t m = p->m;
    p->a = (wg__matrix){p->b.data, p->b.column_stride, p->b.row_stride};
    p->b = (wg__matrix){a.data, a.column_stride, a.row_stride};
    p->c = (wg__matrix){p->c.data, p->c.column_stride, p->c.row_stride};
    p->m = p->n;
    p->n = m;
}

static void fill_rows(const product *p) {
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            memcpy(element(p, p->c, i, j), (const char *)p->row + j * p->size, (size_t)p->size);
}

/* Blocks of as many slivers as fit, but the same number of blocks for each thread. */
static void set_blocks(product *p, int threads) {
    const bool of_a = !p->shares_a;
    const int64_t bytes = sliver_bytes(p, of_a), fit = 1 + (BLOCK_BYTES - 1) / bytes;
    p->slivers = ceil_divide(side(p, of_a), sliver_width(p, of_a));
    p->blocks = ceil_divide(ceil_divide(p->slivers, fit), threads) * threads;
    p->blocks = smaller(p->blocks, p->slivers);
    p->workspace_bytes = ceil_divide(p->slivers, p->blocks) * bytes;
}

static void run_packed(product *p, int threads, int64_t pieces_at_once) {
    const int64_t slivers = shared_slivers(p), workers = smaller(threads, p->blocks);
    for (p->first_piece = 0; p->first_piece < p->pieces; p->first_piece = p->last_piece) {
        p->last_piece = smaller(p->first_piece + pieces_at_once, p->pieces);
        const int64_t count = (p->last_piece - p->first_piece) * slivers;
        wg__parallel_for(count, ceil_divide(count, threads), pack_shared, p);
        atomic_store(&p->next, 0);
        wg__parallel_for(workers, 1, work, p);
    }
}

/* Without memory to pack into: a tile at a time, to the same bits. */
static void run_unpacked(product *p) {
    double a[PIECE * WG__TILE_SIDES_BYTES / sizeof(double)];
    char *b = (char *)a + sliver_bytes(p, true);
    const int64_t rows = p->simd->tile_rows, columns = p->simd->tile_columns;
    for (int64_t piece = 0; piece < p->pieces; piece++)
        for (int64_t i = 0; i * rows < p->m; i++)
            for (int64_t j = 0; j * columns < p->n; j++) {
                pack_sliver(p, true, i, piece, (char *)a);
                pack_sliver(p, false, j, piece, b);
                run_tile(p, piece, (const char *)a, i * rows, b, j * columns);
            }
}

static size_t usual(int64_t bytes) {
    for (size_t i = 0; i < sizeof usual_bytes / sizeof *usual_bytes; i++)
        if (bytes <= usual_bytes[i])
            return (size_t)usual_bytes[i];
    return (size_t)bytes;
}

static void run_large(product *p) {
    const int threads = wg__gemm_threads((double)p->m * (double)p->n * (double)p->k);
    const int64_t longest = PIECE * (int64_t)sizeof(float) / p->size;
    p->pieces = p->k <= longest ? 1 : ceil_divide(p->k, longest);
    p->piece = ceil_divide(p->k, p->pieces);
    p->shares_a = p->m <= p->n;
    set_blocks(p, threads);
    const int64_t piece_bytes = shared_slivers(p) * sliver_bytes(p, p->shares_a);
    const int64_t at_once = smaller(1 + SHARED_BYTES / piece_bytes, p->pieces);
    const int64_t workers = smaller(threads, p->blocks);
    p->shared = wg__try_alloc(usual(at_once * piece_bytes + workers * p->workspace_bytes));
    if (!p->shared) {
        run_unpacked(p);
        return;
    }
    p->workspaces = p->shared + at_once * piece_bytes;
    run_packed(p, threads, at_once);
    wg__free(p->shared);
}

static void run(product *p) {
    if (p->m == 0 || p->n == 0)
        return;
    wg__product_flops += 2 * (double)p->m * (double)p->n * (double)p->k;
    p->simd = wg__simd_for(p->dtype);
    p->size = (int64_t)wg_dtype_size(p->dtype);
    if (wg__gemm_is_small(p->dtype, p->m, p->n, p->k, p->a, p->b, p->c)) {
        if (p->row)
            fill_rows(p);
        wg__gemm_small(p->dtype, p->m, p->n, p->k, p->alpha, p->a, p->b, p->row ? 1 : p->beta,
                       p->c);
        return;
    }
    if (p->c.column_stride != 1 && p->c.row_stride == 1) {
        if (p->row) {
            fill_rows(p);
            p->row = NULL;
            p->beta = 1;
        }
        transpose(p);
    }
    run_large(p);
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
