/* Tokenizers: text to ids of a vocabulary and back.
 *
 * One type serves every kind: the kinds differ in how they are made, never in how they are used.
 *
 *     wordpiece      wordpiece.h       BERT's
 *     bpe            bpe.h             byte-level byte-pair encoding, GPT-2's
 *     sentencepiece  sentencepiece.h   BPE and unigram: LLaMA's, T5's, GLM's
 *     llama2c        llama2c.h         llama2.c's tokenizer.bin
 *     char, byte     characters.h      one token a character, one token a byte
 *
 *     wg_tokenizer *tokenizer = wg_tokenizer_load("vocab.txt");
 *     wg_token_list list = {0};
 *     if (wg_tokenizer_encode(tokenizer, "Call me Ishmael.", -1, NULL, &list) == 0)
 *         use(list.ids, list.count);
 *     wg_token_list_free(&list);
 *     wg_tokenizer_free(tokenizer);
 *
 * A tokenizer never changes after it was made, so threads may share one. */
#ifndef WG_DATA_TOKENIZER_TOKENIZER_H
#define WG_DATA_TOKENIZER_TOKENIZER_H

#include "../../base/alloc.h"
#include "../../tensor/tensor.h"

WG_BEGIN_DECLS

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
    WG_TOKEN_BEGIN, /* of a text; GPT-2's <|endoftext|> is its begin and end */
    WG_TOKEN_END,
    WG_TOKEN_SPECIAL_COUNT
} wg_special_token;

/* ---- What a tokenizer is. Given NULL these answer NULL, 0, -1 or false. ---- */

/* "wordpiece"...; borrowed. */
WG_API const char *wg_tokenizer_kind(const wg_tokenizer *tokenizer);

/* The size of the vocabulary: ids are 0 .. size - 1. */
WG_API int64_t wg_tokenizer_size(const wg_tokenizer *tokenizer);

/* The text of a token as the vocabulary has it ("##ing", "\u0120the", "\u2581the", "<0x0A>");
 * borrowed. NULL outside the vocabulary. */
WG_API const char *wg_tokenizer_token(const wg_tokenizer *tokenizer, int32_t id);

/* The id of a token given as the vocabulary has it, or -1. */
WG_API int32_t wg_tokenizer_id(const wg_tokenizer *tokenizer, const char *token);

/* The id of a special token, or -1 if this vocabulary has none. */
WG_API int32_t wg_tokenizer_special(const wg_tokenizer *tokenizer, wg_special_token which);

/* True for the id of any special token, also of one with a meaning that has no name here. */
WG_API bool wg_tokenizer_is_special(const wg_tokenizer *tokenizer, int32_t id);

/* ---- Encoding and decoding ---- */

typedef struct wg_encode_options {
    bool special_tokens; /* read "[MASK]", "<|endoftext|>" and the like in the text as the special
                          * tokens; otherwise they are text as any other */
} wg_encode_options;

/* Appends the ids of a UTF-8 text to `list`. length is in bytes; -1: up to the first NUL. Nothing
 * is added around it: [CLS] and [SEP], begin and end are the affair of who builds batches.
 * On failure the list is as it was. [FORMAT for text that is not UTF-8, with the offset, or that
 * holds a character that a tokenizer without an unknown token does not know; MEMORY] */
WG_API int wg_tokenizer_encode(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                               const wg_encode_options *options, wg_token_list *list);

typedef struct wg_decode_options {
    bool skip_special; /* leave special tokens out */
    bool plain;        /* WordPiece: one space between words, also around punctuation */
} wg_decode_options;

/* The text that ids stand for. Kinds that keep all of a text (bpe, byte, char, sentencepiece
 * without normalisation) give it back as it was; WordPiece joins pieces to words and spaces words
 * and punctuation as English is, but case, accents and spacing do not come back. Always UTF-8:
 * bytes that are none become U+FFFD. A U+0000 that ids stand for is in it, too, and looks like its
 * end: a stream tells lengths. The caller frees it with wg_text_free. [INDEX for an id outside the
 * vocabulary] */
WG_API char *wg_tokenizer_decode(const wg_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                                 const wg_decode_options *options);

/* Decoding as ids come, for showing a text while it is generated: what the calls give, put
 * together, is what wg_tokenizer_decode gives of all ids.
 *
 *     wg_decode_stream *stream = wg_decode_stream_new(tokenizer, NULL);
 *     while ((id = next()) != end)
 *         fputs(wg_decode_stream_next(stream, id, NULL), stdout);
 *     puts(wg_decode_stream_end(stream, NULL));
 *     wg_decode_stream_free(stream);
 */
typedef struct wg_decode_stream wg_decode_stream;

/* A stream at the beginning of a text. The tokenizer must outlive it. Freed with
 * wg_decode_stream_free. [MEMORY] */
WG_API wg_decode_stream *wg_decode_stream_new(const wg_tokenizer *tokenizer,
                                              const wg_decode_options *options);

/* The text that one more id adds: whole characters, while bytes of an unfinished one are held back
 * (then it may be empty). `length`, unless it is NULL, tells its bytes, as a text may hold U+0000.
 * Borrowed until the next call. [INDEX, MEMORY] */
WG_API const char *wg_decode_stream_next(wg_decode_stream *stream, int32_t id, int64_t *length);

/* What was still held back, as U+FFFD; "" for nothing. The stream is then at the beginning again.
 * Borrowed until the next call. [MEMORY] */
WG_API const char *wg_decode_stream_end(wg_decode_stream *stream, int64_t *length);

/* Frees a stream; NULL is allowed. */
WG_API void wg_decode_stream_free(wg_decode_stream *stream);

/* ---- Keeping ---- */

/* All that is needed to encode and decode, as one JSON text:
 * {"format": "wengert-tokenizer", "kind": "wordpiece", "options": {...}, "vocabulary": [...],
 *  "special": {"mask": 4, ...}, "added": [...]}.
 * The caller frees it with wg_text_free. */
WG_API char *wg_tokenizer_to_json(const wg_tokenizer *tokenizer);

/* The tokenizer that wg_tokenizer_to_json described. [FORMAT] */
WG_API wg_tokenizer *wg_tokenizer_from_json(const char *json);

/* Writes that JSON to a file, beside it first and then renamed. [IO] */
WG_API int wg_tokenizer_save(const wg_tokenizer *tokenizer, const char *path);

/* Writes the files by which other programs know a tokenizer into a folder that is there, as far as
 * they can say what it does: vocab.txt (WordPiece); vocab.json and merges.txt (bpe); a published
 * tokenizer.json; a SentencePiece tokenizer.model; llama2.c's tokenizer.bin; with
 * tokenizer_config.json and special_tokens_map.json; and wengert.json of wg_tokenizer_save.
 * *published: there is more than that. [IO, MEMORY] */
WG_API int wg_tokenizer_export(const wg_tokenizer *tokenizer, const char *folder, bool *published);

/* Reads a tokenizer from a file, whose format is found by what is in it: a checkpoint that has one;
 * JSON of wg_tokenizer_save; a published tokenizer.json; vocab.json or merges.txt of GPT-2, each
 * with the other beside it; a SentencePiece tokenizer.model; llama2.c's tokenizer.bin; or, for any
 * other text, a vocab.txt of WordPieces, lower-cased unless a tokenizer_config.json beside it says
 * "do_lower_case": false. Of a folder, the first of wengert.json, tokenizer.json, tokenizer.model,
 * vocab.json, vocab.txt and tokenizer.bin that it holds. [NOT_FOUND, IO, FORMAT] */
WG_API wg_tokenizer *wg_tokenizer_load(const char *path);

/* True if a folder has a file that wg_tokenizer_load reads of a folder. */
WG_API bool wg_tokenizer_is_in(const char *folder);

/* Frees a tokenizer; NULL is allowed. */
WG_API void wg_tokenizer_free(wg_tokenizer *tokenizer);

WG_END_DECLS

#endif
