/* Multi-head attention   (Vaswani et al. 2017, section 3.2.2):
 *
 *     head_i = softmax(Q_i K_i^T / sqrt(D)) V_i,   Q = x W_q,  K = memory W_k,  V = memory W_v
 *     y      = concat(head_1 .. head_H) W_o
 *
 * Heads are views of the projections: nothing is copied to split or to merge them. */
#ifndef WG_NN_ATTENTION_H
#define WG_NN_ATTENTION_H

#include "linear.h"

typedef struct wg_multi_head_attention {
    wg_module module;
    wg_linear *query, *key, *value, *output;
    int64_t heads;
    double dropout;
    bool causal;
} wg_multi_head_attention;

typedef struct wg_multi_head_attention_options {
    double dropout;       /* of the attention weights, in training */
    bool causal;          /* a position sees itself and what is before it */
    bool no_bias;         /* in none of the four projections */
    int64_t memory_width; /* of what keys and values are made from; 0: width */
    wg_initializer init;  /* of the four weights; default: Xavier uniform */

    /* Names of the projections below this module, as a published checkpoint has them; may hold
     * dots. NULL: "query", "key", "value", "output". */
    const char *query_name, *key_name, *value_name, *output_name;
} wg_multi_head_attention_options;

/* `heads` must divide `width`. `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY]
 */
WG_API wg_multi_head_attention *wg_multi_head_attention_new(
    wg_module *parent, const char *name, int64_t width, int64_t heads,
    const wg_multi_head_attention_options *options);

/* x: (B, Tq, C)   memory: (B, Tk, M), or NULL for self-attention   ->   (B, Tq, C)
 * mask: NULL, or bool and broadcastable to (B, H, Tq, Tk), true where a query may see a key.
 * [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_multi_head_attention_forward(wg_multi_head_attention *attention, wg_tensor *x,
                                                  wg_tensor *memory, wg_tensor *mask);

/* The mask that hides padding: keep (B, Tk) bool, true at tokens   ->   (B, 1, 1, Tk), a view.
 * NULL gives NULL, which is no mask. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_padding_mask(wg_tensor *keep);

#endif
