/* Modules filled from tensor files, whole or in part: names and shapes are compared, everything is
 * read, then copied, so that nothing changes unless all goes well. */
#include "io/differences.h"
#include "io/weights/file.h"
#include "tensor/internal.h"

#include <stdio.h>
#include <string.h>

/* What a load matches: for each slot its tensor in the file, and what fits nowhere. */
typedef struct match {
    wg_weights *file;
    const wg_state_dict *state;
    int64_t *found;     /* of each slot: the tensor's index, or -1 to leave the slot alone */
    bool *used;         /* of each tensor of the file: whether a slot has its name */
    wg_tensor **loaded; /* of each slot: what was read */
    int64_t loaded_count;
} match;

static int match_begin(match *m, wg_weights *file, wg_module *module) {
    *m = (match){.file = file, .state = wg_module_state(module)};
    if (!m->state)
        return -1;
    m->found = wg__calloc((size_t)m->state->count + 1, sizeof *m->found);
    m->used = wg__calloc((size_t)file->count + 1, sizeof *m->used);
    m->loaded = wg__calloc((size_t)m->state->count + 1, sizeof *m->loaded);
    return m->found && m->used && m->loaded ? 0 : -1;
}

static void match_end(match *m) {
    wg_state_dict_free((wg_state_dict *)m->state);
    wg__free(m->found);
    wg__free(m->used);
    wg__free(m->loaded);
}

/* The file's index of prefix + path, or -1. */
static int64_t find_prefixed(const wg_weights *file, const char *prefix, const char *path) {
    if (!*prefix)
        return wg_weights_find(file, path);
    const size_t size = strlen(prefix) + strlen(path) + 1;
    char *name = wg__alloc(size);
    if (!name)
        return -1;
    snprintf(name, size, "%s%s", prefix, path);
    const int64_t found = wg_weights_find(file, name);
    wg__free(name);
    return found;
}

/* Everything is read before anything is copied, so that a failure changes nothing. */
static int load(match *m) {
    for (int64_t i = 0; i < m->state->count; i++) {
        if (m->found[i] < 0)
            continue;
        m->loaded[i] = wg_weights_read(m->file, m->found[i]);
        if (!m->loaded[i])
            return -1;
        m->loaded_count++;
    }
    const bool recording = wg_set_grad_enabled(false);
    int status = 0;
    for (int64_t i = 0; i < m->state->count && status == 0; i++)
        if (m->loaded[i])
            status = wg_copy_(m->state->entries[i].slot->tensor, m->loaded[i]);
    wg_set_grad_enabled(recording);
    return status;
}

static int load_in_scope(match *m) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const int status = load(m);
    wg_scope_end(&scope, NULL);
    return status;
}

/* ---- All of a module ---- */

static void compare(match *m, wg__differences *differences) {
    for (int64_t i = 0; i < m->state->count; i++) {
        const wg_state_entry *entry = &m->state->entries[i];
        m->found[i] = entry->slot->tied ? -1 : wg_weights_find(m->file, entry->path);
        if (m->found[i] >= 0) {
            m->used[m->found[i]] = true;
            wg__note_spec(differences, entry->path, &m->file->entries[m->found[i]].spec,
                          &entry->slot->tensor->spec);
        } else if (!entry->slot->tied) {
            wg__note_difference(&differences->missing, entry->path);
        }
    }
    for (int64_t i = 0; i < m->file->count; i++)
        if (!m->used[i])
            wg__note_difference(&differences->unexpected, m->file->entries[i].name);
}

int wg_weights_get_module(wg_weights *file, wg_module *module) {
    if (!file || !module || wg_error_pending())
        return -1;
    match m;
    wg__differences differences = {0};
    int status = match_begin(&m, file, module);
    if (status == 0) {
        compare(&m, &differences);
        status = wg__check_differences(&differences, file->path, "weights_get_module");
    }
    if (status == 0)
        status = load_in_scope(&m);
    match_end(&m);
    return status;
}

/* ---- Part of a module ---- */

/* Appends a copy of the name to a list that has room for it. */
static int add_name(char **names, int64_t *count, const char *name) {
    names[*count] = wg__strdup(name);
    if (!names[*count])
        return -1;
    ++*count;
    return 0;
}

static int make_room(wg_left_out *left_out, const match *m) {
    const size_t slots = (size_t)m->state->count + 1, tensors = (size_t)m->file->count + 1;
    left_out->missing = wg__calloc(slots, sizeof(char *));
    left_out->misshapen = wg__calloc(slots, sizeof(char *));
    left_out->unexpected = wg__calloc(tensors, sizeof(char *));
    return left_out->missing && left_out->misshapen && left_out->unexpected ? 0 : -1;
}

static int match_slot(match *m, int64_t i, const char *prefix, wg_left_out *left_out) {
    const wg_state_entry *entry = &m->state->entries[i];
    m->found[i] = entry->slot->tied ? -1 : find_prefixed(m->file, prefix, entry->path);
    if (entry->slot->tied)
        return 0;
    if (m->found[i] < 0)
        return add_name(left_out->missing, &left_out->missing_count, entry->path);
    m->used[m->found[i]] = true;
    wg__differences differences = {0};
    wg__note_spec(&differences, entry->path, &m->file->entries[m->found[i]].spec,
                  &entry->slot->tensor->spec);
    if (differences.misshapen.count == 0)
        return 0;
    m->found[i] = -1;
    return add_name(left_out->misshapen, &left_out->misshapen_count, entry->path);
}

static int match_part(match *m, const char *prefix, wg_left_out *left_out) {
    if (make_room(left_out, m) < 0)
        return -1;
    for (int64_t i = 0; i < m->state->count; i++)
        if (match_slot(m, i, prefix, left_out) < 0 || wg_error_pending())
            return -1;
    for (int64_t i = 0; i < m->file->count; i++) {
        const char *name = m->file->entries[i].name;
        if (!m->used[i] && strncmp(name, prefix, strlen(prefix)) == 0 &&
            add_name(left_out->unexpected, &left_out->unexpected_count, name) < 0)
            return -1;
    }
    return 0;
}

int64_t wg_weights_get_module_partial(wg_weights *file, const char *prefix, wg_module *module,
                                      wg_left_out *left_out) {
    wg_left_out own = {0};
    if (left_out)
        *left_out = own;
    if (!file || !module || wg_error_pending())
        return -1;
    match m;
    int status = match_begin(&m, file, module);
    if (status == 0)
        status = match_part(&m, prefix ? prefix : "", &own);
    if (status == 0)
        status = load_in_scope(&m);
    const int64_t loaded = m.loaded_count;
    match_end(&m);
    if (status == 0 && left_out)
        *left_out = own;
    else
        wg_left_out_free(&own);
    return status == 0 ? loaded : -1;
}

static void free_names(char **names, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        wg__free(names[i]);
    wg__free(names);
}

void wg_left_out_free(wg_left_out *left_out) {
    if (!left_out)
        return;
    free_names(left_out->missing, left_out->missing_count);
    free_names(left_out->unexpected, left_out->unexpected_count);
    free_names(left_out->misshapen, left_out->misshapen_count);
    *left_out = (wg_left_out){0};
}
