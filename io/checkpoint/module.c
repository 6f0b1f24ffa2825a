/* Modules and optimizers in a checkpoint: named tensors, saved and loaded as a whole.
 *
 * Loading has three parts, so that nothing changes unless all goes well: names and shapes are
 * compared and every difference is reported at once; everything is read, which verifies the
 * checksums; then everything is copied into place. */
#include "io/checkpoint/file.h"
#include "io/internal.h"
#include "io/weights/file.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "optim/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS "/optimizer/steps"
#define AVERAGE "checkpoint_average" /* in messages */

/* A tensor and its dataset. */
typedef struct named_tensor {
    char name[WG__MAX_PATH];
    wg_tensor *tensor;
    const wg_spec *spec; /* of the dataset */
    int64_t state;       /* its number, where the tensor is one rank's part of it; else -1 */
    wg_tensor *loaded;   /* the dataset's value */
} named_tensor;

typedef struct tensor_list {
    int64_t count;
    named_tensor *entries; /* sorted by name for loading */
} tensor_list;

/* GROUP/PATH, the path's dots as slashes; -1 with ARGUMENT if it is too long. */
static int compose_name(char *name, const char *group, const char *path) {
    int length = snprintf(name, WG__MAX_PATH, "%s/%s", group, path);
    if (length >= WG__MAX_PATH)
        return wg_fail(WG_ERROR_ARGUMENT, "checkpoint", "\"%.64s...\" is too long a name", path);
    for (char *c = name + strlen(group); *c; c++)
        if (*c == '.')
            *c = '/';
    return 0;
}

/* The tensors of a module; entries are freed with wg__free in every case. */
static int list_module(tensor_list *list, const char *group, wg_module *module) {
    *list = (tensor_list){0};
    wg_state_dict *state = wg_module_state(module);
    if (!state)
        return -1;
    list->entries = wg__calloc((size_t)state->count + 1, sizeof *list->entries);
    int status = list->entries ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        if (entry->slot->tied)
            continue;
        named_tensor *named = &list->entries[list->count++];
        named->tensor = entry->slot->tensor;
        named->spec = &named->tensor->spec;
        named->state = -1;
        status = compose_name(named->name, group, entry->path);
    }
    wg_state_dict_free(state);
    return status;
}

static int list_optimizer(tensor_list *list, const wg_optimizer *optimizer) {
    *list = (tensor_list){0};
    const char *slot, *name;
    wg_tensor *tensor;
    int64_t count = 0;
    while (wg__optimizer_state(optimizer, count, &slot, &name, &tensor))
        count++;
    list->entries = wg__calloc((size_t)count + 1, sizeof *list->entries);
    if (!list->entries)
        return -1;
    for (; wg__optimizer_state(optimizer, list->count, &slot, &name, &tensor); list->count++) {
        named_tensor *named = &list->entries[list->count];
        char group[64];
        snprintf(group, sizeof group, "/optimizer/%s", slot);
        int state;
        named->tensor = tensor;
        named->spec =
            &wg__optimizer_state_entry(optimizer, list->count, &state)->state_specs[state];
        named->state = wg__optimizer_is_sharded(optimizer) ? list->count : -1;
        if (compose_name(named->name, group, name) < 0)
            return -1;
    }
    return 0;
}

/* Writes the list, unless `status`, the result of making it, is -1, and frees the entries.
 * `optimizer`: the sharded optimizer of these states, or NULL. Its states are gathered on rank 0
 * one at a time. */
static int put_list(wg_checkpoint *file, const tensor_list *list, int status,
                    const wg_optimizer *optimizer) {
    for (int64_t i = 0; status == 0 && i < list->count; i++) {
        const named_tensor *named = &list->entries[i];
        wg_scope scope;
        wg_scope_begin(&scope);
        const wg_tensor *whole =
            optimizer ? wg__optimizer_gather_state(optimizer, named->state) : named->tensor;
        status = whole ? wg_checkpoint_put_tensor(file, named->name, whole) : -1;
        wg_scope_end(&scope, NULL);
    }
    wg__free(list->entries);
    return status;
}

int wg_checkpoint_put_module(wg_checkpoint *file, const char *group, wg_module *module) {
    tensor_list list;
    if (!file || !module || wg_error_pending())
        return -1;
    return put_list(file, &list, list_module(&list, group, module), NULL);
}

int wg_checkpoint_put_optimizer(wg_checkpoint *file, const wg_optimizer *optimizer) {
    if (!file || !optimizer || wg_error_pending())
        return -1;
    tensor_list list;
    const int status = list_optimizer(&list, optimizer);
    const wg_optimizer *sharded = wg__optimizer_is_sharded(optimizer) ? optimizer : NULL;
    if (put_list(file, &list, status, sharded) < 0)
        return -1;
    return wg_checkpoint_put_integer(file, STEPS, wg_optimizer_steps(optimizer));
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const named_tensor *)a)->name, ((const named_tensor *)b)->name);
}

/* -1 with all differences between the list, which is sorted, and the file. */
static int compare(wg_checkpoint *file, const char *group, const tensor_list *list) {
    wg__differences differences = {0};
    for (int64_t i = 0; i < list->count; i++) {
        const named_tensor *named = &list->entries[i];
        const bool is_there = wg_checkpoint_has(file, named->name);
        wg_spec found;
        if (wg_error_pending() || (is_there && wg__checkpoint_spec(file, named->name, &found) < 0))
            return -1;
        if (is_there)
            wg__note_spec(&differences, named->name, &found, named->spec);
        else
            wg__note_difference(&differences.missing, named->name);
    }
    wg__name_list names = {0};
    const bool has_group = wg_checkpoint_has(file, group);
    if (wg_error_pending() || (has_group && wg__checkpoint_list(file, group, &names) < 0))
        return -1;
    for (int64_t i = 0; i < names.count; i++) {
        named_tensor key;
        snprintf(key.name, sizeof key.name, "%s", names.names[i]);
        /* cppcheck-suppress uninitvar ; compare_names reads the name alone */
        if (strcmp(key.name, STEPS) != 0 &&
            !bsearch(&key, list->entries, (size_t)list->count, sizeof key, compare_names))
            wg__note_difference(&differences.unexpected, names.names[i]);
    }
    wg__name_list_free(&names);
    return wg__check_differences(&differences, file->path, "checkpoint_get");
}

/* Fills the tensors of the list, unless `status`, the result of making it, is -1, and frees the
 * entries. `optimizer`: a sharded one, whose states these are, or NULL. */
static int get_list(wg_checkpoint *file, const char *group, tensor_list *list, int status,
                    wg_optimizer *optimizer) {
    if (status == 0) {
        qsort(list->entries, (size_t)list->count, sizeof *list->entries, compare_names);
        status = compare(file, group, list);
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int64_t i = 0; status == 0 && optimizer && i < list->count; i++) {
        /* One state at a time is read whole, and this rank keeps its part. */
        wg_scope of_state;
        wg_scope_begin(&of_state);
        wg_tensor *read = wg_checkpoint_get_tensor(file, list->entries[i].name);
        const wg_tensor *whole = read ? wg_cast(read, list->entries[i].spec->dtype) : NULL;
        if (whole)
            wg__optimizer_set_state(optimizer, list->entries[i].state, whole);
        status = whole ? 0 : -1;
        wg_scope_end(&of_state, NULL);
    }
    for (int64_t i = 0; status == 0 && !optimizer && i < list->count; i++) {
        named_tensor *named = &list->entries[i];
        named->loaded = wg_checkpoint_get_tensor(file, named->name);
        status = named->loaded ? 0 : -1;
    }
    /* This cannot fail: names, shapes and dtypes were compared. */
    const bool recording = wg_set_grad_enabled(false);
    for (int64_t i = 0; status == 0 && !optimizer && i < list->count; i++)
        status = wg_copy_(list->entries[i].tensor, list->entries[i].loaded);
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    wg__free(list->entries);
    return status;
}

int wg_checkpoint_get_module(wg_checkpoint *file, const char *group, wg_module *module) {
    tensor_list list;
    if (!file || !module || wg_error_pending())
        return -1;
    return get_list(file, group, &list, list_module(&list, group, module), NULL);
}

int wg_checkpoint_get_optimizer(wg_checkpoint *file, wg_optimizer *optimizer) {
    if (!file || !optimizer || wg_error_pending())
        return -1;
    int64_t steps;
    tensor_list list;
    if (wg_checkpoint_get_integer(file, STEPS, &steps) < 0)
        return -1;
    const int status = list_optimizer(&list, optimizer);
    wg_optimizer *sharded = wg__optimizer_is_sharded(optimizer) ? optimizer : NULL;
    if (get_list(file, "/optimizer", &list, status, sharded) < 0)
        return -1;
    optimizer->steps = steps;
    return 0;
}

/* ---- The mean of several files ---- */

/* Only floats are averaged; others (position numbers) are the last file's. */
static int add_slots(wg_average *average, wg_module *module) {
    wg_state_dict *state = wg_module_state(module);
    int status = state ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        wg_dtype dtype = wg_tensor_dtype(slot->tensor);
        if (!slot->tied && (dtype == WG_F32 || dtype == WG_F64))
            status = wg__average_add(average, slot->tensor);
    }
    wg_state_dict_free(state);
    return status;
}

int wg__checkpoint_average(int count, const char *const *paths, const char *group,
                           wg_module *module) {
    if (!module || wg_error_pending())
        return -1;
    if (count < 1)
        return wg_fail(WG_ERROR_ARGUMENT, AVERAGE, "%d files; at least 1 is wanted", count);
    wg_average *before = wg__average_new(0), *mean = wg__average_new(0);
    int status = -1;
    if (before && mean && add_slots(before, module) == 0 && add_slots(mean, module) == 0) {
        wg__average_update(before);
        status = 0;
        for (int i = 0; status == 0 && i < count; i++) {
            wg_checkpoint *file = wg_checkpoint_open(paths[i]);
            status = file ? wg_checkpoint_get_module(file, group, module) : -1;
            wg_checkpoint_close(file);
            if (status == 0)
                wg__average_update(mean);
        }
        wg__average_swap(status == 0 ? mean : before);
    }
    wg__average_free(before);
    wg__average_free(mean);
    return status;
}

/* ---- The mean of whole model files, of any type of model ---- */

/* A root module of the tensors of a file: flat buffers under their paths. */
static wg_module *module_of(const wg_weights *file) {
    wg_module *module = wg_module_new(NULL, "", sizeof *module);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = module ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < file->count; i++) {
        const wg_spec *spec = &file->entries[i].spec;
        wg_tensor *zeros = wg_zeros(spec->dtype, spec->ndim, spec->shape);
        status = wg_module_buffer(module, file->entries[i].name, zeros) ? 0 : -1;
    }
    wg_scope_end(&scope, NULL);
    if (status == 0)
        return wg_module_finish(module);
    wg_module_free(module);
    return NULL;
}

/* NULL with FORMAT if the file holds no model, STATE if it has a LoRA adapter. */
static wg_weights *open_model(const char *path) {
    wg_checkpoint *checkpoint = wg_checkpoint_open(path);
    if (checkpoint && wg_checkpoint_has(checkpoint, "/lora"))
        wg_fail(WG_ERROR_STATE, path,
                "it has a LoRA adapter beside its weights; `wengert convert %s OUT.h5' adds it to "
                "them, and such files can be averaged",
                path);
    wg_checkpoint_close(checkpoint);
    wg_weights *file = wg_error_pending() ? NULL : wg__weights_open_as(path, &wg__weights_hdf5);
    if (!file || file->count > 0)
        return file;
    wg_fail(WG_ERROR_FORMAT, path, "it holds no model: there is no tensor below /model");
    wg_weights_close(file);
    return NULL;
}

static int write_model(const char *out, const wg_weights *like, wg_module *module) {
    wg_checkpoint *file = wg_checkpoint_create(out), *from = wg_checkpoint_open(like->path);
    char *objective = NULL;
    if (wg_checkpoint_has(from, "/objective"))
        objective = wg_checkpoint_get_text(from, "/objective");
    if (like->config)
        wg_checkpoint_put_text(file, "/config", like->config);
    if (like->tokenizer)
        wg_checkpoint_put_text(file, "/tokenizer", like->tokenizer);
    if (objective)
        wg_checkpoint_put_text(file, "/objective", objective);
    wg_checkpoint_put_module(file, "/model", module);
    wg_text_free(objective);
    wg_checkpoint_close(from);
    return wg_checkpoint_commit(file); /* not after an error */
}

int wg_checkpoint_average_files(int count, const char *const *paths, const char *out) {
    if (count < 1)
        return wg_fail(WG_ERROR_ARGUMENT, AVERAGE, "%d files; at least 1 is wanted", count);
    wg_weights *first = open_model(paths[0]);
    int status = first ? 0 : -1;
    for (int i = 1; status == 0 && i < count; i++) {
        wg_weights *file = open_model(paths[i]);
        status = file ? 0 : -1;
        /* A program's own model may have no configuration; its tensors are compared when read. */
        if (file &&
            strcmp(file->config ? file->config : "", first->config ? first->config : "") != 0)
            status = wg_fail(WG_ERROR_STATE, paths[i], "its model is another one than that of %s",
                             first->path);
        wg_weights_close(file);
    }
    wg_module *module = status == 0 ? module_of(first) : NULL;
    status = module && wg__checkpoint_average(count, paths, "/model", module) == 0
                 ? write_model(out, first, module)
                 : -1;
    wg_module_free(module);
    wg_weights_close(first);
    return status;
}
