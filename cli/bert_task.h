/* What the tasks that fine-tune BERT share in the command. */
#ifndef WG_CLI_BERT_TASK_H
#define WG_CLI_BERT_TASK_H

#include "cli/model_kind.h"
#include "models/bert_heads.h"

/* What a new model is made of: the checkpoint that the setting "model" names, which must hold a
 * BERT. -1 with an error. */
int wg__bert_task_origin(const wg__training *training, wg_bert_origin *origin);

/* -1 with an error unless there is one file to measure on. */
int wg__bert_task_one_file(const wg__measuring *measuring);

/* As many tokens as were asked for; else `usual`, or all that the model takes. */
int64_t wg__bert_sequence(int64_t asked, int64_t usual, const wg_bert_config *config);

#endif
