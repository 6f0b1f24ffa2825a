/* Tokenizers: text to ids of a vocabulary and back.
 *
 * One type serves every kind (WordPiece now; see wordpiece.h): the kinds differ in how they are
 * made, never in how they are used.
 *
 *     wg_tokenizer *tokenizer = wg_tokenizer_load("vocab.txt");
 *     wg_token_list list = {0};
 *     if (wg_tokenizer_encode(tokenizer, "Call me Ishmael.", -1, NULL, &list) == 0)
 *         use(list.ids, list.count);
 *     wg_token_list_free(&list);
 *     wg_tokenizer_free(tokenizer);
 *
 * A tokenizer never changes after it was made, so threads may share one. */
#ifndef WG_DATA_TOKENIZER_H
#define WG_DATA_TOKENIZER_H

#include "../io/text.h"
#include "../tensor/tensor.h"

typedef struct wg_tokenizer wg_tokenizer;

/* Ids, in memory that grows. {0} is an empty list. */
typedef struct wg_token_list {
    int32_t *ids;
    int64_t count, capacity;
} wg_token_list;

/* Appends one id. [MEMORY] */
WG_API int wg_token_list_append(wg_token_list *list, int32_t id);

/* Frees the ids and makes the list empty. */
WG_API void wg_token_list_free(wg_token_list *list);

/* The tokens with a meaning of their own. */
typedef enum wg_special_token {
    WG_TOKEN_PAD,
    WG_TOKEN_UNKNOWN,
    WG_TOKEN_CLASS,
    WG_TOKEN_SEPARATOR,
    WG_TOKEN_MASK,
    WG_TOKEN_SPECIAL_COUNT
} wg_special_token;

/* ---- What a tokenizer is. Given NULL these answer NULL, 0, -1 or false. ---- */

/* "wordpiece"...; borrowed. */
WG_API const char *wg_tokenizer_kind(const wg_tokenizer *tokenizer);

/* The size of the vocabulary: ids are 0 .. size - 1. */
WG_API int64_t wg_tokenizer_size(const wg_tokenizer *tokenizer);

/* The text of a token as the vocabulary has it ("##ing"); borrowed. NULL outside the vocabulary. */
WG_API const char *wg_tokenizer_token(const wg_tokenizer *tokenizer, int32_t id);

/* The id of a token given as the vocabulary has it, or -1. */
WG_API int32_t wg_tokenizer_id(const wg_tokenizer *tokenizer, const char *token);

/* The id of a special token, or -1 if this vocabulary has none. */
WG_API int32_t wg_tokenizer_special(const wg_tokenizer *tokenizer, wg_special_token which);

/* True for the id of any special token. */
WG_API bool wg_tokenizer_is_special(const wg_tokenizer *tokenizer, int32_t id);

/* ---- Encoding and decoding ---- */

typedef struct wg_encode_options {
    bool special_tokens; /* read "[MASK]" and the like in the text as the special tokens; otherwise
                          * they are text as any other, as the published tokenizers have it */
} wg_encode_options;

/* Appends the ids of a UTF-8 text to `list`. length is in bytes; -1: up to the first NUL. Nothing
 * is added around it: [CLS] and [SEP] are the affair of who builds batches. Linear in the length.
 * On failure the list is as it was. [FORMAT for text that is not UTF-8, with the offset; MEMORY] */
WG_API int wg_tokenizer_encode(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                               const wg_encode_options *options, wg_token_list *list);

typedef struct wg_decode_options {
    bool skip_special; /* leave special tokens out */
    bool plain;        /* one space between words, also around punctuation */
} wg_decode_options;

/* The text that ids stand for: pieces joined to words, and words and punctuation spaced as English
 * is. What encoding dropped (case, accents, spacing) does not come back. The caller frees it with
 * wg_text_free. [INDEX for an id outside the vocabulary] */
WG_API char *wg_tokenizer_decode(const wg_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                                 const wg_decode_options *options);

/* ---- Keeping ---- */

/* All that is needed to encode and decode, as one JSON text:
 * {"format": "wengert-tokenizer", "kind": "wordpiece", "options": {...}, "vocabulary": [...]}.
 * The caller frees it with wg_text_free. */
WG_API char *wg_tokenizer_to_json(const wg_tokenizer *tokenizer);

/* The tokenizer that wg_tokenizer_to_json described. [FORMAT] */
WG_API wg_tokenizer *wg_tokenizer_from_json(const char *json);

/* Writes that JSON to a file, beside it first and then renamed. [IO] */
WG_API int wg_tokenizer_save(const wg_tokenizer *tokenizer, const char *path);

/* Reads a tokenizer from a file: a checkpoint that has one, JSON of wg_tokenizer_save, or, for
 * anything else, a published vocab.txt of lower-cased WordPieces (wordpiece.h reads cased ones).
 * [NOT_FOUND, IO, FORMAT] */
WG_API wg_tokenizer *wg_tokenizer_load(const char *path);

/* Frees a tokenizer; NULL is allowed. */
WG_API void wg_tokenizer_free(wg_tokenizer *tokenizer);

#endif
