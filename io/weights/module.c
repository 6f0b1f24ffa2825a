/* A module filled from a tensor file: compared, read, then copied, so that nothing changes unless
 * all goes well. */
#include "io/differences.h"
#include "io/weights/file.h"
#include "tensor/internal.h"

/* Notes which slots are not in the file; marks in `used` the tensors that are wanted. */
static void compare(const wg_weights *file, const wg_state_dict *state, bool *used,
                    wg__differences *differences) {
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        if (entry->slot->tied)
            continue;
        const int64_t found = wg_weights_find(file, entry->path);
        if (found < 0)
            wg__note_difference(&differences->missing, entry->path);
        else {
            used[found] = true;
            wg__note_spec(differences, entry->path, &file->entries[found].spec,
                          &entry->slot->tensor->spec);
        }
    }
    for (int64_t i = 0; i < file->count; i++)
        if (!used[i])
            wg__note_difference(&differences->unexpected, file->entries[i].name);
}

/* Everything is read before anything is copied. */
static int load(wg_weights *file, const wg_state_dict *state, wg_tensor **loaded) {
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        if (entry->slot->tied)
            continue;
        loaded[i] = wg_weights_read(file, wg_weights_find(file, entry->path));
        if (!loaded[i])
            return -1;
    }
    const bool recording = wg_set_grad_enabled(false);
    int status = 0;
    for (int64_t i = 0; i < state->count && status == 0; i++)
        if (loaded[i])
            status = wg_copy_(state->entries[i].slot->tensor, loaded[i]);
    wg_set_grad_enabled(recording);
    return status;
}

static int get_state(wg_weights *file, const wg_state_dict *state) {
    bool *used = wg__calloc((size_t)file->count + 1, sizeof *used);
    wg_tensor **loaded = wg__calloc((size_t)state->count + 1, sizeof *loaded);
    wg__differences differences = {0};
    int status = used && loaded ? 0 : -1;
    if (status == 0) {
        compare(file, state, used, &differences);
        status = wg__check_differences(&differences, file->path, "weights_get_module");
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    if (status == 0)
        status = load(file, state, loaded);
    wg_scope_end(&scope, NULL);
    wg__free(loaded);
    wg__free(used);
    return status;
}

int wg_weights_get_module(wg_weights *file, wg_module *module) {
    if (!file || !module || wg_error_pending())
        return -1;
    wg_state_dict *state = wg_module_state(module);
    const int status = state ? get_state(file, state) : -1;
    wg_state_dict_free(state);
    return status;
}
