/* Internal interface of byte-level BPE: the struct, merges as lists and tables, and reading and
 * writing its files; also GPT-2's alphabet of bytes and the splitter (split.c). */
#ifndef WG_DATA_TOKENIZER_BPE_KIND_H
#define WG_DATA_TOKENIZER_BPE_KIND_H

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/merges.h"

/* ---- Splitting a text by a regular expression, before merging. split.c ---- */

typedef struct wg__splitter wg__splitter;

/* GPT-2's pattern, as in encoder.py of openai/gpt-2. */
#define WG__GPT2_PATTERN                                                                           \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* A splitter by such a pattern. \s is Unicode's White_Space, as in the published tokenizers;
 * classes are Unicode's. Freed with wg__splitter_free. [FORMAT for a pattern that is invalid, too
 * long or uses an unsupported construct; MEMORY] */
wg__splitter *wg__splitter_new(const char *pattern);

/* Frees a splitter; NULL is allowed. */
void wg__splitter_free(wg__splitter *splitter);

/* Receives each part. A negative result stops and is passed on. */
typedef int (*wg__part_visitor)(void *context, const char *part, int64_t length);

/* Visits every match and every stretch between matches, in order. Together they are the text, and
 * none is empty. The text is UTF-8. [FORMAT if matching takes too long; MEMORY] */
int wg__split(const wg__splitter *splitter, const char *text, int64_t length,
              wg__part_visitor visit, void *context);

/* ---- GPT-2's alphabet ----
 * Each byte is one printable character, so that a vocabulary of bytes is text. Bytes that print
 * stand for themselves (! to ~, U+00A1 to U+00AC, U+00AE to U+00FF), the others for U+0100,
 * U+0101... in their order: a space is U+0120. */

/* Writes a byte's letter as UTF-8 and returns its length, 1 or 2. */
int64_t wg__byte_to_letter(unsigned char byte, char letter[2]);

/* Appends the bytes that letters of the alphabet stand for, or, if one is not of the alphabet, the
 * letters themselves. [MEMORY] */
int wg__letters_to_bytes(const char *letters, int64_t length, wg__text *text);

/* ---- Merges ---- */

typedef struct wg__merge_list {
    wg__pair_table table; /* (left, right) -> (rank, joined) */
    int32_t (*pairs)[2];  /* by rank */
    int64_t count;
} wg__merge_list;

/* Fills an empty list: merge i has rank i. [MEMORY; FORMAT for a merge whose joined text is not in
 * the vocabulary, or that occurs twice] */
int wg__set_merges(wg__merge_list *list, const wg__strings *vocabulary, int64_t count,
                   const int32_t (*merges)[2], const char *where);

void wg__clear_merges(wg__merge_list *list);

/* The pairs as a flat JSON list of ids; NULL without memory. */
json_t *wg__merges_to_json(const wg__merge_list *merges);

/* The pairs of such a list, freed with wg__free. NULL with FORMAT or MEMORY. */
int32_t (*wg__merges_of_json(const json_t *json, int64_t *count, const char *where))[2];

/* ---- The tokenizer ---- */

typedef struct wg__bpe {
    wg_tokenizer base;
    char *pattern;
    wg__splitter *splitter;
    bool prefix_space, whole_words;
    int32_t bytes[256]; /* the token of each */
    wg__merge_list merges;
} wg__bpe;

/* A tokenizer of these tokens, spelt in GPT-2's alphabet, and of merges: pairs of ids, in the order
 * in which they were learnt. Every byte must have a token; tokens outside the alphabet ("<|im
 * start|>") may be special or unused. "<|endoftext|>" and other special tokens are found by their
 * published names. All is copied. Freed with wg_tokenizer_free. [FORMAT for a token that is empty,
 * repeated or missing, a merge whose result is not a token, or a bad pattern] */
wg_tokenizer *wg__bpe_new(int64_t count, const char *const *tokens, int64_t merge_count,
                          const int32_t (*merges)[2], const wg_bpe_options *options);

/* Reads vocab.json (token to id) and merges.txt (two tokens a line); encoder.json and vocab.bpe are
 * other names of the same. Freed with wg_tokenizer_free. [NOT_FOUND, IO; FORMAT with the reason] */
wg_tokenizer *wg__bpe_load(const char *vocabulary_path, const char *merges_path,
                           const wg_bpe_options *options);

/* Writes these two files, each beside its path first and then renamed.
 * [IO; ARGUMENT if it is not a bpe tokenizer] */
int wg__bpe_save(const wg_tokenizer *tokenizer, const char *vocabulary_path,
                 const char *merges_path);

/* A tokenizer of vocab.json, parsed, and of the text of merges.txt, which is overwritten. The names
 * are for messages. */
wg_tokenizer *wg__bpe_read(const json_t *vocabulary, const char *vocabulary_name, char *merges,
                           int64_t length, const char *merges_name, const wg_bpe_options *options);

/* The tokens of an object {token: id} in the order of their ids, borrowed from it; the list is
 * freed with wg__free. NULL with FORMAT unless the ids are 0, 1, 2..., each once. */
const char **wg__tokens_by_id(const json_t *object, int64_t *count, const char *name);

#endif
