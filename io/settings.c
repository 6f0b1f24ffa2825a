/* Settings by tables: see settings.h. */
#include "io/config.h"
#include "base/json.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "io/internal.h"
#include "io/weights/binary_file.h"

/* A member of the struct, by the types that it may have. */
typedef union member {
    void *any;
    int64_t *integer;
    double *number;
    bool *flag;
    int *choice;
    const char **text;
    wg_setting_list *list;
    wg_setting_numbers *numbers;
} member;

static member member_of(const void *values, const wg_setting *row) {
    return (member){.any = (char *)(uintptr_t)values + row->offset};
}

const wg_setting *wg__settings_find(const wg_setting_table *table, const char *name) {
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return &table->rows[i];
    return NULL;
}

static void clear_list(wg_setting_list *list) {
    for (int64_t i = 0; i < list->count; i++)
        wg__free((char *)(uintptr_t)list->items[i]);
    wg__free(list->items);
    *list = (wg_setting_list){0};
}

static void clear_member(const wg_setting *row, member m) {
    static const size_t sizes[] = {[WG_SETTING_INTEGER] = sizeof(int64_t),
                                   [WG_SETTING_NUMBER] = sizeof(double),
                                   [WG_SETTING_FLAG] = sizeof(bool),
                                   [WG_SETTING_CHOICE] = sizeof(int),
                                   [WG_SETTING_TOKEN] = sizeof(int64_t),
                                   [WG_SETTING_BYTES] = sizeof(int64_t),
                                   [WG_SETTING_TEXT] = sizeof(char *),
                                   [WG_SETTING_FILE] = sizeof(char *),
                                   [WG_SETTING_TEXTS] = sizeof(wg_setting_list),
                                   [WG_SETTING_FILES] = sizeof(wg_setting_list),
                                   [WG_SETTING_PAIRS] = sizeof(wg_setting_list),
                                   [WG_SETTING_NUMBERS] = sizeof *m.numbers,
                                   [WG_SETTING_ONLY] = 0};
    if (row->kind == WG_SETTING_TEXT || row->kind == WG_SETTING_FILE)
        wg__free((char *)(uintptr_t)*m.text);
    else if (row->kind == WG_SETTING_NUMBERS)
        wg__free(m.numbers->items);
    else if (row->kind == WG_SETTING_TEXTS || row->kind == WG_SETTING_FILES ||
             row->kind == WG_SETTING_PAIRS)
        clear_list(m.list);
    memset(m.any, 0, sizes[row->kind]);
}

void wg__settings_clear(const wg_setting_table *table, void *values) {
    for (int i = 0; i < table->count; i++)
        clear_member(&table->rows[i], member_of(values, &table->rows[i]));
}

/* A copy of a text for a member; of an existing file its absolute path. */
static char *copy_text(const wg_setting *row, const char *text) {
    const bool is_path = row->kind == WG_SETTING_FILE || row->kind == WG_SETTING_FILES;
    char *path = is_path ? realpath(text, NULL) : NULL;
    char *copy = wg__strdup(path ? path : text);
    free(path);
    return copy;
}

static int set_text(member m, char *text) {
    if (!text)
        return -1;
    wg__free((char *)(uintptr_t)*m.text);
    *m.text = text;
    return 0;
}

/* ---- Rules ---- */

int wg__settings_refuse(const char *where, const char *key, double value, const char *rule) {
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s is %.15g; it must be %s", key, value, rule);
}

static bool in_range(const wg_setting *row, double value) {
    if (row->low == 0 && row->high == 0)
        return isfinite(value);
    return (row->above ? value > row->low : value >= row->low) &&
           (row->below ? value < row->high : value <= row->high) && isfinite(value);
}

/* "at least 0 and below 1", "from 1 to 4096"; "" for any number. Returns text. */
static const char *rule_of(const wg_setting *row, char *text, size_t size) {
    const bool bounded = row->low != 0 || row->high != 0;
    const bool low = bounded && isfinite(row->low), high = bounded && isfinite(row->high);
    text[0] = '\0';
    if (low && high && !row->above && !row->below) {
        snprintf(text, size, "from %.15g to %.15g", row->low, row->high);
        return text;
    }
    if (low)
        snprintf(text, size, "%s %.15g", row->above ? "above" : "at least", row->low);
    if (high)
        snprintf(text + strlen(text), size - strlen(text), "%s%s %.15g", low ? " and " : "",
                 row->below ? "below" : "at most", row->high);
    return text;
}

static int check_row(const char *where, const wg_setting *row, member m, int64_t vocabulary) {
    char rule[96];
    const double number = row->kind == WG_SETTING_NUMBER    ? *m.number
                          : row->kind == WG_SETTING_INTEGER ? (double)*m.integer
                                                            : 0;
    switch (row->kind) {
    case WG_SETTING_INTEGER:
    case WG_SETTING_NUMBER:
        if (in_range(row, number) || (row->optional && number == WG_ZERO))
            return 0;
        rule_of(row, rule, sizeof rule);
        return wg__settings_refuse(where, row->name, number, *rule ? rule : "a finite number");
    case WG_SETTING_NUMBERS:
        for (int64_t i = 0; i < m.numbers->count; i++)
            if (!in_range(row, m.numbers->items[i]))
                return wg__settings_refuse(where, row->name, m.numbers->items[i],
                                           rule_of(row, rule, sizeof rule));
        return 0;
    case WG_SETTING_TOKEN:
        return *m.integer >= (int64_t)row->low && *m.integer < vocabulary
                   ? 0
                   : wg__settings_refuse(where, row->name, (double)*m.integer,
                                         row->low < 0 ? "a token of the vocabulary, or -1 for none"
                                                      : "a token of the vocabulary");
    case WG_SETTING_CHOICE:
        for (int i = 0; row->choice(i); i++)
            if (i == *m.choice)
                return 0;
        return wg__settings_refuse(where, row->name, *m.choice, "a value of its enumeration");
    default:
        return 0;
    }
}

int wg__settings_check(const wg_setting_table *table, const void *values, int64_t vocabulary) {
    int status = 0;
    for (int i = 0; status == 0 && i < table->count; i++)
        status = check_row(table->where, &table->rows[i], member_of(values, &table->rows[i]),
                           vocabulary);
    return status;
}

static const char *choice_of(const void *row, int index) {
    return ((const wg_setting *)row)->choice(index);
}

static int find_choice(const wg_setting *row, const char *name) {
    for (const char *const *alias = row->aliases; alias && *alias; alias += 2)
        if (strcmp(name, alias[0]) == 0)
            name = alias[1];
    for (int i = 0; row->choice(i); i++)
        if (strcmp(name, row->choice(i)) == 0)
            return i;
    return -1;
}

/* "linear, cosine and wsd". Returns text. */
static const char *list_choices(const wg_setting *row, const char *last, char *text, size_t size) {
    text[0] = '\0';
    for (int i = 0; row->choice(i); i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%s",
                 i == 0               ? ""
                 : row->choice(i + 1) ? ", "
                                      : last,
                 row->choice(i));
    return text;
}

/* ---- Reading ---- */

int wg__settings_require(const wg_setting_table *table, wg_config *json) {
    enum { MOST = 32 };
    const char *needed[MOST];
    int count = 0;
    for (int i = 0; i < table->count && count < MOST; i++)
        if (!table->rows[i].standard && !table->rows[i].derived)
            needed[count++] = table->rows[i].name;
    return wg__config_require(json, count, needed);
}

static int append(wg_setting_list *list, char *item) {
    const char **items = item ? wg__alloc_array(list->count + 1, sizeof *items) : NULL;
    if (!items) {
        wg__free(item);
        return -1;
    }
    for (int64_t i = 0; i < list->count; i++)
        items[i] = list->items[i];
    items[list->count++] = item;
    wg__free(list->items);
    list->items = items;
    return 0;
}

static int read_list(const wg_setting *row, wg_config *json, wg_setting_list *value) {
    json_t *found = wg__config_value(json, row->name), *item;
    const bool pairs = row->kind == WG_SETTING_PAIRS;
    const bool one = row->kind == WG_SETTING_FILES && json_is_string(found); /* "corpus": "a.txt" */
    const char *key = NULL;
    wg_setting_list list = {0};
    size_t i = 0;
    if (pairs ? !json_is_object(found) : !json_is_array(found) && !one)
        return wg__config_refuse_value(json, row->name, found, pairs ? "an object" : "a list");
    const size_t count = pairs ? json_object_size(found) : one ? 1 : json_array_size(found);
    for (void *at = json_object_iter(found); i < count;
         i++, at = pairs ? json_object_iter_next(found, at) : NULL) {
        item = pairs ? json_object_iter_value(at) : one ? found : json_array_get(found, i);
        key = pairs ? json_object_iter_key(at) : NULL;
        const char *text = json_string_value(item);
        if (pairs && text && (!*key || strchr(key, '=') || !*text)) /* as on the command line */
            text = NULL;
        if (!text)
            wg__config_refuse_value(json, row->name, item,
                                    pairs ? "texts, each under its label" : "a list of texts");
        if (!text || append(&list, pairs ? wg__joined(key, "=", text) : copy_text(row, text)) < 0)
            break;
    }
    clear_list(i == count ? value : &list);
    if (i == count)
        *value = list;
    return i == count ? 0 : -1;
}

static int read_numbers(const wg_setting *row, wg_config *json, wg_setting_numbers *value) {
    const json_t *found = wg__config_value(json, row->name);
    if (!json_is_array(found))
        return wg__config_refuse_value(json, row->name, found, "a list of numbers");
    const size_t count = json_array_size(found);
    double *items = wg__alloc_array(count + 1, sizeof *items);
    for (size_t i = 0; items && i < count; i++) {
        const json_t *item = json_array_get(found, i);
        if (!json_is_number(item)) {
            wg__free(items);
            return wg__config_refuse_value(json, row->name, item, "a list of numbers");
        }
        items[i] = json_number_value(item);
    }
    if (!items)
        return -1;
    wg__free(value->items);
    *value = (wg_setting_numbers){(int64_t)count, items};
    return 0;
}

static bool is_same(const json_t *a, const json_t *b) {
    return json_is_number(a) && json_is_number(b) ? json_number_value(a) == json_number_value(b)
                                                  : json_equal(a, b);
}

/* Reads the key of a row into its member, which stays as it is without one. */
static int read_row(const char *where, const wg_setting *row, wg_config *json, member m) {
    const json_t *found = json && !wg_error_pending() ? wg__config_value(json, row->name) : NULL;
    const char *text = NULL;
    if (!found && row->kind == WG_SETTING_TOKEN && row->low < 0 && json &&
        wg__config_is_null(json, row->name))
        *m.integer = -1;
    if (!found)
        return wg_error_pending() ? -1 : 0;
    switch (row->kind) {
    case WG_SETTING_TOKEN:
    case WG_SETTING_INTEGER:
    case WG_SETTING_BYTES:
        return row->list ? wg__config_first_integer(json, row->name, m.integer)
                         : wg__config_integer(json, row->name, m.integer);
    case WG_SETTING_NUMBER:
        if (wg__config_number(json, row->name, m.number) < 0)
            return -1;
        if (row->optional && *m.number == 0)
            *m.number = WG_ZERO;
        return 0;
    case WG_SETTING_FLAG:
        return wg__config_boolean(json, row->name, m.flag);
    case WG_SETTING_CHOICE:
        if (wg__config_text(json, row->name, &text) < 0)
            return -1;
        char names[256], suggestion[96];
        const int choice = find_choice(row, text);
        if (choice < 0)
            return wg_fail(WG_ERROR_ARGUMENT, where, "%s is \"%.64s\"; it must be one of %s%s",
                           row->name, text, list_choices(row, ", ", names, sizeof names),
                           wg__suggestion(suggestion, sizeof suggestion, text, choice_of, row));
        *m.choice = choice;
        return 0;
    case WG_SETTING_TEXT:
    case WG_SETTING_FILE:
        return wg__config_text(json, row->name, &text) < 0 ? -1 : set_text(m, copy_text(row, text));
    case WG_SETTING_TEXTS:
    case WG_SETTING_FILES:
    case WG_SETTING_PAIRS:
        return read_list(row, json, m.list);
    case WG_SETTING_NUMBERS:
        return read_numbers(row, json, m.numbers);
    case WG_SETTING_ONLY:
        break;
    }
    /* WG_SETTING_ONLY: any value except `standard` is refused. */
    json_t *known = row->standard ? json_loads(row->standard, JSON_DECODE_ANY, NULL) : NULL;
    const bool good = !row->standard || is_same(known, found);
    json_decref(known);
    return good ? 0 : wg__config_refuse_value(json, row->name, found, row->standard);
}

/* Sets the members with a standard value. Each is parsed as the JSON object {"NAME": STANDARD}. */
static int set_standards(const wg_setting_table *table, void *values) {
    int status = 0;
    for (int i = 0; status == 0 && i < table->count; i++) {
        const wg_setting *row = &table->rows[i];
        char text[160];
        if (!row->standard || row->kind == WG_SETTING_ONLY)
            continue;
        snprintf(text, sizeof text, "{\"%s\": %s}", row->name, row->standard);
        wg_config *json = wg__config_parse(text, row->name);
        status = json ? read_row(table->where, row, json, member_of(values, row)) : -1;
        wg__config_free(json);
    }
    return status;
}

int wg__settings_standard(const wg_setting_table *table, void *values) {
    memset(values, 0, table->size);
    return set_standards(table, values);
}

int wg__settings_read(const wg_setting_table *table, wg_config *json, void *values) {
    int status = json ? 0 : -1;
    for (int i = 0; status == 0 && i < table->count; i++) {
        const wg_setting *row = &table->rows[i];
        const member m = member_of(values, row);
        status = read_row(table->where, row, json, m);
        if (status == 0 && wg__config_has(json, row->name))
            status = check_row(table->where, row, m, INT64_MAX);
    }
    return status;
}

/* ---- Writing ---- */

/* A list; of pairs {"label": "text"} of items "label=text": a label has no "=". */
static json_t *list_json(const wg_setting *row, member m) {
    if (row->kind == WG_SETTING_NUMBERS) {
        json_t *numbers = json_array();
        for (int64_t i = 0; i < m.numbers->count; i++)
            wg__json_append(&numbers, json_real(m.numbers->items[i]));
        return numbers;
    }
    const bool pairs = row->kind == WG_SETTING_PAIRS;
    json_t *list = pairs ? json_object() : json_array();
    for (int64_t i = 0; list && i < m.list->count; i++) {
        const char *item = m.list->items[i], *equals = pairs ? strchr(item, '=') : NULL;
        if (!pairs)
            wg__json_append(&list, json_string(item));
        else if (equals && json_object_setn_new(list, item, (size_t)(equals - item),
                                                json_string(equals + 1)) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int write_row(const wg_setting *row, const void *values, wg_config *json) {
    const member m = member_of(values, row);
    switch (row->kind) {
    case WG_SETTING_TOKEN:
        if (*m.integer < 0)
            return wg__config_set(json, row->name, json_null());
        /* fall through */
    case WG_SETTING_INTEGER:
    case WG_SETTING_BYTES:
        return row->unless_zero && *m.integer == 0
                   ? 0
                   : wg__config_set_integer(json, row->name, *m.integer);
    case WG_SETTING_NUMBER:
        return wg__config_set_number(json, row->name,
                                     row->optional && *m.number == WG_ZERO ? 0 : *m.number);
    case WG_SETTING_FLAG:
        return wg__config_set_boolean(json, row->name, *m.flag);
    case WG_SETTING_CHOICE:
        return wg__config_set_text(json, row->name, row->choice(*m.choice));
    case WG_SETTING_TEXT:
    case WG_SETTING_FILE:
        return *m.text ? wg__config_set_text(json, row->name, *m.text) : 0;
    case WG_SETTING_TEXTS:
    case WG_SETTING_FILES:
    case WG_SETTING_PAIRS:
        return m.list->items ? wg__config_set(json, row->name, list_json(row, m)) : 0;
    case WG_SETTING_NUMBERS:
        return m.numbers->items ? wg__config_set(json, row->name, list_json(row, m)) : 0;
    case WG_SETTING_ONLY:
        return 0;
    }
    return -1;
}

int wg__settings_write(const wg_setting_table *table, const void *values, wg_config *json) {
    int status = json ? 0 : -1;
    for (int i = 0; status == 0 && i < table->count; i++)
        status = write_row(&table->rows[i], values, json);
    return status;
}

/* ---- Values of the command line ---- */

int64_t wg__settings_numbers(const char *text, const char *separators, double low, double high,
                             int64_t most, double *numbers) {
    const wg_setting row = {.low = low, .high = high};
    for (int64_t count = 0; count < most; text++) {
        char *end;
        numbers[count] = strtod(text, &end);
        if (end == text || (*end && !strchr(separators, *end)) || !in_range(&row, numbers[count]))
            return -1;
        count++;
        if (!*end)
            return count;
        text = end;
    }
    return -1;
}

static int refuse_text(const wg_setting *row, const char *text, const char *kind) {
    char rule[96];
    rule_of(row, rule, sizeof rule);
    return wg_fail(WG_ERROR_ARGUMENT, "options", "--%s: '%s' is not %s%s%s", row->name, text, kind,
                   strncmp(rule, "at ", 3) == 0 ? " of "
                   : *rule                      ? " "
                                                : "",
                   rule);
}

/* A size in bytes, as Hugging Face writes it: GB are 10^9, GiB 2^30. */
static int parse_bytes(const wg_setting *row, const char *text, int64_t *value) {
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                 {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    char *unit;
    const double number = isdigit((unsigned char)*text) ? strtod(text, &unit) : 0;
    for (size_t i = 0; number > 0 && i < sizeof units / sizeof units[0]; i++) {
        const double bytes = number * units[i].bytes;
        if (strcasecmp(unit, units[i].unit) == 0 && bytes >= 1 && bytes < 0x1p62) {
            *value = (int64_t)bytes;
            return 0;
        }
    }
    return refuse_text(row, text, "a size such as 5GB, 200MB or 1GiB");
}

/* Appends a text of the command line to a list; `again` false: the list begins anew. */
static int append_text(const wg_setting *row, const char *text, bool again, wg_setting_list *list) {
    if (!again)
        clear_list(list);
    if (row->kind != WG_SETTING_PAIRS)
        return append(list, copy_text(row, text));
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return wg_fail(WG_ERROR_ARGUMENT, "options", "--%s: '%s' is not LABEL=TEXT", row->name,
                       text);
    const int label = (int)(equals - text);
    for (int64_t i = 0; i < list->count; i++)
        if (strncmp(list->items[i], text, (size_t)label + 1) == 0)
            return wg_fail(WG_ERROR_ARGUMENT, "options", "--%s: '%.*s' is said twice", row->name,
                           label, text);
    return append(list, wg__strdup(text));
}

/* Sets a member to a text of the command line. `again`: the option was given before, so a list gets
 * one more item. */
static int parse_text(const wg_setting *row, const char *text, bool again, member m) {
    char *end, names[256], suggestion[96];
    switch (row->kind) {
    case WG_SETTING_INTEGER:
    case WG_SETTING_TOKEN:
        errno = 0;
        *m.integer = strtoll(text, &end, 10);
        return end != text && !*end && errno != ERANGE && in_range(row, (double)*m.integer)
                   ? 0
                   : refuse_text(row, text, "a whole number");
    case WG_SETTING_NUMBER:
        *m.number = strtod(text, &end);
        if (end == text || *end || !in_range(row, *m.number))
            return refuse_text(row, text, "a number");
        if (row->optional && *m.number == 0)
            *m.number = WG_ZERO;
        return 0;
    case WG_SETTING_FLAG:
        *m.flag = true;
        return 0;
    case WG_SETTING_CHOICE:
        *m.choice = find_choice(row, text);
        return *m.choice >= 0
                   ? 0
                   : wg_fail(WG_ERROR_ARGUMENT, "options", "--%s: there is no '%s'; %s are there%s",
                             row->name, text, list_choices(row, " and ", names, sizeof names),
                             wg__suggestion(suggestion, sizeof suggestion, text, choice_of, row));
    case WG_SETTING_BYTES:
        return parse_bytes(row, text, m.integer);
    case WG_SETTING_TEXT:
    case WG_SETTING_FILE:
        return set_text(m, copy_text(row, text));
    case WG_SETTING_TEXTS:
    case WG_SETTING_FILES:
    case WG_SETTING_PAIRS:
        return append_text(row, text, again, m.list);
    case WG_SETTING_NUMBERS: {
        const int64_t most = (int64_t)strlen(text) + 1;
        double *items = wg__alloc_array(most, sizeof *items);
        if (!items)
            return -1;
        const int64_t count = wg__settings_numbers(text, ",", row->low, row->high, most, items);
        wg__free(m.numbers->items);
        *m.numbers = (wg_setting_numbers){count, items};
        return count > 0 ? 0 : refuse_text(row, text, "a list of numbers, as 3,1, each");
    }
    case WG_SETTING_ONLY:
        break;
    }
    return -1;
}

/* ---- Several structs, and where each value is from ---- */

int wg__settings_add(wg_settings *settings, const wg_setting_table *table, void *values) {
    int i = 0;
    while (i < settings->count && settings->parts[i].table != table)
        i++;
    assert(i < WG__MOST_PARTS && table->count <= WG__MOST_ROWS);
    wg_setting_part *part = &settings->parts[i];
    settings->count += i == settings->count;
    *part = (wg_setting_part){.table = table, .values = values};
    if (values && set_standards(table, values) < 0)
        return -1;
    for (int row = 0; row < table->count; row++)
        part->origins[row] = table->rows[row].standard ? WG_SETTING_STANDARD : WG_SETTING_UNSET;
    return 0;
}

void wg__settings_end(wg_settings *settings) {
    for (int i = 0; i < settings->count; i++)
        if (settings->parts[i].values)
            wg__settings_clear(settings->parts[i].table, settings->parts[i].values);
    *settings = (wg_settings){0};
}

/* A row of a table that has its struct; {0}: not found. */
typedef struct place {
    wg_setting_part *part;
    const wg_setting *row;
    unsigned char *origin;
    member member;
} place;

static place find(wg_settings *settings, const char *name) {
    for (int i = 0; name && i < settings->count; i++) {
        wg_setting_part *part = &settings->parts[i];
        const wg_setting *row = part->values ? wg__settings_find(part->table, name) : NULL;
        if (row)
            return (place){part, row, &part->origins[row - part->table->rows],
                           member_of(part->values, row)};
    }
    return (place){0};
}

static place find_member(const wg_settings *settings, const void *member) {
    for (int i = 0; i < settings->count; i++) {
        wg_setting_part *part = (wg_setting_part *)&settings->parts[i];
        for (int r = 0; part->values && r < part->table->count; r++) {
            const wg_setting *row = &part->table->rows[r];
            const union member m = member_of(part->values, row);
            if (m.any == member)
                return (place){part, row, &part->origins[r], m};
        }
    }
    return (place){0};
}

/* Notes the origin of a value that was set, and clears a weaker value of the row that it
 * excludes. A note may have both, for instance the steps of a run that was given epochs. */
static void settle(const place *at, const place *rival, wg_setting_origin origin) {
    *at->origin = (unsigned char)origin;
    if (rival->part && *rival->origin < origin) {
        clear_member(rival->row, rival->member);
        *rival->origin = WG_SETTING_UNSET;
    }
}

int wg__settings_set_text(wg_settings *settings, const char *name, const char *text) {
    const place at = find(settings, name);
    if (!at.part)
        return wg_fail(WG_ERROR_ARGUMENT, "options", "--%s is not for %s", name, settings->user);
    const place rival = find(settings, at.row->excludes);
    if (rival.part && *rival.origin == WG_SETTING_COMMAND)
        return wg_fail(WG_ERROR_ARGUMENT, "options", "--%s and --%s exclude each other",
                       at.row->excludes, name);
    json_t *utf8 = text && at.part->table->where ? json_string(text) : json_null();
    if (!utf8)
        return wg_fail(WG_ERROR_ARGUMENT, "options", "--%s: '%s' is not UTF-8", name, text);
    json_decref(utf8);
    if (parse_text(at.row, text, *at.origin == WG_SETTING_COMMAND, at.member) < 0)
        return -1;
    settle(&at, &rival, WG_SETTING_COMMAND);
    return 0;
}

/* Sets the member at a place to its value in `json`. If a value of a stronger origin exists, the
 * new value is only checked. */
static int set_from_json(wg_settings *settings, place at, wg_config *json,
                         wg_setting_origin origin) {
    union {
        int64_t integer;
        wg_setting_list list;
    } unused = {0};
    const place rival = find(settings, at.row->excludes);
    const bool rules = origin >= *at.origin && !(rival.part && *rival.origin > origin);
    const char *where = wg__config_name(json);
    const member m = rules ? at.member : (member){.any = &unused};
    if (wg__config_is_null(json, at.row->name))
        return wg__config_refuse_value(json, at.row->name, json_null(), "a value");
    const int status =
        read_row(where, at.row, json, m) < 0 ? -1 : check_row(where, at.row, m, INT64_MAX);
    if (!rules)
        clear_member(at.row, m);
    else if (status == 0)
        settle(&at, &rival, origin);
    return status;
}

int wg__settings_set_object(wg_settings *settings, wg_config *json, wg_setting_origin origin) {
    int status = json ? 0 : -1;
    for (int i = 0; i < settings->count; i++) {
        const wg_setting_table *table = settings->parts[i].table;
        for (int row = 0; table->where && status == 0 && row < table->count; row++) {
            const char *name = table->rows[row].name;
            const place at = find(settings, name);
            if (!wg__config_value(json, name) && !wg__config_is_null(json, name))
                continue;
            if (at.part && at.part->table == table)
                status = set_from_json(settings, at, json, origin);
            else if (!at.part && origin == WG_SETTING_OF_FILE)
                status = wg_fail(WG_ERROR_ARGUMENT, "options", "--%s is not for %s", name,
                                 settings->user);
        }
    }
    return status;
}

wg_setting_origin wg__settings_origin(const wg_settings *settings, const void *member) {
    const place at = find_member(settings, member);
    return at.part ? (wg_setting_origin)*at.origin : WG_SETTING_UNSET;
}

bool wg__settings_given(const wg_settings *settings, const void *member) {
    return wg__settings_origin(settings, member) > WG_SETTING_RECORD;
}

void wg__settings_decide(wg_settings *settings, const void *member) {
    const place at = find_member(settings, member);
    if (at.part && *at.origin == WG_SETTING_UNSET)
        *at.origin = WG_SETTING_RECORD;
}

wg_config *wg__settings_to_json(const wg_settings *settings) {
    wg_config *json = wg__config_new();
    int status = json ? 0 : -1;
    for (int i = 0; i < settings->count; i++) {
        const wg_setting_part *part = &settings->parts[i];
        for (int row = 0; part->values && part->table->where && row < part->table->count; row++)
            if (status == 0 && part->origins[row] != WG_SETTING_UNSET)
                status = write_row(&part->table->rows[row], part->values, json);
    }
    if (status == 0)
        return json;
    wg__config_free(json);
    return NULL;
}

int wg__settings_check_fixed(const wg_settings *settings, wg_config *note, const char *path) {
    wg_config *now = wg__settings_to_json(settings);
    int status = now ? 0 : -1;
    for (int i = 0; i < settings->count; i++) {
        const wg_setting_part *part = &settings->parts[i];
        for (int r = 0; part->values && r < part->table->count; r++) {
            const wg_setting *row = &part->table->rows[r];
            if (status < 0 || !row->fixed || part->origins[r] < WG_SETTING_OF_FILE)
                continue;
            const json_t *begun = wg__config_value(note, row->name);
            if (is_same(begun, wg__config_value(now, row->name)))
                continue;
            char *text = begun ? json_dumps(begun, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
            status = wg_fail(WG_ERROR_STATE, path,
                             "--%s cannot change while a run goes on; it was begun with %s",
                             row->name, text ? text : "another choice");
            free(text);
        }
    }
    wg__config_free(now);
    return status;
}

char *wg__settings_page(const wg_setting_table *table) {
    wg__text page = {0};
    char line[512] = "| key | left out | meaning |\n| --- | --- | --- |\n";
    int status = wg__text_append(&page, line, (int64_t)strlen(line));
    for (int i = 0; status == 0 && i < table->count; i++) {
        const wg_setting *row = &table->rows[i];
        const char *quote = row->standard ? "`" : "";
        snprintf(line, sizeof line, "| `%s` | %s%s%s | %s |\n", row->name, quote,
                 row->standard  ? row->standard
                 : row->derived ? row->derived
                                : "needed",
                 quote, row->help);
        status = wg__text_append(&page, line, (int64_t)strlen(line));
    }
    if (status == 0)
        return page.bytes;
    wg__free(page.bytes);
    return NULL;
}
