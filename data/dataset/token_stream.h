/* A text as one row of token ids, for models that predict what comes next.
 *
 *     file     It was a dark night.
 *              <|endoftext|>
 *              The end.
 *     stream   [begin] It was a dark night. [begin] The end.
 *
 * Nothing of the text is changed: line breaks and spaces are tokens as any other. Where files have
 * lines "<|endoftext|>", these part documents. Where the tokenizer has a token for the begin of a
 * text, every document begins with it (as GPT-2's <|endoftext|>, which is both, and as llama2.c has
 * it); where it has one for the end alone, it ends with that. Then white space around documents
 * goes. Without such tokens the lines are left out and no more.
 *
 * The tokens stand in a token file (tokens.h), whatever the size of the text, and streams are to be
 * used from one thread at a time. What reads them fails with FORMAT if that file is damaged, and
 * with IO if the disk is. */
#ifndef WG_DATA_DATASET_TOKEN_STREAM_H
#define WG_DATA_DATASET_TOKEN_STREAM_H

#include "tokens.h"

WG_BEGIN_DECLS

typedef struct wg_token_stream wg_token_stream;

/* The part of each text that is read, as shares of its bytes. A cut is moved on to the end of a
 * character, and in a text with lines "<|endoftext|>" to the next of these, so that the parts [0,
 * x) and [x, 1) have nothing in common. */
typedef struct wg_token_stream_options {
    double begin;                    /* from here on */
    double end;                      /* up to here; 0: 1 */
    const wg_token_storage *storage; /* where the tokens are kept; NULL: in a temporary file */
} wg_token_stream_options;

/* Reads and tokenises text files; `options` may be NULL for all of them. The tokenizer is not kept.
 * Freed with wg_token_stream_free. [NOT_FOUND, IO; FORMAT for text that is not UTF-8, with file and
 * line, or of which nothing is left to read, and for a damaged token file; ARGUMENT for shares out
 * of order, and for a token file of another tokenizer or without what is asked for; MEMORY] */
WG_API wg_token_stream *wg_token_stream_load(int count, const char *const *paths,
                                             const wg_tokenizer *tokenizer,
                                             const wg_token_stream_options *options);

/* The same from a text in memory; length -1: up to the first NUL. */
WG_API wg_token_stream *wg_token_stream_from_text(const char *text, int64_t length,
                                                  const wg_tokenizer *tokenizer,
                                                  const wg_token_stream_options *options);

/* Two streams of the same texts, tokenised once: the last `share` of each, and what is before it;
 * the parts [0, 1 - share) and [1 - share, 1) as above. A token file that is among the paths must
 * have been made with a share held out. `storage` may be NULL. [as wg_token_stream_load] */
WG_API int wg_token_stream_load_split(int count, const char *const *paths,
                                      const wg_tokenizer *tokenizer, double share,
                                      const wg_token_storage *storage, wg_token_stream **training,
                                      wg_token_stream **held_out);

/* Frees a stream; NULL is allowed. */
WG_API void wg_token_stream_free(wg_token_stream *stream);

/* How many there are. Bytes are those of the text that the tokens stand for. Given NULL: 0. */
WG_API int64_t wg_token_stream_tokens(const wg_token_stream *stream);
WG_API int64_t wg_token_stream_bytes(const wg_token_stream *stream);
WG_API int64_t wg_token_stream_documents(const wg_token_stream *stream);

/* The token with which a document begins; document = wg_token_stream_documents gives the end of the
 * last. -1 out of range. */
WG_API int64_t wg_token_stream_document_start(const wg_token_stream *stream, int64_t document);

/* The size of the vocabulary that it was tokenised with. */
WG_API int64_t wg_token_stream_vocabulary(const wg_token_stream *stream);

/* Two streams with the same fingerprint are the same to a run (FNV-1a over the ids). */
WG_API int64_t wg_token_stream_fingerprint(const wg_token_stream *stream);

/* Copies `count` ids from token `first` on into `ids`. [INDEX] */
WG_API int wg_token_stream_read(const wg_token_stream *stream, int64_t first, int64_t count,
                                int32_t *ids);

/* The sources of a stream are the files that it was loaded from: how many they are, and with which
 * token each ends (-1 out of range). */
WG_API int64_t wg_token_stream_sources(const wg_token_stream *stream);
WG_API int64_t wg_token_stream_source_end(const wg_token_stream *stream, int64_t source);

/* Weights, above 0, of the sources: in which proportions batches take from them, whatever their
 * sizes; and that of one, 0 if there are none. [ARGUMENT unless there are as many as sources] */
WG_API int wg_token_stream_weigh(wg_token_stream *stream, int count, const double *weights);
WG_API double wg_token_stream_source_weight(const wg_token_stream *stream, int64_t source);

/* What predicting the tokens of `text` but the first by their frequency in `stream` loses: the mean
 * of -log p, p = (c + 1) / (n + V): c the token's count among the n tokens of the stream, V its
 * vocabulary (add-one smoothing). NaN for a text of one token, NULL, or with [INDEX, MEMORY] */
WG_API double wg_token_stream_unigram_loss(const wg_token_stream *stream,
                                           const wg_token_stream *text);

WG_END_DECLS

#endif
