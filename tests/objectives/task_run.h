/* Helpers of the tests of tasks: a text, a trainer, and the comparison of a resumed run with a
 * whole one. */
#ifndef WG_TESTS_TASK_RUN_H
#define WG_TESTS_TASK_RUN_H

#include "objectives/objective.h"

/* 12 documents of 6 sentences of 5 words, one sentence a line. The words depend on the document and
 * on `shift`. A static buffer. */
const char *task_text(int shift);

/* A training of a model by an objective; `rest` holds what else the setup says, or is NULL. */
wg_training *training_of(const wg_objective *objective, const wg_model *model,
                         const wg_tokenizer *tokenizer,
                         const wg_dataset *training, const wg_dataset *held_out,
                         const wg_training_setup *rest);

/* A trainer of so many steps of a schedule of 10, which evaluates every second step and saves to
 * `path`, unless that is NULL. */
wg_trainer *task_trainer(const wg_task *task, int64_t steps, const char *path);

/* Fails the test unless a run of 10 steps and one that stops at 4 and is resumed end with the same
 * bits. `begin` creates model and task, as a new process would; `end` frees them. */
void assert_resumed_bits(wg_task (*begin)(void), void (*end)(void));

/* Fails the test unless every tensor of a checkpoint whose name begins with `group` has the same
 * bits in another, and there is one. */
void assert_same_tensors(const char *path, const char *other, const char *group);

#endif
