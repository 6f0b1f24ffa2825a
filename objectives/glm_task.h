/* What the tasks of GLM share. */
#ifndef WG_OBJECTIVES_GLM_TASK_H
#define WG_OBJECTIVES_GLM_TASK_H

#include "data/batches/glm_batch.h"
#include "models/glm.h"

/* 0 if a model has positions for a Part A of so many tokens, and words for all tokens. [ARGUMENT]
 */
int wg__glm_task_check(const char *where, const wg_glm_config *config, const wg_glm_tokens *tokens,
                       int64_t sequence);

#endif
