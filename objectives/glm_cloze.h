/* GLM tells labels by what it would write into a blank   (Du et al. 2022, section 2.3, equation 3).
 *
 *     p(label | text) = p(verbalizer of the label | pattern with the text)
 *                       / the sum of that over all labels
 *
 * The p on the right are those of the model as it was pretrained: there is no head.
 * data/batches/cloze.h has patterns, verbalizers and batches. */
#ifndef WG_OBJECTIVES_GLM_CLOZE_H
#define WG_OBJECTIVES_GLM_CLOZE_H

#include "../data/batches/cloze.h"
#include "../models/glm.h"

WG_BEGIN_DECLS

/* Scores of labels: the logarithms of p(verbalizer | pattern), (B, K). Their softmax is p(label),
 * and their cross-entropy the loss of fine-tuning. [scope; INDEX, ARGUMENT as wg_glm_forward] */
WG_API wg_tensor *wg_glm_cloze_scores(wg_glm *model, const wg_cloze_batch *batch);

/* The configuration as JSON text: that of the model, and under "cloze" what wg_cloze_to_json gives.
 * The caller frees it with wg_text_free. NULL with MEMORY. */
WG_API char *wg_glm_cloze_config(const wg_glm *model, const wg_cloze *cloze);

/* Reads a fine-tuned model, its tokenizer and its cloze. All are NULL after an error.
 * [NOT_FOUND, IO, FORMAT, also for a checkpoint of something else] */
WG_API int wg_glm_cloze_load(const char *path, wg_glm **model, wg_tokenizer **tokenizer,
                             wg_cloze **cloze);

WG_END_DECLS

#endif
