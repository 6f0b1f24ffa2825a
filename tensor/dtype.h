/* The element types of tensors. */
#ifndef WG_TENSOR_DTYPE_H
#define WG_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "../base/api.h"

WG_BEGIN_DECLS

typedef enum wg_dtype {
    WG_F32,
    WG_F64,
    WG_BF16, /* storage only: arithmetic reads it as f32 and rounds to nearest even on writing */
    WG_I32,
    WG_I64,
    WG_U8,
    WG_BOOL, /* one byte, 0 or 1 */
    WG_DTYPE_COUNT
} wg_dtype;

/* "f32", "i64", "bool"...; "?" outside the enum. Never NULL. */
WG_API const char *wg_dtype_name(wg_dtype dtype);

/* Bytes of an element; 0 outside the enum. */
WG_API size_t wg_dtype_size(wg_dtype dtype);

/* True for f32, f64 and bf16: the dtypes that can carry a gradient. */
WG_API bool wg_dtype_is_float(wg_dtype dtype);

WG_END_DECLS

#endif
