/* What tasks keep in a checkpoint beside the weights:
 *
 *     /config, /tokenizer                        all that it takes to use the model
 *     /train/data/{seed, epoch, next}            where the run stands in its data
 *     /train/data/fingerprint                    which data these are
 */
#ifndef WG_OBJECTIVES_TASK_CHECKPOINT_H
#define WG_OBJECTIVES_TASK_CHECKPOINT_H

#include "data/tokenizer/tokenizer.h"
#include "data/batches/batches.h"
#include "io/checkpoint/checkpoint.h"

/* Writes all of these; `config` is JSON text, which is freed, also NULL, which fails. */
int wg__task_save(wg_checkpoint *file, char *config, const wg_tokenizer *tokenizer,
                  const wg_data_position *position, int64_t fingerprint);

/* Reads where the run stood. `where` is for the message. [STATE for other data than the run was
 * begun with; as wg_checkpoint_get_integer] */
int wg__task_restore(wg_checkpoint *file, const char *where, int64_t fingerprint,
                     wg_data_position *position);

#endif
