/* The pending error of each thread, and the version. */
#include "base/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local wg_error pending;

static _Thread_local const wg_error_place *innermost;

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

void wg_error_enter(wg_error_place *place) {
    place->outer = innermost;
    innermost = place;
}

void wg_error_leave(const wg_error_place *place) {
    innermost = place->outer;
}

void wg__error_place_now(char *text, size_t size) {
    *text = '\0';
    if (innermost)
        innermost->write(innermost->of, text, size);
}

/* Writes "place: where: " before the message. Returns the bytes. */
static size_t begin_message(const char *where, char *message, size_t size) {
    char place[256];
    wg__error_place_now(place, sizeof place);
    const int length = snprintf(message, size, "%s%s%s: ", place, *place ? ": " : "", where);
    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

int wg_fail(wg_error_code code, const char *where, const char *format, ...) {
    if (pending.code != WG_ERROR_NONE)
        return -1;
    pending.code = code;
    snprintf(pending.where, sizeof pending.where, "%s", where);
    const size_t used = begin_message(where, pending.message, sizeof pending.message);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(pending.message + used, sizeof pending.message - used, format, arguments);
    va_end(arguments);
    if (installed_handler)
        installed_handler(&pending, installed_context);
    return -1;
}

int wg__fail_again(const wg_error *error) {
    if (pending.code != WG_ERROR_NONE)
        return -1;
    pending = *error;
    if (installed_handler)
        installed_handler(&pending, installed_context);
    return -1;
}

const char *wg_version(void) {
    return WG_VERSION;
}
