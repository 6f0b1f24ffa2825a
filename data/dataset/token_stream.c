/* A text as one row of ids: see token_stream.h; stream_text.c has the rules by which texts become
 * tokens. */
#include "data/dataset/token_stream.h"

#include <math.h>

#include "data/dataset/stream_text.h"
#include "data/dataset/token_view.h"
#include "tensor/internal.h"

#define WHERE "token_stream"

/* Reading moves what is remembered of the disk, and nothing that a caller sees. */
struct wg_token_stream {
    wg__token_view *view;
};

/* ---- Making ---- */

/* Takes what a view holds, in every case. */
static wg_token_stream *new_stream(wg__token_view *view) {
    wg_token_stream *stream = wg__calloc(1, sizeof *stream);
    if (stream && (stream->view = wg__calloc(1, sizeof *stream->view))) {
        *stream->view = *view;
        return stream;
    }
    wg__free(stream);
    wg__token_view_clear(view);
    return NULL;
}

void wg_token_stream_free(wg_token_stream *stream) {
    if (!stream)
        return;
    wg__token_view_clear(stream->view);
    wg__free(stream->view);
    wg__free(stream);
}

static int make_request(wg__token_request *request, const wg_tokenizer *tokenizer,
                        const wg_token_stream_options *options) {
    const double begin = options ? options->begin : 0;
    const double end = options && options->end ? options->end : 1;
    if (!(begin >= 0 && begin < end && end <= 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the part from %g to %g of a text is none", begin,
                       end);
    *request = (wg__token_request){.rules = {.begin = begin, .cut = end, .end = end},
                                   .tokenizer = tokenizer,
                                   .storage = options ? options->storage : NULL,
                                   .where = WHERE,
                                   .read = wg__stream_text_read};
    return 0;
}

/* The stream of the first view, unless making the views failed. */
static wg_token_stream *take(wg__token_view views[WG__TOKEN_PARTS], int status) {
    wg__token_view_clear(&views[1]);
    return status == 0 ? new_stream(&views[0]) : NULL;
}

wg_token_stream *wg_token_stream_load(int count, const char *const *paths,
                                      const wg_tokenizer *tokenizer,
                                      const wg_token_stream_options *options) {
    wg__token_request request;
    wg__token_view views[WG__TOKEN_PARTS] = {{0}};
    if (!tokenizer || make_request(&request, tokenizer, options) < 0)
        return NULL;
    return take(views, wg__token_sources_load(&request, count, paths, views));
}

wg_token_stream *wg_token_stream_from_text(const char *text, int64_t length,
                                           const wg_tokenizer *tokenizer,
                                           const wg_token_stream_options *options) {
    wg__token_request request;
    wg__token_view views[WG__TOKEN_PARTS] = {{0}};
    if (!tokenizer || !text || make_request(&request, tokenizer, options) < 0)
        return NULL;
    wg__text_map map = wg__text_map_of(text, length);
    return take(views, wg__token_sources_of_texts(&request, &map, views));
}

int wg_token_stream_load_split(int count, const char *const *paths, const wg_tokenizer *tokenizer,
                               double share, const wg_token_storage *storage,
                               wg_token_stream **training, wg_token_stream **held_out) {
    wg__token_request request;
    wg__token_view views[WG__TOKEN_PARTS] = {{0}};
    const wg_token_stream_options all = {.storage = storage};
    *training = *held_out = NULL;
    if (!tokenizer || make_request(&request, tokenizer, &all) < 0)
        return -1;
    if (!(share > 0 && share < 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a share of %g cannot be held out", share);
    request.rules.cut = 1 - share;
    if (wg__token_sources_load(&request, count, paths, views) < 0)
        return -1;
    *training = new_stream(&views[0]);
    *held_out = new_stream(&views[1]);
    if (*training && *held_out)
        return 0;
    wg_token_stream_free(*training);
    wg_token_stream_free(*held_out);
    *training = *held_out = NULL;
    return -1;
}

int wg_token_stream_weigh(wg_token_stream *stream, int count, const double *weights) {
    return stream ? wg__token_view_weigh(stream->view, count, weights, WHERE) : -1;
}

/* ---- What it holds ---- */

int64_t wg_token_stream_tokens(const wg_token_stream *stream) {
    return stream ? stream->view->tokens : 0;
}

int64_t wg_token_stream_bytes(const wg_token_stream *stream) {
    return stream ? stream->view->bytes : 0;
}

int64_t wg_token_stream_documents(const wg_token_stream *stream) {
    return stream ? stream->view->documents : 0;
}

int64_t wg_token_stream_document_start(const wg_token_stream *stream, int64_t document) {
    return stream ? wg__token_view_document(stream->view, document) : -1;
}

int64_t wg_token_stream_vocabulary(const wg_token_stream *stream) {
    return stream ? stream->view->vocabulary : 0;
}

int64_t wg_token_stream_fingerprint(const wg_token_stream *stream) {
    return stream ? wg__token_view_fingerprint(stream->view) : 0;
}

int wg_token_stream_read(const wg_token_stream *stream, int64_t first, int64_t count,
                         int32_t *ids) {
    return stream ? wg__token_view_read(stream->view, first, count, ids, WHERE) : -1;
}

int64_t wg_token_stream_sources(const wg_token_stream *stream) {
    return stream ? stream->view->source_count : 0;
}

int64_t wg_token_stream_source_end(const wg_token_stream *stream, int64_t source) {
    if (!stream)
        return -1;
    return wg__token_view_document(stream->view, wg__token_view_source_end(stream->view, source));
}

double wg_token_stream_source_weight(const wg_token_stream *stream, int64_t source) {
    return stream ? wg__token_view_source_weight(stream->view, source) : 0;
}

wg__token_view *wg__token_stream_view(const wg_token_stream *stream) {
    return stream->view;
}

/* ---- Word frequency ---- */

static int check_vocabulary(const wg_token_stream *stream, const wg_token_stream *text) {
    if (text->view->vocabulary <= stream->view->vocabulary)
        return 0;
    return wg_fail(WG_ERROR_INDEX, WHERE,
                   "the text has a vocabulary of %lld tokens, the stream one of %lld",
                   (long long)text->view->vocabulary, (long long)stream->view->vocabulary);
}

typedef struct surprises {
    wg__token_view *view; /* whose frequencies count */
    double sum;
    bool begun; /* the first token is not predicted */
} surprises;

static void add_surprises(void *context, int64_t count, const int32_t *ids) {
    surprises *s = context;
    for (int64_t i = s->begun ? 0 : 1; i < count; i++)
        s->sum += wg__token_view_surprise(s->view, ids[i]);
    s->begun = true;
}

double wg_token_stream_unigram_loss(const wg_token_stream *stream, const wg_token_stream *text) {
    if (!stream || !text || check_vocabulary(stream, text) < 0)
        return NAN;
    surprises s = {.view = stream->view};
    if (wg__token_view_each(text->view, add_surprises, &s) < 0)
        return NAN;
    return s.sum / (double)(text->view->tokens - 1);
}
