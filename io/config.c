/* Configurations: reading and writing JSON objects. */
#include "io/internal.h"

#include "base/json.h"
#include "base/array.h"
#include "base/replacement.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct wg_config {
    char *name;     /* for messages: a path, or the caller's name for the text */
    json_t *object; /* the configuration */
    json_t *asked;  /* an object with a member for every key that was read */
};

/* Takes `object` over; NULL with MEMORY. */
static wg_config *config_of(json_t *object, const char *name) {
    wg_config *config = wg__calloc(1, sizeof *config);
    char *copy = wg__strdup(name);
    json_t *asked = json_object();
    if (config && copy && asked && object) {
        *config = (wg_config){copy, object, asked};
        return config;
    }
    wg_fail(WG_ERROR_MEMORY, "config", "no memory for %s", name);
    json_decref(object);
    json_decref(asked);
    wg__free(copy);
    wg__free(config);
    return NULL;
}

wg_config *wg__config_new(void) {
    return config_of(json_object(), "config");
}

void wg__config_free(wg_config *config) {
    if (!config)
        return;
    json_decref(config->object);
    json_decref(config->asked);
    wg__free(config->name);
    wg__free(config);
}

/* Takes over `root`, a parsed text (NULL: it is no JSON). */
static wg_config *config_of_root(json_t *root, const json_error_t *error, const char *name) {
    if (!root && json_error_code(error) == json_error_out_of_memory)
        return wg__fail_null(WG_ERROR_MEMORY, "config", "no memory for %s", name);
    if (!root)
        return wg__fail_null(WG_ERROR_FORMAT, "config", "%s, line %d: %s", name, error->line,
                             error->text);
    if (!json_is_object(root)) {
        json_decref(root);
        return wg__fail_null(WG_ERROR_FORMAT, "config",
                             "%s is no JSON object; wanted {\"key\": value, ...}", name);
    }
    return config_of(root, name);
}

wg_config *wg__config_parse(const char *json, const char *name) {
    if (!json || wg_error_pending())
        return NULL;
    json_error_t error;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    return config_of_root(root, &error, name);
}

wg_config *wg__config_load(const char *path) {
    if (!path || wg_error_pending())
        return NULL;
    FILE *stream = fopen(path, "rb");
    if (!stream) {
        wg__fail_with_errno(path, "config");
        return NULL;
    }
    json_error_t error;
    json_t *root = json_loadf(stream, JSON_REJECT_DUPLICATES, &error);
    const int reason = ferror(stream) ? errno : 0;
    fclose(stream);
    if (reason) {
        json_decref(root);
        errno = reason;
        wg__fail_with_errno(path, "config");
        return NULL;
    }
    return config_of_root(root, &error, path);
}

typedef struct key_list {
    char text[768]; /* "a, b, c" */
    int count;
} key_list;

static void add_key(key_list *list, const char *key) {
    const size_t length = strlen(list->text);
    snprintf(list->text + length, sizeof list->text - length, "%s\"%s\"", list->count++ ? ", " : "",
             key);
}

const char *wg__config_name(const wg_config *config) {
    return config->name;
}

json_t *wg__config_value(wg_config *config, const char *key) {
    json_object_set_new(config->asked, key, json_null());
    json_t *value = json_object_get(config->object, key);
    return json_is_null(value) ? NULL : value;
}

bool wg__config_is_null(const wg_config *config, const char *key) {
    return json_is_null(json_object_get(config->object, key));
}

int wg__config_refuse_value(const wg_config *config, const char *key, const json_t *value,
                            const char *wanted) {
    char text[80]; /* a short value as JSON */
    const bool is_list = json_is_array(value), is_short = !is_list && !json_is_object(value);
    const size_t length = is_short ? json_dumpb(value, text, sizeof text - 1, JSON_ENCODE_ANY) : 0;
    text[length < sizeof text ? length : 0] = '\0';
    return wg_fail(WG_ERROR_FORMAT, "config", "%s: \"%s\" is %s; wanted %s", config->name, key,
                   is_list                ? "an array"
                   : !is_short            ? "an object"
                   : length < sizeof text ? text
                                          : "a long text",
                   wanted);
}

bool wg__config_has(const wg_config *config, const char *key) {
    const json_t *value = config ? json_object_get(config->object, key) : NULL;
    return value && !json_is_null(value);
}

typedef struct wanted_keys {
    const wg_config *config;
    int count;
    const char *const *keys;
} wanted_keys;

static const char *missing_key(const void *context, int index) {
    const wanted_keys *wanted = context;
    for (int i = 0; i < wanted->count; i++)
        if (!wg__config_has(wanted->config, wanted->keys[i]) && index-- == 0)
            return wanted->keys[i];
    return NULL;
}

int wg__config_require(wg_config *config, int count, const char *const *keys) {
    if (!config || wg_error_pending())
        return -1;
    key_list missing = {.count = 0};
    for (int i = 0; i < count; i++)
        if (!wg__config_has(config, keys[i]))
            add_key(&missing, keys[i]);
    if (missing.count == 0)
        return 0;
    const wanted_keys wanted = {config, count, keys};
    char suggestion[160] = "";
    const char *key, *misspelt = NULL;
    json_t *value;
    json_object_foreach(config->object, key, value) {
        if (!misspelt && *wg__suggestion(suggestion, sizeof suggestion, key, missing_key, &wanted))
            misspelt = key;
    }
    if (misspelt)
        return wg_fail(WG_ERROR_FORMAT, "config", "%s has no %s, but \"%s\"%s", config->name,
                       missing.text, misspelt, suggestion);
    return wg_fail(WG_ERROR_FORMAT, "config", "%s has no %s", config->name, missing.text);
}

/* The value of a key, which must have one of two types. NULL if the key is missing, with FORMAT, or
 * if an error is pending. */
static json_t *find_value(wg_config *config, const char *key, json_type type, json_type other,
                          const char *wanted) {
    json_t *found = config && !wg_error_pending() ? wg__config_value(config, key) : NULL;
    if (!found || json_typeof(found) == type || json_typeof(found) == other)
        return found;
    wg__config_refuse_value(config, key, found, wanted);
    return NULL;
}

int wg__config_integer(wg_config *config, const char *key, int64_t *value) {
    const json_t *found = find_value(config, key, JSON_INTEGER, JSON_INTEGER, "an integer");
    if (found)
        *value = json_integer_value(found);
    return config && !wg_error_pending() ? 0 : -1;
}

int wg__config_first_integer(wg_config *config, const char *key, int64_t *value) {
    if (!config || wg_error_pending())
        return -1;
    const json_t *found = wg__config_value(config, key), *first = json_array_get(found, 0);
    if (!json_is_array(found))
        return wg__config_integer(config, key, value);
    if (!json_is_integer(first))
        return wg__config_refuse_value(config, key, found,
                                       "an integer, or a list that begins with one");
    *value = json_integer_value(first);
    return 0;
}

int wg__config_number(wg_config *config, const char *key, double *value) {
    const json_t *found = find_value(config, key, JSON_REAL, JSON_INTEGER, "a number");
    if (found)
        *value = json_number_value(found);
    return config && !wg_error_pending() ? 0 : -1;
}

int wg__config_boolean(wg_config *config, const char *key, bool *value) {
    const json_t *found = find_value(config, key, JSON_TRUE, JSON_FALSE, "true or false");
    if (found)
        *value = json_is_true(found);
    return config && !wg_error_pending() ? 0 : -1;
}

int wg__config_text(wg_config *config, const char *key, const char **value) {
    const json_t *found = find_value(config, key, JSON_STRING, JSON_STRING, "a text");
    if (found)
        *value = json_string_value(found);
    return config && !wg_error_pending() ? 0 : -1;
}

wg_config *wg__config_part(wg_config *config, const char *key) {
    json_t *found = find_value(config, key, JSON_OBJECT, JSON_OBJECT, "an object");
    return found ? config_of(json_incref(found), key) : NULL;
}

bool wg__is_among(const char *key, int count, const char *const *names) {
    for (int i = 0; i < count; i++)
        if (strcmp(key, names[i]) == 0)
            return true;
    return false;
}

static const char *asked_key(const void *asked, int index) {
    void *at = json_object_iter((json_t *)asked);
    while (at && index-- > 0)
        at = json_object_iter_next((json_t *)asked, at);
    return at ? json_object_iter_key(at) : NULL;
}

int wg__config_check(wg_config *config, int count, const char *const *ignored) {
    if (!config || wg_error_pending())
        return -1;
    key_list unknown = {.count = 0};
    char suggestion[96];
    const char *key, *first = NULL;
    json_t *value;
    json_object_foreach(config->object, key, value) {
        if (json_object_get(config->asked, key) || wg__is_among(key, count, ignored))
            continue;
        add_key(&unknown, key);
        first = first ? first : key;
    }
    if (unknown.count == 0)
        return 0;
    wg__suggestion(suggestion, sizeof suggestion, first, asked_key, config->asked);
    return wg_fail(WG_ERROR_FORMAT, "config", "%s: unknown %s %s%s", config->name,
                   unknown.count == 1 ? "key" : "keys", unknown.text,
                   unknown.count == 1 && *suggestion ? suggestion : "; misspelt?");
}

int wg__config_set(wg_config *config, const char *key, json_t *value) {
    return wg__json_set(config->object, key, value, "config");
}

int wg__config_set_integer(wg_config *config, const char *key, int64_t value) {
    return config ? wg__config_set(config, key, json_integer(value)) : -1;
}

int wg__config_set_number(wg_config *config, const char *key, double value) {
    if (!config)
        return -1;
    if (!isfinite(value))
        return wg_fail(WG_ERROR_FORMAT, "config", "\"%s\" is %g, which JSON cannot represent", key,
                       value);
    return wg__config_set(config, key, json_real(value));
}

int wg__config_set_boolean(wg_config *config, const char *key, bool value) {
    return config ? wg__config_set(config, key, json_boolean(value)) : -1;
}

int wg__config_set_text(wg_config *config, const char *key, const char *value) {
    json_t *string = config && value ? wg__json_string(value, "config") : NULL;
    return string ? wg__config_set(config, key, string) : -1;
}

int wg__config_set_part(wg_config *config, const char *key, const wg_config *part) {
    return config && part ? wg__config_set(config, key, json_deep_copy(part->object)) : -1;
}

char *wg__config_to_json(const wg_config *config) {
    return config ? wg__json_text(config->object, "{\n  ", ",\n  ", "\n}\n") : NULL;
}
