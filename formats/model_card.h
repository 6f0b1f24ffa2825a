/* What a folder of a published model has beside its weights, its configuration and its tokenizer:
 *
 *     generation_config.json   which tokens begin, end and pad a text, and how tokens are drawn
 *     README.md                the model card: what the model is, and how it was trained, as far as
 *                              that is known */
#ifndef WG_FORMATS_MODEL_CARD_H
#define WG_FORMATS_MODEL_CARD_H

#include "models/model.h"

typedef struct wg__card {
    const char *in;     /* what was converted: a checkpoint of a run says how it was trained */
    const char *folder; /* to write into */
    const wg_model_type *type;
    int head; /* a wg__head_kind; -1: none */
    wg_model_sizes sizes;
    int64_t numbers;        /* parameters */
    const char *generation; /* the generation_config.json that IN has; NULL: none */
} wg__card;

/* Writes generation_config.json for models that write texts: that of IN, or a new one whose drawing
 * is that of `wengert generate`. [IO, MEMORY] */
int wg__write_generation_config(const wg__card *card);

/* Writes README.md, that of IN where it is a folder that has one, unless there is one in the folder
 * already. A licence is only named by a card that IN has. [IO, MEMORY] */
int wg__write_model_card(const wg__card *card);

/* The generation_config.json of IN, a checkpoint or a folder, which is checked to be a JSON object;
 * freed with wg__free. NULL without an error if there is none. [FORMAT, IO, MEMORY] */
char *wg__find_generation_config(const char *in);

#endif
