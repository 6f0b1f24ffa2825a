/* The JSON behind a wg_config, for values that config.h has no reader for: lists and objects. */
#ifndef WG_IO_CONFIG_JSON_H
#define WG_IO_CONFIG_JSON_H

#include <jansson.h>

#include "io/config.h"

/* The value of a key, borrowed; NULL if the key is not there or null. The key then counts as asked
 * for (wg_config_check). */
json_t *wg__config_value(wg_config *config, const char *key);

/* Refuses a value: "NAME: "key" is VALUE; wanted WANTED". Returns -1 with [FORMAT] */
int wg__config_refuse_value(const wg_config *config, const char *key, const json_t *value,
                            const char *wanted);

/* Sets a key; `value` is taken over, NULL stands for no memory. -1 with [MEMORY] */
int wg__config_set(wg_config *config, const char *key, json_t *value);

#endif
