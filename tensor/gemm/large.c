/* Large products.
 *
 *            B, packed in blocks of columns, by one worker each
 *           +---+---+---+
 *     A     |   |   |   |     k is cut into pieces, and C accumulates one piece after the other.
 *    +---+  +---+---+---+     The operand with the shorter side (here A) is packed first, a few
 *    |   |  |   |   |   |     pieces at a time, and shared by all workers. The other operand is
 *    +---+  +---+---+---+     packed block by block by the worker that multiplies the block. Each
 *    |   |  |   |   |   |     operand is packed once; where the kernel can read A unpacked, A is
 *    +---+  +---+---+---+     not packed at all.
 *
 * A block and a CHUNK of A stay in the L2 cache of a core, and one sliver of the block, as wide as
 * a tile, in its L1 cache.
 *
 * The next block is prefetched from memory while this one is multiplied: packing an operand that is
 * in no cache takes two to three times as long. `row` is added to the tiles of the first piece, so
 * a product of one piece writes C once and does not read it.
 *
 * Workers pack the shared operand together; then each takes the next free block until none is left.
 * The pieces depend on k alone, and the order of a tile's sums on the pieces alone, so the bits are
 * the same at any number of threads.
 *
 * The kernel is compiled for several instruction sets (tensor/simd/products.h). It reads A one
 * number at a time, at any stride, so in most products of a training step only the weight, the
 * smaller operand, is packed:
 *
 *     B, packed: a panel of whole vectors      +---+
 *                                              |   |
 *     A, in place, if its rows are contiguous  +---+
 *     (else packed as B is)             +---+  +---+
 *                                       |   |  | C |
 *                                       +---+  +---+
 */
#include "tensor/gemm/large.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "tensor/iter.h"
#include "tensor/kernels.h"

/* The longest piece of k, in elements of f32; of f64 it is half as long. */
enum { PIECE = 384 };
static_assert(PIECE <= WG__MOST_GATHERED, "a gathered part holds a piece");

/* The sizes of a worker's block, of a chunk of A, and about of the packed shared operand. */
enum { BLOCK_BYTES = 288 << 10, CHUNK_BYTES = 288 << 10, SHARED_BYTES = 4 << 20 };

/* The fewest rows of A, or columns of B, in a block. */
enum { FEWEST_OF_A = 48, FEWEST_OF_B = 32 };

/* The sizes of most workspaces, so that each gets the memory of the last one of its size, which is
 * still in the cache. */
static const int64_t workspace_sizes[] = {128 << 10, 640 << 10, 5 << 20};

/* Addresses a multiple of SAME_LINES bytes apart compete for the same few lines of the cache. */
enum { CACHE_LINE = 64, SAME_LINES = 2048, WORD = 4 };

/* About the bytes that a thread packs of the shared operand at a time. */
enum { PACK_BYTES = 32 << 10 };

/* How far beyond the end of a packed sliver a kernel may read. */
enum { SLIVER_ROOM = 64 };

/* ---- Parts of products ---- */

/* The dtype in which an operand is stored. */
static wg_dtype dtype_of_operand(const wg__product *product, bool of_a) {
    return (of_a ? product->a_is_bf16 : product->b_is_bf16) ? WG_BF16 : product->dtype;
}

wg__product wg__product_part(const wg__product *product, int64_t i, int64_t m, int64_t j,
                             int64_t n) {
    wg__product part = *product;
    part.m = m;
    part.n = n;
    part.a = wg__matrix_at(dtype_of_operand(product, true), part.a, i, 0);
    part.b = wg__matrix_at(dtype_of_operand(product, false), part.b, 0, j);
    part.c = wg__matrix_at(part.dtype, part.c, i, j);
    if (part.row)
        part.row = (const char *)part.row + j * (int64_t)wg_dtype_size(part.dtype);
    return part;
}

wg__product wg__product_transposed(const wg__product *product) {
    wg__product p = *product;
    p.m = product->n;
    p.n = product->m;
    p.a = wg__transposed(product->b);
    p.b = wg__transposed(product->a);
    p.c = wg__transposed(product->c);
    p.a_is_bf16 = product->b_is_bf16;
    p.b_is_bf16 = product->a_is_bf16;
    return p;
}

void wg__product_place_row(wg__product *product) {
    const size_t size = wg_dtype_size(product->dtype);
    if (!product->row)
        return;
    for (int64_t i = 0; i < product->m; i++) {
        const wg__matrix c = wg__matrix_at(product->dtype, product->c, i, 0);
        if (c.column_stride == 1)
            memcpy(c.data, product->row, (size_t)product->n * size);
        else
            for (int64_t j = 0; j < product->n; j++)
                memcpy(wg__matrix_at(product->dtype, c, 0, j).data,
                       (const char *)product->row + (size_t)j * size, size);
    }
    product->row = NULL;
    product->beta = 1;
}

/* ---- Kernels ---- */

/* The largest tile: as many rows as columns. */
enum { MOST_WIDTH_BYTES = WG__PANEL_VECTORS * 64, MOST_WIDTH = MOST_WIDTH_BYTES / 4 };

wg__gemm_kernel wg__gemm_kernel_of_panels(wg_dtype dtype) {
    const wg__simd *simd = wg__simd_for(dtype);
    const int64_t panel = WG__PANEL_VECTORS * simd->lanes;
    return (wg__gemm_kernel){.dtype = dtype, .a_width = panel, .b_width = panel, .simd = simd};
}

/* Slivers of A are two tiles high, but for tiles as high as MOST_WIDTH. */
wg__gemm_kernel wg__gemm_kernel_of_bf16(const wg__bf16_kernels *kernels) {
    return (wg__gemm_kernel){.dtype = WG_F32,
                             .a_width = wg__smaller(2 * kernels->tile_rows, MOST_WIDTH),
                             .b_width = kernels->columns,
                             .rounded = kernels};
}

/* What a thread does before and after its products. */
static void begin_tiles(const wg__gemm_kernel *kernel) {
    if (kernel->rounded && kernel->rounded->begin)
        kernel->rounded->begin();
}

static void end_tiles(const wg__gemm_kernel *kernel) {
    if (kernel->rounded && kernel->rounded->end)
        kernel->rounded->end();
}

/* ---- A product in blocks ---- */

typedef struct blocks {
    wg__product product;
    wg__gemm_kernel kernel;
    int64_t size;                    /* of an element of C */
    bool gathers_a, gathers_b;       /* that operand is read by product.gather */
    bool a_stands;                   /* A is read in place, unpacked */
    bool packs_along;                /* rows of A stay rows, of words (kernel.rounded) */
    bool shares_a;                   /* A is the shared operand, otherwise B */
    int64_t piece, pieces;           /* the length of a piece of k, and their number */
    int64_t first_piece, last_piece; /* the pieces in `shared` */
    char *shared;
    int64_t slivers;      /* of the operand that is not shared */
    int64_t fewest, most; /* slivers in a block */
    int threads;
    char *workspaces;
    int64_t workspace_bytes; /* of one worker */
    atomic_int_fast64_t next_sliver;
} blocks;

/* ---- Slivers ---- */

static int64_t width_of(const blocks *p, bool of_a) {
    return of_a ? p->kernel.a_width : p->kernel.b_width;
}

static bool is_packed(const blocks *p, bool of_a) {
    return !of_a || !p->a_stands;
}

static int64_t source_size(const blocks *p, bool of_a) {
    return (int64_t)wg_dtype_size(dtype_of_operand(&p->product, of_a));
}

/* The words of a piece of k, of a packed vector (kernel.rounded). */
static int64_t words_of(const blocks *p, int64_t k) {
    const wg__bf16_kernels *rounded = p->kernel.rounded;
    return wg__ceil_divide(k, 2 * rounded->block_pairs) * rounded->block_pairs *
           rounded->pair_bytes / WORD;
}

/* The words from one packed row of A to the next: rows do not compete for lines of the cache. */
static int64_t words_along(const blocks *p) {
    return words_of(p, p->piece) + CACHE_LINE / WORD;
}

static int64_t sliver_bytes(const blocks *p, bool of_a) {
    const int64_t width = width_of(p, of_a);
    const int64_t bytes = !p->kernel.rounded       ? width * p->piece * p->size
                          : of_a && p->packs_along ? width * words_along(p) * WORD
                                                   : width * words_of(p, p->piece) * WORD;
    return wg__ceil_divide(bytes, CACHE_LINE) * CACHE_LINE + SLIVER_ROOM;
}

static int64_t side(const blocks *p, bool of_a) {
    return of_a ? p->product.m : p->product.n;
}

static int64_t piece_length(const blocks *p, int64_t piece) {
    return wg__smaller(p->piece, p->product.k - piece * p->piece);
}

/* The part of an operand in some slivers and one piece: `count` vectors of k elements. */
typedef struct source {
    const char *data;
    int64_t count, k, stride, k_stride; /* the strides are in elements */
} source;

static bool is_gathered(const blocks *p, bool of_a) {
    return of_a ? p->gathers_a : p->gathers_b;
}

/* No source for a gathered operand, so that nothing is prefetched. */
static source source_of(const blocks *p, bool of_a, int64_t sliver, int64_t slivers,
                        int64_t piece) {
    if (is_gathered(p, of_a))
        return (source){0};
    const int64_t width = width_of(p, of_a), begin = sliver * width;
    const int64_t l = piece * p->piece;
    const wg_dtype dtype = dtype_of_operand(&p->product, of_a);
    const wg__matrix x = of_a ? wg__matrix_at(dtype, p->product.a, begin, l)
                              : wg__matrix_at(dtype, p->product.b, l, begin);
    return (source){.data = x.data,
                    .count = wg__smaller(slivers * width, side(p, of_a) - begin),
                    .k = piece_length(p, piece),
                    .stride = of_a ? x.row_stride : x.column_stride,
                    .k_stride = of_a ? x.column_stride : x.row_stride};
}

static void pack_source(const blocks *p, bool of_a, source x, char *to) {
    const wg__gemm_kernel *kernel = &p->kernel;
    if (kernel->rounded) {
        const bool along = of_a && p->packs_along;
        kernel->rounded->pack_operand(
            x.count, x.k,
            &(wg__bf16_operand){x.data, of_a ? p->product.a_is_bf16 : p->product.b_is_bf16,
                                x.stride, x.k_stride},
            along, along ? words_along(p) : width_of(p, of_a), to);
    } else if (x.stride == 1 && x.count == kernel->b_width)
        kernel->simd->products.pack_rows(x.k, x.count, x.data, x.k_stride, 1, to);
    else
        kernel->simd->products.pack_columns(x.count, x.k, x.data, x.stride, x.k_stride, to);
}

/* Vectors of contiguous elements are gathered into a buffer in the L1 cache and packed from
 * there. */
static void gather_sliver(const blocks *p, bool of_a, int64_t sliver, int64_t piece, char *to) {
    _Alignas(CACHE_LINE) char buffer[(PIECE + 1) * MOST_WIDTH_BYTES + SLIVER_ROOM];
    const wg__gather *gather = p->product.gather;
    const int64_t width = width_of(p, of_a), begin = sliver * width, l = piece * p->piece;
    const int64_t count = wg__smaller(width, side(p, of_a) - begin);
    const int64_t k = piece_length(p, piece);
    if (gather->down) {
        gather->read(gather->context, l, k, begin, count, k, buffer);
        pack_source(p, of_a, (source){buffer, count, k, k, 1}, to);
        return;
    }
    if (count < width)
        memset(to, 0, (size_t)(k * width * p->size));
    gather->read(gather->context, l, k, begin, count, width, to);
}

static void pack_slivers(const blocks *p, bool of_a, int64_t sliver, int64_t slivers, int64_t piece,
                         char *to) {
    for (int64_t i = 0; i < slivers; i++, to += sliver_bytes(p, of_a))
        if (is_gathered(p, of_a))
            gather_sliver(p, of_a, sliver + i, piece, to);
        else
            pack_source(p, of_a, source_of(p, of_a, sliver + i, 1, piece), to);
}

static int64_t shared_slivers(const blocks *p) {
    return wg__ceil_divide(side(p, p->shares_a), width_of(p, p->shares_a));
}

static char *shared_sliver(const blocks *p, int64_t sliver, int64_t piece) {
    int64_t number = (piece - p->first_piece) * shared_slivers(p) + sliver;
    return p->shared + number * sliver_bytes(p, p->shares_a);
}

/* ---- Prefetching ---- */

/* A source that is being prefetched: lines of `bytes`, fetched at_once cache lines at a time. */
typedef struct ahead {
    const char *line;
    int64_t lines, bytes,
        stride; /* the lines left, their size, and from one to the next in bytes */
    int64_t at; /* bytes of this line that were fetched */
    int64_t at_once;
} ahead;

static ahead fetch_in(int64_t times, source x, int64_t size) {
    const bool along_k = x.k_stride < x.stride;
    ahead next = {.line = x.data,
                  .lines = along_k ? x.count : x.k,
                  .bytes = (along_k ? x.k * x.k_stride : x.count * x.stride) * size,
                  .stride = (along_k ? x.stride : x.k_stride) * size};
    next.at_once = wg__ceil_divide(next.lines * (1 + next.bytes / CACHE_LINE), times);
    return next;
}

static void fetch_some(ahead *next) {
    for (int64_t i = 0; i < next->at_once && next->lines > 0; i++) {
        __builtin_prefetch(next->line + next->at, 0, 2);
        next->at += CACHE_LINE;
        if (next->at >= next->bytes) {
            next->at = 0;
            next->line += next->stride;
            next->lines--;
        }
    }
}

/* Packs some of the shared slivers, and prefetches those that are packed next. */
static void pack_shared(int64_t begin, int64_t end, void *context) {
    const blocks *p = context;
    const int64_t slivers = shared_slivers(p), count = (p->last_piece - p->first_piece) * slivers;
    for (int64_t i = begin; i < end; i++) {
        const int64_t piece = p->first_piece + i / slivers, later = i + 1;
        if (later < count) {
            ahead next = fetch_in(
                1, source_of(p, p->shares_a, later % slivers, 1, p->first_piece + later / slivers),
                source_size(p, p->shares_a));
            fetch_some(&next);
        }
        pack_slivers(p, p->shares_a, i % slivers, 1, piece, shared_sliver(p, i % slivers, piece));
    }
}

/* ---- Tiles ---- */

/* Slivers that make a block or a chunk. */
typedef struct range {
    int64_t first, slivers;
} range;

/* What each tile prefetches a part of: the next block and, if A is read in place, the next chunk.
 */
typedef struct coming {
    ahead block, chunk;
} coming;

/* to = factor from, m by n elements. */
static void copy_scaled(wg_dtype dtype, int64_t m, int64_t n, double factor, wg__matrix from,
                        wg__matrix to) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const void *x = wg__matrix_at(dtype, from, i, j).data;
            void *y = wg__matrix_at(dtype, to, i, j).data;
            if (dtype == WG_F32)
                *(float *)y = (float)factor * *(const float *)x;
            else
                *(double *)y = factor * *(const double *)x;
        }
}

static void multiply_panels(const wg__gemm_kernel *kernel, const wg__panel_product *tile) {
    (kernel->rounded ? kernel->rounded->rounded_product : kernel->simd->products.panel)(tile);
}

/* Computes a tile that the kernel cannot write into C: C has no room for whole vectors, its columns
 * are not adjacent, or beta is neither 0 nor 1. */
static void multiply_odd_tile(const wg__gemm_kernel *kernel, const wg__product *p,
                              wg__panel_product tile) {
    _Alignas(CACHE_LINE) char whole[MOST_WIDTH * MOST_WIDTH_BYTES];
    const wg__matrix c = {whole, kernel->b_width, 1};
    const wg__matrix added = p->row ? (wg__matrix){(void *)p->row, 0, 1} : p->c;
    if (tile.d)
        copy_scaled(p->dtype, p->m, p->n, p->row ? 1 : p->beta, added, c);
    tile.d = tile.d ? whole : NULL;
    tile.c = whole;
    tile.d_row = tile.c_row = c.row_stride;
    multiply_panels(kernel, &tile);
    copy_scaled(p->dtype, p->m, p->n, 1, c, p->c);
}

static int64_t lanes_of(const wg__gemm_kernel *kernel) {
    return kernel->rounded ? kernel->rounded->columns / WG__PANEL_VECTORS : kernel->simd->lanes;
}

static wg__panel_product panel_product_of(const blocks *p, const wg__product *tile) {
    const wg__gemm_kernel *kernel = &p->kernel;
    const int64_t a_row = p->packs_along ? words_along(p) : 1;
    const int64_t a_column = p->packs_along ? 1 : kernel->a_width;
    return (wg__panel_product){.n = tile->n,
                               .k = kernel->rounded ? wg__ceil_divide(tile->k, 2) : tile->k,
                               .alpha = tile->alpha,
                               .a_row = p->a_stands ? tile->a.row_stride : a_row,
                               .a_column = p->a_stands ? tile->a.column_stride : a_column,
                               .b = tile->b.data,
                               .b_row = kernel->b_width,
                               .d_row = tile->row ? 0 : tile->c.row_stride,
                               .c_row = tile->c.row_stride};
}

/* Multiplies some slivers of A, packed at `a` unless A is read in place, by a sliver of B, packed
 * at `b`. */
static void multiply_sliver(const blocks *p, int64_t piece, const char *a, range of_a,
                            const char *b, int64_t j, coming *next) {
    const wg__product *all = &p->product;
    const wg__gemm_kernel *kernel = &p->kernel;
    const int64_t rows = kernel->a_width, begin = of_a.first * rows;
    const int64_t end = wg__smaller(begin + of_a.slivers * rows, all->m);
    wg__product tile =
        wg__product_part(all, begin, end - begin, j, wg__smaller(kernel->b_width, all->n - j));
    tile.a = p->a_stands ? wg__matrix_at(all->dtype, tile.a, 0, piece * p->piece)
                         : (wg__matrix){.data = (void *)a};
    tile.b.data = (void *)b;
    tile.k = piece_length(p, piece);
    if (piece > 0) {
        tile.beta = 1;
        tile.row = NULL;
    }
    const bool adds = tile.row || tile.beta != 0;
    const bool writes_c = tile.n % lanes_of(kernel) == 0 && tile.c.column_stride == 1 &&
                          (tile.row || tile.beta == 0 || tile.beta == 1);
    const int64_t a_bytes =
        p->a_stands ? rows * all->a.row_stride * p->size : sliver_bytes(p, true);
    wg__panel_product panel = panel_product_of(p, &tile);
    for (int64_t i = begin; i < end; i += rows) {
        tile.m = panel.m = wg__smaller(rows, end - i);
        panel.a = tile.a.data;
        panel.c = tile.c.data;
        panel.d = !adds ? NULL : tile.row ? tile.row : tile.c.data;
        fetch_some(&next->block);
        fetch_some(&next->chunk);
        if (writes_c)
            multiply_panels(kernel, &panel);
        else
            multiply_odd_tile(kernel, &tile, panel);
        tile.a.data = (char *)tile.a.data + a_bytes;
        tile.c.data = (char *)tile.c.data + rows * all->c.row_stride * p->size;
    }
}

static int64_t chunks_of_a(const blocks *p) {
    return wg__ceil_divide(shared_slivers(p), 1 + (CHUNK_BYTES - 1) / sliver_bytes(p, true));
}

static range chunk_of_a(const blocks *p, int64_t chunk) {
    const int64_t slivers = shared_slivers(p), chunks = chunks_of_a(p);
    const int64_t first = chunk * slivers / chunks;
    return (range){first, (chunk + 1) * slivers / chunks - first};
}

/* The chunk to prefetch: the one that is read after this one, if A is read in place by columns. The
 * processor itself prefetches contiguous rows. */
static source chunk_after(const blocks *p, int64_t piece, int64_t chunk) {
    const bool same_piece = chunk + 1 < chunks_of_a(p);
    const bool in_cache = p->pieces == 1 && chunks_of_a(p) == 1;
    if (!p->a_stands || p->product.a.column_stride == 1 || in_cache)
        return (source){0};
    const range next = chunk_of_a(p, same_piece ? chunk + 1 : 0);
    const int64_t next_piece = same_piece ? piece : piece + 1 < p->last_piece ? piece + 1 : 0;
    return source_of(p, true, next.first, next.slivers, next_piece);
}

/* Computes all tiles of a packed block of B. */
static void multiply_columns_of_b(const blocks *p, int64_t piece, range now, const char *block,
                                  source then) {
    const int64_t chunks = chunks_of_a(p);
    coming next = {.block = fetch_in(shared_slivers(p) * now.slivers, then, source_size(p, false))};
    for (int64_t c = 0; c < chunks; c++) {
        const range chunk = chunk_of_a(p, c);
        next.chunk = fetch_in(chunk.slivers * now.slivers, chunk_after(p, piece, c), p->size);
        for (int64_t t = 0; t < now.slivers; t++)
            multiply_sliver(p, piece, p->a_stands ? NULL : shared_sliver(p, chunk.first, piece),
                            chunk, block + t * sliver_bytes(p, false),
                            (now.first + t) * p->kernel.b_width, &next);
    }
}

/* Computes all tiles of a block of A. */
static void multiply_rows_of_a(const blocks *p, int64_t piece, range now, const char *block,
                               source then) {
    const int64_t of_b = shared_slivers(p);
    coming next = {.block = fetch_in(of_b * now.slivers, then, source_size(p, true))};
    for (int64_t s = 0; s < of_b; s++)
        multiply_sliver(p, piece, block, now, shared_sliver(p, s, piece), s * p->kernel.b_width,
                        &next);
}

/* The block that begins at sliver `first`. Blocks shrink as fewer slivers are left, so that workers
 * finish at about the same time. */
static range block_at(const blocks *p, int64_t first) {
    const int64_t left = p->slivers - first, share = wg__ceil_divide(left, 2 * p->threads);
    return (range){first, wg__smaller(wg__larger(p->fewest, wg__smaller(share, p->most)), left)};
}

/* Takes the next free block; it has no slivers if none is left. */
static range take_block(blocks *p) {
    int64_t first = atomic_load(&p->next_sliver);
    range block;
    do {
        block = block_at(p, first);
    } while (!atomic_compare_exchange_weak(&p->next_sliver, &first, first + block.slivers));
    return block;
}

/* What to prefetch during this piece of a block: its next piece, or else the first piece of the
 * next free block. Another worker may take that block, but the cores share a cache. */
static source block_after(const blocks *p, range now, int64_t piece) {
    if (piece + 1 < p->last_piece)
        return source_of(p, !p->shares_a, now.first, now.slivers, piece + 1);
    const range free = block_at(p, atomic_load(&p->next_sliver));
    return free.slivers > 0 ? source_of(p, !p->shares_a, free.first, free.slivers, p->first_piece)
                            : (source){0};
}

static void multiply_blocks(int64_t begin, int64_t end, void *context) {
    blocks *p = context;
    begin_tiles(&p->kernel);
    for (int64_t worker = begin; worker < end; worker++) {
        const bool of_a = !p->shares_a;
        char *block = p->workspaces + worker * p->workspace_bytes;
        for (range now; (now = take_block(p)).slivers > 0;)
            for (int64_t piece = p->first_piece; piece < p->last_piece; piece++) {
                if (is_packed(p, of_a))
                    pack_slivers(p, of_a, now.first, now.slivers, piece, block);
                const source then = block_after(p, now, piece);
                (of_a ? multiply_rows_of_a : multiply_columns_of_b)(p, piece, now, block, then);
            }
    }
    end_tiles(&p->kernel);
}

/* ---- A product ---- */

/* The kernel wants the rows of C contiguous: transposes the product where only its columns are. */
static void orient(blocks *blocks) {
    wg__product *p = &blocks->product;
    const bool stays = p->c.column_stride == 1 || p->c.row_stride != 1;
    blocks->gathers_a = p->gather && !stays;
    blocks->gathers_b = p->gather && stays;
    if (stays)
        return;
    wg__product_place_row(p); /* transposed, the row would be a column */
    *p = wg__product_transposed(p);
}

/* True if A can be read in place as fast as packed: its rows are contiguous, or its columns are and
 * do not all compete for the same few lines of the cache. */
static bool stands_well(const wg__product *p) {
    const int64_t bytes = p->a.column_stride * (int64_t)wg_dtype_size(p->dtype);
    return p->a.column_stride == 1 || (p->a.row_stride == 1 && bytes % SAME_LINES != 0);
}

static void set_blocks(blocks *p) {
    const bool of_a = !p->shares_a;
    const int64_t bytes = sliver_bytes(p, of_a), width = width_of(p, of_a);
    p->slivers = wg__ceil_divide(side(p, of_a), width);
    p->fewest = wg__ceil_divide(of_a ? FEWEST_OF_A : FEWEST_OF_B, width);
    p->most = wg__smaller(1 + (BLOCK_BYTES - 1) / bytes, p->slivers);
    p->workspace_bytes = wg__larger(p->most, wg__smaller(p->fewest, p->slivers)) * bytes;
    if (!is_packed(p, of_a))
        p->workspace_bytes = 0;
}

/* The size of a workspace that is to have so many bytes at least. */
static int64_t workspace_size(int64_t bytes) {
    for (size_t i = 0; i < sizeof workspace_sizes / sizeof *workspace_sizes; i++)
        if (bytes <= workspace_sizes[i])
            return workspace_sizes[i];
    return bytes;
}

/* If there is no memory for workspaces: computes one tile at a time, with the same bits. */
static void multiply_tile_by_tile(blocks *p) {
    _Alignas(CACHE_LINE) char a[2 * ((PIECE + CACHE_LINE / WORD) * MOST_WIDTH_BYTES + SLIVER_ROOM)];
    char *b = a + sliver_bytes(p, true);
    const int64_t rows = p->kernel.a_width, columns = p->kernel.b_width;
    begin_tiles(&p->kernel);
    for (int64_t piece = 0; piece < p->pieces; piece++)
        for (int64_t i = 0; i * rows < p->product.m; i++)
            for (int64_t j = 0; j * columns < p->product.n; j++) {
                if (is_packed(p, true))
                    pack_slivers(p, true, i, 1, piece, a);
                pack_slivers(p, false, j, 1, piece, b);
                multiply_sliver(p, piece, a, (range){i, 1}, b, j * columns, &(coming){0});
            }
    end_tiles(&p->kernel);
}

void wg__gemm_large(const wg__product *product, wg__gemm_kernel kernel) {
    const double multiply_adds = (double)product->m * (double)product->n * (double)product->k;
    blocks p = {.product = *product,
                .kernel = kernel,
                .size = (int64_t)wg_dtype_size(product->dtype),
                .threads = wg__gemm_threads(multiply_adds)};
    orient(&p);
    p.a_stands = !kernel.rounded && !p.gathers_a && stands_well(&p.product);
    p.shares_a = p.product.m <= p.product.n;
    p.packs_along =
        kernel.rounded && (kernel.rounded->packs_along || p.product.a.column_stride == 1);
    const int64_t packed = kernel.rounded ? kernel.rounded->pair_bytes / 2 : p.size;
    p.pieces = wg__ceil_divide(p.product.k, PIECE * WORD / packed);
    p.piece = wg__ceil_divide(p.product.k, p.pieces);
    if (kernel.rounded) { /* a block of pairs is of one piece */
        const int64_t block = 2 * kernel.rounded->block_pairs;
        p.piece = wg__ceil_divide(p.piece, block) * block;
    }
    p.pieces = wg__ceil_divide(p.product.k, p.piece);
    set_blocks(&p);
    const int64_t piece_bytes = shared_slivers(&p) * sliver_bytes(&p, p.shares_a);
    const bool shares = is_packed(&p, p.shares_a);
    const int64_t at_once =
        shares ? wg__smaller(1 + (SHARED_BYTES - 1) / piece_bytes, p.pieces) : p.pieces;
    const int64_t shared_bytes = shares ? at_once * piece_bytes : 0;
    const int64_t workers = wg__smaller(p.threads, p.slivers);
    const int64_t bytes = shared_bytes + workers * p.workspace_bytes;
    p.shared = wg__try_alloc((size_t)workspace_size(bytes));
    if (!p.shared) {
        multiply_tile_by_tile(&p);
        return;
    }
    p.workspaces = p.shared + shared_bytes;
    for (p.first_piece = 0; p.first_piece < p.pieces; p.first_piece = p.last_piece) {
        p.last_piece = wg__smaller(p.first_piece + at_once, p.pieces);
        if (shares)
            wg__parallel_for((p.last_piece - p.first_piece) * shared_slivers(&p),
                             wg__ceil_divide(PACK_BYTES, sliver_bytes(&p, p.shares_a)), pack_shared,
                             &p);
        atomic_store(&p.next_sliver, 0);
        wg__parallel_for(workers, 1, multiply_blocks, &p);
    }
    wg__free(p.shared);
}
