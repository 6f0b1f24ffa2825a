/* Learning-rate schedules: a rate from a step number, without state.
 *
 *     linear     cosine      constant    noam         inverse-sqrt   wsd
 *      /\         /-.         /-----      /\           --.            /----\
 *     /  \       /   \       /           /  `-.           `-.        /      \
 *    /    \     /     `-    /           /      `---          `---   /        \
 */
#ifndef WG_OPTIM_SCHEDULE_H
#define WG_OPTIM_SCHEDULE_H

#include <stdint.h>

#include "../base/api.h"

WG_BEGIN_DECLS

/* With t = step + 1, W = warmup_steps and T = total_steps. All but the last rise to their peak by
 * peak t / W while t <= W; then, p being (t - W) / (T - W) and at most 1: */
typedef enum wg_schedule_kind {
    WG_SCHEDULE_LINEAR,   /* peak (1 - (1 - final) p): down to `final` at the last step (BERT's) */
    WG_SCHEDULE_CONSTANT, /* peak */
    WG_SCHEDULE_COSINE,   /* peak (final + (1 - final) (1 + cos(pi p)) / 2)
                             (Loshchilov & Hutter 2017, one cycle) */
    WG_SCHEDULE_WSD,      /* warm-up, stable, decay: peak until the last D = decay_steps, in which
                             it falls linearly to `final` (Hu et al. 2024; Haegele et al. 2024) */
    WG_SCHEDULE_NOAM,     /* peak width^-1/2 min(t^-1/2, t W^-3/2)   (Vaswani et al. 2017, eq. 3;
                             `peak` is a factor, 1 in the paper); without a width the factor is
                             such that `peak` is reached at the end of the warm-up */
    WG_SCHEDULE_INVERSE_SQRT /* peak sqrt(W / max(t, W)): no rise (Raffel et al. 2020, whose
                                1 / sqrt(max(t, W)) has the peak 1 / sqrt(W)) */
} wg_schedule_kind;

typedef struct wg_schedule {
    wg_schedule_kind kind;
    double peak;          /* the rate at the end of the warm-up */
    double final;         /* the rate at the end, as a fraction of the peak */
    int64_t warmup_steps; /* 0: none; noam and inverse-sqrt take it as 1 */
    int64_t total_steps;
    int64_t decay_steps; /* of wsd; 0: a tenth of all */
    int64_t width;       /* of noam: d_model; 0: see there */
} wg_schedule;

/* The rate for step `step`, counted from 0. */
WG_API double wg_schedule_rate(const wg_schedule *schedule, int64_t step);

/* The kind of that name ("linear", "constant", "cosine", "wsd", "noam", "inverse-sqrt"), or -1 (no
 * error is recorded). */
WG_API int wg_schedule_find(const char *name);

/* The name of a kind as wg_schedule_find takes it; "?" outside the enum. */
WG_API const char *wg_schedule_name(wg_schedule_kind kind);

WG_END_DECLS

#endif
