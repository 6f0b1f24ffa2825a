/* Learning-rate schedules. */
#include "optim/schedule.h"

#include <string.h>

static const char *const names[] = {
    [WG_SCHEDULE_LINEAR] = "linear",
    [WG_SCHEDULE_CONSTANT] = "constant",
};

#define KIND_COUNT ((int)(sizeof names / sizeof names[0]))

/* 0 at the end of the warm-up, 1 at the last step and beyond. */
static double progress(const wg_schedule *schedule, int64_t step) {
    int64_t falling_steps = schedule->total_steps - schedule->warmup_steps;
    int64_t done = step + 1 - schedule->warmup_steps;
    return done >= falling_steps ? 1.0 : (double)done / (double)falling_steps;
}

double wg_schedule_rate(const wg_schedule *schedule, int64_t step) {
    if (step < schedule->warmup_steps)
        return schedule->peak * (double)(step + 1) / (double)schedule->warmup_steps;
    if (schedule->kind == WG_SCHEDULE_CONSTANT)
        return schedule->peak;
    return schedule->peak * (1.0 - (1.0 - schedule->final) * progress(schedule, step));
}

int wg_schedule_find(const char *name) {
    for (int kind = 0; name && kind < KIND_COUNT; kind++)
        if (strcmp(names[kind], name) == 0)
            return kind;
    return -1;
}

const char *wg_schedule_name(wg_schedule_kind kind) {
    return (int)kind >= 0 && (int)kind < KIND_COUNT ? names[kind] : "?";
}
