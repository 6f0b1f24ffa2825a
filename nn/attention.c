/* Multi-head attention, and its cache of keys and values. */
#include "nn/attention.h"

#include <math.h>
#include <string.h>

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/ops/attention/attention.h"

/* ---- The cache of keys and values ---- */

void wg_kv_cache_init(wg_kv_cache *cache, int64_t capacity) {
    *cache = (wg_kv_cache){.capacity = capacity};
}

void wg_kv_cache_clear(wg_kv_cache *cache) {
    wg_release(cache->key);
    wg_release(cache->value);
    *cache = (wg_kv_cache){.capacity = cache->capacity};
}

static wg_tensor *new_room(const wg_spec *x, int64_t capacity) {
    return wg_empty(x->dtype, WG_DIMS(x->shape[0], x->shape[1], capacity, x->shape[3]));
}

static int take_memory(wg_kv_cache *cache, const wg_spec *key, const wg_spec *value) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *keys = new_room(key, cache->capacity), *values = new_room(value, cache->capacity);
    if (keys && values) {
        cache->key = wg_keep(keys);
        cache->value = wg_keep(values);
    }
    wg_scope_end(&scope, NULL);
    return cache->key ? 0 : -1;
}

static int check_fits(const wg_tensor *room, const wg_spec *x) {
    const int64_t *shape = room->spec.shape;
    if (shape[0] == x->shape[0] && shape[1] == x->shape[1] && shape[3] == x->shape[3])
        return 0;
    char text[64];
    return wg_fail(WG_ERROR_SHAPE, "kv_cache",
                   "%s; the cache holds %lld sequences of %lld heads of %lld",
                   wg_spec_text(text, sizeof text, x), (long long)shape[0], (long long)shape[1],
                   (long long)shape[3]);
}

/* Makes room for keys and values (B, Hkv, T, D) after those that the cache holds; memory is taken
 * at the first use. [ARGUMENT beyond the capacity; SHAPE if they do not fit the others; MEMORY] */
static int reserve(wg_kv_cache *cache, const wg_spec *key, const wg_spec *value) {
    const int64_t positions = key->shape[2];
    if (cache->length + positions > cache->capacity)
        return wg_fail(WG_ERROR_ARGUMENT, "kv_cache",
                       "%lld positions after %lld are more than the cache has room for, %lld",
                       (long long)positions, (long long)cache->length, (long long)cache->capacity);
    if (!cache->key)
        return take_memory(cache, key, value);
    return check_fits(cache->key, key) < 0 || check_fits(cache->value, value) < 0 ? -1 : 0;
}

static int check_new(const wg_tensor *key, const wg_tensor *value) {
    if (!key || !value)
        return -1;
    if (wg_tensor_ndim(key) != 4 || wg_tensor_ndim(value) != 4 ||
        wg_tensor_size(key, 2) != wg_tensor_size(value, 2))
        return wg_fail(WG_ERROR_SHAPE, "kv_cache",
                       "wanted keys and values (B, Hkv, T, D) of one T");
    if (wg_requires_grad(key) || wg_requires_grad(value))
        return wg_fail(WG_ERROR_GRADIENT, "kv_cache",
                       "a cache takes no part in a graph; turn recording off to generate");
    return 0;
}

/* Copies x into the room behind the first `length` positions; returns all positions filled. */
static wg_tensor *extend_room(wg_tensor *room, wg_tensor *x, int64_t length) {
    const int64_t end = length + wg_tensor_size(x, 2);
    if (wg_copy_(wg_slice(room, 2, length, end, 1), x) < 0)
        return NULL;
    return wg_slice(room, 2, 0, end, 1);
}

int wg__kv_cache_append(wg_kv_cache *cache, wg_tensor *key, wg_tensor *value, wg_tensor **all_keys,
                        wg_tensor **all_values) {
    if (check_new(key, value) < 0 || reserve(cache, &key->spec, &value->spec) < 0)
        return -1;
    *all_keys = extend_room(cache->key, key, cache->length);
    *all_values = extend_room(cache->value, value, cache->length);
    if (!*all_keys || !*all_values)
        return -1;
    cache->length += wg_tensor_size(key, 2);
    return 0;
}

int wg__kv_cache_truncate(wg_kv_cache *cache, int64_t length) {
    if (length < 0 || length > cache->length)
        return wg_fail(WG_ERROR_ARGUMENT, "kv_cache", "length %lld; %lld positions are filled",
                       (long long)length, (long long)cache->length);
    cache->length = length;
    return 0;
}

static int reorder_room(wg_tensor **room, wg_tensor *index) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *chosen = wg_index_select(*room, 0, index);
    if (chosen) {
        wg_release(*room);
        *room = wg_keep(chosen);
    }
    wg_scope_end(&scope, NULL);
    return chosen ? 0 : -1;
}

int wg__kv_cache_reorder(wg_kv_cache *cache, wg_tensor *index) {
    if (!cache->key)
        return 0;
    return reorder_room(&cache->key, index) < 0 || reorder_room(&cache->value, index) < 0 ? -1 : 0;
}

/* ---- Construction ---- */

static const char *or_else(const char *name, const char *otherwise) {
    return name ? name : otherwise;
}

static int check(int64_t width, int64_t heads, const wg_multi_head_attention_options *options) {
    if (wg__check_size("attention", "width", width) < 0 ||
        wg__check_size("attention", "heads", heads) < 0 ||
        wg__check_probability("attention", "dropout", options->dropout) < 0)
        return -1;
    if (options->head_width < 0 || options->value_rank < 0 || options->memory_width < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "attention", "a width is negative");
    if (!options->head_width && width % heads != 0)
        return wg_fail(WG_ERROR_ARGUMENT, "attention",
                       "%lld heads do not divide width %lld; each head takes an equal part of it",
                       (long long)heads, (long long)width);
    const int64_t shared = options->key_value_heads;
    if (shared < 0 || (shared > 0 && heads % shared != 0))
        return wg_fail(WG_ERROR_ARGUMENT, "attention",
                       "%lld key_value_heads do not divide %lld heads", (long long)shared,
                       (long long)heads);
    if (options->joint && (options->memory_width || options->value_rank))
        return wg_fail(WG_ERROR_ARGUMENT, "attention",
                       "a joint projection is of self-attention, with no value rank");
    return 0;
}

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
        attention->joint = wg_linear_new(module, or_else(options->joint_name, "qkv"), width,
                                         queries + 2 * shared, &linear);
    } else {
        attention->query =
            wg_linear_new(module, or_else(options->query_name, "query"), width, queries, &linear);
        attention->key =
            wg_linear_new(module, or_else(options->key_name, "key"), memory, shared, &linear);
        if (options->value_rank) {
            wg_linear_options inner = linear;
            inner.no_bias = true;
            attention->value_inner =
                wg_linear_new(module, or_else(options->value_inner_name, "value_inner"), memory,
                              options->value_rank, &inner);
            memory = options->value_rank;
        }
        attention->value =
            wg_linear_new(module, or_else(options->value_name, "value"), memory, shared, &linear);
    }
    attention->output =
        wg_linear_new(module, or_else(options->output_name, "output"), queries, width, &output);
}

wg_multi_head_attention *wg_multi_head_attention_new(
    wg_module *parent, const char *name, int64_t width, int64_t heads,
    const wg_multi_head_attention_options *options) {
    static const wg_multi_head_attention_options defaults;
    if (!options)
        options = &defaults;
    if (check(width, heads, options) < 0)
        return NULL;
    wg_multi_head_attention *attention = wg_module_new(parent, name, sizeof *attention);
    if (!attention)
        return NULL;
    attention->heads = heads;
    attention->key_value_heads = options->key_value_heads ? options->key_value_heads : heads;
    attention->head_width = options->head_width ? options->head_width : width / heads;
    attention->scale = options->scale;
    attention->dropout = options->dropout;
    attention->causal = options->causal;
    attention->pairing = options->pairing;
    add_projections(attention, width, options);
    return wg_module_finish(&attention->module);
}

/* ---- Heads ---- */

/* (B, T, H D)   ->   (B, H, T, D), a view. */
static wg_tensor *split_heads(wg_tensor *x, int64_t heads) {
    if (!x)
        return NULL;
    int64_t b = wg_tensor_size(x, 0), t = wg_tensor_size(x, 1), c = wg_tensor_size(x, 2);
    return wg_transpose(wg_reshape(x, WG_DIMS(b, t, heads, c / heads)), 1, 2);
}

/* (B, H, T, D)   ->   (B, T, H D), a view of what wg_attention gives. */
static wg_tensor *merge_heads(wg_tensor *x) {
    if (!x)
        return NULL;
    int64_t b = wg_tensor_size(x, 0), h = wg_tensor_size(x, 1), t = wg_tensor_size(x, 2);
    return wg_reshape(wg_transpose(x, 1, 2), WG_DIMS(b, t, h * wg_tensor_size(x, 3)));
}

/* ---- Queries, keys and values ---- */

typedef struct projections {
    wg_tensor *q, *k, *v; /* (B, Tq, H D), (B, Tk, Hkv D) twice */
    wg_tensor *cos, *sin; /* rotary positions of q; those of k are the inputs' */
} projections;

/* The rows of a joint projection from `begin` to `end`, a product of its own. */
static wg_tensor *project_part(const wg_linear *joint, wg_tensor *x, int64_t begin, int64_t end) {
    wg_tensor *bias = joint->bias ? wg_slice(joint->bias, 0, begin, end, 1) : NULL;
    if (joint->bias && !bias)
        return NULL;
    return wg_linear_op(x, wg_slice(joint->weight, 0, begin, end, 1), bias);
}

/* Cross-attention's keys and values do not change from one token to the next. */
static bool recalls(const wg_attention_inputs *inputs) {
    return inputs->cache && inputs->memory && inputs->cache->length > 0;
}

/* The parts of the joint projection, views; or two products, where queries are of other rows than
 * keys and values. */
static void project_jointly(const wg_multi_head_attention *a, wg_tensor *x_of_queries, wg_tensor *x,
                            projections *p) {
    const int64_t queries = a->heads * a->head_width, shared = a->key_value_heads * a->head_width;
    wg_tensor *parts[3];
    if (x_of_queries == x) {
        wg_tensor *joint = wg_linear_forward(a->joint, x);
        if (wg_split(joint, -1, 3, (int64_t[]){queries, shared, shared}, parts) == 0)
            p->q = parts[0], p->k = parts[1], p->v = parts[2];
    } else {
        p->q = project_part(a->joint, x_of_queries, 0, queries);
        wg_tensor *rest = project_part(a->joint, x, queries, queries + 2 * shared);
        if (wg_split(rest, -1, 2, (int64_t[]){shared, shared}, parts) == 0)
            p->k = parts[0], p->v = parts[1];
    }
}

/* x_of_queries (B, Tq, C) gives queries, and x (B, Tk, C), or the memory, keys and values. NULLs
 * after an error. */
static void project(const wg_multi_head_attention *a, wg_tensor *x_of_queries, wg_tensor *x,
                    const wg_attention_inputs *inputs, projections *p) {
    wg_linear *const layers[] = {a->query, a->key, a->value};
    if (a->joint) {
        project_jointly(a, x_of_queries, x, p);
    } else if (!inputs->memory && !a->value_inner && x_of_queries == x &&
               wg__linears_are_quantized_alike(3, layers)) {
        wg_tensor *parts[3];
        if (wg__quantized_linears_forward(3, layers, x, parts) == 0)
            p->q = parts[0], p->k = parts[1], p->v = parts[2];
    } else {
        p->q = wg_linear_forward(a->query, x_of_queries);
        if (recalls(inputs))
            return;
        wg_tensor *memory = inputs->memory ? inputs->memory : x;
        p->k = wg_linear_forward(a->key, memory);
        if (a->value_inner)
            memory = wg_linear_forward(a->value_inner, memory);
        p->v = wg_linear_forward(a->value, memory);
    }
}

/* False after an error. */
static bool is_projected(const projections *p, const wg_attention_inputs *inputs) {
    return p->q && (recalls(inputs) || (p->k && p->v));
}

/* ---- Heads ---- */

typedef struct heads {
    wg_tensor *q, *k, *v; /* (B, H, Tq, D), (B, Hkv, Tk, D) twice: of all that is seen */
} heads;

static int split(const wg_multi_head_attention *a, const projections *p,
                 const wg_attention_inputs *inputs, heads *h) {
    wg_kv_cache *cache = inputs->cache;
    h->q = split_heads(p->q, a->heads);
    if (p->cos)
        h->q = wg_rotary(h->q, p->cos, p->sin, a->pairing);
    if (recalls(inputs)) {
        h->k = wg_slice(cache->key, 2, 0, cache->length, 1);
        h->v = wg_slice(cache->value, 2, 0, cache->length, 1);
        return h->v ? 0 : -1;
    }
    h->k = split_heads(p->k, a->key_value_heads);
    h->v = split_heads(p->v, a->key_value_heads);
    if (inputs->cos)
        h->k = wg_rotary(h->k, inputs->cos, inputs->sin, a->pairing);
    return cache ? wg__kv_cache_append(cache, h->k, h->v, &h->k, &h->v) : 0;
}

/* ---- Attention itself ---- */

/* Every key and value head as often as query heads share it: (B, Hkv, T, D) -> (B, H, T, D). */
static wg_tensor *repeat_heads(wg_tensor *x, int64_t heads) {
    const int64_t shared = wg_tensor_size(x, 1);
    return !x || shared == heads ? x : wg_repeat_interleave(x, heads / shared, 1);
}

/* Softmax and the steps around it as ops of their own: for callers that ask for the weights or add
 * a bias. */
static wg_tensor *attend_plainly(const wg_multi_head_attention *a, const heads *h,
                                 const wg_attention_inputs *inputs,
                                 const wg_attention_options *options) {
    wg_tensor *k = repeat_heads(h->k, a->heads), *v = repeat_heads(h->v, a->heads);
    if (!h->q || !k || !v)
        return NULL;
    const double scale = a->scale == 0 ? 1 / sqrt((double)a->head_width) : a->scale;
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

/* The options of one call. Dropout draws from the module's generator. */
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

static bool is_step(const wg_attention_inputs *inputs, const wg__attention_step *step) {
    const wg_kv_cache *cache = inputs->cache;
    return cache && !inputs->memory && !inputs->weights && !inputs->bias &&
           wg__attention_step_suits(step, cache->length) &&
           (!cache->key || wg_tensor_dtype(cache->key) == wg_tensor_dtype(step->k));
}

static wg_tensor *take_step(const wg_multi_head_attention *a, const wg__attention_step *step,
                            wg_kv_cache *cache) {
    const int64_t *shape = wg_tensor_shape(step->k);
    const wg_spec new = {wg_tensor_dtype(step->k),
                         4,
                         {shape[0], a->key_value_heads, shape[1], shape[2] / a->key_value_heads}};
    if (reserve(cache, &new, &new) < 0)
        return NULL;
    wg_tensor *y = wg__attention_step_run(step, cache->key, cache->value, cache->length);
    cache->length += y ? shape[1] : 0;
    return y;
}

/* (B, Tq, H D): in one go for a token that is generated, else by ops of their own. */
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
    if (is_step(inputs, &step))
        return take_step(a, &step, inputs->cache);
    heads h = {0};
    if (split(a, p, inputs, &h) < 0)
        return NULL;
    return merge_heads(inputs->weights || inputs->bias
                           ? attend_plainly(a, &h, inputs, options)
                           : wg_attention(h.q, h.k, h.v, inputs->mask, options));
}

/* ---- Queries of some positions alone ----
 *
 * Where fewer than half of the positions are output positions, only these get queries. A batch
 * holds R of them for each sequence, where R is the largest number of output positions of a
 * sequence:
 *
 *     x (B, Tq, C) --rows--> (B, R, C) -> queries -> (B, R, H D) --places--> (N, H D) ---- */

typedef struct some_queries {
    int64_t most;     /* R; 0: queries are of all positions */
    wg_tensor *rows;  /* (B R) i64: b Tq + t. A sequence with fewer than R repeats its position 0 */
    wg_tensor *times; /* (B R) i64: t alone */
    wg_tensor *places; /* (N) i64, of N output positions: where in (B R) each stands */
} some_queries;

static bool has_plain_weight(const wg_linear *linear) {
    return !linear->quantized && !linear->transposed && !linear->adapter.a;
}

/* True for a table (Tq, X) or (1 or B, 1, 1 or Tq, X), whose rows rows_of finds; NULL is one. */
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

/* The largest number of output positions of a sequence; -1 if one of them is beyond the batch. */
static int64_t most_of_a_sequence(const int64_t *positions, int64_t count, int64_t batch,
                                  int64_t queries, int64_t *counts) {
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        if (positions[i] < 0 || positions[i] >= batch * queries)
            return -1;
        const int64_t found = ++counts[positions[i] / queries];
        most = found > most ? found : most;
    }
    return most;
}

static int fill_queries(some_queries *some, const int64_t *positions, int64_t count, int64_t batch,
                        int64_t queries, int64_t *counts) {
    const int64_t most = some->most, total = batch * most;
    some->rows = wg_empty(WG_I64, WG_DIMS(total));
    some->times = wg_zeros(WG_I64, WG_DIMS(total));
    some->places = wg_empty(WG_I64, WG_DIMS(count));
    if (!some->rows || !some->times || !some->places)
        return -1;
    int64_t *rows = wg_tensor_data(some->rows), *times = wg_tensor_data(some->times),
            *places = wg_tensor_data(some->places);
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

/* Chooses the queries of `inputs`: all, unless the output positions are fewer than half of them and
 * nothing else is wanted of the others. -1 without memory. */
static int choose_queries(const wg_multi_head_attention *a, const wg_tensor *x,
                          const wg_attention_inputs *inputs, some_queries *some) {
    *some = (some_queries){0};
    wg_tensor *wanted = inputs->output_positions;
    const int64_t batch = wg_tensor_size(x, 0), queries = wg_tensor_size(x, 1);
    if (!wanted || wg_tensor_ndim(wanted) != 1 || wg_tensor_dtype(wanted) != WG_I64 ||
        wg_tensor_count(wanted) == 0 || batch == 0 || inputs->memory || inputs->bias ||
        inputs->cache || inputs->weights || (a->joint && !has_plain_weight(a->joint)) ||
        !has_rows(inputs->mask, batch, queries) || !has_rows(inputs->cos, batch, queries) ||
        !has_rows(inputs->sin, batch, queries))
        return 0;
    int64_t *counts = wg__calloc((size_t)batch, sizeof *counts);
    wanted = wg_contiguous(wanted);
    int status = counts && wanted ? 0 : -1;
    if (status == 0) {
        const int64_t *positions = wg_tensor_data(wanted), count = wg_tensor_count(wanted);
        const int64_t most = most_of_a_sequence(positions, count, batch, queries, counts);
        some->most = most > 0 && most <= queries / 2 ? most : 0;
        if (some->most)
            status = fill_queries(some, positions, count, batch, queries, counts);
    }
    wg__free(counts);
    return status;
}

/* The rows of a table for these queries: (B, 1, R, X), or the table itself where all are alike. */
static wg_tensor *rows_of(const some_queries *some, wg_tensor *table) {
    if (!table || wg_tensor_size(table, -2) == 1)
        return table;
    const bool each = wg_tensor_ndim(table) == 4 && wg_tensor_size(table, 0) > 1;
    wg_tensor *rows = wg_index_select(wg_flatten(table, 0, -2), 0, each ? some->rows : some->times);
    return wg_reshape(rows, WG_DIMS(-1, 1, some->most, wg_tensor_size(table, -1)));
}

/* (B, Tq, C)   ->   (B, R, C). */
static wg_tensor *rows_of_x(const some_queries *some, wg_tensor *x) {
    return wg_reshape(wg_index_select(wg_flatten(x, 0, 1), 0, some->rows),
                      WG_DIMS(-1, some->most, wg_tensor_size(x, 2)));
}

/* Restricts options and inputs to these queries. The mask alone then says which keys each of them
 * sees, as causal attention and windows are for queries at all positions. */
static int look_from(const some_queries *some, const wg_tensor *x, wg_attention_options *options,
                     wg_attention_inputs *inputs, projections *p) {
    wg_tensor *const mask = inputs->mask;
    const int64_t queries = wg_tensor_size(x, 1);
    inputs->mask = rows_of(some, mask);
    if (options->causal || options->window > 0) {
        wg_tensor *seen = wg__attention_visible(options, queries, queries);
        if (seen) {
            seen = rows_of(some, seen);
            inputs->mask = mask ? wg_logical_and(inputs->mask, seen) : seen;
        }
        options->causal = false;
        options->window = 0;
    }
    p->cos = rows_of(some, inputs->cos);
    p->sin = rows_of(some, inputs->sin);
    return wg_error_pending() ? -1 : 0;
}

/* ---- Forward ---- */

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

static wg_tensor *forward(wg_multi_head_attention *attention, wg_tensor *x,
                          const wg_attention_inputs *inputs) {
    if (check_inputs(attention, x, inputs) < 0)
        return NULL;
    wg_attention_options options = draw_options(attention, inputs);
    const int64_t seen = inputs->cache ? inputs->cache->length : 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *attended = NULL;
    wg_attention_inputs own = *inputs;
    projections p = {.cos = inputs->cos, .sin = inputs->sin};
    some_queries some;
    if (choose_queries(attention, x, inputs, &some) == 0 &&
        (!some.most || look_from(&some, x, &options, &own, &p) == 0)) {
        project(attention, some.most ? rows_of_x(&some, x) : x, x, &own, &p);
        if (is_projected(&p, &own))
            attended = attend(attention, &p, &own, &options);
        if (inputs->output_positions)
            attended = wg_index_select(wg_flatten(attended, 0, 1), 0,
                                       some.most ? some.places : inputs->output_positions);
    }
    wg_tensor *y = wg_linear_forward(attention->output, attended);
    if (!y && inputs->cache)
        inputs->cache->length = seen;
    if (inputs->weights)
        wg_scope_escape(*inputs->weights);
    return wg_scope_end(&scope, y);
}

/* ---- Watching ---- */

static _Thread_local wg_attention_watcher watcher;
static _Thread_local void *watcher_context;

void wg_watch_attention(wg_attention_watcher watch, void *context) {
    watcher = watch;
    watcher_context = context;
}

static wg_tensor *watched_forward(wg_multi_head_attention *attention, wg_tensor *x,
                                  const wg_attention_inputs *inputs) {
    char path[256];
    wg_tensor *weights = NULL;
    wg_attention_inputs watched = *inputs;
    if (!watched.weights)
        watched.weights = &weights;
    wg_tensor *y = forward(attention, x, &watched);
    wg__error_place_now(path, sizeof path);
    if (y && *watched.weights)
        watcher(path, *watched.weights, watcher_context);
    return y;
}

wg_tensor *wg_multi_head_attention_forward(wg_multi_head_attention *attention, wg_tensor *x,
                                           const wg_attention_inputs *inputs) {
    static const wg_attention_inputs nothing;
    wg_error_place place;
    wg_module_enter(&attention->module, &place);
    return wg_module_leave(
        &place, (watcher ? watched_forward : forward)(attention, x, inputs ? inputs : &nothing));
}

wg_tensor *wg_padding_mask(wg_tensor *keep) {
    if (!keep)
        return NULL;
    if (wg_tensor_ndim(keep) != 2 || wg_tensor_dtype(keep) != WG_BOOL) {
        wg_fail(wg_tensor_ndim(keep) != 2 ? WG_ERROR_SHAPE : WG_ERROR_DTYPE, "padding_mask",
                "rank %d %s; wanted (B, T) bool", wg_tensor_ndim(keep),
                wg_dtype_name(wg_tensor_dtype(keep)));
        return NULL;
    }
    return wg_reshape(keep, WG_DIMS(wg_tensor_size(keep, 0), 1, 1, wg_tensor_size(keep, 1)));
}

wg_tensor *wg_prefix_mask(wg_tensor *prefix, int64_t seen, int64_t queries) {
    if (!prefix)
        return NULL;
    const wg_dtype dtype = wg_tensor_dtype(prefix);
    if (wg_tensor_ndim(prefix) != 1) {
        wg_fail(WG_ERROR_SHAPE, "prefix_mask", "prefix has rank %d; wanted (B)",
                wg_tensor_ndim(prefix));
        return NULL;
    }
    if (dtype != WG_I64 && dtype != WG_I32) {
        wg_fail(WG_ERROR_DTYPE, "prefix_mask", "prefix is %s; wanted i64 or i32",
                wg_dtype_name(dtype));
        return NULL;
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t keys = seen + queries;
    wg_tensor *before = wg_tril(wg_ones(WG_BOOL, WG_DIMS(queries, keys)), seen);
    wg_tensor *position = wg_arange(dtype, 0, (double)keys, 1);
    wg_tensor *in_prefix = wg_lt(position, wg_reshape(prefix, WG_DIMS(-1, 1, 1, 1)));
    return wg_scope_end(&scope, wg_logical_or(before, in_prefix));
}
