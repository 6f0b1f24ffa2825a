/* Errors: the first error of a thread stays pending, and NULL passes through every op.
 *
 * A call that fails returns NULL or a negative int and records one error for its thread. While an
 * error is pending, later failures do not replace it, and an op given NULL returns NULL. So a whole
 * forward pass is checked once, at its end:
 *
 *     wg_tensor *loss = wg_cross_entropy(model_forward(model, x), labels, WG_IGNORE_INDEX, NULL);
 *     if (wg_backward(loss, NULL) < 0)
 *         fprintf(stderr, "%s\n", wg_error_pending()->message);
 *
 * The library never prints, exits or aborts on bad input, corrupt files or lack of memory. */
#ifndef WG_BASE_ERROR_H
#define WG_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"

WG_BEGIN_DECLS

/* X(name, meaning) */
#define WG_ERROR_CODES(X)                                                                          \
    X(SHAPE, "the shapes of the operands do not fit")                                              \
    X(DTYPE, "the operation does not take this dtype")                                             \
    X(INDEX, "an index is out of range")                                                           \
    X(ARGUMENT, "an argument is out of its range")                                                 \
    X(MEMORY, "out of memory")                                                                     \
    X(GRADIENT, "the gradient cannot be computed")                                                 \
    X(NOT_FOUND, "a file or a name does not exist")                                                \
    X(IO, "reading or writing failed")                                                             \
    X(FORMAT, "a file or a text is malformed")                                                     \
    X(STATE, "the object's state does not allow this call")                                        \
    X(ANOMALY, "an operation made a NaN in anomaly mode")

typedef enum wg_error_code {
    WG_ERROR_NONE,
#define WG_ERROR_CODE(name, meaning) WG_ERROR_##name,
    WG_ERROR_CODES(WG_ERROR_CODE)
#undef WG_ERROR_CODE
} wg_error_code;

typedef struct wg_error {
    wg_error_code code;
    char where[64];     /* the op or function that failed */
    char message[1024]; /* one line: "where: operands: the rule broken; what to do" */
} wg_error;

/* The pending error of this thread, or NULL. Stays valid until the next call that clears or records
 * one on the same thread. */
WG_API const wg_error *wg_error_pending(void);

/* Clears the pending error of this thread. */
WG_API void wg_error_clear(void);

/* "SHAPE" for WG_ERROR_SHAPE, and so on; "NONE" for no error. Never NULL. */
WG_API const char *wg_error_name(wg_error_code code);

typedef void (*wg_error_handler)(const wg_error *error, void *context);

/* Sets the handler of all threads; NULL removes it. The library calls it once for each error that
 * becomes pending, on the thread of the error. The handler may print the error and exit. */
WG_API void wg_error_set_handler(wg_error_handler handler, void *context);

/* ---- Where an error happens ----
 * The places of a thread form a stack, and a message begins with the text of the innermost place.
 * A module is a place between wg_module_enter and wg_module_leave (nn/module.h):
 *
 *     "layers.3.mlp.up: linear: (3, 8) x (8, 9): ..." */
typedef struct wg_error_place {
    /* Writes at most `size` bytes, the last of them 0: nothing, or the name of `of`. */
    void (*write)(const void *of, char *text, size_t size);
    const void *of;
    const struct wg_error_place *outer; /* the place that was innermost before */
} wg_error_place;

/* ---- For authors of ops, layers and readers ---- */

/* Records an error unless one is pending. The message is "where: format...", behind the place if
 * there is one. Always returns -1, so that a function can end with `return wg_fail(...)`. */
WG_API int wg_fail(wg_error_code code, const char *where, const char *format, ...)
    WG_PRINTF(3, 4) WG_COLD;

WG_END_DECLS

#endif
