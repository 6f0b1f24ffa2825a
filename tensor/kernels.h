/* Which kernels compute on this machine, and deterministic mode: the same bits everywhere. */
#ifndef WG_TENSOR_KERNELS_H
#define WG_TENSOR_KERNELS_H

#include "../base/api.h"

#include <stdbool.h>

WG_BEGIN_DECLS

/* All texts live as long as the program. */
typedef struct wg_kernels {
    const char *vectors; /* of elementwise ops, rows and attention: "base", "v3" (AVX2 and FMA),
                            "v4" (AVX-512), "neon" (arm64) */
    const char *bf16;    /* of products in bf16: the same, "bf16" (AVX512-BF16) or "amx" (AMX) */
    const char *blocks;  /* of products with weights in 8 and 4 bits: the same, "vnni", or "dotprod"
                            (arm64) */
    const char *blis;    /* the version of BLIS */
    const char *blis_family; /* the processor family of BLIS's kernels: "zen", "haswell"; "none" in
                                deterministic mode, which does without BLIS */
    const char *tiles;       /* AMX: "in use", or why not: "this processor has no AMX for bf16" */
    const char *lapack; /* what computes decompositions: "the reference LAPACK", OpenBLAS's text
                           about itself, "OpenBLAS 0.3.21 NO_AFFINITY Zen ...", or "unknown" */
    const char *lapack_file; /* the path of its file, or "unknown" */
    bool lapack_at_once; /* LAPACK is known to allow calls by several threads at a time; if false,
                            the matrices of a batch are decomposed one by one */
} wg_kernels;

/* Deterministic mode: the same bits on every x86-64 processor with AVX2 and FMA, and on arm64.
 * The kernels for AVX2 and FMA compute (on arm64, kernels with the same order of sums), whatever
 * else the processor has. Wengert's own kernels multiply matrices, because BLIS chooses its kernels
 * by the processor. Initially off, but on with WENGERT_DETERMINISTIC=1 in the environment. Without
 * the mode, too, the number of threads does not change results.
 * Decompositions and solvers (docs/ops.md: linalg) are LAPACK's and not covered.
 * The mode holds for the process. Set it before anything is computed: optimizers keep the kernels
 * that they were made with. No other thread may compute meanwhile. 0, or -1 and no change
 * [STATE: an x86-64 processor without AVX2 and FMA, or one that is neither x86-64 nor arm64] */
WG_API int wg_set_deterministic(bool on);
WG_API bool wg_is_deterministic(void);

WG_END_DECLS

#endif
