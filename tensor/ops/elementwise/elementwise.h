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

/* The same on the output and the inputs of a call. Returns 0, as a forward does. */
int wg__elementwise_call(wg_call *call, const wg__loop *loops, const void *context);

/* ==== Ops of one operand ==== */

/* ---- Plain loops, which the compiler vectorises ---- */

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

#define FLOAT_FORWARD(NAME)                                                                        \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const wg__loop loops[WG_DTYPE_COUNT] = {                                            \
            [WG_F32] = NAME##_f32, [WG_F64] = NAME##_f64};                                         \
        return wg__elementwise_call(call, loops, NULL);                                            \
    }

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

/* ---- Vector kernels ---- */

/* The vector kernels for the dtype of the call's first input (bf16 passes through f32). */
const wg__simd *wg__call_simd(const wg_call *call);

/* A forward: runs the kernel on input 0, of any strides, contiguous stretch by stretch. */
int wg__run_map(wg_call *call, wg__simd_map map);

#define MAP_FORWARD(NAME)                                                                          \
    static int NAME##_forward(wg_call *call) {                                                     \
        return wg__run_map(call, wg__call_simd(call)->NAME);                                       \
    }

/* A vjp: gradients[0] = g f', from the operand or the result of f. What was saved is overwritten if
 * it is the last time that anybody could read it. */
int wg__run_vjp(wg_call *call, wg__simd_vjp vjp, wg_tensor *x_or_y, wg_tensor *g,
                wg_tensor **gradients);

/* The same for kernels by two plain numbers. */
int wg__run_map_by(wg_call *call, wg__simd_map_by map, double a, double b);
int wg__run_vjp_by(wg_call *call, wg__simd_vjp_by vjp, double a, double b, wg_tensor *x,
                   wg_tensor *g, wg_tensor **gradients);

/* A stretch of n elements of an operand: its own memory if they follow each other there, or a copy
 * in `room`, which holds WG__STRETCH of any dtype. */
#define WG__STRETCH 256
const void *wg__stretch(int64_t n, size_t size, const char *from, int64_t stride, double *room);

/* The memory for a gradient of x, which backward has saved: its own on last use, if x is contiguous
 * and nobody else can see it; else new. */
wg_tensor *wg__gradient_like(const wg_call *call, wg_tensor *x);

/* ---- Records ---- */

/* What they have in common; the functions are NAME_forward and NAME_vjp. */
#define UNARY(NAME, DOC)                                                                           \
    .name = #NAME, .doc = DOC, .min_inputs = 1, .max_inputs = 1, .output_count = 1,                \
    .differentiable = 1, .forward = NAME##_forward, .vjp = NAME##_vjp

/* The same for a primitive, with what serves most of them. */
#define UNARY_PRIMITIVE(NAME, DOC) UNARY(NAME, DOC), .jvp = wg__jvp_diagonal, .bench = wg__bench_one

/* wg_op.sample of values of a kind: wg__sample_unary with that sampler. */
int wg__unary_normal(int index, wg_generator *generator, wg_sample *sample);
int wg__unary_positive(int index, wg_generator *generator, wg_sample *sample);
int wg__unary_nonzero(int index, wg_generator *generator, wg_sample *sample);

/* ==== Ops of two operands that broadcast ==== */

/* ---- Plain loops, which the compiler vectorises ---- */

/* The loop NAME of y = EXPRESSION in a and b, read from elements of TYPE into variables of AS. The
 * layouts that matter (all contiguous; one operand repeated) are constants for the compiler, which
 * then vectorises them. */
#define PAIR_LOOP(NAME, TYPE, AS, EXPRESSION)                                                      \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sa,             \
                                 int64_t sb) {                                                     \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *pa = (const TYPE *)data[1], *pb = (const TYPE *)data[2];                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const AS a = (AS)pa[i * sa], b = (AS)pb[i * sb];                                       \
            y[i * sy] = (TYPE)(EXPRESSION);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / size, sa = strides[1] / size, sb = strides[2] / size;      \
        if (sy == 1 && sa == 1 && sb == 1)                                                         \
            NAME##_at(n, data, 1, 1, 1);                                                           \
        else if (sy == 1 && sa == 1 && sb == 0)                                                    \
            NAME##_at(n, data, 1, 1, 0);                                                           \
        else if (sy == 1 && sa == 0 && sb == 1)                                                    \
            NAME##_at(n, data, 1, 0, 1);                                                           \
        else                                                                                       \
            NAME##_at(n, data, sy, sa, sb);                                                        \
    }

/* Integers wrap around: the arithmetic is that of unsigned numbers, which C defines. */
#define PAIR_WRAPPING_LOOPS(NAME, EXPRESSION)                                                      \
    PAIR_LOOP(NAME##_i32, int32_t, uint32_t, EXPRESSION)                                           \
    PAIR_LOOP(NAME##_i64, int64_t, uint64_t, EXPRESSION)                                           \
    PAIR_LOOP(NAME##_u8, uint8_t, uint32_t, EXPRESSION)

#define PAIR_FLOAT_LOOPS(NAME, EXPRESSION)                                                         \
    PAIR_LOOP(NAME##_f32, float, float, EXPRESSION)                                                \
    PAIR_LOOP(NAME##_f64, double, double, EXPRESSION)

#define FLOATS(NAME) [WG_F32] = NAME##_f32, [WG_F64] = NAME##_f64
#define INTEGERS(NAME) [WG_I32] = NAME##_i32, [WG_I64] = NAME##_i64, [WG_U8] = NAME##_u8

/* ---- Vector kernels ---- */

/* A forward: runs the kernel on inputs 0 and 1, of any strides, contiguous stretch by stretch. */
int wg__run_pair(wg_call *call, wg__simd_pair pair);

/* The same on input 0 and a plain number. -1 for lack of memory. */
int wg__run_pair_with(wg_call *call, wg__simd_pair pair, double number);

/* ---- Rules: both operands have one dtype, which is the result's; of the second, a floating one.
 * ---- */

int wg__infer_pair(wg_call *call);
int wg__infer_float_pair(wg_call *call);

#endif
