/* What the tasks that fine-tune BERT share. */
#ifndef WG_OBJECTIVES_BERT_TASK_H
#define WG_OBJECTIVES_BERT_TASK_H

#include "data/batches/pair_batch.h"
#include "models/bert.h"

/* The frame of sequences for a model. [ARGUMENT for a sequence beyond its positions, a tokenizer
 * beyond its vocabulary or without [CLS], [SEP] and [PAD]] */
int wg__bert_task_frame(const char *where, const wg_bert_config *config,
                        const wg_tokenizer *tokenizer, int64_t sequence, wg_pair_frame *frame);

#endif
