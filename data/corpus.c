/* Corpora. See corpus.h. */
#include <math.h>
#include <string.h>

#include "data/corpus.h"
#include "data/growth.h"
#include "data/sentences.h"
#include "data/text_file.h"
#include "tensor/internal.h"

/* Documents of text without marks: cut at a paragraph's end from the first number on, and at the
 * second anyway. */
#define CUT_AFTER 64
#define CUT_AT_LATEST 128

#define DOCUMENT_BLANK_LINES 3

struct wg_corpus {
    void *tokens;       /* uint16_t if narrow, or int32_t */
    bool narrow;        /* the vocabulary fits 16 bits */
    int64_t vocabulary; /* its size */
    int64_t token_count, token_capacity;
    int64_t *sentences; /* the token where each begins, and the end */
    int64_t sentence_count, sentence_capacity;
    int64_t *documents; /* the sentence where each begins, and the end */
    int64_t document_count, document_capacity;
};

/* ---- Making and growing ---- */

static int push(int64_t **list, int64_t used, int64_t *capacity, int64_t value) {
    int64_t *grown = wg__grow(*list, used, capacity, used + 1, sizeof *grown);
    if (!grown)
        return -1;
    *list = grown;
    grown[used] = value;
    return 0;
}

static wg_corpus *new_corpus(int64_t vocabulary) {
    wg_corpus *c = wg__calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->vocabulary = vocabulary;
    c->narrow = vocabulary <= 1 << 16;
    if (push(&c->sentences, 0, &c->sentence_capacity, 0) < 0 ||
        push(&c->documents, 0, &c->document_capacity, 0) < 0) {
        wg_corpus_free(c);
        return NULL;
    }
    return c;
}

void wg_corpus_free(wg_corpus *corpus) {
    if (!corpus)
        return;
    wg__free(corpus->tokens);
    wg__free(corpus->sentences);
    wg__free(corpus->documents);
    wg__free(corpus);
}

/* Appends a sentence; one without tokens is none. */
static int add_sentence(wg_corpus *c, const int32_t *ids, int64_t count) {
    if (count == 0)
        return 0;
    int64_t used = c->token_count;
    void *tokens = wg__grow(c->tokens, used, &c->token_capacity, used + count,
                            c->narrow ? sizeof(uint16_t) : sizeof(int32_t));
    if (!tokens)
        return -1;
    c->tokens = tokens;
    for (int64_t i = 0; i < count; i++) {
        if (c->narrow)
            ((uint16_t *)tokens)[used + i] = (uint16_t)ids[i];
        else
            ((int32_t *)tokens)[used + i] = ids[i];
    }
    c->token_count += count;
    if (push(&c->sentences, c->sentence_count + 1, &c->sentence_capacity, c->token_count) < 0)
        return -1;
    c->sentence_count++;
    return 0;
}

static int64_t sentences_of_open_document(const wg_corpus *c) {
    return c->sentence_count - c->documents[c->document_count];
}

/* Ends the document; one without sentences is none. */
static int end_document(wg_corpus *c) {
    if (sentences_of_open_document(c) == 0)
        return 0;
    if (push(&c->documents, c->document_count + 1, &c->document_capacity, c->sentence_count) < 0)
        return -1;
    c->document_count++;
    return 0;
}

/* ---- Lines ---- */

typedef struct line {
    const char *text;
    int64_t length; /* without blanks at its ends */
} line;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Takes the line at *at and moves *at behind it. */
static line next_line(const char *text, int64_t length, int64_t *at) {
    const char *begin = text + *at;
    const char *newline = memchr(begin, '\n', (size_t)(length - *at));
    const char *end = newline ? newline : text + length;
    *at = end - text + 1;
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

wg_corpus_format wg_corpus_detect(const char *text, int64_t length) {
    int64_t lines = 0, ended = 0, sentences = 0;
    for (int64_t at = 0; at < length;) {
        line l = next_line(text, length, &at);
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
    wg_corpus *corpus;
    const wg_tokenizer *tokenizer;
    wg_token_list ids; /* of the sentence at hand */
    bool cut;          /* the text has no marks between documents */
} reading;

static int read_sentence(reading *r, const char *text, int64_t length, int64_t cut_at) {
    r->ids.count = 0;
    if (wg_tokenizer_encode(r->tokenizer, text, length, NULL, &r->ids) < 0 ||
        add_sentence(r->corpus, r->ids.ids, r->ids.count) < 0)
        return -1;
    if (r->cut && sentences_of_open_document(r->corpus) >= cut_at)
        return end_document(r->corpus);
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
    if (r->cut && sentences_of_open_document(r->corpus) >= CUT_AFTER)
        return end_document(r->corpus);
    return 0;
}

/* Whether anything between the first and the last text ends a document. */
static bool has_marks(const char *text, int64_t length, int64_t blank_lines) {
    int64_t blank = 0;
    bool begun = false, marked = false;
    for (int64_t at = 0; at < length;) {
        line l = next_line(text, length, &at);
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

static int read_plain(reading *r, const char *text, int64_t length) {
    r->cut = !has_marks(text, length, DOCUMENT_BLANK_LINES);
    const char *paragraph = NULL, *end = NULL;
    int64_t blank = 0;
    for (int64_t at = 0; at < length;) {
        line l = next_line(text, length, &at);
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
        if ((mark || ++blank == DOCUMENT_BLANK_LINES) && end_document(r->corpus) < 0)
            return -1;
    }
    if (paragraph && read_paragraph(r, paragraph, end - paragraph) < 0)
        return -1;
    return end_document(r->corpus);
}

static int read_lines(reading *r, const char *text, int64_t length) {
    r->cut = !has_marks(text, length, 1);
    for (int64_t at = 0; at < length;) {
        line l = next_line(text, length, &at);
        int status = l.length == 0 || is_end_of_text(l)
                         ? end_document(r->corpus)
                         : read_sentence(r, l.text, l.length, CUT_AFTER);
        if (status < 0)
            return -1;
    }
    return end_document(r->corpus);
}

/* Adds a text; `name` is for messages. */
static int read_text(reading *r, const char *text, int64_t length, const char *name,
                     const wg_corpus_options *options) {
    if (wg__utf8_check(text, length, name, "corpus") < 0)
        return -1;
    wg_corpus_format format = options ? options->format : WG_CORPUS_DETECT;
    if (format == WG_CORPUS_DETECT)
        format = wg_corpus_detect(text, length);
    int64_t before = r->corpus->token_count;
    int status =
        format == WG_CORPUS_SENTENCES ? read_lines(r, text, length) : read_plain(r, text, length);
    if (status == 0 && r->corpus->token_count == before)
        return wg_fail(WG_ERROR_FORMAT, "corpus", "%s has no words", name);
    return status;
}

static int read_file(reading *r, const char *path, const wg_corpus_options *options) {
    int64_t length;
    char *text = wg__text_file_read(path, &length, "corpus");
    if (!text)
        return -1;
    int status = read_text(r, text, length, path, options);
    wg__free(text);
    return status;
}

static wg_corpus *finish(reading *r, int status) {
    wg_token_list_free(&r->ids);
    if (status < 0) {
        wg_corpus_free(r->corpus);
        return NULL;
    }
    return r->corpus;
}

wg_corpus *wg_corpus_load(int count, const char *const *paths, const wg_tokenizer *tokenizer,
                          const wg_corpus_options *options) {
    if (!tokenizer)
        return NULL;
    if (count < 1) {
        wg_fail(WG_ERROR_ARGUMENT, "corpus", "no file is given");
        return NULL;
    }
    reading r = {.corpus = new_corpus(wg_tokenizer_size(tokenizer)), .tokenizer = tokenizer};
    int status = r.corpus ? 0 : -1;
    for (int i = 0; status == 0 && i < count; i++)
        status = read_file(&r, paths[i], options);
    return finish(&r, status);
}

wg_corpus *wg_corpus_from_text(const char *text, int64_t length, const wg_tokenizer *tokenizer,
                               const wg_corpus_options *options) {
    if (!tokenizer || !text)
        return NULL;
    reading r = {.corpus = new_corpus(wg_tokenizer_size(tokenizer)), .tokenizer = tokenizer};
    int status = r.corpus ? read_text(&r, text, length < 0 ? (int64_t)strlen(text) : length,
                                      "the text", options)
                          : -1;
    return finish(&r, status);
}

/* ---- Holding out ---- */

static int copy_document(const wg_corpus *from, int64_t document, wg_corpus *to,
                         wg_token_list *ids) {
    for (int64_t s = from->documents[document]; s < from->documents[document + 1]; s++) {
        int64_t first = from->sentences[s], count = from->sentences[s + 1] - first;
        int32_t *grown = wg__grow(ids->ids, 0, &ids->capacity, count, sizeof *grown);
        if (!grown)
            return -1;
        ids->ids = grown;
        wg_corpus_read(from, first, count, grown);
        if (add_sentence(to, grown, count) < 0)
            return -1;
    }
    return end_document(to);
}

int wg_corpus_split(const wg_corpus *corpus, double fraction, wg_corpus **training,
                    wg_corpus **held_out) {
    *training = *held_out = NULL;
    if (!corpus)
        return -1;
    if (!(fraction > 0 && fraction <= 0.5))
        return wg_fail(WG_ERROR_ARGUMENT, "wg_corpus_split",
                       "a fraction of %g; it must be above 0 and at most 0.5", fraction);
    if (corpus->document_count < 4)
        return wg_fail(WG_ERROR_ARGUMENT, "wg_corpus_split",
                       "the corpus has %lld documents; four are needed to hold two out",
                       (long long)corpus->document_count);
    /* The held-out half needs two documents, so every one in D / 2 at the least. */
    double most = (double)(corpus->document_count / 2);
    int64_t every = (int64_t)fmin(round(1 / fraction), most);
    *training = new_corpus(corpus->vocabulary);
    *held_out = *training ? new_corpus(corpus->vocabulary) : NULL;
    wg_token_list ids = {0};
    int status = *held_out ? 0 : -1;
    for (int64_t d = 0; status == 0 && d < corpus->document_count; d++)
        status = copy_document(corpus, d, d % every == every - 1 ? *held_out : *training, &ids);
    wg_token_list_free(&ids);
    if (status < 0) {
        wg_corpus_free(*training);
        wg_corpus_free(*held_out);
        *training = *held_out = NULL;
    }
    return status;
}

/* ---- What it holds ---- */

int64_t wg_corpus_documents(const wg_corpus *corpus) {
    return corpus ? corpus->document_count : 0;
}

int64_t wg_corpus_sentences(const wg_corpus *corpus) {
    return corpus ? corpus->sentence_count : 0;
}

int64_t wg_corpus_tokens(const wg_corpus *corpus) {
    return corpus ? corpus->token_count : 0;
}

int64_t wg_corpus_vocabulary(const wg_corpus *corpus) {
    return corpus ? corpus->vocabulary : 0;
}

int64_t wg_corpus_document_start(const wg_corpus *corpus, int64_t document) {
    if (!corpus || document < 0 || document > corpus->document_count)
        return -1;
    return corpus->documents[document];
}

int64_t wg_corpus_sentence_start(const wg_corpus *corpus, int64_t sentence) {
    if (!corpus || sentence < 0 || sentence > corpus->sentence_count)
        return -1;
    return corpus->sentences[sentence];
}

int wg_corpus_read(const wg_corpus *corpus, int64_t first, int64_t count, int32_t *ids) {
    if (!corpus)
        return -1;
    if (first < 0 || count < 0 || count > corpus->token_count - first)
        return wg_fail(WG_ERROR_INDEX, "wg_corpus_read", "tokens %lld to %lld of a corpus of %lld",
                       (long long)first, (long long)(first + count),
                       (long long)corpus->token_count);
    if (!corpus->narrow) {
        memcpy(ids, (const int32_t *)corpus->tokens + first, (size_t)count * sizeof *ids);
        return 0;
    }
    const uint16_t *tokens = (const uint16_t *)corpus->tokens + first;
    for (int64_t i = 0; i < count; i++)
        ids[i] = tokens[i];
    return 0;
}

/* ---- Word frequency ---- */

static void count_tokens(const wg_corpus *corpus, int64_t *counts) {
    for (int64_t i = 0; i < corpus->token_count; i++)
        counts[corpus->narrow ? ((const uint16_t *)corpus->tokens)[i]
                              : ((const int32_t *)corpus->tokens)[i]]++;
}

static int64_t label_at(const void *labels, wg_dtype dtype, int64_t i) {
    return dtype == WG_I32 ? ((const int32_t *)labels)[i] : ((const int64_t *)labels)[i];
}

static int check_labels(const void *labels, wg_dtype dtype, int64_t count, int64_t vocabulary) {
    for (int64_t i = 0; i < count; i++) {
        int64_t label = label_at(labels, dtype, i);
        if (label < 0 || label >= vocabulary)
            return wg_fail(WG_ERROR_INDEX, "wg_corpus_unigram_loss",
                           "label %lld is outside the vocabulary of %lld tokens", (long long)label,
                           (long long)vocabulary);
    }
    return 0;
}

double wg_corpus_unigram_loss(const wg_corpus *corpus, const wg_tensor *labels) {
    if (!corpus || !labels)
        return NAN;
    wg_dtype dtype = wg_tensor_dtype(labels);
    int64_t count = wg_tensor_count(labels), vocabulary = corpus->vocabulary;
    if (dtype != WG_I64 && dtype != WG_I32) {
        wg_fail(WG_ERROR_DTYPE, "wg_corpus_unigram_loss", "labels are %s; they must be i64 or i32",
                wg_dtype_name(dtype));
        return NAN;
    }
    void *values = wg__alloc((size_t)(count + 1) * wg_dtype_size(dtype));
    int64_t *counts = wg__calloc((size_t)vocabulary, sizeof *counts);
    double sum = NAN;
    if (values && counts && wg_to_array(labels, values) == 0 &&
        check_labels(values, dtype, count, vocabulary) == 0) {
        count_tokens(corpus, counts);
        sum = 0;
        double total = (double)(corpus->token_count + vocabulary);
        for (int64_t i = 0; i < count; i++)
            sum -= log((double)(counts[label_at(values, dtype, i)] + 1) / total);
    }
    wg__free(counts);
    wg__free(values);
    return sum / (double)count;
}
