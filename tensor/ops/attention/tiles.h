/* What attention is to its kernels: one tile of queries by keys after the other. */
#ifndef WG_TENSOR_OPS_ATTENTION_TILES_H
#define WG_TENSOR_OPS_ATTENTION_TILES_H

#include "tensor/ops.h"

/* A tensor (B, H, T, D) as kernels see it. */
typedef struct wg__heads {
    char *data;
    int64_t batch_stride, head_stride; /* in bytes */
    int64_t row_stride, column_stride; /* in elements */
} wg__heads;

typedef struct wg__attention {
    wg_dtype dtype;
    int64_t size; /* of an element */
    wg_attention_options options;
    int64_t batch, query_heads, key_heads, queries, keys, width; /* B, H, Hkv, Tq, Tk, D */
    wg__heads q, k, v, out;  /* out: the result, or its cotangent; its columns are contiguous */
    wg__heads dq, dk, dv;    /* data NULL: not wanted */
    const bool *mask;        /* NULL: all may be seen */
    int64_t mask_strides[4]; /* in bytes */
    char *log_sums;          /* (B, H, Tq), log sum e^s; NULL: not wanted */
} wg__attention;

/* Writes out and log_sums; and, of log_sums and out's cotangent, dq, dk and dv. -1 with [MEMORY] */
int wg__attention_run(const wg__attention *attention);
int wg__attention_differentiate(const wg__attention *attention);

#endif
