/* Internal interface of the tokenizers. A kind of tokenizer is one file with a record of functions,
 * which files.c lists, and a struct that begins with a wg_tokenizer.
 *
 *     text  "see <|endoftext|>it"        first the added tokens are found,
 *             |         |       |
 *           kind      added    kind      then the kind encodes the text between them */
#ifndef WG_DATA_TOKENIZER_KIND_H
#define WG_DATA_TOKENIZER_KIND_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "base/array.h"
#include "base/json.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/merges.h"

/* The state between the ids of a text that is decoded; {0} at the beginning. */
typedef struct wg__decode_state {
    bool begun; /* an ordinary id has been decoded */
    bool space; /* the next word needs a space before it */
    bool open;  /* a straight double quote is open */
    int script; /* of the last character; an enumeration of the kind */
} wg__decode_state;

/* Receives the ids of a text. `drain` empties a long list, so that encoding needs little memory. */
typedef struct wg__token_sink {
    wg_token_list list;
    int (*drain)(void *context); /* empties the list; NULL: the list keeps all ids */
    void *context;
} wg__token_sink;

/* Drains the list if it is long. A kind calls it when it does not need the listed ids any more. */
int wg__token_sink_flush(wg__token_sink *sink);

/* wg_tokenizer_encode into a sink; the text must be valid UTF-8. */
int wg__tokenizer_encode(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                         const wg_encode_options *options, wg__token_sink *sink);

struct wg__merge_training;

typedef struct wg__tokenizer_kind {
    const char *name;

    /* Appends the ids of a stretch of UTF-8 text without added tokens, which is not empty. `first`:
     * the stretch begins the text. After a failure tokenizer.c removes the appended ids. */
    int (*encode)(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink);

    /* Appends the bytes of an id, which may be parts of characters. */
    int (*decode)(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                  wg__decode_state *state, wg__text *text);

    /* The options as a new JSON object; NULL with MEMORY. The member NULL: no options. */
    json_t *(*options_to_json)(const wg_tokenizer *tokenizer);

    /* A tokenizer from the object of options_to_json and a vocabulary. */
    wg_tokenizer *(*from_json)(const json_t *options, int64_t count, const char *const *tokens);

    /* Counts the words of a text, for learning merges within words (merges.h). NULL: the vocabulary
     * cannot be extended. */
    int (*count_words)(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                       struct wg__merge_training *words);

    /* Appends the ids of a counted word, or none if the word has pieces that cannot be joined.
     * NULL: `encode` is used. */
    int (*encode_word)(const wg_tokenizer *tokenizer, const char *word, int64_t length,
                       wg__token_sink *sink);

    /* Adds the options of each learnt piece. NULL: pieces have no options except merges. */
    int (*extend_options)(const wg_tokenizer *tokenizer, const struct wg__merge_training *words,
                          json_t *options);

    /* Frees the members of the kind's struct; NULL: nothing. */
    void (*clear)(wg_tokenizer *tokenizer);
} wg__tokenizer_kind;

/* A token that is found in a text before the kind encodes the text. */
typedef struct wg__added_token {
    int32_t id;
    bool special;     /* found only with the option special_tokens */
    bool strip_left;  /* includes the white space before it */
    bool strip_right; /* includes the white space after it */
    bool normalized;  /* to be found in the normalized text; encoding refuses it */
} wg__added_token;

extern const wg__tokenizer_kind wg__bpe_kind;
extern const wg__tokenizer_kind wg__byte_kind;
extern const wg__tokenizer_kind wg__char_kind;
extern const wg__tokenizer_kind wg__llama2c_kind;
extern const wg__tokenizer_kind wg__sentencepiece_kind;
extern const wg__tokenizer_kind wg__wordpiece_kind;

struct wg_tokenizer {
    const wg__tokenizer_kind *kind;
    wg__strings vocabulary;
    int32_t special[WG_TOKEN_SPECIAL_COUNT]; /* ids; -1: none */
    wg__strings added_texts;                 /* the texts of the added tokens */
    wg__added_token *added;                  /* by number in added_texts */
    int64_t added_capacity;
    int32_t *added_by_id; /* each id's number in added_texts, or -1; NULL: no token was added */
};

/* A zeroed struct of `size` bytes that begins with a tokenizer of the kind. [MEMORY] */
void *wg__tokenizer_new(const wg__tokenizer_kind *kind, size_t size);

/* The tokenizer if status is 0; else frees it and returns NULL. */
wg_tokenizer *wg__tokenizer_checked(wg_tokenizer *tokenizer, int status);

/* Fills the vocabulary. `entry` names a token in messages, followed by its number from 1 on
 * ("vocab.txt: line"). [FORMAT for an empty, repeated or non-UTF-8 token] */
int wg__tokenizer_set_vocabulary(wg_tokenizer *tokenizer, int64_t count, const char *const *tokens,
                                 const char *entry);

/* Adds a token: encoding replaces `text` (NULL: the token's text in the vocabulary) by the token's
 * id. A second call for the same text replaces the first. [FORMAT for an id outside the vocabulary,
 * or two ids with the same text; MEMORY] */
int wg__tokenizer_add(wg_tokenizer *tokenizer, const char *text, const wg__added_token *token);

/* The text of an added token, else the text in the vocabulary. */
const char *wg__tokenizer_added_text(const wg_tokenizer *tokenizer, int32_t id);

/* Makes `id` the special token `which`, and an added token. */
int wg__tokenizer_set_special(wg_tokenizer *tokenizer, wg_special_token which, int32_t id);

/* wg__tokenizer_set_special for the token `name`, if the vocabulary has it. */
int wg__tokenizer_name_special(wg_tokenizer *tokenizer, wg_special_token which, const char *name);

/* Sets each missing special token by its names in published vocabularies. */
int wg__tokenizer_find_special(wg_tokenizer *tokenizer);

/* True for every special token, also without a name in wg_special_token. */
bool wg__tokenizer_is_special(const wg_tokenizer *tokenizer, int32_t id);

/* True if the token begins a word within a text: a WordPiece token without "##", or a token of
 * another kind that begins with white space. */
bool wg__token_begins_word(const wg_tokenizer *tokenizer, int32_t id);

/* Removes all added and special tokens. */
void wg__tokenizer_clear_added(wg_tokenizer *tokenizer);

/* Training data: a text (length -1: up to its NUL), or files. */
typedef struct wg__texts {
    const char *text; /* NULL: files */
    int64_t length;
    int count;
    const char *const *paths;
} wg__texts;

/* Calls `add` with each text. [NOT_FOUND, IO; FORMAT for text that is not UTF-8; as `add`] */
int wg__each_text(const wg__texts *texts, const char *where,
                  int (*add)(void *context, const char *text, int64_t length), void *context);

/* Fails since the texts are empty. -1 with FORMAT. */
int wg__fail_without_text(const wg__texts *texts, const char *where);

/* ---- JSON ---- */

/* Appends JSON as text. [MEMORY] */
int wg__json_dump(const json_t *json, size_t flags, wg__text *out);

/* Parses JSON. `name` is for messages. NULL with FORMAT. */
json_t *wg__json_parse(const char *json, int64_t length, const char *name);

/* NULL without memory. */
json_t *wg__numbers_to_json(int64_t count, const double *numbers);

/* A JSON list of exactly `count` numbers, freed with wg__free. [FORMAT with `key`; MEMORY] */
double *wg__numbers_of_json(const json_t *json, int64_t count, const char *key, const char *where);

/* ---- Readers: a tokenizer from a file of a known format. `name` is the file's name in messages.
 * NULL with FORMAT or MEMORY. ---- */

/* True if a folder has a file for wg_tokenizer_load. files.c */
bool wg__tokenizer_is_in(const char *folder);

/* The JSON of wg_tokenizer_save. files.c */
wg_tokenizer *wg__tokenizer_of_json(const json_t *root);

/* llama2.c's tokenizer.bin. llama2c.c */
wg_tokenizer *wg__llama2c_read(const char *bytes, int64_t length, const char *name);

/* SentencePiece's tokenizer.model. sentencepiece_model.c */
wg_tokenizer *wg__sentencepiece_read(const char *bytes, int64_t length, const char *name);

/* Hugging Face's tokenizer.json. huggingface.c */
wg_tokenizer *wg__huggingface_read(const json_t *root, const char *name);

/* ---- Writers: each appends the content of a file to `out` and returns 1. 0, without an error: the
 * format cannot express this tokenizer. -1 with MEMORY. ---- */

/* llama2.c's tokenizer.bin, also for a SentencePiece BPE with LLaMA's layout. llama2c.c */
int wg__llama2c_write(const wg_tokenizer *tokenizer, wg__text *out);

/* SentencePiece's tokenizer.model. sentencepiece_model.c */
int wg__sentencepiece_write(const wg_tokenizer *tokenizer, wg__text *out);

/* Hugging Face's tokenizer.json, for any kind except llama2c. In a WordPiece file, rare characters
 * are folded as in Hugging Face's library. huggingface_write.c */
int wg__huggingface_write(const wg_tokenizer *tokenizer, wg__text *out);

/* Converts llama2.c's tokenizer back to a SentencePiece BPE: spaces become U+2581, and each text
 * begins with U+2581. Freed with wg_tokenizer_free. [MEMORY; FORMAT if two tokens become equal] */
wg_tokenizer *wg__llama2c_to_sentencepiece(const wg_tokenizer *tokenizer);

/* ---- Tokens that objectives add to a vocabulary. added_tokens.c ----
 * A token that the tokenizer lacks gets an id above its vocabulary, as in the published code. A
 * model needs at least vocab_size embeddings. */

/* ---- Blanks   (Du et al. 2022) ---- */

typedef struct wg_blank_tokens {
    int32_t mask, sentence_mask, document_mask; /* [MASK], [sMASK], [gMASK] */
    int32_t start, end; /* <|startofpiece|>, <|endofpiece|>: [S] and [E] of the paper */
    int32_t beginning;  /* [CLS], before every text */
    int32_t pad;        /* [PAD], or `end`, since padding is masked */
    int64_t tokenizer_size, vocab_size;
} wg_blank_tokens;

int wg__blank_tokens_of(const wg_tokenizer *tokenizer, wg_blank_tokens *tokens);

/* True for [MASK], [sMASK] and [gMASK]. */
bool wg__blank_is_mask(const wg_blank_tokens *tokens, int32_t id);

/* ---- Sentinels of spans   (Raffel et al. 2020) ---- */

enum { WG_SENTINELS = 100 };

/* Missing tokens get the ids after the vocabulary: </s>, <pad>, then <extra_id_99> down to
 * <extra_id_0>, as in the published models. */
typedef struct wg__sentinels {
    int32_t sentinels[WG_SENTINELS]; /* <extra_id_0>, <extra_id_1>... */
    int sentinel_count;              /* the number in the vocabulary; if it has none, 100 */
    int32_t end, pad;                /* </s>, <pad> */
    int64_t tokenizer_size, vocab_size;
} wg__sentinels;

/* -1 for NULL. */
int wg__sentinels_of(const wg_tokenizer *tokenizer, wg__sentinels *tokens);

/* The number of the sentinel with this id, or -1. */
int wg__sentinel_number(const wg__sentinels *tokens, int32_t id);

/* ---- Sentences and their translations ---- */

/* The tokens around a sentence. */
typedef struct wg__translation_tokens {
    int32_t start; /* the decoder's first */
    int32_t end;   /* of source and target */
    int32_t pad;   /* -1: none; `end` fills the padding */
} wg__translation_tokens;

/* The tokenizer's begin and end tokens, which may be equal (GPT-2's <|endoftext|>), or BERT's [CLS]
 * and [SEP]. [ARGUMENT without an end token] */
int wg__translation_tokens_of(const wg_tokenizer *tokenizer, wg__translation_tokens *tokens);

/* ---- BERT's BasicTokenizer (google-research/bert): splits text into words. basic_tokenizer.c ----
 *
 *     clean     drop NUL, U+FFFD and control characters (Cc, Cf); spaces (Zs) and tab, newline and
 *               carriage return separate words
 *     space     every CJK ideograph is a word
 *     fold      unless cased: lower-case (Unicode's full mapping, with the final sigma), decompose
 *               (NFD), drop accents (Mn)
 *     split     every punctuation character (P*, and all of ASCII's symbols) is a word
 */

/* Receives each word in order, with its number of characters; `bytes` is borrowed for the call. A
 * negative result ends wg__basic_tokenize, which returns -1. */
typedef int (*wg__word_visitor)(void *context, const char *bytes, int64_t length,
                                int64_t characters);

typedef struct wg__basic_rules {
    bool cased;
    bool huggingface; /* like BertNormalizer of huggingface/tokenizers: drops private use
                       * characters, too; drops accents before it lower-cases letters one by one,
                       * without a final sigma; U+2B820 to U+2B91F are not ideographs */
} wg__basic_rules;

/* Visits the words of a UTF-8 text. [MEMORY; FORMAT with the offset if it is not UTF-8] */
int wg__basic_tokenize(const char *text, int64_t length, wg__basic_rules rules,
                       wg__word_visitor visit, void *context);

/* Characters within words; white space; and characters that are words (punctuation, ideographs). */
typedef enum wg__basic_class { WG__BASIC_WITHIN, WG__BASIC_SPACE, WG__BASIC_ALONE } wg__basic_class;

wg__basic_class wg__basic_class_of(int32_t c);

/* True if first <= c <= last. */
static inline bool wg__is_within(int32_t c, int32_t first, int32_t last) {
    return c >= first && c <= last;
}

/* True for BERT's blocks of CJK Unified Ideographs; not Hangul, Hiragana or Katakana. */
bool wg__is_ideograph(int32_t c);

/* Unicode's simple lower case of characters[at], with the final sigma. */
int32_t wg__basic_lower(const int32_t *characters, int64_t count, int64_t at);

/* ---- Splitting a text by a regular expression, for byte-level BPE. split.c ---- */

typedef struct wg__splitter wg__splitter;

/* GPT-2's pattern, as in encoder.py of openai/gpt-2. */
#define WG__GPT2_PATTERN                                                                           \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* A splitter for a pattern like GPT-2's. \s and classes are Unicode's. Freed with
 * wg__splitter_free. [FORMAT for a pattern that is invalid, too long or has an unsupported
 * construct; MEMORY] */
wg__splitter *wg__splitter_new(const char *pattern);

/* Frees a splitter; NULL is allowed. */
void wg__splitter_free(wg__splitter *splitter);

/* Receives each part. A negative result ends wg__split, which returns -1. */
typedef int (*wg__part_visitor)(void *context, const char *part, int64_t length);

/* Visits all matches and the texts between them in order, except empty ones. The text is UTF-8.
 * [FORMAT if matching takes too long; MEMORY] */
int wg__split(const wg__splitter *splitter, const char *text, int64_t length,
              wg__part_visitor visit, void *context);

/* ---- GPT-2's alphabet. bpe.c ----
 * It maps each byte to a printable character, so that a vocabulary of byte strings is text. The
 * bytes ! to ~, 0xA1 to 0xAC and 0xAE to 0xFF are the characters with the same numbers. All other
 * bytes are U+0100, U+0101... in ascending order: a space is U+0120. */

/* Writes the letter of a byte as UTF-8. Returns its length, 1 or 2. */
int64_t wg__byte_to_letter(unsigned char byte, char letter[2]);

/* Appends the bytes of letters, or the letters if one is not in the alphabet. [MEMORY] */
int wg__letters_to_bytes(const char *letters, int64_t length, wg__text *text);

/* ---- Merges of a vocabulary. bpe.c ---- */

/* {0} is empty; free `table` with wg__pair_table_clear and `pairs` with wg__free. */
typedef struct wg__merge_list {
    wg__pair_table table; /* (left, right) -> (rank, joined) */
    int32_t (*pairs)[2];  /* by rank */
    int64_t count;
} wg__merge_list;

/* Fills an empty list: merge i has rank i. [MEMORY; FORMAT for a repeated merge, or if the
 * vocabulary lacks the joined text] */
int wg__set_merges(wg__merge_list *list, const wg__strings *vocabulary, int64_t count,
                   const int32_t (*merges)[2], const char *where);

/* A flat JSON list of ids; NULL without memory. */
json_t *wg__merges_to_json(const wg__merge_list *merges);

/* The pairs of a flat JSON list, freed with wg__free. [FORMAT, MEMORY] */
int32_t (*wg__merges_of_json(const json_t *json, int64_t *count, const char *where))[2];

/* ---- Byte-level BPE. bpe.c ---- */

typedef struct wg__bpe {
    wg_tokenizer base;
    char *pattern;
    wg__splitter *splitter;
    bool prefix_space, whole_words;
    int32_t bytes[256]; /* the token of each byte */
    wg__merge_list merges;
} wg__bpe;

/* A tokenizer of tokens in GPT-2's alphabet and of merges, pairs of ids in the order of training;
 * all arguments are copied. Every byte must have a token; special tokens are found by their
 * published names. Freed with wg_tokenizer_free. [FORMAT for a token that is empty, repeated or
 * missing, a merge that makes no token, or a bad pattern] */
wg_tokenizer *wg__bpe_new(int64_t count, const char *const *tokens, int64_t merge_count,
                          const int32_t (*merges)[2], const wg_bpe_options *options);

/* Reads vocab.json (token to id) and merges.txt (two tokens a line), which GPT-2 calls encoder.json
 * and vocab.bpe. Freed with wg_tokenizer_free. [NOT_FOUND, IO; FORMAT with the reason] */
wg_tokenizer *wg__bpe_load(const char *vocabulary_path, const char *merges_path);

/* Writes both files: temporary files, which are then renamed. [IO; ARGUMENT for another kind] */
int wg__bpe_save(const wg_tokenizer *tokenizer, const char *vocabulary_path,
                 const char *merges_path);

/* Reads a parsed vocab.json and the text of merges.txt, which it overwrites. */
wg_tokenizer *wg__bpe_read(const json_t *vocabulary, const char *vocabulary_name, char *merges,
                           int64_t length, const char *merges_name);

/* The tokens of an object {token: id} in the order of their ids, borrowed; the list is freed with
 * wg__free. [FORMAT unless the ids are 0, 1, 2..., each once] */
const char **wg__tokens_by_id(const json_t *object, int64_t *count, const char *name);

#endif
