/* Learning-rate schedules: a rate from a step number, without state. */
#ifndef WG_OPTIM_SCHEDULE_H
#define WG_OPTIM_SCHEDULE_H

#include <stdint.h>

#include "../tensor/api.h"

typedef enum wg_schedule_kind {
    WG_SCHEDULE_LINEAR,  /* up over the warm-up, then down to `final` at the last step (BERT's) */
    WG_SCHEDULE_CONSTANT /* up over the warm-up, then the peak */
} wg_schedule_kind;

typedef struct wg_schedule {
    wg_schedule_kind kind;
    double peak;          /* the rate at the end of the warm-up */
    double final;         /* the rate at the end, as a fraction of the peak */
    int64_t warmup_steps; /* rate peak (step + 1) / warmup_steps before that; 0: none */
    int64_t total_steps;
} wg_schedule;

/* The rate for step `step`, counted from 0. */
WG_API double wg_schedule_rate(const wg_schedule *schedule, int64_t step);

/* The kind of that name ("linear", "constant"), or -1 (no error is recorded). */
WG_API int wg_schedule_find(const char *name);
WG_API const char *wg_schedule_name(wg_schedule_kind kind);

#endif
