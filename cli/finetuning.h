/* What the tasks of `wengert finetune' share in the command. */
#ifndef WG_CLI_FINETUNING_H
#define WG_CLI_FINETUNING_H

#include "cli/model_kind.h"
#include "models/bert_heads.h"

/* The checkpoint that the setting "model" names, borrowed, if it holds a model of the task's type.
 * NULL with an error. */
const char *wg__finetuning_model(const wg__training *training);

/* What a new BERT is made of: that checkpoint. -1 with an error. */
int wg__finetuning_origin(const wg__training *training, wg_bert_origin *origin);

/* The one file to measure on, borrowed; NULL with an error if there are more. */
const char *wg__finetuning_file(const wg__measuring *measuring);

#endif
