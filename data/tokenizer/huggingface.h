/* The tokenizer.json of huggingface/tokenizers: one file with a model and what goes before it.
 *
 *     normalizer      characters replaced              as far as the published files of these need
 * it: pre_tokenizer   the text split                   BERT (WordPiece), GPT-2 and LLaMA 3
 * (byte-level model           the parts cut into tokens        BPE), LLaMA 1 and 2 (BPE with bytes
 * for what is added_tokens    what stands whole in a text      unknown), T5 (Unigram) decoder the
 * way back post_processor  what is put around, which is not the affair of encoding here
 *
 * The ids equal those of that library's encode without special tokens put around, given the option
 * special_tokens. Without it, unlike there, special tokens in the text are text as any other. What
 * is not understood is refused by its name. */
#ifndef WG_DATA_TOKENIZER_HUGGINGFACE_H
#define WG_DATA_TOKENIZER_HUGGINGFACE_H

#include "data/tokenizer/kind.h"

/* A tokenizer of such a file, once it is parsed. NULL with FORMAT or MEMORY. */
wg_tokenizer *wg__huggingface_read(const json_t *root, const char *name);

#endif
