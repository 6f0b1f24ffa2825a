/* Chunks of a range and the threads that run them. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tensor/internal.h"
#include "tests/support/testing.h"

enum { MOST = 1000 };

typedef struct seen {
    int64_t grain;
    atomic_int times[MOST];
    atomic_int chunks;
} seen;

static void see(int64_t begin, int64_t end, void *context) {
    seen *s = context;
    atomic_fetch_add(&s->chunks, begin % s->grain != 0 || end - begin > s->grain ? MOST : 1);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&s->times[i], 1);
}

static void assert_each_once(int threads, int64_t count, int64_t grain) {
    static seen s;
    memset(&s, 0, sizeof s);
    s.grain = grain;
    ck_assert_int_eq(wg_set_threads(threads), 0);
    wg__parallel_for(count, grain, see, &s);
    ck_assert_int_eq(atomic_load(&s.chunks), (count + grain - 1) / grain);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(atomic_load(&s.times[i]) == 1, "%d threads, %lld by %lld: %lld %d times",
                      threads, (long long)count, (long long)grain, (long long)i,
                      atomic_load(&s.times[i]));
}

TEST(every_chunk_is_run_once) {
    static const int64_t counts[] = {0, 1, 2, 7, 64, MOST}, grains[] = {1, 3, 64, 2000};
    for (int threads = 1; threads <= 5; threads++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t g = 0; g < sizeof grains / sizeof *grains; g++)
                assert_each_once(threads, counts[c], grains[g]);
}

TEST(hundreds_of_threads_run_every_chunk_once) {
    assert_each_once(300, MOST, 1);
}

/* The first chunk is long: it waits for all others, some of which its own thread would have run. */
static void wait_or_count(int64_t begin, int64_t end, void *context) {
    atomic_int *others = context;
    (void)end;
    if (begin > 0)
        atomic_fetch_add(others, 1);
    while (begin == 0 && atomic_load(others) < MOST - 1)
        sched_yield();
}

TEST(a_thread_that_has_done_its_own_helps_the_others) {
    atomic_int others = 0;
    ck_assert_int_eq(wg_set_threads(2), 0);
    wg__parallel_for(MOST, 1, wait_or_count, &others);
    ck_assert_int_eq(atomic_load(&others), MOST - 1);
}

static void allocate_in_chunks(int64_t begin, int64_t end, void *context) {
    (void)begin, (void)end, (void)context;
    wg__free(wg__alloc(1 << 12)); /* from the lists that all threads share */
}

/* The child has no threads but its own, and makes others. They may get the memory of those that the
 * parent has, and with it that of their counters. */
TEST(a_child_of_fork_makes_its_own_threads) {
    assert_each_once(4, MOST, 3);
    wg__parallel_for(MOST, 1, allocate_in_chunks, NULL);
    const int64_t blocks = wg__counter_sum(WG__COUNT_BLOCKS);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(30);
        assert_each_once(4, MOST, 3);
        wg__parallel_for(MOST, 1, allocate_in_chunks, NULL);
        wg__free(wg__alloc(1 << 20));
        _exit(wg__counter_sum(WG__COUNT_BLOCKS) != blocks);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "the child ended with status %d", status);
    assert_each_once(4, MOST, 3); /* the parent keeps its threads */
    ck_assert_int_eq(wg_threads(), 4);
}

enum { CALLERS = 6, LOOPS = 300, CHUNKS = 16 };

static void count_chunk(int64_t begin, int64_t end, void *context) {
    atomic_int *chunks = context;
    (void)end;
    atomic_fetch_add(&chunks[begin], 1);
}

static void *run_loops(void *failed) {
    for (int i = 0; i < LOOPS; i++) {
        atomic_int chunks[CHUNKS] = {0};
        wg__parallel_for(CHUNKS, 1, count_chunk, chunks);
        for (int c = 0; c < CHUNKS; c++)
            atomic_fetch_add((atomic_int *)failed, atomic_load(&chunks[c]) != 1);
    }
    return NULL;
}

TEST(several_threads_run_loops_at_the_same_time) {
    pthread_t callers[CALLERS];
    atomic_int failed = 0;
    ck_assert_int_eq(wg_set_threads(3), 0);
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(pthread_create(&callers[i], NULL, run_loops, &failed), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    ck_assert_int_eq(atomic_load(&failed), 0);
}

/* The chunks but the first take two milliseconds, in which the caller sleeps. */
static void take_long(int64_t begin, int64_t end, void *context) {
    const double until = wg__now() + 2e-3;
    (void)end, (void)context;
    while (begin > 0 && wg__now() < until)
        ;
}

static void *run_long_loops(void *context) {
    for (;;) {
        wg__parallel_for(3, 1, take_long, context);
        pthread_testcancel();
    }
    return NULL;
}

TEST(a_thread_that_is_cancelled_leaves_its_loop_first) {
    atomic_int failed = 0;
    ck_assert_int_eq(wg_set_threads(3), 0);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, run_long_loops, NULL), 0);
        usleep(5000);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        run_loops(&failed);
    }
    ck_assert_int_eq(atomic_load(&failed), 0);
}
