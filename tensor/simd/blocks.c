/* Picks the kernels on blocks of integers for the CPU at hand. */
#include "config.h"

#include "tensor/simd/blocks.h"
#include "tensor/simd/simd.h"

extern const wg__block_kernels wg__block_kernels_base;
#ifdef WG_SIMD_X86
extern const wg__block_kernels wg__block_kernels_v3, wg__block_kernels_v4, wg__block_kernels_vnni;
#endif

const wg__block_kernels *wg__block_kernels_for_cpu(void) {
#ifdef WG_SIMD_X86
    const wg__simd_level level = wg__simd_level_of_cpu();
    if (level == WG__SIMD_V4)
        return __builtin_cpu_supports("avx512vnni") ? &wg__block_kernels_vnni
                                                    : &wg__block_kernels_v4;
    if (level == WG__SIMD_V3)
        return &wg__block_kernels_v3;
#endif
    return &wg__block_kernels_base;
}
