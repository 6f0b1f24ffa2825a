/* Picks the kernels for the CPU at hand. */
#include "config.h"

#include "tensor/simd/simd.h"

extern const wg__simd wg__simd_f32_base, wg__simd_f64_base;
#ifdef WG_SIMD_X86
extern const wg__simd wg__simd_f32_v3, wg__simd_f64_v3;
extern const wg__simd wg__simd_f32_v4, wg__simd_f64_v4;
#endif

const wg__simd *wg__simd_for(wg_dtype dtype) {
    bool single = dtype == WG_F32;
#ifdef WG_SIMD_X86
    /* libgcc reads the CPU once, before main; these are loads and tests of its flags. */
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd"))
        return single ? &wg__simd_f32_v4 : &wg__simd_f64_v4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return single ? &wg__simd_f32_v3 : &wg__simd_f64_v3;
#endif
    return single ? &wg__simd_f32_base : &wg__simd_f64_base;
}
