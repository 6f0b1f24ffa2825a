/* The mean of the weights of several checkpoints. */
#include "io/checkpoint/checkpoint.h"

#include <string.h>

#include "io/weights/weights.h"
#include "optim/optimizer.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "checkpoint_average"

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
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%d files; at least 1 is wanted", count);
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

/* ---- Files ---- */

/* A module of the very tensors that a file holds, flat, under their paths: the weights of any model
 * can be averaged without knowing it. */
static wg_module *make_module(wg_weights *file) {
    wg_module *module = wg_module_new(NULL, "", sizeof *module);
    for (int64_t i = 0; module && i < wg_weights_count(file); i++) {
        const wg_spec *spec = wg_weights_spec(file, i);
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_module_buffer(module, wg_weights_name(file, i),
                         wg_zeros(spec->dtype, spec->ndim, spec->shape));
        wg_scope_end(&scope, NULL);
    }
    return module ? wg_module_finish(module) : NULL;
}

/* NULL for a file that holds no model. */
static wg_weights *open_model(const char *path) {
    wg_weights *file = wg_weights_open(path);
    if (!file)
        return NULL;
    if (strcmp(wg_weights_format(file), "hdf5") == 0 && wg_weights_config(file) &&
        wg_weights_count(file) > 0)
        return file;
    wg_fail(WG_ERROR_FORMAT, path, "it holds no model of `wengert pretrain'");
    wg_weights_close(file);
    return NULL;
}

static int check_config(const wg_weights *first, const char *first_path, const char *path) {
    wg_weights *file = open_model(path);
    const bool same = file && strcmp(wg_weights_config(file), wg_weights_config(first)) == 0;
    int result = file ? 0 : -1;
    if (file && !same)
        result =
            wg_fail(WG_ERROR_STATE, path, "its model is another one than that of %s", first_path);
    wg_weights_close(file);
    return result;
}

static int write_model(const char *out, const wg_weights *like, wg_module *module) {
    wg_checkpoint *file = wg_checkpoint_create(out);
    const char *tokenizer = wg_weights_tokenizer(like);
    if (!file)
        return -1;
    if (wg_checkpoint_put_text(file, "/config", wg_weights_config(like)) < 0 ||
        (tokenizer && wg_checkpoint_put_text(file, "/tokenizer", tokenizer) < 0) ||
        wg_checkpoint_put_module(file, "/model", module) < 0) {
        wg_checkpoint_abort(file);
        return -1;
    }
    return wg_checkpoint_commit(file);
}

int wg_checkpoint_average_files(int count, const char *const *paths, const char *out) {
    if (count < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%d files; at least 1 is wanted", count);
    wg_weights *first = open_model(paths[0]);
    int result = first ? 0 : -1;
    for (int i = 1; result == 0 && i < count; i++)
        result = check_config(first, paths[0], paths[i]);
    wg_module *module = result == 0 ? make_module(first) : NULL;
    if (module && wg_checkpoint_average(count, paths, "/model", module) == 0)
        result = write_model(out, first, module);
    else
        result = -1;
    if (module)
        wg_module_free(module);
    wg_weights_close(first);
    return result;
}
