/* The pending error of each thread, and the version. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local wg_error pending;

static wg_error_handler installed_handler;
static void *installed_context;

const wg_error *wg_error_pending(void) {
    return pending.code == WG_ERROR_NONE ? NULL : &pending;
}

void wg_error_clear(void) {
    pending.code = WG_ERROR_NONE;
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

int wg_fail(wg_error_code code, const char *where, const char *format, ...) {
    if (pending.code != WG_ERROR_NONE)
        return -1;
    pending.code = code;
    snprintf(pending.where, sizeof pending.where, "%s", where);
    int used = snprintf(pending.message, sizeof pending.message, "%s: ", where);
    if (used > 0 && (size_t)used < sizeof pending.message) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(pending.message + used, sizeof pending.message - (size_t)used, format, arguments);
        va_end(arguments);
    }
    if (installed_handler)
        installed_handler(&pending, installed_context);
    return -1;
}

const char *wg_version(void) {
    return WG_VERSION;
}
