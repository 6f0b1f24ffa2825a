/* What tasks keep in a checkpoint beside the weights:
 *
 *     /config, /tokenizer                        all that it takes to use the model
 *     /train/data/{seed, epoch, next}            where the run stands in its data
 *     /train/data/fingerprint                    which data these are
 */
#ifndef WG_OBJECTIVES_TASK_CHECKPOINT_H
#define WG_OBJECTIVES_TASK_CHECKPOINT_H

#include "data/batches/batches.h"
#include "data/tokenizer/tokenizer.h"

/* Writes all of these; `config` is JSON text, which is freed, also NULL, which fails. Read back by
 * wg_batches_restore. */
int wg__task_save(wg_checkpoint *file, char *config, const wg_tokenizer *tokenizer,
                  const wg_batches *batches, int64_t fingerprint);

#endif
