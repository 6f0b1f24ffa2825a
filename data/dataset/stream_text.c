/* The rules by which a text becomes one row of tokens: see token_stream.h. */
#include "data/dataset/stream_text.h"

#include <string.h>

#include "data/tokenizer/kind.h"
#include "tensor/internal.h"

/* ---- Marks: lines that part documents ---- */

static const char mark[] = "<|endoftext|>";
enum { MARK_LENGTH = sizeof mark - 1, SEARCH_STEP = 1 << 20 };

/* Bytes first .. end - 1 of a text. */
typedef struct span {
    int64_t first, end;
} span;

/* Where the bytes of a mark stand, in a line or not; `end` if they do not. */
static int64_t find_bytes(wg__text_map *text, int64_t at, int64_t end) {
    while (at < end) {
        wg__text_map_pass(text, at);
        const int64_t left = end - at;
        const int64_t length = left < SEARCH_STEP ? left : SEARCH_STEP;
        const char *found = memmem(text->bytes + at, (size_t)length, mark, MARK_LENGTH);
        if (found)
            return found - text->bytes;
        at += length == left ? length : length - MARK_LENGTH + 1;
    }
    return end;
}

/* The first line from `begin` on, where one begins, that is a mark, with its line break; at `end`
 * if there is none. */
static span find_mark(wg__text_map *text, int64_t begin, int64_t end) {
    const char *bytes = text->bytes;
    for (int64_t found = begin; (found = find_bytes(text, found, end)) < end;) {
        int64_t line = found + MARK_LENGTH;
        const bool begins = found == begin || bytes[found - 1] == '\n';
        if (begins && line < end && bytes[line] == '\r')
            line++;
        if (begins && (line == end || bytes[line] == '\n'))
            return (span){found, line < end ? line + 1 : line};
        found = line;
    }
    return (span){end, end};
}

static bool has_mark(wg__text_map *text) {
    return find_mark(text, 0, text->length).first < text->length;
}

/* Where a share of a text ends: see wg_token_stream_options. */
static int64_t cut(wg__text_map *text, double share, bool marked) {
    const char *bytes = text->bytes;
    if (share >= 1)
        return text->length;
    int64_t at = (int64_t)(share * (double)text->length);
    while (at > 0 && at < text->length && ((unsigned char)bytes[at] & 0xC0) == 0x80)
        at++;
    if (at == 0 || !marked)
        return at;
    while (at < text->length && bytes[at - 1] != '\n')
        at++;
    return find_mark(text, at, text->length).end;
}

/* ---- Reading ---- */

typedef struct reading {
    wg__text_map *text;
    wg__token_file *file;
    const wg_tokenizer *tokenizer;
    int32_t begin, end;  /* ids around a document; -1: none */
    bool strips;         /* white space around documents goes */
    wg__token_sink sink; /* what is on its way to the file */
} reading;

static int flush(reading *r) {
    const int64_t count = r->sink.list.count;
    r->sink.list.count = 0;
    return wg__token_file_add(r->file, count, r->sink.list.ids);
}

/* Tokens go to the file as they come: a document need not fit into memory. */
static int drain(void *context) {
    reading *r = context;
    wg__text_map_rest(r->text);
    return flush(r);
}

static span strip(const char *bytes, span s) {
    while (s.first < s.end && memchr(" \t\r\n", bytes[s.first], 4))
        s.first++;
    while (s.first < s.end && memchr(" \t\r\n", bytes[s.end - 1], 4))
        s.end--;
    return s;
}

static int add_document(reading *r, span document) {
    const int64_t length = document.end - document.first;
    if (length == 0)
        return 0;
    if (r->begin >= 0 && wg_token_list_append(&r->sink.list, r->begin) < 0)
        return -1;
    if (wg__tokenizer_encode(r->tokenizer, r->text->bytes + document.first, length, NULL,
                             &r->sink) < 0)
        return -1;
    if (r->end >= 0 && wg_token_list_append(&r->sink.list, r->end) < 0)
        return -1;
    if (flush(r) < 0)
        return -1;
    return wg__token_file_end_document(r->file, length);
}

static int read_part(reading *r, int64_t at, int64_t last) {
    while (at < last) {
        const span next = find_mark(r->text, at, last);
        const span document = {at, next.first};
        if (add_document(r, r->strips ? strip(r->text->bytes, document) : document) < 0)
            return -1;
        at = next.end;
    }
    return 0;
}

static int read_parts(reading *r, const wg__token_rules *rules, const char *name) {
    const bool marked = has_mark(r->text);
    const int64_t cuts[] = {cut(r->text, rules->begin, marked), cut(r->text, rules->cut, marked),
                            cut(r->text, rules->end, marked)};
    r->strips = (r->begin >= 0 || r->end >= 0) && marked;
    for (int part = 0; part < WG__TOKEN_PARTS; part++) {
        const int64_t before = r->file->document_count;
        if (part > 0 && rules->cut == rules->end)
            break;
        r->file->part = part;
        if (read_part(r, cuts[part], cuts[part + 1]) < 0)
            return -1;
        if (r->file->document_count == before)
            return wg_fail(WG_ERROR_FORMAT, "token_stream",
                           "%s has no text in the part that is to be read", name);
    }
    return 0;
}

int wg__stream_text_read(const wg__token_request *request, wg__text_map *text,
                         const char *const *name, wg__token_file *file) {
    reading r = {.text = text,
                 .file = file,
                 .tokenizer = request->tokenizer,
                 .begin = wg_tokenizer_special(request->tokenizer, WG_TOKEN_BEGIN),
                 .end = wg_tokenizer_special(request->tokenizer, WG_TOKEN_END)};
    if (r.begin >= 0)
        r.end = -1; /* one of them parts documents */
    r.sink = (wg__token_sink){.drain = drain, .context = &r};
    const int status = read_parts(&r, &request->rules, *name);
    wg_token_list_free(&r.sink.list);
    return status;
}
