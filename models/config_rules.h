/* The rules that configurations of models share: each refusal names the key, its value and what was
 * wanted. All return 0, or -1 with ARGUMENT; `where` is the configuration's name in messages. */
#ifndef WG_MODELS_CONFIG_RULES_H
#define WG_MODELS_CONFIG_RULES_H

#include <stdint.h>

/* "KEY is VALUE; it must be RULE". Returns -1. */
int wg__config_refuse(const char *where, const char *key, double value, const char *rule);

/* At least 1. */
int wg__config_check_size(const char *where, const char *key, int64_t size);

typedef struct wg__config_size {
    const char *key;
    int64_t value;
} wg__config_size;

/* parts must divide whole. */
int wg__config_check_divides(const char *where, wg__config_size parts, wg__config_size whole);

/* A token of the vocabulary; or that, or -1 for none. */
int wg__config_check_token(const char *where, const char *key, int64_t token, int64_t vocab_size);
int wg__config_check_maybe_token(const char *where, const char *key, int64_t token,
                                 int64_t vocab_size);

/* At least 0 and below 1. */
int wg__config_check_probability(const char *where, const char *key, double p);

/* Above 0 and finite. */
int wg__config_check_positive(const char *where, const char *key, double value);

/* The index of a preset, by the function that gives their names and NULL beyond the last; the error
 * lists them. */
int wg__config_find_preset(const char *where, const char *(*name_of)(int index), const char *name);

#endif
