/* The threads of the library: see internal.h.
 *
 *     caller     run 0    0 1 2 3 . . . .       Each thread has a run of neighbouring chunks,
 *                              ^ first   ^ end    which it takes from the front. When its run is
 *     worker 1   run 1    8 9 . . . . . .         empty, it takes chunks from the back of another
 *                            ^ first     ^ end    thread's run.
 *
 * The caller computes, too. A loop ends when all its chunks are done: a worker that the system has
 * not yet scheduled holds no chunk, and nothing waits for it. So another program on the machine
 * delays a loop by a chunk at most. A thread without work spins for SPIN seconds, then sleeps.
 *
 * The array of loops is never freed, and its elements are reused. A late worker may therefore look
 * at a loop that has ended, or at the next loop in the same element. In the first case the worker
 * finds empty runs. In the second case it helps the next loop: a worker reads body and context only
 * after it has taken a chunk, and a loop with a chunk that is not done has not ended. */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/internal.h"
#include "base/system.h"

enum { MOST_THREADS = 256, MOST_LOOPS = 4, CACHE_LINE = 64, PAUSES = 32 };
static const size_t stack_bytes = 2 << 20;
static const double SPIN = 20e-6;

/* The chunks of a run that no thread has taken: the first in the low half of the word, their end in
 * the high half, so that both change at once. */
typedef struct run {
    _Alignas(CACHE_LINE) _Atomic uint64_t left;
} run;

typedef struct loop {
    atomic_bool is_used;
    wg__range_body body;
    void *context;
    int64_t count, grain;
    int64_t step;                   /* chunks that are taken at a time */
    atomic_int threads;             /* the caller and workers 1 to threads - 1 take part */
    atomic_int_fast64_t unfinished; /* takes of `step` chunks */
    atomic_bool caller_sleeps;
    run runs[MOST_THREADS];
} loop;

static loop loops[MOST_LOOPS];
static atomic_int wanted_threads; /* by wg_set_threads; 0: not set */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loop_ended = PTHREAD_COND_INITIALIZER;
static atomic_int workers;     /* threads that were made; changes with the mutex held */
static atomic_bool is_refused; /* the system has refused a thread */
static atomic_uint begun;      /* loops; wraps around */

/* Each worker has its condition, so that a loop wakes only the workers that take part. */
static struct {
    _Alignas(CACHE_LINE) atomic_bool is_asleep;
    pthread_cond_t wake;
} sleepers[MOST_THREADS];

static WG__THREAD_LOCAL bool is_in_loop;

int wg_threads(void) {
    static atomic_int known;
    int threads = atomic_load_explicit(&wanted_threads, memory_order_relaxed);
    if (threads == 0)
        threads = atomic_load_explicit(&known, memory_order_relaxed);
    if (threads == 0) {
        const char *variable = getenv("OMP_NUM_THREADS");
        char *end = "x";
        const long number = variable ? strtol(variable, &end, 10) : 0;
        const bool is_number = *end == '\0' || *end == ','; /* OpenMP takes a list, for levels */
        threads =
            is_number && number > 0 ? (int)wg__smaller(number, MOST_THREADS) : wg__processors();
        atomic_store_explicit(&known, threads, memory_order_relaxed);
    }
    const int made = 1 + atomic_load_explicit(&workers, memory_order_relaxed);
    return made < threads && atomic_load_explicit(&is_refused, memory_order_relaxed) ? made
                                                                                     : threads;
}

int wg_set_threads(int threads) {
    if (threads < 1)
        return wg_fail(WG_ERROR_ARGUMENT, "set_threads", "%d threads; wanted at least 1", threads);
    atomic_store(&wanted_threads, threads);
    return 0;
}

int wg__gemm_threads(double multiply_adds) {
    /* Below about 64^3, synchronising costs more than the threads save. */
    return multiply_adds < 262144 || is_in_loop ? 1 : wg_threads();
}

static void pause_processor(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spins while a condition holds, for SPIN seconds at most. */
#define SPIN_WHILE(condition)                                                                      \
    do {                                                                                           \
        const double until = wg__now() + SPIN;                                                     \
        while ((condition) && wg__now() < until)                                                   \
            for (int i = 0; i < PAUSES && (condition); i++)                                        \
                pause_processor();                                                                 \
    } while (0)

/* Takes the first chunk of a run, or the last one; false if the run is empty. */
static bool claim_chunk(run *run, bool last, uint64_t *chunk) {
    uint64_t left = atomic_load_explicit(&run->left, memory_order_relaxed), rest;
    do {
        const uint64_t first = (uint32_t)left, end = left >> 32;
        if (first >= end)
            return false;
        *chunk = last ? end - 1 : first;
        rest = last ? first | (end - 1) << 32 : (first + 1) | end << 32;
    } while (!atomic_compare_exchange_weak_explicit(&run->left, &left, rest, memory_order_acquire,
                                                    memory_order_relaxed));
    return true;
}

/* Computes chunks of a loop until none is left to take. */
static void run_chunks(loop *l, int me) {
    const int threads = atomic_load_explicit(&l->threads, memory_order_acquire);
    for (int i = 0; i < threads && me < threads;) {
        uint64_t chunk;
        if (!claim_chunk(&l->runs[(me + i) % threads], i > 0, &chunk)) {
            i++;
            continue;
        }
        const int64_t stop = wg__smaller((int64_t)(chunk + 1) * l->step * l->grain, l->count);
        for (int64_t begin = (int64_t)chunk * l->step * l->grain; begin < stop; begin += l->grain)
            l->body(begin, wg__smaller(begin + l->grain, l->count), l->context);
        if (atomic_fetch_sub(&l->unfinished, 1) == 1 && atomic_load(&l->caller_sleeps)) {
            pthread_mutex_lock(&mutex);
            pthread_cond_broadcast(&loop_ended);
            pthread_mutex_unlock(&mutex);
        }
    }
}

static void *work(void *number) {
    const int me = (int)(intptr_t)number;
    is_in_loop = true;
    for (;;) {
        const unsigned seen = atomic_load(&begun);
        for (int i = 0; i < MOST_LOOPS; i++)
            run_chunks(&loops[i], me);
        SPIN_WHILE(atomic_load_explicit(&begun, memory_order_relaxed) == seen);
        if (atomic_load(&begun) != seen)
            continue;
        pthread_mutex_lock(&mutex);
        atomic_store(&sleepers[me].is_asleep, true);
        while (atomic_load(&begun) == seen)
            pthread_cond_wait(&sleepers[me].wake, &mutex);
        atomic_store(&sleepers[me].is_asleep, false);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

/* The child of fork() has the calling thread alone, and makes new workers. */
static void begin_again(void) {
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&loop_ended, NULL);
    atomic_store(&workers, 0);
    for (int i = 0; i < MOST_THREADS; i++)
        atomic_store(&sleepers[i].is_asleep, false);
    for (int i = 0; i < MOST_LOOPS; i++) {
        for (int r = 0; r < MOST_THREADS; r++)
            atomic_store(&loops[i].runs[r].left, 0);
        atomic_store(&loops[i].is_used, false);
    }
}

/* Makes workers up to `count`, which get no signals. Where the system refuses one, loops have fewer
 * threads, and the same bits. */
static void make_workers(int count) {
    static bool watches_forks;
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_mutex_lock(&mutex);
    if (!watches_forks)
        pthread_atfork(NULL, NULL, begin_again);
    watches_forks = true;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_made = pthread_attr_init(&attributes) == 0;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    while (is_made && atomic_load(&workers) < count) {
        const int number = atomic_load(&workers) + 1;
        pthread_t thread;
        pthread_cond_init(&sleepers[number].wake, NULL);
        is_made = pthread_create(&thread, &attributes, work, (void *)(intptr_t)number) == 0;
        atomic_fetch_add(&workers, is_made);
    }
    if (!is_made)
        atomic_store(&is_refused, true);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_unlock(&mutex);
}

void wg__parallel_for(int64_t count, int64_t grain, wg__range_body body, void *context) {
    const int64_t chunks = wg__ceil_divide(count, grain);
    int threads = (int)wg__smaller(wg__smaller(chunks, wg_threads()), MOST_THREADS);
    if (threads > 1 && !is_in_loop && atomic_load(&workers) < threads - 1) {
        make_workers(threads - 1);
        threads = (int)wg__smaller(threads, 1 + atomic_load(&workers));
    }
    loop *l = NULL;
    for (int i = 0; i < MOST_LOOPS && threads > 1 && !is_in_loop && !l; i++)
        l = atomic_exchange(&loops[i].is_used, true) ? NULL : &loops[i];
    if (!l) {
        for (int64_t begin = 0; begin < count; begin += grain)
            body(begin, wg__smaller(begin + grain, count), context);
        return;
    }
    int cancel_state; /* a thread that is cancelled in a loop would leave the mutex locked */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    l->body = body;
    l->context = context;
    l->count = count;
    l->grain = grain;
    l->step = 1 + chunks / UINT32_MAX;
    is_in_loop = true;
    const int64_t takes = wg__ceil_divide(chunks, l->step);
    atomic_store(&l->unfinished, takes);
    atomic_store(&l->threads, threads);
    for (int i = 0; i < threads; i++) {
        const int64_t first = takes * i / threads, end = takes * (i + 1) / threads;
        atomic_store_explicit(&l->runs[i].left, (uint64_t)first | (uint64_t)end << 32,
                              memory_order_release);
    }
    atomic_fetch_add(&begun, 1);
    for (int i = 1; i < threads; i++)
        if (atomic_load(&sleepers[i].is_asleep)) {
            pthread_mutex_lock(&mutex);
            pthread_cond_signal(&sleepers[i].wake);
            pthread_mutex_unlock(&mutex);
        }
    run_chunks(l, 0);
    SPIN_WHILE(atomic_load(&l->unfinished) > 0);
    if (atomic_load(&l->unfinished) > 0) {
        pthread_mutex_lock(&mutex);
        atomic_store(&l->caller_sleeps, true);
        while (atomic_load(&l->unfinished) > 0)
            pthread_cond_wait(&loop_ended, &mutex);
        atomic_store(&l->caller_sleeps, false);
        pthread_mutex_unlock(&mutex);
    }
    is_in_loop = false;
    atomic_store(&l->is_used, false);
    pthread_setcancelstate(cancel_state, NULL);
}
