/* Macros for lists as arguments, in C and C++. Nothing in the library needs them.
 *
 *     wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(2, 3));
 *     wg_tensor *s = wg_sum(x, WG_DIMS(-1), true);
 *     wg_tensor *c = wg_cat(WG_TENSORS(x, y), 0); */
#ifndef WG_TENSOR_EASY_H
#define WG_TENSOR_EASY_H

#include "tensor.h"

#ifdef __cplusplus

extern "C++" {
template <typename T, int N> struct wg_list { T items[N]; };

/* Converts the items to T and puts them into an array, which WG_LIST passes on in C++. */
template <typename T, typename... Items>
constexpr wg_list<T, sizeof...(Items)> wg_list_of(Items... items) {
    return {{static_cast<T>(items)...}};
}
}

/* The list lives until the end of the full expression around it. */
#define WG_LIST(TYPE, ...)                                                                         \
    static_cast<int>(sizeof(wg_list_of<TYPE>(__VA_ARGS__).items) / sizeof(TYPE)),                  \
        wg_list_of<TYPE>(__VA_ARGS__).items

#else

/* The list lives until the end of the block around it. */
#define WG_LIST(TYPE, ...)                                                                         \
    (int)(sizeof((TYPE[]){__VA_ARGS__}) / sizeof(TYPE)), ((TYPE[]){__VA_ARGS__})

#endif

/* An `int count, const int64_t *values` pair of arguments: shapes and axes. Rank 0 is written
 * `0, NULL`. */
#define WG_DIMS(...) WG_LIST(int64_t, __VA_ARGS__)

/* The same pair, meaning all axes. */
#define WG_ALL 0, NULL

/* An `int count, wg_tensor *const *tensors` pair of arguments. */
#define WG_TENSORS(...) WG_LIST(wg_tensor *, __VA_ARGS__)

/* An `int count, const char *const *names` pair of arguments. */
#define WG_NAMES(...) WG_LIST(const char *, __VA_ARGS__)

#endif
