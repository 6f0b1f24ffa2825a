/* The settings of a training run: see settings.h. */
#include "cli/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "models/model.h"

/* ---- What values point to ---- */

/* A block that lives as long as the settings, and values that wait for their objective. */
struct wg__owned {
    struct wg__owned *next;
    void *block;   /* NULL: it waits */
    char *name;    /* of the row that it waits for */
    char *text;    /* its value on the command line, */
    json_t *value; /* or in a file */
    wg__setting_origin origin;
    const char *path; /* of the file; NULL: the command line */
};

static void no_memory(void) {
    exit(wg__cli_fail("no memory for the settings"));
}

static struct wg__owned *add_owned(wg__run_settings *settings) {
    struct wg__owned *owned = calloc(1, sizeof *owned);
    if (!owned)
        no_memory();
    owned->next = settings->owned;
    settings->owned = owned;
    return owned;
}

/* Takes a block of malloc. */
static void *own(wg__run_settings *settings, void *block) {
    if (!block)
        no_memory();
    return add_owned(settings)->block = block;
}

static void add_part(wg__run_settings *settings, const wg_setting_table *table, void *values) {
    wg__run_settings_part *part = &settings->parts[settings->part_count++];
    wg__setting_origin *origins = own(settings, calloc((size_t)table->count, sizeof *origins));
    *part = (wg__run_settings_part){table, values, origins};
}

/* ---- Values ---- */

static bool in_range(const wg_setting *row, double value) {
    if (row->low == 0 && row->high == 0)
        return true;
    return value >= row->low && value <= row->high && !(row->above && value == row->low) &&
           !(row->below && value == row->high);
}

static int find_choice(const wg_setting *row, const char *name) {
    for (int i = 0; name && row->choice(i); i++)
        if (strcmp(row->choice(i), name) == 0)
            return i;
    return -1;
}

/* "linear, cosine and wsd" */
static const char *list_choices(const wg_setting *row, char *text, size_t size) {
    size_t length = 0;
    for (int i = 0; row->choice(i) && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s",
                                   i == 0               ? ""
                                   : row->choice(i + 1) ? ", "
                                                        : " and ",
                                   row->choice(i));
    return text;
}

static char *absolute(const char *path) {
    char *found = realpath(path, NULL);
    return found ? found : strdup(path);
}

/* A list as a member holds it; NULL for a value of another kind. */
static json_t *list_of(const wg_setting *row, const json_t *value) {
    json_t *list = json_array();
    const char *name;
    json_t *item;
    size_t i;
    bool good = true;
    if (row->kind == WG_SETTING_PAIRS) {
        json_object_foreach((json_t *)value, name, item) {
            const char *text = json_string_value(item);
            good = good && *name && text && *text;
            char *pair = NULL;
            if (good && asprintf(&pair, "%s=%s", name, text) < 0)
                no_memory();
            json_array_append_new(list, json_string(pair ? pair : ""));
            free(pair);
        }
        good = good && json_is_object(value);
    } else if (row->kind == WG_SETTING_FILES && json_is_string(value)) {
        json_array_append(list, (json_t *)value);
    } else {
        json_array_foreach(value, i, item) {
            good = good && (row->kind == WG_SETTING_NUMBERS
                                ? json_is_number(item) && in_range(row, json_number_value(item))
                                : json_is_string(item));
            json_array_append(list, item);
        }
        good = good && json_is_array(value);
    }
    if (good)
        return list;
    json_decref(list);
    return NULL;
}

static void set_list(wg__run_settings *settings, const wg_setting *row, const json_t *list,
                     void *member) {
    const int64_t count = (int64_t)json_array_size(list);
    if (row->kind == WG_SETTING_NUMBERS) {
        double *numbers = own(settings, calloc((size_t)count + 1, sizeof *numbers));
        for (int64_t i = 0; i < count; i++)
            numbers[i] = json_number_value(json_array_get(list, (size_t)i));
        *(wg_setting_numbers *)member = (wg_setting_numbers){count, numbers};
        return;
    }
    const char **items = own(settings, calloc((size_t)count + 1, sizeof *items));
    for (int64_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, (size_t)i));
        items[i] = own(settings, row->kind == WG_SETTING_FILES ? absolute(text) : strdup(text));
    }
    *(wg_setting_list *)member = (wg_setting_list){count, items};
}

/* Writes a JSON value into a member. False for a value of another type or range. */
static bool set_member(wg__run_settings *settings, const wg_setting *row, const json_t *value,
                       void *member) {
    const char *text = json_string_value(value);
    json_t *list;
    int choice;
    switch (row->kind) {
    case WG_SETTING_INTEGER:
    case WG_SETTING_TOKEN:
        if (!json_is_integer(value) || !in_range(row, (double)json_integer_value(value)))
            return false;
        *(int64_t *)member = json_integer_value(value);
        return true;
    case WG_SETTING_NUMBER:
        if (!json_is_number(value) || !in_range(row, json_number_value(value)))
            return false;
        *(double *)member = json_number_value(value);
        return true;
    case WG_SETTING_FLAG:
        *(bool *)member = json_is_true(value);
        return json_is_boolean(value);
    case WG_SETTING_CHOICE:
        choice = find_choice(row, text);
        *(int *)member = choice < 0 ? 0 : choice;
        return choice >= 0;
    case WG_SETTING_TEXT:
    case WG_SETTING_FILE:
        if (text)
            *(const char **)member =
                own(settings, row->kind == WG_SETTING_FILE ? absolute(text) : strdup(text));
        return text != NULL;
    case WG_SETTING_ONLY:
        return false;
    case WG_SETTING_FILES:
    case WG_SETTING_NUMBERS:
    case WG_SETTING_PAIRS:
        list = list_of(row, value);
        if (list)
            set_list(settings, row, list, member);
        json_decref(list);
        return list != NULL;
    }
    return false;
}

/* The value of a member as JSON. */
static json_t *member_json(const wg_setting *row, const void *member) {
    const wg_setting_list *list = member;
    const wg_setting_numbers *numbers = member;
    json_t *value;
    switch (row->kind) {
    case WG_SETTING_ONLY:
        return NULL;
    case WG_SETTING_INTEGER:
    case WG_SETTING_TOKEN:
        return json_integer(*(const int64_t *)member);
    case WG_SETTING_NUMBER:
        return json_real(*(const double *)member);
    case WG_SETTING_FLAG:
        return json_boolean(*(const bool *)member);
    case WG_SETTING_CHOICE:
        return json_string(row->choice(*(const int *)member));
    case WG_SETTING_TEXT:
    case WG_SETTING_FILE:
        return json_string(*(const char *const *)member);
    case WG_SETTING_NUMBERS:
        value = json_array();
        for (int64_t i = 0; i < numbers->count; i++)
            json_array_append_new(value, json_real(numbers->items[i]));
        return value;
    case WG_SETTING_FILES:
        value = json_array();
        for (int64_t i = 0; i < list->count; i++)
            json_array_append_new(value, json_string(list->items[i]));
        return value;
    case WG_SETTING_PAIRS:
        value = json_object();
        for (int64_t i = 0; i < list->count; i++) {
            const char *end = strchr(list->items[i], '=');
            json_object_setn_new(value, list->items[i], (size_t)(end - list->items[i]),
                                 json_string(end + 1));
        }
        return value;
    }
    return NULL;
}

/* ---- Rows and origins ---- */

static int row_named(const wg_setting_table *table, const char *name) {
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return i;
    return -1;
}

/* The part with a row of that name, and its number; NULL without. */
static wg__run_settings_part *find(const wg__run_settings *settings, const char *name, int *row) {
    for (int i = 0; i < settings->part_count; i++) {
        const wg__run_settings_part *part = &settings->parts[i];
        if ((*row = row_named(part->table, name)) >= 0)
            return (wg__run_settings_part *)part;
    }
    return NULL;
}

static void *member_of(const wg__run_settings_part *part, int row) {
    return (char *)part->values + part->table->rows[row].offset;
}

static size_t member_size(wg_setting_kind kind) {
    static const size_t sizes[] = {[WG_SETTING_INTEGER] = sizeof(int64_t),
                                   [WG_SETTING_NUMBER] = sizeof(double),
                                   [WG_SETTING_FLAG] = sizeof(bool),
                                   [WG_SETTING_CHOICE] = sizeof(int),
                                   [WG_SETTING_TOKEN] = sizeof(int64_t),
                                   [WG_SETTING_TEXT] = sizeof(char *),
                                   [WG_SETTING_FILE] = sizeof(char *),
                                   [WG_SETTING_FILES] = sizeof(wg_setting_list),
                                   [WG_SETTING_NUMBERS] = sizeof(wg_setting_numbers),
                                   [WG_SETTING_PAIRS] = sizeof(wg_setting_list)};
    return sizes[kind];
}

/* The row that this one excludes, in whichever part; its origin, which may be changed. */
static wg__setting_origin *rival_origin(const wg__run_settings *settings, const wg_setting *row,
                                        wg__run_settings_part **part, int *index) {
    *part = row->excludes ? find(settings, row->excludes, index) : NULL;
    return *part ? &(*part)->origins[*index] : NULL;
}

/* Sets a value unless a stronger origin has set it, or what it excludes. False for a value of
 * another type or range. */
static bool take(wg__run_settings *settings, wg__run_settings_part *part, int index,
                 const json_t *value, wg__setting_origin origin) {
    const wg_setting *row = &part->table->rows[index];
    wg__run_settings_part *other;
    int rival;
    wg__setting_origin *rival_is = rival_origin(settings, row, &other, &rival);
    if (origin < part->origins[index] || (rival_is && *rival_is > origin)) {
        char scratch[sizeof(wg_setting_list)];
        return set_member(settings, row, value, scratch);
    }
    if (!set_member(settings, row, value, member_of(part, index)))
        return false;
    part->origins[index] = origin;
    if (rival_is && *rival_is < origin && *rival_is != WG__UNSET) {
        *rival_is = WG__UNSET;
        memset(member_of(other, rival), 0, member_size(other->table->rows[rival].kind));
    }
    return true;
}

static void take_standards(wg__run_settings *settings, wg__run_settings_part *part) {
    for (int i = 0; i < part->table->count; i++) {
        const wg_setting *row = &part->table->rows[i];
        json_t *value = row->standard ? json_loads(row->standard, JSON_DECODE_ANY, NULL) : NULL;
        if (value)
            take(settings, part, i, value, WG__FROM_STANDARD);
        json_decref(value);
    }
}

void wg__run_settings_begin(wg__run_settings *settings, const wg_setting_table *own) {
    *settings = (wg__run_settings){0};
    add_part(settings, own,
             own == &wg__text_rows ? (void *)&settings->text : (void *)&settings->tuning);
    add_part(settings, &wg__training_rows, &settings->training);
    for (int i = 0; i < settings->part_count; i++)
        take_standards(settings, &settings->parts[i]);
}

void wg__run_settings_clear(wg__run_settings *settings) {
    for (struct wg__owned *next, *owned = settings->owned; owned; owned = next) {
        next = owned->next;
        free(owned->block);
        free(owned->name);
        free(owned->text);
        json_decref(owned->value);
        free(owned);
    }
    *settings = (wg__run_settings){0};
}

/* ---- Origins of members ---- */

static wg__setting_origin *origin_of(const wg__run_settings *settings, const void *member) {
    for (int i = 0; i < settings->part_count; i++) {
        const wg__run_settings_part *part = &settings->parts[i];
        for (int row = 0; row < part->table->count; row++)
            if (member_of(part, row) == member)
                return &part->origins[row];
    }
    return NULL;
}

wg__setting_origin wg__run_settings_origin(const wg__run_settings *settings, const void *member) {
    const wg__setting_origin *origin = origin_of(settings, member);
    return origin ? *origin : WG__UNSET;
}

bool wg__run_settings_given(const wg__run_settings *settings, const void *member) {
    return wg__run_settings_origin(settings, member) > WG__FROM_RECORD;
}

void wg__run_settings_decide(wg__run_settings *settings, const void *member) {
    wg__setting_origin *origin = origin_of(settings, member);
    if (origin && *origin == WG__UNSET)
        *origin = WG__FROM_RECORD;
}

/* ---- The command line ---- */

/* The options of objectives, each name once. */
enum {
    MOST_OPTIONS = 128,
    KEY_TRAINING = WG__KEY_SETTING + 500,
    KEY_OBJECTIVE = WG__KEY_SETTING + 1000
};

/* The n-th different row of the objectives that a verb reaches, or NULL. */
static const wg_setting *objective_row(bool finetunes, int n) {
    const wg_setting *seen[MOST_OPTIONS];
    int count = 0;
    const wg_objective *objective;
    for (int o = 0; (objective = wg_objective_at(o)); o++)
        for (int r = 0; objective->finetunes == finetunes && r < objective->settings.count; r++) {
            const wg_setting *row = &objective->settings.rows[r];
            bool known = false;
            for (int i = 0; i < count; i++)
                known |= strcmp(seen[i]->name, row->name) == 0;
            if (known || !row->help)
                continue;
            if (count == n)
                return row;
            if (count < MOST_OPTIONS)
                seen[count++] = row;
        }
    return NULL;
}

/* A JSON value as --help shows it. */
static char *shown(const json_t *value) {
    char *text = json_is_string(value)
                     ? strdup(json_string_value(value))
                     : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    if (!text)
        no_memory();
    return text;
}

/* Appends "; gpt 0.1" for a record whose runs differ. */
static void append_record(FILE *stream, const char *name, const char *json, const char *setting,
                          bool *any) {
    json_t *object = json ? json_loads(json, 0, NULL) : NULL;
    const json_t *value = json_object_get(object, setting);
    if (value && !json_is_null(value)) {
        char *text = shown(value);
        fprintf(stream, "%s%s %s", *any ? "; " : " (", name, text);
        free(text);
        *any = true;
    }
    json_decref(object);
}

static void append_presets(FILE *stream) {
    const wg_model_type *type;
    for (int t = 0; (type = wg_model_type_at(t)); t++)
        for (int i = 0; type->presets[i].name; i++)
            fprintf(stream, "%s%s%s",
                    i > 0   ? ", "
                    : t > 0 ? "; "
                            : ": ",
                    type->presets[i].name, i == 0 ? " (the default)" : "");
}

/* The help of a row with its standard value and those of models and objectives. */
static char *help_of(const wg_setting *row, bool finetunes) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        no_memory();
    fputs(row->help, stream);
    bool any = false;
    if (row->standard && strcmp(row->standard, "\"\"") != 0) {
        json_t *value = json_loads(row->standard, JSON_DECODE_ANY, NULL);
        char *standard = shown(value);
        fprintf(stream, " (%s", standard);
        any = true;
        free(standard);
        json_decref(value);
    }
    const wg_model_type *type;
    const wg_objective *objective;
    for (int i = 0; !finetunes && (type = wg_model_type_at(i)); i++)
        append_record(stream, type->name, type->training, row->name, &any);
    for (int i = 0; (objective = wg_objective_at(i)); i++)
        if (objective->finetunes == finetunes)
            append_record(stream, objective->name, objective->training, row->name, &any);
    fputs(any ? ")" : "", stream);
    if (strcmp(row->name, "preset") == 0)
        append_presets(stream);
    fclose(stream);
    return text;
}

static int add_option(struct argp_option *options, int count, const wg_setting *row, int key,
                      bool finetunes, int *group) {
    if (row->heading)
        options[count++] = (struct argp_option){.doc = row->heading, .group = ++*group};
    if (row->help)
        options[count++] = (struct argp_option){
            .name = row->name,
            .key = key,
            .arg = row->kind == WG_SETTING_FLAG ? NULL
                   : row->argument              ? row->argument
                                                : "VALUE",
            .doc = help_of(row, finetunes),
        };
    return count;
}

const struct argp_option *wg__run_settings_options(const wg_setting_table *own, bool finetunes,
                                                   const struct argp_option *before,
                                                   const struct argp_option *after) {
    static struct argp_option options[MOST_OPTIONS];
    int count = 0, group = 1;
    for (; before->name; before++) {
        options[count] = *before;
        options[count++].group = group;
    }
    for (int i = 0; i < own->count; i++)
        count = add_option(options, count, &own->rows[i], WG__KEY_SETTING + i, finetunes, &group);
    const wg_setting *row;
    for (int n = 0; (row = objective_row(finetunes, n)); n++) {
        if (n == 0) {
            group++;
            options[count++] = (struct argp_option){.doc = "Objective:", .group = group};
        }
        count = add_option(options, count, row, KEY_OBJECTIVE + n, finetunes, &group);
    }
    for (int i = 0; i < wg__training_rows.count; i++)
        count = add_option(options, count, &wg__training_rows.rows[i], KEY_TRAINING + i, finetunes,
                           &group);
    for (; after->name; after++)
        options[count++] = *after;
    options[count] = (struct argp_option){0};
    return options;
}

/* What an argument says, as JSON: a number or text of the row's kind, or one more of a list. Leaves
 * on wrong usage. */
static json_t *argument_json(const wg__run_settings_part *part, int index, struct argp_state *state,
                             const char *text) {
    const wg_setting *row = &part->table->rows[index];
    const bool again = part->origins[index] == WG__FROM_COMMAND;
    json_t *list, *value = NULL;
    char names[256], suggestion[96];
    char *copy, *rest;
    switch (row->kind) {
    case WG_SETTING_ONLY:
        break;
    case WG_SETTING_INTEGER:
    case WG_SETTING_TOKEN:
        return json_integer(wg__cli_integer(state, row->name, text, (int64_t)row->low,
                                            row->high >= 0x1p63 ? INT64_MAX : (int64_t)row->high));
    case WG_SETTING_NUMBER:
        return json_real(wg__cli_number(state, row->name, text, row->low, row->high));
    case WG_SETTING_FLAG:
        return json_true();
    case WG_SETTING_CHOICE:
        if (find_choice(row, text) < 0)
            argp_error(state, "--%s: there is no '%s'; %s are there%s", row->name, text,
                       list_choices(row, names, sizeof names),
                       wg__cli_suggestion(suggestion, sizeof suggestion, text, row->choice));
        return json_string(text);
    case WG_SETTING_TEXT:
    case WG_SETTING_FILE:
        value = json_string(text);
        break;
    case WG_SETTING_FILES:
        list = again ? member_json(row, member_of(part, index)) : json_array();
        value = json_array_append_new(list, json_string(text)) == 0 ? list : NULL;
        if (!value)
            json_decref(list);
        break;
    case WG_SETTING_NUMBERS:
        copy = strdup(text);
        if (!copy)
            no_memory();
        list = json_array();
        for (char *item = rest = copy; (item = strsep(&rest, ","));)
            json_array_append_new(
                list, json_real(wg__cli_number(state, row->name, item, row->low, row->high)));
        free(copy);
        return list;
    case WG_SETTING_PAIRS:
        rest = strchr(text, '=');
        if (!rest || rest == text || !rest[1])
            argp_error(state, "--%s: '%s' is not LABEL=TEXT", row->name, text);
        list = again ? member_json(row, member_of(part, index)) : json_object();
        copy = strndup(text, (size_t)(rest - text));
        if (copy && json_object_get(list, copy)) {
            json_decref(list);
            argp_error(state, "--%s: '%s' is said twice", row->name, copy);
        }
        value = copy && json_object_set_new(list, copy, json_string(rest + 1)) == 0 ? list : NULL;
        if (!value)
            json_decref(list);
        free(copy);
        break;
    }
    if (!value)
        argp_error(state, "--%s: '%s' is not UTF-8", row->name, text);
    return value;
}

static void give(wg__run_settings *settings, wg__run_settings_part *part, int index,
                 struct argp_state *state, const char *text) {
    const wg_setting *row = &part->table->rows[index];
    wg__run_settings_part *other;
    int rival;
    const wg__setting_origin *rival_is = rival_origin(settings, row, &other, &rival);
    if (rival_is && *rival_is == WG__FROM_COMMAND)
        argp_error(state, "--%s and --%s exclude each other", row->excludes, row->name);
    json_t *value = argument_json(part, index, state, text);
    const bool good = take(settings, part, index, value, WG__FROM_COMMAND);
    json_decref(value);
    if (!good) /* an end of the range that does not belong to it */
        argp_error(state, "--%s: it must be %s %g and %s %g, not %s", row->name,
                   row->above ? "above" : "at least", row->low, row->below ? "below" : "at most",
                   row->high, text);
}

void wg__run_settings_give(wg__run_settings *settings, struct argp_state *state, const char *name,
                           const char *text) {
    int row;
    wg__run_settings_part *part = find(settings, name, &row);
    give(settings, part, row, state, text);
}

error_t wg__run_settings_parse(wg__run_settings *settings, struct argp_state *state, int key,
                               const char *text) {
    const bool finetunes = settings->parts[0].table == &wg__tuning_rows;
    const int training = key - KEY_TRAINING, own_row = key - WG__KEY_SETTING;
    if (key >= KEY_OBJECTIVE && key < KEY_OBJECTIVE + MOST_OPTIONS) {
        struct wg__owned *waiting = add_owned(settings);
        waiting->name = strdup(objective_row(finetunes, key - KEY_OBJECTIVE)->name);
        waiting->text = strdup(text ? text : "");
        waiting->origin = WG__FROM_COMMAND;
        return 0;
    }
    if (training >= 0 && training < wg__training_rows.count)
        give(settings, &settings->parts[1], training, state, text);
    else if (own_row >= 0 && own_row < settings->parts[0].table->count)
        give(settings, &settings->parts[0], own_row, state, text);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

/* ---- Refusals of a file ---- */

/* "a whole number of 1 or more" */
static const char *wanted(const wg_setting *row, char *text, size_t size) {
    static const char *const kinds[] = {
        [WG_SETTING_INTEGER] = "a whole number",    [WG_SETTING_NUMBER] = "a number",
        [WG_SETTING_FLAG] = "true or false",        [WG_SETTING_CHOICE] = "a text",
        [WG_SETTING_TOKEN] = "a whole number",      [WG_SETTING_TEXT] = "a text",
        [WG_SETTING_FILE] = "the name of a file",   [WG_SETTING_FILES] = "a list of names of files",
        [WG_SETTING_NUMBERS] = "a list of numbers", [WG_SETTING_PAIRS] = "an object of texts"};
    const bool bounded = row->low != 0 || row->high != 0;
    if (!bounded)
        snprintf(text, size, "%s", kinds[row->kind]);
    else if (isinf(row->high))
        snprintf(text, size, "%s of %g or more", kinds[row->kind], row->low);
    else
        snprintf(text, size, "%s from %g to %g", kinds[row->kind], row->low, row->high);
    return text;
}

/* Tells what a key of a file must be. Returns the exit code of a failure. */
static int refuse(const char *path, const wg_setting *row, const json_t *value) {
    char text[100], suggestion[96];
    if (row->kind == WG_SETTING_CHOICE && json_is_string(value))
        return wg__cli_fail("%s: there is no %s \"%s\"%s", path, row->name,
                            json_string_value(value),
                            wg__cli_suggestion(suggestion, sizeof suggestion,
                                               json_string_value(value), row->choice));
    return wg__cli_fail("%s: \"%s\" must be %s", path, row->name, wanted(row, text, sizeof text));
}

/* ---- The objective's rows ---- */

static wg__run_settings_part *objective_part(wg__run_settings *settings) {
    return settings->part_count > 2 ? &settings->parts[2] : NULL;
}

/* Takes what waited for this objective, in the order in which it was given. */
static void take_waiting(wg__run_settings *settings, struct wg__owned *waiting,
                         struct argp_state *state, const char *user) {
    if (!waiting)
        return;
    take_waiting(settings, waiting->next, state, user);
    if (!waiting->name)
        return;
    wg__run_settings_part *part = objective_part(settings);
    const int row = part ? row_named(part->table, waiting->name) : -1;
    if (row < 0)
        argp_error(state, "--%s is not for %s", waiting->name, user);
    else if (waiting->origin == WG__FROM_COMMAND)
        give(settings, part, row, state, waiting->text);
    else if (!take(settings, part, row, waiting->value, waiting->origin))
        exit(refuse(waiting->path, &part->table->rows[row], waiting->value));
}

void wg__run_settings_add_objective(wg__run_settings *settings, const wg_objective *objective,
                                    struct argp_state *state, const char *user) {
    struct wg__owned *waiting = settings->owned;
    if (objective->settings.count > 0) {
        settings->objective = own(settings, calloc(1, objective->settings.size));
        add_part(settings, &objective->settings, settings->objective);
        take_standards(settings, objective_part(settings));
    }
    take_waiting(settings, waiting, state, user);
}

const wg_setting *wg__run_settings_missing(const wg__run_settings *settings) {
    const wg__run_settings_part *part = objective_part((wg__run_settings *)settings);
    for (int i = 0; part && i < part->table->count; i++)
        if (part->table->rows[i].help && !part->table->rows[i].standard &&
            part->origins[i] == WG__UNSET)
            return &part->table->rows[i];
    return NULL;
}

/* ---- Files, records and notes ---- */

/* True if an objective that a verb reaches has a row of that name. */
static bool of_objective(bool finetunes, const char *name) {
    const wg_setting *row;
    for (int n = 0; (row = objective_row(finetunes, n)); n++)
        if (strcmp(row->name, name) == 0)
            return true;
    return false;
}

/* The index-th setting of the verb: of its tables, then of the objectives that it reaches. */
static const char *setting_name(const void *context, int index) {
    const wg__run_settings *settings = context;
    for (int i = 0; i < 2; i++) {
        const wg_setting_table *table = settings->parts[i].table;
        if (index < table->count)
            return table->rows[index].name;
        index -= table->count;
    }
    const wg_setting *row = objective_row(settings->parts[0].table == &wg__tuning_rows, index);
    return row ? row->name : NULL;
}

/* A key of a file that is in none of the verb's own tables. */
static void take_other(wg__run_settings *settings, const char *path, const char *name,
                       json_t *value) {
    const bool finetunes = settings->parts[0].table == &wg__tuning_rows;
    const wg_setting_table *others = finetunes ? &wg__text_rows : &wg__tuning_rows;
    if (of_objective(finetunes, name)) {
        struct wg__owned *waiting = add_owned(settings);
        waiting->name = strdup(name);
        waiting->value = json_incref(value);
        waiting->origin = WG__FROM_FILE;
        waiting->path = path;
        return;
    }
    if (row_named(others, name) >= 0 || of_objective(!finetunes, name))
        exit(wg__cli_fail("%s: \"%s\" is a setting of `wengert %s', not of `wengert %s'", path,
                          name, finetunes ? "pretrain" : "finetune",
                          finetunes ? "finetune" : "pretrain"));
    char suggestion[96];
    wg_suggestion(suggestion, sizeof suggestion, name, setting_name, settings);
    exit(wg__cli_fail("%s: there is no setting \"%s\"%s", path, name, suggestion));
}

void wg__run_settings_read_file(wg__run_settings *settings, const char *path) {
    json_error_t error;
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!file && error.line < 0)
        exit(wg__cli_fail("%s", error.text));
    if (!file)
        exit(wg__cli_fail("%s: line %d: %s", path, error.line, error.text));
    if (!json_is_object(file))
        exit(wg__cli_fail("%s: settings are one JSON object, {\"steps\": 200}", path));
    const char *name;
    json_t *value;
    json_object_foreach(file, name, value) {
        int row;
        wg__run_settings_part *part = find(settings, name, &row);
        if (!part)
            take_other(settings, path, name, value);
        else if (!take(settings, part, row, value, WG__FROM_FILE))
            exit(refuse(path, &part->table->rows[row], value));
    }
    json_decref(file);
}

void wg__run_settings_take_record(wg__run_settings *settings, const char *json) {
    json_t *record = json ? json_loads(json, 0, NULL) : NULL, *value;
    const char *name;
    json_object_foreach(record, name, value) {
        int row;
        wg__run_settings_part *part = find(settings, name, &row);
        if (part)
            take(settings, part, row, value, WG__FROM_RECORD);
    }
    json_decref(record);
}

/* A setting that is fixed may not have been given another value than the checkpoint's. */
static int check_unchanged(const wg__run_settings_part *part, const json_t *kept,
                           const char *path) {
    for (int i = 0; i < part->table->count; i++) {
        const wg_setting *row = &part->table->rows[i];
        if (!row->fixed || part->origins[i] < WG__FROM_FILE)
            continue;
        const json_t *old_value = json_object_get(kept, row->name);
        json_t *new_value = member_json(row, member_of(part, i));
        const bool same = json_equal(new_value, old_value) ||
                          (json_is_number(old_value) && json_is_number(new_value) &&
                           json_number_value(old_value) == json_number_value(new_value));
        json_decref(new_value);
        if (same)
            continue;
        char *text =
            old_value ? json_dumps(old_value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
        wg__cli_fail("--%s cannot change while a run goes on: %s was begun with %s", row->name,
                     path, text ? text : "another choice");
        free(text);
        return -1;
    }
    return 0;
}

int wg__run_settings_take_note(wg__run_settings *settings, const char *note, const char *path) {
    json_t *kept = json_loads(note, 0, NULL), *value;
    int status = 0, row;
    if (!json_is_object(kept))
        status = wg__cli_fail("%s: /train/note holds no settings of a run", path);
    for (int i = 0; status == 0 && i < settings->part_count; i++)
        status = check_unchanged(&settings->parts[i], kept, path);
    const char *name;
    if (status == 0)
        json_object_foreach(kept, name, value) {
            wg__run_settings_part *part = find(settings, name, &row);
            if (part)
                take(settings, part, row, value, WG__FROM_CHECKPOINT);
        }
    json_decref(kept);
    return status == 0 ? 0 : -1;
}

char *wg__run_settings_note(const wg__run_settings *settings) {
    json_t *note = json_object();
    for (int p = 0; p < settings->part_count; p++) {
        const wg__run_settings_part *part = &settings->parts[p];
        for (int i = 0; i < part->table->count; i++)
            if (part->origins[i] != WG__UNSET)
                json_object_set_new(note, part->table->rows[i].name,
                                    member_json(&part->table->rows[i], member_of(part, i)));
    }
    char *text = json_dumps(note, JSON_INDENT(2));
    json_decref(note);
    return text;
}

int wg__run_settings_agree(const wg__run_settings *settings, wg_group *group) {
    int status = 0;
    for (int p = 0; p < settings->part_count; p++) {
        const wg__run_settings_part *part = &settings->parts[p];
        for (int i = 0; status == 0 && i < part->table->count; i++) {
            const wg_setting *row = &part->table->rows[i];
            if (row->kind == WG_SETTING_FILE || row->kind == WG_SETTING_FILES)
                continue;
            char option[96];
            json_t *value =
                part->origins[i] == WG__UNSET ? NULL : member_json(row, member_of(part, i));
            char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
            snprintf(option, sizeof option, "--%s", row->name);
            status = wg_group_agree(group, option, text ? text : "not given");
            free(text);
            json_decref(value);
        }
    }
    return status;
}
