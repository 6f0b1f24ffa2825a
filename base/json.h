/* Writing JSON through Jansson, for configurations and logs. */
#ifndef WG_BASE_JSON_H
#define WG_BASE_JSON_H

#include <jansson.h>

/* Writes an object as `opening`, its members with `separator` between them, and `closing`. Every
 * real number has the fewest digits that read back as the same. The caller frees the text with
 * wg__free. NULL with MEMORY. */
char *wg__json_text(const json_t *object, const char *opening, const char *separator,
                    const char *closing);

/* Sets a member and takes ownership of `value`. -1 with MEMORY if `value` is NULL or memory runs
 * out. */
int wg__json_set(json_t *object, const char *key, json_t *value, const char *where);

/* Append to *array, or set a member of *object, and take ownership of `value`. If that fails, or
 * one of them is NULL, *array or *object is freed and becomes NULL with MEMORY: a list is checked
 * once, at its end. */
void wg__json_append(json_t **array, json_t *value);
void wg__json_put(json_t **object, const char *key, json_t *value);

/* A JSON string. NULL with FORMAT for text that is not UTF-8, or without memory. */
json_t *wg__json_string(const char *text, const char *where);

#endif
