/* The profile (profile.h): adding spans (span.h) to its rows and events. */
#include "tensor/profile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/internal.h"
#include "tensor/span.h"

enum { MAX_ROWS = 1024, MAX_EVENTS = 1000000 };

atomic_bool wg__profiles;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wg_profile_row *rows; /* room for MAX_ROWS, so that taking a profile asks for no memory */
static int row_count;
static wg_profile_event *events; /* NULL: not wanted */
static int64_t event_count, events_lost;
static double begun, ended;

static atomic_int threads_seen;
static _Thread_local int thread_number; /* 0: not seen yet */
static _Thread_local int depth;

double wg__counted_product_flops(void) {
    return wg__product_flops;
}

void wg__span_open(wg__span *span, const char *name, wg_profile_kind kind) {
    span->name = name;
    span->kind = kind;
    span->flops = wg__product_flops;
    depth++;
    span->start = wg__now();
}

void wg__span_close(wg__span *span, double bytes, int operand_count, const wg_spec *operands) {
    const double seconds = wg__now() - span->start, flops = wg__product_flops - span->flops;
    depth--;
    pthread_mutex_lock(&lock);
    if (rows && depth == 0) {
        int i = 0; /* ops with the same name share a row; beyond MAX_ROWS they are dropped */
        while (i < row_count &&
               (rows[i].kind != span->kind || strcmp(rows[i].name, span->name) != 0))
            i++;
        if (i == row_count && row_count < MAX_ROWS)
            rows[row_count++] = (wg_profile_row){.name = span->name, .kind = span->kind};
        if (i < row_count) {
            rows[i].calls++;
            rows[i].seconds += seconds;
            rows[i].flops += flops;
            rows[i].bytes += bytes;
        }
    }
    if (events && event_count == MAX_EVENTS) {
        events_lost++;
    } else if (events) {
        if (thread_number == 0)
            thread_number = atomic_fetch_add(&threads_seen, 1) + 1;
        wg_profile_event *event = &events[event_count++];
        *event = (wg_profile_event){.name = span->name,
                                    .kind = span->kind,
                                    .thread = thread_number,
                                    .start = span->start - begun,
                                    .seconds = seconds,
                                    .flops = flops};
        wg__operands_text(event->shapes, sizeof event->shapes, operand_count, operands);
    }
    pthread_mutex_unlock(&lock);
}

double wg__bytes_of(int count, wg_tensor *const *tensors) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        const wg_tensor *x = tensors[i];
        double bytes = x ? (double)wg_dtype_size(x->spec.dtype) : 0;
        for (int axis = 0; x && axis < x->spec.ndim; axis++)
            if (x->strides[axis] != 0)
                bytes *= (double)x->spec.shape[axis];
        sum += bytes;
    }
    return sum;
}

int wg_profile_begin(bool wants_events) {
    wg__profile_free();
    wg_profile_row *new_rows = wg__alloc_array(MAX_ROWS, sizeof *rows);
    wg_profile_event *new_events =
        wants_events ? wg__alloc_array(MAX_EVENTS, sizeof *events) : NULL;
    if (!new_rows || (wants_events && !new_events)) {
        wg__free(new_rows);
        wg__free(new_events);
        return -1;
    }
    pthread_mutex_lock(&lock);
    rows = new_rows;
    events = new_events;
    begun = ended = wg__now();
    pthread_mutex_unlock(&lock);
    atomic_store(&wg__profiles, true);
    return 0;
}

static int by_seconds(const void *a, const void *b) {
    const double x = ((const wg_profile_row *)a)->seconds, y = ((const wg_profile_row *)b)->seconds;
    return (x < y) - (x > y);
}

void wg_profile_end(void) {
    atomic_store(&wg__profiles, false);
    pthread_mutex_lock(&lock);
    ended = wg__now();
    if (rows)
        qsort(rows, (size_t)row_count, sizeof *rows, by_seconds);
    pthread_mutex_unlock(&lock);
}

void wg__profile_free(void) {
    atomic_store(&wg__profiles, false);
    pthread_mutex_lock(&lock);
    wg__free(rows);
    wg__free(events);
    rows = NULL;
    events = NULL;
    row_count = 0;
    event_count = events_lost = 0;
    pthread_mutex_unlock(&lock);
}

const char *wg__profile_kind_name(wg_profile_kind kind) {
    return kind == WG_PROFILE_FORWARD    ? "forward"
           : kind == WG_PROFILE_BACKWARD ? "backward"
                                         : "region";
}

const wg_profile_row *wg__profile_rows(int *count, double *seconds) {
    *count = row_count;
    if (seconds)
        *seconds = ended - begun;
    return rows;
}

const wg_profile_event *wg__profile_events(int64_t *count, int64_t *lost) {
    *count = event_count;
    if (lost)
        *lost = events_lost;
    return events;
}
