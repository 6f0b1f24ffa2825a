/* Anomaly mode: which op made the first NaN, and who called it.
 *
 * While wg__checks_anomalies is on, every forward run that the dispatcher makes, every vjp and
 * every jvp is asked for a NaN that it was not given. What runs inside of one of these is not asked
 * by itself, so that the error names the op that a user knows, and not what it is made of. */
#ifndef WG_AUTOGRAD_ANOMALY_H
#define WG_AUTOGRAD_ANOMALY_H

#include "autograd/node.h"

/* Where a recorded call came from. */
struct wg__origin {
    int64_t number;      /* counted over the calls that this thread recorded in anomaly mode */
    const char *within;  /* the op in whose vjp it ran, or NULL */
    int64_t within_call; /* that op's number; 0: unknown */
    int frame_count;
    void *frames[32]; /* return addresses, the innermost first */
};

/* An origin for a call that is being recorded; NULL without an error when the mode is off. */
int wg__origin_make(wg__origin **origin);

/* Nothing is asked until wg__anomaly_leave; calls recorded meanwhile are within the vjp of `node`
 * (may be NULL: within nothing new). */
typedef struct wg__anomaly_state {
    bool checks;
    const wg_node *within;
} wg__anomaly_state;

wg__anomaly_state wg__anomaly_enter(const wg_node *node);
void wg__anomaly_leave(wg__anomaly_state before);

/* 0, or -1 with ANOMALY: results have a NaN, and what they were made of has none. */
int wg__check_forward(const wg_call *call);
int wg__check_vjp(const wg_node *node, wg_tensor *const *cotangents, wg_tensor *const *gradients);
int wg__check_jvp(const wg_call *call, wg_tensor *const *tangents,
                  wg_tensor *const *output_tangents);

#endif
