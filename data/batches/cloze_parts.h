/* What a cloze is made of, for those who make it and its batches. */
#ifndef WG_DATA_BATCHES_CLOZE_PARTS_H
#define WG_DATA_BATCHES_CLOZE_PARTS_H

#include "data/batches/cloze.h"

struct wg_cloze {
    wg_glm_tokens tokens;
    char *pattern;
    bool pairs;                 /* it has places for two texts, */
    bool turned;                /* of which the second stands first */
    wg_token_list stretches[3]; /* [CLS] and what stands before, between and behind texts */
    wg_labelled_text_options reading;
    wg_labels labels;
    char **verbalizers;  /* one for each label */
    wg_token_list spans; /* the tokens of all verbalizers, */
    int64_t *starts;     /* and where each begins, and the end */
};

/* The tokens of a verbalizer, without start and end. */
static inline const int32_t *wg__cloze_ids(const wg_cloze *cloze, int64_t label) {
    return cloze->spans.ids + cloze->starts[label];
}

static inline int64_t wg__cloze_count(const wg_cloze *cloze, int64_t label) {
    return cloze->starts[label + 1] - cloze->starts[label];
}

#endif
