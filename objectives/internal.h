/* What objectives share and users do not see. */
#ifndef WG_OBJECTIVES_INTERNAL_H
#define WG_OBJECTIVES_INTERNAL_H

#include "data/batches/pair_batch.h"
#include "objectives/objective.h"

/* The configuration that a checkpoint keeps, freed with wg_text_free. */
char *wg__training_config(const wg_training *training);

/* A batch of pairs as inputs of an encoder. */
static inline wg_model_inputs wg__pair_inputs(const wg_pair_batch *batch) {
    return (wg_model_inputs){.ids = batch->input_ids,
                             .token_type_ids = batch->token_type_ids,
                             .keep = batch->attention_mask};
}

/* The line about the text before training: of sentences, of a stream. */
void wg__describe_stream(const wg_training *training, FILE *stream);
void wg__describe_sentences(const wg_training *training, FILE *stream);

/* A file for predictions, and its end, which says whether all of it could be written. NULL, or -1,
 * with [IO] */
FILE *wg__predictions_open(const char *path);
int wg__predictions_close(FILE *file, const char *path);

#endif
