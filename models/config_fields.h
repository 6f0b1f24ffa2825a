/* What a configuration says: a table with a row for each key, by which it is read, written and held
 * to its rules. */
#ifndef WG_MODELS_CONFIG_FIELDS_H
#define WG_MODELS_CONFIG_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "io/config.h"

/* The type of a member, and what it must be. */
typedef enum wg__config_kind {
    WG__NEEDED_SIZE,  /* int64_t, at least 1; a file may not leave it out */
    WG__SIZE,         /* int64_t, at least 1 */
    WG__INTEGER,      /* int64_t */
    WG__TOKEN,        /* int64_t, a token of the vocabulary */
    WG__MAYBE_TOKEN,  /* int64_t, a token of the vocabulary, or -1 for none */
    WG__MAYBE_TOKENS, /* the same; a file may have a list, of which it is the first */
    WG__PROBABILITY,  /* double, at least 0 and below 1 */
    WG__POSITIVE,     /* double, above 0 and finite */
    WG__FLAG,         /* bool */
    WG__ACTIVATION,   /* wg_activation, by its name */
    WG__GATE,         /* wg_gate, by its name */
} wg__config_kind;

typedef struct wg__config_field {
    const char *key;
    size_t offset; /* of the member in the configuration */
    wg__config_kind kind;
} wg__config_field;

/* The configuration of a kind of model. */
typedef struct wg__config_form {
    const char *where;      /* its name in messages */
    const char *model_type; /* the value of that key */
    int field_count;
    const wg__config_field *fields;
    int ignored_count;
    const char *const *ignored; /* keys of published files that change nothing here */

    /* Read and write what no row says; NULL if that is nothing. 0, or -1 with an error. */
    int (*read_rest)(wg_config *json, void *config);
    int (*write_rest)(wg_config *json, const void *config);
} wg__config_form;

/* Reads a text onto a configuration that holds what keys are when they are left out. -1 with
 * [FORMAT, MEMORY] */
int wg__config_read(const wg__config_form *form, const char *json, void *config);

/* The configuration as JSON; freed with wg_text_free. NULL with [MEMORY] */
char *wg__config_write(const wg__config_form *form, const void *config);

/* Holds each field to its rule. -1 with [ARGUMENT] */
int wg__config_check_fields(const wg__config_form *form, const void *config, int64_t vocab_size);

#endif
