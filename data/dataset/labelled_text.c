/* Texts with labels or numbers: see examples.h. */
#include "data/dataset/examples.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/system.h"
#include "tensor/easy.h"

#define WHERE "labelled_text"

/* A file being read. */
typedef struct reading {
    wg__file_line line;
    const wg_tokenizer *tokenizer;
    wg__labels *labels; /* NULL: the label column has numbers */
    wg__labelled_text_options options;
    wg__text prefixed; /* scratch: a text with its prefix */
    bool collects;     /* new labels are added */
    wg__labelled_text *text;
} reading;

/* Appends the tokens of a column's text, with the prefix of the column. */
static int add_tokens(reading *r, int column, const char *text) {
    wg_token_list *tokens = &r->text->tokens;
    const int64_t before = tokens->count;
    const char *prefix = *text ? r->options.before[column] : NULL;
    if (prefix) {
        r->prefixed.length = 0;
        if (wg__text_append(&r->prefixed, prefix, (int64_t)strlen(prefix)) < 0 ||
            wg__text_append(&r->prefixed, text, (int64_t)strlen(text)) < 0)
            return -1;
        text = r->prefixed.bytes;
    }
    if (wg_tokenizer_encode(r->tokenizer, text, -1, NULL, tokens) < 0)
        return -1;
    return tokens->count > before ? 0 : wg__fail_line(&r->line, "a text is empty");
}

/* Reads the label, the labels or the number of an example. */
static int read_label(reading *r, char *label, wg__labelled_example *e) {
    if (r->options.several) {
        /* Labels are separated by commas and spaces. */
        wg__labelled_text *text = r->text;
        e->label = text->label_count;
        for (char *rest = label, *name; (name = strsep(&rest, ","));) {
            name += strspn(name, " ");
            size_t length = strlen(name);
            while (length > 0 && name[length - 1] == ' ')
                name[--length] = '\0';
            if (length == 0)
                continue;
            const int64_t number =
                wg__label_of_line(&r->line, "label", r->labels, r->collects, name);
            if (number < 0 || wg__append(&text->labels, &text->label_count, &text->label_capacity,
                                         &number, sizeof number) < 0)
                return -1;
        }
        e->label_count = text->label_count - e->label;
        return 0;
    }
    if (r->labels && *label == '\0')
        return wg__fail_line(&r->line, "the label is empty");
    if (r->labels) {
        e->label = wg__label_of_line(&r->line, "label", r->labels, r->collects, label);
        return e->label < 0 ? -1 : 0;
    }
    char *end;
    e->value = wg__parse_number(label, &end);
    if (end != label && *end == '\0' && isfinite(e->value))
        return 0;
    return wg__fail_line(&r->line, "\"%.80s\" is no number", label);
}

static int add_example(void *context, int64_t line, int count, char *const *fields) {
    reading *r = context;
    wg__labelled_text *text = r->text;
    wg__labelled_example e = {.first = text->tokens.count};
    r->line.number = line;
    text->pairs = count == WG_TABLE_FIELDS;
    if (read_label(r, fields[count - 1], &e) < 0 || add_tokens(r, 0, fields[0]) < 0)
        return -1;
    e.middle = text->tokens.count;
    if (text->pairs && add_tokens(r, 1, fields[1]) < 0)
        return -1;
    e.end = text->tokens.count;
    return wg__append(&text->examples, &text->base.count, &text->capacity, &e, sizeof e);
}

wg_token_pair wg__labelled_text_pair(const wg__labelled_text *text, int64_t index) {
    const wg__labelled_example *e = &text->examples[index];
    return (wg_token_pair){
        .first = text->tokens.ids + e->first,
        .first_count = e->middle - e->first,
        .second = text->pairs ? text->tokens.ids + e->middle : NULL,
        .second_count = e->end - e->middle,
    };
}

static wg_token_pair pair_of(const wg__examples *examples, int64_t index) {
    return wg__labelled_text_pair((const wg__labelled_text *)examples, index);
}

bool wg__labelled_text_has(const wg__labelled_text *text, int64_t index, int64_t label) {
    const wg__labelled_example *e = &text->examples[index];
    for (int64_t i = 0; i < e->label_count; i++)
        if (text->labels[e->label + i] == label)
            return true;
    return false;
}

static int fill_targets(const wg__examples *examples, int64_t count, const int64_t *chosen,
                        wg__example_batch *batch) {
    const wg__labelled_text *text = (const wg__labelled_text *)examples;
    batch->targets[0] = text->several ? wg_zeros(WG_F32, WG_DIMS(count, text->kinds))
                                      : wg_zeros(text->numbers ? WG_F32 : WG_I64, WG_DIMS(count));
    void *targets = batch->targets[0] ? wg_tensor_data(batch->targets[0]) : NULL;
    for (int64_t i = 0; targets && i < count; i++)
        if (text->several)
            for (int64_t label = 0; label < text->kinds; label++)
                ((float *)targets)[i * text->kinds + label] =
                    wg__labelled_text_has(text, chosen[i], label);
        else if (text->numbers)
            ((float *)targets)[i] = (float)text->examples[chosen[i]].value;
        else
            ((int64_t *)targets)[i] = text->examples[chosen[i]].label;
    return targets ? 0 : -1;
}

static uint64_t fingerprint(const wg__examples *examples) {
    const wg__labelled_text *text = (const wg__labelled_text *)examples;
    uint64_t hash = WG__HASH_BEGIN;
    for (int64_t i = 0; i < text->base.count; i++) {
        const wg_token_pair pair = wg__labelled_text_pair(text, i);
        hash = wg__pair_fingerprint(hash, &pair);
        for (int64_t label = 0; text->several && label < text->kinds; label++)
            hash = wg__hash_step(hash, wg__labelled_text_has(text, i, label) ? 'y' : 'n');
        if (text->numbers)
            hash = wg__hash(hash, &text->examples[i].value, sizeof text->examples[i].value);
        else if (!text->several)
            hash = wg__hash_step(hash, (char)text->examples[i].label);
    }
    return hash;
}

static void free_text(wg__examples *examples) {
    wg__labelled_text *text = (wg__labelled_text *)examples;
    wg_token_list_free(&text->tokens);
    wg__free(text->examples);
    wg__free(text->labels);
    wg__free(text);
}

static const wg__examples_kind kind = {pair_of, fill_targets, fingerprint, free_text};

wg__labelled_text *wg__labelled_text_load(const char *path, const wg_tokenizer *tokenizer,
                                          wg__labels *labels,
                                          const wg__labelled_text_options *options) {
    wg__labelled_text *text = wg__calloc(1, sizeof *text);
    if (!text)
        return NULL;
    reading r = {.line = {WHERE, path, 0},
                 .tokenizer = tokenizer,
                 .labels = labels,
                 .options = options ? *options : (wg__labelled_text_options){.several = false},
                 .collects = labels && labels->count == 0,
                 .text = text};
    int status = wg__table_read(path, &r.options.columns, add_example, &r);
    if (status == 0 && text->base.count == 0)
        status = wg_fail(WG_ERROR_FORMAT, WHERE, "%s holds no example", path);
    else if (status == 0 && labels && labels->count == 0)
        status = wg_fail(WG_ERROR_FORMAT, WHERE, "%s: no line has a label", path);
    else if (status == 0 && labels && labels->count < 2)
        status = wg_fail(WG_ERROR_FORMAT, WHERE,
                         "%s: every label is \"%.80s\"; a classification has two or more", path,
                         labels->names[0]);
    if (status == 0 && r.collects) {
        /* Sorts the labels, which were numbered by first appearance, and renumbers the examples. */
        int64_t *numbers = wg__labels_renumber(r.labels);
        for (int64_t i = 0; numbers && !r.options.several && i < r.text->base.count; i++)
            r.text->examples[i].label = numbers[r.text->examples[i].label];
        for (int64_t i = 0; numbers && i < r.text->label_count; i++)
            r.text->labels[i] = numbers[r.text->labels[i]];
        wg__free(numbers);
        status = numbers ? 0 : -1;
    }
    wg__free(r.prefixed.bytes);
    text->base.kind = &kind;
    text->base.predictions = text->base.count;
    text->numbers = !labels;
    text->several = r.options.several;
    text->kinds = labels ? labels->count : 0;
    if (status == 0)
        return text;
    free_text(&text->base);
    if (r.collects)
        wg__labels_free(labels);
    return NULL;
}
