/* Tensors: storages, handles on them, the scopes that own handles, and arithmetic on shapes. */
#include "tensor/tensor.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/internal.h"

/* ---- Recording, and what autograd installs ---- */

static WG__THREAD_LOCAL bool grad_disabled;
static _Atomic(const wg__autograd_hooks *) autograd;
static _Atomic(const wg__forward_hooks *) forward_mode;

bool wg_set_grad_enabled(bool enabled) {
    bool was = !grad_disabled;
    grad_disabled = !enabled;
    return was;
}

bool wg_grad_enabled(void) {
    return !grad_disabled;
}

bool wg_requires_grad(const wg_tensor *x) {
    return x && x->node;
}

void wg__install_autograd(const wg__autograd_hooks *hooks) {
    atomic_store(&autograd, hooks);
}

const wg__autograd_hooks *wg__autograd(void) {
    return atomic_load(&autograd);
}

void wg__install_forward(const wg__forward_hooks *hooks) {
    atomic_store(&forward_mode, hooks);
}

const wg__forward_hooks *wg__forward(void) {
    return atomic_load(&forward_mode);
}

/* ---- Dtypes ---- */

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

wg_dtype wg__dtype_promote(wg_dtype a, wg_dtype b) {
    if (!is_dtype(a) || !is_dtype(b))
        return is_dtype(a) ? a : b;
    return dtypes[a].rank >= dtypes[b].rank ? a : b;
}

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

/* Adds a handle that is in no scope to one; takes a handle out of its scope, if it has one. */
static void scope_adopt(wg_scope *scope, wg_tensor *x) {
    x->scope = scope;
    x->previous = NULL;
    x->next = scope->first;
    if (scope->first)
        scope->first->previous = x;
    scope->first = x;
}

static void scope_forget(wg_tensor *x) {
    if (!x->scope)
        return;
    if (x->previous)
        x->previous->next = x->next;
    else
        x->scope->first = x->next;
    if (x->next)
        x->next->previous = x->previous;
    x->scope = NULL;
}

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

static void handle_free(wg_tensor *x) {
    scope_forget(x);
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

/* ---- Scopes: a stack of lists of handles for each thread ---- */

/* NULL until the first use on this thread, which opens the root scope. */
static WG__THREAD_LOCAL wg_scope *innermost_scope;
static _Thread_local wg_scope root;

static pthread_key_t at_thread_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int64_t free_all(wg_scope *scope) {
    int64_t count = 0;
    for (; scope->first; count++)
        handle_free(scope->first);
    return count;
}

static void free_root(void *scope) {
    free_all(scope);
}

#ifndef NDEBUG
/* What the main thread never gave to a scope, at exit, by the op that made it. */
static void report_root(void) {
    for (const wg_tensor *x = root.first; x; x = x->next) {
        char text[128];
        fprintf(stderr, "wengert: alive in the root scope at exit: %s, made by %s\n",
                wg_spec_text(text, sizeof text, &x->spec),
                x->node ? wg__autograd()->maker(x->node) : "an unrecorded op");
    }
}
#endif

static void make_key(void) {
    pthread_key_create(&at_thread_exit, free_root);
#ifndef NDEBUG
    atexit(report_root);
#endif
}

static void open_root_scope(void) {
    pthread_once(&once, make_key);
    pthread_setspecific(at_thread_exit, &root);
    innermost_scope = &root;
}

static wg_scope *current_scope(void) {
    if (!innermost_scope)
        open_root_scope();
    return innermost_scope;
}

void wg_scope_begin(wg_scope *scope) {
    scope->outer = current_scope();
    scope->first = NULL;
    innermost_scope = scope;
}

wg_tensor *wg_scope_end(wg_scope *scope, wg_tensor *result) {
    assert(scope == innermost_scope && "scopes end in the order opposite to their beginning");
    if (result && result->scope == scope) {
        scope_forget(result);
        scope_adopt(scope->outer, result);
    }
    free_all(scope);
    innermost_scope = scope->outer;
    return result;
}

wg_tensor *wg_scope_escape(wg_tensor *tensor) {
    wg_scope *inner = current_scope();
    if (tensor && tensor->scope == inner && inner->outer) {
        scope_forget(tensor);
        scope_adopt(inner->outer, tensor);
    }
    return tensor;
}

wg_tensor *wg_keep(wg_tensor *tensor) {
    if (tensor)
        scope_forget(tensor);
    return tensor;
}

void wg_release(wg_tensor *tensor) {
    if (tensor)
        handle_free(tensor);
}

int64_t wg_scope_clear_root(void) {
    current_scope();
    return free_all(&root);
}

/* ---- New handles ---- */

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
    scope_adopt(current_scope(), x);
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
        scope_adopt(current_scope(), x);
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
        scope_adopt(current_scope(), y);
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

/* ---- Texts ---- */

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

const char *wg__operands_text(char *buffer, size_t size, int count, const wg_spec *specs) {
    size_t used = 0;
    buffer[0] = '\0';
    for (int i = 0; i < count && used < size; i++) {
        char one[128];
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? " x " : "",
                                 wg_spec_text(one, sizeof one, &specs[i]));
    }
    return buffer;
}

/* ---- Shapes ---- */

int wg__spec_make(wg_spec *spec, wg_dtype dtype, int ndim, const int64_t *shape,
                  const char *where) {
    if (wg_dtype_size(dtype) == 0)
        return wg_fail(WG_ERROR_ARGUMENT, where, "%d is no dtype", (int)dtype);
    if (ndim < 0 || ndim > WG_MAX_DIMS)
        return wg_fail(WG_ERROR_SHAPE, where, "%d dimensions; there are 0 to %d", ndim,
                       WG_MAX_DIMS);
    if (ndim > 0 && !shape)
        return wg_fail(WG_ERROR_ARGUMENT, where, "the shape of %d dimensions is NULL", ndim);
    /* A size of 0 anywhere does not excuse the others from fitting: strides are their products. */
    double bytes = (double)wg_dtype_size(dtype);
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return wg_fail(WG_ERROR_SHAPE, where, "size %lld of dimension %d is negative",
                           (long long)shape[i], i);
        bytes *= shape[i] > 0 ? (double)shape[i] : 1;
        if (bytes > 0x1p62)
            return wg_fail(WG_ERROR_SHAPE, where, "more than 2^62 bytes");
        spec->shape[i] = shape[i];
    }
    spec->dtype = dtype;
    spec->ndim = ndim;
    return 0;
}

void wg__contiguous_strides(const wg_spec *spec, int64_t *strides) {
    int64_t stride = 1;
    for (int i = spec->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= spec->shape[i] > 0 ? spec->shape[i] : 1;
    }
}

bool wg__broadcast(const wg_spec *a, const wg_spec *b, wg_spec *out) {
    int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int i = 1; i <= ndim; i++) { /* from the last axis on */
        int64_t from_a = i <= a->ndim ? a->shape[a->ndim - i] : 1;
        int64_t from_b = i <= b->ndim ? b->shape[b->ndim - i] : 1;
        if (from_a != from_b && from_a != 1 && from_b != 1)
            return false;
        out->shape[ndim - i] = from_a == 1 ? from_b : from_a;
    }
    out->ndim = ndim;
    return true;
}

bool wg__broadcast_strides(const wg_tensor *x, const wg_spec *to, int64_t *strides) {
    int added = to->ndim - x->spec.ndim;
    if (added < 0)
        return false;
    for (int i = 0; i < to->ndim; i++) {
        int64_t size = i < added ? 1 : x->spec.shape[i - added];
        if (size != to->shape[i] && size != 1)
            return false;
        strides[i] = size == 1 ? 0 : x->strides[i - added];
    }
    return true;
}

int wg__axis(int64_t axis, int ndim, const char *where) {
    if (axis < -ndim || axis >= ndim)
        return wg_fail(WG_ERROR_INDEX, where, "axis %lld of a tensor of %d dimensions",
                       (long long)axis, ndim);
    return (int)(axis < 0 ? axis + ndim : axis);
}

int64_t wg__axis_mask(int count, const int64_t *axes, int ndim, const char *where) {
    if (!axes)
        return (1 << ndim) - 1;
    int64_t mask = 0;
    for (int i = 0; i < count; i++) {
        int axis = wg__axis(axes[i], ndim, where);
        if (axis < 0)
            return -1;
        if (mask & 1 << axis)
            return wg_fail(WG_ERROR_INDEX, where, "axis %lld is given twice", (long long)axes[i]);
        mask |= 1 << axis;
    }
    return mask;
}

void wg__reduced_spec(const wg_spec *x, int64_t axis_mask, bool keepdim, wg_spec *out) {
    int ndim = 0;
    for (int i = 0; i < x->ndim; i++) {
        bool reduced = axis_mask >> i & 1;
        if (!reduced || keepdim)
            out->shape[ndim++] = reduced ? 1 : x->shape[i];
    }
    out->ndim = ndim;
    out->dtype = x->dtype;
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

bool wg__tensor_shares_storage(const wg_tensor *a, const wg_tensor *b) {
    return a && b && a->storage == b->storage;
}

uint64_t wg__tensor_version(const wg_tensor *x) {
    return x ? atomic_load(&x->storage->version) : 0;
}

/* ---- Elements ---- */

void *wg_tensor_data(const wg_tensor *x) {
    return x && wg__check_memory(x, "tensor_data") == 0 ? wg__tensor_address(x) : NULL;
}

void wg_tensor_touch(wg_tensor *x) {
    if (x)
        atomic_fetch_add(&x->storage->version, 1);
}
