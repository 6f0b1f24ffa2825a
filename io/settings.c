/* Settings by tables: see settings.h. */
#include "io/settings.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "io/config_json.h"
#include "io/weights/binary_file.h"
#include "tensor/internal.h"

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

/* ---- Owned members ---- */

static void clear_list(wg_setting_list *list) {
    for (int64_t i = 0; i < list->count; i++)
        wg__free((char *)(uintptr_t)list->items[i]);
    wg__free(list->items);
    *list = (wg_setting_list){0};
}

static void clear_member(const wg_setting *row, void *values) {
    const member m = member_of(values, row);
    switch (row->kind) {
    case WG_SETTING_TEXT:
    case WG_SETTING_FILE:
        wg__free((char *)(uintptr_t)*m.text);
        *m.text = NULL;
        return;
    case WG_SETTING_FILES:
    case WG_SETTING_PAIRS:
        clear_list(m.list);
        return;
    case WG_SETTING_NUMBERS:
        wg__free(m.numbers->items);
        *m.numbers = (wg_setting_numbers){0};
        return;
    default:
        return;
    }
}

void wg__settings_clear(const wg_setting_table *table, void *values) {
    for (int i = 0; i < table->count; i++)
        clear_member(&table->rows[i], values);
}

/* ---- Reading ---- */

int wg__settings_require(const wg_setting_table *table, wg_config *json) {
    enum { MOST = 32 };
    const char *needed[MOST];
    int count = 0;
    for (int i = 0; i < table->count && count < MOST; i++)
        if (!table->rows[i].standard && !table->rows[i].derived)
            needed[count++] = table->rows[i].name;
    return wg_config_require(json, count, needed);
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

static int read_choice(const char *where, const wg_setting *row, wg_config *json, int *value) {
    const char *name = NULL;
    if (wg_config_text(json, row->name, &name) < 0)
        return -1;
    const int found = name ? find_choice(row, name) : *value;
    if (found < 0) {
        char names[256] = "";
        for (int i = 0; row->choice(i); i++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                     row->choice(i));
        return wg_fail(WG_ERROR_ARGUMENT, where, "%s is \"%.64s\"; it must be one of %s", row->name,
                       name, names);
    }
    *value = found;
    return 0;
}

static int read_text(const wg_setting *row, wg_config *json, const char **value) {
    const char *text = NULL;
    if (wg_config_text(json, row->name, &text) < 0)
        return -1;
    char *copy = text ? wg__strdup(text) : NULL;
    if (!text || !copy)
        return text ? -1 : 0;
    wg__free((char *)(uintptr_t)*value);
    *value = copy;
    return 0;
}

/* An item of a list as the struct keeps it; NULL with an error. */
static char *copy_item(const wg_setting *row, const wg_config *json, const char *key,
                       const json_t *item) {
    const bool pairs = row->kind == WG_SETTING_PAIRS;
    const char *text = json_string_value(item);
    if (!text) {
        wg__config_refuse_value(json, row->name, item,
                                pairs ? "texts, each under its label" : "a list of texts");
        return NULL;
    }
    return pairs ? wg__joined(key, "=", text) : wg__strdup(text);
}

static int read_list(const wg_setting *row, wg_config *json, wg_setting_list *value) {
    json_t *found = wg__config_value(json, row->name);
    const bool pairs = row->kind == WG_SETTING_PAIRS;
    if (!found)
        return 0;
    if (pairs ? !json_is_object(found) : !json_is_array(found))
        return wg__config_refuse_value(json, row->name, found, pairs ? "an object" : "a list");
    const size_t count = pairs ? json_object_size(found) : json_array_size(found);
    wg_setting_list list = {.items = wg__alloc_array(count + 1, sizeof *list.items)};
    void *at = json_object_iter(found); /* NULL of a list */
    int result = list.items ? 0 : -1;
    for (size_t i = 0; result == 0 && i < count; i++) {
        const json_t *item = pairs ? json_object_iter_value(at) : json_array_get(found, i);
        char *copy = copy_item(row, json, pairs ? json_object_iter_key(at) : NULL, item);
        if (copy)
            list.items[list.count++] = copy;
        result = copy ? 0 : -1;
        at = pairs ? json_object_iter_next(found, at) : NULL;
    }
    clear_list(result == 0 ? value : &list);
    if (result == 0)
        *value = list;
    return result;
}

static int read_numbers(const wg_setting *row, wg_config *json, wg_setting_numbers *value) {
    const json_t *found = wg__config_value(json, row->name);
    if (!found)
        return 0;
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

/* Refuses any value but the one that is known. */
static int read_only(const wg_setting *row, wg_config *json) {
    if (!row->standard)
        return 0;
    const json_t *found = wg__config_value(json, row->name);
    json_t *known = found ? json_loads(row->standard, JSON_DECODE_ANY, NULL) : NULL;
    const bool equal = json_is_number(known) && json_is_number(found)
                           ? json_number_value(known) == json_number_value(found)
                           : json_equal(known, found);
    json_decref(known);
    return !found || equal ? 0 : wg__config_refuse_value(json, row->name, found, row->standard);
}

static int read_row(const char *where, const wg_setting *row, wg_config *json, void *values) {
    const member m = member_of(values, row);
    switch (row->kind) {
    case WG_SETTING_TOKEN:
        if (row->low < 0 && wg__config_is_null(json, row->name)) {
            wg__config_value(json, row->name); /* it counts as read */
            *m.integer = -1;
            return 0;
        }
        /* fall through */
    case WG_SETTING_INTEGER:
        return row->list ? wg__config_first_integer(json, row->name, m.integer)
                         : wg_config_integer(json, row->name, m.integer);
    case WG_SETTING_NUMBER:
        return wg_config_number(json, row->name, m.number);
    case WG_SETTING_FLAG:
        return wg_config_boolean(json, row->name, m.flag);
    case WG_SETTING_CHOICE:
        return read_choice(where, row, json, m.choice);
    case WG_SETTING_TEXT:
    case WG_SETTING_FILE:
        return read_text(row, json, m.text);
    case WG_SETTING_FILES:
    case WG_SETTING_PAIRS:
        return read_list(row, json, m.list);
    case WG_SETTING_NUMBERS:
        return read_numbers(row, json, m.numbers);
    case WG_SETTING_ONLY:
        return read_only(row, json);
    }
    return -1;
}

/* The standard value of a row is read like any other, from an object that has nothing else. */
static int read_standard(const wg_setting_table *table, const wg_setting *row, void *values) {
    char text[160];
    snprintf(text, sizeof text, "{\"%s\": %s}", row->name, row->standard);
    wg_config *json = wg_config_parse(text, table->where);
    const int status = json ? read_row(table->where, row, json, values) : -1;
    wg_config_free(json);
    return status;
}

int wg__settings_standard(const wg_setting_table *table, void *values) {
    memset(values, 0, table->size);
    int status = 0;
    for (int i = 0; status == 0 && i < table->count; i++)
        if (table->rows[i].standard && table->rows[i].kind != WG_SETTING_ONLY)
            status = read_standard(table, &table->rows[i], values);
    return status;
}

/* ---- Writing ---- */

static json_t *list_json(const wg_setting_list *list) {
    json_t *array = json_array();
    for (int64_t i = 0; i < list->count; i++)
        wg__json_append(&array, json_string(list->items[i]));
    return array;
}

/* {"label": "text"} of items "label=text"; a label has no "=". */
static json_t *pairs_json(const wg_setting_list *list) {
    json_t *object = json_object();
    for (int64_t i = 0; i < list->count; i++) {
        const char *item = list->items[i], *equals = strchr(item, '=');
        char *label = equals ? wg__strdup(item) : NULL;
        if (equals && !label) {
            json_decref(object);
            return NULL;
        }
        if (!label)
            continue;
        label[equals - item] = '\0';
        wg__json_put(&object, label, json_string(equals + 1));
        wg__free(label);
    }
    return object;
}

static json_t *numbers_json(const wg_setting_numbers *numbers) {
    json_t *array = json_array();
    for (int64_t i = 0; i < numbers->count; i++)
        wg__json_append(&array, json_real(numbers->items[i]));
    return array;
}

static int write_row(const wg_setting *row, const void *values, wg_config *json) {
    const member m = member_of(values, row);
    switch (row->kind) {
    case WG_SETTING_TOKEN:
        if (*m.integer < 0)
            return wg__config_set(json, row->name, json_null());
        /* fall through */
    case WG_SETTING_INTEGER:
        return row->unless_zero && *m.integer == 0
                   ? 0
                   : wg_config_set_integer(json, row->name, *m.integer);
    case WG_SETTING_NUMBER:
        return wg_config_set_number(json, row->name, *m.number);
    case WG_SETTING_FLAG:
        return wg_config_set_boolean(json, row->name, *m.flag);
    case WG_SETTING_CHOICE:
        return wg_config_set_text(json, row->name, row->choice(*m.choice));
    case WG_SETTING_TEXT:
    case WG_SETTING_FILE:
        return *m.text ? wg_config_set_text(json, row->name, *m.text) : 0;
    case WG_SETTING_FILES:
        return m.list->items ? wg__config_set(json, row->name, list_json(m.list)) : 0;
    case WG_SETTING_PAIRS:
        return m.list->items ? wg__config_set(json, row->name, pairs_json(m.list)) : 0;
    case WG_SETTING_NUMBERS:
        return m.numbers->items ? wg__config_set(json, row->name, numbers_json(m.numbers)) : 0;
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

/* ---- Rules ---- */

int wg__settings_refuse(const char *where, const char *key, double value, const char *rule) {
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s is %.15g; it must be %s", key, value, rule);
}

/* "at least 0 and below 1". */
static int check_range(const char *where, const wg_setting *row, double value) {
    const bool bounded = row->low != 0 || row->high != 0;
    const bool in_range = (row->above ? value > row->low : value >= row->low) &&
                          (row->below ? value < row->high : value <= row->high);
    if ((in_range || !bounded) && isfinite(value))
        return 0;
    char rule[96] = "a finite number";
    if (bounded && isfinite(row->low))
        snprintf(rule, sizeof rule, "%s %.15g", row->above ? "above" : "at least", row->low);
    if (bounded && isfinite(row->high))
        snprintf(isfinite(row->low) ? rule + strlen(rule) : rule, 48, "%s%s %.15g",
                 isfinite(row->low) ? " and " : "", row->below ? "below" : "at most", row->high);
    return wg__settings_refuse(where, row->name, value, rule);
}

static int check_row(const char *where, const wg_setting *row, const void *values,
                     int64_t vocabulary) {
    const member m = member_of(values, row);
    switch (row->kind) {
    case WG_SETTING_INTEGER:
        return check_range(where, row, (double)*m.integer);
    case WG_SETTING_NUMBER:
        return check_range(where, row, *m.number);
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

int wg__settings_read(const wg_setting_table *table, wg_config *json, void *values) {
    int status = json ? 0 : -1;
    for (int i = 0; status == 0 && i < table->count; i++) {
        const wg_setting *row = &table->rows[i];
        status = read_row(table->where, row, json, values);
        if (status == 0 && wg_config_has(json, row->name))
            status = check_row(table->where, row, values, INT64_MAX);
    }
    return status;
}

int wg__settings_check(const wg_setting_table *table, const void *values, int64_t vocabulary) {
    int status = 0;
    for (int i = 0; status == 0 && i < table->count; i++)
        status = check_row(table->where, &table->rows[i], values, vocabulary);
    return status;
}

/* ---- Docs ---- */

char *wg__settings_page(const wg_setting_table *table) {
    wg__text page = {0};
    char line[512] = "| key | left out | what it is |\n| --- | --- | --- |\n";
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
