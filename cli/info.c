/* wengert info: the contents of a checkpoint. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "data/tokenizer/tokenizer.h"
#include "train/trainer.h"

typedef struct arguments {
    const char *path;
    bool json;
} arguments;

static const struct argp_option options[] = {WG__OPTION_JSON, {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->path)
            argp_error(state, "one FILE at a time");
        a->path = text;
        return 0;
    case ARGP_KEY_END:
        if (!a->path)
            argp_error(state, "missing FILE");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Reading the checkpoint into one JSON object ----
 *
 *     {"parameters": N, "config": {...}, "tokenizer": {...}, "training": {...}, "tensors": [...]}
 */

typedef struct tensor_list {
    json_t *tensors;
    int64_t parameters;
} tensor_list;

/* Adds a dataset below /model to the list under its name in the model, with dots for slashes. */
static int visit(const char *name, const wg_spec *spec, void *context) {
    static const char group[] = "/model/";
    tensor_list *list = context;
    if (strncmp(name, group, strlen(group)) != 0)
        return 0;
    char *path = strdup(name + strlen(group));
    json_t *shape = json_array();
    int64_t count = 1;
    for (char *c = path; c && *c; c++)
        if (*c == '/')
            *c = '.';
    for (int i = 0; i < spec->ndim; i++) {
        count *= spec->shape[i];
        json_array_append_new(shape, json_integer(spec->shape[i]));
    }
    list->parameters += count;
    json_array_append_new(list->tensors,
                          json_pack("{s:s, s:s, s:o}", "name", path ? path : name, "dtype",
                                    wg_dtype_name(spec->dtype), "shape", shape));
    free(path);
    return 0;
}

static int read_config(wg_checkpoint *file, json_t *object) {
    char *text = wg_checkpoint_get_text(file, "/config");
    json_t *config = text ? json_loads(text, 0, NULL) : NULL;
    if (text && !config)
        wg_fail(WG_ERROR_FORMAT, "info", "/config is not JSON");
    wg_text_free(text);
    return config ? json_object_set_new(object, "config", config) : -1;
}

static int read_tokenizer(wg_checkpoint *file, json_t *object) {
    char *text = wg_checkpoint_get_text(file, "/tokenizer");
    wg_tokenizer *tokenizer = text ? wg_tokenizer_from_json(text) : NULL;
    wg_text_free(text);
    if (!tokenizer)
        return -1;
    json_object_set_new(object, "tokenizer",
                        json_pack("{s:s, s:I}", "kind", wg_tokenizer_kind(tokenizer), "tokens",
                                  (json_int_t)wg_tokenizer_size(tokenizer)));
    wg_tokenizer_free(tokenizer);
    return 0;
}

/* The last row of a history: {column: value}. */
static json_t *last_row(wg_checkpoint *file, const char *group) {
    wg_history history = {0};
    json_t *row = json_object();
    if (wg_history_get(&history, file, group) == 0 && history.row_count > 0)
        for (int i = 0; i < history.column_count; i++)
            json_object_set_new(row, history.names[i],
                                wg__json_number(history.columns[i][history.row_count - 1]));
    wg_history_clear(&history);
    return row;
}

static int read_training(wg_checkpoint *file, json_t *object) {
    int64_t step, total;
    if (wg_checkpoint_get_integer(file, "/train/step", &step) < 0 ||
        wg_checkpoint_get_integer(file, "/train/schedule/total_steps", &total) < 0)
        return -1;
    json_t *training =
        json_pack("{s:I, s:I}", "step", (json_int_t)step, "steps", (json_int_t)total);
    json_object_set_new(training, "last_step", last_row(file, WG_HISTORY_TRAINING));
    json_object_set_new(training, "last_evaluation", last_row(file, WG_HISTORY_EVALUATION));
    return json_object_set_new(object, "training", training);
}

static int read_all(wg_checkpoint *file, json_t *object) {
    tensor_list list = {.tensors = json_array()};
    int result = wg_checkpoint_each(file, visit, &list);
    json_object_set_new(object, "parameters", json_integer(list.parameters));
    if (result == 0 && wg_checkpoint_has(file, "/config"))
        result = read_config(file, object);
    if (result == 0 && wg_checkpoint_has(file, "/tokenizer"))
        result = read_tokenizer(file, object);
    if (result == 0 && wg_checkpoint_has(file, "/train/step"))
        result = read_training(file, object);
    json_object_set_new(object, "tensors", list.tensors);
    return result < 0 || wg_error_pending() ? -1 : 0;
}

/* ---- Printing ---- */

static void print_members(const char *title, json_t *object) {
    if (json_object_size(object) == 0)
        return;
    printf("%s\n", title);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        printf("    %-30s %s\n", key, text ? text : "");
        free(text);
    }
}

static void print_tensor(const json_t *tensor) {
    printf("    %-62s %s (", json_string_value(json_object_get(tensor, "name")),
           json_string_value(json_object_get(tensor, "dtype")));
    const json_t *shape = json_object_get(tensor, "shape");
    for (size_t i = 0; i < json_array_size(shape); i++)
        printf("%s%lld", i ? ", " : "", (long long)json_integer_value(json_array_get(shape, i)));
    puts(")");
}

static void print_info(json_t *object) {
    json_t *tensors = json_object_get(object, "tensors");
    json_t *training = json_object_get(object, "training");
    printf("model: %lld numbers in %zu tensors\n",
           (long long)json_integer_value(json_object_get(object, "parameters")),
           json_array_size(tensors));
    for (size_t i = 0; i < json_array_size(tensors); i++)
        print_tensor(json_array_get(tensors, i));
    if (!json_object_get(object, "config"))
        puts("config: none; it is a program's own model");
    print_members("config:", json_object_get(object, "config"));
    print_members("tokenizer:", json_object_get(object, "tokenizer"));
    if (!training)
        return;
    printf("training: step %lld of %lld\n",
           (long long)json_integer_value(json_object_get(training, "step")),
           (long long)json_integer_value(json_object_get(training, "steps")));
    print_members("last step:", json_object_get(training, "last_step"));
    print_members("last evaluation:", json_object_get(training, "last_evaluation"));
}

int wg__verb_info(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "FILE",
        .doc = "Prints the contents of a checkpoint: tensors, configuration, tokenizer, and the "
               "progress of training.\vThe file is HDF5, which h5ls, h5dump and h5py read, too.",
    };
    arguments a = {0};
    wg__cli_parse(&parser, argc, argv, &a);
    wg_checkpoint *file = wg_checkpoint_open(a.path);
    if (!file)
        return wg__cli_fail_pending();
    json_t *object = json_object();
    int result = read_all(file, object);
    wg_checkpoint_close(file);
    if (result == 0 && !a.json)
        print_info(object);
    if (result == 0 && a.json)
        wg__print_json(json_incref(object));
    json_decref(object);
    return result < 0 ? wg__cli_fail_pending() : 0;
}
