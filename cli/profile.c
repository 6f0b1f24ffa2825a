/* --profile and --trace: see profile.h. */
#include "cli/profile.h"

#include <math.h>
#include <stdio.h>

#include "cli/machine.h"
#include "cli/cli.h"
#include "io/trace.h"
#include "tensor/profile.h"

int wg__profiling_begin(const wg__profiling *profiling) {
    if (!profiling->table && !profiling->trace)
        return 0;
    if (profiling->trace && wg_trace_write(profiling->trace) < 0)
        return -1;
    return wg_profile_begin(profiling->trace != NULL);
}

static void print_table(const wg__machine *machine) {
    const double total = wg_profile_seconds();
    double rest = total;
    fprintf(stderr,
            "profile of %.3f s; %d threads, sgemm %.1f GFLOP/s, memory %.1f GB/s\n"
            "%-24s %-8s %8s %11s %8s %8s %7s  %s\n",
            total, machine->threads, 1e-9 * machine->sgemm_flops, 1e-9 * machine->bandwidth, "op",
            "", "calls", "ms", "share", "GFLOP/s", "GB/s", "share of roof");
    for (int i = 0; i < wg_profile_rows(); i++) {
        const wg_profile_row *row = wg_profile_row_at(i);
        char flops[32] = "-", bytes[32] = "-";
        /* What the row would take if nothing but multiplying, or nothing but memory, cost time. */
        const double computing = row->flops / machine->sgemm_flops,
                     moving = row->bytes / machine->bandwidth;
        if (row->flops > 0)
            snprintf(flops, sizeof flops, "%.1f", 1e-9 * row->flops / row->seconds);
        if (row->bytes > 0)
            snprintf(bytes, sizeof bytes, "%.1f", 1e-9 * row->bytes / row->seconds);
        fprintf(stderr, "%-24s %-8s %8lld %11.2f %6.1f %% %8s %7s", row->name,
                wg_profile_kind_name(row->kind), (long long)row->calls, 1e3 * row->seconds,
                100 * row->seconds / total, flops, bytes);
        if (computing > 0 || moving > 0)
            fprintf(stderr, "  %.2f of %s", fmax(computing, moving) / row->seconds,
                    computing > moving ? "sgemm" : "memory");
        fputc('\n', stderr);
        rest -= row->seconds;
    }
    fprintf(stderr, "%-33s %8s %11.2f %6.1f %%\n", "between them", "", 1e3 * rest,
            100 * rest / total);
}

int wg__profiling_end(const wg__profiling *profiling) {
    wg__machine machine;
    int64_t lost;
    wg_profile_end();
    int status = profiling->trace ? wg_trace_write(profiling->trace) : 0;
    if (status == 0 && wg_profile_events(&lost) > 0 && lost > 0)
        wg__cli_note("%s holds the first of the run; %lld ops more had no room", profiling->trace,
                     (long long)lost);
    if (status == 0 && profiling->table) {
        status = wg__measure_machine(&machine);
        if (status == 0)
            print_table(&machine);
    }
    wg_profile_free();
    return status;
}
