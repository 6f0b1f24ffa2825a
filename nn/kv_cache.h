/* The keys and values that attention has seen, kept so that generating a token costs one token.
 *
 *     (B, Hkv, capacity, D)   | 0 .. length-1: seen | length .. : room |
 *
 * A cache belongs to one attention layer of one generation; it takes no part in a recorded graph.
 */
#ifndef WG_NN_KV_CACHE_H
#define WG_NN_KV_CACHE_H

#include "../tensor/ops.h"

WG_BEGIN_DECLS

typedef struct wg_kv_cache {
    wg_tensor *key, *value; /* kept; NULL before the first use */
    int64_t length;         /* positions that are filled */
    int64_t capacity;       /* of positions */
} wg_kv_cache;

/* An empty cache for up to `capacity` positions; memory is taken at the first use. A cache is
 * cleared by wg_kv_cache_clear before it goes. */
WG_API void wg_kv_cache_init(wg_kv_cache *cache, int64_t capacity);

/* Frees what the cache holds and makes it empty. */
WG_API void wg_kv_cache_clear(wg_kv_cache *cache);

/* Appends the keys and values of new positions, (B, Hkv, T, D), and gives those of all seen so far,
 * views of (B, Hkv, length, D). Returns 0 or -1. [scope; SHAPE if they do not fit what is there,
 * ARGUMENT beyond the capacity, GRADIENT for tensors of a recorded graph] */
WG_API int wg_kv_cache_append(wg_kv_cache *cache, wg_tensor *key, wg_tensor *value,
                              wg_tensor **all_keys, wg_tensor **all_values);

/* Forgets all positions from `length` on. [ARGUMENT beyond what is filled] */
WG_API int wg_kv_cache_truncate(wg_kv_cache *cache, int64_t length);

/* Sequence b becomes what sequence index[b] was, for (B') of them: beams that go on. [INDEX, DTYPE]
 */
WG_API int wg_kv_cache_reorder(wg_kv_cache *cache, wg_tensor *index);

WG_END_DECLS

#endif
