/* Multi-head attention: the projections, a step of generation with a cache, and queries at output
 * positions only. See attention.h. */
#include "nn/attention.h"

#include <math.h>
#include <string.h>

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/ops/attention/attention.h"

static void add_projections(wg_multi_head_attention *attention, int64_t width,
                            const wg_multi_head_attention_options *options) {
    wg_linear_options linear = {
        .no_bias = options->no_bias, .transposed = options->transposed, .init = options->init};
    if (linear.init.kind == WG_INIT_DEFAULT)
        linear.init.kind = WG_INIT_XAVIER_UNIFORM;
    wg_linear_options output = linear;
    if (options->output_init.kind != WG_INIT_DEFAULT)
        output.init = options->output_init;
    wg_module *module = &attention->module;
    const int64_t queries = wg__times(attention->heads, attention->head_width);
    const int64_t shared = wg__times(attention->key_value_heads, attention->head_width);
    int64_t memory = options->memory_width ? options->memory_width : width;
    if (options->joint) {
        attention->joint = wg_linear_new(module, options->joint_name ? options->joint_name : "qkv",
                                         width, queries + 2 * shared, &linear);
    } else {
        attention->query = wg_linear_new(
            module, options->query_name ? options->query_name : "query", width, queries, &linear);
        attention->key = wg_linear_new(module, options->key_name ? options->key_name : "key",
                                       memory, shared, &linear);
        if (options->value_rank) {
            wg_linear_options inner = linear;
            inner.no_bias = true;
            attention->value_inner = wg_linear_new(
                module, options->value_inner_name ? options->value_inner_name : "value_inner",
                memory, options->value_rank, &inner);
            memory = options->value_rank;
        }
        attention->value = wg_linear_new(
            module, options->value_name ? options->value_name : "value", memory, shared, &linear);
    }
    attention->output = wg_linear_new(
        module, options->output_name ? options->output_name : "output", queries, width, &output);
}

wg_multi_head_attention *wg_multi_head_attention_new(
    wg_module *parent, const char *name, int64_t width, int64_t heads,
    const wg_multi_head_attention_options *options) {
    options = options ? options : &(const wg_multi_head_attention_options){0};
    const int64_t shared = options->key_value_heads;
    if (wg__check_size("attention", "width", width) < 0 ||
        wg__check_size("attention", "heads", heads) < 0 ||
        wg__check_probability("attention", "dropout", options->dropout) < 0)
        return NULL;
    if (options->head_width < 0 || options->value_rank < 0 || options->memory_width < 0)
        return wg__fail_null(WG_ERROR_ARGUMENT, "attention", "a width is negative");
    if (!options->head_width && width % heads != 0)
        return wg__fail_null(
            WG_ERROR_ARGUMENT, "attention",
            "%lld heads do not divide width %lld; each head takes an equal part of it",
            (long long)heads, (long long)width);
    if (shared < 0 || (shared > 0 && heads % shared != 0))
        return wg__fail_null(WG_ERROR_ARGUMENT, "attention",
                             "%lld key_value_heads do not divide %lld heads", (long long)shared,
                             (long long)heads);
    if (options->joint && (options->memory_width || options->value_rank))
        return wg__fail_null(WG_ERROR_ARGUMENT, "attention",
                             "a joint projection is of self-attention, with no value rank");
    wg_multi_head_attention *attention = wg_module_new(parent, name, sizeof *attention);
    if (!attention)
        return NULL;
    attention->heads = heads;
    attention->key_value_heads = shared ? shared : heads;
    attention->head_width = options->head_width ? options->head_width : width / heads;
    attention->scale = options->scale;
    attention->dropout = options->dropout;
    attention->causal = options->causal;
    attention->pairing = options->pairing;
    add_projections(attention, width, options);
    return wg_module_finish(&attention->module);
}

/* (B, T, H D)   ->   (B, H, T, D), a view. */
static wg_tensor *split_heads(wg_tensor *x, int64_t heads) {
    if (!x)
        return NULL;
    int64_t b = wg_tensor_size(x, 0), t = wg_tensor_size(x, 1), c = wg_tensor_size(x, 2);
    return wg_transpose(wg_reshape(x, WG_DIMS(b, t, heads, c / heads)), 1, 2);
}

typedef struct projections {
    wg_tensor *q, *k, *v; /* (B, Tq, H D), (B, Tk, Hkv D) twice; k, v NULL: read the cache */
    wg_tensor *cos, *sin; /* rotary positions of q; k takes them from the inputs */
} projections;

/* The rows of a joint projection from `begin` to `end`, as a separate product. */
static wg_tensor *project_part(const wg_linear *joint, wg_tensor *x, int64_t begin, int64_t end) {
    wg_tensor *bias = joint->bias ? wg_slice(joint->bias, 0, begin, end, 1) : NULL;
    if (joint->bias && !bias)
        return NULL;
    return wg_linear_op(x, wg_slice(joint->weight, 0, begin, end, 1), bias);
}

typedef struct heads {
    wg_tensor *q, *k, *v; /* (B, H, Tq, D), (B, Hkv, Tk, D) twice: of all seen positions */
} heads;

/* Softmax and the steps around it as separate ops: for callers that ask for the weights or add a
 * bias. */
static wg_tensor *attend_plainly(const wg_multi_head_attention *a, const heads *h,
                                 const wg_attention_inputs *inputs,
                                 const wg_attention_options *options) {
    if (!h->q || !h->k || !h->v)
        return NULL;
    /* Each key and value head is repeated for the query heads that share it: (B, H, Tk, D). */
    const int64_t times = a->heads / wg_tensor_size(h->k, 1);
    wg_tensor *k = times == 1 ? h->k : wg_repeat_interleave(h->k, times, 1);
    wg_tensor *v = times == 1 ? h->v : wg_repeat_interleave(h->v, times, 1);
    if (!k || !v)
        return NULL;

    const double scale = wg__option(a->scale, 1 / sqrt((double)a->head_width));
    wg_tensor *scores = wg_mul_scalar(wg_matmul(h->q, wg_transpose(k, 2, 3)), scale);
    if (inputs->bias)
        scores = wg_add(scores, inputs->bias);
    if (inputs->mask)
        scores = wg_masked_fill(scores, wg_logical_not(inputs->mask), -INFINITY);
    if (options->causal || options->window > 0) {
        wg_tensor *seen =
            wg__attention_visible(options, wg_tensor_size(h->q, 2), wg_tensor_size(k, 2));
        if (seen)
            scores = wg_masked_fill(scores, wg_logical_not(seen), -INFINITY);
    }
    wg_tensor *weights = wg_softmax(scores, -1);
    if (inputs->weights)
        *inputs->weights = weights;
    if (options->dropout > 0)
        weights = wg_dropout_op(weights, options->dropout, options->seed, options->offset);
    return wg_matmul(weights, v);
}

/* The attention options of a forward call. Dropout draws from the module's generator. */
static wg_attention_options draw_options(wg_multi_head_attention *attention,
                                         const wg_attention_inputs *inputs) {
    wg_attention_options options = {.scale = attention->scale,
                                    .causal = attention->causal || inputs->causal,
                                    .window = inputs->window};
    if (attention->dropout > 0 && wg_module_is_training(&attention->module)) {
        wg_generator *generator = wg_module_generator(&attention->module);
        options.dropout = attention->dropout;
        options.seed = generator->seed;
        options.offset = generator->offset++;
    }
    return options;
}

/* (B, Tq, H D): in one go for a generated token, else op by op. */
static wg_tensor *attend(const wg_multi_head_attention *a, const projections *p,
                         const wg_attention_inputs *inputs, const wg_attention_options *options) {
    const wg__attention_step step = {.q = p->q,
                                     .k = p->k,
                                     .v = p->v,
                                     .heads = a->heads,
                                     .key_heads = a->key_value_heads,
                                     .cos = inputs->cos,
                                     .sin = inputs->sin,
                                     .pairing = a->pairing,
                                     .mask = inputs->mask,
                                     .options = *options};
    wg_kv_cache *cache = inputs->cache;
    if (cache && !inputs->memory && !inputs->weights && !inputs->bias &&
        wg__attention_step_suits(&step, cache->length) &&
        (!cache->key || wg_tensor_dtype(cache->key) == wg_tensor_dtype(step.k))) {
        const int64_t *shape = wg_tensor_shape(step.k), width = shape[2] / a->key_value_heads;
        const wg_spec new = {
            wg_tensor_dtype(step.k), 4, {shape[0], a->key_value_heads, shape[1], width}};
        if (wg__kv_cache_reserve(cache, &new, &new) < 0)
            return NULL;
        wg_tensor *y = wg__attention_step_run(&step, cache->key, cache->value, cache->length);
        cache->length += y ? shape[1] : 0;
        return y;
    }
    heads h = {.q = split_heads(p->q, a->heads)};
    if (p->cos)
        h.q = wg_rotary(h.q, p->cos, p->sin, a->pairing);
    if (!p->k) { /* cross-attention: the memory's keys and values are in the cache already */
        h.k = wg_slice(cache->key, 2, 0, cache->length, 1);
        h.v = wg_slice(cache->value, 2, 0, cache->length, 1);
    } else {
        h.k = split_heads(p->k, a->key_value_heads);
        h.v = split_heads(p->v, a->key_value_heads);
        if (inputs->cos)
            h.k = wg_rotary(h.k, inputs->cos, inputs->sin, a->pairing);
        if (cache && wg__kv_cache_append(cache, h.k, h.v, &h.k, &h.v) < 0)
            return NULL;
    }
    wg_tensor *y = inputs->weights || inputs->bias
                       ? attend_plainly(a, &h, inputs, options)
                       : wg_attention(h.q, h.k, h.v, inputs->mask, options);
    if (!y)
        return NULL;
    const int64_t *size = wg_tensor_shape(y); /* (B, H, T, D)   ->   (B, T, H D), a view */
    return wg_reshape(wg_transpose(y, 1, 2), WG_DIMS(size[0], size[2], size[1] * size[3]));
}

/* Attention from the output positions only, if fewer than half of the positions are output
 * positions: only these get queries. A batch holds R of them for each sequence, where R is the
 * largest number of output positions of a sequence:
 *
 *     x (B, Tq, C) --rows--> (B, R, C) -> queries -> (B, R, H D) --places--> (N, H D) */

typedef struct query_rows {
    int64_t most;     /* R; 0: queries are of all positions */
    wg_tensor *rows;  /* (B R) i64: b Tq + t. A sequence with fewer than R repeats its position 0 */
    wg_tensor *times; /* (B R) i64: t alone */
    wg_tensor *places; /* (N) i64, of N output positions: the index of each in (B R) */
} query_rows;

/* True for tables that query_rows_of supports: (Tq, X), (1 or B, 1, 1 or Tq, X), and NULL. */
static bool has_rows(const wg_tensor *table, int64_t batch, int64_t queries) {
    if (!table)
        return true;
    const int ndim = wg_tensor_ndim(table);
    if (ndim != 2 && ndim != 4)
        return false;
    const int64_t *shape = wg_tensor_shape(table), count = shape[ndim - 2];
    return (count == 1 || count == queries) &&
           (ndim == 2 || (shape[1] == 1 && (shape[0] == 1 || shape[0] == batch)));
}

static int fill_queries(query_rows *chosen, const int64_t *positions, int64_t count, int64_t batch,
                        int64_t queries, int64_t *counts) {
    const int64_t most = chosen->most, total = batch * most;
    chosen->rows = wg_empty(WG_I64, WG_DIMS(total));
    chosen->times = wg_zeros(WG_I64, WG_DIMS(total));
    chosen->places = wg_empty(WG_I64, WG_DIMS(count));
    if (!chosen->rows || !chosen->times || !chosen->places)
        return -1;
    int64_t *rows = wg_tensor_data(chosen->rows), *times = wg_tensor_data(chosen->times),
            *places = wg_tensor_data(chosen->places);
    for (int64_t i = 0; i < total; i++)
        rows[i] = i / most * queries;
    memset(counts, 0, (size_t)batch * sizeof *counts);
    for (int64_t i = 0; i < count; i++) {
        const int64_t sequence = positions[i] / queries;
        const int64_t place = sequence * most + counts[sequence]++;
        rows[place] = positions[i];
        times[place] = positions[i] % queries;
        places[i] = place;
    }
    return 0;
}

/* Sets `chosen` to the output positions if they are fewer than half of the positions and no input
 * needs results elsewhere. Leaves `chosen` zero for queries at all positions. */
static int choose_query_rows(const wg_tensor *x, const wg_attention_inputs *inputs,
                             query_rows *chosen) {
    wg_tensor *wanted = inputs->output_positions;
    const int64_t batch = wg_tensor_size(x, 0), queries = wg_tensor_size(x, 1);
    if (!wanted || wg_tensor_ndim(wanted) != 1 || wg_tensor_dtype(wanted) != WG_I64 ||
        wg_tensor_count(wanted) == 0 || batch == 0 || inputs->memory || inputs->bias ||
        inputs->cache || inputs->weights || !has_rows(inputs->mask, batch, queries) ||
        !has_rows(inputs->cos, batch, queries) || !has_rows(inputs->sin, batch, queries))
        return 0;
    int64_t *counts = wg__calloc((size_t)batch, sizeof *counts), most = 0;
    wanted = wg_contiguous(wanted);
    int status = counts && wanted ? 0 : -1;
    if (status == 0) {
        const int64_t *positions = wg_tensor_data(wanted), count = wg_tensor_count(wanted);
        bool is_inside = true; /* of the batch */
        for (int64_t i = 0; i < count && is_inside; i++) {
            is_inside = positions[i] >= 0 && positions[i] < batch * queries;
            if (is_inside)
                most = wg__larger(most, ++counts[positions[i] / queries]);
        }
        chosen->most = is_inside && most <= queries / 2 ? most : 0;
        if (chosen->most)
            status = fill_queries(chosen, positions, count, batch, queries, counts);
    }
    wg__free(counts);
    return status;
}

/* The rows of a table for these queries: (B, 1, R, X), or the table itself if it has a single row.
 * NULL for NULL. */
static wg_tensor *query_rows_of(const query_rows *chosen, wg_tensor *table) {
    if (!table || wg_tensor_size(table, -2) == 1)
        return table;
    const bool each = wg_tensor_ndim(table) == 4 && wg_tensor_size(table, 0) > 1;
    wg_tensor *rows =
        wg_index_select(wg_flatten(table, 0, -2), 0, each ? chosen->rows : chosen->times);
    return wg_reshape(rows, WG_DIMS(-1, 1, chosen->most, wg_tensor_size(table, -1)));
}

/* x at the chosen queries: (B, R, C). Mask and rotary positions become those queries' rows. Causal
 * attention and windows count all positions as queries, so they move from the options into the
 * mask. */
static wg_tensor *select_queries(const query_rows *chosen, wg_tensor *x, wg_tensor **mask,
                                 projections *p, wg_attention_options *options) {
    const int64_t queries = wg_tensor_size(x, 1);
    wg_tensor *rows = query_rows_of(chosen, *mask), *seen = NULL;
    if (options->causal || options->window > 0)
        seen = query_rows_of(chosen, wg__attention_visible(options, queries, queries));
    options->causal = false;
    options->window = 0;
    *mask = !seen ? rows : *mask ? wg_logical_and(rows, seen) : seen;
    p->cos = query_rows_of(chosen, p->cos);
    p->sin = query_rows_of(chosen, p->sin);
    return wg_reshape(wg_index_select(wg_flatten(x, 0, 1), 0, chosen->rows),
                      WG_DIMS(-1, chosen->most, wg_tensor_size(x, 2)));
}

static int check_rank(const char *what, const wg_tensor *x) {
    if (wg_tensor_ndim(x) == 3)
        return 0;
    return wg_fail(WG_ERROR_SHAPE, "attention", "%s has rank %d; wanted (B, T, C)", what,
                   wg_tensor_ndim(x));
}

static int check_inputs(const wg_multi_head_attention *a, const wg_tensor *x,
                        const wg_attention_inputs *inputs) {
    if (!x || check_rank("x", x) < 0 ||
        (inputs->memory && check_rank("memory", inputs->memory) < 0))
        return -1;
    if (a->joint && inputs->memory)
        return wg_fail(WG_ERROR_ARGUMENT, "attention",
                       "a joint projection has no place for a memory");
    if (!inputs->cos != !inputs->sin)
        return wg_fail(WG_ERROR_ARGUMENT, "attention",
                       "rotary positions are a table of cosines and one of sines");
    return 0;
}

static _Thread_local wg_attention_watcher watcher;
static _Thread_local void *watcher_context;

void wg__watch_attention(wg_attention_watcher watch, void *context) {
    watcher = watch;
    watcher_context = context;
}

wg_tensor *wg_multi_head_attention_forward(wg_multi_head_attention *a, wg_tensor *x,
                                           const wg_attention_inputs *inputs) {
    wg_attention_inputs own = inputs ? *inputs : (wg_attention_inputs){0};
    wg_error_place place;
    wg_module_enter(&a->module, &place);
    if (check_inputs(a, x, &own) < 0)
        return wg_module_leave(&place, NULL);
    wg_tensor *watched = NULL, *attended = NULL, *x_of_queries = x;
    if (watcher && !own.weights)
        own.weights = &watched;
    const int64_t seen = own.cache ? own.cache->length : 0;
    wg_attention_options options = draw_options(a, &own);
    projections p = {.cos = own.cos, .sin = own.sin};
    query_rows chosen = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    if (!a->joint || (!a->joint->stand_in && !a->joint->transposed))
        choose_query_rows(x, &own, &chosen);
    if (chosen.most)
        x_of_queries = select_queries(&chosen, x, &own.mask, &p, &options);
    if (!wg_error_pending()) {
        wg_linear *const layers[] = {a->query, a->key, a->value};
        wg_tensor *parts[3] = {NULL}, *memory = own.memory ? own.memory : x;
        const bool is_one = !own.memory && !a->value_inner && x_of_queries == x;
        /* The keys and values of a memory do not change from one token to the next. */
        const bool recalls = own.cache && own.memory && own.cache->length > 0;
        if (a->joint) {
            const int64_t shared = a->key_value_heads * a->head_width, q = a->heads * a->head_width;
            const int64_t widths[] = {q, shared, shared};
            if (x_of_queries == x)
                wg_split(wg_linear_forward(a->joint, x), -1, 3, widths, parts);
            else {
                parts[0] = project_part(a->joint, x_of_queries, 0, q);
                wg_split(project_part(a->joint, x, q, q + 2 * shared), -1, 2, widths + 1,
                         parts + 1);
            }
        } else if (!is_one || !wg__quantized_linears_forward(3, layers, x, parts)) {
            parts[0] = wg_linear_forward(a->query, x_of_queries);
            parts[1] = recalls ? NULL : wg_linear_forward(a->key, memory);
            if (a->value_inner && !recalls)
                memory = wg_linear_forward(a->value_inner, memory);
            parts[2] = recalls ? NULL : wg_linear_forward(a->value, memory);
        }
        p.q = parts[0], p.k = parts[1], p.v = parts[2];
        if (p.q && (recalls || (p.k && p.v)))
            attended = attend(a, &p, &own, &options);
        if (own.output_positions)
            attended = wg_index_select(wg_flatten(attended, 0, 1), 0,
                                       chosen.most ? chosen.places : own.output_positions);
    }
    wg_tensor *y = wg_linear_forward(a->output, attended);
    if (!y && own.cache)
        own.cache->length = seen;
    if (own.weights)
        wg_scope_escape(*own.weights);
    y = wg_scope_end(&scope, y);
    if (watcher && y && *own.weights) {
        char path[256];
        wg__error_place_now(path, sizeof path);
        watcher(path, *own.weights, watcher_context);
    }
    return wg_module_leave(&place, y);
}
