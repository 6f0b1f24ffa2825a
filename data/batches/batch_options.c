/* What the options of batch builders have in common. */
#include "data/batches/batch_options.h"

#include "tensor/internal.h"

#define SHORTEST_SEQUENCE 8
#define LONGEST_SEQUENCE (1 << 20)

int wg__batch_options_sizes(const char *where, int64_t *batch, int64_t *sequence) {
    if (*batch == 0)
        *batch = 32;
    if (*sequence == 0)
        *sequence = 128;
    if (*batch < 1 || *batch > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, where, "a batch of %lld sequences; it must be 1 or more",
                       (long long)*batch);
    if (*sequence < SHORTEST_SEQUENCE || *sequence > LONGEST_SEQUENCE)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "sequences of %lld tokens; they must have %d to %d", (long long)*sequence,
                       SHORTEST_SEQUENCE, LONGEST_SEQUENCE);
    return 0;
}

int wg__batch_options_vocabulary(const char *where, const wg_corpus *corpus,
                                 const wg_tokenizer *tokenizer) {
    if (wg_tokenizer_size(tokenizer) == wg_corpus_vocabulary(corpus))
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where,
                   "the corpus was tokenised with a vocabulary of %lld tokens, this one has %lld",
                   (long long)wg_corpus_vocabulary(corpus),
                   (long long)wg_tokenizer_size(tokenizer));
}
