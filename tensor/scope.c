/* The scopes of each thread: a stack of lists of handles. */
#include "tensor/scope.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensor/handle.h"

static _Thread_local wg_scope root;

WG__THREAD_LOCAL wg_scope *wg__innermost_scope;

static pthread_key_t at_thread_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int64_t free_all(wg_scope *scope) {
    int64_t count = 0;
    for (; scope->first; count++)
        wg__handle_free(scope->first);
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

void wg__scope_open_root(void) {
    pthread_once(&once, make_key);
    pthread_setspecific(at_thread_exit, &root);
    wg__innermost_scope = &root;
}

void wg_scope_begin(wg_scope *scope) {
    scope->outer = wg__scope_current();
    scope->first = NULL;
    wg__innermost_scope = scope;
}

wg_tensor *wg_scope_end(wg_scope *scope, wg_tensor *result) {
    assert(scope == wg__innermost_scope && "scopes end in the order opposite to their beginning");
    if (result && result->scope == scope) {
        wg__scope_forget(result);
        wg__scope_adopt(scope->outer, result);
    }
    free_all(scope);
    wg__innermost_scope = scope->outer;
    return result;
}

wg_tensor *wg_scope_escape(wg_tensor *tensor) {
    wg_scope *inner = wg__scope_current();
    if (tensor && tensor->scope == inner && inner->outer) {
        wg__scope_forget(tensor);
        wg__scope_adopt(inner->outer, tensor);
    }
    return tensor;
}

wg_tensor *wg_keep(wg_tensor *tensor) {
    if (tensor)
        wg__scope_forget(tensor);
    return tensor;
}

void wg_release(wg_tensor *tensor) {
    if (tensor)
        wg__handle_free(tensor);
}

int64_t wg_scope_clear_root(void) {
    wg__scope_current();
    return free_all(&root);
}
