/* What the options of batch builders have in common. */
#ifndef WG_DATA_BATCHES_BATCH_OPTIONS_H
#define WG_DATA_BATCHES_BATCH_OPTIONS_H

#include "data/dataset/corpus.h"

/* Puts 32 sequences and 128 tokens for zeros, and checks both. [ARGUMENT for no sequence, or one of
 * fewer than 8 tokens] */
int wg__batch_options_sizes(const char *where, int64_t *batch, int64_t *sequence);

/* [ARGUMENT unless the corpus was tokenised with a vocabulary of this tokenizer's size] */
int wg__batch_options_vocabulary(const char *where, const wg_corpus *corpus,
                                 const wg_tokenizer *tokenizer);

#endif
