/* Attention of the positions that come next in texts, whose earlier keys and values are kept:
 *
 *                         seen      T
 *     keys, values   |  .  .  .  | k, v |  room  |       (B, Hkv, capacity, D)
 *
 * What wg_rotary, wg_copy_, wg_attention and the views between them give, in one go: a token takes
 * so little of each that reaching their code would cost more than running it. */
#ifndef WG_TENSOR_OPS_ATTENTION_STEP_H
#define WG_TENSOR_OPS_ATTENTION_STEP_H

#include "tensor/ops.h"

typedef struct wg__attention_step {
    wg_tensor *q, *k, *v; /* (B, T, H D) and twice (B, T, Hkv D), as projections give them */
    int64_t heads, key_heads;
    wg_tensor *cos, *sin; /* (T, P) or (B, 1, T, P); NULL: nothing is turned */
    wg_rotary_pairing pairing;
    wg_tensor *mask;              /* as wg_attention's, of seen + T keys; NULL: all may be seen */
    wg_attention_options options; /* a scale of 0 is 1/sqrt(D) */
} wg__attention_step;

/* True of what the step can take: f32 or f64 without gradients or tangents, tables of one of the
 * two shapes, a mask that broadcasts. Else, and for what is wrong with it, there are the ops. */
bool wg__attention_step_suits(const wg__attention_step *step, int64_t seen);

/* Writes k, turned, and v to `keys` and `values`, contiguous (B, Hkv, capacity, D) of their dtype
 * with room for T after `seen`, and gives the attention of q, turned, to all seen + T: (B, T, H D).
 * [scope; MEMORY] */
wg_tensor *wg__attention_step_run(const wg__attention_step *step, wg_tensor *keys,
                                  wg_tensor *values, int64_t seen);

#endif
