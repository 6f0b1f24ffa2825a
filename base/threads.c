/* The threads of the library: see threads.h. */
#include "base/threads.h"

#include <omp.h>
#include <stdint.h>
#include <string.h>

#include "base/counts.h"

static atomic_int thread_count; /* 0: not yet set */

int wg_threads(void) {
    int threads = atomic_load(&thread_count);
    return threads > 0 ? threads : omp_get_max_threads();
}

int wg_set_threads(int threads) {
    if (threads < 1)
        return wg_fail(WG_ERROR_ARGUMENT, "set_threads", "%d threads; there is at least 1",
                       threads);
    atomic_store(&thread_count, threads);
    return 0;
}

/* ---- Chunks to threads ----
 *
 *     thread 0            thread 1
 *     0 1 2 3 . . . .     8 9 . . . . . .       each begins with a run of its own
 *         ^ next              ^ next      ^ end
 *
 * so that neighbours in memory are read one after the other. Who has done its own takes over the
 * latter half of what another has left: threads are seldom equally quick, when they share memory
 * least of all, and chunks at the run's end are those that its owner does not yet read ahead. */

enum { MOST_THREADS = 256, CACHE_LINE = 64 };

/* The chunks of a run that nobody has begun, in one word, for two may take from it at once. */
typedef struct run {
    _Alignas(CACHE_LINE) _Atomic uint64_t left; /* the first, and in the upper half the end */
} run;

typedef struct chunks {
    wg__range_body body;
    void *context;
    int64_t count, grain; /* elements, in all and of a chunk */
    int64_t step;         /* chunks that are taken together: their numbers fill half a word */
} chunks;

static uint64_t first_of(uint64_t left) {
    return (uint32_t)left;
}

static uint64_t end_of(uint64_t left) {
    return left >> 32;
}

static uint64_t from_to(uint64_t first, uint64_t end) {
    return first | end << 32;
}

/* The owner's: the next of its run, or false. */
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

static bool take_half(run *other, run *own) {
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

static bool help(run *runs, int count, int me) {
    for (int i = 1; i < count; i++)
        if (take_half(&runs[(me + i) % count], &runs[me]))
            return true;
    return false;
}

static void run_chunks(const chunks *c, int64_t first, int64_t end) {
    for (int64_t begin = first * c->grain; first < end && begin < c->count; begin += c->grain) {
        c->body(begin, wg__smaller(begin + c->grain, c->count), c->context);
        first++;
    }
}

static void finish(run *runs, int count, int me, const chunks *c) {
    uint64_t next;
    do {
        while (take_next(&runs[me], &next))
            run_chunks(c, (int64_t)next * c->step, (int64_t)(next + 1) * c->step);
    } while (help(runs, count, me));
}

void wg__parallel_for(int64_t count, int64_t grain, wg__range_body body, void *context) {
    const int64_t chunk_count = wg__ceil_divide(count, grain);
    const int threads = (int)wg__smaller(wg__smaller(chunk_count, wg_threads()), MOST_THREADS);
    const chunks all = {body, context, count, grain, 1 + chunk_count / UINT32_MAX};
    if (threads <= 1 || omp_in_parallel()) {
        run_chunks(&all, 0, chunk_count);
        return;
    }
    const int64_t takes = wg__ceil_divide(chunk_count, all.step);
    run runs[MOST_THREADS];
    for (int i = 0; i < threads; i++)
        atomic_init(&runs[i].left, from_to((uint64_t)(takes * i / threads),
                                           (uint64_t)(takes * (i + 1) / threads)));
#pragma omp parallel num_threads(threads)
    finish(runs, threads, omp_get_thread_num(), &all);
}

int wg__gemm_threads(double multiply_adds) {
    /* Below about 64^3 the threads' meeting costs more than they save. */
    return multiply_adds < 262144 || omp_in_parallel() ? 1 : wg_threads();
}
