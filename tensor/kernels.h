/* Which kernels compute on this machine, for reports such as `wengert doctor'. */
#ifndef WG_TENSOR_KERNELS_H
#define WG_TENSOR_KERNELS_H

#include "../base/api.h"

WG_BEGIN_DECLS

/* All texts live as long as the program. */
typedef struct wg_kernels {
    const char *vectors; /* of elementwise ops, rows and attention: "base", "v3" (AVX2 and FMA),
                            "v4" (AVX-512) */
    const char *bf16;    /* of products with weights in bf16: the same, or "bf16" (AVX512-BF16) */
    const char *blocks;  /* of products with weights in 8 and 4 bits: the same, or "vnni" */
    const char *blis;    /* the version of BLIS */
    const char
        *blis_family; /* the processors for which BLIS has chosen its kernels: "zen", "haswell" */
} wg_kernels;

/* Those that the library has chosen for this processor. Cannot fail. */
WG_API wg_kernels wg_kernels_in_use(void);

WG_END_DECLS

#endif
