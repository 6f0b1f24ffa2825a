/* Lists and objects in a wg_config, and the JSON behind it. */
#ifndef WG_IO_CONFIG_JSON_H
#define WG_IO_CONFIG_JSON_H

#include <jansson.h>

#include "io/config.h"

/* An integer, or the first of a list of integers, as the tokens that end a text may be given. -1
 * with [FORMAT] */
int wg__config_first_integer(wg_config *config, const char *key, int64_t *value);

/* The number of items of a list; 0 if the key is missing or no list. */
int64_t wg__config_list_length(const wg_config *config, const char *key);

/* The object at a key as a configuration of its own, which messages call by the key. Freed with
 * wg_config_free. NULL if the key is missing, or with [FORMAT, MEMORY] */
wg_config *wg__config_part(wg_config *config, const char *key);

/* Sets a key to a copy of an object. -1 with [MEMORY] */
int wg__config_set_part(wg_config *config, const char *key, const wg_config *part);

/* What messages call it. */
const char *wg__config_name(const wg_config *config);

/* The value of a key, borrowed; NULL if the key is not there or null. The key then counts as read
 * (wg_config_check). */
WG__COMMAND json_t *wg__config_value(wg_config *config, const char *key);

/* Whether the key is there with the value null. */
bool wg__config_is_null(const wg_config *config, const char *key);

/* Refuses a value: "NAME: "key" is VALUE; wanted WANTED". Returns -1 with [FORMAT] */
int wg__config_refuse_value(const wg_config *config, const char *key, const json_t *value,
                            const char *wanted);

/* Sets a key; `value` is taken over, NULL stands for no memory. -1 with [MEMORY] */
int wg__config_set(wg_config *config, const char *key, json_t *value);

#endif
