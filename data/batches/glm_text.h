/* Text with masks in it, for those who put Part A together from stretches of it. */
#ifndef WG_DATA_BATCHES_GLM_TEXT_H
#define WG_DATA_BATCHES_GLM_TEXT_H

#include "data/batches/glm_batch.h"

/* True if the words of the vocabulary begin with the space before them (bpe, sentencepiece). */
bool wg__spaces_begin_words(const wg_tokenizer *tokenizer);

/* Where the first "[MASK]", "[sMASK]" or "[gMASK]" of a text begins; NULL: it has none. */
const char *wg__glm_find_mask(const char *text);

/* Appends a text as wg_glm_encode does, without a [CLS]. On failure the list may be longer.
 * [FORMAT as wg_tokenizer_encode, MEMORY] */
int wg__glm_encode_stretch(const wg_glm_tokens *tokens, const wg_tokenizer *tokenizer,
                           const char *text, wg_token_list *list);

#endif
