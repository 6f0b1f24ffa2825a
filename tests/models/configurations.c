/* Checks docs/configurations.md: its tables have every key of each model, with its default, and no
 * others. A case is a model. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/model.h"
#include "tests/support/testing.h"

static const char *model_name(int index) {
    return wg_model_type_at(index) ? wg_model_type_at(index)->name : NULL;
}

/* What a configuration means, as an object for the caller to free; NULL with an error. */
static json_t *through(int model, const json_t *asked) {
    const wg_model_type *type = wg_model_type_at(model);
    char *text = json_dumps(asked, 0), *found = NULL;
    void *config = malloc(type->settings.size);
    if (wg_model_config_from_json(type, text, config) == 0)
        found = wg_model_config_to_json(type, config);
    json_t *meaning = found ? json_loads(found, 0, NULL) : NULL;
    free(config);
    free(text);
    wg_text_free(found);
    return meaning;
}

static json_t *meaning_of(int model, const json_t *config) {
    json_t *meaning = through(model, config);
    assert_no_error();
    ck_assert(json_is_object(meaning));
    return meaning;
}

/* ---- The page ---- */

/* The section of a model on the page, from its table on; freed by free. */
static char *read_section(int model) {
    static char line[4096];
    char heading[64], *section = calloc(1, 16384);
    snprintf(heading, sizeof heading, "## %s\n", model_name(model));
    FILE *page = fopen(fixture("../../docs/configurations.md"), "r");
    ck_assert_ptr_nonnull(page);
    bool inside = false;
    while (fgets(line, sizeof line, page)) {
        if (strncmp(line, "## ", 3) == 0)
            inside = strcmp(line, heading) == 0;
        else if (inside && line[0] == '|')
            strncat(section, line, 16384 - strlen(section) - 1);
    }
    fclose(page);
    return section;
}

START_TEST(the_table_on_the_page_is_that_of_the_rows) {
    char *page = wg__settings_page(&wg_model_type_at(_i)->settings), *section = read_section(_i);
    ck_assert_str_eq(section, page);
    wg_text_free(page);
    free(section);
}
END_TEST

/* ---- The rows ---- */

static bool is_needed(const wg_setting *row) {
    return !row->standard && !row->derived;
}

/* Sizes that divide one another. */
static int64_t size_of(const char *key) {
    return strcmp(key, "vocab_size") == 0 ? 60000 : strstr(key, "head") ? 4 : 8;
}

/* All required keys, and no others. */
static json_t *least(const wg_setting_table *table) {
    json_t *config = json_object();
    for (int i = 0; i < table->count; i++)
        if (is_needed(&table->rows[i]))
            json_object_set_new(config, table->rows[i].name,
                                json_integer(size_of(table->rows[i].name)));
    return config;
}

START_TEST(every_key_that_a_configuration_has_is_in_the_table) {
    const wg_setting_table *table = &wg_model_type_at(_i)->settings;
    json_t *config = least(table), *meaning = meaning_of(_i, config);
    const char *key;
    json_t *value;
    json_object_foreach(meaning, key, value) ck_assert_msg(
        strcmp(key, "model_type") == 0 || wg__settings_find(table, key), "%s is in no table", key);
    json_decref(meaning);
    json_decref(config);
}
END_TEST

START_TEST(what_is_left_out_is_what_the_table_says) {
    const wg_setting_table *table = &wg_model_type_at(_i)->settings;
    json_t *config = least(table), *meaning = meaning_of(_i, config);
    int compared = 0;
    for (int i = 0; i < table->count; i++) {
        const wg_setting *row = &table->rows[i];
        json_t *wanted = row->standard ? json_loads(row->standard, JSON_DECODE_ANY, NULL) : NULL;
        json_t *found = json_object_get(meaning, row->name);
        if (wanted && found) {
            ck_assert_msg(json_is_number(wanted)
                              ? json_number_value(wanted) == json_number_value(found)
                              : json_equal(wanted, found),
                          "%s is something else than %s", row->name, row->standard);
            compared++;
        } else if (wanted) { /* the one value that is known */
            json_object_set(config, row->name, wanted);
            json_t *same = meaning_of(_i, config);
            ck_assert_msg(json_equal(same, meaning), "%s changes something", row->name);
            json_object_del(config, row->name);
            json_decref(same);
        }
        json_decref(wanted);
    }
    ck_assert_int_gt(compared, 4);
    json_decref(meaning);
    json_decref(config);
}
END_TEST

static void assert_refused(int model, const json_t *config, const char *key) {
    ck_assert_msg(!through(model, config), "%s is passed over", key);
    assert_error(WG_ERROR_FORMAT, key);
}

START_TEST(every_key_of_the_table_is_read_and_those_that_are_needed_are_asked_for) {
    const wg_setting_table *table = &wg_model_type_at(_i)->settings;
    for (int i = 0; i < table->count; i++) {
        const char *key = table->rows[i].name;
        json_t *config = least(table);
        json_object_set_new(config, key, json_pack("[[]]")); /* of a wrong type */
        assert_refused(_i, config, key);
        json_object_del(config, key);
        if (is_needed(&table->rows[i]))
            assert_refused(_i, config, key);
        json_decref(config);
    }
}
END_TEST

/* ---- Every preset ---- */

START_TEST(every_preset_makes_a_valid_configuration) {
    const wg_model_type *type = wg_model_type_at(_i);
    void *config = malloc(type->settings.size);
    for (const wg_model_preset *preset = type->presets; preset->name; preset++) {
        ck_assert_int_eq(wg_model_preset_config(type, preset->name, config), 0);
        ck_assert_int_eq(wg_model_config_check(type, config), 0);
    }
    free(config);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        the_table_on_the_page_is_that_of_the_rows,
        every_key_that_a_configuration_has_is_in_the_table,
        what_is_left_out_is_what_the_table_says,
        every_key_of_the_table_is_read_and_those_that_are_needed_are_asked_for,
        every_preset_makes_a_valid_configuration,
    };
    int count = 0;
    while (wg_model_type_at(count))
        count++;
    add_suite_of_each("configurations", of_each, count, model_name);
}
