/* wengert info: the contents of a checkpoint, or of a file of tensors in any format.
 *
 *     {"file", "format", "bytes", "model", "parameters", "memory_bytes", "token_flops",
 *      "attention_flops", "positions", "config", "tokenizer", "metadata", "lora", "training",
 *      "tensors"}
 *
 * This object is made first, and then printed as JSON (--json) or as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "formats/weights_files.h"
#include "train/trainer.h"
#include "formats/internal.h"
#include "io/internal.h"
#include "models/internal.h"

typedef struct arguments {
    const char *path;
    bool json, all;
} arguments;

static const wg_setting options[] = {
    {"path", WG_SETTING_TEXT, WG__AT(path), .word = true, .missing = "missing FILE or FOLDER",
     .argument = "FILE"},
    {"all", WG_SETTING_FLAG, WG__AT(all),
     .help = "List each tensor by its whole name instead of the tree"},
    WG__ROW_JSON(arguments),
};

/* The configuration, and the costs that follow from it if its type is known. */
static int read_config(const arguments *a, const wg_weights *file, json_t *object) {
    char *text = wg__weights_find_config(file, a->path);
    json_t *config = text ? json_loads(text, 0, NULL) : NULL;
    wg_model_costs costs;
    if (text && !config)
        wg_fail(WG_ERROR_FORMAT, "info", "the configuration of %s is no JSON", a->path);
    const bool known = config && wg__model_costs_of_config(text, &costs) == 0;
    if (config) {
        json_object_set_new(object, "config", config);
        wg_error_clear();
    }
    if (known) {
        json_object_set_new(object, "model", json_string(costs.type->name));
        json_object_set_new(object, "memory_bytes", json_integer(costs.weight_bytes));
        json_object_set_new(object, "token_flops", json_real(costs.token_flops));
    }
    if (known && costs.positions != INT64_MAX) {
        json_object_set_new(object, "positions", json_integer(costs.positions));
        json_object_set_new(object, "attention_flops",
                            json_real(costs.position_flops * (double)costs.positions));
    }
    wg_text_free(text);
    return wg_error_pending() ? -1 : 0;
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

/* What made the run: {"version": "0.1.0", ...}; of an older file {}. */
static json_t *environment(wg_checkpoint *file) {
    static const char *const names[] = {
        "version",        "commit", "processor",    "kernels",       "kernels_bf16",
        "kernels_blocks", "blis",   "blis_kernels", "deterministic", "hdf5"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, WG_ENVIRONMENT "/%s", names[i]);
        char *text = wg_checkpoint_has(file, path) ? wg_checkpoint_get_text(file, path) : NULL;
        if (text)
            json_object_set_new(object, names[i], json_string(text));
        wg_text_free(text);
    }
    return object;
}

/* Numbers of adapters, by the names of datasets. */
static int count_adapter(const char *name, const wg_spec *spec, void *context) {
    const bool counts =
        strncmp(name, "/model/", 7) == 0 && (strstr(name, "/lora_A/") || strstr(name, "/lora_B/"));
    double count = counts ? 1 : 0;
    for (int i = 0; i < spec->ndim; i++)
        count *= (double)spec->shape[i];
    *(double *)context += count;
    return 0;
}

/* The adapter of a run with --lora, by PEFT's keys, and the progress of a training. */
static int read_run(const arguments *a, json_t *object) {
    static const char *const keys[] = {"r", "lora_alpha", "lora_dropout", "target_modules",
                                       "modules_to_save"};
    wg_checkpoint *file = wg_checkpoint_open(a->path);
    if (!file)
        return -1;
    if (wg_checkpoint_has(file, "/lora")) {
        double numbers = 0;
        char *text = wg_checkpoint_get_text(file, "/lora");
        json_t *config = text ? json_loads(text, 0, NULL) : NULL, *lora = json_object();
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            json_object_set(lora, keys[i], json_object_get(config, keys[i]));
        if (text)
            wg_checkpoint_each(file, count_adapter, &numbers);
        json_object_set_new(lora, "parameters", json_integer((json_int_t)numbers));
        json_object_set_new(object, "lora", lora);
        json_decref(config);
        wg_text_free(text);
    }
    int64_t step, total;
    if (!wg_error_pending() && wg_checkpoint_has(file, "/train/step") &&
        wg_checkpoint_get_integer(file, "/train/step", &step) == 0 &&
        wg_checkpoint_get_integer(file, "/train/schedule/total_steps", &total) == 0) {
        json_t *training =
            json_pack("{s:I, s:I}", "step", (json_int_t)step, "steps", (json_int_t)total);
        json_object_set_new(training, "last_step", last_row(file, WG_HISTORY_TRAINING));
        json_object_set_new(training, "last_evaluation", last_row(file, WG_HISTORY_EVALUATION));
        json_object_set_new(training, "environment", environment(file));
        json_object_set_new(object, "training", training);
    }
    wg_checkpoint_close(file);
    return wg_error_pending() ? -1 : 0;
}

static int read_all(const arguments *a, json_t *object) {
    wg_weights *file = wg_weights_open(a->path);
    if (!file)
        return -1;
    json_t *rows = json_array();
    json_int_t numbers = 0;
    for (int64_t i = 0; i < wg_weights_count(file); i++) {
        const wg_spec *spec = wg__weights_spec(file, i);
        json_t *row = wg__tensor_row(wg_weights_name(file, i), wg__weights_stored(file, i),
                                     spec->ndim, spec->shape, wg__weights_stored_bytes(file, i));
        numbers += json_integer_value(json_object_get(row, "numbers"));
        json_array_append_new(rows, row);
    }
    json_object_set_new(object, "file", json_string(a->path));
    json_object_set_new(object, "format", json_string(wg__weights_format_name(file)));
    json_object_set_new(object, "bytes", json_integer(wg__weights_file_bytes(file)));
    json_object_set_new(object, "parameters", json_integer(numbers));
    json_object_set_new(object, "tensors", rows);
    int status = read_config(a, file, object);
    wg_tokenizer *tokenizer = status == 0 ? wg__weights_find_tokenizer(file, a->path) : NULL;
    if (tokenizer)
        json_object_set_new(object, "tokenizer",
                            json_pack("{s:s, s:I}", "kind", wg_tokenizer_kind(tokenizer), "tokens",
                                      (json_int_t)wg_tokenizer_size(tokenizer)));
    wg_tokenizer_free(tokenizer);
    status = wg_error_pending() ? -1 : status;
    const char *metadata = wg__weights_metadata(file);
    json_t *found = metadata ? json_loads(metadata, 0, NULL) : NULL;
    if (json_object_size(found) > 0)
        json_object_set(object, "metadata", found);
    json_decref(found);
    if (status == 0 && strcmp(wg__weights_format_name(file), "hdf5") == 0)
        status = read_run(a, object);
    wg_weights_close(file);
    return status;
}

static char *printable_text(const char *text) {
    char *copy = strdup(text);
    if (!copy)
        exit(wg__cli_fail("no memory for a name"));
    wg__replace_controls(copy);
    return copy;
}

/* A copy whose keys and texts have no control characters. */
static json_t *printable(const json_t *value) {
    json_t *copy = json_is_object(value)  ? json_object()
                   : json_is_array(value) ? json_array()
                                          : NULL;
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(value)) {
        char *text = printable_text(json_string_value(value));
        copy = json_string(text);
        free(text);
    }
    json_object_foreach((json_t *)value, key, item) {
        char *name = printable_text(key);
        json_object_set_new(copy, name, printable(item));
        free(name);
    }
    json_array_foreach(value, i, item) json_array_append_new(copy, printable(item));
    return copy ? copy : json_incref((json_t *)value);
}

static void print_members(const char *title, json_t *object) {
    if (json_object_size(object) == 0)
        return;
    const wg__style style = wg__style_of(stdout);
    printf("%s%s:%s\n", style.bold, title, style.plain);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        printf("    %-30s %s\n", key, text ? text : "");
        free(text);
    }
}

static void print_info(const arguments *a, json_t *object) {
    const json_t *tensors = json_object_get(object, "tensors");
    json_t *training = json_object_get(object, "training");
    const char *model = json_string_value(json_object_get(object, "model"));
    const double memory = wg__json_number_at(object, "memory_bytes"),
                 attention = wg__json_number_at(object, "attention_flops");
    const wg__style style = wg__style_of(stdout);
    printf("%s%s%s: %s of %s, %s parameters in %zu tensors\n", style.bold,
           json_string_value(json_object_get(object, "file")), style.plain,
           json_string_value(json_object_get(object, "format")),
           wg__bytes(wg__json_number_at(object, "bytes")).text,
           wg__count(wg__json_number_at(object, "parameters")).text, json_array_size(tensors));
    if (model) { /* AdamW holds a gradient and two moments beside each number */
        printf("%smodel:%s %s\n", style.bold, style.plain, model);
        printf("    %-30s %s, and %s with gradients and AdamW's moments, before activations\n",
               "memory in f32", wg__bytes(memory).text, wg__bytes(4 * memory).text);
        printf("    %-30s %sFLOP a token, three times as many to train\n", "forward pass",
               wg__count(wg__json_number_at(object, "token_flops")).text);
    }
    if (attention > 0)
        printf("    %-30s %sFLOP a token in a text of %.0f tokens, on top\n", "attention",
               wg__count(attention).text, wg__json_number_at(object, "positions"));
    printf("%stensors:%s\n", style.bold, style.plain);
    for (size_t i = 0; a->all && i < json_array_size(tensors); i++) {
        const json_t *row = json_array_get(tensors, i);
        printf("    %-62s %s ", json_string_value(json_object_get(row, "name")),
               json_string_value(json_object_get(row, "dtype")));
        wg__shape_write(stdout, json_object_get(row, "shape"));
        putchar('\n');
    }
    if (!a->all) {
        json_t *tree = wg__weights_tree(tensors);
        wg__weights_tree_print(tree, stdout);
        json_decref(tree);
    }
    if (!json_object_get(object, "config") &&
        strcmp(json_string_value(json_object_get(object, "format")), "hdf5") == 0)
        puts("config: none; it is a program's own model");
    print_members("config", json_object_get(object, "config"));
    print_members("tokenizer", json_object_get(object, "tokenizer"));
    print_members("metadata", json_object_get(object, "metadata"));
    print_members("LoRA, beside the weights above, which are shown with it added",
                  json_object_get(object, "lora"));
    if (!training)
        return;
    printf("%straining:%s step %.0f of %.0f\n", style.bold, style.plain,
           wg__json_number_at(training, "step"), wg__json_number_at(training, "steps"));
    print_members("made with", json_object_get(training, "environment"));
    print_members("last step", json_object_get(training, "last_step"));
    print_members("last evaluation", json_object_get(training, "last_evaluation"));
}

int wg__verb_info(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "FILE\nFOLDER",
        .doc = "Prints the contents of a checkpoint: the tree of its tensors with their sizes, the "
               "model's costs in memory and operations, its configuration, tokenizer, and the "
               "progress of training.\v"
               "The format is detected from the content: wengert's HDF5 (which h5ls, h5dump and "
               "h5py read, too), safetensors (or the index.json of several), the zip of "
               "torch.save, llama2.c's .bin, GGUF, or the folder of a published model. No code in "
               "a file is ever run. Layers that are alike are shown once.\n\n"
               "FLOP counts two operations for a multiply-add of the products with weights.",
        .parts = {WG__PART(options, a)},
    };
    wg__cli_read(&usage, argc, argv);
    json_t *object = json_object();
    const int result = read_all(&a, object);
    if (result == 0 && !a.json) {
        json_t *shown = printable(object);
        print_info(&a, shown);
        json_decref(shown);
    }
    if (result == 0 && a.json)
        wg__print_json(JSON_INDENT(2), json_incref(object));
    json_decref(object);
    return result < 0 ? wg__cli_fail_pending() : 0;
}
