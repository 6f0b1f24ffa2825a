/* Attention's kernels, which compute one tile of scores at a time.
 *
 *                       keys
 *               . . +----------+ . .      A tile: up to TILE_ROWS queries of a head by the
 *     queries       |   tile   |          keys from the first to the last that they see.
 *               . . +----------+ . .
 *
 * A first product writes the scores of the tile to the workspace. They become weights in place. A
 * second product gives the output of the tile.
 *
 * A head's keys and values are packed once, and the operands of a tile stay in the L1 and L2
 * caches, so the products call the panel kernels of tensor/simd directly; heads are too narrow for
 * the general GEMM. With few queries, several heads are processed at once and keys are not packed.
 *
 * Forward saves only log sum e^s of each query's scores. Backward recomputes the weights, with the
 * same dropout, and uses a second tile for their gradient. The first and the last keys are skipped
 * if causality, a window or the mask hides them from all queries of a tile. */
#include "tensor/ops/attention/attention.h"
#include "tensor/ops/linalg/dense.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* ---- A query's row of scores: its dropout factors and its visible keys. Query i belongs to
 * sequence b and head h. ---- */

void wg__attention_draw(const wg__attention *at, int64_t query, int64_t first, int64_t n,
                        char *factors) {
    enum { GROUPS = 8, WORDS = GROUPS * WG__RANDOM_GROUP };
    const wg_attention_options *options = &at->options;
    const wg__simd *kernels = wg__simd_for(at->dtype);
    uint32_t words[WORDS], limit = (uint32_t)(options->dropout * 0x1p32);
    /* Each query begins a new group of random words. */
    const int64_t groups_a_query = wg__ceil_divide(at->keys, WG__RANDOM_GROUP);
    uint64_t group = (uint64_t)(query * groups_a_query + first / WG__RANDOM_GROUP);
    for (int64_t j = 0; j < n; j++)
        if (at->dtype == WG_F32)
            ((float *)factors)[j] = 1;
        else
            ((double *)factors)[j] = 1;
    for (int64_t begin = 0; begin < n; begin += WORDS, group += GROUPS) {
        const int64_t count = wg__smaller(n - begin, WORDS);
        const int64_t groups = wg__ceil_divide(count, WG__RANDOM_GROUP);
        void *row = factors + begin * at->size;
        kernels->random.words(options->seed, options->offset, group, groups, words);
        kernels->random.drop_below(count, words, limit, 1 / (1 - options->dropout), row, row);
    }
}

/* Keys begin..end - 1. */
typedef struct range {
    int64_t begin, end;
} range;

/* The keys that query i, at position i + Tk - Tq, sees by causality and window, before the mask. */
static range keys_before_mask(const wg__attention *at, int64_t i) {
    const int64_t position = i + at->keys - at->queries, window = at->options.window;
    int64_t begin = 0, end = at->keys;
    if (window > 0 && window < at->keys + at->queries) {
        begin = wg__larger(0, position - window);
        end = wg__smaller(end, position + window + 1);
    }
    if (at->options.causal)
        end = wg__smaller(end, position + 1);
    return (range){wg__smaller(begin, at->keys), wg__larger(end, 0)};
}

enum { TILE_ROWS = 64, TILE_ELEMENTS = 65536, LEAST_TILE_ROWS = 16 };

/* With at least LEAST_PACKED queries, keys are packed. With fewer, several heads are processed at
 * once instead, unless backward will follow: backward recomputes the scores from packed keys, and
 * the weights sum to 1 only if the recomputed scores have the same bits. */
enum { LEAST_PACKED = 8 };

/* Fewer than TASKS heads are split into about TASKS tasks, to keep all threads busy. */
enum { TASKS = 32 };

/* The least bytes of all workspaces together, so that generating one more token seldom needs a
 * larger allocation. */
enum { LEAST_WORKSPACE = 1 << 16 };

enum { CACHE_LINE = 64 };

/* A worker's memory. Buffers that only backward needs are NULL in forward. */
typedef struct workspace {
    char *keys_across, *values_across; /* (D, Tk) in panels: transposed */
    char *keys, *values;               /* (Tk, D) */
    char *queries, *cotangents;        /* (rows, D) of a tile */
    char *scores, *gradient;           /* (rows, span) of a tile; they become weights and dS */
    char *rows;                        /* (rows, D) of a tile: the output, or dq */
    char *dk, *dv;                     /* (Tk, D) */
    char *bias, *keep;                 /* span: 0 or -inf by the mask, and dropout's factors */
} workspace;

typedef struct job {
    const wg__attention *at;
    const wg__simd *kernels;
    int64_t tile_rows, tiles; /* tiles of a head */
    int64_t task_tiles;       /* tiles of a task */
    int64_t together;         /* heads that a task handles at once */
    int64_t width;            /* D, rounded up to whole vectors */
    int64_t span, key_stride; /* the most keys of a tile; span rounded up to whole vectors */
    int64_t alignment;        /* the first key of a tile is a multiple of `alignment` */
    bool packs, backward;
    atomic_int_fast64_t next;
    int64_t tasks;
    char *workspaces;
    int64_t workspace_bytes; /* of each worker */
    void (*run)(const struct job *job, int64_t task, const workspace *w);
} job;

/* The next `bytes` of the workspaces, rounded up to cache lines; NULL while sizes are counted. */
static char *reserve(char *workspaces, int64_t *offset, int64_t bytes) {
    char *place = workspaces ? workspaces + *offset : NULL;
    *offset += wg__ceil_divide(bytes, CACHE_LINE) * CACHE_LINE;
    return place;
}

/* A workspace that begins at `offset`; moves `offset` to its end. */
static workspace lay_out(const job *job, char *workspaces, int64_t *offset) {
    const int64_t size = job->at->size, lanes = job->kernels->lanes;
    const int64_t panel = WG__PANEL_VECTORS * lanes, keys = job->at->keys;
    const int64_t across = wg__ceil_divide(keys, panel) * panel * job->at->width * size;
    const int64_t down = keys * job->width * size, rows = job->tile_rows * job->width * size;
    const int64_t row = job->key_stride * size, tile = job->tile_rows * job->together * row;
    workspace w = {.scores = reserve(workspaces, offset, tile),
                   .bias = reserve(workspaces, offset, row),
                   .keep = reserve(workspaces, offset, row)};
    if (!job->packs)
        return w;
    w.keys_across = reserve(workspaces, offset, across);
    w.rows = reserve(workspaces, offset, rows);
    if (!job->backward) {
        w.values = reserve(workspaces, offset, down);
        return w;
    }
    w.values_across = reserve(workspaces, offset, across);
    w.keys = reserve(workspaces, offset, down);
    w.queries = reserve(workspaces, offset, rows);
    w.cotangents = reserve(workspaces, offset, rows);
    w.gradient = reserve(workspaces, offset, tile);
    w.dk = reserve(workspaces, offset, down);
    w.dv = reserve(workspaces, offset, down);
    return w;
}

static job job_of(const wg__attention *at, bool backward) {
    job job = {.at = at, .kernels = wg__simd_for(at->dtype), .backward = backward};
    const int64_t lanes = job.kernels->lanes, window = at->options.window;
    const bool dense =
        at->q.column_stride == 1 && at->k.column_stride == 1 && at->v.column_stride == 1;
    job.width = wg__ceil_divide(at->width, lanes) * lanes;
    job.alignment = at->options.dropout > 0 ? WG__RANDOM_GROUP : WG__PANEL_VECTORS * lanes;
    job.span = at->keys;
    if (window > 0 && window < at->keys)
        job.span = wg__smaller(at->keys,
                               (at->options.causal ? 1 : 2) * window + TILE_ROWS + job.alignment);
    job.key_stride = wg__ceil_divide(job.span * at->size, CACHE_LINE) * CACHE_LINE / at->size;
    const int64_t most = TILE_ELEMENTS / (job.span + 1);
    job.tile_rows = most < LEAST_TILE_ROWS ? LEAST_TILE_ROWS : wg__smaller(most, TILE_ROWS);
    job.packs = backward || at->log_sums || at->queries >= LEAST_PACKED || !dense;
    job.together = 1;
    if (!job.packs) { /* split the heads evenly over the threads */
        const int64_t share = wg__ceil_divide(at->batch * at->query_heads, wg_threads());
        const int64_t tasks = wg__ceil_divide(share, WG__HEADS_AT_ONCE);
        if (tasks > 0)
            job.together = wg__smaller(wg__ceil_divide(share, tasks), at->query_heads);
        job.tile_rows = 1;
    }
    if (at->queries > 0)
        job.tile_rows = wg__smaller(job.tile_rows, at->queries);
    job.tiles = wg__ceil_divide(at->queries, job.tile_rows);
    return job;
}

static void work(int64_t begin, int64_t end, void *context) {
    job *job = context;
    for (int64_t worker = begin; worker < end; worker++) {
        int64_t offset = worker * job->workspace_bytes;
        const workspace w = lay_out(job, job->workspaces, &offset);
        for (int64_t task; (task = atomic_fetch_add(&job->next, 1)) < job->tasks;)
            job->run(job, task, &w);
    }
}

/* Each worker has a workspace and takes the next task until no task is left. As is usual for
 * attention, each product counts the flops of all queries by all keys, masked or not; recomputed
 * scores do not count. */
static int run_tasks(job *job, int64_t tasks, int products,
                     void (*run)(const struct job *job, int64_t task, const workspace *w)) {
    const wg__attention *at = job->at;
    const double before = wg__product_flops;
    const int64_t workers = wg__smaller(wg_threads(), tasks);
    job->tasks = tasks;
    job->run = run;
    lay_out(job, NULL, &job->workspace_bytes);
    const int64_t bytes = job->workspace_bytes * workers;
    job->workspaces = wg__alloc((size_t)wg__larger(bytes, LEAST_WORKSPACE));
    if (!job->workspaces)
        return -1;
    wg__parallel_for(workers, 1, work, job);
    wg__free(job->workspaces);
    wg__product_flops = before + 2.0 * products * (double)(at->batch * at->query_heads) *
                                     (double)at->queries * (double)at->keys * (double)at->width;
    return 0;
}

/* Queries begin..begin + rows - 1 of a head. They see no keys outside first..first + keys - 1. */
typedef struct tile {
    int64_t b, h, begin, rows, first, keys;
} tile;

static tile tile_at(const job *job, int64_t b, int64_t h, int64_t index) {
    const wg__attention *at = job->at;
    const int64_t begin = index * job->tile_rows,
                  rows = wg__smaller(job->tile_rows, at->queries - begin);
    tile t = {.b = b, .h = h, .begin = begin, .rows = rows};
    const int64_t least = keys_before_mask(at, begin).begin,
                  most = keys_before_mask(at, begin + rows - 1).end;
    int64_t first = least, end = most;
    if (at->mask && least < most) {
        first = most;
        end = least;
        const int64_t *strides = at->mask_strides, step = strides[3];
        for (int64_t r = 0; r < rows && (first > least || end < most); r++) {
            const bool *mask =
                at->mask + b * strides[0] + h * strides[1] + (begin + r) * strides[2];
            int64_t left = least, right = most; /* narrow down to the keys that the row shows */
            while (first - left >= 8 && step == 1 && memcmp(mask + left, (bool[8]){0}, 8) == 0)
                left += 8;
            while (left < first && !mask[left * step])
                left++;
            while (right - end >= 8 && step == 1 && memcmp(mask + right - 8, (bool[8]){0}, 8) == 0)
                right -= 8;
            while (right > end && !mask[(right - 1) * step])
                right--;
            first = left;
            end = right;
            if (strides[2] == 0)
                break;
        }
    }
    if (first < end) {
        t.first = first / job->alignment * job->alignment;
        t.keys = end - t.first;
    }
    return t;
}

/* A query's row of scores, as kernels read it. Keys begin..end - 1, counted from the tile's first
 * key, are visible before the mask. */
typedef struct score_row {
    int64_t begin, end;
    int64_t query;     /* the number of the query, counted over all heads */
    char *bias, *keep; /* of the mask and of dropout; NULL for none */
} score_row;

/* A mask row that all rows of a tile share is read once, for the first row. */
static score_row score_row_of(const job *job, const tile *t, int64_t i, const workspace *w) {
    const wg__attention *at = job->at;
    const range seen = keys_before_mask(at, i);
    const int64_t end = wg__larger(0, wg__smaller(seen.end - t->first, t->keys));
    const int64_t query = (t->b * at->query_heads + t->h) * at->queries + i;
    const int64_t *strides = at->mask_strides;
    if (at->mask && (i == t->begin || strides[2] != 0))
        job->kernels->rows.mask_to_bias(t->keys,
                                        at->mask + t->b * strides[0] + t->h * strides[1] +
                                            i * strides[2] + t->first * strides[3],
                                        strides[3], w->bias);
    if (at->options.dropout > 0)
        wg__attention_draw(at, query, t->first, t->keys, w->keep);
    return (score_row){.begin = wg__smaller(wg__larger(0, seen.begin - t->first), end),
                       .end = end,
                       .query = query,
                       .bias = at->mask ? w->bias : NULL,
                       .keep = at->options.dropout > 0 ? w->keep : NULL};
}

/* The rows of head h of sequence b, from position `row` on. */
static wg__matrix head_rows(const wg__attention *at, const wg__heads *x, int64_t b, int64_t h,
                            int64_t row) {
    char *data = x->data + b * x->batch_stride + h * x->head_stride;
    return (wg__matrix){data + row * x->row_stride * at->size, x->row_stride, x->column_stride};
}

/* Makes the first `count` scores of a row -inf: their keys lie before the first visible key. */
static void hide_head(const job *job, char *row, int64_t count) {
    for (int64_t j = 0; j < count; j++)
        if (job->at->dtype == WG_F32)
            ((float *)row)[j] = -INFINITY;
        else
            ((double *)row)[j] = -INFINITY;
}

static void pack_across(const job *job, int64_t count, wg__matrix x, char *panels) {
    job->kernels->products.pack_columns(count, job->at->width, x.data, x.row_stride,
                                        x.column_stride, panels);
}

static void pack_down(const job *job, int64_t count, wg__matrix x, char *rows) {
    job->kernels->products.pack_rows(count, job->at->width, x.data, x.row_stride, x.column_stride,
                                     rows);
}

/* to = alpha A X^T, where A is (rows, D), a row for each query of the tile, and X is (keys, D), a
 * row for each of its keys, packed across. */
static void multiply_across(const job *job, const tile *t, double alpha, wg__matrix a,
                            const char *across, char *to) {
    const int64_t panel = WG__PANEL_VECTORS * job->kernels->lanes;
    job->kernels->products.panel(&(wg__panel_product){.m = t->rows,
                                                      .n = t->keys,
                                                      .k = job->at->width,
                                                      .alpha = alpha,
                                                      .a = a.data,
                                                      .a_row = a.row_stride,
                                                      .a_column = a.column_stride,
                                                      .b = across,
                                                      .b_panel = panel * job->at->width,
                                                      .b_row = panel,
                                                      .c = to,
                                                      .c_row = job->key_stride});
}

/* to (m, D) = A (m, k) X, or += if `adds`, where X is (k, D), packed down. */
static void multiply_down(const job *job, int64_t m, int64_t k, wg__matrix a, const char *down,
                          bool adds, char *to) {
    job->kernels->products.panel(
        &(wg__panel_product){.m = m,
                             .n = job->at->width,
                             .k = k,
                             .alpha = 1,
                             .a = a.data,
                             .a_row = a.row_stride,
                             .a_column = a.column_stride,
                             .b = down,
                             .b_panel = WG__PANEL_VECTORS * job->kernels->lanes,
                             .b_row = job->width,
                             .d = adds ? to : NULL,
                             .d_row = job->width,
                             .c = to,
                             .c_row = job->width});
}

/* Turns the scores of a tile into weights that are not normalized yet; inverse_sums receives the
 * factor that normalizes each row. */
static void weigh(const job *job, const tile *t, const workspace *w, double *inverse_sums) {
    const wg__attention *at = job->at;
    const int64_t row_bytes = job->key_stride * at->size;
    for (int64_t r = 0; r < t->rows; r++) {
        const score_row s = score_row_of(job, t, t->begin + r, w);
        char *row = w->scores + r * row_bytes;
        double log_sum_exp;
        hide_head(job, row, s.begin);
        inverse_sums[r] = job->kernels->rows.attention(s.end, s.bias, s.keep, row, &log_sum_exp);
        memset(row + s.end * at->size, 0, (size_t)((t->keys - s.end) * at->size));
        if (at->log_sums)
            wg__set_element(at->dtype, at->log_sums + s.query * at->size, log_sum_exp);
    }
}

/* A task: the few queries of some heads, one by one. Keys and values are not packed. */
static void forward_few(const job *job, int64_t task, const workspace *w) {
    const wg__attention *at = job->at;
    const int64_t parts = wg__ceil_divide(at->query_heads, job->together), b = task / parts;
    const int64_t first = task % parts * job->together;
    const int64_t sharing = at->query_heads / at->key_heads;
    const int count = (int)wg__smaller(job->together, at->query_heads - first);
    tile tiles[WG__HEADS_AT_ONCE];
    double inverse_sums[WG__HEADS_AT_ONCE];
    for (int64_t query = 0; query < at->queries; query++) {
        wg__head_products dots = {.width = at->width,
                                  .row_stride = at->k.row_stride,
                                  .scale = at->options.scale},
                          sums = {.width = at->width, .row_stride = at->v.row_stride, .scale = 1};
        range seen = {INT64_MAX, 0}; /* keys that at least one of the heads sees */
        for (int h = 0; h < count; h++) {
            tiles[h] = tile_at(job, b, first + h, query);
            seen.begin = wg__smaller(seen.begin, tiles[h].first);
            seen.end = wg__larger(seen.end, tiles[h].first + tiles[h].keys);
        }
        dots.rows = sums.rows = seen.end - seen.begin;
        for (int h = 0; h < count; h++) {
            dots.a[h] = head_rows(at, &at->k, b, (first + h) / sharing, seen.begin).data;
            dots.vector[h] = head_rows(at, &at->q, b, first + h, query).data;
            sums.a[h] = head_rows(at, &at->v, b, (first + h) / sharing, seen.begin).data;
            sums.vector[h] = dots.y[h] = w->scores + h * job->key_stride * at->size;
            sums.y[h] = head_rows(at, &at->out, b, first + h, query).data;
        }
        job->kernels->products.head_dots(count, &dots);
        for (int h = 0; h < count; h++) {
            const workspace of_head = {.scores = dots.y[h], .bias = w->bias, .keep = w->keep};
            tiles[h].first = seen.begin;
            tiles[h].keys = dots.rows;
            weigh(job, &tiles[h], &of_head, &inverse_sums[h]);
        }
        job->kernels->products.head_sums(count, &sums);
        for (int h = 0; h < count; h++)
            job->kernels->rows.normalize(at->width, sums.y[h], 0, inverse_sums[h], NULL, NULL,
                                         sums.y[h]);
    }
}

/* A task: some tiles of a head. Packs the keys that they see before the mask, from the beginning of
 * a panel on. */
static void forward_task(const job *job, int64_t task, const workspace *w) {
    const wg__attention *at = job->at;
    const int64_t parts = wg__ceil_divide(job->tiles, job->task_tiles), head = task / parts;
    const int64_t b = head / at->query_heads, h = head % at->query_heads;
    const int64_t first = task % parts * job->task_tiles;
    const int64_t key_head = h / (at->query_heads / at->key_heads);
    const int64_t row_bytes = job->width * at->size; /* of values and of the output */
    const int64_t end = wg__smaller(first + job->task_tiles, job->tiles);
    const int64_t last_query = wg__smaller(end * job->tile_rows, at->queries) - 1;
    const int64_t begin_key = keys_before_mask(at, first * job->tile_rows).begin;
    range seen = {begin_key / job->alignment * job->alignment,
                  keys_before_mask(at, last_query).end};
    if (seen.begin >= seen.end)
        seen = (range){0, 0};
    pack_across(job, seen.end - seen.begin, head_rows(at, &at->k, b, key_head, seen.begin),
                w->keys_across);
    pack_down(job, seen.end - seen.begin, head_rows(at, &at->v, b, key_head, seen.begin),
              w->values);
    for (int64_t i = first; i < end; i++) {
        const tile t = tile_at(job, b, h, i);
        double inverse_sums[TILE_ROWS];
        multiply_across(job, &t, at->options.scale, head_rows(at, &at->q, b, h, t.begin),
                        w->keys_across + (t.first - seen.begin) * at->width * at->size, w->scores);
        weigh(job, &t, w, inverse_sums);
        multiply_down(job, t.rows, t.keys, (wg__matrix){w->scores, job->key_stride, 1},
                      w->values + (t.first - seen.begin) * row_bytes, false, w->rows);
        for (int64_t r = 0; r < t.rows; r++)
            job->kernels->rows.normalize(at->width, w->rows + r * row_bytes, 0, inverse_sums[r],
                                         NULL, NULL,
                                         head_rows(at, &at->out, b, h, t.begin + r).data);
    }
}

int wg__attention_run(const wg__attention *at) {
    job job = job_of(at, false);
    const int64_t heads = at->batch * at->query_heads;
    if (!job.packs)
        return run_tasks(&job, at->batch * wg__ceil_divide(at->query_heads, job.together), 2,
                         forward_few);
    job.task_tiles =
        heads >= TASKS ? job.tiles : wg__smaller(job.tiles, 1 + job.tiles * heads / TASKS);
    const int64_t parts = job.tiles ? wg__ceil_divide(job.tiles, job.task_tiles) : 0;
    return run_tasks(&job, heads * parts, 2, forward_task);
}

/* ---- Backward. With P' the weights before dropout, P = P' keep, O = P V and g_P = g_O V^T:
 *
 *     dV = P^T g_O,   dS = scale P' (g_P keep - sum P g_P),   dQ = dS K,   dK = dS^T Q     ---- */

/* Copies rows of D from the workspace to a gradient. */
static void write_rows(const job *job, int64_t count, const char *rows, wg__matrix to) {
    const size_t bytes = (size_t)(job->at->width * job->at->size); /* of column stride 1 */
    for (int64_t r = 0; r < count; r++)
        memcpy((char *)to.data + r * to.row_stride * job->at->size,
               rows + r * job->width * job->at->size, bytes);
}

/* The weights are computed in w->scores, and the gradient of the scores in w->gradient. */
static void backward_tile(const job *job, const tile *t, const workspace *w) {
    const wg__attention *at = job->at;
    const int64_t across = t->first * at->width * at->size; /* the tile's first key, in panels */
    const int64_t down = t->first * job->width * at->size;  /* and in rows */
    const int64_t row_bytes = job->key_stride * at->size;
    const wg__matrix weights = {w->scores, job->key_stride, 1},
                     gradient = {w->gradient, job->key_stride, 1},
                     queries = {w->queries, job->width, 1},
                     cotangents = {w->cotangents, job->width, 1};
    pack_down(job, t->rows, head_rows(at, &at->q, t->b, t->h, t->begin), w->queries);
    pack_down(job, t->rows, head_rows(at, &at->out, t->b, t->h, t->begin), w->cotangents);
    multiply_across(job, t, at->options.scale, queries, w->keys_across + across, w->scores);
    multiply_across(job, t, 1, cotangents, w->values_across + across, w->gradient);
    for (int64_t r = 0; r < t->rows; r++) {
        const score_row s = score_row_of(job, t, t->begin + r, w);
        const size_t hidden = (size_t)((t->keys - s.end) * at->size);
        char *weight = w->scores + r * row_bytes, *slope = w->gradient + r * row_bytes;
        hide_head(job, weight, s.begin);
        job->kernels->rows.attention_vjp(s.end, s.bias, s.keep,
                                         wg__element(at->dtype, at->log_sums + s.query * at->size),
                                         at->options.scale, weight, slope);
        memset(weight + s.end * at->size, 0, hidden);
        memset(slope + s.end * at->size, 0, hidden);
    }
    if (at->dv.data)
        multiply_down(job, t->keys, t->rows, wg__transposed(weights), w->cotangents, true,
                      w->dv + down);
    if (at->dk.data)
        multiply_down(job, t->keys, t->rows, wg__transposed(gradient), w->queries, true,
                      w->dk + down);
    if (!at->dq.data)
        return;
    multiply_down(job, t->rows, t->keys, gradient, w->keys + down, false, w->rows);
    write_rows(job, t->rows, w->rows, head_rows(at, &at->dq, t->b, t->h, t->begin));
}

/* A task: all query heads that share a key head, whose gradient sums over them. */
static void backward_task(const job *job, int64_t task, const workspace *w) {
    const wg__attention *at = job->at;
    const int64_t b = task / at->key_heads, key_head = task % at->key_heads;
    const int64_t group = at->query_heads / at->key_heads;
    const size_t bytes = (size_t)(at->keys * job->width * at->size);
    const wg__matrix keys = head_rows(at, &at->k, b, key_head, 0);
    pack_across(job, at->keys, keys, w->keys_across);
    pack_across(job, at->keys, head_rows(at, &at->v, b, key_head, 0), w->values_across);
    if (at->dq.data)
        pack_down(job, at->keys, keys, w->keys);
    memset(w->dk, 0, bytes);
    memset(w->dv, 0, bytes);
    for (int64_t h = key_head * group; h < (key_head + 1) * group; h++)
        for (int64_t index = 0; index < job->tiles; index++) {
            const tile t = tile_at(job, b, h, index);
            backward_tile(job, &t, w);
        }
    if (at->dk.data)
        write_rows(job, at->keys, w->dk, head_rows(at, &at->dk, b, key_head, 0));
    if (at->dv.data)
        write_rows(job, at->keys, w->dv, head_rows(at, &at->dv, b, key_head, 0));
}

int wg__attention_differentiate(const wg__attention *at) {
    job job = job_of(at, true);
    /* one for the gradient of the weights, and one for each wanted input gradient */
    const int products = 1 + (at->dq.data != NULL) + (at->dk.data != NULL) + (at->dv.data != NULL);
    return run_tasks(&job, at->batch * at->key_heads, products, backward_task);
}
