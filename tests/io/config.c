/* Configurations: typed reading, the messages of refusals, and round trips. */
#include "io/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/testing.h"

static wg_config *parse(const char *json) {
    wg_config *config = owned(wg__config_parse(json, "config.json"));
    assert_no_error();
    return config;
}

TEST(values_are_read_by_their_type) {
    wg_config *config = parse(
        "{\"hidden_size\": 256, \"eps\": 1e-12, \"whole\": 2, \"tied\": true, \"act\": \"gelu\"}");
    int64_t integer = 0;
    double number = 0, whole = 0;
    bool boolean = false;
    const char *text = NULL;
    ck_assert_int_eq(wg__config_integer(config, "hidden_size", &integer), 0);
    ck_assert_int_eq(wg__config_number(config, "eps", &number), 0);
    ck_assert_int_eq(wg__config_number(config, "whole", &whole), 0);
    ck_assert_int_eq(wg__config_boolean(config, "tied", &boolean), 0);
    ck_assert_int_eq(wg__config_text(config, "act", &text), 0);
    ck_assert_int_eq(integer, 256);
    ck_assert(number == 1e-12);
    ck_assert(whole == 2);
    ck_assert(boolean);
    ck_assert_str_eq(text, "gelu");
    ck_assert_int_eq(wg__config_check(config, 0, NULL), 0);
}

TEST(a_key_that_is_not_there_or_null_keeps_the_value) {
    wg_config *config = parse("{\"b\": null}");
    int64_t a = 7, b = 8;
    ck_assert_int_eq(wg__config_integer(config, "a", &a), 0);
    ck_assert_int_eq(wg__config_integer(config, "b", &b), 0);
    ck_assert_int_eq(a, 7);
    ck_assert_int_eq(b, 8);
    ck_assert(!wg__config_has(config, "a"));
    ck_assert(!wg__config_has(config, "b"));
}

TEST(a_value_of_another_type_is_refused_with_what_was_wanted) {
    wg_config *config = parse("{\"size\": \"big\", \"rate\": true, \"on\": 1, \"name\": [1, 2],"
                              " \"width\": 2.0}");
    int64_t integer = 5;
    double number = 5;
    bool boolean = true;
    const char *text = "five";
    assert_fails(wg__config_integer(config, "size", &integer), WG_ERROR_FORMAT,
                 "config.json: \"size\" is \"big\"; wanted an integer");
    assert_fails(wg__config_number(config, "rate", &number), WG_ERROR_FORMAT,
                 "\"rate\" is true; wanted a number");
    assert_fails(wg__config_boolean(config, "on", &boolean), WG_ERROR_FORMAT,
                 "\"on\" is 1; wanted true or false");
    assert_fails(wg__config_text(config, "name", &text), WG_ERROR_FORMAT,
                 "\"name\" is an array; wanted a text");
    assert_fails(wg__config_integer(config, "width", &integer), WG_ERROR_FORMAT,
                 "\"width\" is 2.0; wanted an integer");
    ck_assert_int_eq(integer, 5);
    ck_assert(number == 5);
    ck_assert(boolean);
    ck_assert_str_eq(text, "five");
}

TEST(all_missing_and_all_unknown_keys_are_named_at_once) {
    wg_config *config = parse("{\"b\": 1, \"d\": null}");
    assert_fails(wg__config_require(config, WG_NAMES("a", "b", "c", "d")), WG_ERROR_FORMAT,
                 "config.json has no \"a\", \"c\", \"d\"");
    ck_assert_int_eq(wg__config_require(config, WG_NAMES("b")), 0);
    config = parse("{\"size\": 1, \"siez\": 2, \"model_type\": \"bert\", \"witdh\": 3}");
    int64_t size = 0;
    wg__config_integer(config, "size", &size);
    assert_fails(wg__config_check(config, WG_NAMES("model_type")), WG_ERROR_FORMAT,
                 "unknown keys \"siez\", \"witdh\"");
    ck_assert_int_eq(wg__config_check(config, WG_NAMES("model_type", "siez", "witdh")), 0);
}

TEST(a_long_list_of_unknown_keys_fits_into_the_message) {
    char json[20000] = "{";
    for (int i = 0; i < 500; i++)
        sprintf(json + strlen(json), "%s\"an_unknown_key_%d\": 1", i ? ", " : "", i);
    strcat(json, "}");
    wg_config *config = parse(json);
    assert_fails(wg__config_check(config, 0, NULL), WG_ERROR_FORMAT, "\"an_unknown_key_3\"");
}

TEST(what_is_no_json_object_is_refused_with_its_line) {
    static const char *const cases[][2] = {
        {"{\"a\": 1,\n \"b\": }", "x.json, line 2"},
        {"[1, 2]", "x.json is no JSON object"},
        {"{\"a\": 1, \"a\": 2}", "duplicate"},
        {"", "x.json"},
        {"{\"a\": \"\xff\"}", "unable to decode byte 0xff"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        assert_fails(wg__config_parse(cases[i][0], "x.json"), WG_ERROR_FORMAT, cases[i][1]);
    assert_fails(wg__config_load("no/such.json"), WG_ERROR_NOT_FOUND, "no/such.json: No such file");
    assert_fails(wg__config_load("/"), WG_ERROR_IO, "/");
}

TEST(deep_nesting_is_refused) {
    static char json[200001];
    memset(json, '[', sizeof json - 1);
    memcpy(json, "{\"x\":", 5);
    const char *path = in_scratch("deep.json");
    write_file(path, json, sizeof json - 1);
    assert_fails(wg__config_load(path), WG_ERROR_FORMAT, "maximum parsing depth reached");
    for (size_t i = 5; i + 5 < sizeof json; i += 5) /* objects in objects */
        memcpy(json + i, "{\"x\":", 5);
    assert_fails(wg__config_parse(json, path), WG_ERROR_FORMAT, "maximum parsing depth reached");
}

TEST(readers_do_nothing_while_an_error_is_pending) {
    wg_config *config = parse("{\"a\": 1}");
    int64_t a = 7;
    wg_fail(WG_ERROR_STATE, "test", "something else");
    ck_assert_int_eq(wg__config_integer(config, "a", &a), -1);
    ck_assert_int_eq(a, 7);
    assert_error(WG_ERROR_STATE, "something else");
    ck_assert_int_eq(wg__config_integer(NULL, "a", &a), -1);
}

TEST(what_is_written_reads_back_the_same) {
    wg_config *config = owned(wg__config_new());
    ck_assert_int_eq(wg__config_set_integer(config, "hidden_size", INT64_MAX), 0);
    ck_assert_int_eq(wg__config_set_number(config, "dropout", 0.1), 0);
    ck_assert_int_eq(wg__config_set_number(config, "eps", 1e-12), 0);
    ck_assert_int_eq(wg__config_set_number(config, "third", 1.0 / 3.0), 0);
    ck_assert_int_eq(wg__config_set_boolean(config, "cased", false), 0);
    ck_assert_int_eq(wg__config_set_text(config, "act", "g\"e\nlu"), 0);
    ck_assert_int_eq(wg__config_set_number(config, "dropout", 0.2), 0);
    char *json = owned(wg__config_to_json(config));
    ck_assert_str_eq(json, "{\n"
                           "  \"hidden_size\": 9223372036854775807,\n"
                           "  \"dropout\": 0.2,\n"
                           "  \"eps\": 1e-12,\n"
                           "  \"third\": 0.3333333333333333,\n"
                           "  \"cased\": false,\n"
                           "  \"act\": \"g\\\"e\\nlu\"\n"
                           "}\n");
    wg_config *again = parse(json);
    double third = 0;
    wg__config_number(again, "third", &third);
    ck_assert(third == 1.0 / 3.0);
}

TEST(what_json_cannot_say_is_refused) {
    wg_config *config = owned(wg__config_new());
    assert_fails(wg__config_set_number(config, "x", NAN), WG_ERROR_FORMAT, "\"x\" is nan");
    assert_fails(wg__config_set_text(config, "x", "\xc3"), WG_ERROR_FORMAT, "UTF-8");
    char *json = owned(wg__config_to_json(config));
    ck_assert_str_eq(json, "{\n  \n}\n");
}

/* ---- Tables of settings ---- */

static const char *shade_name(int value) {
    static const char *const names[] = {"dark", "light", NULL};
    return value >= 0 && value < 2 ? names[value] : NULL;
}

static const char *const shade_aliases[] = {"black", "dark", NULL};

typedef struct lamp {
    int64_t watts, token;
    double share;
    bool on;
    int shade;
    const char *name;
    wg_setting_list rooms, labels;
    wg_setting_numbers weights;
} lamp;

#define ROW(member, row_kind)                                                                      \
    .name = #member, .kind = WG_SETTING_##row_kind, .offset = offsetof(lamp, member)

static const wg_setting lamp_rows[] = {
    {ROW(watts, INTEGER), .low = 1, .high = INFINITY, .help = "power"},
    {ROW(token, TOKEN), .low = -1, .list = true, .standard = "-1", .help = "its token"},
    {ROW(share, NUMBER), .high = 1, .below = true, .standard = "0.25", .help = "of light"},
    {ROW(on, FLAG), .standard = "true", .help = "it shines"},
    {ROW(shade, CHOICE), .choice = shade_name, .aliases = shade_aliases, .standard = "\"light\"",
     .help = "its shade"},
    {ROW(name, TEXT), .standard = "\"lamp\"", .help = "its name"},
    {ROW(rooms, FILES), .derived = "none", .help = "rooms"},
    {ROW(labels, PAIRS), .derived = "none", .help = "labels"},
    {ROW(weights, NUMBERS), .derived = "none", .help = "weights"},
    {.name = "phase", .kind = WG_SETTING_ONLY, .standard = "1", .help = "no other value is known"},
};

static const wg_setting_table lamps = {"lamp", sizeof(lamp), WG_COUNT(lamp_rows), lamp_rows};

static int read_lamp(lamp *values, const char *json) {
    return wg__settings_read(&lamps, parse(json), values);
}

TEST(a_struct_has_standard_values_and_those_that_a_file_says) {
    lamp values;
    ck_assert_int_eq(wg__settings_standard(&lamps, &values), 0);
    ck_assert_int_eq(values.watts, 0);
    ck_assert_int_eq(values.token, -1);
    ck_assert(values.share == 0.25 && values.on && values.shade == 1);
    ck_assert_str_eq(values.name, "lamp");
    ck_assert_ptr_null(values.rooms.items);
    ck_assert_int_eq(read_lamp(&values,
                               "{\"watts\": 40, \"shade\": \"black\", \"name\": null,"
                               "\"token\": [7, 8], \"phase\": 1, \"rooms\": [\"a\", \"b\"],"
                               "\"labels\": {\"x\": \"y=z\"}, \"weights\": [3, 0.5]}"),
                     0);
    ck_assert_int_eq(values.watts, 40);
    ck_assert_int_eq(values.token, 7);
    ck_assert_int_eq(values.shade, 0);
    ck_assert_str_eq(values.name, "lamp");
    ck_assert_int_eq(values.rooms.count, 2);
    ck_assert_str_eq(values.labels.items[0], "x=y=z");
    ck_assert(values.weights.count == 2 && values.weights.items[1] == 0.5);
    ck_assert_int_eq(read_lamp(&values, "{\"rooms\": \"c\"}"), 0);
    ck_assert_int_eq(values.rooms.count, 1);
    ck_assert_str_eq(values.rooms.items[0], "c");
    wg__settings_clear(&lamps, &values);
    ck_assert_ptr_null(values.name);
}

TEST(a_struct_goes_through_json_and_back) {
    lamp values, again;
    wg__settings_standard(&lamps, &values);
    read_lamp(&values, "{\"watts\": 9, \"labels\": {\"x\": \"y=z\"}, \"weights\": [2.0]}");
    wg_config *config = owned(wg__config_new());
    ck_assert_int_eq(wg__settings_write(&lamps, &values, config), 0);
    char *json = owned(wg__config_to_json(config));
    ck_assert_str_eq(json, "{\n  \"watts\": 9,\n  \"token\": null,\n  \"share\": 0.25,\n"
                           "  \"on\": true,\n  \"shade\": \"light\",\n  \"name\": \"lamp\",\n"
                           "  \"labels\": {\"x\": \"y=z\"},\n  \"weights\": [2.0]\n}\n");
    wg__settings_standard(&lamps, &again);
    ck_assert_int_eq(read_lamp(&again, json), 0);
    ck_assert_str_eq(again.labels.items[0], "x=y=z");
    wg__settings_clear(&lamps, &values);
    wg__settings_clear(&lamps, &again);
}

TEST(a_setting_out_of_range_is_refused_with_its_rule) {
    static const struct {
        const char *json;
        wg_error_code code;
        const char *message;
    } cases[] = {
        {"{\"watts\": 0}", WG_ERROR_ARGUMENT, "watts is 0; it must be at least 1"},
        {"{\"share\": 1}", WG_ERROR_ARGUMENT, "share is 1; it must be at least 0 and below 1"},
        {"{\"token\": 9}", WG_ERROR_ARGUMENT,
         "token is 9; it must be a token of the vocabulary, or -1 for none"},
        {"{\"shade\": \"red\"}", WG_ERROR_ARGUMENT,
         "shade is \"red\"; it must be one of dark, light"},
        {"{\"phase\": 3}", WG_ERROR_FORMAT, "\"phase\" is 3; wanted 1"},
        {"{\"on\": 1}", WG_ERROR_FORMAT, "\"on\" is 1; wanted true or false"},
        {"{\"rooms\": 3}", WG_ERROR_FORMAT, "\"rooms\" is 3; wanted a list"},
        {"{\"weights\": [\"a\"]}", WG_ERROR_FORMAT, "wanted a list of numbers"},
        {"{\"labels\": {\"a\": 1}}", WG_ERROR_FORMAT,
         "\"labels\" is 1; wanted texts, each under its label"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        lamp values;
        wg__settings_standard(&lamps, &values);
        values.watts = 1;
        ck_assert(read_lamp(&values, cases[i].json) < 0 ||
                  wg__settings_check(&lamps, &values, 9) < 0);
        assert_error(cases[i].code, cases[i].message);
        wg__settings_clear(&lamps, &values);
    }
    assert_fails(wg__settings_require(&lamps, parse("{}")), WG_ERROR_FORMAT,
                 "config.json has no \"watts\"");
    assert_fails(wg__settings_require(&lamps, parse("{\"wats\": 4}")), WG_ERROR_FORMAT,
                 "has no \"watts\", but \"wats\"; did you mean 'watts'?");
}
