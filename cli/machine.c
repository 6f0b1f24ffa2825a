/* The roofs of the machine (roofline model): bandwidth of memory, and sgemm peak. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "cli/cli.h"
#include "cli/machine.h"
#include "io/trace.h"
#include "tensor/profile.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "tensor/internal.h"

/* Runs of the copy; runs of a product: at least 3, and up to 15 within WHILE. */
enum { REPEATS = 7, MOST_PRODUCTS = 15, LEAST_PRODUCTS = 3 };
#define WHILE 0.25 /* seconds */

/* A product that would take longer than these seconds is left out: a build with sanitizers needs
 * half a minute for the largest. */
#define LONGEST 1.0

#define COPIED ((size_t)128 << 20) /* bytes: no cache holds them */
#define READ ((size_t)256 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

/* Each thread copies or reads its share of a buffer. */
typedef struct share {
    char *to;
    const char *from;
    size_t bytes;
    float sum; /* of the floats read; keeps the reads from being optimized away */
} share;

/* memcpy of a share this large writes to memory without filling the caches. */
static void *copy_share(void *argument) {
    share *own = argument;
    memcpy(own->to, own->from, own->bytes);
    return NULL;
}

/* Many sums, so that none waits for the last. */
static void *read_share(void *argument) {
    enum { SUMS = 64 };
    share *own = argument;
    const float *from = (const float *)own->from;
    float sums[SUMS] = {0};
    for (size_t i = 0; i + SUMS <= own->bytes / sizeof *from; i += SUMS)
        for (int j = 0; j < SUMS; j++)
            sums[j] += from[i + (size_t)j];
    for (int j = 0; j < SUMS; j++)
        own->sum += sums[j];
    return NULL;
}

/* Threads that cannot be started leave their share to this one. */
static void run_shares(void *(*run)(void *), int threads, share *shares, pthread_t *ids) {
    int started = 0;
    while (started < threads - 1 && pthread_create(&ids[started], NULL, run, &shares[started]) == 0)
        started++;
    for (int i = started; i < threads; i++)
        run(&shares[i]);
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
}

struct wg__reader {
    int threads;
    char *memory;
    share *shares;
    pthread_t *ids;
};

void wg__reader_free(wg__reader *reader) {
    if (!reader)
        return;
    free(reader->memory);
    free(reader->shares);
    free(reader->ids);
    free(reader);
}

wg__reader *wg__reader_new(void) {
    wg__reader *reader = calloc(1, sizeof *reader);
    if (reader) {
        const size_t threads = (size_t)(reader->threads = wg_threads());
        reader->memory = aligned_alloc(HUGE_PAGE, READ);
        reader->shares = calloc(threads, sizeof *reader->shares);
        reader->ids = calloc(threads, sizeof *reader->ids);
    }
    if (!reader || !reader->memory || !reader->shares || !reader->ids) {
        wg__reader_free(reader);
        wg_fail(WG_ERROR_MEMORY, "bench", "no memory for a buffer of 256 MiB");
        return NULL;
    }
    wg__prefer_huge_pages(reader->memory, READ);
    memset(reader->memory, 1, READ);
    const size_t each = READ / (size_t)reader->threads / 256 * 256;
    for (int i = 0; i < reader->threads; i++)
        reader->shares[i] = (share){.from = reader->memory + (size_t)i * each, .bytes = each};
    return reader;
}

double wg__reader_rate(wg__reader *reader) {
    double best = 0;
    for (int i = 0; i < 2; i++) {
        const double start = wg__now();
        run_shares(read_share, reader->threads, reader->shares, reader->ids);
        const double rate = (double)reader->shares[0].bytes * reader->threads / (wg__now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

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

double wg__time_product(int64_t m, int64_t n, int64_t k, bool transposed, wg_dtype dtype) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_dtype before = wg_set_matmul_dtype(dtype);
    wg_generator generator = {.seed = 1};
    wg_tensor *a = wg_rand(&generator, WG_F32, WG_DIMS(m, k));
    wg_tensor *b = transposed ? wg_transpose(wg_rand(&generator, WG_F32, WG_DIMS(n, k)), 0, 1)
                              : wg_rand(&generator, WG_F32, WG_DIMS(k, n));
    double seconds[MOST_PRODUCTS], total = 0;
    int count = -1; /* the first one warms up */
    while (count < MOST_PRODUCTS && (count < LEAST_PRODUCTS || total < WHILE)) {
        wg_scope pass;
        wg_scope_begin(&pass);
        const double start = wg__now();
        wg_matmul(a, b);
        const double took = wg__now() - start;
        wg_scope_end(&pass, NULL);
        if (wg_error_pending())
            break;
        if (count >= 0)
            total += seconds[count] = took;
        count++;
    }
    wg_set_matmul_dtype(before);
    wg_scope_end(&scope, NULL);
    return wg_error_pending() ? -1 : wg__median(count, seconds);
}

int wg__measure_sgemm(double *flops) {
    static const int64_t shapes[][3] = {
        {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {1024, 3072, 768}};
    *flops = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *shape = shapes[i];
        const double operations = 2 * (double)shape[0] * (double)shape[1] * (double)shape[2];
        if (*flops > 0 && operations / *flops > LONGEST)
            continue;
        const double seconds = wg__time_product(shape[0], shape[1], shape[2], false, WG_F32);
        if (seconds < 0)
            return -1;
        const double rate = operations / seconds;
        *flops = rate > *flops ? rate : *flops;
    }
    return 0;
}

int wg__measure_machine(wg__machine *machine) {
    const int threads = wg_threads();
    const size_t each = COPIED / (size_t)threads / 64 * 64;
    char *to = aligned_alloc(HUGE_PAGE, COPIED), *from = aligned_alloc(HUGE_PAGE, COPIED);
    share *shares = calloc((size_t)threads, sizeof *shares);
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    *machine = (wg__machine){.threads = threads};
    if (to && from && shares && ids) {
        wg__prefer_huge_pages(to, COPIED);
        wg__prefer_huge_pages(from, COPIED);
        memset(to, 0, COPIED);
        memset(from, 0, COPIED);
        for (int i = 0; i < threads; i++)
            shares[i] = (share){to + (size_t)i * each, from + (size_t)i * each, each, 0};
        for (int i = 0; i < REPEATS; i++) { /* the best copy counts */
            const double start = wg__now();
            run_shares(copy_share, threads, shares, ids);
            machine->bandwidth =
                fmax(machine->bandwidth, 2.0 * (double)COPIED / (wg__now() - start));
        }
    } else {
        wg_fail(WG_ERROR_MEMORY, "bench", "no memory for two buffers of 128 MiB");
    }
    free(to);
    free(from);
    free(shares);
    free(ids);
    return machine->bandwidth == 0 ? -1 : wg__measure_sgemm(&machine->sgemm_flops);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double wg__median(int64_t count, double *figures) {
    qsort(figures, (size_t)count, sizeof *figures, by_value);
    return figures[count / 2];
}

int wg__profiling_begin(const wg__profiling *profiling) {
    if (!profiling->table && !profiling->trace)
        return 0;
    if (profiling->trace && wg_trace_write(profiling->trace) < 0)
        return -1;
    return wg_profile_begin(profiling->trace != NULL);
}

int wg__profiling_end(const wg__profiling *profiling) {
    wg__machine machine = {0};
    int64_t events, lost;
    int count;
    double total;
    wg_profile_end();
    int status = profiling->trace ? wg_trace_write(profiling->trace) : 0;
    wg__profile_events(&events, &lost);
    if (status == 0 && lost > 0)
        wg__cli_note("%s holds the first of the run; %lld ops more had no room", profiling->trace,
                     (long long)lost);
    const wg_profile_row *rows = wg__profile_rows(&count, &total);
    double rest = total;
    if (status == 0 && profiling->table)
        status = wg__measure_machine(&machine);
    const bool prints = status == 0 && profiling->table;
    if (prints)
        fprintf(stderr,
                "profile of %.3f s; %d threads, sgemm %.1f GFLOP/s, memory %.1f GB/s\n"
                "%-24s %-8s %8s %11s %8s %8s %7s  %s\n",
                total, machine.threads, 1e-9 * machine.sgemm_flops, 1e-9 * machine.bandwidth, "op",
                "", "calls", "ms", "share", "GFLOP/s", "GB/s", "share of roof");
    for (int i = 0; prints && i < count; i++) {
        const wg_profile_row *row = &rows[i];
        char flops[32] = "-", bytes[32] = "-";
        /* The seconds of the row if only multiplying, or only memory, cost time. */
        const double computing = row->flops / machine.sgemm_flops,
                     moving = row->bytes / machine.bandwidth;
        if (row->flops > 0)
            snprintf(flops, sizeof flops, "%.1f", 1e-9 * row->flops / row->seconds);
        if (row->bytes > 0)
            snprintf(bytes, sizeof bytes, "%.1f", 1e-9 * row->bytes / row->seconds);
        fprintf(stderr, "%-24s %-8s %8lld %11.2f %6.1f %% %8s %7s", row->name,
                wg__profile_kind_name(row->kind), (long long)row->calls, 1e3 * row->seconds,
                100 * row->seconds / total, flops, bytes);
        if (computing > 0 || moving > 0)
            fprintf(stderr, "  %.2f of %s", fmax(computing, moving) / row->seconds,
                    computing > moving ? "sgemm" : "memory");
        fputc('\n', stderr);
        rest -= row->seconds;
    }
    if (prints)
        fprintf(stderr, "%-33s %8s %11.2f %6.1f %%\n", "between them", "", 1e3 * rest,
                100 * rest / total);
    wg__profile_free();
    return status;
}
