/* The optimizers' kernels: plain loops that the compiler vectorizes, compiled once for each
 * instruction set. */
#include "optim/internal.h"

#include <float.h>
#include <math.h>

#define LANES 16
#define JOIN_EXPANDED(a, b) a##b
#define JOIN(a, b) JOIN_EXPANDED(a, b)

#define REAL float
#define SQRT sqrtf
#define ABS fabsf
#define SMALLEST FLT_MIN
#define NAME(kernel) kernel##_f32
#include "optim/kernels_of_real.h"
#undef REAL
#undef SQRT
#undef ABS
#undef SMALLEST
#undef NAME

#define REAL double
#define SQRT sqrt
#define ABS fabs
#define SMALLEST DBL_MIN
#define NAME(kernel) kernel##_f64
#include "optim/kernels_of_real.h"

#define LOOPS(type)                                                                                \
    {                                                                                              \
        .square_sum = square_sum_##type, .scale = scale_##type, .apply = apply_##type,             \
        .adam = adam_##type, .sgd = sgd_##type, .sgd_momentum = sgd_momentum_##type,               \
        .lion = lion_##type, .nesterov = nesterov_##type, .add_squares = add_squares_##type,       \
        .factored_sum = factored_sum_##type, .factored_apply = factored_apply_##type,              \
        .second_moment = second_moment_##type, .second_moment_apply = second_moment_apply_##type,  \
    }

const wg__optimizer_kernels JOIN(wg__optimizer_kernels_, WG_SIMD) = {
    .f32 = LOOPS(f32),
    .f64 = LOOPS(f64),
};
