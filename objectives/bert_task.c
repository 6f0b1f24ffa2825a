/* What the tasks that fine-tune BERT share: see bert_task.h. */
#include "objectives/bert_task.h"

#include "tensor/internal.h"

int wg__bert_task_frame(const char *where, const wg_bert_config *config,
                        const wg_tokenizer *tokenizer, int64_t sequence, wg_pair_frame *frame) {
    if (sequence > config->max_position_embeddings)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "a sequence of %lld tokens is too long; the model has %lld positions",
                       (long long)sequence, (long long)config->max_position_embeddings);
    if (wg_tokenizer_size(tokenizer) > config->vocab_size)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "the tokenizer has %lld tokens; the model's vocabulary holds %lld",
                       (long long)wg_tokenizer_size(tokenizer), (long long)config->vocab_size);
    if (config->type_vocab_size < 2)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "the model tells no second text from a first: its type_vocab_size is 1");
    return wg_pair_frame_of(tokenizer, sequence, frame);
}
