/* Large products of matrices in blocks that fit into the caches.
 *
 *            B, packed in blocks of columns, each by one worker
 *           +---+---+---+
 *     A     |   |   |   |     k is cut into pieces, and C accumulates piece by piece. The operand
 *    +---+  +---+---+---+     with the shorter side (here A) is packed first, a few pieces at a
 *    |   |  |   |   |   |     time, and shared by all workers. The longer operand (here B) is
 *    +---+  +---+---+---+     packed block by block; the worker that packs a block multiplies it.
 *    |   |  |   |   |   |     Each operand is packed once; where the kernel can read A unpacked,
 *    +---+  +---+---+---+     A is not packed at all.
 *
 * A block and a CHUNK of A stay in the L2 cache of a core, and one sliver of the block, as wide as
 * a tile, in its L1 cache.
 *
 * The next block is prefetched from memory while this one is multiplied: packing an operand that is
 * in no cache takes two to three times as long. `row` is added to the tiles of the first piece, so
 * a product with a single piece writes C once and does not read it.
 *
 * Workers pack the shared operand together; then each takes the next free block until none is left.
 * The pieces depend on k alone, and the order of a tile's sums on the pieces alone, so the bits are
 * the same at any number of threads.
 *
 * The kernel (tensor/simd/products.h) reads A one number at a time, at any stride. So in most
 * products of a training step only the weight, the smaller operand, is packed. */
#include "tensor/gemm/gemm.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "tensor/internal.h"

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

/* The largest tile is a square. */
enum { MOST_WIDTH_BYTES = WG__PANEL_VECTORS * 64, MOST_WIDTH = MOST_WIDTH_BYTES / 4 };

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

wg__gemm_kernel wg__gemm_kernel_of_panels(wg_dtype dtype) {
    const wg__simd *simd = wg__simd_for(dtype);
    const int64_t panel = WG__PANEL_VECTORS * simd->lanes;
    return (wg__gemm_kernel){.dtype = dtype,
                             .a_width = panel,
                             .b_width = panel,
                             .lanes = simd->lanes,
                             .multiply = simd->products.panel,
                             .simd = simd};
}

/* Slivers of A are two tiles high, but for tiles as high as MOST_WIDTH. */
wg__gemm_kernel wg__gemm_kernel_of_bf16(const wg__bf16_kernels *kernels) {
    return (wg__gemm_kernel){.dtype = WG_F32,
                             .a_width = wg__smaller(2 * kernels->tile_rows, MOST_WIDTH),
                             .b_width = kernels->columns,
                             .lanes = kernels->columns / WG__PANEL_VECTORS,
                             .multiply = kernels->rounded_product,
                             .rounded = kernels};
}

/* A or B as vectors of k elements: the rows of A, the columns of B. A sliver is `width` of them. */
typedef struct operand {
    const char *data;
    int64_t stride, k_stride;  /* from a vector to the next, and along it, in elements */
    bool is_bf16, is_gathered; /* gathered: read by product.gather */
    bool is_packed;            /* false: A is read in place */
    bool packs_along;          /* rows of A stay rows when they are packed (kernel.rounded) */
    int64_t size;              /* of an element */
    int64_t vectors, width, slivers;
    int64_t packed_stride; /* of a packed sliver: from a vector to the next if it packs along, else
                              from one k to the next; of pairs of k, in words (kernel.rounded) */
    int64_t sliver_bytes;  /* of a packed sliver */
} operand;

typedef struct blocks {
    wg__product product;
    wg__gemm_kernel kernel;
    int64_t size; /* of an element of C */
    operand a, b;
    operand *shared, *blocked;       /* packed by all workers together; in blocks */
    int64_t piece, pieces;           /* the length of a piece of k, and their number */
    int64_t first_piece, last_piece; /* the pieces in `packed` */
    char *packed;                    /* the shared operand, or */
    char *lone;                      /* one sliver of it, packed each time it is read */
    int64_t fewest, most;            /* slivers in a block */
    int64_t chunks;                  /* of A, if it is shared */
    int threads;
    char *workspaces;
    int64_t workspace_bytes; /* of each worker */
    atomic_int_fast64_t next_sliver;
} blocks;

/* Slivers that make a block or a chunk. */
typedef struct range {
    int64_t first, slivers;
} range;

/* The part of an operand in some slivers and one piece: `count` vectors of k elements. */
typedef struct source {
    const char *data;
    int64_t count, k, stride, k_stride; /* the strides are in elements */
} source;

/* No source for a gathered operand, so that nothing is prefetched. */
static source source_of(const blocks *p, const operand *o, range slivers, int64_t piece) {
    const int64_t begin = slivers.first * o->width, l = piece * p->piece;
    if (o->is_gathered)
        return (source){0};
    return (source){.data = o->data + (begin * o->stride + l * o->k_stride) * o->size,
                    .count = wg__smaller(slivers.slivers * o->width, o->vectors - begin),
                    .k = wg__smaller(p->piece, p->product.k - l),
                    .stride = o->stride,
                    .k_stride = o->k_stride};
}

static void pack_source(const blocks *p, const operand *o, source x, char *to) {
    const wg__gemm_kernel *kernel = &p->kernel;
    if (kernel->rounded)
        kernel->rounded->pack_operand(x.count, x.k,
                                      &(wg__bf16_operand){x.data, o->is_bf16, x.stride, x.k_stride},
                                      o->packs_along, o->packed_stride, to);
    else if (x.stride == 1 && x.count == kernel->b_width)
        kernel->simd->products.pack_rows(x.k, x.count, x.data, x.k_stride, 1, to);
    else
        kernel->simd->products.pack_columns(x.count, x.k, x.data, x.stride, x.k_stride, to);
}

/* Gathered vectors of contiguous elements are read into a buffer in the L1 cache and packed from
 * there. */
static void pack_slivers(const blocks *p, const operand *o, range slivers, int64_t piece,
                         char *to) {
    _Alignas(CACHE_LINE) char buffer[(PIECE + 1) * MOST_WIDTH_BYTES + SLIVER_ROOM];
    const wg__gather *gather = o->is_gathered ? p->product.gather : NULL;
    const int64_t l = piece * p->piece, k = wg__smaller(p->piece, p->product.k - l);
    for (int64_t i = slivers.first; i < slivers.first + slivers.slivers; i++) {
        const int64_t begin = i * o->width, count = wg__smaller(o->width, o->vectors - begin);
        if (!gather) {
            pack_source(p, o, source_of(p, o, (range){i, 1}, piece), to);
        } else if (gather->down) {
            gather->read(gather->context, l, k, begin, count, k, buffer);
            pack_source(p, o, (source){buffer, count, k, k, 1}, to);
        } else {
            if (count < o->width)
                memset(to, 0, (size_t)(k * o->width * p->size));
            gather->read(gather->context, l, k, begin, count, o->width, to);
        }
        to += o->sliver_bytes;
    }
}

static char *shared_sliver(const blocks *p, int64_t sliver, int64_t piece) {
    if (p->lone) {
        pack_slivers(p, p->shared, (range){sliver, 1}, piece, p->lone);
        return p->lone;
    }
    const int64_t number = (piece - p->first_piece) * p->shared->slivers + sliver;
    return p->packed + number * p->shared->sliver_bytes;
}

/* Lines of `bytes` that are being prefetched, at_once cache lines at a time. */
typedef struct prefetch {
    const char *line;
    int64_t lines, bytes, stride; /* lines left, their size, from one to the next in bytes */
    int64_t at;                   /* bytes of this line that were fetched */
    int64_t at_once;
} prefetch;

static prefetch fetch_in(int64_t times, source x, int64_t size) {
    const bool along_k = x.k_stride < x.stride;
    prefetch next = {.line = x.data,
                     .lines = along_k ? x.count : x.k,
                     .bytes = (along_k ? x.k * x.k_stride : x.count * x.stride) * size,
                     .stride = (along_k ? x.stride : x.k_stride) * size};
    next.at_once = wg__ceil_divide(next.lines * (1 + next.bytes / CACHE_LINE), times);
    return next;
}

static void fetch_some(prefetch *next) {
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

/* Packs some of the shared slivers, and prefetches the slivers that follow. */
static void pack_shared(int64_t begin, int64_t end, void *context) {
    const blocks *p = context;
    const operand *o = p->shared;
    for (int64_t i = begin; i < end; i++) {
        const int64_t piece = p->first_piece + i / o->slivers, sliver = i % o->slivers;
        const int64_t next_piece = p->first_piece + (i + 1) / o->slivers;
        if (next_piece < p->last_piece) {
            const range next_sliver = {(i + 1) % o->slivers, 1};
            prefetch next = fetch_in(1, source_of(p, o, next_sliver, next_piece), o->size);
            fetch_some(&next);
        }
        pack_slivers(p, o, (range){sliver, 1}, piece, shared_sliver(p, sliver, piece));
    }
}

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

/* Computes a tile that the kernel cannot write into C: C has no room for whole vectors, its columns
 * are not adjacent, or beta is neither 0 nor 1. */
static void multiply_odd_tile(const blocks *p, double beta, const void *row,
                              wg__panel_product tile) {
    _Alignas(CACHE_LINE) char whole[MOST_WIDTH * MOST_WIDTH_BYTES];
    const wg_dtype dtype = p->product.dtype;
    const wg__matrix sums = {whole, p->kernel.b_width, 1};
    const wg__matrix c = {tile.c, p->product.c.row_stride, p->product.c.column_stride};
    if (tile.d)
        copy_scaled(dtype, tile.m, tile.n, row ? 1 : beta,
                    row ? (wg__matrix){(void *)row, 0, 1} : c, sums);
    tile.d = tile.d ? whole : NULL;
    tile.c = whole;
    tile.d_row = tile.c_row = sums.row_stride;
    p->kernel.multiply(&tile);
    copy_scaled(dtype, tile.m, tile.n, 1, sums, c);
}

/* Prefetched in parts, one for each tile: the next block and, if A is read in place, the next
 * chunk. */
typedef struct prefetches {
    prefetch block, chunk;
} prefetches;

/* Multiplies some slivers of A, packed at `a` unless A is read in place, by sliver number `sliver`
 * of B, packed at `b`. */
static void multiply_slivers(const blocks *p, int64_t piece, const char *a, range of_a,
                             const char *b, int64_t sliver, prefetches *next) {
    const wg__product *all = &p->product;
    const operand *rows = &p->a;
    const int64_t i = of_a.first * rows->width, j = sliver * p->b.width;
    const int64_t end = wg__smaller(i + of_a.slivers * rows->width, all->m);
    const int64_t k = wg__smaller(p->piece, all->k - piece * p->piece);
    const int64_t n = wg__smaller(p->b.width, all->n - j);
    const double beta = piece > 0 ? 1 : all->beta;
    const char *row = piece == 0 && all->row ? (const char *)all->row + j * p->size : NULL;
    const bool writes_c =
        n % p->kernel.lanes == 0 && all->c.column_stride == 1 && (row || beta == 0 || beta == 1);
    const char *place = a;
    int64_t a_bytes = rows->sliver_bytes;
    if (!rows->is_packed) {
        place = source_of(p, rows, of_a, piece).data;
        a_bytes = rows->width * rows->stride * p->size;
    }
    wg__panel_product tile = {.n = n,
                              .k = p->kernel.rounded ? wg__ceil_divide(k, 2) : k,
                              .alpha = all->alpha,
                              .a_row = !rows->is_packed    ? rows->stride
                                       : rows->packs_along ? rows->packed_stride
                                                           : 1,
                              .a_column = !rows->is_packed    ? rows->k_stride
                                          : rows->packs_along ? 1
                                                              : rows->packed_stride,
                              .b = b,
                              .b_row = p->b.width,
                              .d_row = row ? 0 : all->c.row_stride,
                              .c_row = all->c.row_stride};
    char *c = wg__matrix_at(all->dtype, all->c, i, j).data;
    for (int64_t left = end - i; left > 0; left -= rows->width) {
        tile.m = wg__smaller(rows->width, left);
        tile.a = place;
        tile.c = c;
        tile.d = row ? row : beta != 0 ? c : NULL;
        fetch_some(&next->block);
        fetch_some(&next->chunk);
        if (writes_c)
            p->kernel.multiply(&tile);
        else
            multiply_odd_tile(p, beta, row, tile);
        place += a_bytes;
        c += rows->width * all->c.row_stride * p->size;
    }
}

static range chunk_of_a(const blocks *p, int64_t chunk) {
    const int64_t first = chunk * p->a.slivers / p->chunks;
    return (range){first, (chunk + 1) * p->a.slivers / p->chunks - first};
}

/* The chunk to prefetch: the next one, if A is read in place by columns. The processor itself
 * prefetches contiguous rows. */
static source chunk_after(const blocks *p, int64_t piece, int64_t chunk) {
    const bool same_piece = chunk + 1 < p->chunks, in_cache = p->pieces == 1 && p->chunks == 1;
    if (p->a.is_packed || p->a.k_stride == 1 || in_cache)
        return (source){0};
    const int64_t next_piece = same_piece ? piece : piece + 1 < p->last_piece ? piece + 1 : 0;
    return source_of(p, &p->a, chunk_of_a(p, same_piece ? chunk + 1 : 0), next_piece);
}

/* The block that begins at sliver `first`. Blocks shrink as fewer slivers are left, so that workers
 * finish at about the same time. */
static range block_at(const blocks *p, int64_t first) {
    const int64_t left = p->blocked->slivers - first, share = wg__ceil_divide(left, 2 * p->threads);
    return (range){first, wg__smaller(wg__larger(p->fewest, wg__smaller(share, p->most)), left)};
}

/* Takes the next free block; it has no slivers if none is left. */
static range claim_block(blocks *p) {
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
        return source_of(p, p->blocked, now, piece + 1);
    const range free = block_at(p, atomic_load(&p->next_sliver));
    return free.slivers > 0 ? source_of(p, p->blocked, free, p->first_piece) : (source){0};
}

/* Computes all tiles of the blocks that one worker takes. */
static void multiply_blocks(int64_t worker, int64_t end, void *context) {
    (void)end;
    blocks *p = context;
    const bool shares_a = p->shared == &p->a;
    char *block = p->workspaces + worker * p->workspace_bytes;
    const wg__bf16_kernels *rounded = p->kernel.rounded;
    if (rounded && rounded->begin)
        rounded->begin();
    for (range now; (now = claim_block(p)).slivers > 0;)
        for (int64_t piece = p->first_piece; piece < p->last_piece; piece++) {
            if (p->blocked->is_packed)
                pack_slivers(p, p->blocked, now, piece, block);
            const range columns = shares_a ? now : (range){0, p->b.slivers};
            prefetches next = {.block = fetch_in(p->shared->slivers * now.slivers,
                                                 block_after(p, now, piece), p->blocked->size)};
            for (int64_t c = 0; c < p->chunks; c++) {
                const range rows = shares_a ? chunk_of_a(p, c) : now;
                const char *a = !shares_a        ? block
                                : p->a.is_packed ? shared_sliver(p, rows.first, piece)
                                                 : NULL;
                if (shares_a)
                    next.chunk =
                        fetch_in(rows.slivers * now.slivers, chunk_after(p, piece, c), p->size);
                for (int64_t s = 0; s < columns.slivers; s++)
                    multiply_slivers(p, piece, a, rows,
                                     shares_a ? block + s * p->b.sliver_bytes
                                              : shared_sliver(p, s, piece),
                                     columns.first + s, &next);
            }
        }
    if (rounded && rounded->end)
        rounded->end();
}

/* If there is no memory for workspaces: computes one tile at a time, with the same bits. */
static void multiply_without_memory(blocks *p) {
    _Alignas(
        CACHE_LINE) char room[2 * ((PIECE + CACHE_LINE / WORD) * MOST_WIDTH_BYTES + SLIVER_ROOM)];
    p->workspaces = room;
    p->lone = room + p->blocked->sliver_bytes;
    p->fewest = p->most = 1;
    p->chunks = p->shared == &p->a ? p->a.slivers : 1;
    p->last_piece = p->pieces;
    multiply_blocks(0, 1, p);
}

/* A packed sliver of pairs of k is `words` long for each of its vectors. */
static void set_operand(const blocks *p, operand *o, int64_t words) {
    o->size = o->is_bf16 ? 2 : p->size;
    o->slivers = wg__ceil_divide(o->vectors, o->width);
    o->packed_stride = o->packs_along ? words : o->width;
    const int64_t bytes = o->width * (p->kernel.rounded ? words * WORD : p->piece * p->size);
    o->sliver_bytes = wg__ceil_divide(bytes, CACHE_LINE) * CACHE_LINE + SLIVER_ROOM;
}

/* The kernel wants the rows of C contiguous: transposes the product where only its columns are. */
static void set_operands(blocks *p) {
    wg__product *product = &p->product;
    const wg__bf16_kernels *rounded = p->kernel.rounded;
    const bool transposes = product->c.column_stride != 1 && product->c.row_stride == 1;
    if (transposes) {
        wg__product_place_row(product); /* transposed, the row would be a column */
        *product = wg__product_transposed(product);
    }
    p->a =
        (operand){.data = product->a.data,
                  .stride = product->a.row_stride,
                  .k_stride = product->a.column_stride,
                  .is_bf16 = product->a_is_bf16,
                  .is_gathered = product->gather && transposes,
                  .packs_along = rounded && (rounded->packs_along || product->a.column_stride == 1),
                  .vectors = product->m,
                  .width = p->kernel.a_width};
    p->b = (operand){.data = product->b.data,
                     .stride = product->b.column_stride,
                     .k_stride = product->b.row_stride,
                     .is_bf16 = product->b_is_bf16,
                     .is_gathered = product->gather && !transposes,
                     .is_packed = true,
                     .vectors = product->n,
                     .width = p->kernel.b_width};
    /* A can be read in place as fast as packed if its rows are contiguous, or if its columns are
     * and do not all compete for the same few lines of the cache. */
    p->a.is_packed =
        rounded || p->a.is_gathered ||
        !(p->a.k_stride == 1 || (p->a.stride == 1 && p->a.k_stride * p->size % SAME_LINES != 0));
    const int64_t block = rounded ? 2 * rounded->block_pairs : 1; /* pieces are whole blocks of k */
    const int64_t packed = rounded ? rounded->pair_bytes / 2 : p->size;
    p->pieces = wg__ceil_divide(product->k, PIECE * WORD / packed);
    p->piece = wg__ceil_divide(wg__ceil_divide(product->k, p->pieces), block) * block;
    p->pieces = wg__ceil_divide(product->k, p->piece);
    const int64_t words = p->piece * packed / WORD;
    /* Packed rows do not compete for lines of the cache. */
    set_operand(p, &p->a, p->a.packs_along ? words + CACHE_LINE / WORD : words);
    set_operand(p, &p->b, words);
    p->shared = product->m <= product->n ? &p->a : &p->b;
    p->blocked = product->m <= product->n ? &p->b : &p->a;
}

void wg__gemm_large(const wg__product *product, wg__gemm_kernel kernel) {
    const double multiply_adds = (double)product->m * (double)product->n * (double)product->k;
    blocks p = {.product = *product,
                .kernel = kernel,
                .size = (int64_t)wg_dtype_size(product->dtype),
                .chunks = 1,
                .threads = wg__gemm_threads(multiply_adds)};
    set_operands(&p);
    const operand *blocked = p.blocked, *shared = p.shared;
    p.fewest = wg__ceil_divide(blocked == &p.a ? FEWEST_OF_A : FEWEST_OF_B, blocked->width);
    p.most = wg__smaller(1 + (BLOCK_BYTES - 1) / blocked->sliver_bytes, blocked->slivers);
    if (blocked->is_packed)
        p.workspace_bytes =
            wg__larger(p.most, wg__smaller(p.fewest, blocked->slivers)) * blocked->sliver_bytes;
    if (shared == &p.a)
        p.chunks = wg__ceil_divide(p.a.slivers, 1 + (CHUNK_BYTES - 1) / p.a.sliver_bytes);
    const int64_t piece_bytes = shared->slivers * shared->sliver_bytes;
    int64_t at_once = p.pieces, shared_bytes = 0;
    if (shared->is_packed) {
        at_once = wg__smaller(1 + (SHARED_BYTES - 1) / piece_bytes, p.pieces);
        shared_bytes = at_once * piece_bytes;
    }
    const int64_t workers = wg__smaller(p.threads, blocked->slivers);
    int64_t bytes = shared_bytes + workers * p.workspace_bytes;
    for (size_t i = 0; i < sizeof workspace_sizes / sizeof *workspace_sizes; i++)
        if (bytes <= workspace_sizes[i]) {
            bytes = workspace_sizes[i];
            break;
        }
    p.packed = wg__try_alloc((size_t)bytes);
    if (!p.packed) {
        multiply_without_memory(&p);
        return;
    }
    p.workspaces = p.packed + shared_bytes;
    for (p.first_piece = 0; p.first_piece < p.pieces; p.first_piece = p.last_piece) {
        p.last_piece = wg__smaller(p.first_piece + at_once, p.pieces);
        if (shared->is_packed)
            wg__parallel_for((p.last_piece - p.first_piece) * shared->slivers,
                             wg__ceil_divide(PACK_BYTES, shared->sliver_bytes), pack_shared, &p);
        atomic_store(&p.next_sliver, 0);
        wg__parallel_for(workers, 1, multiply_blocks, &p);
    }
    wg__free(p.packed);
}
