/* The roofs of the machine: what memory and the multipliers give at best. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "tensor/easy.h"
#include "tensor/ops.h"

enum { REPEATS = 7 };

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

static double product_flops(int64_t m, int64_t n, int64_t k) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_generator generator = {.seed = 1};
    wg_tensor *a = wg_rand(&generator, WG_F32, WG_DIMS(m, k));
    wg_tensor *b = wg_rand(&generator, WG_F32, WG_DIMS(k, n));
    double best = 0;
    for (int i = 0; i < REPEATS && !wg_error_pending(); i++) {
        wg_scope pass;
        wg_scope_begin(&pass);
        const double start = wg__seconds();
        wg_matmul(a, b);
        const double rate = 2 * (double)m * (double)n * (double)k / (wg__seconds() - start);
        best = rate > best ? rate : best;
        wg_scope_end(&pass, NULL);
    }
    wg_scope_end(&scope, NULL);
    return best;
}

int wg__measure_machine(wg__machine *machine) {
    static const int64_t shapes[][3] = {{1024, 1024, 1024}, {2048, 2048, 2048}, {1024, 3072, 768}};
    *machine = (wg__machine){.threads = wg_threads()};
    if (measure_bandwidth(machine) < 0)
        return -1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const double rate = product_flops(shapes[i][0], shapes[i][1], shapes[i][2]);
        if (rate > machine->sgemm_flops)
            machine->sgemm_flops = rate;
    }
    return wg_error_pending() ? -1 : 0;
}
