/* Batches of single texts and pairs of texts, for BERT: see data/internal.h. */
#include "data/internal.h"

#include <string.h>

#include "base/array.h"
#include "tensor/easy.h"

#define WHERE "pair_batch"

enum { SHORTEST_SEQUENCE = 8 };

int wg__doubles_separators(const wg_tokenizer *tokenizer) {
    const int32_t class = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS);
    return class >= 0 && strcmp(wg_tokenizer_token(tokenizer, class), "<s>") == 0;
}

int wg__pair_frame_of(const wg_tokenizer *tokenizer, int64_t sequence, wg_pair_frame *frame) {
    *frame = (wg_pair_frame){
        .pad_id = wg_tokenizer_special(tokenizer, WG_TOKEN_PAD),
        .class_id = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS),
        .separator_id = wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR),
        .doubled = wg__doubles_separators(tokenizer),
        .sequence = sequence,
    };
    if (frame->pad_id < 0 || frame->class_id < 0 || frame->separator_id < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the %s tokenizer has not all of [PAD], [CLS] and [SEP]",
                       wg_tokenizer_kind(tokenizer));
    if (sequence < SHORTEST_SEQUENCE || sequence > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "sequences of %lld tokens; they must have %d",
                       (long long)sequence, SHORTEST_SEQUENCE);
    return 0;
}

wg_token_pair wg__token_pair_cut(const wg_token_pair *pair, int64_t room) {
    wg_token_pair c = *pair;
    while (c.first_count + (c.second ? c.second_count : 0) > room)
        if (!c.second || c.first_count > c.second_count)
            c.first_count--;
        else
            c.second_count--;
    return c;
}

/* Fills one row, [CLS] first [SEP] or [CLS] first [SEP] second [SEP], which has only padding yet.
 * Returns the number of its tokens. */
static int64_t fill_row(const wg_pair_frame *frame, const wg_token_pair *pair, int64_t *ids,
                        int64_t *types, bool *attention) {
    int64_t length = 0;
    ids[length++] = frame->class_id;
    for (int64_t i = 0; i < pair->first_count; i++)
        ids[length++] = pair->first[i];
    ids[length++] = frame->separator_id;
    if (pair->second) {
        if (frame->doubled)
            ids[length++] = frame->separator_id;
        const int64_t begin = length;
        for (int64_t i = 0; i < pair->second_count; i++)
            ids[length++] = pair->second[i];
        ids[length++] = frame->separator_id;
        for (int64_t t = begin; t < length; t++)
            types[t] = 1;
    }
    for (int64_t t = 0; t < length; t++)
        attention[t] = true;
    return length;
}

int wg__pair_batch_make(const wg_pair_frame *frame, int64_t count, const wg_token_pair *pairs,
                        wg_pair_batch *batch) {
    int64_t longest = 0;
    for (int64_t b = 0; b < count; b++) {
        const wg_token_pair *pair = &pairs[b];
        const int64_t length =
            pair->first_count + 2 + (pair->second ? pair->second_count + 1 + frame->doubled : 0);
        longest = wg__larger(longest, length);
    }
    longest = wg__smaller(longest, frame->sequence);
    *batch = (wg_pair_batch){
        .input_ids = wg_full(WG_I64, WG_DIMS(count, longest), frame->pad_id),
        .token_type_ids = wg_zeros(WG_I64, WG_DIMS(count, longest)),
        .attention_mask = wg_zeros(WG_BOOL, WG_DIMS(count, longest)),
    };
    if (!batch->input_ids || !batch->token_type_ids || !batch->attention_mask)
        return -1;
    for (int64_t b = 0; b < count; b++) {
        const int64_t special = pairs[b].second ? 3 + frame->doubled : 2;
        const wg_token_pair pair = wg__token_pair_cut(&pairs[b], frame->sequence - special);
        batch->tokens +=
            fill_row(frame, &pair, (int64_t *)wg_tensor_data(batch->input_ids) + b * longest,
                     (int64_t *)wg_tensor_data(batch->token_type_ids) + b * longest,
                     (bool *)wg_tensor_data(batch->attention_mask) + b * longest);
    }
    return 0;
}

uint64_t wg__pair_fingerprint(uint64_t hash, const wg_token_pair *pair) {
    const int32_t *const ids[] = {pair->first, pair->second};
    const int64_t counts[] = {pair->first_count, pair->second ? pair->second_count : 0};
    for (int side = 0; side < 2; side++) {
        hash = wg__hash_step(hash, 'T');
        for (int64_t i = 0; i < counts[side]; i++)
            for (int shift = 0; shift < 32; shift += 8)
                hash = wg__hash_step(hash, (char)((uint32_t)ids[side][i] >> shift));
    }
    return hash;
}
