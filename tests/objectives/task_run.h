/* What the tests of tasks share: a text, a trainer, and whether a resumed run gives the same bits.
 */
#ifndef WG_TESTS_TASK_RUN_H
#define WG_TESTS_TASK_RUN_H

#include "train/trainer.h"

/* 12 documents of 6 sentences of 5 words, one sentence a line; each has its own words, which
 * another shift moves. A static buffer. */
const char *task_text(int shift);

/* A trainer of so many steps, of a schedule of 10, that measures every second one and saves to
 * `path`, unless it is NULL. */
wg_trainer *task_trainer(const wg_task *task, int64_t steps, const char *path);

/* Fails the test unless a run of 10 steps and one that was stopped at 4 and resumed end with the
 * same bits. `begin` makes model and task anew, as a new process would; `end` frees them. */
void assert_resumed_bits(wg_task (*begin)(void), void (*end)(void));

/* Fails the test unless every tensor of a checkpoint whose name begins with `group` has the same
 * bits in another, and there is one. */
void assert_same_tensors(const char *path, const char *other, const char *group);

#endif
