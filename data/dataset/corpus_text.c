/* The rules by which a text becomes documents of sentences: see corpus.h. */
#include "data/dataset/corpus_text.h"

#include <string.h>

#include "data/dataset/sentences.h"
#include "tensor/internal.h"

/* Documents of text without marks: cut at a paragraph's end from the first number on, and at the
 * second anyway. */
#define CUT_AFTER 64
#define CUT_AT_LATEST 128

#define DOCUMENT_BLANK_LINES 3

/* ---- Lines ---- */

typedef struct line {
    const char *text;
    int64_t length; /* without blanks at its ends */
} line;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Takes the line at *at and moves *at behind it. */
static line next_line(wg__text_map *text, int64_t *at) {
    wg__text_map_pass(text, *at);
    const char *begin = text->bytes + *at;
    const char *newline = memchr(begin, '\n', (size_t)(text->length - *at));
    const char *end = newline ? newline : text->bytes + text->length;
    *at = end - text->bytes + 1;
    while (begin < end && is_blank(*begin))
        begin++;
    while (begin < end && is_blank(end[-1]))
        end--;
    return (line){begin, end - begin};
}

/* What TinyStories and others put between documents. */
static bool is_end_of_text(line l) {
    static const char mark[] = "<|endoftext|>";
    return l.length == sizeof mark - 1 && memcmp(l.text, mark, sizeof mark - 1) == 0;
}

/* ---- Telling the formats apart ---- */

/* The length of the mark of a list with which a line ends, or 0. */
static int64_t end_mark(line l, const char *const *marks) {
    for (; *marks; marks++) {
        int64_t size = (int64_t)strlen(*marks);
        if (l.length >= size && memcmp(l.text + l.length - size, *marks, (size_t)size) == 0)
            return size;
    }
    return 0;
}

static bool ends_as_sentence(line l) {
    static const char *const stops[] = {".",      "?",      "!",      "\u2026",
                                        "\u3002", "\uff01", "\uff1f", NULL};
    static const char *const closers[] = {"\"", "'", ")", "]", "\u201d", "\u2019", "\u00bb", NULL};
    for (int64_t size; (size = end_mark(l, closers)) > 0;)
        l.length -= size;
    return end_mark(l, stops) > 0;
}

static int64_t count_sentences(line l) {
    int64_t count = 0;
    for (int64_t at = 0; at < l.length; count++)
        at = wg__sentence_end(l.text, at, l.length);
    return count;
}

wg_corpus_format wg__corpus_text_detect(wg__text_map *text) {
    int64_t lines = 0, ended = 0, sentences = 0;
    for (int64_t at = 0; at < text->length;) {
        line l = next_line(text, &at);
        if (l.length == 0)
            continue;
        lines++;
        ended += ends_as_sentence(l);
        sentences += count_sentences(l);
    }
    /* Wrapped lines rarely end as sentences do; paragraphs of a line each have several. */
    bool one_each = ended * 10 >= lines * 7 && sentences * 2 <= lines * 3;
    return one_each ? WG_CORPUS_SENTENCES : WG_CORPUS_PLAIN;
}

/* ---- Reading ---- */

typedef struct reading {
    wg__text_map *text;
    wg__token_file *file;
    const wg_tokenizer *tokenizer;
    wg_token_list ids; /* of the sentence at hand */
    bool cut;          /* the text has no marks between documents */
    int64_t bytes;     /* of the open document's sentences */
} reading;

static int end_document(reading *r) {
    const int64_t bytes = r->bytes;
    r->bytes = 0;
    return wg__token_file_end_document(r->file, bytes);
}

static int read_sentence(reading *r, const char *text, int64_t length, int64_t cut_at) {
    r->ids.count = 0;
    if (wg_tokenizer_encode(r->tokenizer, text, length, NULL, &r->ids) < 0 ||
        wg__token_file_add(r->file, r->ids.count, r->ids.ids) < 0 ||
        wg__token_file_end_sentence(r->file) < 0)
        return -1;
    r->bytes += length;
    wg__text_map_pass(r->text, text - r->text->bytes);
    if (r->cut && wg__token_file_open_sentences(r->file) >= cut_at)
        return end_document(r);
    return 0;
}

/* False for a row of stars and the like. */
static bool has_words(const char *text, int64_t length) {
    for (int64_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c >= 0x80)
            return true;
    }
    return false;
}

static int read_paragraph(reading *r, const char *text, int64_t length) {
    if (!has_words(text, length))
        return 0;
    for (int64_t at = 0; at < length;) {
        int64_t end = wg__sentence_end(text, at, length);
        if (read_sentence(r, text + at, end - at, CUT_AT_LATEST) < 0)
            return -1;
        at = end;
    }
    if (r->cut && wg__token_file_open_sentences(r->file) >= CUT_AFTER)
        return end_document(r);
    return 0;
}

/* Whether anything between the first and the last text ends a document. */
static bool has_marks(wg__text_map *text, int64_t blank_lines) {
    int64_t blank = 0;
    bool begun = false, marked = false;
    for (int64_t at = 0; at < text->length;) {
        line l = next_line(text, &at);
        bool mark = is_end_of_text(l);
        if (l.length > 0 && !mark) {
            if (begun && (blank >= blank_lines || marked))
                return true;
            begun = true;
            marked = false;
            blank = 0;
        } else {
            marked |= mark;
            blank++;
        }
    }
    return false;
}

static int read_plain(reading *r, wg__text_map *text) {
    r->cut = !has_marks(text, DOCUMENT_BLANK_LINES);
    const char *paragraph = NULL, *end = NULL;
    int64_t blank = 0;
    for (int64_t at = 0; at < text->length;) {
        line l = next_line(text, &at);
        bool mark = is_end_of_text(l);
        if (l.length > 0 && !mark) {
            if (!paragraph)
                paragraph = l.text;
            end = l.text + l.length;
            blank = 0;
            continue;
        }
        if (paragraph && read_paragraph(r, paragraph, end - paragraph) < 0)
            return -1;
        paragraph = NULL;
        if ((mark || ++blank == DOCUMENT_BLANK_LINES) && end_document(r) < 0)
            return -1;
    }
    if (paragraph && read_paragraph(r, paragraph, end - paragraph) < 0)
        return -1;
    return end_document(r);
}

static int read_lines(reading *r, wg__text_map *text) {
    r->cut = !has_marks(text, 1);
    for (int64_t at = 0; at < text->length;) {
        line l = next_line(text, &at);
        int status = l.length == 0 || is_end_of_text(l)
                         ? end_document(r)
                         : read_sentence(r, l.text, l.length, CUT_AFTER);
        if (status < 0)
            return -1;
    }
    return end_document(r);
}

int wg__corpus_text_read(const wg__token_request *request, wg__text_map *text,
                         const char *const *name, wg__token_file *file) {
    reading r = {.text = text, .file = file, .tokenizer = request->tokenizer};
    wg_corpus_format format = (wg_corpus_format)request->rules.format;
    if (format == WG_CORPUS_DETECT)
        format = wg__corpus_text_detect(text);
    const int64_t before = file->token_count;
    int status = format == WG_CORPUS_SENTENCES ? read_lines(&r, text) : read_plain(&r, text);
    if (status == 0 && file->token_count == before)
        status = wg_fail(WG_ERROR_FORMAT, "corpus", "%s has no words", *name);
    wg_token_list_free(&r.ids);
    return status;
}
