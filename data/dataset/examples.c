/* Examples and their labels: see examples.h. */
#include "data/dataset/examples.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/text_file.h"

int64_t wg__labels_find(const wg__labels *labels, const char *name) {
    for (int64_t i = 0; i < labels->count; i++)
        if (strcmp(labels->names[i], name) == 0)
            return i;
    return -1;
}

int64_t wg__labels_add(wg__labels *labels, const char *name) {
    const int64_t found = wg__labels_find(labels, name);
    if (found >= 0)
        return found;
    if (labels->count == WG_LABELS_MOST)
        return wg_fail(WG_ERROR_FORMAT, "labels",
                       "there are more than %d different labels, as \"%.40s\": is the last column "
                       "the label?",
                       WG_LABELS_MOST, name);
    if (wg__reserve(&labels->names, labels->count, &labels->capacity, labels->count + 1,
                    sizeof *labels->names) < 0)
        return -1;
    labels->names[labels->count] = wg__strdup(name);
    return labels->names[labels->count] ? labels->count++ : -1;
}

/* Parses a text that is a whole number and nothing else. */
static bool read_number(const char *text, long long *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* By value, and equal values (1 and 01) by their texts. */
static int compare_numbers(const void *a, const void *b) {
    long long left = 0, right = 0;
    read_number(*(char *const *)a, &left);
    read_number(*(char *const *)b, &right);
    return left != right ? (left > right) - (left < right) : compare_texts(a, b);
}

void wg__labels_sort(wg__labels *labels) {
    bool numbers = true;
    long long value;
    for (int64_t i = 0; i < labels->count && numbers; i++)
        numbers = read_number(labels->names[i], &value);
    if (labels->count > 0)
        qsort(labels->names, (size_t)labels->count, sizeof *labels->names,
              numbers ? compare_numbers : compare_texts);
}

int64_t *wg__labels_renumber(wg__labels *labels) {
    wg__labels before;
    if (wg__labels_copy(&before, labels) < 0)
        return NULL;
    wg__labels_sort(labels);
    int64_t *numbers = wg__alloc_array(before.count + 1, sizeof *numbers);
    for (int64_t i = 0; numbers && i < before.count; i++)
        numbers[i] = wg__labels_find(labels, before.names[i]);
    wg__labels_free(&before);
    return numbers;
}

int wg__labels_copy(wg__labels *copy, const wg__labels *labels) {
    *copy = (wg__labels){0};
    for (int64_t i = 0; i < labels->count; i++)
        if (wg__labels_add(copy, labels->names[i]) < 0) {
            wg__labels_free(copy);
            return -1;
        }
    return 0;
}

bool wg__labels_equal(const wg__labels *a, const wg__labels *b) {
    if (a->count != b->count)
        return false;
    for (int64_t i = 0; i < a->count; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return false;
    return true;
}

void wg__labels_free(wg__labels *labels) {
    for (int64_t i = 0; i < labels->count; i++)
        wg__free(labels->names[i]);
    wg__free(labels->names);
    *labels = (wg__labels){0};
}

void wg__examples_free(wg__examples *examples) {
    if (examples)
        examples->kind->free(examples);
}

int wg__example_batch_read(const wg__examples *examples, const wg_pair_frame *frame, int64_t count,
                           const int64_t *chosen, wg__example_batch *batch) {
    wg_token_pair *pairs = wg__alloc_array(count, sizeof *pairs);
    *batch = (wg__example_batch){0};
    for (int64_t i = 0; pairs && i < count; i++)
        pairs[i] = examples->kind->pair(examples, chosen[i]);
    const int status = pairs ? wg__pair_batch_make(frame, count, pairs, &batch->inputs) : -1;
    wg__free(pairs);
    return status == 0 ? examples->kind->fill_targets(examples, count, chosen, batch) : -1;
}

int wg__fail_line(const wg__file_line *line, const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return wg_fail(WG_ERROR_FORMAT, line->where, "%s, line %lld: %s", line->path,
                   (long long)line->number, message);
}

int wg__each_line(wg__file_line *line, char *bytes, int64_t length,
                  int (*read)(void *context, char *text), void *context) {
    for (char *text = bytes, *end = bytes + length; text < end;) {
        char *stop = memchr(text, '\n', (size_t)(end - text));
        char *next = stop ? stop + 1 : end;
        if (!stop)
            stop = end;
        *stop = '\0';
        line->number++;
        if (memchr(text, '\0', (size_t)(stop - text)))
            return wg__fail_line(line, "it holds a NUL");
        if (stop > text && stop[-1] == '\r')
            stop[-1] = '\0';
        if (read(context, text) < 0)
            return -1;
        text = next;
    }
    return 0;
}

int64_t wg__label_of_line(const wg__file_line *line, const char *what, wg__labels *labels,
                          bool adds, const char *name) {
    const int64_t number = adds ? wg__labels_add(labels, name) : wg__labels_find(labels, name);
    if (number >= 0 || adds)
        return number;
    return wg__fail_line(line,
                         "the %s \"%.80s\" is unknown; the model has %lld, the first is "
                         "\"%.80s\"",
                         what, name, (long long)labels->count, labels->names[0]);
}

/* A file being read. */
typedef struct reading {
    wg__file_line line;
    const wg_tokenizer *tokenizer;
    wg__text_lines *lines;
    int64_t texts, capacity; /* of lines->ends */
} reading;

static int add_text(reading *r, const char *text) {
    wg_token_list *tokens = &r->lines->tokens;
    const int64_t before = tokens->count;
    if (wg_tokenizer_encode(r->tokenizer, text, -1, NULL, tokens) < 0)
        return -1;
    if (tokens->count == before)
        return wg__fail_line(&r->line, "a text is empty");
    return wg__append(&r->lines->ends, &r->texts, &r->capacity, &tokens->count,
                      sizeof tokens->count);
}

static int add_line(void *context, char *text) {
    reading *r = context;
    text[strcspn(text, "\r")] = '\0';
    if (text[strspn(text, " \t")] == '\0')
        return 0;
    if (wg__utf8_invalid(text, (int64_t)strlen(text)) >= 0)
        return wg__fail_line(&r->line, "it is not UTF-8");
    char *tab = strchr(text, '\t');
    if (r->lines->count == 0)
        r->lines->pairs = tab != NULL;
    if ((tab != NULL) != r->lines->pairs || (tab && strchr(tab + 1, '\t')))
        return wg__fail_line(&r->line, "wanted %s, as in the lines before",
                             r->lines->pairs ? "two texts with a tab between them"
                                             : "one text without tabs");
    if (tab)
        *tab = '\0';
    r->lines->count++;
    return add_text(r, text) < 0 || (tab && add_text(r, tab + 1) < 0) ? -1 : 0;
}

int wg__text_lines_load(const char *path, const wg_tokenizer *tokenizer, wg__text_lines *lines) {
    reading r = {.line = {"text_lines", path, 0}, .tokenizer = tokenizer, .lines = lines};
    int64_t length;
    *lines = (wg__text_lines){0};
    char *bytes = wg__text_file_read(path, &length, "text_lines");
    int status = bytes ? wg__each_line(&r.line, bytes, length, add_line, &r) : -1;
    wg__free(bytes);
    if (status == 0 && lines->count == 0)
        status = wg_fail(WG_ERROR_FORMAT, "text_lines", "%s holds no text", path);
    return status;
}

void wg__text_lines_free(wg__text_lines *lines) {
    wg_token_list_free(&lines->tokens);
    wg__free(lines->ends);
    *lines = (wg__text_lines){0};
}

bool wg__text_lines_are_scored(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    bool scored = false;
    if (file && getline(&text, &size, file) > 0) {
        const char *tab = strchr(text, '\t');
        scored = text[0] == '{' || (tab && strchr(tab + 1, '\t'));
    }
    free(text);
    if (file)
        fclose(file);
    return scored;
}

wg_token_pair wg__text_lines_get(const wg__text_lines *lines, int64_t example, int side) {
    const int64_t text = lines->pairs ? 2 * example + side : example;
    const int64_t first = text ? lines->ends[text - 1] : 0;
    return (wg_token_pair){.first = lines->tokens.ids + first,
                           .first_count = lines->ends[text] - first};
}

uint64_t wg__text_lines_fingerprint(const wg__text_lines *lines) {
    uint64_t hash = WG__HASH_BEGIN;
    for (int64_t i = 0; i < lines->count; i++)
        for (int side = 0; side < (lines->pairs ? 2 : 1); side++) {
            const wg_token_pair text = wg__text_lines_get(lines, i, side);
            hash = wg__pair_fingerprint(hash, &text);
        }
    return hash;
}
