/* What the forward passes of decoders share. */
#ifndef WG_MODELS_DECODER_H
#define WG_MODELS_DECODER_H

#include "models/language_model.h"

/* Where the tokens of a call stand. */
typedef struct wg__decoder_positions {
    int64_t first, count; /* they follow each other from here */
    wg_tensor *ids;       /* unless this is there: (B, T) */
} wg__decoder_positions;

/* Checks the shape of ids, (B, T), and that they and what the caches have seen are no more than
 * `longest`, unless position ids tell where they stand: the model's table of positions checks
 * those. -1 with SHAPE; -1 for NULL ids. */
int wg__decoder_begin(const char *where, const wg_tensor *ids, const wg_decoder_inputs *inputs,
                      int64_t longest, wg__decoder_positions *positions);

#endif
