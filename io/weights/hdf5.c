/* wengert's checkpoint as a tensor file: what is below /model, with dots between the names. */
#include <string.h>

#include "io/checkpoint/file.h"
#include "io/weights/file.h"
#include "tensor/internal.h"

static const char group[] = "/model/";

static int visit(const char *name, const wg_spec *spec, void *context) {
    wg_weights *file = context;
    if (strncmp(name, group, sizeof group - 1) != 0)
        return 0;
    char *path = wg__strdup(name + sizeof group - 1);
    if (!path)
        return -1;
    for (char *c = path; *c; c++)
        if (*c == '/')
            *c = '.';
    const int status = wg__weights_add(file, path, &(wg__weights_entry){.spec = *spec});
    wg__free(path);
    return status;
}

static int open_hdf5(wg_weights *file) {
    wg_checkpoint *checkpoint = file->own = wg_checkpoint_open(file->path);
    if (!checkpoint || wg_checkpoint_each(checkpoint, visit, file) < 0)
        return -1;
    if (wg_checkpoint_has(checkpoint, "/config") &&
        !(file->config = wg_checkpoint_get_text(checkpoint, "/config")))
        return -1;
    if (wg_checkpoint_has(checkpoint, "/tokenizer") &&
        !(file->tokenizer = wg_checkpoint_get_text(checkpoint, "/tokenizer")))
        return -1;
    return 0;
}

static wg_tensor *read_hdf5(wg_weights *file, int64_t index) {
    char name[WG__MAX_PATH + sizeof group];
    snprintf(name, sizeof name, "%s%s", group, file->entries[index].name);
    for (char *c = name; *c; c++)
        if (*c == '.')
            *c = '/';
    return wg_checkpoint_get_tensor(file->own, name);
}

static void close_hdf5(wg_weights *file) {
    wg_checkpoint_close(file->own);
}

const wg__weights_format wg__weights_hdf5 = {
    .name = "hdf5", .open = open_hdf5, .read = read_hdf5, .close = close_hdf5};
