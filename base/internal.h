/* What every file of the library may use and users never see: memory, reference counts,
 * thread-local variables. */
#ifndef WG_BASE_INTERNAL_H
#define WG_BASE_INTERNAL_H

#include <stddef.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/refcount.h"
#include "base/thread_local.h"

/* Keeps a function that seldom runs out of one that often does, which then has fewer registers to
 * save. */
#define WG__APART __attribute__((noinline))

/* Seconds of a clock that never goes back. */
static inline double wg__now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline bool wg__starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static inline bool wg__ends_with(const char *text, const char *suffix) {
    const size_t length = strlen(text), part = strlen(suffix);
    return length >= part && strcmp(text + length - part, suffix) == 0;
}

/* ---- Memory. All of the library's own memory comes from these functions, so that the counters and
 * the failure hook see it. NULL with [MEMORY]. ---- */
void *wg__alloc(size_t bytes);
void *wg__try_alloc(size_t bytes); /* NULL and no error, for who can do without */
void *wg__calloc(size_t count, size_t size);
char *wg__strdup(const char *text);
void wg__free(void *block); /* NULL is allowed */

#endif
