/* The pending error of each thread, and the version. */
#include "config.h"

#include "base/commit.h"
#include "base/internal.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The thread's error, NULL before its first. It is not thread-local itself: a program that loads
 * the library while it runs (dlopen, Python) has room for a few hundred bytes of such variables. */
static _Thread_local wg_error *pending;
static _Thread_local bool is_pending;

/* Stands in where there is no memory for another. */
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

/* Makes an error pending that the caller fills in; NULL if that is no_memory. */
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

static int tell_handler(void) {
    if (installed_handler)
        installed_handler(pending, installed_context);
    return -1;
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

int wg_fail(wg_error_code code, const char *where, const char *format, ...) {
    if (is_pending)
        return -1;
    wg_error *error = begin_error();
    if (error) {
        error->code = code;
        snprintf(error->where, sizeof error->where, "%s", where);
        char place[256];
        wg__error_place_now(place, sizeof place);
        const int written = snprintf(error->message, sizeof error->message, "%s%s%s: ", place,
                                     *place ? ": " : "", where);
        const size_t used = (size_t)wg__smaller(wg__larger(written, 0), sizeof error->message - 1);
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->message + used, sizeof error->message - used, format, arguments);
        va_end(arguments);
    }
    return tell_handler();
}

int wg__fail_again(const wg_error *error) {
    if (is_pending)
        return -1;
    wg_error *again = begin_error();
    if (again)
        *again = *error;
    return tell_handler();
}

const char *wg_commit(void) {
    return WG_COMMIT;
}

const char *wg_version(void) {
    return WG_VERSION;
}

/* ---- Suggestions ---- */

enum { LONGEST = 64 }; /* longer names are not compared */

static char folded(char letter) {
    return letter == '_' ? '-' : (char)tolower((unsigned char)letter);
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* How many letters are inserted, deleted, replaced or exchanged with their neighbour:
 *
 *     d(i, j) = min( d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + [a_i != b_j],
 *                    d(i-2, j-2) + 1 if a_i a_i-1 = b_j-1 b_j ) */
static int edit_distance(const char *a, const char *b) {
    const int n = (int)strlen(a), m = (int)strlen(b);
    int rows[3][LONGEST + 1]; /* d(i, .), in turns */
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3];
        const int *before = rows[(i - 1) % 3], *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            const char x = folded(a[i - 1]), y = folded(b[j - 1]);
            now[j] = smaller(smaller(before[j], now[j - 1]) + 1, before[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == folded(b[j - 2]) && y == folded(a[i - 2]))
                now[j] = smaller(now[j], two_before[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

static int begins(const char *name, const char *with) {
    while (*with && folded(*name) == folded(*with)) {
        name++;
        with++;
    }
    return *with == '\0';
}

const char *wg_suggestion(char *text, size_t size, const char *typed,
                          const char *(*name)(const void *context, int index),
                          const void *context) {
    const size_t length = strlen(typed);
    int least = (int)(length < 7 ? 1 : (length + 1) / 4) + 1; /* a quarter may be wrong */
    const char *nearest = NULL, *candidate;
    for (int i = 0; length > 0 && length <= LONGEST && (candidate = name(context, i)); i++) {
        if (strlen(candidate) > LONGEST)
            continue;
        int distance = edit_distance(typed, candidate);
        if (length >= 3 && begins(candidate, typed))
            distance = smaller(distance, 1);
        if (distance < least) {
            least = distance;
            nearest = candidate;
        }
    }
    if (nearest)
        snprintf(text, size, "; did you mean '%s'?", nearest);
    else
        text[0] = '\0';
    return text;
}
