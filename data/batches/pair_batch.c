/* One or two texts as a sequence: see data/internal.h. */
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

/* Longest first. */
wg_token_pair wg__token_pair_cut(const wg_token_pair *pair, int64_t room) {
    wg_token_pair c = *pair;
    while (c.first_count + (c.second ? c.second_count : 0) > room)
        if (!c.second || c.first_count > c.second_count)
            c.first_count--;
        else
            c.second_count--;
    return c;
}

/* [CLS] first [SEP], or [CLS] first [SEP] second [SEP]. */
static int64_t frame_length(const wg_pair_frame *frame, const wg_token_pair *pair) {
    return pair->second ? 3 + frame->doubled : 2;
}

/* One row, which is filled with [PAD] and zeros. Returns its tokens. */
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
        const int64_t length = pairs[b].first_count +
                               (pairs[b].second ? pairs[b].second_count : 0) +
                               frame_length(frame, &pairs[b]);
        longest = length > longest ? length : longest;
    }
    longest = longest < frame->sequence ? longest : frame->sequence;
    *batch = (wg_pair_batch){
        .input_ids = wg_full(WG_I64, WG_DIMS(count, longest), frame->pad_id),
        .token_type_ids = wg_zeros(WG_I64, WG_DIMS(count, longest)),
        .attention_mask = wg_zeros(WG_BOOL, WG_DIMS(count, longest)),
    };
    if (!batch->input_ids || !batch->token_type_ids || !batch->attention_mask)
        return -1;
    for (int64_t b = 0; b < count; b++) {
        const wg_token_pair pair =
            wg__token_pair_cut(&pairs[b], frame->sequence - frame_length(frame, &pairs[b]));
        batch->tokens +=
            fill_row(frame, &pair, (int64_t *)wg_tensor_data(batch->input_ids) + b * longest,
                     (int64_t *)wg_tensor_data(batch->token_type_ids) + b * longest,
                     (bool *)wg_tensor_data(batch->attention_mask) + b * longest);
    }
    return 0;
}

static uint64_t hash_tokens(uint64_t hash, const int32_t *ids, int64_t count) {
    hash = wg__hash_step(hash, 'T');
    for (int64_t i = 0; i < count; i++)
        for (int shift = 0; shift < 32; shift += 8)
            hash = wg__hash_step(hash, (char)((uint32_t)ids[i] >> shift));
    return hash;
}

uint64_t wg__pair_fingerprint(uint64_t hash, const wg_token_pair *pair) {
    hash = hash_tokens(hash, pair->first, pair->first_count);
    return hash_tokens(hash, pair->second, pair->second ? pair->second_count : 0);
}
