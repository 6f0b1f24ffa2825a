/* Configurations: one JSON object with the keys of published config.json files.
 *
 *     wg_config *json = wg__config_load("config.json");
 *     wg__config_require(json, WG_NAMES("hidden_size", "num_hidden_layers"));
 *     wg__config_integer(json, "hidden_size", &config->hidden_size);
 *     wg__config_number(json, "layer_norm_eps", &config->layer_norm_eps);   unchanged if missing
 *     int status = wg__config_check(json, WG_NAMES("architectures", "model_type"));
 *     wg__config_free(json);
 *
 * (WG_NAMES is of easy.h.) Readers refuse a value of another type; the error has the key, the value
 * and the wanted type. They return -1 while an error is pending, so that checking the last result
 * is enough. A key whose value is null counts as missing. */
#ifndef WG_IO_CONFIG_H
#define WG_IO_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/internal.h"
#include "io/settings.h"

typedef struct wg_config wg_config;

/* Reads a JSON object from a text, which messages call `name`. Freed with wg__config_free. NULL
 * with [FORMAT, with the line; MEMORY] */
WG__COMMAND wg_config *wg__config_parse(const char *json, const char *name);

/* The same from a file. [NOT_FOUND, IO, FORMAT, MEMORY] */
WG__COMMAND wg_config *wg__config_load(const char *path);

/* Frees a configuration; NULL is allowed. */
WG__COMMAND void wg__config_free(wg_config *config);

/* True if the key is there and is not null. */
WG__COMMAND bool wg__config_has(const wg_config *config, const char *key);

/* -1 with [FORMAT, listing them] if any of these keys is missing. */
int wg__config_require(wg_config *config, int count, const char *const *keys);

/* The value of a key; *value is unchanged if the key is missing. A number may be written as an
 * integer, but an integer not as a number. A text is borrowed from the configuration. -1 with
 * [FORMAT] */
WG__COMMAND int wg__config_integer(wg_config *config, const char *key, int64_t *value);
WG__COMMAND int wg__config_number(wg_config *config, const char *key, double *value);
WG__COMMAND int wg__config_boolean(wg_config *config, const char *key, bool *value);
int wg__config_text(wg_config *config, const char *key, const char **value);

/* -1 with [FORMAT, listing them] if there are keys that were neither read nor are among `ignored`,
 * keys without effect here. */
WG__COMMAND int wg__config_check(wg_config *config, int count, const char *const *ignored);

/* True if a name is in a list. */
bool wg__is_among(const char *name, int count, const char *const *names);

/* An empty configuration. Freed with wg__config_free. NULL with [MEMORY] */
wg_config *wg__config_new(void);

/* Sets a key, which keeps its place if it is there already. -1 with [MEMORY; FORMAT for text that
 * is not UTF-8 or a number that is not finite] */
WG__COMMAND int wg__config_set_integer(wg_config *config, const char *key, int64_t value);
int wg__config_set_number(wg_config *config, const char *key, double value);
int wg__config_set_boolean(wg_config *config, const char *key, bool value);
int wg__config_set_text(wg_config *config, const char *key, const char *value);

/* The object as indented JSON, with keys in the order they were set; numbers have the fewest digits
 * that read back as the same. Freed with wg_text_free. NULL with [MEMORY] */
WG__COMMAND char *wg__config_to_json(const wg_config *config);

/* ==== Settings: rows of io/settings.h, and the structs that they fill ==== */

/* The row of that name, or NULL. */
WG__COMMAND const wg_setting *wg__settings_find(const wg_setting_table *table, const char *name);

/* ---- A whole struct at once. Structs begin as zeros, and own their texts and lists. ---- */

/* Fills a struct with the standard value of each row; members without one become 0. The previous
 * members are not freed. -1 with [MEMORY] */
int wg__settings_standard(const wg_setting_table *table, void *values);

/* Makes all members 0 or NULL, and frees texts and lists. */
void wg__settings_clear(const wg_setting_table *table, void *values);

/* -1 with [FORMAT, listing them] if the object lacks keys of rows without `standard` and
 * `derived`. */
int wg__settings_require(const wg_setting_table *table, wg_config *json);

/* Reads keys of a JSON object into a struct. A member stays unchanged if its key is missing or
 * null, except that null makes a WG_SETTING_TOKEN with low -1 become -1. -1 with [FORMAT for a
 * value of another type; ARGUMENT for an unknown choice, or a number out of its row's range;
 * MEMORY] */
int wg__settings_read(const wg_setting_table *table, wg_config *json, void *values);

/* Writes every row that has a member into a JSON object; texts and lists that are NULL are left
 * out. -1 with [MEMORY, FORMAT] */
int wg__settings_write(const wg_setting_table *table, const void *values, wg_config *json);

/* Checks each value against its row; `vocabulary` bounds the tokens. -1 with [ARGUMENT, naming the
 * key, its value and the rule] */
int wg__settings_check(const wg_setting_table *table, const void *values, int64_t vocabulary);

/* ---- Several structs, and where each value is from ---- */

typedef enum wg_setting_origin {
    WG_SETTING_UNSET, /* no standard, and no value was given */
    WG_SETTING_STANDARD,
    WG_SETTING_RECORD, /* of a model or an objective, or decided by the run itself */
    WG_SETTING_CHECKPOINT,
    WG_SETTING_OF_FILE,
    WG_SETTING_COMMAND
} wg_setting_origin;

enum { WG__MOST_PARTS = 32, WG__MOST_ROWS = 64 };

typedef struct wg_setting_part {
    const wg_setting_table *table;
    void *values; /* NULL: no struct yet; tables of objectives get it later */
    unsigned char origins[WG__MOST_ROWS];
} wg_setting_part;

/* {0} is none. If several tables have a row of a name, the first table with a struct wins. */
typedef struct wg_settings {
    int count;
    wg_setting_part parts[WG__MOST_PARTS];
    const char *user; /* for messages about rows without a struct: "--NAME is not for classify" */
} wg_settings;

/* Adds a table, or sets the struct of a table that was added without one. The struct must be zeroed
 * and gets its standard values. -1 with [MEMORY] */
WG__COMMAND int wg__settings_add(wg_settings *settings, const wg_setting_table *table,
                                 void *values);

/* Clears the structs. */
WG__COMMAND void wg__settings_end(wg_settings *settings);

/* Sets the value of an option of the command line; `text` of a flag is NULL. -1 with [ARGUMENT,
 * from "options": "--NAME: REASON"; MEMORY] */
WG__COMMAND int wg__settings_set_text(wg_settings *settings, const char *name, const char *text);

/* Sets the values of all keys that have a row; wg__config_check lists keys without a row. -1 with
 * [as wg__settings_read; FORMAT for null; ARGUMENT for a row without a struct] */
WG__COMMAND int wg__settings_set_object(wg_settings *settings, wg_config *json,
                                        wg_setting_origin origin);

/* The origin of a member's value; true for an origin stronger than a record. `member` points into
 * one of the structs. */
WG__COMMAND wg_setting_origin wg__settings_origin(const wg_settings *settings, const void *member);
WG__COMMAND bool wg__settings_given(const wg_settings *settings, const void *member);

/* Marks a member as set by the run itself, so that wg__settings_to_json writes it. */
WG__COMMAND void wg__settings_decide(wg_settings *settings, const void *member);

/* All values that are set. Freed with wg__config_free. NULL with [MEMORY] */
WG__COMMAND wg_config *wg__settings_to_json(const wg_settings *settings);

/* -1 with [STATE] if a fixed row was given another value than the note of `path` has. */
WG__COMMAND int wg__settings_check_fixed(const wg_settings *settings, wg_config *note,
                                         const char *path);

/* ---- For tables' owners ---- */

/* Refuses a value: "KEY is VALUE; it must be RULE". Returns -1 with [ARGUMENT] */
int wg__settings_refuse(const char *where, const char *key, double value, const char *rule);

/* Parses the numbers of a text like "256x3072". Returns their count, or -1 (no error) if the text
 * has anything else, a number is not within low and high, or there are more than `most` numbers. */
WG__COMMAND int64_t wg__settings_numbers(const char *text, const char *separators, double low,
                                         double high, int64_t most, double *numbers);

/* The rows as the table of docs/configurations.md: key, value when left out, help. Freed with
 * wg_text_free. NULL with [MEMORY] */
char *wg__settings_page(const wg_setting_table *table);

#endif
