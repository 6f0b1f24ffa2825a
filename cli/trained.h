/* What the verbs share that know a checkpoint, its model and its objective. */
#ifndef WG_CLI_TRAINED_H
#define WG_CLI_TRAINED_H

#include "objectives/objective.h"

/* A checkpoint with its model, as verbs that do not train use it. */
typedef struct wg__trained {
    const wg_objective *objective;
    wg_model model;
    wg_tokenizer *tokenizer;
} wg__trained;

/* Finds the objective of a checkpoint. `can` says whether the verb can use it; where it cannot, the
 * error lists the models and objectives that `verb` takes. NULL with an error. */
const wg_objective *wg__trained_objective(const char *path, const char *verb,
                                          bool (*can)(const wg_objective *objective));

/* Reads model and tokenizer. 0, or -1 with an error; cleared in every case. */
int wg__trained_load(wg__trained *trained, const wg_objective *objective, const char *path);
void wg__trained_clear(wg__trained *trained);

/* Rounds the weights to the index-th type of wg__weights_dtype_name (options.h). -1 with an error
 */
int wg__trained_quantize(const wg_model *model, int dtype);

/* -1 with the error that the checkpoint holds something else than `verb' takes. */
int wg__trained_refuse(const char *path, const char *verb, const char *takes);

/* "pretrain gpt", "finetune --task squad": what made the checkpoint, or would make it. */
void wg__training_command(const wg_objective *objective, const wg_model_type *type, char *text,
                          size_t size);

#endif
