/* Progress on stderr: a live line on a terminal, plain lines now and then elsewhere. */
#ifndef WG_CLI_PROGRESS_H
#define WG_CLI_PROGRESS_H

#include "train/trainer.h"

typedef struct wg__progress {
    bool is_terminal;
    bool line_open;     /* a live line stands on the terminal */
    double last_shown;  /* by a clock that never goes back */
    double tokens_rate; /* a mean over the latest steps */
} wg__progress;

wg__progress wg__progress_begin(void);

/* A wg_train_listener; context is the wg__progress. */
void wg__progress_report(const wg_train_report *report, void *context);

/* Leaves the cursor on a fresh line. */
void wg__progress_end(wg__progress *progress);

#endif
