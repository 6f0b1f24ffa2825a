/* A text as one row of ids: see token_stream.h. */
#include "data/token_stream.h"

#include <math.h>
#include <string.h>

#include "data/growth.h"
#include "data/strings.h"
#include "data/text_file.h"
#include "tensor/internal.h"

#define WHERE "token_stream"

struct wg_token_stream {
    wg_token_list list;
    int64_t *starts; /* of documents */
    int64_t documents, start_capacity;
    int64_t bytes, vocabulary;
};

/* ---- Marks: lines that part documents ---- */

static const char mark[] = "<|endoftext|>";
enum { MARK_LENGTH = sizeof mark - 1 };

typedef struct span {
    const char *text;
    int64_t length;
} span;

/* The first line of `text` that is a mark, with its line break; after the text if there is none. */
static span find_mark(const char *text, int64_t length) {
    const char *end = text + length, *line = text;
    while (line < end) {
        const char *found = memmem(line, (size_t)(end - line), mark, MARK_LENGTH);
        if (!found)
            break;
        line = found + MARK_LENGTH;
        const bool begins = found == text || found[-1] == '\n';
        if (begins && line < end && *line == '\r')
            line++;
        if (begins && (line == end || *line == '\n'))
            return (span){found, (line < end ? line + 1 : line) - found};
    }
    return (span){end, 0};
}

/* ---- Reading ---- */

/* Where a share of a text ends: see wg_token_stream_options. */
static int64_t cut(const char *text, int64_t length, double share) {
    if (share >= 1)
        return length;
    int64_t at = (int64_t)(share * (double)length);
    while (at > 0 && at < length && ((unsigned char)text[at] & 0xC0) == 0x80)
        at++;
    if (at == 0 || find_mark(text, length).length == 0)
        return at;
    while (text[at - 1] != '\n' && at < length)
        at++;
    span next = find_mark(text + at, length - at);
    return next.text + next.length - text;
}

typedef struct reading {
    wg_token_stream *stream;
    const wg_tokenizer *tokenizer;
    int32_t begin, end; /* ids around a document; -1: none */
    wg_token_stream_options part;
} reading;

static span strip(span s) {
    while (s.length > 0 && memchr(" \t\r\n", s.text[0], 4))
        s = (span){s.text + 1, s.length - 1};
    while (s.length > 0 && memchr(" \t\r\n", s.text[s.length - 1], 4))
        s.length--;
    return s;
}

static int add_document(reading *r, span document) {
    wg_token_list *list = &r->stream->list;
    if (document.length == 0)
        return 0;
    wg_token_stream *stream = r->stream;
    int64_t *starts = wg__grow(stream->starts, stream->documents, &stream->start_capacity,
                               stream->documents + 1, sizeof *starts);
    if (!starts)
        return -1;
    stream->starts = starts;
    starts[stream->documents++] = list->count;
    stream->bytes += document.length;
    if (r->begin >= 0 && wg_token_list_append(list, r->begin) < 0)
        return -1;
    if (wg_tokenizer_encode(r->tokenizer, document.text, document.length, NULL, list) < 0)
        return -1;
    return r->end >= 0 ? wg_token_list_append(list, r->end) : 0;
}

/* Adds a text; `name` is for messages. */
static int read_text(reading *r, const char *text, int64_t length, const char *name) {
    if (wg__utf8_check(text, length, name, WHERE) < 0)
        return -1;
    const bool strips = (r->begin >= 0 || r->end >= 0) && find_mark(text, length).length > 0;
    const int64_t before = r->stream->documents, last = cut(text, length, r->part.end);
    int64_t at = cut(text, length, r->part.begin);
    while (at < last) {
        span next = find_mark(text + at, last - at);
        span document = {text + at, next.text - (text + at)};
        if (add_document(r, strips ? strip(document) : document) < 0)
            return -1;
        at = next.text + next.length - text;
    }
    if (r->stream->documents == before)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s has no text in the part that is to be read",
                       name);
    return 0;
}

static int read_file(reading *r, const char *path) {
    int64_t length;
    char *text = wg__text_file_read(path, &length, WHERE);
    if (!text)
        return -1;
    int status = read_text(r, text, length, path);
    wg__free(text);
    return status;
}

static int begin_reading(reading *r, const wg_tokenizer *tokenizer,
                         const wg_token_stream_options *options) {
    *r = (reading){.tokenizer = tokenizer, .part = {.end = 1}};
    if (options)
        r->part = *options;
    if (r->part.end == 0)
        r->part.end = 1;
    if (!(r->part.begin >= 0 && r->part.begin < r->part.end && r->part.end <= 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the part from %g to %g of a text is none",
                       r->part.begin, r->part.end);
    r->begin = wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN);
    r->end = wg_tokenizer_special(tokenizer, WG_TOKEN_END);
    if (r->begin >= 0)
        r->end = -1; /* one of them parts documents */
    r->stream = wg__calloc(1, sizeof *r->stream);
    if (!r->stream)
        return -1;
    r->stream->vocabulary = wg_tokenizer_size(tokenizer);
    return 0;
}

static wg_token_stream *finish(reading *r, int status) {
    if (status == 0)
        return r->stream;
    wg_token_stream_free(r->stream);
    return NULL;
}

wg_token_stream *wg_token_stream_load(int count, const char *const *paths,
                                      const wg_tokenizer *tokenizer,
                                      const wg_token_stream_options *options) {
    if (!tokenizer)
        return NULL;
    if (count < 1) {
        wg_fail(WG_ERROR_ARGUMENT, WHERE, "no file is given");
        return NULL;
    }
    reading r;
    int status = begin_reading(&r, tokenizer, options);
    for (int i = 0; status == 0 && i < count; i++)
        status = read_file(&r, paths[i]);
    return finish(&r, status);
}

wg_token_stream *wg_token_stream_from_text(const char *text, int64_t length,
                                           const wg_tokenizer *tokenizer,
                                           const wg_token_stream_options *options) {
    if (!tokenizer || !text)
        return NULL;
    reading r;
    int status = begin_reading(&r, tokenizer, options);
    if (status == 0)
        status = read_text(&r, text, length < 0 ? (int64_t)strlen(text) : length, "the text");
    return finish(&r, status);
}

void wg_token_stream_free(wg_token_stream *stream) {
    if (!stream)
        return;
    wg_token_list_free(&stream->list);
    wg__free(stream->starts);
    wg__free(stream);
}

/* ---- What it holds ---- */

int64_t wg_token_stream_tokens(const wg_token_stream *stream) {
    return stream ? stream->list.count : 0;
}

int64_t wg_token_stream_bytes(const wg_token_stream *stream) {
    return stream ? stream->bytes : 0;
}

int64_t wg_token_stream_documents(const wg_token_stream *stream) {
    return stream ? stream->documents : 0;
}

int64_t wg_token_stream_document_start(const wg_token_stream *stream, int64_t document) {
    if (!stream || document < 0 || document > stream->documents)
        return -1;
    return document < stream->documents ? stream->starts[document] : stream->list.count;
}

int64_t wg_token_stream_vocabulary(const wg_token_stream *stream) {
    return stream ? stream->vocabulary : 0;
}

int64_t wg_token_stream_fingerprint(const wg_token_stream *stream) {
    uint64_t hash = WG__HASH_EMPTY;
    for (int64_t i = 0; i < wg_token_stream_tokens(stream); i++)
        hash = (hash ^ (uint32_t)stream->list.ids[i]) * UINT64_C(1099511628211);
    return (int64_t)hash;
}

int wg_token_stream_read(const wg_token_stream *stream, int64_t first, int64_t count,
                         int32_t *ids) {
    if (!stream)
        return -1;
    if (first < 0 || count < 0 || count > stream->list.count - first)
        return wg_fail(WG_ERROR_INDEX, WHERE, "tokens %lld to %lld of a stream of %lld",
                       (long long)first, (long long)(first + count), (long long)stream->list.count);
    memcpy(ids, stream->list.ids + first, (size_t)count * sizeof *ids);
    return 0;
}

/* ---- Word frequency ---- */

static int check_vocabulary(const wg_token_stream *stream, const wg_token_stream *text) {
    if (text->vocabulary <= stream->vocabulary)
        return 0;
    return wg_fail(WG_ERROR_INDEX, WHERE,
                   "the text has a vocabulary of %lld tokens, the stream one of %lld",
                   (long long)text->vocabulary, (long long)stream->vocabulary);
}

double wg_token_stream_unigram_loss(const wg_token_stream *stream, const wg_token_stream *text) {
    if (!stream || !text || check_vocabulary(stream, text) < 0)
        return NAN;
    int64_t *counts = wg__calloc((size_t)stream->vocabulary, sizeof *counts);
    if (!counts)
        return NAN;
    for (int64_t i = 0; i < stream->list.count; i++)
        counts[stream->list.ids[i]]++;
    const double total = (double)(stream->list.count + stream->vocabulary);
    double sum = 0;
    for (int64_t i = 1; i < text->list.count; i++)
        sum -= log((double)(counts[text->list.ids[i]] + 1) / total);
    wg__free(counts);
    return sum / (double)(text->list.count - 1);
}
