/* Checks docs/configurations.md: its tables have every key of each model, with its default, and no
 * others. A case is a model. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/bert.h"
#include "models/glm.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/t5.h"
#include "models/transformer.h"
#include "tests/support/testing.h"

/* ---- From a configuration to all that it means; NULL with an error ---- */

#define THROUGH(model)                                                                             \
    static char *model##_through(const char *json) {                                               \
        wg_##model##_config config;                                                                \
        return wg_##model##_config_from_json(&config, json) < 0                                    \
                   ? NULL                                                                          \
                   : wg_##model##_config_to_json(&config);                                         \
    }
THROUGH(bert)
THROUGH(glm)
THROUGH(gpt)
THROUGH(llama)
THROUGH(t5)
THROUGH(transformer)

static const struct {
    const char *name;
    char *(*through)(const char *json);
} models[] = {{"bert", bert_through},   {"glm", glm_through}, {"gpt", gpt_through},
              {"llama", llama_through}, {"t5", t5_through},   {"transformer", transformer_through}};

static const char *model_name(int index) {
    return models[index].name;
}

/* The configuration that a text means, as an object that the caller frees. */
static json_t *meaning_of(int model, const json_t *config) {
    char *asked = json_dumps(config, 0), *found = models[model].through(asked);
    assert_no_error();
    json_t *meaning = json_loads(found, 0, NULL);
    free(asked);
    wg_text_free(found);
    ck_assert(json_is_object(meaning));
    return meaning;
}

/* ---- The table of a model: {"key": what it says} ---- */

static json_t *read_table(int model) {
    static char line[4096];
    char heading[64];
    snprintf(heading, sizeof heading, "## %s\n", models[model].name);
    FILE *page = fopen(fixture("../../docs/configurations.md"), "r");
    ck_assert_ptr_nonnull(page);
    json_t *table = json_object();
    bool inside = false;
    while (fgets(line, sizeof line, page)) {
        char key[64], value[64];
        if (strncmp(line, "## ", 3) == 0)
            inside = strcmp(line, heading) == 0;
        if (inside && sscanf(line, "| `%63[a-z0-9_]` | %63[^|]", key, value) == 2)
            ck_assert_int_eq(json_object_set_new(table, key, json_string(value)), 0);
    }
    fclose(page);
    ck_assert_msg(json_object_size(table) > 8, "there is no table of %s", models[model].name);
    return table;
}

static bool is_needed(const json_t *said) {
    return strcmp(json_string_value(said), "needed ") == 0;
}

/* The default in a row, `"gelu"`; NULL if it is given in words or as another key's value. */
static json_t *literal(const json_t *said) {
    char text[64];
    if (sscanf(json_string_value(said), "`%63[^`]` %63s", text, text) != 1)
        return NULL;
    return json_loads(text, JSON_DECODE_ANY, NULL);
}

/* Sizes that divide one another. */
static int64_t size_of(const char *key) {
    return strcmp(key, "vocab_size") == 0 ? 60000 : strstr(key, "head") ? 4 : 8;
}

/* All required keys, and no others. */
static json_t *least(json_t *table) {
    json_t *config = json_object();
    const char *key;
    json_t *said;
    json_object_foreach(table, key, said) {
        if (is_needed(said))
            json_object_set_new(config, key, json_integer(size_of(key)));
    }
    return config;
}

/* ---- What the page promises ---- */

START_TEST(every_key_that_a_configuration_has_is_in_the_table) {
    json_t *table = read_table(_i), *config = least(table), *meaning = meaning_of(_i, config);
    const char *key;
    json_t *value;
    json_object_foreach(meaning, key, value) ck_assert_msg(
        strcmp(key, "model_type") == 0 || json_object_get(table, key), "%s is in no table", key);
    json_decref(meaning);
    json_decref(config);
    json_decref(table);
}
END_TEST

START_TEST(what_is_left_out_is_what_the_table_says) {
    json_t *table = read_table(_i), *config = least(table), *meaning = meaning_of(_i, config);
    const char *key;
    json_t *said;
    int compared = 0;
    json_object_foreach(table, key, said) {
        json_t *wanted = literal(said), *found = json_object_get(meaning, key);
        if (wanted && found) {
            ck_assert_msg(json_is_number(wanted)
                              ? json_number_value(wanted) == json_number_value(found)
                              : json_equal(wanted, found),
                          "%s is something else than %s", key, json_string_value(said));
            compared++;
        } else if (wanted) { /* the only accepted value */
            json_object_set(config, key, wanted);
            json_t *same = meaning_of(_i, config);
            ck_assert_msg(json_equal(same, meaning), "%s changes something", key);
            json_object_del(config, key);
            json_decref(same);
        }
        json_decref(wanted);
    }
    ck_assert_int_gt(compared, 4);
    json_decref(meaning);
    json_decref(config);
    json_decref(table);
}
END_TEST

static void assert_refused(int model, const json_t *config, const char *key) {
    char *text = json_dumps(config, 0), *meaning = models[model].through(text);
    ck_assert_msg(!meaning, "%s is passed over", key);
    assert_error(WG_ERROR_FORMAT, key);
    free(text);
}

START_TEST(every_key_of_the_table_is_read_and_those_that_are_needed_are_asked_for) {
    json_t *table = read_table(_i);
    const char *key;
    json_t *said;
    json_object_foreach(table, key, said) {
        json_t *config = least(table);
        json_object_set_new(config, key, json_pack("[[]]")); /* of a wrong type */
        assert_refused(_i, config, key);
        json_object_del(config, key);
        if (is_needed(said))
            assert_refused(_i, config, key);
        json_decref(config);
    }
    json_decref(table);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        every_key_that_a_configuration_has_is_in_the_table,
        what_is_left_out_is_what_the_table_says,
        every_key_of_the_table_is_read_and_those_that_are_needed_are_asked_for,
    };
    add_suite_of_each("configurations", of_each, WG_COUNT(models), model_name);
}
