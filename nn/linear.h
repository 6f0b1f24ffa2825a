/* The affine layer, y = x W^T + b.
 *
 *     weight (O, I), or (I, O) where the published model has it so
 *     bias   (O)     left alone by weight decay */
#ifndef WG_NN_LINEAR_H
#define WG_NN_LINEAR_H

#include "init.h"
#include "../tensor/ops.h"
#include "module.h"

WG_BEGIN_DECLS

typedef struct wg_linear {
    wg_module module;
    wg_tensor *weight; /* (O, I), or (I, O) if transposed; quantized: (O, bytes) u8 */
    wg_tensor *bias;   /* (O), or NULL */
    bool transposed;
    bool quantized; /* by wg_module_quantize, as `quantization` says */
    wg_quantization quantization;
} wg_linear;

typedef struct wg_linear_options {
    bool no_bias;
    bool transposed;     /* the weight is stored as (I, O), as GPT-2's "Conv1D" has it */
    wg_initializer init; /* of the weight; default: uniform with variance 1/(3 I), as PyTorch's.
                            The bias begins at 0. */
    wg_tensor *
        tied_weight; /* a parameter of that shape of the same tree to share; NULL: one of its own */
    wg_tensor *tied_bias; /* likewise (O) */
} wg_linear_options;

/* A layer from `in` to `out` features. `parent` owns it; NULL makes it a root.
 * NULL with [ARGUMENT for a size below 1; SHAPE for a tied parameter that does not fit; MEMORY] */
WG_API wg_linear *wg_linear_new(wg_module *parent, const char *name, int64_t in, int64_t out,
                                const wg_linear_options *options);

/* x: (..., I)   ->   (..., O). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_linear_forward(wg_linear *linear, wg_tensor *x);

/* `count` layers of the same x: y[i] is what wg_linear_forward(linears[i], x) gives. Those that are
 * quantized alike are read in one go. -1 with every y NULL. [scope; SHAPE, DTYPE] */
WG_API int wg_linears_forward(int count, wg_linear *const *linears, wg_tensor *x, wg_tensor **y);

/* The cross-entropy of wg_linear_forward's logits, by wg_linear_cross_entropy.   x: (..., I)
 * target: (...) i64 or i32, a class for each row. With WG_REDUCTION_NONE (N), of all rows. [scope;
 * SHAPE, DTYPE, INDEX, ARGUMENT] */
WG_API wg_tensor *wg_linear_loss(wg_linear *linear, wg_tensor *x, wg_tensor *target,
                                 int64_t ignore_index, const wg_cross_entropy_options *options);

WG_END_DECLS

#endif
