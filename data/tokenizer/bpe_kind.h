/* What the files of byte-pair encoding share. */
#ifndef WG_DATA_TOKENIZER_BPE_KIND_H
#define WG_DATA_TOKENIZER_BPE_KIND_H

#include "data/tokenizer/bpe.h"
#include "data/tokenizer/pair_table.h"
#include "data/tokenizer/split.h"
#include "data/tokenizer/kind.h"

typedef struct wg__bpe {
    wg_tokenizer base;
    char *pattern;
    wg__splitter *splitter;
    bool prefix_space, whole_words;
    int32_t bytes[256];       /* the token of each */
    wg__pairs merges;         /* (left, right) -> (rank, joined) */
    int32_t (*merge_list)[2]; /* by rank */
    int64_t merge_count;
} wg__bpe;

extern const wg__tokenizer_kind wg__bpe_kind;

/* Puts a merge of two ids into the table of merges under the id of their joined text. [FORMAT for
 * one that the vocabulary has not, or that stands there already] */
int wg__add_merge(wg__pairs *pairs, const wg__strings *vocabulary, int64_t number,
                  const int32_t merge[2], const char *where);

/* Pairs of ids as a flat JSON list; NULL without memory. */
json_t *wg__merges_to_json(int64_t count, const int32_t (*merges)[2]);

/* The pairs of a flat JSON list of ids, freed with wg__free. NULL with FORMAT or MEMORY. */
int32_t (*wg__merges_of_json(const json_t *json, int64_t *count, const char *where))[2];

/* Appends the bytes that letters of GPT-2's alphabet stand for, or, if one is not of that alphabet,
 * the letters themselves. */
int wg__letters_to_bytes(const char *letters, int64_t length, wg__text *text);

/* ---- Files ---- */

/* The tokens of an object {token: id}, in the order of their ids, borrowed from it; the list is
 * freed with wg__free. NULL with FORMAT unless every id from 0 on stands there once. */
const char **wg__tokens_by_id(const json_t *object, int64_t *count, const char *name);

/* A tokenizer of vocab.json, parsed, and the text of merges.txt, which is cut up; the names are for
 * messages. */
wg_tokenizer *wg__bpe_read(const json_t *vocabulary, const char *vocabulary_name, char *merges,
                           int64_t length, const char *merges_name, const wg_bpe_options *options);

#endif
