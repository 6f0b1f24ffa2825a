/* Writing JSON through Jansson. */
#include "base/json.h"

#include "base/internal.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text that grows; bytes is NULL again after a failure. */
typedef struct growing_text {
    char *bytes;
    size_t length, capacity;
} growing_text;

static int append(const char *bytes, size_t count, void *context) {
    growing_text *text = context;
    if (text->length + count >= text->capacity) {
        size_t capacity = 2 * (text->length + count) + 128;
        char *larger = wg__alloc(capacity);
        if (!larger)
            return -1;
        memcpy(larger, text->bytes, text->length);
        wg__free(text->bytes);
        text->bytes = larger;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
    return 0;
}

static int append_text(growing_text *text, const char *part) {
    return append(part, strlen(part), text);
}

/* The fewest digits that lose nothing. */
static size_t digits_of(double value) {
    char text[32];
    int digits = DBL_DIG;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits < DBL_DECIMAL_DIG);
    return (size_t)digits;
}

static int append_value(growing_text *text, const json_t *value) {
    size_t digits = json_is_real(value) ? digits_of(json_real_value(value)) : DBL_DECIMAL_DIG;
    return json_dump_callback(value, append, text, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
}

static int append_member(growing_text *text, const char *key, const json_t *value) {
    json_t *name = json_string(key);
    int status = name ? append_value(text, name) : -1;
    json_decref(name);
    if (status < 0 || append_text(text, ": ") < 0)
        return -1;
    return append_value(text, value);
}

static int append_object(growing_text *text, const json_t *object, const char *separator) {
    const char *key, *between = "";
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        if (append_text(text, between) < 0 || append_member(text, key, value) < 0)
            return -1;
        between = separator;
    }
    return 0;
}

char *wg__json_text(const json_t *object, const char *opening, const char *separator,
                    const char *closing) {
    growing_text text = {.bytes = wg__alloc(128), .capacity = 128};
    if (text.bytes && append_text(&text, opening) == 0 &&
        append_object(&text, object, separator) == 0 && append_text(&text, closing) == 0)
        return text.bytes;
    wg_fail(WG_ERROR_MEMORY, "json", "no memory to write it");
    wg__free(text.bytes);
    return NULL;
}

int wg__json_set(json_t *object, const char *key, json_t *value, const char *where) {
    if (json_object_set_new(object, key, value) < 0)
        return wg_fail(WG_ERROR_MEMORY, where, "\"%s\" cannot be set", key);
    return 0;
}

json_t *wg__json_string(const char *text, const char *where) {
    json_t *string = json_string(text);
    if (!string)
        wg_fail(WG_ERROR_FORMAT, where, "a text is not UTF-8");
    return string;
}
