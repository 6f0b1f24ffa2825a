/* Writing text of any length into the blanks of a text with GLM   (Du et al. 2022, section 2.1).
 *
 *     Part A   [CLS] The rays of [M] are bent by [M] .             read once, in both directions
 *     Part B   [S] light from the sun [E]   [S] a glass prism [E]  token after token
 *
 * Blanks are written in the order of the text; each sees those before it. All that was computed is
 * kept in caches, so a token costs one token. */
#ifndef WG_OBJECTIVES_GLM_FILL_H
#define WG_OBJECTIVES_GLM_FILL_H

#include "../data/batches/glm_batch.h"
#include "../models/generate/decode.h"
#include "../models/glm.h"

WG_BEGIN_DECLS

/* One blank. */
typedef struct wg_glm_blank {
    wg_token_list tokens; /* the caller's; what is written is appended */
    wg_generation_end end;
} wg_glm_blank;

typedef struct wg_glm_fill_options {
    wg_sampling sampling;
    int64_t beam;           /* search with so many hypotheses instead of sampling; 0: no search */
    double alpha;           /* the search's length penalty, as in beam.h */
    int64_t max_tokens;     /* of each blank; 0: as many as the model has positions for */
    wg_generator generator; /* of all draws */
    void (*listener)(
        const wg_generated_token *token,
        void *context); /* hears of each token as it
                         * is drawn, `text` being the number of its blank; of a search, never */
    void *listener_context;
    const volatile sig_atomic_t *stop; /* not 0: write no more. NULL: none */
} wg_glm_fill_options;

/* How many masks there are among the ids: blanks to be written. */
WG_API int64_t wg_glm_blank_count(const wg_glm_tokens *tokens, const wg_token_list *part_a);

/* Writes into the blanks of Part A (wg_glm_encode), of which there are as many as `blanks`. A blank
 * gets at least one token, of those of the tokenizer that are none of GLM's own, until the end
 * token is likelier or there are max_tokens. The module is in evaluation mode meanwhile, and
 * nothing is recorded. `options` may be NULL. On failure, blanks may have been written. 0 or -1.
 * [ARGUMENT for bad options, a text without a blank or longer than the model's positions, logits
 * that are no numbers; INDEX for ids outside the model's vocabulary; MEMORY] */
WG_API int wg_glm_fill(wg_glm *model, const wg_glm_tokens *tokens, const wg_token_list *part_a,
                       const wg_glm_fill_options *options, wg_glm_blank *blanks);

WG_END_DECLS

#endif
