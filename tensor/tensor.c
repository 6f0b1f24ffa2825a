/* Handles and storages: how they are made, shared and freed, and what a handle tells of itself. */
#include "tensor/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/convert.h"
#include "tensor/handle.h"

/* ---- Storage ---- */

/* The data of small tensors stands behind the storage, in the same block. */
enum { SMALL_BYTES = 512, BEHIND = (sizeof(wg_storage) + 63) / 64 * 64 };

static WG__THREAD_LOCAL bool meta_init;

bool wg_set_meta_init(bool on) {
    const bool was = meta_init;
    meta_init = on;
    return was;
}

bool wg__meta_init(void) {
    return meta_init;
}

static wg_storage *storage_new(size_t bytes, bool is_meta) {
    const bool is_small = !is_meta && bytes <= SMALL_BYTES;
    wg_storage *storage = wg__alloc(is_small ? BEHIND + bytes : sizeof *storage);
    if (!storage)
        return NULL;
    storage->data = is_small ? (char *)storage + BEHIND : is_meta ? NULL : wg__alloc(bytes);
    if (!storage->data && !is_meta) {
        wg__free(storage);
        return NULL;
    }
    storage->bytes = is_meta ? 0 : bytes;
    atomic_init(&storage->refcount, 1);
    atomic_init(&storage->version, 0);
    return storage;
}

static void storage_release(wg_storage *storage) {
    if (!wg__refcount_drop(&storage->refcount))
        return;
    if (storage->bytes > SMALL_BYTES)
        wg__free(storage->data);
    wg__free(storage);
}

/* ---- Handles ---- */

/* In no scope, of nothing recorded; its strides are the caller's to fill in. */
static wg_tensor *handle_new(wg_storage *storage, const wg_spec *spec, int64_t offset) {
    wg_tensor *x = wg__alloc(sizeof *x);
    if (!x)
        return NULL;
    x->storage = storage;
    x->offset = offset;
    x->spec = *spec;
    x->node = NULL;
    x->output_index = 0;
    x->tangents = NULL;
    x->scope = NULL;
    wg__counter_add(WG__COUNT_TENSORS, 1);
    return x;
}

void wg__handle_free(wg_tensor *x) {
    wg__scope_forget(x);
    wg_node *node = x->node;
    wg_tangent *tangents = x->tangents;
    storage_release(x->storage);
    wg__free(x);
    wg__counter_add(WG__COUNT_TENSORS, -1);
    if (node)
        wg__autograd()->release(node);
    if (tangents)
        wg__forward()->release(tangents);
}

int64_t wg_tensors_alive(void) {
    return wg__counter_sum(WG__COUNT_TENSORS);
}

static wg_tensor *tensor_new(const wg_spec *spec, bool is_meta) {
    wg_storage *storage =
        storage_new((size_t)wg__spec_count(spec) * wg_dtype_size(spec->dtype), is_meta);
    if (!storage)
        return NULL;
    wg_tensor *x = handle_new(storage, spec, 0);
    if (!x) {
        storage_release(storage);
        return NULL;
    }
    wg__contiguous_strides(spec, x->strides);
    wg__scope_adopt(wg__scope_current(), x);
    return x;
}

wg_tensor *wg__tensor_new(const wg_spec *spec) {
    return tensor_new(spec, false);
}

wg_tensor *wg__meta_tensor_new(const wg_spec *spec) {
    return tensor_new(spec, true);
}

int wg__check_memory(const wg_tensor *x, const char *where) {
    if (!wg__tensor_is_meta(x))
        return 0;
    char text[128];
    return wg_fail(WG_ERROR_STATE, where,
                   "%s was made under wg_set_meta_init(true) and has no elements",
                   wg_spec_text(text, sizeof text, &x->spec));
}

/* A view that is in no scope yet. */
static wg_tensor *view_of(const wg_tensor *base, const wg_spec *spec, const int64_t *strides,
                          int64_t offset) {
    wg_tensor *x = handle_new(base->storage, spec, offset);
    if (!x)
        return NULL;
    wg__refcount_add(&base->storage->refcount);
    for (int i = 0; i < spec->ndim; i++) /* so few that a call of memcpy costs more */
        x->strides[i] = strides[i];
    return x;
}

wg_tensor *wg__tensor_view(const wg_tensor *base, const wg_spec *spec, const int64_t *strides,
                           int64_t offset) {
    wg_tensor *x = view_of(base, spec, strides, offset);
    if (x)
        wg__scope_adopt(wg__scope_current(), x);
    return x;
}

wg_tensor *wg__tensor_reference(const wg_tensor *x, bool bare) {
    wg_tensor *y = view_of(x, &x->spec, x->strides, x->offset);
    if (!y)
        return NULL;
    if (x->node && !bare) {
        wg__autograd()->retain(x->node);
        y->node = x->node;
        y->output_index = x->output_index;
    }
    if (x->tangents && !bare)
        y->tangents = wg__forward()->share(x->tangents);
    return y;
}

wg_tensor *wg_alias(wg_tensor *x) {
    wg_tensor *y = x ? wg__tensor_reference(x, false) : NULL;
    if (y)
        wg__scope_adopt(wg__scope_current(), y);
    return y;
}

bool wg__tensor_is_sole(const wg_tensor *x) {
    return wg__refcount_is_one(&x->storage->refcount);
}

int wg__check_writable(const wg_tensor *x, const char *where) {
    if (!meta_init && wg__check_memory(x, where) < 0)
        return -1;
    if (x->node && wg_grad_enabled())
        return wg_fail(WG_ERROR_GRADIENT, where,
                       "writing in place to a tensor that %s; turn recording off "
                       "(wg_set_grad_enabled) or detach it",
                       wg__autograd()->is_leaf(x->node) ? "requires a gradient"
                                                        : "stands in a recorded graph");
    if (x->tangents && wg__forward()->is_dual(x))
        return wg_fail(WG_ERROR_GRADIENT, where,
                       "writing in place to a tensor that depends on an input of wg_jvp, whose "
                       "derivative would be lost; write to a clone that was detached");
    return 0;
}

/* ---- What a tensor is ---- */

wg_dtype wg_tensor_dtype(const wg_tensor *x) {
    return x ? x->spec.dtype : WG_F32;
}

int wg_tensor_ndim(const wg_tensor *x) {
    return x ? x->spec.ndim : 0;
}

const int64_t *wg_tensor_shape(const wg_tensor *x) {
    return x ? x->spec.shape : NULL;
}

const int64_t *wg_tensor_strides(const wg_tensor *x) {
    return x ? x->strides : NULL;
}

int64_t wg_tensor_size(const wg_tensor *x, int dimension) {
    if (!x)
        return 0;
    int axis = wg__axis(dimension, x->spec.ndim, "size");
    return axis < 0 ? -1 : x->spec.shape[axis];
}

int64_t wg_tensor_count(const wg_tensor *x) {
    return x ? wg__spec_count(&x->spec) : 0;
}

bool wg_tensor_is_contiguous(const wg_tensor *x) {
    if (!x)
        return false;
    int64_t expected = 1;
    for (int i = x->spec.ndim - 1; i >= 0; i--) {
        if (x->spec.shape[i] != 1 && x->strides[i] != expected)
            return wg__spec_count(&x->spec) == 0;
        expected *= x->spec.shape[i];
    }
    return true;
}

bool wg_tensor_shares_storage(const wg_tensor *a, const wg_tensor *b) {
    return a && b && a->storage == b->storage;
}

uint64_t wg_tensor_version(const wg_tensor *x) {
    return x ? atomic_load(&x->storage->version) : 0;
}

const char *wg_spec_text(char *buffer, size_t size, const wg_spec *spec) {
    if (spec->ndim < 0) {
        snprintf(buffer, size, "none");
        return buffer;
    }
    size_t used = 0;
    for (int i = 0; i < spec->ndim && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%lld", i ? ", " : "(",
                                 (long long)spec->shape[i]);
    if (used < size)
        snprintf(buffer + used, size - used, "%s %s", spec->ndim ? ")" : "()",
                 wg_dtype_name(spec->dtype));
    return buffer;
}

/* ---- Elements ---- */

void *wg_tensor_data(const wg_tensor *x) {
    return x && wg__check_memory(x, "tensor_data") == 0 ? wg__tensor_address(x) : NULL;
}

void wg_tensor_touch(wg_tensor *x) {
    if (x)
        atomic_fetch_add(&x->storage->version, 1);
}

double wg_item(const wg_tensor *x) {
    if (!x || wg__check_memory(x, "item") < 0)
        return NAN;
    if (wg__spec_count(&x->spec) != 1) {
        wg_fail(WG_ERROR_SHAPE, "item", "a tensor of %lld elements; wanted one element",
                (long long)wg__spec_count(&x->spec));
        return NAN;
    }
    return wg__element(x->spec.dtype, wg__tensor_address(x));
}

double wg_at(const wg_tensor *x, const int64_t *index) {
    if (!x || wg__check_memory(x, "at") < 0)
        return NAN;
    int64_t position = 0;
    for (int i = 0; i < x->spec.ndim; i++) {
        int64_t size = x->spec.shape[i];
        if (index[i] < -size || index[i] >= size) {
            wg_fail(WG_ERROR_INDEX, "at", "index %lld of dimension %d, which has size %lld",
                    (long long)index[i], i, (long long)size);
            return NAN;
        }
        position += (index[i] < 0 ? index[i] + size : index[i]) * x->strides[i];
    }
    size_t element = wg_dtype_size(x->spec.dtype);
    return wg__element(x->spec.dtype,
                       (const char *)wg__tensor_address(x) + position * (int64_t)element);
}
