/* Texts with labels: see labelled_text.h. */
#include "data/dataset/labelled_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/string_table.h"
#include "base/system.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

#define WHERE "labelled_text"

/* Where an example's tokens are. Its second text, if there are pairs, begins at `middle`. */
typedef struct example {
    int64_t first, middle, end;
    int64_t label;       /* of several: where they begin in `labels` */
    int64_t label_count; /* of several */
    double value;        /* instead, of a text with numbers */
} example;

struct wg__labelled_text {
    wg_token_list tokens;
    example *examples;
    int64_t count, capacity;
    int64_t *labels; /* of examples with several */
    int64_t label_count, label_capacity;
    int64_t kinds; /* of labels: K */
    bool pairs, numbers, several;
};

/* A file being read. */
typedef struct reading {
    const char *path;
    const wg_tokenizer *tokenizer;
    wg__labels *labels; /* NULL: numbers are wanted */
    wg__labelled_text_options options;
    wg__text prefixed; /* scratch: a text with its prefix */
    bool collects;     /* new labels are added */
    int64_t line;      /* from 1 on */
    wg__labelled_text *text;
} reading;

/* ---- Rows ---- */

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

/* Cuts a field at its commas; blanks around a label are no part of it. */
static int read_labels(reading *r, char *field, example *e) {
    wg__labelled_text *text = r->text;
    e->label = text->label_count;
    for (char *rest = field, *label; (label = strsep(&rest, ","));) {
        label += strspn(label, " ");
        size_t length = strlen(label);
        while (length > 0 && label[length - 1] == ' ')
            label[--length] = '\0';
        const int64_t number = length > 0 ? number_label(r, label) : 0;
        if (number < 0 ||
            (length > 0 && wg__append(&text->labels, &text->label_count, &text->label_capacity,
                                      &number, sizeof number) < 0))
            return -1;
    }
    e->label_count = text->label_count - e->label;
    return 0;
}

/* Fills the label of an example, its labels, or its number. */
static int read_label(reading *r, char *label, example *e) {
    if (r->options.several)
        return read_labels(r, label, e);
    if (r->labels)
        return (e->label = number_label(r, label)) < 0 ? -1 : 0;
    char *end;
    e->value = wg__parse_number(label, &end);
    if (end != label && *end == '\0' && isfinite(e->value))
        return 0;
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s, line %lld: \"%.80s\" is no number", r->path,
                   (long long)r->line, label);
}

static int add_example(void *context, int64_t line, int count, char *const *fields) {
    reading *r = context;
    wg__labelled_text *text = r->text;
    example e = {.first = text->tokens.count};
    r->line = line;
    text->pairs = count == WG_TABLE_FIELDS;
    if (read_label(r, fields[count - 1], &e) < 0 || add_tokens(r, 0, fields[0]) < 0)
        return -1;
    e.middle = text->tokens.count;
    if (text->pairs && add_tokens(r, 1, fields[1]) < 0)
        return -1;
    e.end = text->tokens.count;
    return wg__append(&text->examples, &text->count, &text->capacity, &e, sizeof e);
}

/* ---- Files ---- */

/* Sorts the labels, which were numbered by first appearance, and renumbers the examples. */
static int order_labels(reading *r) {
    wg__labels found;
    if (wg__labels_copy(&found, r->labels) < 0)
        return -1;
    wg__labels_sort(r->labels);
    for (int64_t i = 0; i < r->text->count; i++) {
        int64_t *label = &r->text->examples[i].label;
        if (!r->options.several)
            *label = wg__labels_find(r->labels, found.names[*label]);
    }
    for (int64_t i = 0; i < r->text->label_count; i++)
        r->text->labels[i] = wg__labels_find(r->labels, found.names[r->text->labels[i]]);
    wg__labels_free(&found);
    return 0;
}

static int check_whole(const reading *r) {
    if (r->text->count == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s holds no example", r->path);
    if (r->labels && r->labels->count == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: no line has a label", r->path);
    if (r->labels && r->labels->count < 2)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s: every label is \"%.80s\"; a classification has two or more", r->path,
                       r->labels->names[0]);
    return 0;
}

wg__labelled_text *wg__labelled_text_load(const char *path, const wg_tokenizer *tokenizer,
                                          wg__labels *labels,
                                          const wg__labelled_text_options *options) {
    static const wg__labelled_text_options as_it_stands;
    reading r = {.path = path,
                 .tokenizer = tokenizer,
                 .labels = labels,
                 .options = options ? *options : as_it_stands,
                 .collects = labels && labels->count == 0,
                 .text = wg__calloc(1, sizeof *r.text)};
    int status = r.text ? wg__table_read(path, &r.options.columns, add_example, &r) : -1;
    if (status == 0)
        status = check_whole(&r);
    if (status == 0 && r.collects)
        status = order_labels(&r);
    wg__free(r.prefixed.bytes);
    if (status == 0) {
        r.text->numbers = !labels;
        r.text->several = r.options.several;
        r.text->kinds = labels ? labels->count : 0;
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
    wg__free(text->labels);
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

double wg__labelled_text_value(const wg__labelled_text *text, int64_t index) {
    return text->examples[index].value;
}

bool wg__labelled_text_has(const wg__labelled_text *text, int64_t index, int64_t label) {
    const example *e = &text->examples[index];
    for (int64_t i = 0; i < e->label_count; i++)
        if (text->labels[e->label + i] == label)
            return true;
    return false;
}

/* Goes on over the bytes of a number. */
static uint64_t hash_number(uint64_t hash, double value) {
    char bytes[sizeof value];
    memcpy(bytes, &value, sizeof value);
    for (size_t i = 0; i < sizeof bytes; i++)
        hash = wg__hash_step(hash, bytes[i]);
    return hash;
}

uint64_t wg__labelled_text_fingerprint(const wg__labelled_text *text) {
    uint64_t hash = WG__HASH_EMPTY;
    for (int64_t i = 0; i < text->count; i++) {
        const wg_token_pair pair = wg__labelled_text_pair(text, i);
        hash = wg_pair_fingerprint(hash, &pair);
        for (int64_t label = 0; text->several && label < text->kinds; label++)
            hash = wg__hash_step(hash, wg__labelled_text_has(text, i, label) ? 'y' : 'n');
        if (text->several)
            continue;
        hash = text->numbers ? hash_number(hash, text->examples[i].value)
                             : wg__hash_step(hash, (char)text->examples[i].label);
    }
    return hash;
}

/* ---- Batches ---- */

int wg__labelled_batch_read(const wg__labelled_text *text, const wg_pair_frame *frame,
                            int64_t count, const int64_t *examples, wg__labelled_batch *batch) {
    wg_token_pair *pairs = wg__alloc_array(count, sizeof *pairs);
    *batch = (wg__labelled_batch){0};
    for (int64_t i = 0; pairs && i < count; i++)
        pairs[i] = wg__labelled_text_pair(text, examples[i]);
    if (pairs && wg_pair_batch_make(frame, count, pairs, &batch->inputs) == 0)
        batch->labels = text->several ? wg_zeros(WG_F32, WG_DIMS(count, text->kinds))
                                      : wg_zeros(text->numbers ? WG_F32 : WG_I64, WG_DIMS(count));
    void *labels = batch->labels ? wg_tensor_data(batch->labels) : NULL;
    for (int64_t i = 0; labels && i < count; i++)
        if (text->several)
            for (int64_t label = 0; label < text->kinds; label++)
                ((float *)labels)[i * text->kinds + label] =
                    wg__labelled_text_has(text, examples[i], label);
        else if (text->numbers)
            ((float *)labels)[i] = (float)text->examples[examples[i]].value;
        else
            ((int64_t *)labels)[i] = text->examples[examples[i]].label;
    wg__free(pairs);
    return labels ? 0 : -1;
}
