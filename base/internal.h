/* Internal functions that every file of the library may use: memory, reference counts, counters, a
 * clock, strings and integer arithmetic. */
#ifndef WG_BASE_INTERNAL_H
#define WG_BASE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/api.h"
#include "base/error.h"
#include "base/group.h"

/* For small thread-local variables that every op reads: an access needs no function call, even in
 * the shared library. */
#define WG__THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

/* Before functions that the command calls and users do not: exported with the version
 * WENGERT_PRIVATE, and without any promise. Their names begin with wg__. */
#if defined(__GNUC__)
#define WG__COMMAND __attribute__((visibility("default")))
#else
#define WG__COMMAND
#endif

/* Keeps a rarely called function out of line, so that its hot caller saves fewer registers. */
#define WG__NOINLINE __attribute__((noinline))

/* ---- Errors ---- */

/* Records an earlier error again, word for word, unless one is pending. Returns -1. */
int wg__fail_again(const wg_error *error);

/* wg_fail for functions that return a pointer. Always returns NULL. */
void *wg__fail_null(wg_error_code code, const char *where, const char *format, ...)
    WG_PRINTF(3, 4) WG_COLD;

/* Writes the place that an error of this thread would begin with now ("layers.3.mlp.up"); "" if
 * there is none. */
void wg__error_place_now(char *text, size_t size);

/* ---- Options ---- */

/* The number that an option means: `standard` if the option is 0, and 0 if it is WG_ZERO. */
static inline double wg__option(double value, double standard) {
    return value == 0 ? standard : value == WG_ZERO ? 0 : value;
}

/* ---- Memory. The library allocates through these functions only, so that the statistics and the
 * failure hook see every block. NULL with [MEMORY]. ---- */

void *wg__alloc(size_t bytes);
void *wg__try_alloc(size_t bytes); /* NULL and no error */
void *wg__calloc(size_t count, size_t size);

/* Memory for `count` elements: NULL with MEMORY, naming both, if count is negative or there are
 * more bytes than can be counted. Sizes are multiplied here and in wg__times alone
 * (tests/sizes.sh). */
void *wg__alloc_array(int64_t count, size_t element_size);
void *wg__try_alloc_array(int64_t count, size_t element_size); /* NULL and no error */

/* a b, the number of elements of a block that wg__alloc_array is asked for; 2^60 if the product is
 * larger or a factor is negative. A few of these numbers can be added. */
int64_t wg__times(int64_t a, int64_t b);

char *wg__strdup(const char *text);
void wg__free(void *block); /* NULL is allowed */

/* For tests: after n successful allocations, every further one fails with WG_ERROR_MEMORY, until
 * the hook is reset by a negative n. Counts cached and fresh blocks alike. */
void wg__alloc_fail_after(int64_t n);

/* Under AddressSanitizer, cached blocks and the padding behind a block are poisoned. */
#if defined(__SANITIZE_ADDRESS__)
#define WG__POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WG__POISONS 1
#endif
#endif

#ifdef WG__POISONS
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define __lsan_register_root_region(address, size) ((void)(address), (void)(size))
#endif

/* ---- Atomic reference counts, which begin at 1 ---- */

/* The caller must hold a reference, directly or through its owner. */
static inline void wg__refcount_add(atomic_int *refcount) {
    atomic_fetch_add_explicit(refcount, 1, memory_order_relaxed);
}

static inline bool wg__refcount_is_one(atomic_int *refcount) {
    return atomic_load_explicit(refcount, memory_order_acquire) == 1;
}

/* Drops a reference; true if it was the last one, and the object must be freed. The holder of the
 * only reference, the common case, skips the atomic subtraction: no other thread can reach the
 * object. */
static inline bool wg__refcount_drop(atomic_int *refcount) {
    return wg__refcount_is_one(refcount) ||
           atomic_fetch_sub_explicit(refcount, 1, memory_order_acq_rel) == 1;
}

/* ---- Counters that change with every op. They are per thread, so that counting takes no lock;
 * readers sum them. ---- */

typedef enum wg__counter {
    WG__COUNT_TENSORS,      /* live handles */
    WG__COUNT_BLOCKS,       /* live blocks of memory */
    WG__COUNT_CACHED_BYTES, /* in the threads' own lists of free blocks */
    WG__COUNTERS
} wg__counter;

/* A thread's counters. A counter is negative if the thread freed more than it made. */
typedef struct wg__thread_counters {
    atomic_int_fast64_t counts[WG__COUNTERS]; /* written by this thread alone */
    struct wg__thread_counters *next;         /* in the list of all threads */
    bool is_listed;
} wg__thread_counters;

extern WG__THREAD_LOCAL wg__thread_counters wg__own_counters;

/* This thread's counter. */
static inline int64_t wg__counter_own(wg__counter counter) {
    return atomic_load_explicit(&wg__own_counters.counts[counter], memory_order_relaxed);
}

static inline void wg__counter_add(wg__counter counter, int64_t more) {
    atomic_store_explicit(&wg__own_counters.counts[counter], wg__counter_own(counter) + more,
                          memory_order_relaxed);
}

/* The sum over all threads, ended ones included. */
int64_t wg__counter_sum(wg__counter counter);

/* ---- Parallel loops on the library's thread pool (threads.c). The chunks of a loop do not depend
 * on the number of threads, so reductions over chunks give the same bits at any thread count.
 * ---- */

/* The elements in a chunk of an elementwise loop. */
#define WG__GRAIN 16384

/* Runs body on [0, count) in chunks of `grain`, in parallel if there are several chunks. A loop
 * inside a body runs on the calling thread alone. Several threads may call this at the same time.
 * body must not record errors or make tensors. */
typedef void (*wg__range_body)(int64_t begin, int64_t end, void *context);
void wg__parallel_for(int64_t count, int64_t grain, wg__range_body body, void *context);

/* How many threads a GEMM of that many multiply-adds should use; 1 inside a parallel loop. */
int wg__gemm_threads(double multiply_adds);

/* ---- Time, texts, arithmetic ---- */

/* Seconds of a monotonic clock. */
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

static inline int64_t wg__smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t wg__larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* a / b, rounded up, for a >= 0 and b > 0. */
static inline int64_t wg__ceil_divide(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static inline float wg__bf16_to_f32(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To nearest, ties to even; a NaN stays one. */
static inline uint16_t wg__f32_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* By way of f32, as wg_cast. */
static inline uint16_t wg__f64_to_bf16(double value) {
    return wg__f32_to_bf16((float)value);
}

/* The FNV-1a hash of bytes. `hash` is WG__HASH_BEGIN, or the hash of the bytes before. */
#define WG__HASH_BEGIN UINT64_C(0xcbf29ce484222325)
static inline uint64_t wg__hash(uint64_t hash, const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++)
        /* The analyzer takes each but the first byte of a known integer for unset.
         * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* ---- The allocator: internal functions beside base/alloc.h ---- */

/* Sets peak_bytes to live_bytes. */
WG__COMMAND void wg__alloc_reset_peak(void);

/* Bytes that this process can still get: available memory, free swap and free blocks of the cache,
 * within the limits of the process (ulimit -v) and of its control group. INT64_MAX: unknown. */
WG__COMMAND int64_t wg__memory_available(void);

/* Returns cached blocks to the system, except for up to 256 KiB of small blocks in the list of each
 * other running thread. */
WG__COMMAND void wg__alloc_trim(void);

/* ---- The version ---- */

/* The commit of the library's sources by `git describe' at configure time; "unknown" outside of a
 * clone. Never NULL. */
const char *wg__commit(void);

/* ---- Places of errors: see base/error.h ---- */

/* Push a place onto this thread's stack of places, and pop it. The caller keeps the place at its
 * address until then. */
void wg__error_enter(wg_error_place *place);
void wg__error_leave(const wg_error_place *place);

/* ---- Groups of processes: internal functions beside base/group.h ---- */

WG__COMMAND const char *wg__group_name(const wg_group *group);

/* How many threads this rank should use: its share of the cores that it may run on, at least 1. 0,
 * the library's default, if OMP_NUM_THREADS is set or the group has one rank. */
WG__COMMAND int wg__group_threads(const wg_group *group);

/* For how many seconds a call waits for all ranks before it ends the run; 600 at first. Not above
 * 0: without limit. */
WG__COMMAND void wg__group_set_timeout(wg_group *group, double seconds);

/* Replaces each element by its maximum over all ranks. */
WG__COMMAND int wg__group_max(wg_group *group, wg_group_element element, int64_t count, void *data);

/* Replaces item i of `data`, `size` bytes each, by the item of rank owners[i]. A rank without
 * memory for that ends the run. */
int wg__group_collect(wg_group *group, int64_t count, size_t size, const int *owners, void *data);

/* Replaces text i by the text of rank owners[i]. The texts of other ranks are NULL before; the
 * caller frees them with wg_text_free. */
WG__COMMAND int wg__group_collect_texts(wg_group *group, int64_t count, const int *owners,
                                        char **texts);

/* Checks that all ranks have the same line of text, a version or a fingerprint; the first 255 bytes
 * count. `what` names the text in the message: "--lr", "the corpus". -1 with [STATE: names the
 * lowest rank that differs from rank 0, and both texts] */
WG__COMMAND int wg__group_agree(wg_group *group, const char *what, const char *text);

#endif
