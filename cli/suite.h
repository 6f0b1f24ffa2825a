/* A suite of tasks: what `wengert eval --suite' runs. */
#ifndef WG_CLI_SUITE_H
#define WG_CLI_SUITE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wg__suite_options {
    const char *run;    /* the pretrained checkpoint, an absolute path */
    const char *folder; /* of the tasks, a folder each */
    int threads;        /* 0: as the library finds it */
    int64_t seed;       /* of fine-tuning; -1: as each task says */
    bool json;
} wg__suite_options;

/* Runs all tasks and prints their results and the mean, on stdout. 0; 1 if a signal stopped it; -1
 * with [NOT_FOUND, IO for a folder that cannot be read; FORMAT for one that holds no task, or a
 * task.json that is none; ARGUMENT for a task that fails, with its message; MEMORY] */
int wg__suite_run(const wg__suite_options *options);

#endif
