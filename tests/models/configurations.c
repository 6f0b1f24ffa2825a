/* Checks docs/configurations.md: its tables have every key of each model, with its default, and no
 * others. A case is a model. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/internal.h"
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

/* ---- Numbers out of range ---- */

/* The smallest configuration with another value of a key, and what it means; NULL with an error. */
static json_t *with(int model, const char *key, json_t *value) {
    json_t *config = json_loads(wg_model_type_at(model)->smallest, 0, NULL);
    json_object_set_new(config, key, value);
    json_t *meaning = through(model, config);
    json_decref(config);
    return meaning;
}

/* Of whole numbers those that no key has, but for tokens that are -1 where there is none. */
START_TEST(a_size_out_of_range_is_refused_by_its_name) {
    static const int64_t values[] = {1LL << 62, 1LL << 31, 1LL << 32, INT64_MAX, INT64_MIN, -1};
    const wg_setting_table *table = &wg_model_type_at(_i)->settings;
    for (int i = 0; i < table->count; i++)
        for (size_t v = 0; v < WG_COUNT(values); v++) {
            const wg_setting *row = &table->rows[i];
            const bool token = strstr(row->name, "token_id") != NULL;
            if ((row->kind != WG_SETTING_INTEGER && row->kind != WG_SETTING_TOKEN) ||
                (token && values[v] == -1))
                continue;
            json_t *meaning = with(_i, row->name, json_integer(values[v]));
            ck_assert_msg(!meaning, "%s %lld is taken", row->name, (long long)values[v]);
            assert_error(WG_ERROR_ARGUMENT, row->name);
        }
}
END_TEST

/* The largest sizes that are read: their products neither wrap nor take memory here. */
START_TEST(the_memory_of_the_largest_sizes_is_counted) {
    const wg_model_type *type = wg_model_type_at(_i);
    void *config = malloc(type->settings.size);
    for (int i = 0; i < type->settings.count; i++) {
        const wg_setting *row = &type->settings.rows[i];
        if (row->kind != WG_SETTING_INTEGER || strstr(row->name, "token_id"))
            continue;
        ck_assert_int_eq(wg_model_config_from_json(type, type->smallest, config), 0);
        *(int64_t *)((char *)config + row->offset) = INT32_MAX / 4 * 4;
        if (wg__model_config_check(type, config) < 0 || wg__model_bytes(type, config) < 0)
            ck_assert_ptr_nonnull(wg_error_pending());
        wg_error_clear();
    }
    free(config);
}
END_TEST

/* 0 is a size of nothing: it is refused, or the key's help says what it means. */
START_TEST(a_size_of_zero_is_refused_or_has_a_meaning) {
    const wg_setting_table *table = &wg_model_type_at(_i)->settings;
    for (int i = 0; i < table->count; i++) {
        const wg_setting *row = &table->rows[i];
        if (row->kind != WG_SETTING_INTEGER && row->kind != WG_SETTING_NUMBER)
            continue;
        json_t *meaning = with(_i, row->name, json_integer(0));
        if (!meaning) {
            assert_error(WG_ERROR_ARGUMENT, row->name);
            continue;
        }
        const json_t *found = json_object_get(meaning, row->name);
        ck_assert_msg(found ? json_number_value(found) == 0 : strstr(row->help, "0:") != NULL,
                      "%s 0 becomes something else", row->name);
        json_decref(meaning);
    }
}
END_TEST

/* The struct of a new model may hold what JSON cannot say. */
START_TEST(a_number_that_is_nan_is_refused_by_its_name) {
    const wg_model_type *type = wg_model_type_at(_i);
    char *config = malloc(type->settings.size);
    for (int i = 0; i < type->settings.count; i++) {
        const wg_setting *row = &type->settings.rows[i];
        if (row->kind != WG_SETTING_NUMBER)
            continue;
        ck_assert_int_eq(wg_model_config_from_json(type, type->smallest, config), 0);
        *(double *)(config + row->offset) = NAN;
        assert_fails(wg__model_config_check(type, config), WG_ERROR_ARGUMENT, row->name);
    }
    free(config);
}
END_TEST

/* Labels have a name each, which would fill the memory. */
START_TEST(a_number_of_labels_out_of_range_is_refused) {
    static const char *const numbers[] = {"4611686018427387904", "2147483648", "0", "-1"};
    for (size_t i = 0; i < WG_COUNT(numbers); i++) {
        char json[64];
        wg__labels labels;
        snprintf(json, sizeof json, "{\"num_labels\": %s}", numbers[i]);
        assert_fails(wg__labels_of_config(json, &labels), WG_ERROR_ARGUMENT, "num_labels");
    }
}
END_TEST

/* A program's own configuration is checked before it is divided by. */
START_TEST(a_configuration_of_zeros_is_refused) {
    const wg_model_type *type = wg_model_type_at(_i);
    void *config = calloc(1, type->settings.size);
    assert_fails(wg__model_config_check(type, config), WG_ERROR_ARGUMENT, "is 0");
    free(config);
}
END_TEST

/* ---- Every preset ---- */

START_TEST(every_preset_is_valid_and_goes_through_json_and_back) {
    const wg_model_type *type = wg_model_type_at(_i);
    void *config = calloc(1, type->settings.size), *again = calloc(1, type->settings.size);
    for (const wg_model_preset *preset = type->presets; preset->name; preset++) {
        ck_assert_int_eq(wg_model_preset_config(type, preset->name, config), 0);
        ck_assert_int_eq(wg__model_config_check(type, config), 0);
        char *text = wg_model_config_to_json(type, config);
        ck_assert_int_eq(wg_model_config_from_json(type, text, again), 0);
        ck_assert_mem_eq(again, config, type->settings.size);
        wg_text_free(text);
    }
    assert_fails(wg_model_preset_config(type, "none", config), WG_ERROR_ARGUMENT,
                 type->presets[0].name);
    free(config);
    free(again);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        the_table_on_the_page_is_that_of_the_rows,
        every_key_that_a_configuration_has_is_in_the_table,
        what_is_left_out_is_what_the_table_says,
        every_key_of_the_table_is_read_and_those_that_are_needed_are_asked_for,
        a_size_out_of_range_is_refused_by_its_name,
        the_memory_of_the_largest_sizes_is_counted,
        a_size_of_zero_is_refused_or_has_a_meaning,
        a_number_that_is_nan_is_refused_by_its_name,
        a_configuration_of_zeros_is_refused,
        every_preset_is_valid_and_goes_through_json_and_back,
    };
    const TTest *const of_labels[] = {a_number_of_labels_out_of_range_is_refused};
    int count = 0;
    while (wg_model_type_at(count))
        count++;
    add_suite_of_each("configurations", of_each, count, model_name);
    add_suite("configuration_labels", of_labels);
}
