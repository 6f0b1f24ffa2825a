/* What scope.c and tensor.c share about the life of a handle. */
#ifndef WG_TENSOR_HANDLE_H
#define WG_TENSOR_HANDLE_H

#include "tensor/internal.h"

/* This thread's. NULL until its first use, which opens the root scope. */
extern WG__THREAD_LOCAL wg_scope *wg__innermost_scope;
void wg__scope_open_root(void);

static inline wg_scope *wg__scope_current(void) {
    if (!wg__innermost_scope)
        wg__scope_open_root();
    return wg__innermost_scope;
}

/* Puts a handle that is in no scope under one; takes one out of its scope, if it is in any. */
static inline void wg__scope_adopt(wg_scope *scope, wg_tensor *x) {
    x->scope = scope;
    x->previous = NULL;
    x->next = scope->first;
    if (scope->first)
        scope->first->previous = x;
    scope->first = x;
}

static inline void wg__scope_forget(wg_tensor *x) {
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

/* Takes a handle out of its scope and frees it, with its share of storage and node. */
void wg__handle_free(wg_tensor *x);

#endif
