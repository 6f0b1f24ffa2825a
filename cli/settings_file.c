/* Settings out of a file: see wg__settings_read in settings.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/settings_table.h"
#include "optim/optimizer.h"

static json_t *files_of_json(const json_t *value) {
    if (json_is_string(value))
        return wg__setting_add_file(NULL, json_string_value(value));
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *path = json_string_value(json_array_get(value, i));
        json_t *longer = path ? wg__setting_add_file(list, path) : NULL;
        json_decref(list);
        if (!(list = longer))
            return NULL;
    }
    return list;
}

/* An object of texts, none of them empty. */
static json_t *pairs_of_json(const json_t *value) {
    const char *name;
    json_t *text;
    json_object_foreach((json_t *)value, name, text) {
        const char *string = json_string_value(text);
        if (!*name || !string || !*string)
            return NULL;
    }
    return json_deep_copy(value);
}

static bool is_in_range(const wg__setting *setting, const json_t *number) {
    const double value = json_number_value(number);
    return json_is_number(number) && value >= setting->low && value <= setting->high;
}

static json_t *numbers_of_json(const wg__setting *setting, const json_t *value) {
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *number = json_array_get(value, i);
        if (!is_in_range(setting, number)) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, json_real(json_number_value(number)));
    }
    return list;
}

/* A value as the command line would have given it; NULL for one of another type or range. */
static json_t *value_of_json(const wg__setting *setting, const json_t *value) {
    const char *text = json_string_value(value);
    switch (setting->kind) {
    case WG__SETTING_TEXT:
        return text ? json_string(text) : NULL;
    case WG__SETTING_FILE:
        return text ? wg__setting_file(text) : NULL;
    case WG__SETTING_FILES:
        return text || json_is_array(value) ? files_of_json(value) : NULL;
    case WG__SETTING_INTEGER:
        return json_is_integer(value) && is_in_range(setting, value)
                   ? json_integer(json_integer_value(value))
                   : NULL;
    case WG__SETTING_NUMBER:
        return is_in_range(setting, value) ? json_real(json_number_value(value)) : NULL;
    case WG__SETTING_NUMBERS:
        return json_is_array(value) ? numbers_of_json(setting, value) : NULL;
    case WG__SETTING_PAIRS:
        return json_is_object(value) ? pairs_of_json(value) : NULL;
    case WG__SETTING_FLAG:
        return json_is_boolean(value) ? json_boolean(json_is_true(value)) : NULL;
    }
    return NULL;
}

static const char *wanted(const wg__setting *setting, char *text, size_t size) {
    static const char *const kinds[] = {[WG__SETTING_TEXT] = "a text",
                                        [WG__SETTING_FILE] = "the name of a file",
                                        [WG__SETTING_FILES] = "a list of names of files",
                                        [WG__SETTING_INTEGER] = "a whole number",
                                        [WG__SETTING_NUMBER] = "a number",
                                        [WG__SETTING_NUMBERS] = "a list of numbers",
                                        [WG__SETTING_PAIRS] = "an object of texts",
                                        [WG__SETTING_FLAG] = "true or false"};
    if (setting->kind != WG__SETTING_INTEGER && setting->kind != WG__SETTING_NUMBER &&
        setting->kind != WG__SETTING_NUMBERS)
        snprintf(text, size, "%s", kinds[setting->kind]);
    else if (isinf(setting->high))
        snprintf(text, size, "%s of %g or more", kinds[setting->kind], setting->low);
    else
        snprintf(text, size, "%s from %g to %g", kinds[setting->kind], setting->low, setting->high);
    return text;
}

/* Takes up one key of a file; 0, or 1 after having told what is wrong with it. */
static int take_setting(const char *path, const char *name, const json_t *value,
                        wg__run_arguments *arguments) {
    const wg__setting *setting = wg__setting_named(name);
    const char *text = json_string_value(value), *rival = wg__setting_rival(name);
    char kind[100];
    if (!setting)
        return wg__cli_fail("%s: there is no setting \"%s\"", path, name);
    json_t *kept = value_of_json(setting, value);
    if (!kept)
        return wg__cli_fail("%s: \"%s\" must be %s", path, name,
                            wanted(setting, kind, sizeof kind));
    if ((setting->key == WG__SET_SCHEDULE && wg_schedule_find(text) < 0) ||
        (setting->key == WG__SET_OPTIMIZER && !wg_optimizer_known(text))) {
        json_decref(kept);
        return wg__cli_fail("%s: there is no %s \"%s\"", path, name, text);
    }
    const bool said = json_object_get(arguments->given, name) ||
                      (rival && json_object_get(arguments->given, rival) &&
                       !json_object_get(arguments->in_file, rival));
    if (!said) {
        json_object_set(arguments->in_file, name, kept);
        json_object_set(arguments->given, name, kept);
    }
    json_decref(kept);
    return 0;
}

void wg__settings_read(const char *path, wg__run_arguments *arguments) {
    json_error_t error;
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!file && error.line < 0)
        exit(wg__cli_fail("%s", error.text));
    if (!file)
        exit(wg__cli_fail("%s: line %d: %s", path, error.line, error.text));
    if (!json_is_object(file))
        exit(wg__cli_fail("%s: settings are one JSON object, {\"steps\": 200}", path));
    arguments->file = path;
    if (!arguments->in_file)
        arguments->in_file = json_object();
    const char *name;
    json_t *value;
    json_object_foreach(file, name, value) {
        const int code = take_setting(path, name, value, arguments);
        if (code != 0)
            exit(code);
    }
    json_decref(file);
}
