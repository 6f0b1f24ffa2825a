/* A row of tokens made of parts of token files, with no token copied: what corpora, streams and
 * pairs are.
 *
 *     file     |doc 0     |doc 1  |doc 2    |doc 3   |doc 4     |
 *     runs     |----- run 0 ------|         |----- run 1 -------|      documents one behind the
 *     view     |0         |1      |2        |3          |              other; sentences and tokens
 *                                                                      are counted anew, too
 *
 * A view has sources, the files that a user named, one behind the other, and each may have a
 * weight: how often it is drawn from. */
#ifndef WG_DATA_DATASET_TOKEN_VIEW_H
#define WG_DATA_DATASET_TOKEN_VIEW_H

#include "data/dataset/token_file.h"

/* Where a run begins, in its file and in the view. */
typedef struct wg__token_run {
    wg__token_file *file; /* NULL: the end of the last one */
    int64_t file_document, file_sentence, file_token;
    int64_t document, sentence, token;
} wg__token_run;

typedef struct wg__token_view {
    wg__token_run *runs; /* and the end */
    int64_t run_count, run_capacity;
    int64_t run; /* the one that was looked at last */
    int64_t documents, sentences, tokens, bytes;
    int64_t vocabulary;
    int64_t source_count, source_capacity;
    int64_t *source_ends; /* in documents */
    double *weights;      /* of the sources; NULL: none */
    int64_t *counts;      /* of each token of the vocabulary; NULL: not asked for yet */
} wg__token_view;

void wg__token_view_clear(wg__token_view *view);

/* Appends documents of a file; those of another view. [MEMORY, IO, FORMAT] */
int wg__token_view_add(wg__token_view *view, wg__token_file *file, int64_t first, int64_t end);
int wg__token_view_add_view(wg__token_view *view, const wg__token_view *from, int64_t first,
                            int64_t end);

/* What was appended since the last call is a source. [MEMORY] */
int wg__token_view_end_source(wg__token_view *view);

/* The weights of the sources, copied. [ARGUMENT unless there are as many, and all above 0] */
int wg__token_view_weigh(wg__token_view *view, int count, const double *weights, const char *where);

/* Where a document or sentence of the view begins; given their number, the end of the last. -1 out
 * of range. As for wg__token_file_document, loops end even if the disk fails. */
int64_t wg__token_view_document(wg__token_view *view, int64_t document);
int64_t wg__token_view_sentence(wg__token_view *view, int64_t sentence);

/* The run of a document; NULL out of range. */
const wg__token_run *wg__token_view_run(wg__token_view *view, int64_t document);

/* Copies tokens; `where` names the caller. [INDEX; FORMAT for damage; IO, MEMORY] */
int wg__token_view_read(wg__token_view *view, int64_t first, int64_t count, int32_t *ids,
                        const char *where);

/* Calls `visit` with all tokens in order, some thousands at a time. [as reading] */
typedef void (*wg__token_visitor)(void *context, int64_t count, const int32_t *ids);
int wg__token_view_each(wg__token_view *view, wg__token_visitor visit, void *context);

/* FNV-1a over the ids; 0 with an error. */
int64_t wg__token_view_fingerprint(wg__token_view *view);

/* The sources' ends, in documents, and weights; -1 and 0 out of range, and 0 where there are none.
 */
int64_t wg__token_view_source_end(const wg__token_view *view, int64_t source);
double wg__token_view_source_weight(const wg__token_view *view, int64_t source);

/* What corpora, streams and pairs are views of, borrowed; for batches, which see no more. */
struct wg_corpus;
struct wg_token_stream;
struct wg_sentence_pairs;
wg__token_view *wg__corpus_view(const struct wg_corpus *corpus);
wg__token_view *wg__token_stream_view(const struct wg_token_stream *stream);
wg__token_view *wg__sentence_pairs_view(const struct wg_sentence_pairs *pairs);

/* -log p of a token by its frequency, add-one smoothing. NaN with an error. */
double wg__token_view_surprise(wg__token_view *view, int64_t id);

#endif
