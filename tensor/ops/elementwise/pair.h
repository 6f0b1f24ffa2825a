/* Elementwise ops of two operands that broadcast: their loops, their vector kernels, their rules.
 */
#ifndef WG_TENSOR_OPS_ELEMENTWISE_PAIR_H
#define WG_TENSOR_OPS_ELEMENTWISE_PAIR_H

#include "tensor/ops/elementwise/map.h"

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
