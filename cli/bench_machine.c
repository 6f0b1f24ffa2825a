/* The roofs of the machine: what memory and the multipliers give at best. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "tensor/easy.h"
#include "tensor/ops.h"

/* Of the copy; of products up to so many, and so few where they take longer than a while. */
enum { REPEATS = 7, MOST_PRODUCTS = 15, LEAST_PRODUCTS = 3 };
#define WHILE 0.25 /* seconds */

#define COPIED ((size_t)128 << 20) /* bytes: no cache holds them */

/* ---- Bandwidth: each thread copies its share; memcpy of so much writes past the caches. ---- */

typedef struct share {
    char *to;
    const char *from;
    size_t bytes;
} share;

static void *copy_share(void *argument) {
    const share *own = argument;
    memcpy(own->to, own->from, own->bytes);
    return NULL;
}

/* Threads that cannot be started leave their share to this one. */
static void copy(char *to, const char *from, int threads, share *shares, pthread_t *ids) {
    const size_t bytes = COPIED / (size_t)threads;
    int started = 0;
    for (int i = 0; i < threads; i++)
        shares[i] = (share){to + (size_t)i * bytes, from + (size_t)i * bytes, bytes};
    while (started < threads - 1 &&
           pthread_create(&ids[started], NULL, copy_share, &shares[started]) == 0)
        started++;
    for (int i = started; i < threads; i++)
        copy_share(&shares[i]);
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
}

static int measure_bandwidth(wg__machine *machine) {
    const size_t threads = (size_t)machine->threads;
    char *to = malloc(COPIED), *from = malloc(COPIED);
    share *shares = malloc(threads * sizeof *shares);
    pthread_t *ids = malloc(threads * sizeof *ids);
    int status = to && from && shares && ids ? 0 : -1;
    if (status == 0) {
        memset(to, 1, COPIED);
        memset(from, 2, COPIED);
        double best = 0;
        for (int i = 0; i < REPEATS; i++) {
            const double start = wg__seconds();
            copy(to, from, machine->threads, shares, ids);
            const double rate = 2 * (double)COPIED / (wg__seconds() - start);
            best = rate > best ? rate : best;
        }
        machine->bandwidth = best;
    }
    free(to);
    free(from);
    free(shares);
    free(ids);
    return status < 0 ? wg_fail(WG_ERROR_MEMORY, "bench", "no memory for two buffers of 128 MiB")
                      : 0;
}

/* ---- Caches ---- */

#define EVICTING ((size_t)96 << 20) /* bytes */

int wg__evict_caches(void) {
    static volatile char *memory;
    if (!memory)
        memory = calloc(1, EVICTING);
    if (!memory)
        return wg_fail(WG_ERROR_MEMORY, "bench", "no memory for a buffer of 96 MiB");
    for (size_t i = 0; i < EVICTING; i += 64) /* a byte of each line */
        memory[i]++;
    return 0;
}

/* ---- sgemm ---- */

double wg__time_product(int64_t m, int64_t n, int64_t k, bool transposed) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_generator generator = {.seed = 1};
    wg_tensor *a = wg_rand(&generator, WG_F32, WG_DIMS(m, k));
    wg_tensor *b = transposed ? wg_transpose(wg_rand(&generator, WG_F32, WG_DIMS(n, k)), 0, 1)
                              : wg_rand(&generator, WG_F32, WG_DIMS(k, n));
    double seconds[MOST_PRODUCTS], total = 0;
    int count = -1; /* the first one warms up */
    while (count < MOST_PRODUCTS && (count < LEAST_PRODUCTS || total < WHILE)) {
        wg_scope pass;
        wg_scope_begin(&pass);
        const double start = wg__seconds();
        wg_matmul(a, b);
        const double took = wg__seconds() - start;
        wg_scope_end(&pass, NULL);
        if (wg_error_pending())
            break;
        if (count >= 0)
            total += seconds[count] = took;
        count++;
    }
    wg_scope_end(&scope, NULL);
    return wg_error_pending() ? -1 : wg__median(count, seconds);
}

int wg__measure_sgemm(double *flops) {
    static const int64_t shapes[][3] = {{1024, 1024, 1024}, {2048, 2048, 2048}, {1024, 3072, 768}};
    *flops = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *shape = shapes[i];
        const double seconds = wg__time_product(shape[0], shape[1], shape[2], false);
        if (seconds < 0)
            return -1;
        const double rate = 2 * (double)shape[0] * (double)shape[1] * (double)shape[2] / seconds;
        *flops = rate > *flops ? rate : *flops;
    }
    return 0;
}

int wg__measure_machine(wg__machine *machine) {
    *machine = (wg__machine){.threads = wg_threads()};
    return measure_bandwidth(machine) < 0 ? -1 : wg__measure_sgemm(&machine->sgemm_flops);
}
