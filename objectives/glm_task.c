/* What the tasks of GLM share: see glm_task.h. */
#include "objectives/glm_task.h"

#include "tensor/internal.h"

int wg__glm_task_check(const char *where, const wg_glm_config *config, const wg_glm_tokens *tokens,
                       int64_t sequence) {
    if (sequence > config->max_sequence_length)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "a sequence of %lld tokens is too long; the model has %lld positions",
                       (long long)sequence, (long long)config->max_sequence_length);
    if (tokens->vocab_size > config->vocab_size)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "the tokenizer and GLM's own tokens are %lld; the model's vocabulary holds "
                       "%lld",
                       (long long)tokens->vocab_size, (long long)config->vocab_size);
    return 0;
}
