/* Learning-rate schedules. */
#include "optim/internal.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define PI 3.14159265358979323846

static const char *const names[] = {
    [WG_SCHEDULE_LINEAR] = "linear", [WG_SCHEDULE_CONSTANT] = "constant",
    [WG_SCHEDULE_COSINE] = "cosine", [WG_SCHEDULE_WSD] = "wsd",
    [WG_SCHEDULE_NOAM] = "noam",     [WG_SCHEDULE_INVERSE_SQRT] = "inverse-sqrt",
    [WG_SCHEDULE_OWN] = "own",
};

#define KIND_COUNT ((int)(sizeof names / sizeof names[0]))

/* 0 when `length` steps are left, 1 at the last step and beyond; 0 for the one step of a run. */
static double progress(const wg_schedule *schedule, int64_t length, int64_t step) {
    int64_t done = step + 1 - (schedule->total_steps - length);
    if (schedule->total_steps == 1 && step == 0)
        return 0.0;
    return done >= length ? 1.0 : (double)done / (double)length;
}

double wg_schedule_rate(const wg_schedule *schedule, int64_t step) {
    if (schedule->kind == WG_SCHEDULE_OWN)
        return schedule->rate ? schedule->rate(schedule, step) : NAN;
    double peak = schedule->peak, warmup = fmax((double)schedule->warmup_steps, 1);
    if (schedule->kind == WG_SCHEDULE_NOAM && schedule->width > 0)
        /* min(t^-1/2, t W^-3/2) is W^-1/2 at the end of the warm-up. */
        peak /= sqrt((double)schedule->width * warmup);
    if (step < schedule->warmup_steps && schedule->kind != WG_SCHEDULE_INVERSE_SQRT)
        return peak * (double)(step + 1) / (double)schedule->warmup_steps;

    /* After the warm-up. */
    double p = progress(schedule, schedule->total_steps - schedule->warmup_steps, step);
    switch (schedule->kind) {
    case WG_SCHEDULE_CONSTANT:
    case WG_SCHEDULE_OWN:
        break;
    case WG_SCHEDULE_LINEAR:
        return peak * (1.0 - (1.0 - schedule->final) * p);
    case WG_SCHEDULE_COSINE:
        return peak * (schedule->final + (1.0 - schedule->final) * (1.0 + cos(PI * p)) / 2.0);
    case WG_SCHEDULE_WSD: {
        int64_t tenth = wg__larger(schedule->total_steps / 10, 1);
        int64_t length = schedule->decay_steps > 0 ? schedule->decay_steps : tenth;
        bool is_stable = step + 1 <= schedule->total_steps - length;
        p = is_stable ? 0.0 : progress(schedule, length, step);
        return peak * (1.0 - (1.0 - schedule->final) * p);
    }
    case WG_SCHEDULE_NOAM:
    case WG_SCHEDULE_INVERSE_SQRT:
        return peak * sqrt(warmup / fmax((double)step + 1.0, warmup));
    }
    return peak;
}

int wg_schedule_find(const char *name) {
    for (int kind = 0; name && kind < WG_SCHEDULE_OWN; kind++)
        if (strcmp(names[kind], name) == 0)
            return kind;
    return -1;
}

const char *wg__schedule_name(wg_schedule_kind kind) {
    return (int)kind >= 0 && (int)kind < KIND_COUNT ? names[kind] : "?";
}
