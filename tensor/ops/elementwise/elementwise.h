/* Kernels of elementwise ops: plain loops over elements, and vector kernels on operands of any
 * strides. */
#ifndef WG_TENSOR_OPS_ELEMENTWISE_ELEMENTWISE_H
#define WG_TENSOR_OPS_ELEMENTWISE_ELEMENTWISE_H

#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

/* ---- Loops over any number of operands ---- */

/* Runs loops[dtype of operands[1]] by wg__iterate over operands[0], the output, and the inputs
 * after it. bf16 operands pass through blocks of f32 and the loop of f32. */
void wg__elementwise(int operand_count, wg_tensor *const *operands, const wg__loop *loops,
                     const void *context);

/* wg__elementwise on the output and the inputs of a call. Returns 0, as a forward does. */
int wg__elementwise_call(wg_call *call, const wg__loop *loops, const void *context);

/* The forward of an op that runs a loop for each dtype, with that context. The rest are the
 * initializers of the table of loops. */
#define FORWARD(NAME, CONTEXT, ...)                                                                \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const wg__loop loops[WG_DTYPE_COUNT] = {__VA_ARGS__};                               \
        return wg__elementwise_call(call, loops, CONTEXT);                                         \
    }

#define FLOATS(NAME) [WG_F32] = NAME##_f32, [WG_F64] = NAME##_f64
#define INTEGERS(NAME) [WG_I32] = NAME##_i32, [WG_I64] = NAME##_i64, [WG_U8] = NAME##_u8
#define ALL_DTYPES(NAME) FLOATS(NAME), INTEGERS(NAME), [WG_BOOL] = NAME##_u8

/* ---- Plain loops over one operand, which the compiler vectorizes ---- */

/* The loop NAME of y = EXPRESSION in x. */
#define LOOP(NAME, TYPE, EXPRESSION)                                                               \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sx) {           \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *restrict px = (const TYPE *)data[1];                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE x = px[i * sx];                                                             \
            y[i * sy] = (TYPE)(EXPRESSION);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        if (strides[0] == size && strides[1] == size)                                              \
            NAME##_at(n, data, 1, 1);                                                              \
        else                                                                                       \
            NAME##_at(n, data, strides[0] / size, strides[1] / size);                              \
    }

/* The loops of f32 and f64, and the forward of an op that has no others. */
#define FLOAT_LOOPS(NAME, F32_EXPRESSION, F64_EXPRESSION)                                          \
    LOOP(NAME##_f32, float, F32_EXPRESSION)                                                        \
    LOOP(NAME##_f64, double, F64_EXPRESSION)

#define FLOAT_FORWARD(NAME) FORWARD(NAME, NULL, FLOATS(NAME))

/* The loop NAME of y = EXPRESSION in x and the options `o`, which are the context. */
#define LOOP_WITH(NAME, TYPE, OPTIONS, EXPRESSION)                                                 \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sx,             \
                                 const OPTIONS o) {                                                \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *px = (const TYPE *)data[1];                                                    \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE x = px[i * sx];                                                             \
            y[i * sy] = (TYPE)(EXPRESSION);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        const OPTIONS o = *(const OPTIONS *)context;                                               \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / size, sx = strides[1] / size;                              \
        if (sy == 1 && sx == 1)                                                                    \
            NAME##_at(n, data, 1, 1, o);                                                           \
        else                                                                                       \
            NAME##_at(n, data, sy, sx, o);                                                         \
    }

/* ---- Plain loops over two operands that broadcast ---- */

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

/* Integers wrap around: the arithmetic is that of unsigned numbers, which C defines. */
#define PAIR_WRAPPING_LOOPS(NAME, EXPRESSION)                                                      \
    PAIR_LOOP(NAME##_i32, int32_t, uint32_t, EXPRESSION)                                           \
    PAIR_LOOP(NAME##_i64, int64_t, uint64_t, EXPRESSION)                                           \
    PAIR_LOOP(NAME##_u8, uint8_t, uint32_t, EXPRESSION)

#define PAIR_FLOAT_LOOPS(NAME, EXPRESSION)                                                         \
    PAIR_LOOP(NAME##_f32, float, float, EXPRESSION)                                                \
    PAIR_LOOP(NAME##_f64, double, double, EXPRESSION)

/* ---- Vector kernels, which run on operands of any strides ---- */

/* The vector kernels for the dtype of the call's first input (bf16 passes through f32). */
const wg__simd *wg__call_simd(const wg_call *call);

/* Forward: runs the kernel on the inputs of a call; _by kernels take two numbers, too. */
int wg__run_map(wg_call *call, wg__simd_map map);
int wg__run_map_by(wg_call *call, wg__simd_map_by map, double a, double b);
int wg__run_pair(wg_call *call, wg__simd_pair pair);

/* Runs a pair kernel on input 0 and a number. -1 for lack of memory. */
int wg__run_pair_with(wg_call *call, wg__simd_pair pair, double number);

/* The forward of an op whose kernel is the member NAME of wg__simd. */
#define MAP_FORWARD(NAME)                                                                          \
    static int NAME##_forward(wg_call *call) {                                                     \
        return wg__run_map(call, wg__call_simd(call)->NAME);                                       \
    }
#define PAIR_FORWARD(NAME)                                                                         \
    static int NAME##_forward(wg_call *call) {                                                     \
        return wg__run_pair(call, wg__call_simd(call)->NAME);                                      \
    }

/* Backward: gradients[0] = g f', from the operand or from the result of f. A saved tensor is
 * overwritten if nothing can read it afterwards. */
int wg__run_vjp(wg_call *call, wg__simd_vjp vjp, wg_tensor *x_or_y, wg_tensor *g,
                wg_tensor **gradients);
int wg__run_vjp_by(wg_call *call, wg__simd_vjp_by vjp, double a, double b, wg_tensor *x,
                   wg_tensor *g, wg_tensor **gradients);

/* Backward of y = f(gate) value, inputs 0 and 1: both gradients in one pass. */
int wg__run_gate_vjp(wg_call *call, wg__simd_gate_vjp vjp, wg_tensor *dy, wg_tensor **gradients);

/* The memory for a gradient of x, a saved tensor: that of x on its last use, if x is contiguous and
 * the only handle on it; else new memory. */
wg_tensor *wg__gradient_like(const wg_call *call, wg_tensor *x);

/* ---- Rules of two operands: both have one dtype, which the result has, too ---- */

int wg__infer_pair(wg_call *call);
int wg__infer_float_pair(wg_call *call); /* a floating dtype */

/* ---- Records ---- */

/* The members that ops of one operand share; the functions are NAME_forward and NAME_vjp. */
#define UNARY(NAME, DOC)                                                                           \
    WG__OP(#NAME, 1, DOC), .differentiable = 1, .forward = NAME##_forward, .vjp = NAME##_vjp

/* UNARY for a primitive, with the jvp and the bench of most of them. */
#define UNARY_PRIMITIVE(NAME, DOC) UNARY(NAME, DOC), .jvp = wg__jvp_diagonal, .bench = wg__bench_one

/* UNARY for an op with options. */
#define UNARY_WITH(NAME, OPTIONS, DOC)                                                             \
    UNARY(NAME, DOC), .options_size = sizeof(OPTIONS), .jvp = wg__jvp_diagonal,                    \
                      .sample = NAME##_sample, .bench = NAME##_bench

/* A primitive on floats: its record NAME_op and the public function. SAVES is saves_inputs or
 * saves_outputs. */
#define FLOAT_FUNCTION(NAME, SAVES, SAMPLE, DOC)                                                   \
    static const wg_op NAME##_op = {UNARY_PRIMITIVE(NAME, DOC), .SAVES = 1,                        \
                                    .infer = wg__infer_float, .batch = wg_batch_aligned,           \
                                    .sample = SAMPLE};                                             \
    wg_tensor *wg_##NAME(wg_tensor *x) {                                                           \
        return wg__apply_float(&NAME##_op, x, NULL);                                               \
    }

/* ---- Samples ---- */

/* The function NAME, a wg_op.sample of one operand, or of two that broadcast, made by samplers. */
#define UNARY_SAMPLE(NAME, MAKE)                                                                   \
    static int NAME(int index, wg_generator *generator, wg_sample *sample) {                       \
        return wg__sample_unary(index, generator, sample, MAKE);                                   \
    }
#define PAIR_SAMPLE(NAME, MAKE_A, MAKE_B)                                                          \
    static int NAME(int index, wg_generator *generator, wg_sample *sample) {                       \
        return wg__sample_binary(index, generator, sample, MAKE_A, MAKE_B);                        \
    }

/* NAME_sample and NAME_bench of an op of one operand with options: the first are those of the
 * bench, the samples take the others in turn. */
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

/* wg_op.sample of ops of one operand: wg__sample_unary with that sampler. */
int wg__unary_normal(int index, wg_generator *generator, wg_sample *sample);
int wg__unary_positive(int index, wg_generator *generator, wg_sample *sample);
int wg__unary_nonzero(int index, wg_generator *generator, wg_sample *sample);

#endif
