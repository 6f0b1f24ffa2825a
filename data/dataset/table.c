/* Reads the columns of files of examples: see examples.h. */

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/dataset/examples.h"
#include "data/tokenizer/text_file.h"

#define WHERE "table"

enum { MOST_COLUMNS = 256, FEWEST_FIELDS = 2 };

/* Well-known names of columns, from GLUE, SuperGLUE and Hugging Face's datasets. The first entry
 * with all its columns in the file wins. */
static const char *const known_texts[][2] = {
    {"sentence1", "sentence2"},
    {"question", "sentence"},
    {"premise", "hypothesis"},
    {"question1", "question2"},
    {"#1 String", "#2 String"},
    {"question", "passage"},
    {"sentence", NULL},
    {"text", NULL},
    {NULL, NULL},
};
static const char *const known_labels[] = {"label",        "gold_label", "score",
                                           "is_duplicate", "Quality",    NULL};

/* A file being read. */
typedef struct table {
    wg__file_line line;
    wg__table_columns columns;
    int names; /* the number of columns of the first line, or of keys of the first object */
    const char *name[MOST_COLUMNS];
    int wanted[WG_TABLE_FIELDS]; /* the column, an index of `name`, of each field */
    int fields;                  /* 0: not known yet */
    int count;                   /* columns of each line; 0: not known yet */
    bool named;                  /* the first line names the columns */
    json_t *first;               /* the first object, with the keys; NULL: the file is no JSON */
    wg__text numbers[WG_TABLE_FIELDS]; /* JSON values other than strings, as text */
    int (*row)(void *context, int64_t line, int count, char *const *fields);
    void *context;
} table;

static int find_name(const table *t, const char *name) {
    for (int i = 0; i < t->names; i++)
        if (strcmp(t->name[i], name) == 0)
            return i;
    return -1;
}

/* "index, sentence, label" */
static const char *list_names(const table *t, char *text, size_t size) {
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < t->names && length < size; i++)
        length +=
            (size_t)snprintf(text + length, size - length, "%s%.40s", i ? ", " : "", t->name[i]);
    return text;
}

/* Adds the column of that name to the fields. */
static int want(table *t, const char *name) {
    char names[400];
    const int column = find_name(t, name);
    if (column < 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s has no column \"%.80s\"; it has %s",
                       t->line.path, name, list_names(t, names, sizeof names));
    t->wanted[t->fields++] = column;
    return 0;
}

/* The well-known names of the texts, and of the label, that the file has; NULL: none. */
static const char *const *known_texts_of(const table *t) {
    const char *const(*known)[2] = known_texts;
    while ((*known)[0] &&
           (find_name(t, (*known)[0]) < 0 || ((*known)[1] && find_name(t, (*known)[1]) < 0)))
        known++;
    return *known;
}

static const char *known_label_of(const table *t) {
    const char *const *known = known_labels;
    while (*known && find_name(t, *known) < 0)
        known++;
    return *known;
}

static int choose_columns(table *t) {
    const char *const given[] = {t->columns.text, t->columns.text_pair};
    const char *const *texts = t->columns.text ? given : known_texts_of(t);
    for (int i = 0; i < 2 && texts[i]; i++)
        if (want(t, texts[i]) < 0)
            return -1;
    const char *label = t->columns.label ? t->columns.label : known_label_of(t);
    if (texts[0] && label)
        return want(t, label);
    char names[400];
    return wg_fail(WG_ERROR_FORMAT, WHERE,
                   "%s: which column holds the %s? %s names it; the columns are %s", t->line.path,
                   texts[0] ? "label" : "text", texts[0] ? "--label-column" : "--text-column",
                   list_names(t, names, sizeof names));
}

static int check_count(table *t, int count) {
    if (count > MOST_COLUMNS || (!t->named && (count < FEWEST_FIELDS || count > WG_TABLE_FIELDS)))
        return wg__fail_line(&t->line,
                             "%d tab-separated columns; wanted a text or two, then the "
                             "label, or a first line that names the columns",
                             count);
    if (t->count && count != t->count)
        return wg__fail_line(&t->line, "%d columns; the lines before have %d", count, t->count);
    t->count = count;
    return 0;
}

/* Reads the first line. It is a header if the caller gave names of columns, or if it has well-known
 * names. Returns 1 for a header, 0 for a row. */
static int read_header(table *t, int count, const char *const *columns) {
    t->names = count < MOST_COLUMNS ? count : MOST_COLUMNS;
    memcpy(t->name, columns, (size_t)t->names * sizeof *t->name);
    t->named = t->columns.text || t->columns.label || (known_texts_of(t)[0] && known_label_of(t));
    if (check_count(t, count) < 0)
        return -1;
    if (t->named)
        return choose_columns(t) < 0 ? -1 : 1;
    for (int i = 0; i < count; i++)
        t->wanted[i] = i;
    t->fields = count;
    return strcmp(columns[count - 1], "label") == 0;
}

static int read_columns(table *t, char *line) {
    const char *columns[MOST_COLUMNS];
    char *fields[WG_TABLE_FIELDS];
    int count = 0; /* may exceed MOST_COLUMNS */
    for (char *rest = line; rest; count++) {
        if (count < MOST_COLUMNS)
            columns[count] = rest;
        rest = strchr(rest, '\t');
        if (rest)
            *rest++ = '\0';
    }
    const int header = t->count ? 0 : read_header(t, count, columns);
    if (header != 0)
        return header < 0 ? -1 : 0;
    if (check_count(t, count) < 0)
        return -1;
    for (int i = 0; i < t->fields; i++)
        fields[i] = (char *)columns[t->wanted[i]];
    return t->row(t->context, t->line.number, t->fields, fields);
}

/* Writes a number, a truth value or a list of labels, joined with commas, as text. Borrowed. NULL
 * with MEMORY, or FORMAT for another value. */
static char *write_value(table *t, int field, const json_t *value) {
    wg__text *text = &t->numbers[field];
    text->length = 0;
    if (t->columns.lists && field == t->fields - 1 && json_is_array(value)) {
        int status = wg__text_append(text, "", 0);
        for (size_t i = 0; status == 0 && i < json_array_size(value); i++) {
            const char *label = json_string_value(json_array_get(value, i));
            if (!label || !*label || strchr(label, ','))
                status = wg__fail_line(&t->line, "a list of labels has one that is no text, is "
                                                 "empty, or has a comma");
            if (status == 0 && i > 0)
                status = wg__text_append(text, ",", 1);
            if (status == 0)
                status = wg__text_append(text, label, (int64_t)strlen(label));
        }
        return status < 0 ? NULL : text->bytes;
    }
    char *json = json_is_number(value) || json_is_boolean(value)
                     ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))
                     : NULL;
    const bool written = json && wg__text_append(text, json, (int64_t)strlen(json)) == 0;
    if (!json)
        wg__fail_line(&t->line, "\"%.80s\" is missing, or neither a text nor a number",
                      t->name[t->wanted[field]]);
    free(json);
    return written ? text->bytes : NULL;
}

static int read_object(table *t, const char *line) {
    char *fields[WG_TABLE_FIELDS];
    json_error_t error;
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error), *member;
    int status = 0;
    if (!json_is_object(object))
        status = wg__fail_line(
            &t->line, "%s", object ? "it is no JSON object, as the lines before are" : error.text);
    else if (!t->first) { /* its keys are the names of columns */
        const char *key;
        t->first = json_incref(object);
        t->names = 0;
        json_object_foreach(object, key, member) {
            if (t->names < MOST_COLUMNS)
                t->name[t->names++] = key;
        }
        status = choose_columns(t);
    }
    for (int i = 0; status == 0 && i < t->fields; i++) {
        const json_t *value = json_object_get(object, t->name[t->wanted[i]]);
        const char *text = json_string_value(value);
        fields[i] = text ? (char *)text : write_value(t, i, value);
        status = fields[i] ? 0 : -1;
    }
    if (status == 0)
        status = t->row(t->context, t->line.number, t->fields, fields);
    json_decref(object);
    return status;
}

/* The file is JSON if its first line is an object, or begins with { and has no tab. */
static int read_line(void *context, char *line) {
    table *t = context;
    if (*line == '\0')
        return 0;
    bool object = t->first;
    if (!object && t->count == 0 && *line == '{') {
        json_t *json = json_loads(line, 0, NULL);
        object = json_is_object(json) || !strchr(line, '\t');
        json_decref(json);
    }
    return object ? read_object(t, line) : read_columns(t, line);
}

int wg__table_read(const char *path, const wg__table_columns *columns,
                   int (*row)(void *context, int64_t line, int count, char *const *fields),
                   void *context) {
    static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark */
    table t = {.line = {WHERE, path, 0}, .columns = *columns, .row = row, .context = context};
    const char **names[] = {&t.columns.text, &t.columns.text_pair, &t.columns.label};
    for (int i = 0; i < WG_TABLE_FIELDS; i++)
        if (*names[i] && **names[i] == '\0')
            *names[i] = NULL;
    if (t.columns.text_pair && !t.columns.text)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "--text-pair-column names a second text; --text-column must name the first");
    int64_t length;
    char *bytes = wg__text_file_read(path, &length, WHERE);
    int status = bytes ? wg__utf8_check(bytes, length, path, WHERE) : -1;
    const int64_t skipped = bytes && strncmp(bytes, mark, 3) == 0 ? 3 : 0;
    if (status == 0)
        status = wg__each_line(&t.line, bytes + skipped, length - skipped, read_line, &t);
    json_decref(t.first);
    for (int i = 0; i < WG_TABLE_FIELDS; i++)
        wg__free(t.numbers[i].bytes);
    wg__free(bytes);
    return status;
}
