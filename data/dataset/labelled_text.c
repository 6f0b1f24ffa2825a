/* Texts with labels: see labelled_text.h. */
#include "data/dataset/labelled_text.h"

#include <string.h>

#include "base/array.h"
#include "base/string_table.h"
#include "data/tokenizer/text_file.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

#define WHERE "labelled_text"

enum { MOST_COLUMNS = 3, FEWEST_COLUMNS = 2 };

/* Where an example's tokens are. Its second text, if there are pairs, begins at `middle`. */
typedef struct example {
    int64_t first, middle, end;
    int64_t label;
} example;

struct wg__labelled_text {
    wg_token_list tokens;
    example *examples;
    int64_t count, capacity;
    bool pairs;
};

/* A file being read. */
typedef struct reading {
    const char *path;
    const wg_tokenizer *tokenizer;
    wg__labels *labels;
    wg__labelled_text_options options;
    wg__text prefixed; /* scratch: a text with its prefix */
    bool collects;     /* new labels are added */
    int64_t line;      /* from 1 on */
    int columns;       /* of all lines; 0: not known yet */
    wg__labelled_text *text;
} reading;

/* ---- Lines ---- */

/* Cuts a line at its tabs, which become NULs. Returns the number of columns. */
static int split(char *line, char *columns[MOST_COLUMNS]) {
    int count = 0;
    for (char *rest = line; rest; count++) {
        if (count < MOST_COLUMNS)
            columns[count] = rest;
        rest = strchr(rest, '\t');
        if (rest)
            *rest++ = '\0';
    }
    return count;
}

static int check_columns(reading *r, int count) {
    if (count < FEWEST_COLUMNS || count > MOST_COLUMNS)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s, line %lld: %d tab-separated columns; wanted a text or two, then the "
                       "label",
                       r->path, (long long)r->line, count);
    if (r->columns && count != r->columns)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s, line %lld: %d columns; the lines before have %d", r->path,
                       (long long)r->line, count, r->columns);
    r->columns = count;
    return 0;
}

/* The text with its prefix, borrowed until the next call. NULL with MEMORY. */
static const char *with_prefix(reading *r, const char *prefix, const char *text) {
    if (!prefix)
        return text;
    r->prefixed.length = 0;
    if (wg__text_append(&r->prefixed, prefix, (int64_t)strlen(prefix)) < 0 ||
        wg__text_append(&r->prefixed, text, (int64_t)strlen(text)) < 0)
        return NULL;
    return r->prefixed.bytes;
}

/* Appends the tokens of one text, that of a column. */
static int add_tokens(reading *r, int column, const char *text) {
    wg_token_list *tokens = &r->text->tokens;
    const int64_t before = tokens->count;
    const char *whole = *text ? with_prefix(r, r->options.before[column], text) : text;
    if (!whole || wg_tokenizer_encode(r->tokenizer, whole, -1, NULL, tokens) < 0)
        return -1;
    return tokens->count > before
               ? 0
               : wg_fail(WG_ERROR_FORMAT, WHERE, "%s, line %lld: a text is empty", r->path,
                         (long long)r->line);
}

static int64_t number_label(reading *r, const char *label) {
    if (*label == '\0')
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s, line %lld: the label is empty", r->path,
                       (long long)r->line);
    if (r->collects)
        return wg__labels_add(r->labels, label);
    const int64_t number = wg__labels_find(r->labels, label);
    if (number >= 0)
        return number;
    return wg_fail(WG_ERROR_FORMAT, WHERE,
                   "%s, line %lld: the label \"%.80s\" is unknown; the model has %lld others, the "
                   "first is \"%.80s\"",
                   r->path, (long long)r->line, label, (long long)r->labels->count,
                   r->labels->names[0]);
}

static int add_example(reading *r, int columns, char *const *column) {
    wg__labelled_text *text = r->text;
    example e = {.first = text->tokens.count, .label = number_label(r, column[columns - 1])};
    if (e.label < 0 || add_tokens(r, 0, column[0]) < 0)
        return -1;
    e.middle = text->tokens.count;
    if (columns == MOST_COLUMNS && add_tokens(r, 1, column[1]) < 0)
        return -1;
    e.end = text->tokens.count;
    return wg__append(&text->examples, &text->count, &text->capacity, &e, sizeof e);
}

static int read_line(reading *r, char *line) {
    char *columns[MOST_COLUMNS];
    const int64_t length = (int64_t)strlen(line);
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    if (*line == '\0')
        return 0;
    const int count = split(line, columns);
    const bool begins = r->columns == 0;
    if (check_columns(r, count) < 0)
        return -1;
    if (begins && strcmp(columns[count - 1], "label") == 0)
        return 0;
    return add_example(r, count, columns);
}

/* ---- Files ---- */

static int read_lines(reading *r, char *bytes, int64_t length) {
    for (char *line = bytes, *end = bytes + length; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        *stop = '\0';
        r->line++;
        if (memchr(line, '\0', (size_t)(stop - line)))
            return wg_fail(WG_ERROR_FORMAT, WHERE, "%s, line %lld: it holds a NUL", r->path,
                           (long long)r->line);
        if (read_line(r, line) < 0)
            return -1;
        line = stop + 1;
    }
    return 0;
}

/* Sorts the labels, which were numbered by first appearance, and renumbers the examples. */
static int order_labels(reading *r) {
    wg__labels found;
    if (wg__labels_copy(&found, r->labels) < 0)
        return -1;
    wg__labels_sort(r->labels);
    for (int64_t i = 0; i < r->text->count; i++) {
        int64_t *label = &r->text->examples[i].label;
        *label = wg__labels_find(r->labels, found.names[*label]);
    }
    wg__labels_free(&found);
    return 0;
}

static int check_whole(const reading *r) {
    if (r->text->count == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s holds no example", r->path);
    if (r->labels->count < 2)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s: every label is \"%.80s\"; a classification has two or more", r->path,
                       r->labels->names[0]);
    return 0;
}

wg__labelled_text *wg__labelled_text_load(const char *path, const wg_tokenizer *tokenizer,
                                          wg__labels *labels,
                                          const wg__labelled_text_options *options) {
    static const wg__labelled_text_options as_it_stands;
    int64_t length;
    char *bytes = wg__text_file_read(path, &length, WHERE);
    reading r = {.path = path,
                 .tokenizer = tokenizer,
                 .labels = labels,
                 .options = options ? *options : as_it_stands,
                 .collects = labels->count == 0,
                 .text = bytes ? wg__calloc(1, sizeof *r.text) : NULL};
    int status = r.text ? wg__utf8_check(bytes, length, path, WHERE) : -1;
    if (status == 0)
        status = read_lines(&r, bytes, length);
    if (status == 0)
        status = check_whole(&r);
    if (status == 0 && r.collects)
        status = order_labels(&r);
    wg__free(bytes);
    wg__free(r.prefixed.bytes);
    if (status == 0) {
        r.text->pairs = r.columns == MOST_COLUMNS;
        return r.text;
    }
    wg__labelled_text_free(r.text);
    if (r.collects)
        wg__labels_free(labels);
    return NULL;
}

void wg__labelled_text_free(wg__labelled_text *text) {
    if (!text)
        return;
    wg_token_list_free(&text->tokens);
    wg__free(text->examples);
    wg__free(text);
}

int64_t wg__labelled_text_examples(const wg__labelled_text *text) {
    return text ? text->count : 0;
}

int64_t wg__labelled_text_tokens(const wg__labelled_text *text) {
    return text ? text->tokens.count : 0;
}

wg_token_pair wg__labelled_text_pair(const wg__labelled_text *text, int64_t index) {
    const example *e = &text->examples[index];
    return (wg_token_pair){
        .first = text->tokens.ids + e->first,
        .first_count = e->middle - e->first,
        .second = text->pairs ? text->tokens.ids + e->middle : NULL,
        .second_count = e->end - e->middle,
    };
}

int64_t wg__labelled_text_label(const wg__labelled_text *text, int64_t index) {
    return text->examples[index].label;
}

uint64_t wg__labelled_text_fingerprint(const wg__labelled_text *text) {
    uint64_t hash = WG__HASH_EMPTY;
    for (int64_t i = 0; i < text->count; i++) {
        const wg_token_pair pair = wg__labelled_text_pair(text, i);
        hash = wg__hash_step(wg_pair_fingerprint(hash, &pair), (char)text->examples[i].label);
    }
    return hash;
}

/* ---- Batches ---- */

int wg__labelled_batch_read(const wg__labelled_text *text, const wg_pair_frame *frame,
                            int64_t count, const int64_t *examples, wg__labelled_batch *batch) {
    wg_token_pair *pairs = wg__alloc((size_t)count * sizeof *pairs);
    int64_t *labels = wg__alloc((size_t)count * sizeof *labels);
    *batch = (wg__labelled_batch){0};
    for (int64_t i = 0; pairs && labels && i < count; i++) {
        pairs[i] = wg__labelled_text_pair(text, examples[i]);
        labels[i] = wg__labelled_text_label(text, examples[i]);
    }
    if (pairs && labels && wg_pair_batch_make(frame, count, pairs, &batch->inputs) == 0)
        batch->labels = wg_from_array(WG_I64, WG_DIMS(count), labels);
    wg__free(pairs);
    wg__free(labels);
    return batch->labels ? 0 : -1;
}
