/* Optional sugar for C: lists in place. Nothing in the library needs it.
 *
 *     wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(2, 3));
 *     wg_tensor *s = wg_sum(x, WG_DIMS(-1), true);
 *     wg_tensor *c = wg_cat(WG_TENSORS(x, y), 0); */
#ifndef WG_TENSOR_EASY_H
#define WG_TENSOR_EASY_H

#include "tensor.h"

/* An `int count, const int64_t *values` pair of arguments: shapes and axes. Not for rank 0, which
 * is written `0, NULL`. */
#define WG_DIMS(...)                                                                               \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) {                 \
        __VA_ARGS__                                                                                \
    }

/* The same pair, meaning all axes. */
#define WG_ALL 0, NULL

/* An `int count, wg_tensor *const *tensors` pair of arguments. */
#define WG_TENSORS(...)                                                                            \
    (int)(sizeof((wg_tensor *[]){__VA_ARGS__}) / sizeof(wg_tensor *)), (wg_tensor *[]) {           \
        __VA_ARGS__                                                                                \
    }

/* An `int count, const char *const *names` pair of arguments. */
#define WG_NAMES(...)                                                                              \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), (const char *[]) {        \
        __VA_ARGS__                                                                                \
    }

#endif
