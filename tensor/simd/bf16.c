/* Picks the kernels on pairs of bf16 for the CPU at hand. */
#include "config.h"

#include "tensor/simd/bf16.h"
#include "tensor/simd/simd.h"

extern const wg__bf16_kernels wg__bf16_kernels_base;
#ifdef WG_SIMD_X86
extern const wg__bf16_kernels wg__bf16_kernels_v3, wg__bf16_kernels_v4, wg__bf16_kernels_bf16;
#endif

const wg__bf16_kernels *wg__bf16_kernels_for_cpu(void) {
#ifdef WG_SIMD_X86
    const wg__simd_level level = wg__simd_level_of_cpu();
    if (level == WG__SIMD_V4)
        return __builtin_cpu_supports("avx512bf16") ? &wg__bf16_kernels_bf16 : &wg__bf16_kernels_v4;
    if (level == WG__SIMD_V3)
        return &wg__bf16_kernels_v3;
#endif
    return &wg__bf16_kernels_base;
}
