/* What goes before and after the model of a tokenizer.json. */
#ifndef WG_DATA_TOKENIZER_HUGGINGFACE_PARTS_H
#define WG_DATA_TOKENIZER_HUGGINGFACE_PARTS_H

#include "base/array.h"
#include "data/tokenizer/sentencepiece_kind.h"

typedef struct wg__huggingface_parts {
    bool bert, cased; /* BertNormalizer and BertPreTokenizer */
    bool byte_level;
    bool prefix_space;         /* byte_level's */
    const char *pattern;       /* byte_level's; borrowed; NULL: GPT-2's */
    wg__piece_settings pieces; /* how spaces are treated; the rest is the model's */
    wg__text charsmap;         /* freed by the caller with wg__free */
} wg__huggingface_parts;

/* Reads normalizer, pre_tokenizer and decoder. [MEMORY; FORMAT with the name of what is not
 * supported] */
int wg__huggingface_read_parts(const json_t *root, const char *name, wg__huggingface_parts *parts);

#endif
