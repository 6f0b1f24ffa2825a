/* Scaled dot-product attention, fused: the weights of one tile of queries at a time.
 *
 *                   keys
 *              +-------------+
 *     queries  |   a tile    |   up to TILE_ROWS queries of one head, by all the keys they may see:
 *              |  of scores  |   scores come from one product into the workspace, become weights
 *              +-------------+   in place, and give the tile's output by another product.
 *
 * Queries, keys and values go to GEMM as they lie, whatever their strides. Only log sum e^s of each
 * query's scores is saved; backward computes the weights anew, drops the same ones again, and needs
 * a second tile, for their gradient. */
#include "tensor/gemm.h"
#include "tensor/iter.h"
#include "tensor/ops/dense.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/families.h"
#include "tensor/simd/simd.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { TILE_ROWS = 128, TILE_ELEMENTS = 65536, LEAST_TILE_ROWS = 16 };

/* Of all workspaces together, in bytes, so that a text that grows by a token asks for no more. */
enum { LEAST_WORKSPACE = 1 << 16 };

/* A tensor (B, H, T, D) as kernels see it. */
typedef struct heads {
    char *data;
    int64_t batch_stride, head_stride; /* in bytes */
    int64_t row_stride, column_stride; /* in elements */
} heads;

typedef struct attention_job {
    wg_dtype dtype;
    int64_t size; /* of an element */
    const wg__simd *kernels;
    wg_attention_options options;
    int64_t batch, query_heads, key_heads, queries, keys, width; /* B, H, Hkv, Tq, Tk, D */
    int64_t tile_rows, tiles;                                    /* tiles of a head */
    heads q, k, v, out;      /* out: the result, or its cotangent */
    heads dq, dk, dv;        /* data NULL: not wanted */
    const wg_tensor *mask;   /* NULL: all may be seen */
    int64_t mask_strides[4]; /* in bytes */
    char *log_sums;          /* (B, H, Tq); NULL: not wanted */
    atomic_int_fast64_t next;
    int64_t tasks;
    char *workspaces;
    int64_t workspace_bytes; /* of one worker */
    void (*run)(struct attention_job *job, int64_t task, char *workspace);
} attention_job;

/* ---- Shapes ---- */

static bool has_mask(const wg_call *call) {
    return call->input_count > 3 && call->input_specs[3].ndim >= 0;
}

static int check_mask(wg_call *call) {
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    const wg_spec *mask = &call->input_specs[3];
    wg_spec scores = *q, both;
    scores.shape[3] = k->shape[2];
    if (mask->dtype != WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted a mask of dtype bool");
    if (!wg__broadcast(&scores, mask, &both) || !wg__same_shape(&scores, &both))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the mask does not broadcast to the scores (%lld, %lld, %lld, %lld)",
                           (long long)scores.shape[0], (long long)scores.shape[1],
                           (long long)scores.shape[2], (long long)scores.shape[3]);
    return 0;
}

static int attention_infer(wg_call *call) {
    const wg_attention_options *options = call->options;
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    if (wg__check_kernel_dtype(call) < 0 || wg__check_same_dtype(call, 0, 1) < 0 ||
        wg__check_same_dtype(call, 0, 2) < 0)
        return -1;
    if (q->ndim != 4 || k->ndim != 4 || !wg__same_shape(k, &call->input_specs[2]))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted (B, H, Tq, D) x (B, Hkv, Tk, D) x (B, Hkv, Tk, D)");
    if (q->shape[0] != k->shape[0] || q->shape[3] != k->shape[3])
        return wg__op_fail(call, WG_ERROR_SHAPE, "queries and keys differ in B or D");
    if (q->shape[1] != k->shape[1] && (k->shape[1] == 0 || q->shape[1] % k->shape[1] != 0))
        return wg__op_fail(call, WG_ERROR_SHAPE, "%lld heads are no multiple of %lld key heads",
                           (long long)q->shape[1], (long long)k->shape[1]);
    if (!(options->dropout >= 0 && options->dropout < 1))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "dropout %g; wanted 0 <= dropout < 1",
                           options->dropout);
    call->output_specs[0] = *q;
    return has_mask(call) ? check_mask(call) : 0;
}

static heads heads_of(const wg_tensor *x) {
    int64_t size = (int64_t)wg_dtype_size(x->spec.dtype);
    return (heads){wg__tensor_address(x), x->strides[0] * size, x->strides[1] * size, x->strides[2],
                   x->strides[3]};
}

/* A tensor (B, H, T, D) whose memory is (B, T, H, D), so that merging its heads copies nothing. */
static wg_tensor *new_heads(const wg_spec *spec) {
    wg_spec memory = *spec;
    memory.shape[1] = spec->shape[2];
    memory.shape[2] = spec->shape[1];
    wg_tensor *x = wg__tensor_new(&memory);
    if (!x)
        return NULL;
    int64_t strides[] = {x->strides[0], x->strides[2], x->strides[1], x->strides[3]};
    return wg__tensor_view(x, spec, strides, 0);
}

/* ---- The job ---- */

static int64_t tile_rows_for(int64_t keys) {
    int64_t rows = TILE_ELEMENTS / (keys + 1);
    return rows > TILE_ROWS ? TILE_ROWS : rows < LEAST_TILE_ROWS ? LEAST_TILE_ROWS : rows;
}

static int set_job(attention_job *job, wg_call *call) {
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    memset(job, 0, sizeof *job);
    job->dtype = q->dtype;
    job->size = (int64_t)wg_dtype_size(q->dtype);
    job->kernels = wg__simd_for(q->dtype);
    job->options = *(const wg_attention_options *)call->options;
    job->batch = q->shape[0];
    job->query_heads = q->shape[1];
    job->key_heads = k->shape[1];
    job->queries = q->shape[2];
    job->keys = k->shape[2];
    job->width = q->shape[3];
    job->tile_rows = tile_rows_for(job->keys);
    if (job->tile_rows > job->queries && job->queries > 0)
        job->tile_rows = job->queries;
    job->tiles = (job->queries + job->tile_rows - 1) / job->tile_rows;
    heads *operands[] = {&job->q, &job->k, &job->v};
    for (int i = 0; i < 3; i++) {
        wg_tensor *x = wg__gemm_operand(call->inputs[i]);
        if (!x)
            return -1;
        *operands[i] = heads_of(x);
    }
    if (has_mask(call)) {
        wg_spec scores = *q;
        scores.shape[3] = job->keys;
        job->mask = call->inputs[3];
        wg__broadcast_strides(job->mask, &scores, job->mask_strides);
    }
    return 0;
}

static void work(int64_t begin, int64_t end, void *context) {
    attention_job *job = context;
    for (int64_t worker = begin; worker < end; worker++)
        for (;;) {
            int64_t task = atomic_fetch_add(&job->next, 1);
            if (task >= job->tasks)
                break;
            job->run(job, task, job->workspaces + worker * job->workspace_bytes);
        }
}

/* Tells the products of a run: so many, each of all queries by all keys, seen or not, as is the
 * custom in counting what attention computes. Scores that are computed again do not count. */
static void count_products(const attention_job *job, int products, double before) {
    wg__product_flops = before + 2.0 * products * (double)(job->batch * job->query_heads) *
                                     (double)job->queries * (double)job->keys * (double)job->width;
}

/* A workspace holds `tiles` tiles of scores and two rows: of what the mask adds to scores (0 or
 * -inf), and of the factors of dropout. Each worker has one and takes the tasks as they come. */
static int run_tasks(attention_job *job, int64_t tasks, int tiles,
                     void (*run)(attention_job *job, int64_t task, char *workspace)) {
    int64_t row = (job->keys * job->size + 63) / 64 * 64;
    int64_t workers = wg_threads() < tasks ? wg_threads() : tasks;
    job->tasks = tasks;
    job->run = run;
    job->workspace_bytes = row * (job->tile_rows * tiles + 2);
    const int64_t bytes = job->workspace_bytes * workers;
    job->workspaces = wg__alloc((size_t)(bytes > LEAST_WORKSPACE ? bytes : LEAST_WORKSPACE));
    if (!job->workspaces)
        return -1;
    wg__parallel_for(workers, 1, work, job);
    wg__free(job->workspaces);
    return 0;
}

/* ---- Masks and dropout, a row of scores at a time ---- */

typedef struct row_factors {
    char *bias, *keep;
} row_factors;

static void fill(const attention_job *job, void *row, int64_t n, double value) {
    for (int64_t j = 0; j < n; j++)
        if (job->dtype == WG_F32)
            ((float *)row)[j] = (float)value;
        else
            ((double *)row)[j] = value;
}

static void read_mask(const attention_job *job, int64_t b, int64_t h, int64_t i, void *bias) {
    const char *mask = (const char *)wg__tensor_address(job->mask) + b * job->mask_strides[0] +
                       h * job->mask_strides[1] + i * job->mask_strides[2];
    int64_t step = job->mask_strides[3];
    for (int64_t j = 0; j < job->keys; j++)
        if (job->dtype == WG_F32)
            ((float *)bias)[j] = mask[j * step] ? 0 : -INFINITY;
        else
            ((double *)bias)[j] = mask[j * step] ? 0 : -INFINITY;
}

/* What all rows of a head share. */
static row_factors first_factors(const attention_job *job, int64_t b, int64_t h, char *rows) {
    row_factors factors = {rows, rows + (job->keys * job->size + 63) / 64 * 64};
    if (!job->mask)
        fill(job, factors.bias, job->keys, 0);
    else if (job->mask_strides[2] == 0)
        read_mask(job, b, h, 0, factors.bias);
    if (job->options.dropout == 0)
        fill(job, factors.keep, job->keys, 1);
    return factors;
}

/* The first group of dropout's draw that belongs to a query, counted over all heads: each query
 * begins a new group. */
static uint64_t dropout_group(const attention_job *job, int64_t query) {
    return (uint64_t)(query * ((job->keys + WG__RANDOM_GROUP - 1) / WG__RANDOM_GROUP));
}

/* The factors of a query's first n weights: 0 where dropped, 1 / (1 - p) elsewhere. */
static void draw_factors(const attention_job *job, int64_t query, int64_t n, char *factors) {
    enum { GROUPS = 8, WORDS = GROUPS * WG__RANDOM_GROUP };
    const wg_attention_options *options = &job->options;
    uint32_t words[WORDS], limit = (uint32_t)(options->dropout * 0x1p32);
    uint64_t group = dropout_group(job, query);
    fill(job, factors, n, 1);
    for (int64_t begin = 0; begin < n; begin += WORDS, group += GROUPS) {
        int64_t count = n - begin < WORDS ? n - begin : WORDS;
        int64_t groups = (count + WG__RANDOM_GROUP - 1) / WG__RANDOM_GROUP;
        void *row = factors + begin * job->size;
        job->kernels->random_words(options->seed, options->offset, group, groups, words);
        job->kernels->drop_below(count, words, limit, 1 / (1 - options->dropout), row, row);
    }
}

static int64_t query_number(const attention_job *job, int64_t b, int64_t h, int64_t i) {
    return (b * job->query_heads + h) * job->queries + i;
}

static void next_factors(const attention_job *job, int64_t b, int64_t h, int64_t i, int64_t seen,
                         row_factors *factors) {
    if (job->mask && job->mask_strides[2] != 0)
        read_mask(job, b, h, i, factors->bias);
    if (job->options.dropout > 0)
        draw_factors(job, query_number(job, b, h, i), seen, factors->keep);
}

/* How many keys query i sees before any mask. */
static int64_t keys_seen(const attention_job *job, int64_t i) {
    if (!job->options.causal)
        return job->keys;
    int64_t seen = i + 1 + job->keys - job->queries;
    return seen < 0 ? 0 : seen;
}

/* ---- Forward ---- */

static wg__matrix head_rows(const attention_job *job, const heads *x, int64_t b, int64_t h,
                            int64_t row) {
    char *data = x->data + b * x->batch_stride + h * x->head_stride;
    return (wg__matrix){data + row * x->row_stride * job->size, x->row_stride, x->column_stride};
}

static double log_sum(const attention_job *job, int64_t row) {
    return job->dtype == WG_F32 ? ((const float *)job->log_sums)[row]
                                : ((const double *)job->log_sums)[row];
}

static void set_log_sum(const attention_job *job, int64_t row, double value) {
    if (!job->log_sums)
        return;
    if (job->dtype == WG_F32)
        ((float *)job->log_sums)[row] = (float)value;
    else
        ((double *)job->log_sums)[row] = value;
}

/* The queries begin to begin + rows of a head, and the keys that the last of them sees. */
typedef struct tile {
    int64_t b, h, key_head, begin, rows, keys;
    int64_t stride; /* of its rows in the workspace, in elements */
    char *scores;
} tile;

static tile tile_at(const attention_job *job, int64_t b, int64_t h, int64_t index, char *scores) {
    int64_t begin = index * job->tile_rows, rows = job->queries - begin;
    if (rows > job->tile_rows)
        rows = job->tile_rows;
    return (tile){.b = b,
                  .h = h,
                  .key_head = h / (job->query_heads / job->key_heads),
                  .begin = begin,
                  .rows = rows,
                  .keys = keys_seen(job, begin + rows - 1),
                  .stride = (job->keys * job->size + 63) / 64 * 64 / job->size,
                  .scores = scores};
}

static wg__matrix tile_matrix(const tile *t, char *data) {
    return (wg__matrix){data, t->stride, 1};
}

/* scores = scale Q K^T */
static void compute_scores(const attention_job *job, const tile *t) {
    wg__matrix q = head_rows(job, &job->q, t->b, t->h, t->begin);
    wg__matrix k = wg__transposed(head_rows(job, &job->k, t->b, t->key_head, 0));
    wg__gemm(job->dtype, t->rows, t->keys, job->width, job->options.scale, q, k, 0,
             tile_matrix(t, t->scores));
}

static void zero_tail(const attention_job *job, const tile *t, char *row, int64_t seen) {
    memset(row + seen * job->size, 0, (size_t)((t->keys - seen) * job->size));
}

/* One tile of one head. */
static void forward_task(attention_job *job, int64_t task, char *workspace) {
    int64_t head = task / job->tiles, b = head / job->query_heads, h = head % job->query_heads;
    tile t = tile_at(job, b, h, task % job->tiles, workspace);
    double inverse_sums[TILE_ROWS];
    int64_t row_bytes = t.stride * job->size;
    row_factors factors = first_factors(job, b, h, workspace + job->tile_rows * row_bytes);
    compute_scores(job, &t);
    for (int64_t r = 0; r < t.rows; r++) {
        int64_t i = t.begin + r, seen = keys_seen(job, i);
        char *row = t.scores + r * row_bytes;
        double log_sum_exp;
        next_factors(job, b, h, i, seen, &factors);
        inverse_sums[r] =
            job->kernels->row_attention(seen, factors.bias, factors.keep, row, &log_sum_exp);
        zero_tail(job, &t, row, seen);
        set_log_sum(job, query_number(job, b, h, i), log_sum_exp);
    }
    wg__matrix out = head_rows(job, &job->out, b, h, t.begin);
    wg__gemm(job->dtype, t.rows, job->width, t.keys, 1, tile_matrix(&t, t.scores),
             head_rows(job, &job->v, b, t.key_head, 0), 0, out);
    for (int64_t r = 0; r < t.rows; r++) {
        void *row = head_rows(job, &job->out, b, h, t.begin + r).data; /* of column stride 1 */
        job->kernels->row_normalize(job->width, row, 0, inverse_sums[r], NULL, NULL, row);
    }
}

static int attention_forward(wg_call *call) {
    attention_job job;
    call->outputs[0] = new_heads(&call->output_specs[0]);
    if (!call->outputs[0] || set_job(&job, call) < 0)
        return -1;
    job.out = heads_of(call->outputs[0]);
    if (call->wants) {
        call->saved[0] = wg_empty(job.dtype, 3, call->input_specs[0].shape);
        if (!call->saved[0])
            return -1;
        job.log_sums = wg__tensor_address(call->saved[0]);
    }
    const double before = wg__product_flops;
    const int status = run_tasks(&job, job.batch * job.query_heads * job.tiles, 1, forward_task);
    count_products(&job, 2, before);
    return status;
}

/* ---- Backward: with P the weights after dropout, O = P V, and g_P = g_O V^T,
 *     dV = P^T g_O,   dS = scale P' (g_P keep - sum P g_P),   dQ = dS K,   dK = dS^T Q
 * where P' are the weights before dropout. ---- */

/* Weights in t->scores, and in `gradient` the scores' gradient. */
static void differentiate_weights(const attention_job *job, const tile *t, char *gradient,
                                  row_factors *factors) {
    int64_t row_bytes = t->stride * job->size;
    wg__matrix v = wg__transposed(head_rows(job, &job->v, t->b, t->key_head, 0));
    compute_scores(job, t);
    wg__gemm(job->dtype, t->rows, t->keys, job->width, 1,
             head_rows(job, &job->out, t->b, t->h, t->begin), v, 0, tile_matrix(t, gradient));
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t i = t->begin + r, seen = keys_seen(job, i);
        char *weights_row = t->scores + r * row_bytes, *gradient_row = gradient + r * row_bytes;
        next_factors(job, t->b, t->h, i, seen, factors);
        job->kernels->row_attention_vjp(seen, factors->bias, factors->keep,
                                        log_sum(job, query_number(job, t->b, t->h, i)),
                                        job->options.scale, weights_row, gradient_row);
        zero_tail(job, t, weights_row, seen);
        zero_tail(job, t, gradient_row, seen);
    }
}

/* All heads of queries that share one head of keys, which gathers their gradients. The last tile
 * of queries sees all keys and so writes, by beta 0, what the others add to. */
static void backward_task(attention_job *job, int64_t task, char *workspace) {
    int64_t b = task / job->key_heads, key_head = task % job->key_heads;
    int64_t group = job->query_heads / job->key_heads;
    for (int64_t h = key_head * group; h < (key_head + 1) * group; h++) {
        tile t = tile_at(job, b, h, 0, workspace);
        int64_t tile_bytes = job->tile_rows * t.stride * job->size;
        char *gradient = workspace + tile_bytes;
        row_factors factors = first_factors(job, b, h, workspace + 2 * tile_bytes);
        for (int64_t index = job->tiles - 1; index >= 0; index--) {
            t = tile_at(job, b, h, index, workspace);
            bool first = h == key_head * group && index == job->tiles - 1;
            wg__matrix g = head_rows(job, &job->out, b, h, t.begin);
            differentiate_weights(job, &t, gradient, &factors);
            if (job->dv.data)
                wg__gemm(job->dtype, t.keys, job->width, t.rows, 1,
                         wg__transposed(tile_matrix(&t, t.scores)), g, !first,
                         head_rows(job, &job->dv, b, key_head, 0));
            if (job->dk.data)
                wg__gemm(job->dtype, t.keys, job->width, t.rows, 1,
                         wg__transposed(tile_matrix(&t, gradient)),
                         head_rows(job, &job->q, b, h, t.begin), !first,
                         head_rows(job, &job->dk, b, key_head, 0));
            if (job->dq.data)
                wg__gemm(job->dtype, t.rows, job->width, t.keys, 1, tile_matrix(&t, gradient),
                         head_rows(job, &job->k, b, key_head, 0), 0,
                         head_rows(job, &job->dq, b, h, t.begin));
        }
    }
}

static int attention_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    attention_job job;
    wg_tensor *g = wg__gemm_operand(cotangents[0]);
    if (!g || set_job(&job, call) < 0)
        return -1;
    job.out = heads_of(g);
    job.log_sums = wg__tensor_address(call->saved[0]);
    heads *targets[] = {&job.dq, &job.dk, &job.dv};
    int products = 1; /* the weights' gradient, and one for each that is wanted */
    for (int i = 0; i < 3; i++) {
        if (!wg__wants(call, i))
            continue;
        products++;
        gradients[i] = new_heads(&call->input_specs[i]);
        if (!gradients[i])
            return -1;
        *targets[i] = heads_of(gradients[i]);
        if (job.queries == 0 && wg_fill_(gradients[i], 0) < 0)
            return -1;
    }
    const double before = wg__product_flops;
    const int status =
        run_tasks(&job, job.queries ? job.batch * job.key_heads : 0, 2, backward_task);
    count_products(&job, products, before);
    return status;
}

/* ---- Out of primitives ---- */

/* The heads of keys or values, each repeated for the queries' heads that share it. */
static wg_tensor *repeat_heads(wg_tensor *x, int64_t query_heads) {
    const int64_t *shape = x->spec.shape;
    if (shape[1] == query_heads)
        return x;
    int64_t group = query_heads / shape[1];
    int64_t wide[] = {shape[0], shape[1], group, shape[2], shape[3]};
    int64_t flat[] = {shape[0], query_heads, shape[2], shape[3]};
    return wg_reshape(wg_expand(wg_unsqueeze(x, 2), 5, wide), 4, flat);
}

static wg_tensor *causal_mask(int64_t queries, int64_t keys) {
    wg_tensor *all = wg_ones(WG_BOOL, 2, (int64_t[]){queries, keys});
    return wg_tril(all, keys - queries);
}

/* The factors that dropout multiplies the weights by, as the kernels draw them. */
static wg_tensor *dropout_factors(const attention_job *job) {
    int64_t shape[] = {job->batch, job->query_heads, job->queries, job->keys};
    wg_tensor *factors = wg_empty(job->dtype, 4, shape);
    if (!factors)
        return NULL;
    char *data = wg__tensor_address(factors);
    for (int64_t query = 0; query < shape[0] * shape[1] * shape[2]; query++)
        draw_factors(job, query, job->keys, data + query * job->keys * job->size);
    return factors;
}

static int attention_decompose(wg_call *call) {
    attention_job job;
    if (set_job(&job, call) < 0)
        return -1;
    wg_tensor *k = repeat_heads(call->inputs[1], job.query_heads);
    wg_tensor *v = repeat_heads(call->inputs[2], job.query_heads);
    wg_tensor *scores = wg_matmul(call->inputs[0], wg_transpose(k, -2, -1));
    scores = wg_mul_scalar(scores, job.options.scale);
    if (has_mask(call))
        scores = wg_masked_fill(scores, wg_logical_not(call->inputs[3]), -INFINITY);
    if (job.options.causal)
        scores =
            wg_masked_fill(scores, wg_logical_not(causal_mask(job.queries, job.keys)), -INFINITY);
    wg_tensor *weights = wg_softmax(scores, -1);
    if (job.options.dropout > 0)
        weights = wg_mul(weights, dropout_factors(&job));
    call->outputs[0] = wg_matmul(weights, v);
    return call->outputs[0] ? 0 : -1;
}

/* ---- The record ---- */

static double attention_flops(const wg_call *call) {
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    return 4 * (double)wg__spec_count(q) * (double)k->shape[2];
}

static int attention_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const struct {
        int64_t b, h, hkv, tq, tk, d;
        int mask_ndim;
        int64_t mask_shape[4];
        wg_attention_options options;
    } cases[] = {
        {2, 2, 2, 3, 3, 2, 0, {0}, {.scale = 0.7}},
        {2, 2, 2, 2, 3, 2, 4, {2, 1, 1, 3}, {.scale = 0.7}},
        {1, 4, 2, 3, 3, 2, 0, {0}, {.scale = 0.7, .causal = true}},
        {1, 2, 1, 3, 4, 2, 2, {3, 4}, {.scale = 0.5, .causal = true}},
        {1, 2, 2, 3, 4, 2, 0, {0}, {.scale = 0.5, .dropout = 0.4, .seed = 3, .offset = 1}},
        {1, 1, 1, 4, 2, 2, 0, {0}, {.scale = 0.5, .causal = true}}, /* two queries see nothing */
    };
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    sample->options = &cases[index].options;
    int64_t q[] = {cases[index].b, cases[index].h, cases[index].tq, cases[index].d};
    int64_t k[] = {cases[index].b, cases[index].hkv, cases[index].tk, cases[index].d};
    sample->inputs[0] = wg__sample_normal(generator, 4, q);
    sample->inputs[1] = wg__sample_normal(generator, 4, k);
    sample->inputs[2] = wg__sample_normal(generator, 4, k);
    if (cases[index].mask_ndim == 0)
        return wg__sample_status(sample, 3);
    wg_tensor *noise = wg_rand(generator, WG_F64, cases[index].mask_ndim, cases[index].mask_shape);
    sample->inputs[3] = wg_gt(noise, wg_scalar(WG_F64, 0.3));
    return wg__sample_status(sample, 4);
}

static int attention_bench(wg_generator *generator, wg_sample *sample) {
    static const wg_attention_options options = {.scale = 0.125};
    for (int i = 0; i < 3; i++)
        sample->inputs[i] = wg_randn(generator, WG_F32, 4, (int64_t[]){4, 8, 512, 64});
    sample->options = &options;
    return wg__sample_status(sample, 3);
}

static const wg_op attention = {
    .name = "attention",
    .doc = "softmax(scale q k^T) v for each head: (B, H, Tq, D) x (B, Hkv, Tk, D) x (B, Hkv, Tk, "
           "D), and a bool mask -> (B, H, Tq, D). Rows that may attend to nothing give zeros. "
           "Fused.",
    .min_inputs = 3,
    .max_inputs = 4,
    .output_count = 1,
    .options_size = sizeof(wg_attention_options),
    .saves_inputs = 15,
    .differentiable = 7,
    .places_outputs = true,
    .infer = attention_infer,
    .forward = attention_forward,
    .vjp = attention_vjp,
    .decompose = attention_decompose,
    .sample = attention_sample,
    .bench = attention_bench,
    .flops = attention_flops,
};

wg_tensor *wg_attention(wg_tensor *q, wg_tensor *k, wg_tensor *v, wg_tensor *mask,
                        const wg_attention_options *options) {
    wg_tensor *inputs[] = {q, k, v, mask};
    if (!k || !v || !wg__promote_all(3, inputs))
        return NULL;
    wg_dtype dtype = inputs[0]->spec.dtype;
    for (int i = 0; i < 3; i++)
        inputs[i] = wg__widen(inputs[i]);
    wg_attention_options resolved = options ? *options : (wg_attention_options){0};
    if (resolved.scale == 0 && q->spec.ndim > 0)
        resolved.scale = 1 / sqrt((double)q->spec.shape[q->spec.ndim - 1]);
    return wg__narrow(wg_apply_one(&attention, mask ? 4 : 3, inputs, &resolved), dtype);
}

static const wg_op *const ops[] = {&attention};

const wg__op_family wg__family_attention = {ops, sizeof ops / sizeof *ops};
