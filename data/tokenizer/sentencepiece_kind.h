/* What the files of SentencePiece share. */
#ifndef WG_DATA_TOKENIZER_SENTENCEPIECE_KIND_H
#define WG_DATA_TOKENIZER_SENTENCEPIECE_KIND_H

#include "data/tokenizer/merges.h"
#include "data/tokenizer/normalize.h"
#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/unigram.h"

typedef enum wg__piece_type { /* as tokenizer.model has them */
                              WG__PIECE_NORMAL = 1,
                              WG__PIECE_UNKNOWN,
                              WG__PIECE_CONTROL,
                              WG__PIECE_USER_DEFINED,
                              WG__PIECE_UNUSED,
                              WG__PIECE_BYTE
} wg__piece_type;

/* How many leading spaces decoding takes away. */
typedef enum wg__strip { WG__STRIP_NONE, WG__STRIP_ONE, WG__STRIP_ALL, WG__STRIP_COUNT } wg__strip;

/* All that a model says beside its pieces; zero is what SentencePiece calls identity. */
typedef struct wg__piece_settings {
    bool unigram;   /* or BPE */
    bool by_merges; /* BPE that joins by a list of pairs, not by scores */
    bool byte_fallback;
    bool part_unknowns; /* unknown characters in a row are one token each */
    bool split_spaces;  /* white space parts words, and goes */
    bool split_words;   /* each U+2581 begins a part that is cut up by itself */
    bool exact_sums;    /* of unigram scores: not rounded to float */
    wg__space_prefix prefix;
    bool prefix_first, space_suffix, remove_spaces, plain_spaces, by_grapheme; /* wg__normalizer */
    wg__strip strip;
    const char *unknown_text; /* that an unknown piece decodes to */
} wg__piece_settings;

typedef struct wg__pieces {
    wg_tokenizer base;
    wg__piece_settings settings; /* with a copy of unknown_text */
    char *unknown_text;
    wg__normalizer normalizer; /* the kept texts are the user-defined pieces */
    int32_t *kept_ids;         /* their ids, by number in normalizer.kept */
    double *scores;
    uint8_t *types;
    int32_t bytes[256]; /* the pieces of bytes */

    /* BPE. Characters that stand in pieces but are none have numbers from the vocabulary's size on;
     * they can be joined, but not be left over. */
    wg__pairs merges;
    int32_t (*merge_list)[2]; /* by_merges */
    int64_t merge_count;
    wg__strings extra_characters;
    int32_t ascii[128];   /* the number of each character; -1: unknown */
    bool parts_at_spaces; /* no piece goes on over a space: parts can be merged one by one */

    wg__unigram unigram;
    bool *bonus;
} wg__pieces;

extern const wg__tokenizer_kind wg__sentencepiece_kind;

/* What a new tokenizer is made of; nothing is kept. */
typedef struct wg__piece_model {
    wg__piece_settings settings;
    int64_t count;
    const char *const *texts;
    const double *scores; /* NULL for BPE by merges */
    const uint8_t *types;
    int64_t merge_count;
    const int32_t (*merges)[2];
    const char *charsmap; /* NULL: none */
    int64_t charsmap_length;
} wg__piece_model;

/* A tokenizer without other special tokens than <unk> and the control pieces. [FORMAT] */
wg__pieces *wg__pieces_new(const wg__piece_model *model);

/* The options of our own JSON, and a tokenizer from them. sentencepiece_json.c */
json_t *wg__pieces_to_json(const wg_tokenizer *tokenizer);
wg_tokenizer *wg__pieces_from_json(const json_t *options, int64_t count, const char *const *texts);

/* Makes the tables by which BPE merges. sentencepiece_bpe.c */
int wg__pieces_prepare_bpe(wg__pieces *pieces, int64_t merge_count, const int32_t (*merges)[2]);

/* A cutting of normalised text: ids are appended to a list. */
typedef struct wg__piece_cutting {
    const wg__pieces *pieces;
    wg_token_list *list;
    wg_token_list symbols; /* memory that is used again */
    wg__merge_space *space;
    wg__unigram_node *nodes;
    int64_t node_capacity;
    bool after_unknown;
} wg__piece_cutting;

/* Appends an unknown character: its bytes, or <unk>, one for a row of them. */
int wg__append_unknown(wg__piece_cutting *cutting, const char *character, int64_t length);

/* Appends the ids of a part of normalised text. sentencepiece_bpe.c */
int wg__cut_bpe(wg__piece_cutting *cutting, const char *text, int64_t length);

/* A tokenizer.model that was read. NULL with FORMAT or MEMORY. sentencepiece_model.c */
wg_tokenizer *wg__sentencepiece_read(const char *bytes, int64_t length, const char *name);

#endif
