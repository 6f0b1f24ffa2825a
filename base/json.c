/* Writing JSON through Jansson. */
#include "base/json.h"

#include "base/array.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int append(const char *bytes, size_t count, void *context) {
    return wg__text_append(context, bytes, (int64_t)count);
}

/* Reals with the fewest digits that read back as the same value. */
static int append_value(wg__text *text, const json_t *value) {
    char tried[32];
    int digits = json_is_real(value) ? DBL_DIG : DBL_DECIMAL_DIG;
    for (; digits < DBL_DECIMAL_DIG; digits++) {
        snprintf(tried, sizeof tried, "%.*g", digits, json_real_value(value));
        if (strtod(tried, NULL) == json_real_value(value))
            break;
    }
    return json_dump_callback(value, append, text,
                              JSON_ENCODE_ANY | JSON_REAL_PRECISION((size_t)digits));
}

char *wg__json_text(const json_t *object, const char *opening, const char *separator,
                    const char *closing) {
    wg__text text = {0};
    const char *key, *between = "";
    json_t *value;
    int status = append(opening, strlen(opening), &text);
    json_object_foreach((json_t *)object, key, value) {
        json_t *name = json_string(key);
        if (status < 0 || !name || append(between, strlen(between), &text) < 0 ||
            append_value(&text, name) < 0 || append(": ", 2, &text) < 0 ||
            append_value(&text, value) < 0)
            status = -1;
        json_decref(name);
        between = separator;
    }
    if (status == 0 && append(closing, strlen(closing), &text) == 0)
        return text.bytes;
    wg_fail(WG_ERROR_MEMORY, "json", "no memory for the text");
    wg__free(text.bytes);
    return NULL;
}

/* Frees a value that was only partly built. */
static void drop_unless(json_t **whole, int status) {
    if (status == 0)
        return;
    json_decref(*whole);
    *whole = NULL;
    wg_fail(WG_ERROR_MEMORY, "json", "no memory for a JSON text, or a part of it is not UTF-8");
}

void wg__json_append(json_t **array, json_t *value) {
    drop_unless(array, json_array_append_new(*array, value));
}

void wg__json_put(json_t **object, const char *key, json_t *value) {
    drop_unless(object, json_object_set_new(*object, key, value));
}

int wg__json_set(json_t *object, const char *key, json_t *value, const char *where) {
    if (json_object_set_new(object, key, value) < 0)
        return wg_fail(WG_ERROR_MEMORY, where, "no memory for \"%s\"", key);
    return 0;
}

json_t *wg__json_string(const char *text, const char *where) {
    json_t *string = json_string(text);
    if (!string)
        wg_fail(WG_ERROR_FORMAT, where, "a string is not valid UTF-8");
    return string;
}
