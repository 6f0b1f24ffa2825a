/* From texts and spans to the tensors of a batch. */
#ifndef WG_DATA_GLM_BLANKS_H
#define WG_DATA_GLM_BLANKS_H

#include "data/glm_batch.h"

/* A text and what is blank in it. */
typedef struct wg__glm_blanks {
    const int32_t *text;
    int64_t count;
    const wg_glm_span *spans; /* in the order of Part B; none overlaps another */
    int64_t span_count;
    int32_t mask;
    bool goes_on; /* the document, after this text: that a span ends here is not to be learned */
} wg__glm_blanks;

/* Makes a batch of so many sequences, as long as the longest, rounded up to a multiple. [scope] */
int wg__glm_blanks_batch(const wg_glm_tokens *tokens, int64_t rows, const wg__glm_blanks *blanks,
                         int64_t multiple, wg_glm_batch *batch);

#endif
