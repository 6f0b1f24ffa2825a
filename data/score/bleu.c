/* BLEU: see bleu.h; bleu_tokens.c cuts texts into tokens. */
#include "data/score/bleu.h"

#include <math.h>
#include <stdlib.h>

#include "data/score/bleu_tokens.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

/* ---- N-grams ---- */

/* `order` tokens, wherever they stand. */
typedef struct gram {
    const int32_t *tokens;
    int order;
} gram;

static int compare(const void *left, const void *right) {
    const gram *a = left, *b = right;
    for (int i = 0; i < a->order; i++)
        if (a->tokens[i] != b->tokens[i])
            return a->tokens[i] < b->tokens[i] ? -1 : 1;
    return 0;
}

/* The n-grams of a text, sorted; gives their number. `grams` has room for as many as tokens. */
static int64_t sort_grams(const wg__bleu_tokens *text, int order, gram *grams) {
    const int64_t count = text->count < order ? 0 : text->count - order + 1;
    for (int64_t i = 0; i < count; i++)
        grams[i] = (gram){text->ids + i, order};
    if (count > 0)
        qsort(grams, (size_t)count, sizeof *grams, compare);
    return count;
}

/* How many two sorted rows have in common, each as often as the row that has it less often. */
static int64_t count_common(const gram *a, int64_t a_count, const gram *b, int64_t b_count) {
    int64_t common = 0;
    for (int64_t i = 0, j = 0; i < a_count && j < b_count;) {
        const int order = compare(&a[i], &b[j]);
        common += order == 0;
        i += order <= 0;
        j += order >= 0;
    }
    return common;
}

static int count_grams(wg_bleu *bleu, const wg__bleu_tokens *hypothesis,
                       const wg__bleu_tokens *reference) {
    gram *grams = wg__alloc((size_t)(hypothesis->count + reference->count + 1) * sizeof *grams);
    if (!grams)
        return -1;
    gram *others = grams + hypothesis->count;
    for (int order = 1; order <= WG_BLEU_ORDER; order++) {
        const int64_t ours = sort_grams(hypothesis, order, grams);
        const int64_t theirs = sort_grams(reference, order, others);
        bleu->totals[order - 1] += ours;
        bleu->matches[order - 1] += count_common(grams, ours, others, theirs);
    }
    bleu->hypothesis_tokens += hypothesis->count;
    bleu->reference_tokens += reference->count;
    wg__free(grams);
    return 0;
}

int wg_bleu_add(wg_bleu *bleu, const char *hypothesis, const char *reference, bool lowercase) {
    if (!hypothesis || !reference)
        return -1;
    wg__strings words = {0};
    wg__bleu_tokens ours = {0}, theirs = {0};
    int result = -1;
    if (wg__bleu_tokenize(hypothesis, lowercase, &words, &ours) == 0 &&
        wg__bleu_tokenize(reference, lowercase, &words, &theirs) == 0)
        result = count_grams(bleu, &ours, &theirs);
    wg__strings_clear(&words);
    wg__free(ours.ids);
    wg__free(theirs.ids);
    return result;
}

/* ---- The score ---- */

wg_bleu_score wg_bleu_measure(const wg_bleu *bleu) {
    wg_bleu_score result = {.brevity_penalty = 1};
    const double ours = (double)bleu->hypothesis_tokens, theirs = (double)bleu->reference_tokens;
    if (ours < theirs)
        result.brevity_penalty = ours > 0 ? exp(1 - theirs / ours) : 0;
    if (bleu->matches[0] == 0)
        return result;
    double sum = 0, smoothing = 1;
    for (int n = 0; n < WG_BLEU_ORDER; n++) {
        if (bleu->totals[n] == 0) /* no hypothesis is as long: the mean of logarithms is -inf */
            return result;
        if (bleu->matches[n] == 0)
            smoothing *= 2;
        const double matches = bleu->matches[n] > 0 ? (double)bleu->matches[n] : 1 / smoothing;
        result.precisions[n] = 100 * matches / (double)bleu->totals[n];
        sum += log(result.precisions[n]);
    }
    result.score = result.brevity_penalty * exp(sum / WG_BLEU_ORDER);
    return result;
}

const char *wg_bleu_signature(bool lowercase) {
    return lowercase ? "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp"
                     : "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";
}
