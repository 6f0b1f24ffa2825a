/* SentencePiece   (Kudo & Richardson 2018): splits texts into pieces, without splitting words
 * first. wg_tokenizer_load reads its files.
 *
 *     "Hello world."
 *       normalize: character rules, spaces written as U+2581, one more before the text
 *     ▁Hello▁world.
 *       BPE: neighbours joined, first the pair that makes the piece with the best score
 *       unigram: the pieces with the greatest sum of scores
 *     ▁He llo ▁world .
 *       a character that is no piece becomes its bytes (<0xE2> <0x82> <0xAC>), or <unk>
 *
 * The ids equal the ids of google/sentencepiece, or, for a model from a tokenizer.json, of
 * huggingface/tokenizers. Control pieces (<s>, </s>) in a text are found only with the option
 * special_tokens; user-defined pieces are always found. */
#ifndef WG_DATA_TOKENIZER_SENTENCEPIECE_H
#define WG_DATA_TOKENIZER_SENTENCEPIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/merges.h"
#include "base/array.h"

/* ---- The unigram language model   (Kudo 2018). unigram.c ----
 * Each piece has a log probability. A text is segmented into the pieces with the greatest sum.
 * unigram.c has the trie of pieces and the training; sentencepiece.c segments texts. */

/* The trie of the pieces. {0} is empty. */
typedef struct wg__unigram {
    wg__pair_table trie;  /* (node, byte) -> (next node, the piece that ends there, or -1) */
    int32_t node_count;   /* including the root, 0 */
    double unknown_score; /* of a character that is no piece */
    double best_score;
    bool *bonus; /* true for user-defined pieces, which always win */
} wg__unigram;

/* Adds a piece to the trie. [MEMORY; ARGUMENT beyond 2^31 - 1 nodes] */
int wg__unigram_add(wg__unigram *model, const char *text, int64_t length, int32_t piece);

/* ---- Training of the pieces ----
 *
 *     seeds    all characters, and the repeated substrings of at most 16 characters with the
 *              greatest frequency x characters: 20 times the wanted number of pieces
 *     EM       twice: the expected frequency of each piece in all segmentations of the words
 *              (forward-backward) gives its new probability
 *     pruning  removes the quarter of the pieces that contributes least to the likelihood of the
 *              words; then EM again, down to 1.1 times the wanted number
 *     end      all characters and the most probable pieces
 *
 * These are the steps of google/sentencepiece's trainer. One difference: here, the frequencies of
 * seeds include the counts of their words. */

typedef struct wg__unigram_training {
    const wg__strings *words;
    const int64_t *word_counts;
    const wg__strings *letters; /* the characters; words with other characters are skipped */
    const wg__letter *counted;  /* the counts of `letters`, in the same order */
    int64_t piece_count;        /* wanted, with the characters; fewer for a small text */

    /* The result, the most probable piece first. */
    wg__strings pieces; /* freed with wg__strings_clear */
    double *scores;     /* log probabilities, rounded to float as in files; freed with wg__free */
} wg__unigram_training;

/* Fills the result. [MEMORY] */
int wg__learn_unigram(wg__unigram_training *training);

/* ---- Normalization of a text before it is segmented. normalize.c ----
 *
 *     " Ｈｅｌｌｏ  world\t"
 *       characters replaced by the rules (here to Unicode's NFKC), optional
 *       white space removed at both ends and after other white space, optional
 *       one space put before the text, optional
 *     "▁Hello▁world"        spaces written as U+2581
 */

#define WG__SPACE_SYMBOL "\xE2\x96\x81" /* U+2581 */

/* ---- Character rules: SentencePiece's precompiled_charsmap ----
 *
 *     4 bytes       the size of the trie in bytes
 *     trie          units of 32 bits, a double array (Aoe 1989) in the layout of darts-clone; a key
 *                   is a text to replace, its value an offset into the replacements
 *     replacements  NUL-terminated texts */

typedef struct wg__charsmap {
    char *blob; /* the whole table */
    int64_t length;
    const unsigned char *units;
    int64_t unit_count;
    const char *texts;
    int64_t texts_length;
} wg__charsmap;

/* Copies a table to map->blob, which is freed with wg__free, and checks its layout. [FORMAT for
 * inconsistent sizes, or replacements that are not UTF-8] */
int wg__charsmap_set(wg__charsmap *map, const char *blob, int64_t length);

typedef struct wg__normalizer {
    const struct wg__piece_settings *settings;
    wg__charsmap charsmap;
    wg__strings kept;      /* texts that are not normalized */
    bool kept_begins[256]; /* a kept text begins with this byte */
} wg__normalizer;

/* Appends the normalized text to `out`; `first`: the stretch begins the whole text. The text is
 * UTF-8. [MEMORY] */
int wg__normalize(const wg__normalizer *normalizer, const char *text, int64_t length, bool first,
                  wg__text *out);

/* Appends a UTF-8 text with the character rules applied to each grapheme, as in Hugging Face's
 * library. The shortest beginning of a short grapheme with a rule determines the replacement of the
 * whole grapheme; in all other graphemes, each character is looked up. [MEMORY] */
int wg__replace_graphemes(const wg__normalizer *normalizer, const char *text, int64_t length,
                          wg__text *out);

/* The length of the longest kept text at the beginning of `text`, or 0; *number is its number. */
int64_t wg__normalize_kept(const wg__normalizer *normalizer, const char *text, int64_t length,
                           int64_t *number);

/* ---- Base64 (RFC 4648, section 4), for character rules in JSON ---- */

/* Appends bytes as base64. [MEMORY] */
int wg__base64_encode(const char *bytes, int64_t length, wg__text *text);

/* Appends the bytes of a base64 text. [MEMORY; FORMAT, with `where`, if it is not base64] */
int wg__base64_decode(const char *text, int64_t length, wg__text *bytes, const char *where);

/* ---- Models. sentencepiece.c ---- */

/* The numbers are tokenizer.model's. */
typedef enum wg__piece_type {
    WG__PIECE_NORMAL = 1,
    WG__PIECE_UNKNOWN,
    WG__PIECE_CONTROL,
    WG__PIECE_USER_DEFINED,
    WG__PIECE_UNUSED,
    WG__PIECE_BYTE
} wg__piece_type;

typedef enum wg__space_prefix {
    WG__PREFIX_NONE,
    WG__PREFIX_ALWAYS,
    WG__PREFIX_MISSING, /* unless the text begins with a space */
    WG__PREFIX_COUNT
} wg__space_prefix;

/* The leading spaces that decoding removes. */
typedef enum wg__strip { WG__STRIP_NONE, WG__STRIP_ONE, WG__STRIP_ALL, WG__STRIP_COUNT } wg__strip;

/* A model without its pieces; all zero is SentencePiece's "identity". */
typedef struct wg__piece_settings {
    bool unigram;   /* or BPE */
    bool by_merges; /* BPE by a list of merges, not by scores */
    bool byte_fallback;
    bool part_unknowns; /* each unknown character is a token, not each run of them */
    bool split_spaces;  /* white space separates words, and is dropped */
    bool split_words;   /* each U+2581 begins a part, which is segmented separately */
    bool exact_sums;    /* sums of unigram scores are not rounded to float */
    wg__space_prefix prefix;
    bool prefix_first;  /* only at the beginning of the whole text, not after added tokens */
    bool space_suffix;  /* puts the space after the text instead of before it */
    bool remove_spaces; /* at the ends, and all except one of consecutive spaces */
    bool plain_spaces;  /* does not write spaces as U+2581 */
    bool by_grapheme;   /* wg__replace_graphemes applies the rules before wg__normalize */
    wg__strip strip;
    const char *unknown_text; /* decoding writes it for an unknown piece */
} wg__piece_settings;

typedef struct wg__pieces {
    wg_tokenizer base;
    wg__piece_settings settings; /* with a copy of unknown_text */
    wg__normalizer normalizer;   /* the kept texts are the user-defined pieces */
    int32_t *kept_ids;           /* the ids of normalizer.kept */
    double *scores;
    uint8_t *types;
    int32_t bytes[256]; /* the pieces of bytes */

    /* BPE. A character of a piece that is no piece itself has a number above the vocabulary. These
     * characters may be joined, but they never become tokens. */
    wg__merge_list merges; /* `pairs` only if by_merges */
    wg__strings extra_characters;
    int32_t ascii[128];   /* the number of each character; -1: unknown */
    bool parts_at_spaces; /* no piece has a space after its beginning: merges words separately */

    wg__unigram unigram;
} wg__pieces;

/* The arguments of wg__sentencepiece_new, which copies them. */
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

enum { WG__PIECE_LONGEST = 16 /* characters of a learnt piece */ };

/* Counts the parts of a word, which may begin with U+2581: runs of letters, of digits, or of other
 * characters. Long runs are split. sentencepiece_train.c [MEMORY] */
int wg__sentencepiece_count(wg__merge_training *words, const char *word, int64_t length);

/* A tokenizer. Its special tokens are <unk> and the control pieces. [FORMAT] */
wg_tokenizer *wg__sentencepiece_new(const wg__piece_model *model);

#endif
