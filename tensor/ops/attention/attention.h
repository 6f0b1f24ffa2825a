/* Attention's kernels, and one step of attention with cached keys and values, for generation. */
#ifndef WG_TENSOR_OPS_ATTENTION_ATTENTION_H
#define WG_TENSOR_OPS_ATTENTION_ATTENTION_H

#include "tensor/ops.h"

/* ---- Kernels (tiles.c) ---- */

/* A tensor (B, H, T, D) as kernels see it. */
typedef struct wg__heads {
    char *data;
    int64_t batch_stride, head_stride; /* in bytes */
    int64_t row_stride, column_stride; /* in elements */
} wg__heads;

typedef struct wg__attention {
    wg_dtype dtype;
    int64_t size; /* of an element */
    wg_attention_options options;
    int64_t batch, query_heads, key_heads, queries, keys, width; /* B, H, Hkv, Tq, Tk, D */
    wg__heads q, k, v, out;  /* out: the result, or its cotangent; its columns are contiguous */
    wg__heads dq, dk, dv;    /* not computed if data is NULL */
    const bool *mask;        /* NULL: all keys are visible */
    int64_t mask_strides[4]; /* in bytes */
    char *log_sums;          /* (B, H, Tq), log sum e^s; NULL: not saved */
} wg__attention;

/* Forward writes out and log_sums; backward reads log_sums and the cotangent in out, and writes dq,
 * dk and dv. -1 with MEMORY. */
int wg__attention_run(const wg__attention *attention);
int wg__attention_differentiate(const wg__attention *attention);

/* Writes the dropout factors of the weights of n keys, from key `first` on, a multiple of
 * WG__RANDOM_GROUP: 0 for dropped weights, 1 / (1 - p) for kept ones. `query` is the number of the
 * query, counted over all heads. */
void wg__attention_draw(const wg__attention *at, int64_t query, int64_t first, int64_t n,
                        char *factors);

/* True where query i may see key j, as `causal` and `window` say: (Tq, Tk); NULL if every query
 * sees every key. [scope; MEMORY] */
wg_tensor *wg__attention_visible(const wg_attention_options *options, int64_t queries,
                                 int64_t keys);

/* ---- A step: attention of T new positions, with the keys and values of earlier positions cached
 *
 *                         seen      T
 *     keys, values   |  .  .  .  | k, v |  free  |       (B, Hkv, capacity, D)
 *
 * One call does the work of wg_rotary, wg_copy_, wg_attention and the views between them. For one
 * token, dispatching these ops would cost more than running them. ---- */

typedef struct wg__attention_step {
    wg_tensor *q, *k, *v; /* (B, T, H D) and twice (B, T, Hkv D), as projections give them */
    int64_t heads, key_heads;
    wg_tensor *cos, *sin; /* (T, P) or (B, 1, T, P); NULL: no rotation */
    wg_rotary_pairing pairing;
    wg_tensor *mask; /* as wg_attention's, for seen + T keys; NULL: all keys are visible */
    wg_attention_options options; /* a scale of 0 means 1/sqrt(D) */
} wg__attention_step;

/* Whether the step supports its operands: f32 or f64 without gradients or tangents, tables (T, P)
 * or (B, 1, T, P), and a mask that broadcasts. Otherwise call the ops, which report errors. */
bool wg__attention_step_suits(const wg__attention_step *step, int64_t seen);

/* Rotates k and writes k and v to `keys` and `values` at positions seen to seen + T - 1. Both
 * caches are contiguous (B, Hkv, capacity, D). Returns the attention of the rotated q to all seen +
 * T positions: (B, T, H D). [scope; MEMORY] */
wg_tensor *wg__attention_step_run(const wg__attention_step *step, wg_tensor *keys,
                                  wg_tensor *values, int64_t seen);

#endif
