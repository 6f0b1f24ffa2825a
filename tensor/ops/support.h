/* Helpers of all op families: rules of shape and dtype, casts before and after kernels, vjps and
 * jvps, batching rules, samples. */
#ifndef WG_TENSOR_OPS_SUPPORT_H
#define WG_TENSOR_OPS_SUPPORT_H

#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/ops/registry.h"

/* ---- Shape and dtype rules ---- */

/* Output 0 has the dtype and shape of input 0. */
int wg__infer_like(wg_call *call);

/* wg__infer_like for an op on floats only; -1 with DTYPE for other dtypes. */
int wg__infer_float(wg_call *call);

/* Output 0 has the broadcast shape of the inputs and dtype `dtype`; -1 with SHAPE. */
int wg__infer_broadcast(wg_call *call, wg_dtype dtype);

/* -1 with DTYPE unless inputs i and j have the same dtype. */
int wg__check_same_dtype(const wg_call *call, int i, int j);

/* -1 with DTYPE unless the first `count` inputs have the same dtype. Absent inputs are skipped. */
int wg__check_same_dtypes(const wg_call *call, int count);

/* Checks the offsets of segments of rows: the first row of each segment, then the end. They must be
 * i64, contiguous, and ascend from 0 to `rows`; otherwise -1 with DTYPE, SHAPE or INDEX. `where`
 * begins the message. */
int wg__check_offsets(const char *where, const wg_tensor *offsets, int64_t rows);

/* Casts *a and *b to their common dtype. False if either is NULL or a cast fails. */
bool wg__promote(wg_tensor **a, wg_tensor **b);

/* x itself if it is of a floating dtype, else x in f32. NULL gives NULL. */
wg_tensor *wg__as_float(wg_tensor *x);

/* Runs a unary op on x, cast to f32 unless x has a floating dtype. */
wg_tensor *wg__apply_float(const wg_op *op, wg_tensor *x, const void *options);

/* Runs an op on `count` operands, cast to the highest of their dtypes and, with `floating`, from
 * integers to f32. Overwrites `inputs`. NULL if a required operand is NULL. */
wg_tensor *wg__apply_promoted(const wg_op *op, int count, wg_tensor **inputs, bool floating,
                              const void *options);

/* -1 with DTYPE unless input 0 is f32 or f64, the dtypes of kernels. */
int wg__check_kernel_dtype(const wg_call *call);

/* wg__infer_like for an op on the dtypes of kernels only. */
int wg__infer_kernel(wg_call *call);

/* Casts `count` tensors to the highest of their dtypes. All but the first may be NULL. False if the
 * first is NULL or a cast fails. */
bool wg__promote_all(int count, wg_tensor **tensors);

/* Casts around kernels that have no bf16: wg__widen casts bf16 to f32, and wg__narrow casts a
 * result back if `dtype` is bf16. wg__widen_all is wg__promote_all, then wg__widen; it stores the
 * common dtype. */
wg_tensor *wg__widen(wg_tensor *x);
bool wg__widen_all(int count, wg_tensor **tensors, wg_dtype *dtype);
wg_tensor *wg__narrow(wg_tensor *result, wg_dtype dtype);

/* Runs an op on `count` operands, cast to the highest of their dtypes, and then from bf16 and, with
 * `floating`, from integers to f32. Any operand but the first may be NULL. Results for operands of
 * bf16 are cast back. -1 with all outputs NULL after an error; casts are freed at once. */
int wg__apply_wide(const wg_op *op, int count, wg_tensor *const *inputs, bool floating,
                   const void *options, wg_tensor **outputs);
wg_tensor *wg__apply_wide_one(const wg_op *op, int count, wg_tensor *const *inputs, bool floating,
                              const void *options);

/* wg__axis of x; -1 for a NULL x, too. */
static inline int wg__axis_of(const wg_tensor *x, int64_t axis, const char *where) {
    return x ? wg__axis(axis, x->spec.ndim, where) : -1;
}

/* The number of elements of a shape. */
static inline int64_t wg__shape_count(int ndim, const int64_t *shape) {
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    return count;
}

/* x narrowed to `count` elements of an axis from `start` on, as a handle that no scope owns. */
static inline wg_tensor wg__part_of(const wg_tensor *x, int axis, int64_t start, int64_t count) {
    wg_tensor part = *x;
    part.offset += start * part.strides[axis];
    part.spec.shape[axis] = count;
    return part;
}

/* Input i, or NULL where an optional one is missing. */
static inline wg_tensor *wg__input_at(const wg_call *call, int i) {
    return i < call->input_count ? call->inputs[i] : NULL;
}

/* Stores outputs 0 and 1 in *first and *second, unless the pointer is NULL; returns the status. */
static inline int wg__give(int status, wg_tensor *const *outputs, wg_tensor **first,
                           wg_tensor **second) {
    if (first)
        *first = outputs[0];
    if (second)
        *second = outputs[1];
    return status;
}

/* a + b; NULL means 0. */
static inline wg_tensor *wg__plus(wg_tensor *a, wg_tensor *b) {
    return !a ? b : !b ? a : wg_add(a, b);
}

/* The derivative of order n of digamma(x) (ops/elementwise/unary.c). */
double wg__polygamma(int n, double x);

/* dx/da of a sample x of the gamma distribution of concentration a and rate 1; a and x have the
 * same shape. Two more derivatives exist (ops/distributions/gamma_slope.c). */
wg_tensor *wg__gamma_slope(wg_tensor *concentration, wg_tensor *x);

/* ---- Backward ---- */

static inline bool wg__wants(const wg_call *call, int input) {
    return (call->wants >> input & 1) != 0;
}

/* g summed over the axes along which input i was broadcast: a gradient of input i's shape. */
wg_tensor *wg__sum_like(wg_tensor *g, const wg_call *call, int i);

/* The status to return from a vjp: -1 if one of its ops has failed. (Backward never starts with an
 * error pending.) */
int wg__vjp_status(void);

/* NAME_vjp of a primitive with a gradient for its first operand alone. GRADIENT is an expression in
 * the cotangent g, the operand x, the result y (the record saves x and y if it reads them) and
 * `call`. */
#define WG__VJP(NAME, GRADIENT)                                                                    \
    static int NAME##_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {    \
        wg_tensor *g = cotangents[0], *x = call->inputs[0], *y = call->outputs[0];                 \
        (void)x, (void)y;                                                                          \
        gradients[0] = GRADIENT;                                                                   \
        return wg__vjp_status();                                                                   \
    }

/* ---- Derivatives of elementwise ops, whose Jacobian by each operand is diagonal ---- */

/* The jvp of a unary elementwise op: the Jacobian is diagonal, so this calls the vjp. */
int wg__jvp_diagonal(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents);

/* For an op on operands that broadcast: `direction` times the derivative of the output by input i.
 * `direction` and the result broadcast to the shape of the output. */
typedef wg_tensor *(*wg__partial)(wg_call *call, int i, wg_tensor *direction);

int wg__vjp_by_partials(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients,
                        wg__partial partial);
int wg__jvp_by_partials(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents,
                        wg__partial partial);

/* Defines NAME_vjp and NAME_jvp from NAME_partial. */
#define WG__DERIVATIVES_BY_PARTIALS(NAME)                                                          \
    static int NAME##_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {    \
        return wg__vjp_by_partials(call, cotangents, gradients, NAME##_partial);                   \
    }                                                                                              \
    static int NAME##_jvp(wg_call *call, wg_tensor *const *tangents,                               \
                          wg_tensor **output_tangents) {                                           \
        return wg__jvp_by_partials(call, tangents, output_tangents, NAME##_partial);               \
    }

/* ---- Batching rules (wg_op.batch), in batching.c ---- */

/* Expands the inputs that are the same for all samples, so that every input has an axis of samples,
 * and runs the op. For an op on the last axes. */
int wg__batch_leading(wg_call *call, uint32_t batched, int64_t samples);

/* Expands input 0, then runs wg_batch_aligned. */
int wg__batch_repeated_first(wg_call *call, uint32_t batched, int64_t samples);

/* If input 0 alone has samples, runs the op: samples are one more leading axis. Otherwise
 * WG_BATCH_DECOMPOSES. */
int wg__batch_first_alone(wg_call *call, uint32_t batched, int64_t samples);

/* wg__batch_leading for options that begin with `int axis`, or with two of them: an axis that is
 * not negative moves by one. */
int wg__batch_axis(wg_call *call, uint32_t batched, int64_t samples);
int wg__batch_axes(wg_call *call, uint32_t batched, int64_t samples);

/* wg__batch_leading for options that begin with a mask of axes, which is an int64_t. */
int wg__batch_reduction(wg_call *call, uint32_t batched, int64_t samples);

/* For ops on images (N, C, ...): if input 0 alone has samples, they become more images. Otherwise
 * WG_BATCH_DECOMPOSES. */
int wg__batch_folded(wg_call *call, uint32_t batched, int64_t samples);

/* Input i for a custom rule; NULL with an error. The first inserts axes of size 1 behind the
 * samples of a batched input, up to `rank` axes; the second expands an input without samples. */
wg_tensor *wg__batch_input(const wg_call *call, uint32_t batched, int i, int rank, int64_t samples);
wg_tensor *wg__batch_repeated_input(const wg_call *call, uint32_t batched, int i, int64_t samples);

/* For checks of values: the tensor with all samples if x represents one sample of wg_vmap,
 * otherwise x. NULL gives NULL. The first wg_vmap installs the function that finds the tensor. */
wg_tensor *wg__all_values(wg_tensor *x);
void wg__install_all_values(wg_tensor *(*all_values)(wg_tensor *x));

/* Rules of reshape and expand: to the axis of samples, then the shape of the output. */
int wg__batch_reshape(wg_call *call, uint32_t batched, int64_t samples);
int wg__batch_expand(wg_call *call, uint32_t batched, int64_t samples);

/* ---- Records ---- */

/* The head of a record: name, numbers of inputs and outputs, and doc. WG__OP is for one output and
 * no optional inputs. */
#define WG__OP_OF(NAME, MIN_INPUTS, MAX_INPUTS, OUTPUTS, DOC)                                      \
    .name = NAME, .doc = DOC, .min_inputs = MIN_INPUTS, .max_inputs = MAX_INPUTS,                  \
    .output_count = OUTPUTS
#define WG__OP(NAME, INPUTS, DOC) WG__OP_OF(NAME, INPUTS, INPUTS, 1, DOC)

/* The functions of an op with kernels, NAME_infer and so on. */
#define WG__FUNCTIONS(NAME)                                                                        \
    .infer = NAME##_infer, .forward = NAME##_forward, .vjp = NAME##_vjp, .sample = NAME##_sample,  \
    .bench = NAME##_bench
#define WG__PRIMITIVE(NAME) WG__FUNCTIONS(NAME), .jvp = NAME##_jvp

/* The functions of a composite. */
#define WG__COMPOSED(NAME) .decompose = NAME##_decompose, .sample = NAME##_sample

/* A view of input 0 that is linear in it, with options. */
#define WG__VIEW_OP(NAME, OPTIONS, DOC)                                                            \
    WG__OP(#NAME, 1, DOC), .options_size = sizeof(OPTIONS), .differentiable = 1, .is_view = true,  \
                           .infer = NAME##_infer, .forward = NAME##_forward, .vjp = NAME##_vjp,    \
                           .jvp = wg_jvp_linear, .sample = NAME##_sample

/* A linear unary op with options. */
#define WG__LINEAR_OP(NAME, OPTIONS, DOC)                                                          \
    WG__OP(#NAME, 1, DOC), .options_size = sizeof(OPTIONS), .differentiable = 1,                   \
                           .jvp = wg_jvp_linear, WG__FUNCTIONS(NAME)

/* A unary composite with options. */
#define WG__COMPOSITE_OP(NAME, OPTIONS, DOC)                                                       \
    WG__OP(#NAME, 1, DOC), .options_size = sizeof(OPTIONS), .differentiable = 1, WG__COMPOSED(NAME)

/* Makes y the only output of a call. Returns the status of forward and decompose: -1 for NULL. */
static inline int wg__set_output(wg_call *call, wg_tensor *y) {
    call->outputs[0] = y;
    return y == NULL ? -1 : 0;
}

/* ---- Samples ---- */

/* Makes values of a shape. The samplers below make f64: normally distributed; from 1/2 to 2; with
 * |x| > 1/4; all different, in steps of 1/4; these values plus 1/16, off all integers and halves;
 * and -1, 0 and 1, with ties. */
typedef wg_tensor *(*wg__sampler)(wg_generator *generator, int ndim, const int64_t *shape);

wg_tensor *wg__sample_normal(wg_generator *generator, int ndim, const int64_t *shape);
wg_tensor *wg__sample_positive(wg_generator *generator, int ndim, const int64_t *shape);
wg_tensor *wg__sample_nonzero(wg_generator *generator, int ndim, const int64_t *shape);
wg_tensor *wg__sample_distinct(wg_generator *generator, int ndim, const int64_t *shape);
wg_tensor *wg__sample_off_steps(wg_generator *generator, int ndim, const int64_t *shape);
wg_tensor *wg__sample_coarse(wg_generator *generator, int ndim, const int64_t *shape);

/* Random bools. */
wg_tensor *wg__sample_truth(wg_generator *generator, int ndim, const int64_t *shape);

/* f32: from 0 to 1, and normally distributed. */
wg_tensor *wg__sample_f32(wg_generator *generator, int ndim, const int64_t *shape);
wg_tensor *wg__sample_normal_f32(wg_generator *generator, int ndim, const int64_t *shape);

/* The samples of unary ops, and of ops on two inputs that broadcast. They return what wg_op.sample
 * returns. */
int wg__sample_unary(int index, wg_generator *generator, wg_sample *sample, wg__sampler make);
int wg__sample_binary(int index, wg_generator *generator, wg_sample *sample, wg__sampler make_a,
                      wg__sampler make_b);

/* NAME_sample of a unary op: normally distributed inputs of wg__sample_unary. Samples take the
 * options in turn. */
#define WG__UNARY_SAMPLES(NAME, OPTIONS, ...)                                                      \
    static int NAME##_sample(int index, wg_generator *generator, wg_sample *sample) {              \
        static const OPTIONS options[] = {__VA_ARGS__};                                            \
        sample->options = &options[index % (int)(sizeof options / sizeof *options)];               \
        return wg__sample_unary(index, generator, sample, wg__sample_normal);                      \
    }

/* Makes the inputs of a sample. "2 3, 4, -," lists four inputs: shape (2, 3), shape (4), an absent
 * input and a scalar. "5 <3" is five i64 from 0 to 2. Sampler i makes input i, and the last sampler
 * also makes all inputs after it.
 * Returns what wg_op.sample returns. */
int wg__sample_shapes(wg_generator *generator, wg_sample *sample, const char *shapes, int count,
                      const wg__sampler *samplers);

/* NAME_sample of an op: each sample is {options, "shapes"}; SAMPLERS in brackets. */
#define WG__EXAMPLES(NAME, OPTIONS, SAMPLERS, ...)                                                 \
    static int NAME##_sample(int index, wg_generator *generator, wg_sample *sample) {              \
        static const struct {                                                                      \
            OPTIONS options;                                                                       \
            const char *shapes;                                                                    \
        } cases[] = {__VA_ARGS__};                                                                 \
        static const wg__sampler samplers[] = WG__IN_BRACES SAMPLERS;                              \
        if (index >= (int)(sizeof cases / sizeof *cases))                                          \
            return 0;                                                                              \
        sample->options = &cases[index].options;                                                   \
        return wg__sample_shapes(generator, sample, cases[index].shapes,                           \
                                 (int)(sizeof samplers / sizeof *samplers), samplers);             \
    }

/* NAME_sample of an op without options: each sample is "shapes". */
#define WG__SHAPES(NAME, SAMPLERS, ...)                                                            \
    static int NAME##_sample(int index, wg_generator *generator, wg_sample *sample) {              \
        static const char *const cases[] = {__VA_ARGS__};                                          \
        static const wg__sampler samplers[] = WG__IN_BRACES SAMPLERS;                              \
        return index < (int)(sizeof cases / sizeof *cases)                                         \
                   ? wg__sample_shapes(generator, sample, cases[index],                            \
                                       (int)(sizeof samplers / sizeof *samplers), samplers)        \
                   : 0;                                                                            \
    }

/* NAME_bench of an op: one large sample. The last arguments initialize the options; an op without
 * options takes int and 0. WG__LARGE makes f32 from 0 to 1. */
#define WG__LARGE(NAME, OPTIONS, SHAPES, ...)                                                      \
    WG__LARGE_BY(NAME, OPTIONS, (wg__sample_f32), SHAPES, __VA_ARGS__)
#define WG__LARGE_BY(NAME, OPTIONS, SAMPLERS, SHAPES, ...)                                         \
    static int NAME##_bench(wg_generator *generator, wg_sample *sample) {                          \
        static const OPTIONS options = {__VA_ARGS__};                                              \
        static const wg__sampler samplers[] = WG__IN_BRACES SAMPLERS;                              \
        sample->options = &options;                                                                \
        return wg__sample_shapes(generator, sample, SHAPES,                                        \
                                 (int)(sizeof samplers / sizeof *samplers), samplers);             \
    }

#define WG__IN_BRACES(...)                                                                         \
    { __VA_ARGS__ }

/* Large samples for benchmarks of unary and binary ops: f32 from 0 to 1. */
int wg__bench_one(wg_generator *generator, wg_sample *sample);
int wg__bench_two(wg_generator *generator, wg_sample *sample);

/* Sets input_count and returns what wg_op.sample returns: 1, or -1 if an input is NULL. */
int wg__sample_status(wg_sample *sample, int count);

#endif
