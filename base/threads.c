/* The threads of the library: see threads.h. */
#include "base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"

static atomic_int thread_count; /* 0: not yet set */
static atomic_int thread_limit; /* as many as the system gave; 0: no limit is known */

/* ---- fork ----
 *
 * The child of fork() has one thread. GNU's OpenMP still counts on the others that the parent had
 * made, and its next parallel region would wait for them for ever; so a child of a process that
 * has run one computes by its one thread, which gives the same bits. */

static atomic_bool is_child; /* of a process that had run a parallel region */

static void note_child(void) {
    atomic_store(&is_child, true);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, note_child);
}

static void begin_region(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

int wg_threads(void) {
    if (atomic_load_explicit(&is_child, memory_order_relaxed))
        return 1;
    const int wanted = atomic_load(&thread_count), limit = atomic_load(&thread_limit);
    const int threads = wanted > 0 ? wanted : omp_get_max_threads();
    return limit > 0 && limit < threads ? limit : threads;
}

int wg_set_threads(int threads) {
    if (threads < 1)
        return wg_fail(WG_ERROR_ARGUMENT, "set_threads", "%d threads; wanted at least 1", threads);
    atomic_store(&thread_count, threads);
    return 0;
}

/* ---- Memory for threads ----
 *
 * GNU's OpenMP ends the program where it can make no thread or has no memory for a team of them. So
 * the threads of the first region, and the memory of each, are tried before: with fewer threads
 * than wanted a loop takes longer, and has the same bits. */

enum { MOST_THREADS = 256, TEAM_BYTES = 4096, MEMBER_BYTES = 512 };

/* Ends when the gate is opened. */
static void *pass_gate(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* How many of `count` further threads there can be at once. */
static int try_threads(int count) {
    pthread_t threads[2 * MOST_THREADS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int made = 0;
    pthread_mutex_lock(&gate);
    while (made < count && pthread_create(&threads[made], NULL, pass_gate, &gate) == 0)
        made++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    return made;
}

/* How many threads the region of a loop that has work for `wanted` gets. A region that is smaller
 * than the one before would end threads, and the next larger one make them again; so it has as many
 * as the largest before it, some with nothing to do. */
static int region_threads(int wanted) {
    static _Thread_local int kept = 1;
    const int most = wg_threads();
    if (wanted < kept)
        wanted = (int)wg__smaller(kept, most);
    if (wanted > kept) {
        /* Half as many again, as OpenMP and the work take memory for themselves. */
        const int more = wanted - kept, tried = more + more / 2 + 1, made = try_threads(tried);
        if (made < tried) {
            wanted = kept + made / 2;
            atomic_store(&thread_limit, wanted);
        }
    }
    void *team = wanted > 1 ? malloc(TEAM_BYTES + (size_t)wanted * MEMBER_BYTES) : NULL;
    free(team);
    if (!team)
        return 1;
    kept = wanted;
    return wanted;
}

/* ---- A parallel loop, by work stealing ----
 *
 *     thread 0            thread 1
 *     0 1 2 3 . . . .     8 9 . . . . . .       chunks; each thread begins with a run of its own
 *         ^ next              ^ next      ^ end
 *
 * So a thread reads neighbouring chunks one after the other. A thread that has finished its run
 * steals the second half of the chunks left in another's: threads are seldom equally fast, least of
 * all when they share memory bandwidth, and the owner does not yet prefetch the end of its run. */

enum { CACHE_LINE = 64 };

/* The chunks of a run that no thread has begun, in one word so that they change atomically. */
typedef struct run {
    _Alignas(CACHE_LINE) _Atomic uint64_t left; /* low half: the first chunk; high half: the end */
} run;

static uint64_t first_of(uint64_t left) {
    return (uint32_t)left;
}

static uint64_t end_of(uint64_t left) {
    return left >> 32;
}

static uint64_t from_to(uint64_t first, uint64_t end) {
    return first | end << 32;
}

/* Takes the next chunk of the thread's own run; false if none is left. */
static bool take_next(run *own, uint64_t *next) {
    uint64_t left = atomic_load_explicit(&own->left, memory_order_relaxed);
    do {
        *next = first_of(left);
        if (*next >= end_of(left))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&own->left, &left, left + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Moves the second half of the chunks of `other` into `own`, which is empty. */
static bool steal_half(run *other, run *own) {
    uint64_t left = atomic_load_explicit(&other->left, memory_order_relaxed), middle;
    do {
        if (first_of(left) >= end_of(left))
            return false;
        middle = (first_of(left) + end_of(left)) / 2;
    } while (!atomic_compare_exchange_weak_explicit(&other->left, &left,
                                                    from_to(first_of(left), middle),
                                                    memory_order_relaxed, memory_order_relaxed));
    atomic_store_explicit(&own->left, from_to(middle, end_of(left)), memory_order_relaxed);
    return true;
}

static bool steal(run *runs, int count, int me) {
    for (int i = 1; i < count; i++)
        if (steal_half(&runs[(me + i) % count], &runs[me]))
            return true;
    return false;
}

void wg__parallel_for(int64_t count, int64_t grain, wg__range_body body, void *context) {
    const int64_t chunks = wg__ceil_divide(count, grain);
    int threads = (int)wg__smaller(wg__smaller(chunks, wg_threads()), MOST_THREADS);
    if (threads > 1 && !omp_in_parallel())
        threads = region_threads(threads);
    if (threads <= 1 || omp_in_parallel()) {
        for (int64_t begin = 0; begin < count; begin += grain)
            body(begin, wg__smaller(begin + grain, count), context);
        return;
    }
    /* Threads take `step` chunks at a time, so that their numbers fit in 32 bits. */
    const int64_t step = 1 + chunks / UINT32_MAX, takes = wg__ceil_divide(chunks, step);
    run runs[MOST_THREADS];
    begin_region();
    for (int i = 0; i < threads; i++)
        atomic_init(&runs[i].left, from_to((uint64_t)(takes * i / threads),
                                           (uint64_t)(takes * (i + 1) / threads)));
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num();
        uint64_t next;
        do
            while (take_next(&runs[me], &next)) {
                const int64_t end = wg__smaller((int64_t)(next + 1) * step * grain, count);
                for (int64_t begin = (int64_t)next * step * grain; begin < end; begin += grain)
                    body(begin, wg__smaller(begin + grain, count), context);
            }
        while (steal(runs, threads, me));
    }
}

/* ---- Calls of other libraries ---- */

typedef struct calls {
    wg__range_body body;
    void *context;
} calls;

/* BLIS asks for a number of threads, of which it gets 1 where no region may be active. OpenBLAS
 * with OpenMP, which may be the LAPACK of a machine, asks how many there are. */
static void call_on_one_thread(int64_t begin, int64_t end, void *context) {
    const calls *calls = context;
    const int levels = omp_get_max_active_levels(), threads = omp_get_max_threads();
    omp_set_max_active_levels(0);
    omp_set_num_threads(1);
    calls->body(begin, end, calls->context);
    omp_set_num_threads(threads);
    omp_set_max_active_levels(levels);
}

void wg__parallel_calls(int64_t count, wg__range_body body, void *context) {
    wg__parallel_for(count, 1, call_on_one_thread, &(calls){body, context});
}

int wg__gemm_threads(double multiply_adds) {
    /* Below about 64^3, synchronising costs more than the threads save. */
    return multiply_adds < 262144 || omp_in_parallel() ? 1 : wg_threads();
}
