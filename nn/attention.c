/* Multi-head attention. */
#include "nn/attention.h"

#include <math.h>

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/ops/attention/attention.h"

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
                            wg_tensor **parts) {
    const int64_t queries = a->heads * a->head_width, shared = a->key_value_heads * a->head_width;
    const int64_t widths[] = {queries, shared, shared};
    if (x_of_queries == x) {
        wg_split(wg_linear_forward(a->joint, x), -1, 3, widths, parts);
        return;
    }
    parts[0] = project_part(a->joint, x_of_queries, 0, queries);
    wg_split(project_part(a->joint, x, queries, queries + 2 * shared), -1, 2, widths + 1,
             parts + 1);
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
    heads h = {0};
    if (split(a, p, inputs, &h) < 0)
        return NULL;
    return merge_heads(inputs->weights || inputs->bias
                           ? attend_plainly(a, &h, inputs, options)
                           : wg_attention(h.q, h.k, h.v, inputs->mask, options));
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

static _Thread_local wg_attention_watcher watcher;
static _Thread_local void *watcher_context;

void wg__watch_attention(wg_attention_watcher watch, void *context) {
    watcher = watch;
    watcher_context = context;
}

wg_tensor *wg_multi_head_attention_forward(wg_multi_head_attention *a, wg_tensor *x,
                                           const wg_attention_inputs *inputs) {
    static const wg_attention_inputs nothing;
    wg_attention_inputs own = inputs ? *inputs : nothing;
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
    wg__query_rows some = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    if (!a->joint || (!a->joint->stand_in && !a->joint->transposed))
        wg__query_rows_choose(x, &own, &some);
    if (some.most) {
        own.mask = wg__query_rows_mask(&some, own.mask, wg_tensor_size(x, 1), &options);
        p.cos = wg__query_rows_of(&some, own.cos);
        p.sin = wg__query_rows_of(&some, own.sin);
        x_of_queries = wg__query_rows_of_x(&some, x);
    }
    if (!wg_error_pending()) {
        wg_linear *const layers[] = {a->query, a->key, a->value};
        wg_tensor *parts[3] = {NULL}, *memory = own.memory ? own.memory : x;
        const bool is_one = !own.memory && !a->value_inner && x_of_queries == x;
        if (a->joint) {
            project_jointly(a, x_of_queries, x, parts);
        } else if (!is_one || !wg__quantized_linears_forward(3, layers, x, parts)) {
            parts[0] = wg_linear_forward(a->query, x_of_queries);
            parts[1] = recalls(&own) ? NULL : wg_linear_forward(a->key, memory);
            if (a->value_inner && !recalls(&own))
                memory = wg_linear_forward(a->value_inner, memory);
            parts[2] = recalls(&own) ? NULL : wg_linear_forward(a->value, memory);
        }
        p.q = parts[0], p.k = parts[1], p.v = parts[2];
        if (p.q && (recalls(&own) || (p.k && p.v)))
            attended = attend(a, &p, &own, &options);
        if (own.output_positions)
            attended = wg_index_select(wg_flatten(attended, 0, 1), 0,
                                       some.most ? some.places : own.output_positions);
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
