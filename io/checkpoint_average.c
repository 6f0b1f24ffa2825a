/* The mean of the weights of several checkpoints. */
#include "io/checkpoint.h"

#include "optim/average.h"
#include "tensor/internal.h"

/* What is no float (position numbers) is the last file's. */
static int add_slots(wg_average *average, wg_module *module) {
    wg_state_dict *state = wg_module_state(module);
    int status = state ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        wg_dtype dtype = wg_tensor_dtype(slot->tensor);
        if (!slot->tied && (dtype == WG_F32 || dtype == WG_F64))
            status = wg_average_add(average, slot->tensor);
    }
    wg_state_dict_free(state);
    return status;
}

static int read_one(const char *path, const char *group, wg_module *module) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    int status = file ? wg_checkpoint_get_module(file, group, module) : -1;
    wg_checkpoint_close(file);
    return status;
}

static int read_all(int count, const char *const *paths, const char *group, wg_module *module,
                    wg_average *mean) {
    for (int i = 0; i < count; i++) {
        if (read_one(paths[i], group, module) < 0)
            return -1;
        wg_average_update(mean);
    }
    return 0;
}

int wg_checkpoint_average(int count, const char *const *paths, const char *group,
                          wg_module *module) {
    if (!module || wg_error_pending())
        return -1;
    if (count < 1)
        return wg_fail(WG_ERROR_ARGUMENT, "checkpoint_average", "%d files; at least 1 is wanted",
                       count);
    wg_average *before = wg_average_new(0), *mean = wg_average_new(0);
    int status = -1;
    if (before && mean && add_slots(before, module) == 0 && add_slots(mean, module) == 0) {
        wg_average_update(before);
        status = read_all(count, paths, group, module, mean);
        wg_average_swap(status == 0 ? mean : before);
    }
    wg_average_free(before);
    wg_average_free(mean);
    return status;
}
