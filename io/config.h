/* Configurations: one JSON object whose keys are those that a model's publishers use.
 *
 *     wg_config *json = wg_config_load("config.json");
 *     wg_config_require(json, WG_NAMES("hidden_size", "num_hidden_layers"));
 *     wg_config_integer(json, "hidden_size", &config->hidden_size);
 *     wg_config_number(json, "layer_norm_eps", &config->layer_norm_eps);   unchanged if missing
 *     int status = wg_config_check(json, WG_NAMES("architectures", "model_type"));
 *     wg_config_free(json);
 *
 * (WG_NAMES is of easy.h.) Readers refuse a value of another type; the error has the key, the value
 * and the wanted type. They return -1 while an error is pending, so that checking the last result
 * is enough. A key whose value is null counts as missing. */
#ifndef WG_IO_CONFIG_H
#define WG_IO_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/alloc.h"

/* Before functions that the command calls and users do not: exported with the version
 * WENGERT_PRIVATE, and without any promise. Their names begin with wg__. */
#if defined(__GNUC__)
#define WG__COMMAND __attribute__((visibility("default")))
#else
#define WG__COMMAND
#endif

WG_BEGIN_DECLS

typedef struct wg_config wg_config;

/* ---- Reading ---- */

/* Reads a JSON object from a text, which messages call `name`. Freed with wg_config_free. NULL with
 * [FORMAT, with the line; MEMORY] */
WG_API wg_config *wg_config_parse(const char *json, const char *name);

/* The same from a file. [NOT_FOUND, IO, FORMAT, MEMORY] */
WG_API wg_config *wg_config_load(const char *path);

/* Frees a configuration; NULL is allowed. */
WG_API void wg_config_free(wg_config *config);

/* True if the key is there and is not null. */
WG_API bool wg_config_has(const wg_config *config, const char *key);

/* -1 with [FORMAT, listing them] if any of these keys is missing. */
WG_API int wg_config_require(wg_config *config, int count, const char *const *keys);

/* The value of a key; *value is unchanged if the key is missing. A number may be written as an
 * integer, not the other way round. A text is borrowed from the configuration. -1 with [FORMAT]
 */
WG_API int wg_config_integer(wg_config *config, const char *key, int64_t *value);
WG_API int wg_config_number(wg_config *config, const char *key, double *value);
WG_API int wg_config_boolean(wg_config *config, const char *key, bool *value);
WG_API int wg_config_text(wg_config *config, const char *key, const char **value);

/* -1 with [FORMAT, listing them] if there are keys that were neither read nor are among `ignored`,
 * keys without effect here. */
WG_API int wg_config_check(wg_config *config, int count, const char *const *ignored);

/* ---- Writing ---- */

/* An empty configuration. Freed with wg_config_free. NULL with [MEMORY] */
WG_API wg_config *wg_config_new(void);

/* Sets a key, which keeps its place if it is there already. -1 with [MEMORY; FORMAT for text that
 * is not UTF-8 or a number that is not finite] */
WG_API int wg_config_set_integer(wg_config *config, const char *key, int64_t value);
WG_API int wg_config_set_number(wg_config *config, const char *key, double value);
WG_API int wg_config_set_boolean(wg_config *config, const char *key, bool value);
WG_API int wg_config_set_text(wg_config *config, const char *key, const char *value);

/* The object as indented JSON, keys in the order in which they were set, numbers with the fewest
 * digits that read back as the same. The caller frees it with wg_text_free. NULL with [MEMORY] */
WG_API char *wg_config_to_json(const wg_config *config);

WG_END_DECLS

#endif
