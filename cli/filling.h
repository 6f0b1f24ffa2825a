/* Models that fill blanks, as `wengert fill' knows them. A new one is a file cli/fill_KIND.c with a
 * wg__filler, and a line in the table of fill.c. */
#ifndef WG_CLI_FILLING_H
#define WG_CLI_FILLING_H

#include <jansson.h>

#include "cli/model_kind.h"
#include "cli/sampling.h"

/* What is asked for. */
typedef struct wg__filling {
    int64_t top;         /* show so many of the likeliest tokens; 0: as the kind finds it */
    int64_t beam;        /* search with so many hypotheses; 0: draw */
    wg__drawing drawing; /* of text of any length */
    json_t *texts;       /* what was filled, for --json; NULL: it is printed */
} wg__filling;

typedef struct wg__filler {
    const wg__model_kind *kind;
    bool writes; /* text of any length, so that it is drawn or searched for; else one token a blank,
                  * of which the likeliest are shown */

    /* The model of a checkpoint and its tokenizer, freed by `end'. NULL with an error. */
    void *(*begin)(const char *run);
    void (*end)(void *model);

    /* Fills one text, and prints it or adds an object to the texts. 0 or -1 with an error. */
    int (*fill)(void *model, const wg__filling *how, const char *text);
} wg__filler;

extern const wg__filler wg__bert_filler, wg__glm_filler, wg__t5_filler;

#endif
