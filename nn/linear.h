/* The affine layer, and tables of learned vectors. */
#ifndef WG_NN_LINEAR_H
#define WG_NN_LINEAR_H

#include "../tensor/ops.h"
#include "module.h"

WG_BEGIN_DECLS

/* ---- The affine layer, y = x W^T + b.
 *
 *     weight (O, I), or (I, O) where the published model has it so
 *     bias   (O)     left alone by weight decay ---- */

typedef struct wg_linear {
    wg_module module;
    wg_tensor *weight; /* (O, I), or (I, O) if transposed; quantized: (O, bytes) u8 */
    wg_tensor *bias;   /* (O), or NULL */
    bool transposed;
    struct wg__linear_stand_in *stand_in; /* computes y instead, as an adapter of lora.h or
                                           * quantized rows do; NULL: y = x W^T + b */
} wg_linear;

typedef struct wg_linear_options {
    bool no_bias;
    bool transposed;     /* the weight is stored as (I, O), as GPT-2's "Conv1D" has it */
    wg_initializer init; /* of the weight; default: uniform with variance 1/(3 I), as PyTorch's.
                            The bias begins at 0. */
    wg_tensor
        *tied_weight;     /* a parameter of that shape of the same tree to share; NULL: a new one */
    wg_tensor *tied_bias; /* a bias (O) to share; NULL: a new one */
} wg_linear_options;

/* A layer from `in` to `out` features. `parent` owns it; NULL makes it a root.
 * NULL with [ARGUMENT for a size below 1; SHAPE for a tied parameter that does not fit; MEMORY] */
WG_API wg_linear *wg_linear_new(wg_module *parent, const char *name, int64_t in, int64_t out,
                                const wg_linear_options *options);

/* x: (..., I)   ->   (..., O). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_linear_forward(wg_linear *linear, wg_tensor *x);

/* The cross-entropy of wg_linear_forward's logits, by wg_linear_cross_entropy.   x: (..., I)
 * target: (...) i64 or i32, a class for each row. With WG_REDUCTION_NONE (N), of all rows. [scope;
 * SHAPE, DTYPE, INDEX, ARGUMENT] */
WG_API wg_tensor *wg_linear_loss(wg_linear *linear, wg_tensor *x, wg_tensor *target,
                                 int64_t ignore_index, const wg_cross_entropy_options *options);

/* ---- A table of learned vectors, one a token, position or segment ---- */

typedef struct wg_embedding {
    wg_module module;
    wg_tensor *weight;                    /* (V, C) */
    int64_t padding_index;                /* the row that gets no gradient; -1: none */
    struct wg__quantized_head *quantized; /* after wg_module_quantize: read for logits; or NULL */
} wg_embedding;

typedef struct wg_embedding_options {
    bool has_padding; /* row padding_index begins at 0 and gets no gradient from here */
    int64_t padding_index;
    wg_initializer init; /* default: standard normal, as PyTorch's */
} wg_embedding_options;

/* `count` vectors of `width` numbers. `parent` owns it; NULL makes it a root.
 * NULL with [ARGUMENT, MEMORY] */
WG_API wg_embedding *wg_embedding_new(wg_module *parent, const char *name, int64_t count,
                                      int64_t width, const wg_embedding_options *options);

/* index: (...) i64 or i32   ->   (..., C). [scope; INDEX, DTYPE] */
WG_API wg_tensor *wg_embedding_forward(wg_embedding *embedding, wg_tensor *index);

/* x weight^T, the logits of a model whose head is tied to its embedding.   x: (..., C)   ->   (...,
 * V). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_embedding_logits(wg_embedding *embedding, wg_tensor *x);

WG_END_DECLS

#endif
