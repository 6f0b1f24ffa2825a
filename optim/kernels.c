/* The optimizers' kernels for the instruction set that this file is compiled for: plain loops that
 * the compiler vectorises. */
#include "optim/kernels.h"

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

const wg__optimizer_kernels JOIN(wg__optimizer_kernels_, WG_SIMD) = {
    .adamw_f32 = adamw_f32,
    .adamw_f64 = adamw_f64,
    .square_sum_f32 = square_sum_f32,
    .square_sum_f64 = square_sum_f64,
};
