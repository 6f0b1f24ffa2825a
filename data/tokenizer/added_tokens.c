/* Tokens that objectives add to a vocabulary: see kind.h. */
#include "data/tokenizer/kind.h"

#include <stdio.h>

/* The id, or, for -1, a new id: *vocab_size. */
static int32_t id_or_new(int32_t id, int64_t *vocab_size) {
    return id >= 0 ? id : (int32_t)(*vocab_size)++;
}

int wg__blank_tokens_of(const wg_tokenizer *tokenizer, wg_blank_tokens *tokens) {
    if (!tokenizer)
        return -1;
    const int64_t size = wg_tokenizer_size(tokenizer);
    *tokens = (wg_blank_tokens){.tokenizer_size = size, .vocab_size = size};
    tokens->start = id_or_new(wg_tokenizer_id(tokenizer, "<|startofpiece|>"), &tokens->vocab_size);
    tokens->end = id_or_new(wg_tokenizer_id(tokenizer, "<|endofpiece|>"), &tokens->vocab_size);
    tokens->document_mask = id_or_new(wg_tokenizer_id(tokenizer, "[gMASK]"), &tokens->vocab_size);
    tokens->sentence_mask = id_or_new(wg_tokenizer_id(tokenizer, "[sMASK]"), &tokens->vocab_size);
    tokens->beginning =
        id_or_new(wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS), &tokens->vocab_size);
    tokens->mask = id_or_new(wg_tokenizer_special(tokenizer, WG_TOKEN_MASK), &tokens->vocab_size);
    tokens->pad = wg_tokenizer_special(tokenizer, WG_TOKEN_PAD);
    if (tokens->pad < 0)
        tokens->pad = tokens->end;
    return 0;
}

bool wg__blank_is_mask(const wg_blank_tokens *tokens, int32_t id) {
    return id == tokens->mask || id == tokens->sentence_mask || id == tokens->document_mask;
}

int wg__sentinels_of(const wg_tokenizer *tokenizer, wg__sentinels *tokens) {
    if (!tokenizer)
        return -1;
    const int64_t size = wg_tokenizer_size(tokenizer);
    *tokens = (wg__sentinels){.tokenizer_size = size, .vocab_size = size};
    tokens->end = id_or_new(wg_tokenizer_special(tokenizer, WG_TOKEN_END), &tokens->vocab_size);
    tokens->pad = id_or_new(wg_tokenizer_special(tokenizer, WG_TOKEN_PAD), &tokens->vocab_size);
    int32_t id = 0;
    for (int i = 0; i < WG_SENTINELS && id >= 0; i++) {
        char name[24];
        snprintf(name, sizeof name, "<extra_id_%d>", i);
        id = wg_tokenizer_id(tokenizer, name);
        if (id >= 0)
            tokens->sentinels[tokens->sentinel_count++] = id;
    }
    if (tokens->sentinel_count > 0)
        return 0;
    tokens->vocab_size += WG_SENTINELS;
    tokens->sentinel_count = WG_SENTINELS;
    for (int i = 0; i < WG_SENTINELS; i++)
        tokens->sentinels[i] = (int32_t)tokens->vocab_size - 1 - i;
    return 0;
}

int wg__sentinel_number(const wg__sentinels *tokens, int32_t id) {
    for (int i = 0; i < tokens->sentinel_count; i++)
        if (tokens->sentinels[i] == id)
            return i;
    return -1;
}

int wg__translation_tokens_of(const wg_tokenizer *tokenizer, wg__translation_tokens *tokens) {
    if (!tokenizer)
        return -1;
    int32_t start = wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN);
    int32_t end = wg_tokenizer_special(tokenizer, WG_TOKEN_END);
    if (end < 0) {
        start = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS);
        end = wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR);
    }
    if (end < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "translation",
                       "the %s tokenizer has no token that ends a sentence; one of bpe has",
                       wg_tokenizer_kind(tokenizer));
    *tokens = (wg__translation_tokens){.start = start >= 0 ? start : end,
                                       .end = end,
                                       .pad = wg_tokenizer_special(tokenizer, WG_TOKEN_PAD)};
    return 0;
}
