/* Models from checkpoints. */
#ifndef WG_MODELS_LOAD_H
#define WG_MODELS_LOAD_H

#include "data/tokenizer/tokenizer.h"
#include "nn/module.h"

/* Reads the tokenizer of a checkpoint, and the weights of the model that `make` makes of its
 * configuration and `context`. The model, which is a root, is given; NULL after an error, when
 * there is no tokenizer either. [NOT_FOUND, IO, FORMAT; what `make` gives] */
wg_module *wg__model_load(const char *path, wg_module *(*make)(const char *config, void *context),
                          void *context, wg_tokenizer **tokenizer);

#endif
