/* Multi-head attention   (Vaswani et al. 2017, section 3.2.2):
 *
 *     head_i = softmax(Q_i K_i^T / sqrt(D)) V_i,   Q = x W_q,  K = memory W_k,  V = memory W_v
 *     y      = concat(head_1 .. head_H) W_o
 *
 * Query heads may share a smaller number of key and value heads (grouped-query attention, Ainslie
 * et al. 2023, arXiv:2305.13245; a single pair for all: multi-query attention, Shazeer 2019,
 * arXiv:1911.02150). Heads are views of the projections: splitting and merging them copies
 * nothing. */
#ifndef WG_NN_ATTENTION_H
#define WG_NN_ATTENTION_H

#include "linear.h"

WG_BEGIN_DECLS

/* ---- The keys and values that attention has seen, kept so that generating a token costs one
 * token.
 *
 *     (B, Hkv, capacity, D)   | 0 .. length-1: seen | length .. : room |
 *
 * A cache serves a single attention layer during a single generation. Recorded graphs cannot use
 * it.
 * ---- */

typedef struct wg_kv_cache {
    wg_tensor *key, *value; /* kept; NULL before the first use */
    int64_t length;         /* positions that are filled */
    int64_t capacity;       /* of positions */
} wg_kv_cache;

/* An empty cache for up to `capacity` positions; memory is taken at the first use. Free
 * its memory by wg_kv_cache_clear. */
WG_API void wg_kv_cache_init(wg_kv_cache *cache, int64_t capacity);

/* Frees the cache's memory and makes it empty. */
WG_API void wg_kv_cache_clear(wg_kv_cache *cache);

/* ---- Attention ---- */

typedef struct wg_multi_head_attention {
    wg_module module;
    wg_linear *query, *key, *value, *output;
    wg_linear *joint;       /* one layer for queries, keys and values, which are NULL then */
    wg_linear *value_inner; /* of a low-rank value: maps x to the rank; `value` maps on to heads */
    int64_t heads, key_value_heads, head_width;
    double scale; /* of the scores; 0: 1/sqrt(D); WG_ZERO: 0 */
    double dropout;
    bool causal;
    wg_rotary_pairing pairing;
} wg_multi_head_attention;

typedef struct wg_multi_head_attention_options {
    int64_t key_value_heads;   /* Hkv, a divisor of the heads; 0: all heads */
    int64_t head_width;        /* D; 0: width / heads */
    double scale;              /* of the scores; 0: 1/sqrt(D); WG_ZERO: 0. T5 has 1 */
    double dropout;            /* of the attention weights, in training */
    bool causal;               /* a position sees itself and those before it */
    bool no_bias;              /* in none of the projections */
    int64_t memory_width;      /* of the input of keys and values; 0: width */
    int64_t value_rank;        /* W_v as a product of two, (M, rank) and (rank, Hkv D); 0: one */
    bool joint;                /* one layer makes queries, keys and values of self-attention */
    bool transposed;           /* weights are stored as (I, O): see linear.h */
    wg_rotary_pairing pairing; /* of rotary positions, if the inputs have cos and sin */
    wg_initializer init, output_init; /* of the weights; default: Xavier uniform. output_init:
                                         default init */

    /* Names of the projections below this module, as a published checkpoint has them; may hold
     * dots. NULL: "query", "key", "value", "output", "qkv" and "value_inner". */
    const char *query_name, *key_name, *value_name, *output_name, *joint_name, *value_inner_name;
} wg_multi_head_attention_options;

/* `heads` must divide `width` unless head_width is given. `parent` owns it; NULL makes it a root.
 * NULL with [ARGUMENT, MEMORY] */
WG_API wg_multi_head_attention *wg_multi_head_attention_new(
    wg_module *parent, const char *name, int64_t width, int64_t heads,
    const wg_multi_head_attention_options *options);

/* Inputs of attention besides x; all may be NULL. */
typedef struct wg_attention_inputs {
    wg_tensor *memory; /* (B, Tk, M): the input of keys and values; NULL: x, self-attention */
    wg_tensor
        *mask; /* bool and broadcastable to (B, H, Tq, Tk), true where a query may see a key */
    wg_tensor *bias; /* added to the scores, broadcastable to (B, H, Tq, Tk): T5's positions; then
                        they are computed in the plain way */
    wg_tensor *cos, *sin; /* rotary positions of x, (Tq, D/2) or (B, 1, Tq, D/2) */
    bool causal;          /* positions see no later ones, even if the layer is not causal */
    int64_t window;       /* the largest distance that positions see; 0: any */

    /* For generation. Self-attention appends the keys and values of x to the cache, and sees all of
     * the cache; cross-attention fills it from `memory` once, and sees the cache alone afterwards.
     */
    wg_kv_cache *cache;

    /* Receives the attention weights (B, H, Tq, Tk), before dropout; then they are computed in the
     * plain way. [scope] */
    wg_tensor **weights;

    /* (N) i64, flat b Tq + t: only these positions of x are returned. Keys and values are computed
     * for all of x; queries only for these positions if they are fewer than half. NULL: all */
    wg_tensor *output_positions;
} wg_attention_inputs;

/* x: (B, Tq, C)   ->   (B, Tq, C), or (N, C) at output_positions. `inputs` may be NULL. [scope;
 * SHAPE, DTYPE, INDEX; of a cache ARGUMENT beyond its capacity, GRADIENT for tensors of a recorded
 * graph] */
WG_API wg_tensor *wg_multi_head_attention_forward(wg_multi_head_attention *attention, wg_tensor *x,
                                                  const wg_attention_inputs *inputs);

/* The mask that hides padding: keep (B, Tk) bool, true at tokens   ->   (B, 1, 1, Tk), a view.
 * NULL gives NULL, which is no mask. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_padding_mask(wg_tensor *keep);

WG_END_DECLS

#endif
