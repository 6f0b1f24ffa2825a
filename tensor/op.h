/* The op record: one struct describes a built-in op and a user's research op, and wg_apply runs
 * both.
 *
 *     wg_apply(op, inputs, options)
 *        infer      dtypes and shapes of the outputs, or an error that names both operands
 *        forward    kernels; may leave tensors in call->saved for backward
 *        record     autograd's hook, when an input requires a gradient and recording is on
 *
 * Later wg_backward makes a call with the tensors that the op declared as saved, and runs op->vjp
 * on it. Under wg_jvp each call is followed by op->jvp.
 *
 * An op is one of three kinds:
 *
 *     primitive   forward, vjp and jvp; the latter two are written in public ops, so that any order
 *                 of derivative follows
 *     fused       forward and vjp are kernels; `decompose` gives the same out of other ops, and
 *                 serves higher orders and forward mode
 *     composite   `decompose` alone: its ops are recorded, it is not */
#ifndef WG_TENSOR_OP_H
#define WG_TENSOR_OP_H

#include "tensor.h"

WG_BEGIN_DECLS

#define WG_MAX_INPUTS 32 /* each has a bit in the masks; an op on more joins them in groups */
#define WG_MAX_OUTPUTS 4
#define WG_MAX_SAVED 4
#define WG_BATCH_DECOMPOSES 1

typedef struct wg_op wg_op;

/* One run of an op. In forward every input is there. In backward an input that `saves_inputs` does
 * not declare is NULL and known by its spec. */
typedef struct wg_call {
    const wg_op *op;     /* perhaps a copy of the record, under another address or name */
    const void *options; /* op->options_size bytes; backward sees a copy */
    int input_count;
    wg_tensor *const *inputs;   /* NULL entries: absent optional inputs, or not saved */
    const wg_spec *input_specs; /* ndim -1 for an absent input */
    int output_count;
    wg_spec output_specs[WG_MAX_OUTPUTS]; /* infer fills them */
    wg_tensor *outputs[WG_MAX_OUTPUTS];   /* in backward: those in op->saves_outputs */
    wg_tensor *saved[WG_MAX_SAVED];       /* forward leaves them for backward */
    uint32_t wants;    /* in backward: bit i says that input i wants its gradient; in forward: that
                          it will want one (0: nothing is recorded, so save nothing) */
    bool create_graph; /* in backward: the gradient is itself to be differentiated */
    bool last_use;     /* in backward: saved tensors are not needed again, so that the memory of a
                          sole one (wg__tensor_is_sole) may hold a gradient */
} wg_call;

/* One example for the sweep over the registry: gradient checks, view checks, failure checks. */
typedef struct wg_sample {
    int input_count;
    wg_tensor *inputs[8]; /* f64 where a gradient is checked; NULL for an absent optional input */
    const void *options;  /* NULL, or storage that outlives the sample (static, or in the scope of
                             the caller's static buffer) */
} wg_sample;

/* Bits of undefined_at: where some or all elements of an input are... */
typedef enum wg_undefined {
    WG_AT_ZERO = 1, /* 0, -0 or next to it: singular matrices, too */
    WG_AT_TIES = 2, /* equal: repeated eigenvalues or singular values, too */
    WG_AT_LARGE = 4 /* 100 and more in size */
} wg_undefined;

/* Exceptions to the rules that the gradient checker applies to most ops. */
typedef struct wg_op_exceptions {
    /* For a differentiable op whose gradient is zero everywhere (sign, floor): why. Without this
     * reason the gradient checker reports the zeros as a mistake. */
    const char *zero_gradient;

    /* Bits of wg_undefined: special values at which the derivative does not exist, though
     * differences may find a slope. The gradient checker compares only values there. At kinks it
     * accepts any slope between the one-sided slopes without a declaration. */
    unsigned undefined_at;

    /* True for ops that in f32 compute less exactly than f32 allows, on purpose (quantized), or
     * choose another of several results (the signs of eigenvectors). */
    bool f32_approximates;

    /* Writes the values of an element at which these options put a kink, up to 8, and returns how
     * many: the limits of clamp. NULL: none but 0, which the checker always tries. */
    int (*kinks)(const void *options, double *values);
} wg_op_exceptions;

struct wg_op {
    const char *name; /* "softmax": as in ops.h, without the prefix */
    const char *doc;  /* formula, shapes and kinks, in a line or three */
    int min_inputs;
    int max_inputs; /* up to WG_MAX_INPUTS; above min_inputs where some are optional */
    int output_count;
    size_t options_size; /* plain bytes: no pointers that backward could find dangling */

    /* Which tensors backward needs: bit i for input i, bit j for output j. */
    uint32_t saves_inputs;
    uint32_t saves_outputs;

    /* Bit i says that in mixed precision (wg_set_matmul_dtype) an f32 input i that another op
     * computed is saved in bf16, in half the memory. vjp gets it widened to f32 again, or, with bit
     * i of reads_rounded, as bf16; a decomposition always gets f32. */
    uint32_t saves_rounded, reads_rounded;

    /* Bit i says that input i can have a gradient. 0 needs `no_gradient`, the written reason why
     * none is. */
    uint32_t differentiable;
    const char *no_gradient;

    const wg_op_exceptions *exceptions; /* NULL: none */

    /* True for ops whose output is a view of their first input: forward makes the output itself. */
    bool is_view;

    /* True for ops whose forward allocates the outputs, for example with other strides. */
    bool places_outputs;

    /* Bit i says that vjp adds onto a gradient of input i that it finds in gradients[i]. */
    uint32_t accumulates;

    /* Fills call->output_specs from the input specs and the options; -1 after wg_fail. A composite
     * needs none; if it has one, to check its operands, it may leave the specs alone. */
    int (*infer)(wg_call *call);

    /* Computes call->outputs, which are allocated (contiguous, uninitialised) unless is_view or
     * places_outputs. Inputs may be views with any strides. -1 after wg_fail. NULL: the op is a
     * composite. */
    int (*forward)(wg_call *call);

    /* Vector-Jacobian product: cotangents[j] belongs to output j, NULL means zero. Sets
     * gradients[i], of input i's shape and dtype, for each bit of call->wants; NULL stays for a
     * gradient that is zero. Where gradients[i] is there already (see `accumulates`), adds onto it.
     * A primitive is written in public ops, so that it can be differentiated again. A fused op runs
     * kernels here; with call->create_graph the engine differentiates `decompose` instead. */
    int (*vjp)(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients);

    /* Jacobian-vector product: tangents[i], of input i's shape and dtype, belongs to input i; NULL
     * means zero, and inputs that are not differentiable have none. Sets output_tangents[j],
     * of output j's shape and dtype; NULL stays for zero. Written in public ops; here call->inputs
     * and call->outputs are all there. wg_jvp_linear serves ops that are linear. NULL for fused ops
     * and composites; a primitive without one has its jvp taken from its vjp, at a higher price. */
    int (*jvp)(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents);

    /* Batching rule, for wg_vmap: runs the op on many samples at once. input_specs, output_specs
     * and options describe a single sample; where bit i of `batched` is set, inputs[i] has the
     * samples as axis 0, before the axes of a sample; otherwise it is the same for all samples.
     * Sets outputs[j], with the samples as axis 0. Written in public ops, so that transforms around
     * wg_vmap record and differentiate it. wg_batch_aligned serves ops on operands that broadcast,
     * also ops that work on the last axes. Returns 0, -1 on error, or WG_BATCH_DECOMPOSES
     * where it has no rule for these inputs. NULL: never. wg_vmap then runs `decompose`, and
     * refuses an op that has none. */
    int (*batch)(wg_call *call, uint32_t batched, int64_t samples);

    /* For fused ops and composites: computes the outputs by other ops, -1 on error. For a fused op
     * it serves higher orders, forward mode and dtypes without a kernel, and tests compare the
     * kernels with it. NULL for primitives. Here call->inputs are all there. A fused op must save
     * all its differentiable inputs. */
    int (*decompose)(wg_call *call);

    /* The sample of that index, made in the caller's scope: returns 1, 0 when there is none (so
     * index 0, 1, ... until 0), -1 on error. Values stay away from kinks. */
    int (*sample)(int index, wg_generator *generator, wg_sample *sample);

    /* One large example in f32 for `wengert bench ops`, of about 2^22 elements, or 2^31
     * operations; as `sample` otherwise. NULL: the op is not timed. */
    int (*bench)(wg_generator *generator, wg_sample *sample);

    /* Floating-point operations of a forward run, for benches. NULL: one an output element. */
    double (*flops)(const wg_call *call);
};

/* Runs an op on `input_count` inputs and puts its results into `outputs` (op->output_count of
 * them). `options` may be NULL only for an op whose options_size is 0. Returns 0, or -1 with every
 * output NULL. A NULL input that is not optional gives -1 and leaves the pending error alone.
 * [scope; whatever the op says] */
WG_API int wg_apply(const wg_op *op, int input_count, wg_tensor *const *inputs, const void *options,
                    wg_tensor **outputs);

/* The same for an op with one output, which is returned. */
WG_API wg_tensor *wg_apply_one(const wg_op *op, int input_count, wg_tensor *const *inputs,
                               const void *options);

/* The jvp of an op whose outputs are linear in its differentiable inputs taken together (a sum, a
 * view, a join; not a product of two inputs): the op, run on the tangents. */
WG_API int wg_jvp_linear(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents);

/* The batching rule of an op whose operands broadcast: the op with the same options, on inputs
 * whose samples stand before axes of size 1 that fill up the rank. */
WG_API int wg_batch_aligned(wg_call *call, uint32_t batched, int64_t samples);

/* ---- The registry ---- */

/* The number of built-in ops, and op `index` of the registry; NULL outside. */
WG_API int wg_op_count(void);
WG_API const wg_op *wg_op_at(int index);

/* The built-in op of that name, or NULL (no error is recorded). */
WG_API const wg_op *wg_op_find(const char *name);

/* ---- Ops in a user's shared library, for `wengert gradcheck ./my_op.so` ---- */

/* The library exports this record as `wengert_ops`: its ops, and struct sizes that show whether it
 * was compiled against the same header. */
typedef struct wg_op_library {
    size_t op_size, exceptions_size, call_size, sample_size;
    const wg_op *const *ops; /* NULL comes after the last */
} wg_op_library;

/* Exports ops, given by their addresses. Use it once in the library, outside of functions. */
#define WG_EXPORT_OPS(...)                                                                         \
    static const wg_op *const wengert_op_list[] = {__VA_ARGS__, NULL};                             \
    extern WG_API const wg_op_library wengert_ops;                                                 \
    const wg_op_library wengert_ops = {sizeof(wg_op), sizeof(wg_op_exceptions), sizeof(wg_call),   \
                                       sizeof(wg_sample), wengert_op_list}

/* ---- Recording: whether wg_apply builds a graph ---- */

/* Turns recording on or off for this thread and returns the previous setting. Initially on. */
WG_API bool wg_set_grad_enabled(bool enabled);
WG_API bool wg_grad_enabled(void);

/* True when x is a leaf that requires a gradient, or was computed from one while recording. */
WG_API bool wg_requires_grad(const wg_tensor *x);

WG_END_DECLS

#endif
