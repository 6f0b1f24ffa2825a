/* Tensors: storages, handles on them, the scopes that own handles, and arithmetic on shapes. */
#include "tensor/tensor.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/internal.h"

/* ---- Recording, and what autograd installs ---- */

static WG__THREAD_LOCAL bool grad_disabled;
_Atomic(const wg__autograd_hooks *) wg__autograd;
_Atomic(const wg__forward_hooks *) wg__forward;

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

static const struct {
    const char *name;
    size_t size;
    int rank; /* in promotion */
} dtypes[WG_DTYPE_COUNT] = {
    [WG_F32] = {"f32", 4, 5},   [WG_F64] = {"f64", 8, 6}, [WG_BF16] = {"bf16", 2, 4},
    [WG_I32] = {"i32", 4, 2},   [WG_I64] = {"i64", 8, 3}, [WG_U8] = {"u8", 1, 1},
    [WG_BOOL] = {"bool", 1, 0},
};

const char *wg_dtype_name(wg_dtype dtype) {
    return (unsigned)dtype < WG_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

size_t wg_dtype_size(wg_dtype dtype) {
    return (unsigned)dtype < WG_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

bool wg_dtype_is_float(wg_dtype dtype) {
    return dtype == WG_F32 || dtype == WG_F64 || dtype == WG_BF16;
}

wg_dtype wg__dtype_promote(wg_dtype a, wg_dtype b) {
    if ((unsigned)a >= WG_DTYPE_COUNT)
        return b;
    if ((unsigned)b >= WG_DTYPE_COUNT)
        return a;
    return dtypes[a].rank >= dtypes[b].rank ? a : b;
}

/* The data of small tensors follows the storage, in the same block. */
enum { SMALL_BYTES = 512, BEHIND = (sizeof(wg_storage) + 63) / 64 * 64 };

WG__THREAD_LOCAL bool wg__meta_init;

bool wg_set_meta_init(bool on) {
    const bool was = wg__meta_init;
    wg__meta_init = on;
    return was;
}

static void keep_nothing(void *context) {
    (void)context;
}

static void storage_release(wg_storage *storage) {
    if (!wg__refcount_drop(&storage->refcount))
        return;
    if (storage->release)
        storage->release(storage->context);
    else if (storage->bytes > SMALL_BYTES)
        wg__free(storage->data);
    wg__free(storage);
}

/* ---- Handles ---- */

/* Adds a handle without a scope to a scope; removes a handle from its scope, if it has one. */
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

/* Makes a handle without a scope and without a node. The caller fills in its strides. */
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

/* ---- Checked lifetimes ----
 *
 * The struct of a freed handle stays readable for a while, with one of two marker storages without
 * memory, `ended` or `released`. Functions that read elements refuse them. */

bool wg__checks_lifetimes;

static wg_storage ended = {.refcount = INT_MAX / 2}, released = {.refcount = INT_MAX / 2};

/* The last blocks given to wg__free_later by any thread, a ring. */
enum { MOST_GONE = 1 << 16 };
static void *gone[MOST_GONE];
static uint64_t gone_count;
static pthread_mutex_t gone_lock = PTHREAD_MUTEX_INITIALIZER;

void wg__free_later(void *memory) {
    pthread_mutex_lock(&gone_lock);
    void **place = &gone[gone_count++ % MOST_GONE];
    wg__free(*place);
    *place = memory;
    pthread_mutex_unlock(&gone_lock);
}

__attribute__((constructor)) static void read_environment(void) {
    const char *wanted = getenv("WENGERT_CHECK");
    wg__checks_lifetimes = wanted && *wanted && strcmp(wanted, "0") != 0;
}

bool wg_set_lifetime_checks(bool on) {
    const bool was = wg__checks_lifetimes;
    wg__checks_lifetimes = on;
    for (int i = 0; !on && i < MOST_GONE && gone_count > 0; i++) {
        wg__free(gone[i]);
        gone[i] = NULL;
    }
    gone_count = on ? gone_count : 0;
    return was;
}

/* -1 with STATE if x is a freed handle. NULL is allowed. */
static int check_alive(const wg_tensor *x, const char *where) {
    char text[128];
    if (!x || (x->storage != &ended && x->storage != &released))
        return 0;
    wg_spec_text(text, sizeof text, &x->spec);
    if (x->storage == &released)
        return wg_fail(WG_ERROR_STATE, where, "%s is gone: wg_release or its module freed it",
                       text);
    return wg_fail(WG_ERROR_STATE, where,
                   "%s is gone: its scope has ended; return it by wg_scope_end or wg_scope_escape, "
                   "or wg_keep it",
                   text);
}

/* Where lifetimes are checked, the freed handle gets the marker storage `why`. */
static void handle_free(wg_tensor *x, wg_storage *why) {
    scope_forget(x);
    wg_node *node = x->node;
    wg_tangent *tangents = x->tangents;
    storage_release(x->storage);
    if (wg__checks_lifetimes) {
        x->storage = why;
        x->node = NULL;
        x->tangents = NULL;
        wg__free_later(x);
    } else {
        wg__free(x);
    }
    wg__counter_add(WG__COUNT_TENSORS, -1);
    if (node)
        wg__autograd->release(node);
    if (tangents)
        wg__forward->release(tangents);
}

/* ---- Scopes: a stack of lists of handles for each thread ---- */

/* NULL until the first use on this thread, which opens the root scope. */
static WG__THREAD_LOCAL wg_scope *innermost_scope;
static _Thread_local wg_scope root;

/* The open scopes of this thread, where lifetimes are checked. The list does not read the scopes: a
 * scope that a function has left open is no longer on the stack. */
enum { MOST_SCOPES = 4096 };
static _Thread_local wg_scope **open_scopes;
static _Thread_local int open_count;

static pthread_key_t at_thread_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int64_t free_all(wg_scope *scope) {
    int64_t count = 0;
    for (; scope->first; count++)
        handle_free(scope->first, &ended);
    return count;
}

static void free_root(void *scope) {
    free_all(scope);
    free(open_scopes);
    open_scopes = NULL;
}

#ifndef NDEBUG
/* At exit, reports tensors of the main thread that no scope freed, by the op that made each. */
static void report_root(void) {
    for (const wg_tensor *x = root.first; x; x = x->next) {
        char text[128];
        const wg_op *op = x->node ? wg__autograd->op_of(x->node) : NULL;
        fprintf(stderr, "wengert: alive in the root scope at exit: %s, made by %s\n",
                wg_spec_text(text, sizeof text, &x->spec),
                op        ? op->name
                : x->node ? "leaf"
                          : "an unrecorded op");
    }
}
#endif

static void make_key(void) {
    pthread_key_create(&at_thread_exit, free_root);
#ifndef NDEBUG
    atexit(report_root);
#endif
}

static wg_scope *current_scope(void) {
    if (!innermost_scope) {
        pthread_once(&once, make_key);
        pthread_setspecific(at_thread_exit, &root);
        innermost_scope = &root;
    }
    return innermost_scope;
}

/* Removes a scope from open_scopes. -1 with STATE if it is not the innermost one; then the scopes
 * outside of it are open as before. */
static int note_end(const wg_scope *scope) {
    int at = open_count;
    if (!open_scopes || open_count > MOST_SCOPES) {
        open_count--;
        return 0;
    }
    while (at > 0 && open_scopes[at - 1] != scope)
        at--;
    if (at == 0)
        return wg_fail(WG_ERROR_STATE, "scope_end", "this scope is not open; it has ended already");
    const int inner = open_count - at;
    open_count = at - 1;
    innermost_scope = open_scopes[at - 1];
    return inner == 0 ? 0
                      : wg_fail(WG_ERROR_STATE, "scope_end",
                                "%d scope%s inside of this one %s still open; a function that "
                                "returns early must end the scopes that it began",
                                inner, inner == 1 ? "" : "s", inner == 1 ? "is" : "are");
}

void wg_scope_begin(wg_scope *scope) {
    scope->outer = current_scope();
    scope->first = NULL;
    innermost_scope = scope;
    if (!wg__checks_lifetimes)
        return;
    if (!open_scopes)
        open_scopes = calloc(MOST_SCOPES, sizeof *open_scopes); /* freed with the thread */
    if (open_scopes && open_count < MOST_SCOPES)
        open_scopes[open_count] = scope;
    open_count++;
}

wg_tensor *wg_scope_end(wg_scope *scope, wg_tensor *result) {
    if (wg__checks_lifetimes && (note_end(scope) < 0 || check_alive(result, "scope_end") < 0)) {
        if (innermost_scope == scope) {
            free_all(scope);
            innermost_scope = scope->outer;
        }
        return NULL;
    }
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
    if (wg__checks_lifetimes && check_alive(tensor, "scope_escape") < 0)
        return NULL;
    if (tensor && tensor->scope == inner && inner->outer) {
        scope_forget(tensor);
        scope_adopt(inner->outer, tensor);
    }
    return tensor;
}

wg_tensor *wg_keep(wg_tensor *tensor) {
    if (wg__checks_lifetimes && check_alive(tensor, "keep") < 0)
        return NULL;
    if (tensor)
        scope_forget(tensor);
    return tensor;
}

void wg_release(wg_tensor *tensor) {
    char text[128];
    if (!tensor || (wg__checks_lifetimes && check_alive(tensor, "release") < 0))
        return;
    if (wg__checks_lifetimes && tensor->scope)
        wg_fail(WG_ERROR_STATE, "release",
                "%s belongs to a scope, which frees it; release what wg_keep has kept",
                wg_spec_text(text, sizeof text, &tensor->spec));
    else
        handle_free(tensor, &released);
}

int64_t wg_scope_clear_root(void) {
    current_scope();
    return free_all(&root);
}

/* ---- New handles ---- */

/* The limit holds for the product of all sizes but 0: strides are products of sizes. */
static int check_sizes(const wg_spec *spec, const char *where) {
    double bytes = (double)wg_dtype_size(spec->dtype);
    for (int i = 0; i < spec->ndim; i++) {
        const int64_t size = spec->shape[i];
        if (size < 0)
            return wg_fail(WG_ERROR_SHAPE, where, "size %lld of dimension %d is negative",
                           (long long)size, i);
        bytes *= size > 0 ? (double)size : 1;
        if (bytes > 0x1p62)
            return wg_fail(WG_ERROR_SHAPE, where, "more than 2^62 bytes");
    }
    return 0;
}

int64_t wg_tensors_alive(void) {
    return wg__counter_sum(WG__COUNT_TENSORS);
}

wg_tensor *wg__tensor_make(const wg_spec *spec, bool is_meta) {
    if (check_sizes(spec, "tensor") < 0)
        return NULL;
    const size_t bytes = (size_t)wg__spec_count(spec) * wg_dtype_size(spec->dtype);
    const bool is_small = !is_meta && bytes <= SMALL_BYTES;
    wg_storage *storage = wg__alloc(is_small ? BEHIND + bytes : sizeof *storage);
    if (!storage)
        return NULL;
    storage->data = is_small ? (char *)storage + BEHIND : is_meta ? NULL : wg__alloc(bytes);
    storage->bytes = is_meta || !storage->data ? 0 : bytes;
    atomic_init(&storage->refcount, 1);
    atomic_init(&storage->version, 0);
    storage->release = NULL;
    storage->context = NULL;
    wg_tensor *x = storage->data || is_meta ? handle_new(storage, spec, 0) : NULL;
    if (!x) {
        storage_release(storage);
        return NULL;
    }
    wg__contiguous_strides(spec, x->strides);
    scope_adopt(current_scope(), x);
    return x;
}

wg_tensor *wg__tensor_new(const wg_spec *spec) {
    return wg__tensor_make(spec, false);
}

wg_tensor *wg_from_blob(wg_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                        void *data, void (*release)(void *context), void *context) {
    wg_spec spec;
    if (wg__spec_make(&spec, dtype, ndim, shape, "from_blob") < 0)
        return NULL;
    if (!data || (uintptr_t)data % wg_dtype_size(dtype) != 0)
        return wg__fail_null(
            WG_ERROR_ARGUMENT, "from_blob",
            "the address %p cannot hold %s; it must be a multiple of %zu and not NULL", data,
            wg_dtype_name(dtype), wg_dtype_size(dtype));
    wg_tensor *x = wg__tensor_make(&spec, true);
    if (!x)
        return NULL;
    x->storage->data = data;
    x->storage->release = release ? release : keep_nothing;
    x->storage->context = context;
    for (int i = 0; strides && i < ndim; i++)
        x->strides[i] = strides[i];
    return x;
}

int wg__check_memory(const wg_tensor *x, const char *where) {
    if (!wg__tensor_is_meta(x))
        return 0;
    if (check_alive(x, where) < 0)
        return -1;
    char text[128];
    if (x->tangents)
        return wg_fail(WG_ERROR_STATE, where,
                       "%s stands for one sample of wg_vmap, whose elements differ from sample to "
                       "sample: only ops can read it, and only inside of the function",
                       wg_spec_text(text, sizeof text, &x->spec));
    return wg_fail(WG_ERROR_STATE, where,
                   "%s was made under wg_set_meta_init(true) and has no elements",
                   wg_spec_text(text, sizeof text, &x->spec));
}

/* Makes a view without a scope. */
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
        wg__autograd->retain(x->node);
        y->node = x->node;
        y->output_index = x->output_index;
    }
    if (x->tangents && !bare)
        y->tangents = wg__forward->share(x->tangents);
    return y;
}

wg_tensor *wg_alias(wg_tensor *x) {
    wg_tensor *y = x ? wg__tensor_reference(x, false) : NULL;
    if (y)
        scope_adopt(current_scope(), y);
    return y;
}

bool wg__tensor_is_sole(const wg_tensor *x) {
    return wg__refcount_is_one(&x->storage->refcount) && !x->storage->release;
}

int wg__check_apart(const wg_tensor *x, const char *where) {
    char text[128], strides[WG_MAX_DIMS * 24] = "";
    if (!wg__overlaps_itself(x))
        return 0;
    for (int i = 0, used = 0; i < x->spec.ndim; i++)
        used += snprintf(strides + used, sizeof strides - (size_t)used, "%s%lld", i ? ", " : "",
                         (long long)x->strides[i]);
    return wg_fail(WG_ERROR_ARGUMENT, where,
                   "%s with strides (%s): elements share an address, as in an expanded view, and "
                   "would be written several times; use a clone, or the tensor that the view is of",
                   wg_spec_text(text, sizeof text, &x->spec), strides);
}

int wg__check_writable(const wg_tensor *x, const char *where) {
    if (!wg__meta_init && wg__check_memory(x, where) < 0)
        return -1;
    if (x->node && wg_grad_enabled())
        return wg_fail(WG_ERROR_GRADIENT, where,
                       "writing in place to a tensor that %s; turn recording off "
                       "(wg_set_grad_enabled) or detach it",
                       wg__autograd->op_of(x->node) ? "is part of a recorded graph"
                                                    : "requires a gradient");
    if (x->tangents && wg__forward->highest(x))
        return wg_fail(WG_ERROR_GRADIENT, where,
                       "writing in place to a tensor that depends on an input of wg_jvp, whose "
                       "derivative would be lost; write to a clone that was detached");
    return wg__check_apart(x, where);
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
    spec->dtype = dtype;
    spec->ndim = ndim;
    for (int i = 0; i < ndim; i++)
        spec->shape[i] = shape[i];
    return check_sizes(spec, where);
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

void *wg_tensor_data(const wg_tensor *x) {
    return x && wg__check_memory(x, "tensor_data") == 0 ? wg__tensor_address(x) : NULL;
}

void wg_tensor_touch(wg_tensor *x) {
    if (x)
        atomic_fetch_add(&x->storage->version, 1);
}
