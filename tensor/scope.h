/* Scopes own tensors: nothing has to be freed one by one.
 *
 *     wg_scope step;
 *     wg_scope_begin(&step);
 *     wg_tensor *loss = forward(model, batch);   every intermediate belongs to `step`
 *     loss = wg_scope_end(&step, loss);          all are gone but loss, now owned one scope out
 *
 * Every function that returns a `wg_tensor *` returns a handle owned by the innermost open scope of
 * its thread. Each thread has a root scope, open from its first tensor to its end. */
#ifndef WG_TENSOR_SCOPE_H
#define WG_TENSOR_SCOPE_H

#include <stdint.h>

#include "../base/api.h"

WG_BEGIN_DECLS

typedef struct wg_tensor wg_tensor;

/* Lives on the caller's stack between begin and end; its members are the library's. */
typedef struct wg_scope {
    struct wg_scope *outer;
    wg_tensor *first;
} wg_scope;

/* Opens a scope on this thread. Cannot fail. */
WG_API void wg_scope_begin(wg_scope *scope);

/* Closes the innermost scope, which must be `scope`, and frees the handles that it owns, except
 * `result` (may be NULL), which moves to the next scope out and is returned. A result that some
 * other scope owns, or that was kept, is returned as it is. */
WG_API wg_tensor *wg_scope_end(wg_scope *scope, wg_tensor *result);

/* Moves a tensor to the scope one further out than the innermost: for a function with several
 * results. Returns the tensor; NULL gives NULL. */
WG_API wg_tensor *wg_scope_escape(wg_tensor *tensor);

/* Takes a tensor out of its scope: it lives until wg_release. Returns it; NULL gives NULL. */
WG_API wg_tensor *wg_keep(wg_tensor *tensor);

/* Frees a tensor that was kept. NULL is allowed. Any thread may call it. */
WG_API void wg_release(wg_tensor *tensor);

/* Frees what this thread's root scope owns (tensors made while no other scope was open). Returns
 * how many there were: 0 says that every tensor was owned by somebody. */
WG_API int64_t wg_scope_clear_root(void);

/* The number of handles alive in the process, kept ones and those of graphs included. */
WG_API int64_t wg_tensors_alive(void);

WG_END_DECLS

#endif
