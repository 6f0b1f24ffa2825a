/* The pending error of each thread, and the version. */
#include "config.h"

#include "base/commit.h"
#include "base/internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The thread's error, NULL before its first. The error itself is on the heap, because a program
 * that loads the library with dlopen (Python) has room for only a few hundred bytes of thread-local
 * variables. */
static _Thread_local wg_error *pending;
static _Thread_local bool is_pending;

/* The pending error if there is no memory for another one. */
static wg_error no_memory = {WG_ERROR_MEMORY, "wg_fail", "wg_fail: no memory is left for an error"};

static wg_error_handler installed_handler;
static void *installed_context;

static pthread_key_t at_thread_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Thread_local const wg_error_place *innermost;

const wg_error *wg_error_pending(void) {
    return is_pending ? pending : NULL;
}

void wg_error_clear(void) {
    is_pending = false;
}

static void free_pending(void *error) {
    is_pending = false;
    pending = NULL;
    free(error);
}

static void make_key(void) {
    pthread_key_create(&at_thread_exit, free_pending);
}

/* Makes an error pending and returns it for the caller to fill in; NULL if no_memory is pending. */
static wg_error *begin_error(void) {
    if (!pending || pending == &no_memory) {
        pthread_once(&once, make_key);
        pending = malloc(sizeof *pending);
        if (pending)
            pthread_setspecific(at_thread_exit, pending);
    }
    is_pending = true;
    if (pending)
        return pending;
    pending = &no_memory;
    return NULL;
}

const char *wg_error_name(wg_error_code code) {
    switch (code) {
    case WG_ERROR_NONE:
        return "NONE";
#define WG_ERROR_CASE(name, meaning)                                                               \
    case WG_ERROR_##name:                                                                          \
        return #name;
        WG_ERROR_CODES(WG_ERROR_CASE)
#undef WG_ERROR_CASE
    }
    return "UNKNOWN";
}

void wg_error_set_handler(wg_error_handler handler, void *context) {
    installed_handler = handler;
    installed_context = context;
}

void wg__error_enter(wg_error_place *place) {
    place->outer = innermost;
    innermost = place;
}

void wg__error_leave(const wg_error_place *place) {
    innermost = place->outer;
}

void wg__error_place_now(char *text, size_t size) {
    *text = '\0';
    if (innermost)
        innermost->write(innermost->of, text, size);
}

static void fail(wg_error_code code, const char *where, const char *format, va_list arguments) {
    if (is_pending)
        return;
    wg_error *error = begin_error();
    if (error) {
        error->code = code;
        snprintf(error->where, sizeof error->where, "%s", where);
        char place[256];
        wg__error_place_now(place, sizeof place);
        const int written = snprintf(error->message, sizeof error->message, "%s%s%s: ", place,
                                     *place ? ": " : "", where);
        const size_t used = (size_t)wg__smaller(wg__larger(written, 0), sizeof error->message - 1);
        vsnprintf(error->message + used, sizeof error->message - used, format, arguments);
    }
    if (installed_handler)
        installed_handler(pending, installed_context);
}

int wg_fail(wg_error_code code, const char *where, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail(code, where, format, arguments);
    va_end(arguments);
    return -1;
}

void *wg__fail_null(wg_error_code code, const char *where, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail(code, where, format, arguments);
    va_end(arguments);
    return NULL;
}

int wg__fail_again(const wg_error *error) {
    if (is_pending)
        return -1;
    wg_error *again = begin_error();
    if (again)
        *again = *error;
    if (installed_handler)
        installed_handler(pending, installed_context);
    return -1;
}

const char *wg__commit(void) {
    return WG_COMMIT;
}

const char *wg_version(void) {
    return WG_VERSION;
}
