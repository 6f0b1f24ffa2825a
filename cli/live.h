/* The live view of a training, --ui: the curves of the loss and of that on held-out text, and below
 * them where the run stands. It is drawn over itself on a terminal, without another screen, so that
 * the last picture stays and nothing is to be put back, however the process ends. */
#ifndef WG_CLI_LIVE_H
#define WG_CLI_LIVE_H

#include "train/trainer.h"

/* {0} draws nothing. */
typedef struct wg__live {
    const char *title; /* borrowed; NULL: there is no view */
    const wg_trainer *trainer;
    bool braille, colors; /* what the terminal shows */
    int lines, width;     /* of the picture that stands above the cursor; 0 lines: none does */
    double last_drawn;    /* by a clock that never goes back */
    double tokens_rate;   /* a mean over the latest steps */
} wg__live;

/* A view on stderr; {0}, after a note that says why, where stderr is no terminal that can be drawn
 * on. */
wg__live wg__live_begin(const char *title, const wg_trainer *trainer);

/* Draws the picture after a step, ten times a second at most. */
void wg__live_report(wg__live *live, const wg_train_report *report);

/* Takes the picture away, for a line of text in its place; the next step draws it again. */
void wg__live_clear(wg__live *live);

#endif
