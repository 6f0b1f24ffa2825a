/* The list of the threads that count. */
#include "base/counters.h"

#include <pthread.h>
#include <stddef.h>

WG__THREAD_LOCAL wg__tally wg__own_tally;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wg__tally *all;
static int64_t of_threads_gone[WG__TALLY_COUNT];

void wg__tally_begin(void) {
    pthread_mutex_lock(&lock);
    wg__own_tally.next = all;
    wg__own_tally.is_listed = true;
    all = &wg__own_tally;
    pthread_mutex_unlock(&lock);
}

void wg__tally_end(void) {
    wg__tally *tally = &wg__own_tally;
    pthread_mutex_lock(&lock);
    wg__tally **place = &all;
    while (*place != tally)
        place = &(*place)->next;
    *place = tally->next;
    for (int i = 0; i < WG__TALLY_COUNT; i++) {
        of_threads_gone[i] += tally->counts[i];
        tally->counts[i] = 0;
    }
    tally->is_listed = false;
    pthread_mutex_unlock(&lock);
}

int64_t wg__tally_sum(wg__tally_kind kind) {
    pthread_mutex_lock(&lock);
    int64_t sum = of_threads_gone[kind];
    for (const wg__tally *tally = all; tally; tally = tally->next)
        sum += atomic_load_explicit(&tally->counts[kind], memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return sum;
}
