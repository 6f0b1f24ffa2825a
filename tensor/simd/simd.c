/* Picks the kernels for the CPU at hand. */
#include "config.h"

#include "tensor/simd/simd.h"

extern const wg__simd wg__simd_f32_base, wg__simd_f64_base;
#ifdef WG_SIMD_X86
extern const wg__simd wg__simd_f32_v3, wg__simd_f64_v3;
extern const wg__simd wg__simd_f32_v4, wg__simd_f64_v4;
#endif

/* libgcc reads the CPU once, before main; these are loads and tests of its flags. */
wg__simd_level wg__simd_level_of_cpu(void) {
#ifdef WG_SIMD_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd"))
        return WG__SIMD_V4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return WG__SIMD_V3;
#endif
    return WG__SIMD_BASE;
}

const wg__simd *wg__simd_for(wg_dtype dtype) {
    bool single = dtype == WG_F32;
#ifdef WG_SIMD_X86
    wg__simd_level level = wg__simd_level_of_cpu();
    if (level == WG__SIMD_V4)
        return single ? &wg__simd_f32_v4 : &wg__simd_f64_v4;
    if (level == WG__SIMD_V3)
        return single ? &wg__simd_f32_v3 : &wg__simd_f64_v3;
#endif
    return single ? &wg__simd_f32_base : &wg__simd_f64_base;
}
