/* SentencePiece   (Kudo & Richardson 2018): text to pieces without splitting it into words first.
 * wg_tokenizer_load reads its files.
 *
 *     "Hello world."
 *       normalise: character rules, spaces written as U+2581, one more before the text
 *     ▁Hello▁world.
 *       BPE: neighbours joined, the pair that makes the piece of the best score first
 *       unigram: the pieces with the greatest sum of scores
 *     ▁He llo ▁world .
 *       a character that is no piece becomes its bytes (<0xE2> <0x82> <0xAC>), or <unk>
 *
 * The ids equal those of google/sentencepiece, or, for a model from a tokenizer.json, those of
 * huggingface/tokenizers. A text never becomes control pieces (<s>, </s>) unless special tokens are
 * asked for; user-defined pieces are always found. */
#ifndef WG_DATA_TOKENIZER_SENTENCEPIECE_H
#define WG_DATA_TOKENIZER_SENTENCEPIECE_H

#include "data/tokenizer/bpe_kind.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/normalize.h"
#include "data/tokenizer/unigram.h"

typedef enum wg__piece_type { /* the numbers of tokenizer.model */
                              WG__PIECE_NORMAL = 1,
                              WG__PIECE_UNKNOWN,
                              WG__PIECE_CONTROL,
                              WG__PIECE_USER_DEFINED,
                              WG__PIECE_UNUSED,
                              WG__PIECE_BYTE
} wg__piece_type;

/* How many leading spaces decoding removes. */
typedef enum wg__strip { WG__STRIP_NONE, WG__STRIP_ONE, WG__STRIP_ALL, WG__STRIP_COUNT } wg__strip;

/* Everything of a model except its pieces; all zero is SentencePiece's "identity". */
typedef struct wg__piece_settings {
    bool unigram;   /* or BPE */
    bool by_merges; /* BPE by a list of merges, not by scores */
    bool byte_fallback;
    bool part_unknowns; /* each of several unknown characters in a row is a token */
    bool split_spaces;  /* white space separates words, and is dropped */
    bool split_words;   /* each U+2581 begins a part that is segmented by itself */
    bool exact_sums;    /* sums of unigram scores are not rounded to float */
    wg__space_prefix prefix;
    bool prefix_first, space_suffix, remove_spaces, plain_spaces, by_grapheme; /* wg__normalizer */
    wg__strip strip;
    const char *unknown_text; /* the text to which an unknown piece decodes */
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

    /* BPE. Characters of pieces that are no pieces themselves have numbers from the vocabulary's
     * size on; they may be joined, but they never become tokens. */
    wg__merge_list merges; /* the list only if by_merges */
    wg__strings extra_characters;
    int32_t ascii[128]; /* the number of each character; -1: unknown */
    bool
        parts_at_spaces; /* pieces contain spaces only at their beginning: words are merged alone */

    wg__unigram unigram;
} wg__pieces;

/* What wg__sentencepiece_new reads; all is copied. */
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

enum { WG__PIECE_LONGEST = 16 /* characters of a piece that is learnt */ };

/* Counts the parts of a word, which may begin with U+2581: each run of letters, of digits, or of
 * other characters is one, and a long run is several. sentencepiece_train.c [MEMORY] */
int wg__sentencepiece_count(wg__merge_training *words, const char *word, int64_t length);

/* A tokenizer whose only special tokens are <unk> and the control pieces. [FORMAT] */
wg_tokenizer *wg__sentencepiece_new(const wg__piece_model *model);

#endif
