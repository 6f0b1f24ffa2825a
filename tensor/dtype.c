/* What each dtype is called, how large it is, and where two of them meet. */
#include "tensor/dtype.h"

static const struct {
    const char *name;
    size_t size;
    int rank; /* in promotion */
} dtypes[WG_DTYPE_COUNT] = {
    [WG_F32] = {"f32", 4, 5},   [WG_F64] = {"f64", 8, 6}, [WG_BF16] = {"bf16", 2, 4},
    [WG_I32] = {"i32", 4, 2},   [WG_I64] = {"i64", 8, 3}, [WG_U8] = {"u8", 1, 1},
    [WG_BOOL] = {"bool", 1, 0},
};

static bool is_dtype(wg_dtype dtype) {
    return (unsigned)dtype < WG_DTYPE_COUNT;
}

const char *wg_dtype_name(wg_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].name : "?";
}

size_t wg_dtype_size(wg_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].size : 0;
}

bool wg_dtype_is_float(wg_dtype dtype) {
    return dtype == WG_F32 || dtype == WG_F64 || dtype == WG_BF16;
}

wg_dtype wg_dtype_promote(wg_dtype a, wg_dtype b) {
    if (!is_dtype(a) || !is_dtype(b))
        return is_dtype(a) ? a : b;
    return dtypes[a].rank >= dtypes[b].rank ? a : b;
}
