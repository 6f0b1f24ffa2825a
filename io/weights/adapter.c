/* LoRA adapters in PEFT's files: see adapter.h. */
#include "io/weights/adapter.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/json.h"
#include "io/checkpoint/checkpoint.h"
#include "io/weights/file.h"
#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "io/internal.h"

#define WHERE "adapter"
#define CONFIG "adapter_config.json"
#define MODEL "adapter_model.safetensors"

enum { MOST_CONFIG = 1 << 20, MOST_NAMES = 1024 };

static const char *last_part(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static wg_linear *adaptable(wg_module *root, wg_module *module) {
    wg_linear *linear = module == root ? NULL : wg__module_as_linear(module);
    return linear && strcmp(module->name, "lora_A") != 0 && strcmp(module->name, "lora_B") != 0
               ? linear
               : NULL;
}

static bool all_are_adapted(wg_module *root, const char *part) {
    bool all = true;
    for (wg_module *m = root; m; m = wg__module_next(root, m)) {
        const wg_linear *linear = adaptable(root, m);
        char path[WG__MODULE_PATH];
        wg__module_path(m, path, sizeof path);
        if (linear && strcmp(last_part(path), part) == 0)
            all = all && wg__lora_of(linear);
    }
    return all;
}

static void append_once(json_t **list, const char *name) {
    for (size_t i = 0; i < json_array_size(*list); i++)
        if (strcmp(json_string_value(json_array_get(*list, i)), name) == 0)
            return;
    wg__json_append(list, json_string(name));
}

char *wg__lora_config_json(wg_module *module) {
    wg_module *first = module;
    while (first && !wg__lora_of(wg__module_as_linear(first)))
        first = wg__module_next(module, first);
    if (!first)
        return NULL;
    const wg_linear *linear = wg__module_as_linear(first);
    const wg__lora_adapter *adapter = wg__lora_of(linear);
    const int64_t rank = wg_tensor_size(adapter->a->weight, 0);
    /* The layers with adapters: ends of paths where these say which, and else whole paths. And the
     * modules with parameters that are trained beside the adapters; null if there are none. */
    json_t *targets = json_array(), *whole = json_array();
    for (wg_module *m = wg__module_next(module, module); m; m = wg__module_next(module, m)) {
        const bool is_adapter = strcmp(m->name, "lora_A") == 0 || strcmp(m->name, "lora_B") == 0;
        bool trained = false;
        for (const wg_slot *slot = m->first_slot; slot; slot = slot->next)
            trained =
                trained || (slot->kind == WG_SLOT_PARAMETER && wg_requires_grad(slot->tensor));
        char path[WG__MODULE_PATH];
        wg__module_path(m, path, sizeof path);
        if (wg__lora_of(adaptable(module, m)))
            append_once(&targets,
                        all_are_adapted(module, last_part(path)) ? last_part(path) : path);
        if (trained && !is_adapter)
            append_once(&whole, path);
    }
    if (json_array_size(whole) == 0) {
        json_decref(whole);
        whole = json_null();
    }
    json_t *config = json_pack(
        "{s:s, s:n, s:n, s:b, s:I, s:f, s:f, s:o, s:o, s:b, s:s}", "peft_type", "LORA", "task_type",
        "base_model_name_or_path", "inference_mode", 1, "r", (json_int_t)rank, "lora_alpha",
        adapter->scale * (double)rank, "lora_dropout", adapter->dropout, "target_modules", targets,
        "modules_to_save", whole, "fan_in_fan_out", linear->transposed, "bias", "none");
    char *text = config ? wg__json_text(config, "{\n  ", ",\n  ", "\n}\n") : NULL;
    if (!config)
        wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the configuration");
    json_decref(config);
    return text;
}

/* Every key is read, is known to change nothing, is off, or is refused. */
static int check_config(const json_t *config, const char *name) {
    const char *type = json_string_value(json_object_get(config, "peft_type")), *key;
    json_t *value;
    if (!type || strcmp(type, "LORA") != 0)
        return wg_fail(WG_ERROR_FORMAT, name, "its peft_type is \"%.32s\"; only \"LORA\" is read",
                       type ? type : "");
    json_object_foreach((json_t *)config, key, value) {
        /* PEFT writes a key for every feature; null, false and empty values mean that it is off. */
        const bool is_off = json_is_null(value) || json_is_false(value) ||
                            (json_is_string(value) && json_string_length(value) == 0) ||
                            (json_is_array(value) && json_array_size(value) == 0) ||
                            (json_is_object(value) && json_object_size(value) == 0);
        const bool is_read =
            wg__is_among(key, WG_NAMES("bias", "fan_in_fan_out", "init_lora_weights", "lora_alpha",
                                       "lora_dropout", "modules_to_save", "peft_type", "r",
                                       "target_modules", "use_rslora"));
        /* About training and initial values, or without effect unless another key is set. */
        const bool is_harmless = wg__is_among(
            key, WG_NAMES("auto_mapping", "base_model_name_or_path", "inference_mode",
                          "peft_version", "revision", "task_type", "corda_config", "eva_config",
                          "loftq_config", "lora_ga_config", "megatron_core", "qalora_group_size"));
        if (!is_off && !is_read && !is_harmless)
            return wg_fail(WG_ERROR_FORMAT, name,
                           "it has \"%.64s\", which is not known here; only plain LoRA and rsLoRA "
                           "are read",
                           key);
    }
    const char *bias = json_string_value(json_object_get(config, "bias"));
    if (bias && strcmp(bias, "none") != 0)
        return wg_fail(WG_ERROR_FORMAT, name,
                       "it trains biases (\"bias\": \"%.32s\"); only \"none\" is read", bias);
    /* PiSSA, OLoRA and others subtract the initial adapter from the base weights, so that the
     * adapter fits those changed weights only. */
    const char *kind = json_string_value(json_object_get(config, "init_lora_weights"));
    if (!kind || wg__is_among(kind, WG_NAMES("gaussian", "orthogonal", "eva")))
        return 0;
    return wg_fail(WG_ERROR_FORMAT, name,
                   "its init_lora_weights is \"%.32s\", which may change the base weights, too; "
                   "save it in PEFT as plain LoRA, with path_initial_model_for_weight_conversion",
                   kind);
}

static int read_names(const json_t *value, const char **names, int *count, const char *key,
                      const char *name) {
    *count = 0;
    if (json_is_string(value)) {
        names[(*count)++] = json_string_value(value);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(value) && i < MOST_NAMES; i++) {
        const char *text = json_string_value(json_array_get(value, i));
        if (!text)
            return wg_fail(WG_ERROR_FORMAT, name, "its %s are no names", key);
        names[(*count)++] = text;
    }
    return 0;
}

int wg__lora_parse(const char *json, const char *name, wg__lora_config *parsed) {
    json_error_t error;
    *parsed = (wg__lora_config){0};
    json_t *config = parsed->json = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(config))
        return wg_fail(WG_ERROR_FORMAT, name, "it is no JSON object: line %d: %s", error.line,
                       config ? "another value" : error.text);
    if (check_config(config, name) < 0)
        return -1;
    const json_t *rank = json_object_get(config, "r"),
                 *alpha = json_object_get(config, "lora_alpha"),
                 *dropout = json_object_get(config, "lora_dropout");
    if (!json_is_integer(rank) || json_integer_value(rank) < 1 || !(json_number_value(alpha) > 0))
        return wg_fail(WG_ERROR_FORMAT, name, "it has no rank \"r\" or no \"lora_alpha\" above 0");
    wg_lora_options *options = &parsed->options;
    options->rank = json_integer_value(rank);
    options->alpha = json_number_value(alpha);
    options->dropout = json_number_value(dropout);
    if (json_is_true(json_object_get(config, "use_rslora"))) /* scaled by alpha / sqrt(r) */
        options->alpha *= sqrt((double)options->rank);
    parsed->scale = options->alpha / (double)options->rank;
    parsed->transposed = json_is_true(json_object_get(config, "fan_in_fan_out"));
    parsed->names = wg__alloc_array(wg__times(2, MOST_NAMES), sizeof *parsed->names);
    if (!parsed->names)
        return -1;
    options->targets = parsed->names;
    options->whole = parsed->names + MOST_NAMES;
    return read_names(json_object_get(config, "target_modules"), parsed->names,
                      &options->target_count, "target_modules", name) < 0
               ? -1
               : read_names(json_object_get(config, "modules_to_save"), parsed->names + MOST_NAMES,
                            &options->whole_count, "modules_to_save", name);
}

void wg__lora_parsed_clear(wg__lora_config *parsed) {
    wg__free(parsed->names);
    json_decref(parsed->json);
    *parsed = (wg__lora_config){0};
}

int64_t wg__lora_attach_config(wg_module *module, const char *json, const char *name) {
    wg__lora_config parsed;
    if (!module || !json || wg_error_pending())
        return -1;
    const int64_t count =
        wg__lora_parse(json, name, &parsed) < 0 ? -1 : wg_lora_attach(module, &parsed.options);
    wg__lora_parsed_clear(&parsed);
    return count;
}

/* A tensor of an adapter: PEFT's name, which is owned, and a borrowed handle. */
typedef struct adapter_tensor {
    char *name;
    wg_tensor *x;
} adapter_tensor;

typedef struct tensors {
    int64_t count, capacity;
    adapter_tensor *items;
} tensors;

static int add_tensor(tensors *list, const char *outer, const char *path, wg_tensor *x) {
    char *name = x ? wg__joined(WG__LORA_BEGINNING, outer, path) : NULL;
    const adapter_tensor item = {name, x};
    if (!name)
        return -1;
    if (wg__append(&list->items, &list->count, &list->capacity, &item, sizeof item) == 0)
        return 0;
    wg__free(name);
    return -1;
}

static void clear_tensors(tensors *list) {
    for (int64_t i = 0; i < list->count; i++)
        wg__free(list->items[i].name);
    wg__free(list->items);
}

static int write_folder(const tensors *list, const char *config, const char *folder) {
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return wg__fail_with_errno(folder, WHERE);
    char *model = wg__path_in(folder, MODEL), *json = wg__path_in(folder, CONFIG);
    wg_weights_info *infos = wg__alloc_array(list->count + 1, sizeof *infos);
    for (int64_t i = 0; infos && i < list->count; i++)
        infos[i] = (wg_weights_info){list->items[i].name, list->items[i].x->spec};
    wg_weights_writer *writer =
        model && json && infos
            ? wg__weights_begin(model, &wg__safetensors_writer, NULL, list->count, infos)
            : NULL;
    int status = writer ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < list->count; i++)
        status = wg_weights_put(writer, i, list->items[i].x);
    if (status == 0)
        status = wg_weights_commit(writer);
    else
        wg_weights_abort(writer);
    if (status == 0)
        status = wg__write_whole(json, config, (int64_t)strlen(config), false);
    wg__free(infos);
    wg__free(model);
    wg__free(json);
    return status;
}

int wg_lora_save(wg_module *module, const char *outer, const char *folder) {
    if (!module || !folder || wg_error_pending())
        return -1;
    char *config = wg__lora_config_json(module);
    if (!config)
        return wg_error_pending() ? -1
                                  : wg_fail(WG_ERROR_STATE, WHERE, "the module has no adapter");
    tensors list = {0};
    wg_state_dict *state = wg_module_state(module);
    int status = state ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind == WG_SLOT_PARAMETER && !slot->tied && wg_requires_grad(slot->tensor))
            status = add_tensor(&list, outer ? outer : "", state->entries[i].path, slot->tensor);
    }
    wg_state_dict_free(state);
    if (status == 0)
        status = write_folder(&list, config, folder);
    clear_tensors(&list);
    wg_text_free(config);
    return status;
}

typedef struct exporting {
    wg_checkpoint *file;
    const char *outer;
    const wg_lora_options *options;
    tensors list;
} exporting;

static int export_dataset(const char *name, const wg_spec *spec, void *context) {
    exporting *e = context;
    (void)spec;
    if (strncmp(name, "/model/", 7) != 0)
        return 0;
    char *path = wg__strdup(name + 7);
    if (!path)
        return -1;
    for (char *c = path; *c; c++)
        if (*c == '/')
            *c = '.';
    bool wanted = strstr(path, ".lora_A.") || strstr(path, ".lora_B.");
    char *dot = strrchr(path, '.');
    if (dot && !wanted) { /* a tensor of a module that is trained whole */
        *dot = '\0';
        wanted = wg__is_among(path, e->options->whole_count, e->options->whole);
        *dot = '.';
    }
    const int status =
        wanted ? add_tensor(&e->list, e->outer, path, wg_checkpoint_get_tensor(e->file, name)) : 0;
    wg__free(path);
    return status;
}

int wg_lora_export(const char *path, const char *outer, const char *folder) {
    if (!path || !folder || wg_error_pending())
        return -1;
    exporting e = {.file = wg_checkpoint_open(path), .outer = outer ? outer : ""};
    char *config = NULL;
    if (e.file && wg_checkpoint_has(e.file, "/lora"))
        config = wg_checkpoint_get_text(e.file, "/lora");
    else if (!wg_error_pending())
        wg_fail(WG_ERROR_STATE, path, "it holds no LoRA adapter: it was not trained with --lora");
    wg__lora_config parsed = {0};
    e.options = &parsed.options;
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool written = config && wg__lora_parse(config, path, &parsed) == 0 &&
                         wg_checkpoint_each(e.file, export_dataset, &e) == 0 &&
                         write_folder(&e.list, config, folder) == 0;
    wg_scope_end(&scope, NULL);
    clear_tensors(&e.list);
    wg__lora_parsed_clear(&parsed);
    wg_text_free(config);
    wg_checkpoint_close(e.file);
    return written ? 0 : -1;
}

char *wg__lora_read_config(const char *folder) {
    char *path = wg__path_in(folder, CONFIG);
    char *json = path ? wg__read_whole(path, MOST_CONFIG, NULL) : NULL;
    wg__free(path);
    return json;
}

wg_weights *wg__lora_open(const char *folder) {
    char *path = wg__path_in(folder, MODEL);
    wg_weights *file = path ? wg__weights_open_as(path, &wg__weights_safetensors) : NULL;
    wg__free(path);
    return file;
}

int64_t wg_lora_load(wg_module *module, const char *outer, const char *folder) {
    if (!module || !folder || wg_error_pending())
        return -1;
    char *json = wg__lora_read_config(folder);
    const int64_t count = json ? wg__lora_attach_config(module, json, CONFIG) : -1;
    wg__free(json);
    if (count < 0)
        return -1;
    char prefix[128];
    snprintf(prefix, sizeof prefix, WG__LORA_BEGINNING "%s", outer ? outer : "");
    wg_weights *file = wg__lora_open(folder);
    wg_left_out left_out = {0};
    const int64_t filled =
        file ? wg__weights_get_module_partial(file, prefix, module, &left_out) : -1;
    wg_state_dict *state = filled < 0 ? NULL : wg_module_state(module);
    int64_t trained = 0;
    for (int64_t i = 0; state && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        trained += slot->kind == WG_SLOT_PARAMETER && !slot->tied && wg_requires_grad(slot->tensor);
    }
    /* Every trained slot has a tensor, and every tensor a slot. */
    int status = state ? 0 : -1;
    if (state && left_out.misshapen_count > 0)
        status = wg_fail(WG_ERROR_FORMAT, file->path, "%s has another shape than the model's",
                         left_out.misshapen[0]);
    else if (state && left_out.unexpected_count > 0)
        status =
            wg_fail(WG_ERROR_FORMAT, file->path, "the model has no \"%s\"", left_out.unexpected[0]);
    else if (state && (filled != trained || filled != file->count))
        status = wg_fail(WG_ERROR_FORMAT, file->path,
                         "%lld of its %lld tensors begin with \"%s\" and belong to the %lld that "
                         "the adapters of this model have",
                         (long long)filled, (long long)file->count, prefix, (long long)trained);
    wg_state_dict_free(state);
    wg__left_out_free(&left_out);
    wg_weights_close(file);
    if (status == 0)
        return count;
    wg__lora_detach(module);
    wg_module_requires_grad(module, true);
    return -1;
}
