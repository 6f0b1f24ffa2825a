/* Chooses the tables of kernels for this CPU, the environment and deterministic mode. */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef WG_SIMD_AMX
#include <cpuid.h>
#include <pthread.h>
#endif

#include "base/error.h"
#include "base/system.h"
#include "tensor/gemm/gemm.h"
#include "tensor/kernels.h"
#include "tensor/ops/linalg/lapack.h"
#include "tensor/simd/simd.h"
#include "tensor/internal.h"

extern const wg__simd wg__simd_f32_base, wg__simd_f64_base;
extern const wg__block_kernels wg__block_kernels_base;
extern const wg__bf16_kernels wg__bf16_kernels_base;

#ifdef WG_SIMD_X86
extern const wg__simd wg__simd_f32_v3, wg__simd_f64_v3;
extern const wg__simd wg__simd_f32_v4, wg__simd_f64_v4;
extern const wg__block_kernels wg__block_kernels_v3, wg__block_kernels_v4, wg__block_kernels_vnni;
extern const wg__bf16_kernels wg__bf16_kernels_v3, wg__bf16_kernels_v4, wg__bf16_kernels_bf16;
#ifdef WG_SIMD_AMX
extern const wg__bf16_kernels wg__bf16_kernels_amx;
#endif
/* libgcc reads the CPU once, before main; these are loads and tests of its flags. */
#define CPU_HAS(instructions) (__builtin_cpu_supports(instructions) != 0)
#else
#define CPU_HAS(instructions) false
#endif
#ifdef WG_SIMD_ARM64
extern const wg__simd wg__simd_f32_v3, wg__simd_f64_v3;
extern const wg__block_kernels wg__block_kernels_dotprod;
#endif

/* In the order of the levels; then the tables for extensions of the last level. Kernels of bf16 and
 * of blocks do not sum over lanes. On arm64 they have the same bits at all levels, so v3 has the
 * kernels of base. */
static const wg__simd *const of_floats[][2] = {
    {&wg__simd_f32_base, &wg__simd_f64_base},
#if defined(WG_SIMD_X86) || defined(WG_SIMD_ARM64)
    {&wg__simd_f32_v3, &wg__simd_f64_v3},
#endif
#ifdef WG_SIMD_X86
    {&wg__simd_f32_v4, &wg__simd_f64_v4},
#endif
};

static const wg__block_kernels *const of_blocks[] = {
    &wg__block_kernels_base,
#ifdef WG_SIMD_X86
    &wg__block_kernels_v3,
    &wg__block_kernels_v4,
    &wg__block_kernels_vnni,
#elif defined(WG_SIMD_ARM64)
    &wg__block_kernels_dotprod,
#endif
};

static const wg__bf16_kernels *const of_bf16[] = {
    &wg__bf16_kernels_base,
#ifdef WG_SIMD_X86
    &wg__bf16_kernels_v3,   &wg__bf16_kernels_v4, &wg__bf16_kernels_bf16,
#ifdef WG_SIMD_AMX
    &wg__bf16_kernels_amx,
#endif
#elif defined(WG_SIMD_ARM64)
    &wg__bf16_kernels_base,
#endif
};

/* ---- The environment and deterministic mode ---- */

/* The highest level of this processor, or less by the environment, and the level that is used
 * outside of deterministic mode. Set before main. */
static wg__simd_level highest = WG__SIMD_BASE, usual = WG__SIMD_BASE;
#ifdef WG_SIMD_ARM64
static bool has_dot_products;
#endif
static bool without_tiles; /* by the environment */
static atomic_bool deterministic;

__attribute__((constructor)) static void read_environment(void) {
#ifdef WG_SIMD_X86
    __builtin_cpu_init();
#endif
    const char *most = getenv("WENGERT_SIMD"), *mode = getenv("WENGERT_DETERMINISTIC");
    wg__simd_level level = WG__SIMD_BASE;
    if (CPU_HAS("avx2") && CPU_HAS("fma") && CPU_HAS("bmi2"))
        level = WG__SIMD_V3;
    if (CPU_HAS("avx512f") && CPU_HAS("avx512vl") && CPU_HAS("avx512bw") && CPU_HAS("avx512dq") &&
        CPU_HAS("avx512cd"))
        level = WG__SIMD_V4;
#ifdef WG_SIMD_ARM64
    level = WG__SIMD_V3;
#endif
    if (most && strcmp(most, "v3") == 0 && level > WG__SIMD_V3)
        level = WG__SIMD_V3;
    if (most && strcmp(most, "base") == 0)
        level = WG__SIMD_BASE;
    highest = usual = level;
#ifdef WG_SIMD_ARM64
    /* The compiler keeps pairs of vectors in memory, single ones in registers. */
    if (!most || strcmp(most, "v3") != 0)
        usual = WG__SIMD_BASE;
    has_dot_products = level > WG__SIMD_BASE && wg__processor_has("asimddp");
#endif
    without_tiles = most && *most;
    atomic_store(&deterministic, level >= WG__SIMD_V3 && mode && *mode && strcmp(mode, "0") != 0);
}

wg__simd_level wg__simd_level_in_use(void) {
    return wg_is_deterministic() ? WG__SIMD_V3 : usual;
}

bool wg_is_deterministic(void) {
    return atomic_load_explicit(&deterministic, memory_order_relaxed);
}

int wg_set_deterministic(bool on) {
    if (on && highest < WG__SIMD_V3)
        return wg_fail(
            WG_ERROR_STATE, "set_deterministic",
            "the kernels that give the same bits everywhere need AVX2 and FMA, or arm64, "
            "which this processor does not have");
    atomic_store(&deterministic, on);
    return 0;
}

const wg__simd *wg__simd_at(wg_dtype dtype, int index) {
    return index > (int)highest ? NULL : of_floats[index][dtype != WG_F32];
}

const wg__simd *wg__simd_for(wg_dtype dtype) {
    return of_floats[wg__simd_level_in_use()][dtype != WG_F32];
}

const wg__block_kernels *wg__block_kernels_at(int index) {
#ifdef WG_SIMD_ARM64 /* the tables have the same bits, so the mode does not matter */
    const int best = has_dot_products;
#else
    const wg__simd_level level = wg__simd_level_in_use();
    const int best = (int)level + (level == WG__SIMD_V4 && CPU_HAS("avx512vnni"));
#endif
    return index > best ? NULL : of_blocks[index == WG__BEST ? best : index];
}

static const char no_tiles[] = "this processor has no AMX for bf16";

#ifdef WG_SIMD_AMX
static bool cpu_has_tiles(void) {
    enum { OSXSAVE = 1 << 27, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, TILE_STATE = 3 << 17 };
    unsigned a, b, c, d, enabled, upper;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
        return false;
    __asm__("xgetbv" : "=a"(enabled), "=d"(upper) : "c"(0));
    if ((enabled & TILE_STATE) != TILE_STATE || !__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
        !(d & AMX_TILE) || !(d & AMX_BF16) || !__get_cpuid_count(0x1d, 1, &a, &b, &c, &d))
        return false;
    /* Palette 1: eight tiles or more, of 16 rows of 64 bytes. */
    return b >> 16 >= 8 && (b & 0xffff) >= 64 && (c & 0xffff) >= 16;
}

static const char *tiles_problem; /* why tiles are not used; NULL: they are */

static void try_tiles(void) {
    if (!CPU_HAS("avx512bf16") || !cpu_has_tiles())
        tiles_problem = no_tiles;
    else if (!wg__system_grants_tiles())
        tiles_problem = "the system does not grant AMX to this process";
}
#endif

/* Deterministic mode and WENGERT_SIMD exclude tiles, and then nothing asks the system for them. */
static const char *why_no_tiles(void) {
    if (without_tiles)
        return "excluded by WENGERT_SIMD";
    if (wg_is_deterministic())
        return "not in deterministic mode";
    if (wg__simd_level_in_use() < WG__SIMD_V4)
        return no_tiles;
#ifdef WG_SIMD_AMX
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, try_tiles);
    return tiles_problem;
#else
    return "not in this build";
#endif
}

const wg__bf16_kernels *wg__bf16_kernels_at(int index) {
    const wg__simd_level level = wg__simd_level_in_use();
    int best = (int)level;
    if (level == WG__SIMD_V4 && CPU_HAS("avx512bf16"))
        best += why_no_tiles() ? 1 : 2;
    return index > best ? NULL : of_bf16[index == WG__BEST ? best : index];
}

/* The name for users: on arm64, "base" is NEON. */
static const char *named(const char *kernels) {
#ifdef WG_SIMD_ARM64
    if (strcmp(kernels, "base") == 0)
        return "neon";
#endif
    return kernels;
}

wg_kernels wg__kernels_in_use(void) {
    const char *problem = why_no_tiles();
    const wg__lapack_library *lapack = wg__lapack_in_use();
    return (wg_kernels){
        .vectors = named(wg__simd_for(WG_F32)->name),
        .bf16 = named(wg__bf16_kernels_at(WG__BEST)->name),
        .tiles = problem ? problem : "in use",
        .blocks = named(wg__block_kernels_at(WG__BEST)->name),
        .blis = wg__blis_version(),
        .blis_family = wg_is_deterministic() ? "none" : wg__blis_family(),
        .lapack = lapack->name,
        .lapack_file = lapack->file,
        .lapack_at_once = lapack->at_once,
    };
}
