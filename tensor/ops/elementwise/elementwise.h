/* Kernels of elementwise ops: plain loops over elements, defined by macros, and the vector kernels
 * of tensor/simd. Both run on operands of any strides. */
#ifndef WG_TENSOR_OPS_ELEMENTWISE_ELEMENTWISE_H
#define WG_TENSOR_OPS_ELEMENTWISE_ELEMENTWISE_H

#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

/* ---- Loops over any number of operands ---- */

/* Runs loops[dtype of operands[1]] by wg__iterate. operands[0] is the output; the inputs follow.
 * bf16 operands are converted to f32 in blocks, for the loop of f32. */
void wg__elementwise(int operand_count, wg_tensor *const *operands, const wg__loop *loops,
                     const void *context);

/* wg__elementwise on the output and the inputs of a call. Returns 0, as a forward does. */
int wg__elementwise_call(wg_call *call, const wg__loop *loops, const void *context);

/* NAME_forward of an op: runs the loop of the dtype with this context. The last arguments
 * initialize the table of loops. */
#define FORWARD(NAME, CONTEXT, ...)                                                                \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const wg__loop loops[WG_DTYPE_COUNT] = {__VA_ARGS__};                               \
        return wg__elementwise_call(call, loops, CONTEXT);                                         \
    }

#define FLOATS(NAME) [WG_F32] = NAME##_f32, [WG_F64] = NAME##_f64
#define INTEGERS(NAME) [WG_I32] = NAME##_i32, [WG_I64] = NAME##_i64, [WG_U8] = NAME##_u8
#define ALL_DTYPES(NAME) FLOATS(NAME), INTEGERS(NAME), [WG_BOOL] = NAME##_u8

/* ---- Unary loops, which the compiler vectorizes ---- */

/* The loop NAME of y = EXPRESSION in x, an element of TYPE, and in `o`, which is FROM; y has
 * elements of OUT. */
#define LOOP_FROM(NAME, OUT, TYPE, OPTIONS, FROM, EXPRESSION)                                      \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sx,             \
                                 const OPTIONS o) {                                                \
        OUT *restrict y = (OUT *)data[0];                                                          \
        const TYPE *restrict px = (const TYPE *)data[1];                                           \
        (void)o;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE x = px[i * sx];                                                             \
            y[i * sy] = (OUT)(EXPRESSION);                                                         \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        const OPTIONS o = FROM;                                                                    \
        const int64_t sy = strides[0] / (int64_t)sizeof(OUT);                                      \
        const int64_t sx = strides[1] / (int64_t)sizeof(TYPE);                                     \
        if (sy == 1 && sx == 1)                                                                    \
            NAME##_at(n, data, 1, 1, o);                                                           \
        else                                                                                       \
            NAME##_at(n, data, sy, sx, o);                                                         \
    }

/* Without options, and with options that are the loop's context. */
#define LOOP_TO(NAME, OUT, TYPE, EXPRESSION) LOOP_FROM(NAME, OUT, TYPE, int, 0, EXPRESSION)
#define LOOP(NAME, TYPE, EXPRESSION) LOOP_TO(NAME, TYPE, TYPE, EXPRESSION)
#define LOOP_WITH(NAME, TYPE, OPTIONS, EXPRESSION)                                                 \
    LOOP_FROM(NAME, TYPE, TYPE, OPTIONS, *(const OPTIONS *)context, EXPRESSION)

/* ---- Binary loops over operands that broadcast ---- */

/* The loop NAME of y = EXPRESSION in a and b, read from elements of TYPE into variables of AS; y
 * has elements of OUT. The strides of the common layouts (all contiguous; one operand repeated) are
 * constants, so that the compiler vectorizes these cases. */
#define PAIR_LOOP_TO(NAME, OUT, TYPE, AS, EXPRESSION)                                              \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sa,             \
                                 int64_t sb) {                                                     \
        OUT *restrict y = (OUT *)data[0];                                                          \
        const TYPE *pa = (const TYPE *)data[1], *pb = (const TYPE *)data[2];                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const AS a = (AS)pa[i * sa], b = (AS)pb[i * sb];                                       \
            y[i * sy] = (OUT)(EXPRESSION);                                                         \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / (int64_t)sizeof(OUT), sa = strides[1] / size,              \
                      sb = strides[2] / size;                                                      \
        if (sy == 1 && sa == 1 && sb == 1)                                                         \
            NAME##_at(n, data, 1, 1, 1);                                                           \
        else if (sy == 1 && sa == 1 && sb == 0)                                                    \
            NAME##_at(n, data, 1, 1, 0);                                                           \
        else if (sy == 1 && sa == 0 && sb == 1)                                                    \
            NAME##_at(n, data, 1, 0, 1);                                                           \
        else                                                                                       \
            NAME##_at(n, data, sy, sa, sb);                                                        \
    }

#define PAIR_LOOP(NAME, TYPE, AS, EXPRESSION) PAIR_LOOP_TO(NAME, TYPE, TYPE, AS, EXPRESSION)

/* Integers wrap around: C defines the arithmetic of unsigned numbers. */
#define PAIR_WRAPPING_LOOPS(NAME, EXPRESSION)                                                      \
    PAIR_LOOP(NAME##_i32, int32_t, uint32_t, EXPRESSION)                                           \
    PAIR_LOOP(NAME##_i64, int64_t, uint64_t, EXPRESSION)                                           \
    PAIR_LOOP(NAME##_u8, uint8_t, uint32_t, EXPRESSION)

#define PAIR_FLOAT_LOOPS(NAME, EXPRESSION)                                                         \
    PAIR_LOOP(NAME##_f32, float, float, EXPRESSION)                                                \
    PAIR_LOOP(NAME##_f64, double, double, EXPRESSION)

/* ---- Vector kernels, which run on operands of any strides ---- */

/* Forward: runs the kernel on the inputs of a call. */
int wg__run_map(wg_call *call, const wg__map *map);

/* Backward: gradients[0] = g f', from the operand or from the result of f. A saved tensor is
 * overwritten if nothing can read it afterwards. */
int wg__run_slopes(wg_call *call, const wg__map *map, wg_tensor *x_or_y, wg_tensor *g,
                   wg_tensor **gradients);

/* Backward of y = f(gate) value, inputs 0 and 1: both gradients in one pass. */
int wg__run_gate_slopes(wg_call *call, int function, wg_tensor *dy, wg_tensor **gradients);

/* A tensor for the gradient of x, a saved tensor: x itself on its last use, if x is contiguous and
 * no tensor shares its memory; else a new tensor. */
wg_tensor *wg__gradient_like(const wg_call *call, wg_tensor *x);

/* ---- Records ---- */

/* A unary op with options; its functions are NAME_forward and so on. */
#define UNARY_WITH(NAME, OPTIONS, DOC)                                                             \
    WG__OP(#NAME, 1, DOC), .differentiable = 1, .forward = NAME##_forward, .vjp = NAME##_vjp,      \
                           .options_size = sizeof(OPTIONS), .jvp = wg__jvp_diagonal,               \
                           .batch = wg_batch_aligned, .sample = NAME##_sample,                     \
                           .bench = NAME##_bench

/* ---- Samples ---- */

/* The function NAME, a wg_op.sample: unary, or binary with operands that broadcast. */
#define UNARY_SAMPLE(NAME, MAKE)                                                                   \
    static int NAME(int index, wg_generator *generator, wg_sample *sample) {                       \
        return wg__sample_unary(index, generator, sample, MAKE);                                   \
    }
#define PAIR_SAMPLE(NAME, MAKE_A, MAKE_B)                                                          \
    static int NAME(int index, wg_generator *generator, wg_sample *sample) {                       \
        return wg__sample_binary(index, generator, sample, MAKE_A, MAKE_B);                        \
    }

/* NAME_sample and NAME_bench of a unary op with options. The benchmark takes the first options, the
 * samples take all later options in turn. */
#define UNARY_SAMPLES_WITH(NAME, OPTIONS, MAKE, ...)                                               \
    static const OPTIONS NAME##_examples[] = {__VA_ARGS__};                                        \
    static int NAME##_sample(int index, wg_generator *generator, wg_sample *sample) {              \
        const int count = (int)(sizeof NAME##_examples / sizeof *NAME##_examples) - 1;             \
        sample->options = &NAME##_examples[1 + index % count];                                     \
        return wg__sample_unary(index, generator, sample, MAKE);                                   \
    }                                                                                              \
    static int NAME##_bench(wg_generator *generator, wg_sample *sample) {                          \
        sample->options = &NAME##_examples[0];                                                     \
        return wg__bench_one(generator, sample);                                                   \
    }

/* Values away from the poles of the gamma function; values on both sides of kinks at 0, 3 and -3,
 * but not near 3 and -3. */
wg_tensor *wg__sample_off_poles(wg_generator *generator, int ndim, const int64_t *shape);
wg_tensor *wg__sample_steps(wg_generator *generator, int ndim, const int64_t *shape);

#endif
