/* The unigram language model. See unigram.h.
 *
 * Sums and comparisons are rounded where SentencePiece's are (EncodeOptimized of unigram_model.cc):
 * of two ways that are nearly as good, the same one has to win. */
#include <utf8proc.h>

#include "data/tokenizer/unigram.h"
#include "tensor/internal.h"

int wg__unigram_add(wg__unigram *model, const char *text, int64_t length, int32_t piece) {
    int32_t node = 0;
    if (model->node_count == 0)
        model->node_count = 1;
    for (int64_t i = 0; i < length; i++) {
        wg__pair *edge = wg__pairs_add(&model->trie, node, (unsigned char)text[i]);
        if (!edge)
            return -1;
        if (edge->first < 0) {
            if (model->node_count == INT32_MAX)
                return wg_fail(WG_ERROR_ARGUMENT, "unigram", "the pieces are too many");
            edge->first = model->node_count++;
        }
        if (i + 1 == length)
            edge->second = piece;
        node = edge->first;
    }
    return 0;
}

/* Lets a way that ends at `node` win if it is the first or a better one. */
static void offer(const wg__unigram *model, wg__unigram_node *node, double score, int64_t start,
                  int32_t piece) {
    if (node->start >= 0 && !(score > node->score))
        return;
    *node = (wg__unigram_node){piece, (int32_t)start, model->single ? (float)score : score};
}

static double score_of(const wg__unigram *model, int32_t piece, int64_t length) {
    if (!model->bonus[piece])
        return model->scores[piece];
    double score = (double)length * model->best_score;
    return (model->single ? (float)score : score) - 0.1;
}

void wg__unigram_cut(const wg__unigram *model, const char *text, int64_t length,
                     wg__unigram_node *nodes) {
    for (int64_t i = 0; i <= length; i++)
        nodes[i] = (wg__unigram_node){-1, -1, 0.0};
    int64_t size;
    for (int64_t start = 0; start < length; start += size) {
        double here = nodes[start].score;
        bool known = false;
        int32_t node = 0;
        size = utf8proc_utf8class[(unsigned char)text[start]];
        for (int64_t at = start; at < length; at++) {
            const wg__pair *edge = wg__pairs_find(&model->trie, node, (unsigned char)text[at]);
            if (!edge)
                break;
            node = edge->first;
            if (edge->second < 0)
                continue;
            int64_t taken = at + 1 - start;
            offer(model, &nodes[at + 1], score_of(model, edge->second, taken) + here, start,
                  edge->second);
            known |= taken == size;
        }
        if (!known) {
            double score = model->unknown_score + here;
            offer(model, &nodes[start + size], model->single ? (float)score : score, start, -1);
        }
    }
}
