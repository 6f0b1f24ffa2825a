/* Functions that the layers share. */
#ifndef WG_NN_INTERNAL_H
#define WG_NN_INTERNAL_H

#include "base/internal.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/lora.h"
#include "nn/positions.h"
#include "nn/recurrent.h"
#include "nn/stack.h"

/* A new parameter, initialized from the root's generator by `how`, or by `otherwise` if `how` is
 * NULL or WG_INIT_DEFAULT. NULL with an error. */
wg_tensor *wg__parameter(wg_module *module, const char *name, int ndim, const int64_t *shape,
                         const wg_initializer *how, const wg_initializer *otherwise);

/* A new vector (n), filled with 0 or 1 and without weight decay: biases, and weights of norms. */
wg_tensor *wg__vector_parameter(wg_module *module, const char *name, int64_t n, double value);

/* -1 with ARGUMENT unless size >= 1; the message names `what` and the size. */
int wg__check_size(const char *where, const char *what, int64_t size);

/* -1 with ARGUMENT unless 0 <= p < 1. */
int wg__check_probability(const char *where, const char *what, double p);

/* ---- linear.c ---- */

/* A replacement for y = x W^T + b, for example a LoRA adapter or quantized rows. It is the first
 * member of the owner's struct, which is freed with the layer by wg__free. */
typedef struct wg__linear_stand_in wg__linear_stand_in;
struct wg__linear_stand_in {
    wg_tensor *(*forward)(wg_linear *linear, const wg__linear_stand_in *own, wg_tensor *x);
    wg__linear_stand_in *below; /* the stand-in that this one wraps; NULL: y = x W^T + b */
};

/* The module as a layer, or NULL for a module of another type. */
wg_linear *wg__module_as_linear(wg_module *module);
wg_embedding *wg__module_as_embedding(wg_module *module);

/* W as (O, I); a view if it is transposed. [scope] */
wg_tensor *wg__linear_weight(const wg_linear *linear);

/* ---- quantized.c ---- */

/* Whether a slot below `top` is a second name of the tensor. */
bool wg__is_tied(wg_module *top, const wg_tensor *tensor);

/* A table of vectors, quantized for computing logits. */
typedef struct wg__quantized_head {
    wg_quantization quantization;
    wg_tensor *weight; /* (V, bytes) u8, kept; NULL until logits are first computed */
} wg__quantized_head;

/* The wg_quantization of a layer's weight; -1: none. */
int wg__linear_quantization(const wg_linear *linear);

/* Layers of the same x, in a single pass over their weights: y[i] is the result of
 * wg_linear_forward(linears[i], x), NULL after an error. False with nothing done unless all weights
 * are quantized alike and no layer has an adapter. [scope; SHAPE, DTYPE] */
bool wg__quantized_linears_forward(int count, wg_linear *const *linears, wg_tensor *x,
                                   wg_tensor **y);

wg_tensor *wg__quantized_logits(wg_embedding *table, wg_tensor *x);

/* ---- feed_forward.c: names in published configurations ---- */

/* The published name of a wg_gate's f; NULL for a value outside the enum. */
const char *wg__gate_name(int kind);

/* ---- lora.c ---- */

/* Adds scale B A dropout(x) to y. */
typedef struct wg__lora_adapter {
    wg__linear_stand_in base; /* first */
    wg_linear *a, *b;         /* the layer's children lora_A, (r, I), and lora_B, (O, r) */
    double scale, dropout;
} wg__lora_adapter;

/* The adapter of a layer, or NULL. */
const wg__lora_adapter *wg__lora_of(const wg_linear *linear);

/* W + scale B A; W (O, I), or (I, O) if transposed. [scope; SHAPE, DTYPE] */
wg_tensor *wg__lora_merged(wg_tensor *weight, wg_tensor *a, wg_tensor *b, double scale,
                           bool transposed);

/* Removes all adapters below a root. */
void wg__lora_detach(wg_module *root);

/* ---- init.c ---- */

/* scale / sqrt(additions): the standard deviation of weights of layers that add to a residual
 * stream, if `additions` layers do (two a block of a transformer). The sum then begins as wide as a
 * single addition with `scale`   (Radford et al. 2019, "GPT-2", section 2.3). NaN, which
 * wg_initialize refuses, for additions below 1. */
double wg__residual_scale(double scale, int64_t additions);

/* ---- module.c ---- */

/* The root of the module's tree. */
wg_module *wg__module_root(wg_module *module);

/* The module that follows in the order of creation below `top`, parents before children; NULL after
 * the last. */
wg_module *wg__module_next(const wg_module *top, wg_module *module);

/* Writes the path of a module in its tree, as much of its end as fits. */
enum { WG__MODULE_PATH = 512 };
void wg__module_path(const void *module, char *text, size_t size);

/* Makes the layers "NAME.0", "NAME.1"... of a model. Returns an array of pointers to them, which is
 * freed with `module`; NULL with MEMORY. */
typedef void *(*wg__layer_maker)(wg_module *parent, const char *name, int64_t index,
                                 const void *config);
void *wg__layers_new(wg_module *module, const char *name, int64_t count, wg__layer_maker make,
                     const void *config);

/* Removes a child from its parent and frees its subtree. */
void wg__module_drop(wg_module *child);

/* ---- kv_cache.c ---- */

/* Makes room for keys and values (B, Hkv, T, D) after the cached positions; memory is taken at the
 * first use. [ARGUMENT beyond the capacity; SHAPE if they do not fit the cache; MEMORY] */
int wg__kv_cache_reserve(wg_kv_cache *cache, const wg_spec *key, const wg_spec *value);

/* Appends the keys and values of new positions, (B, Hkv, T, D). *all_keys and *all_values become
 * views of all positions so far, (B, Hkv, length, D). Returns 0 or -1. [scope; SHAPE if they do not
 * fit the cache, ARGUMENT beyond the capacity, GRADIENT for tensors of a recorded graph] */
int wg__kv_cache_append(wg_kv_cache *cache, wg_tensor *key, wg_tensor *value, wg_tensor **all_keys,
                        wg_tensor **all_values);

/* Forgets all positions from `length` on. [ARGUMENT beyond the filled positions] */
int wg__kv_cache_truncate(wg_kv_cache *cache, int64_t length);

/* Reorders the B sequences of the cache, for beam search: sequence b of the B' new ones is a copy
 * of sequence index[b]. [INDEX, DTYPE] */
int wg__kv_cache_reorder(wg_kv_cache *cache, wg_tensor *index);

/* ---- Of nn/attention.h ---- */

typedef void (*wg_attention_watcher)(const char *path, const wg_tensor *weights, void *context);

/* From now on this thread calls `watch` after every attention layer, with the layer's path in its
 * model ("bert.encoder.layer.0.attention.self") and its weights (B, H, Tq, Tk), borrowed for the
 * call. Attention then runs as separate ops, which is slower. NULL: stop. */
WG__COMMAND void wg__watch_attention(wg_attention_watcher watch, void *context);

/* The mask of a prefix language model: every position sees the prefix, and attention is causal
 * after it. Query i, of `queries` that follow `seen` earlier positions, sees key j if j < prefix or
 * j <= seen + i.   prefix: (B) i64 or i32   ->   (B, 1, queries, seen + queries). [scope; SHAPE,
 * DTYPE] */
wg_tensor *wg__prefix_mask(wg_tensor *prefix, int64_t seen, int64_t queries);

/* ---- Of nn/linear.h ---- */

/* The cross-entropy of wg_embedding_logits, by wg_linear_cross_entropy.   x: (..., C)
 * target: (...) i64 or i32, a class for each row. With WG_REDUCTION_NONE (N), of all rows. [scope;
 * SHAPE, DTYPE, INDEX, ARGUMENT] */
wg_tensor *wg__embedding_loss(wg_embedding *embedding, wg_tensor *x, wg_tensor *target,
                              int64_t ignore_index, const wg_cross_entropy_options *options);

/* Hashed bigrams: a table has a vector for each pair of a token and the token before it, and a
 * model adds these vectors to its token vectors (Huang et al. 2025, "Over-Tokenized Transformer",
 * arXiv:2501.16975). Pairs with the same hash share a row of the table:
 *
 *     row of (previous, id) = splitmix64(2^32 previous + id) mod rows
 *
 * by the generator of Steele et al. 2014, whose state is the pair. Without a token before it,
 * `previous` is 2^32 - 1. Gives the row of each token:
 *
 *     ids: (B, T) i64 or i32   ->   (B, T) i64, below `rows`
 *
 * `previous`: (B), the tokens before the first ones, -1 for none; NULL: there are none. `keep`: (B,
 * S) bool, whose last T columns belong to the ids. A token behind padding, where it is false, has
 * no token before it. NULL: no padding. [scope; SHAPE, DTYPE; ARGUMENT for rows below 1] */
wg_tensor *wg__bigram_rows(wg_tensor *ids, wg_tensor *previous, wg_tensor *keep, int64_t rows);

/* ---- Of nn/lora.h ---- */

/* The number of layers below `module` that have an adapter. */
WG__COMMAND int64_t wg__lora_count(wg_module *module);

/* ---- Of nn/positions.h ---- */

/* Cosines and sines of the angles of `positions` positions, from `first` on, for heads of width D =
 * `width`, which is even: (positions, D/2) each, f32. Angles are computed in f64. 0, or -1 with
 * both NULL. [scope; ARGUMENT] */
int wg__rotary_tables(int64_t width, int64_t first, int64_t positions,
                      const wg_rotary_options *options, wg_tensor **cos, wg_tensor **sin);

/* The table of `positions` positions, from `first` on, for vectors of C = `width` numbers:
 * (positions, C), computed in f64 and rounded to `dtype`. [scope; ARGUMENT; DTYPE unless floating]
 */
wg_tensor *wg__sinusoidal_table(wg_dtype dtype, int64_t width, int64_t first, int64_t positions,
                                const wg_sinusoidal_options *options);

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
wg_relative_position *wg__relative_position_new(wg_module *parent, const char *name, int64_t heads,
                                                const wg_relative_position_options *options);

/* The bias of queries at positions first .. first + queries - 1 and keys at 0 .. keys - 1: (1, H,
 * queries, keys). [scope] */
wg_tensor *wg__relative_position_forward(wg_relative_position *positions, int64_t first,
                                         int64_t queries, int64_t keys);

/* Position ids of both kinds go from 0 to count - 1. The tables are "position_embeddings" and
 * "block_position_embeddings". `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY]
 */
wg_block_position *wg__block_position_new(wg_module *parent, const char *name, int64_t count,
                                          int64_t width, const wg_block_position_options *options);

/* x + position + block position.   x: (B, T, C)   ids, each: (B, T) or (T), i64 or i32
 * ->   (B, T, C). [scope; SHAPE, INDEX, DTYPE] */
wg_tensor *wg__block_position_forward(wg_block_position *positions, wg_tensor *x,
                                      wg_tensor *position_ids, wg_tensor *block_position_ids);

/* ---- Of nn/recurrent.h ---- */

/* The selective scan alone:   u, delta: (B, T, E)   a: (E, N)   b, c: (B, T, N)   d: (E) or NULL
 * h: NULL, or the address of the first state, (B, E, N), where NULL means zeros; replaced by the
 * last state
 *     ->   (B, T, E). [scope; SHAPE, DTYPE] */
wg_tensor *wg__selective_scan(wg_tensor *u, wg_tensor *delta, wg_tensor *a, wg_tensor *b,
                              wg_tensor *c, wg_tensor *d, wg_tensor **h);

/* ---- Of nn/stack.h ---- */

/* The rows of the residual stream x (B, T, C) that a layer's attention updates: all of x, or (N, C)
 * at inputs->self.output_positions. [scope; SHAPE, INDEX] */
wg_tensor *wg__stack_output_rows(wg_tensor *x, const wg_stack_inputs *inputs);

#endif
