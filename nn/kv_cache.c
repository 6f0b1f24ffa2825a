/* The keys and values that attention has seen: see attention.h. */
#include "nn/internal.h"
#include "tensor/internal.h"

void wg_kv_cache_init(wg_kv_cache *cache, int64_t capacity) {
    *cache = (wg_kv_cache){.capacity = capacity};
}

void wg_kv_cache_clear(wg_kv_cache *cache) {
    wg_release(cache->key);
    wg_release(cache->value);
    *cache = (wg_kv_cache){.capacity = cache->capacity};
}

static int check_fits(const wg_tensor *room, const wg_spec *x) {
    const int64_t *shape = room->spec.shape;
    if (shape[0] == x->shape[0] && shape[1] == x->shape[1] && shape[3] == x->shape[3])
        return 0;
    char text[64];
    return wg_fail(WG_ERROR_SHAPE, "kv_cache",
                   "%s; the cache holds %lld sequences of %lld heads of %lld",
                   wg_spec_text(text, sizeof text, x), (long long)shape[0], (long long)shape[1],
                   (long long)shape[3]);
}

int wg__kv_cache_reserve(wg_kv_cache *cache, const wg_spec *key, const wg_spec *value) {
    const int64_t positions = key->shape[2];
    if (cache->length + positions > cache->capacity)
        return wg_fail(WG_ERROR_ARGUMENT, "kv_cache",
                       "%lld positions after %lld are more than the cache has room for, %lld",
                       (long long)positions, (long long)cache->length, (long long)cache->capacity);
    if (!cache->key) {
        wg_spec keys = *key, values = *value;
        keys.shape[2] = values.shape[2] = cache->capacity;
        cache->key = wg_keep(wg_empty(keys.dtype, 4, keys.shape));
        cache->value = wg_keep(wg_empty(values.dtype, 4, values.shape));
        if (!cache->key || !cache->value)
            wg_kv_cache_clear(cache);
        return cache->key ? 0 : -1;
    }
    return check_fits(cache->key, key) < 0 || check_fits(cache->value, value) < 0 ? -1 : 0;
}

/* Copies x into the room behind the first `length` positions; returns all positions filled. */
static wg_tensor *extend_room(wg_tensor *room, wg_tensor *x, int64_t length) {
    const int64_t end = length + wg_tensor_size(x, 2);
    if (wg_copy_(wg_slice(room, 2, length, end, 1), x) < 0)
        return NULL;
    return wg_slice(room, 2, 0, end, 1);
}

int wg__kv_cache_append(wg_kv_cache *cache, wg_tensor *key, wg_tensor *value, wg_tensor **all_keys,
                        wg_tensor **all_values) {
    if (!key || !value)
        return -1;
    if (wg_tensor_ndim(key) != 4 || wg_tensor_ndim(value) != 4 ||
        wg_tensor_size(key, 2) != wg_tensor_size(value, 2))
        return wg_fail(WG_ERROR_SHAPE, "kv_cache",
                       "wanted keys and values (B, Hkv, T, D) of one T");
    if (wg_requires_grad(key) || wg_requires_grad(value))
        return wg_fail(WG_ERROR_GRADIENT, "kv_cache",
                       "a cache takes no part in a graph; turn recording off to generate");
    if (wg__kv_cache_reserve(cache, &key->spec, &value->spec) < 0)
        return -1;
    *all_keys = extend_room(cache->key, key, cache->length);
    *all_values = extend_room(cache->value, value, cache->length);
    if (!*all_keys || !*all_values)
        return -1;
    cache->length += wg_tensor_size(key, 2);
    return 0;
}

int wg__kv_cache_truncate(wg_kv_cache *cache, int64_t length) {
    if (length < 0 || length > cache->length)
        return wg_fail(WG_ERROR_ARGUMENT, "kv_cache", "length %lld; %lld positions are filled",
                       (long long)length, (long long)cache->length);
    cache->length = length;
    return 0;
}

int wg__kv_cache_reorder(wg_kv_cache *cache, wg_tensor *index) {
    wg_tensor **const rooms[] = {&cache->key, &cache->value};
    int status = 0;
    for (int i = 0; status == 0 && cache->key && i < 2; i++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *chosen = wg_index_select(*rooms[i], 0, index);
        if (chosen) {
            wg_release(*rooms[i]);
            *rooms[i] = wg_keep(chosen);
        }
        wg_scope_end(&scope, NULL);
        status = chosen ? 0 : -1;
    }
    return status;
}
