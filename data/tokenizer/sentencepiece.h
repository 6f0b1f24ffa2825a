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

#include <stdbool.h>
#include <stdint.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/merges.h"
#include "base/array.h"

/* The unigram language model of SentencePiece   (Kudo 2018): each piece has a log probability, and
 * of all ways to segment a text the one with the greatest sum is taken. Here are the pieces as a
 * trie, and learning them. sentencepiece.c segments texts. */

/* The pieces as a trie. {0} has none. */
typedef struct wg__unigram {
    wg__pair_table trie;  /* (node, byte) -> (next node, the piece that ends there, or -1) */
    int32_t node_count;   /* including the root, 0 */
    double unknown_score; /* of a character that is no piece */
    double best_score;
    bool *bonus; /* user-defined pieces, which always win */
} wg__unigram;

/* Adds a piece to the trie. [MEMORY; ARGUMENT beyond 2^31 - 1 nodes] */
int wg__unigram_add(wg__unigram *model, const char *text, int64_t length, int32_t piece);

/* ---- Learning the pieces ----
 *
 *     seeds    the substrings of at most 16 characters that occur twice or more, the 20 times as
 *              many as are wanted with the greatest frequency x characters, and all characters
 *     EM       twice: how often each piece is expected in all segmentations of the words, weighted
 *              by their probability (forward and backward sums), gives its new probability
 *     pruning  a quarter of the pieces goes: those without which the likelihood of the words falls
 *              least; then EM again, until a tenth more than wanted are left
 *     end      the most probable ones, and all characters
 *
 * These are the steps of google/sentencepiece's trainer. Seeds differ in one point: a word that
 * occurs n times counts n times there, too. */

typedef struct wg__unigram_training {
    const wg__strings *words;
    const int64_t *word_counts;
    const wg__strings
        *letters; /* the characters that become pieces; words with others are left out */
    const wg__letter *counted; /* the same characters, in the same order, with their counts */
    int64_t piece_count;       /* wanted, with the characters; of a small text there are fewer */

    /* The result, the most probable piece first. */
    wg__strings pieces;
    double *scores; /* log probabilities, rounded to float as files hold them */
} wg__unigram_training;

/* Fills the result. [MEMORY] */
int wg__learn_unigram(wg__unigram_training *training);

/* Frees the result. */
void wg__unigram_training_clear(wg__unigram_training *training);

/* SentencePiece's normalisation of a text before it is segmented into pieces, with the table of
 * character rules, and base64, in which JSON files keep that table.
 *
 *     " Ｈｅｌｌｏ  world\t"
 *       characters replaced by the rules (here to Unicode's NFKC), optional
 *       white space removed at both ends and next to other white space, optional
 *       one space put before the text, optional
 *     "▁Hello▁world"        spaces written as U+2581
 */

#define WG__SPACE_SYMBOL "\xE2\x96\x81" /* U+2581 */

/* ---- Character rules: SentencePiece's precompiled_charsmap ----
 *
 *     4 bytes       the size of the trie in bytes
 *     trie          units of 32 bits, a double array (Aoe 1989) in the layout of darts-clone; its
 *                   keys are replaced, its values are offsets into the replacements
 *     replacements  texts, each closed by a NUL */

typedef struct wg__charsmap {
    char *blob; /* the whole table */
    int64_t length;
    const unsigned char *units;
    int64_t unit_count;
    const char *texts;
    int64_t texts_length;
} wg__charsmap;

/* Copies a table and checks its layout; freed with wg__normalizer_clear.
 * [FORMAT for sizes that do not fit, or replacements that are not UTF-8] */
int wg__charsmap_set(wg__charsmap *map, const char *blob, int64_t length);

/* ---- Normalisation ---- */

typedef enum wg__space_prefix {
    WG__PREFIX_NONE,
    WG__PREFIX_ALWAYS,
    WG__PREFIX_MISSING, /* unless the text begins with a space */
    WG__PREFIX_COUNT
} wg__space_prefix;

typedef struct wg__normalizer {
    wg__charsmap charsmap;
    bool by_grapheme; /* wg__replace_graphemes applies the rules, before wg__normalize */
    wg__space_prefix prefix;
    bool prefix_first;  /* the prefix only begins the whole text, not a stretch after an added token
                         */
    bool space_suffix;  /* the prefix goes to the end instead */
    bool remove_spaces; /* at the ends, and all but one of several in a row */
    bool plain_spaces;  /* spaces are not written as U+2581 */
    wg__strings kept;   /* texts that stay as they are */
    bool kept_begins[256]; /* a kept text begins with this byte */
} wg__normalizer;

/* Appends the normalised text to `out`; `first`: the stretch begins the whole text. The text is
 * UTF-8. [MEMORY] */
int wg__normalize(const wg__normalizer *normalizer, const char *text, int64_t length, bool first,
                  wg__text *out);

/* Appends a UTF-8 text with the character rules applied as Hugging Face does, grapheme by grapheme.
 * A short grapheme becomes the replacement of its shortest beginning that has one; in other
 * graphemes each character is looked up. [MEMORY] */
int wg__replace_graphemes(const wg__normalizer *normalizer, const char *text, int64_t length,
                          wg__text *out);

/* The length of the longest kept text at the beginning of `text`, or 0; *number is its number. */
int64_t wg__normalize_kept(const wg__normalizer *normalizer, const char *text, int64_t length,
                           int64_t *number);

void wg__normalizer_clear(wg__normalizer *normalizer);

/* ---- Base64 (RFC 4648, section 4) ---- */

/* Appends bytes as base64. [MEMORY] */
int wg__base64_encode(const char *bytes, int64_t length, wg__text *text);

/* Appends the bytes of a base64 text. [MEMORY; FORMAT, with `where`, if it is not base64] */
int wg__base64_decode(const char *text, int64_t length, wg__text *bytes, const char *where);

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
