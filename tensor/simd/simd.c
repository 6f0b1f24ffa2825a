/* Chooses the kernels for this CPU. */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tensor/gemm/blis.h"
#include "tensor/kernels.h"
#include "tensor/simd/simd.h"

extern const wg__simd wg__simd_f32_base, wg__simd_f64_base;
extern const wg__block_kernels wg__block_kernels_base;
extern const wg__bf16_kernels wg__bf16_kernels_base;

#ifdef WG_SIMD_X86
extern const wg__simd wg__simd_f32_v3, wg__simd_f64_v3;
extern const wg__simd wg__simd_f32_v4, wg__simd_f64_v4;
extern const wg__block_kernels wg__block_kernels_v3, wg__block_kernels_v4, wg__block_kernels_vnni;
extern const wg__bf16_kernels wg__bf16_kernels_v3, wg__bf16_kernels_v4, wg__bf16_kernels_bf16;
/* libgcc reads the CPU once, before main; these are loads and tests of its flags. */
#define CPU_HAS(instructions) (__builtin_cpu_supports(instructions) != 0)
#else
#define CPU_HAS(instructions) false
#endif

/* In the order of the levels; then the tables for extensions of the last level. */
static const wg__simd *const of_f32[] = {
    &wg__simd_f32_base,
#ifdef WG_SIMD_X86
    &wg__simd_f32_v3,
    &wg__simd_f32_v4,
#endif
};

static const wg__simd *const of_f64[] = {
    &wg__simd_f64_base,
#ifdef WG_SIMD_X86
    &wg__simd_f64_v3,
    &wg__simd_f64_v4,
#endif
};

static const wg__block_kernels *const of_blocks[] = {
    &wg__block_kernels_base,
#ifdef WG_SIMD_X86
    &wg__block_kernels_v3,
    &wg__block_kernels_v4,
    &wg__block_kernels_vnni,
#endif
};

static const wg__bf16_kernels *const of_bf16[] = {
    &wg__bf16_kernels_base,
#ifdef WG_SIMD_X86
    &wg__bf16_kernels_v3,
    &wg__bf16_kernels_v4,
    &wg__bf16_kernels_bf16,
#endif
};

static wg__simd_level level_of_cpu(void) {
    if (CPU_HAS("avx512f") && CPU_HAS("avx512vl") && CPU_HAS("avx512bw") && CPU_HAS("avx512dq") &&
        CPU_HAS("avx512cd"))
        return WG__SIMD_V4;
    if (CPU_HAS("avx2") && CPU_HAS("fma") && CPU_HAS("bmi2"))
        return WG__SIMD_V3;
    return WG__SIMD_BASE;
}

/* ---- The environment and deterministic mode: the level that is used is the least of three ---- */

static wg__simd_level of_cpu_or_environment = WG__SIMD_BASE; /* set before main */
static atomic_bool deterministic;

static bool is_set(const char *text) {
    return text && *text && strcmp(text, "0") != 0;
}

__attribute__((constructor)) static void read_environment(void) {
#ifdef WG_SIMD_X86
    __builtin_cpu_init();
#endif
    const char *most = getenv("WENGERT_SIMD");
    wg__simd_level level = level_of_cpu();
    if (most && strcmp(most, "v3") == 0 && level > WG__SIMD_V3)
        level = WG__SIMD_V3;
    if (most && strcmp(most, "base") == 0)
        level = WG__SIMD_BASE;
    of_cpu_or_environment = level;
    atomic_store(&deterministic, level >= WG__SIMD_V3 && is_set(getenv("WENGERT_DETERMINISTIC")));
}

wg__simd_level wg__simd_level_in_use(void) {
    return wg_is_deterministic() ? WG__SIMD_V3 : of_cpu_or_environment;
}

bool wg_is_deterministic(void) {
    return atomic_load_explicit(&deterministic, memory_order_relaxed);
}

int wg_set_deterministic(bool on) {
    if (on && of_cpu_or_environment < WG__SIMD_V3)
        return wg_fail(WG_ERROR_STATE, "set_deterministic",
                       "the kernels that give the same bits everywhere are those for AVX2 and FMA, "
                       "which this processor does not have");
    atomic_store(&deterministic, on);
    return 0;
}

/* The index of the best table. `extends` says that the CPU has the extension that the table behind
 * the last level needs. */
static int best(bool extends) {
    const wg__simd_level level = wg__simd_level_in_use();
    return (int)level + (level == WG__SIMD_V4 && extends);
}

const wg__simd *wg__simd_at(wg_dtype dtype, int index) {
    return index > best(false) ? NULL : (dtype == WG_F32 ? of_f32 : of_f64)[index];
}

const wg__simd *wg__simd_for(wg_dtype dtype) {
    return (dtype == WG_F32 ? of_f32 : of_f64)[best(false)];
}

const wg__block_kernels *wg__block_kernels_at(int index) {
    return index > best(CPU_HAS("avx512vnni")) ? NULL : of_blocks[index];
}

const wg__block_kernels *wg__block_kernels_for_cpu(void) {
    return of_blocks[best(CPU_HAS("avx512vnni"))];
}

const wg__bf16_kernels *wg__bf16_kernels_at(int index) {
    return index > best(CPU_HAS("avx512bf16")) ? NULL : of_bf16[index];
}

const wg__bf16_kernels *wg__bf16_kernels_for_cpu(void) {
    return of_bf16[best(CPU_HAS("avx512bf16"))];
}

wg_kernels wg_kernels_in_use(void) {
    return (wg_kernels){
        .vectors = wg__simd_for(WG_F32)->name,
        .bf16 = wg__bf16_kernels_for_cpu()->name,
        .blocks = wg__block_kernels_for_cpu()->name,
        .blis = wg__blis_version(),
        .blis_family = wg_is_deterministic() ? "none" : wg__blis_family(),
    };
}
