/* Functions that the layers share. */
#ifndef WG_NN_INTERNAL_H
#define WG_NN_INTERNAL_H

#include "nn/attention.h"
#include "nn/feed_forward.h"

/* A parameter of that shape, filled from the root's generator as `how` says, or as `otherwise` says
 * where `how` is NULL or leaves it to the layer. NULL with an error. */
wg_tensor *wg__parameter(wg_module *module, const char *name, int ndim, const int64_t *shape,
                         const wg_initializer *how, const wg_initializer *otherwise);

/* The same for a vector (n) that begins at one value and has no weight decay: biases and weights of
 * norms. */
wg_tensor *wg__vector_parameter(wg_module *module, const char *name, int64_t n, double value);

/* -1 with ARGUMENT unless size >= 1: "where: what is size; it must be at least 1". */
int wg__check_size(const char *where, const char *what, int64_t size);

/* -1 with ARGUMENT unless 0 <= p < 1. */
int wg__check_probability(const char *where, const char *what, double p);

/* How products want a matrix (O, I) that is to be quantized so: its rows side by side, and in bf16
 * where they are no whole blocks. */
wg_quantization wg__quantization_for(const wg_tensor *weight, wg_quantization quantization);

/* Puts `tensor`, which is kept, as a buffer into the place that `parameter` has in this module, and
 * returns it. Where other slots are tied to this one, nothing is done and `parameter` returned.
 * NULL for NULL. */
wg_tensor *wg__module_replace(wg_module *module, wg_tensor *parameter, wg_tensor *tensor);

/* ---- linear.c ---- */

/* The module as a layer, or NULL for a module of another type. */
wg_linear *wg__module_as_linear(wg_module *module);

/* True if these two or more layers have weights of the same quantization, so that
 * wg__quantized_linears_forward takes them. */
bool wg__linears_are_quantized_alike(int count, wg_linear *const *linears);

/* Layers of the same x, whose weights are read in one go: y[i] is what
 * wg_linear_forward(linears[i], x) gives. -1 with every y NULL. [scope; SHAPE, DTYPE] */
int wg__quantized_linears_forward(int count, wg_linear *const *linears, wg_tensor *x,
                                  wg_tensor **y);

/* ---- feed_forward.c: names in published configurations ---- */

/* The activation of that name ("gelu_pytorch_tanh" is "gelu_new", "swish" is "silu"). -1 with
 * [ARGUMENT, listing the names] */
int wg__activation_parse(const char *name, wg_activation *activation);

/* The published name of f; NULL for a value outside the enum. */
const char *wg__gate_name(wg_gate kind);

/* The gate of that f ("swish" is "silu"). -1 with [ARGUMENT, listing the names] */
int wg__gate_parse(const char *name, wg_gate *kind);

/* The inner width that gives a gated net as many parameters as a plain one of inner width 4 C, 2/3
 * of 4 C, rounded up to a multiple   (Shazeer 2020, section 3; Touvron et al. 2023). */
int64_t wg__gated_width(int64_t width, int64_t multiple);

/* ---- lora.c ---- */

/* W + scale B A; W (O, I), or (I, O) if transposed. [scope; SHAPE, DTYPE] */
wg_tensor *wg__lora_merged(wg_tensor *weight, wg_tensor *a, wg_tensor *b, double scale,
                           bool transposed);

/* Takes all adapters below a root away. */
void wg__lora_detach(wg_module *root);

/* ---- init.c ---- */

/* The scale of weights whose layer adds onto a residual stream, scale / sqrt(additions), where so
 * many layers add (two a block of a transformer): the sum then begins as wide as one of them would
 * be with `scale`   (Radford et al. 2019, "GPT-2", section 2.3). NaN, which wg_initialize refuses,
 * for additions below 1. */
double wg__residual_scale(double scale, int64_t additions);

/* ---- module.c ---- */

/* The root of the tree that `module` stands in. */
wg_module *wg__module_root(wg_module *module);

/* As wg_module_checkpoint_activations has set it. */
bool wg__module_checkpoints_activations(wg_module *module);

/* The module that follows in the order of creation below `top`, parents before children; NULL after
 * the last. */
wg_module *wg__module_next(const wg_module *top, wg_module *module);

/* Writes the path of a module in its tree, as much of its end as fits. */
enum { WG__MODULE_PATH = 512 };
void wg__module_path(const void *module, char *text, size_t size);

/* Takes a child out of its parent and frees it with everything below it. */
void wg__module_drop(wg_module *child);

/* ---- attention.c: the cache of keys and values ---- */

/* Appends the keys and values of new positions, (B, Hkv, T, D), and gives those of all seen so far,
 * views of (B, Hkv, length, D). Returns 0 or -1. [scope; SHAPE if they do not fit what is there,
 * ARGUMENT beyond the capacity, GRADIENT for tensors of a recorded graph] */
int wg__kv_cache_append(wg_kv_cache *cache, wg_tensor *key, wg_tensor *value, wg_tensor **all_keys,
                        wg_tensor **all_values);

/* Forgets all positions from `length` on. [ARGUMENT beyond what is filled] */
int wg__kv_cache_truncate(wg_kv_cache *cache, int64_t length);

/* Sequence b becomes what sequence index[b] was, for (B') of them: beams that go on. [INDEX, DTYPE]
 */
int wg__kv_cache_reorder(wg_kv_cache *cache, wg_tensor *index);

#endif
