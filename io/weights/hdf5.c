/* Wengert's checkpoint as a tensor file: the datasets below /model, with dots between the names. */
#include <string.h>

#include "io/checkpoint/file.h"
#include "io/weights/file.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

static const char group[] = "/model/";

/* ---- Reading ---- */

static int add_dataset(const char *name, const wg_spec *spec, void *context) {
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
    if (!checkpoint || wg_checkpoint_each(checkpoint, add_dataset, file) < 0)
        return -1;
    if (wg_checkpoint_has(checkpoint, "/config") &&
        !(file->config = wg_checkpoint_get_text(checkpoint, "/config")))
        return -1;
    if (wg_checkpoint_has(checkpoint, "/tokenizer") &&
        !(file->tokenizer = wg_checkpoint_get_text(checkpoint, "/tokenizer")))
        return -1;
    return 0;
}

/* The dataset of a tensor. Returns `name`. */
static const char *dataset_of(char *name, size_t size, const char *path) {
    snprintf(name, size, "%s%s", group, path);
    for (char *c = name; *c; c++)
        if (*c == '.')
            *c = '/';
    return name;
}

static wg_tensor *read_hdf5(wg_weights *file, int64_t index) {
    char name[WG__MAX_PATH + sizeof group];
    return wg_checkpoint_get_tensor(file->own,
                                    dataset_of(name, sizeof name, file->entries[index].name));
}

static void close_hdf5(wg_weights *file) {
    wg_checkpoint_close(file->own);
}

const wg__weights_reader wg__weights_hdf5 = {
    .name = "hdf5", .open = open_hdf5, .read = read_hdf5, .close = close_hdf5};

/* ---- Writing ---- */

static int begin_hdf5(wg_weights_writer *writer, const wg_weights_options *options) {
    if (writer->type == WG_WEIGHTS_F16 || writer->type == WG_WEIGHTS_Q8_0)
        return wg_fail(WG_ERROR_ARGUMENT, "weights", "hdf5 is written in f32 or bf16");
    wg_checkpoint *checkpoint = writer->own = wg_checkpoint_create(writer->path);
    if (!checkpoint)
        return -1;
    if (options->config && wg_checkpoint_put_text(checkpoint, "/config", options->config) < 0)
        return -1;
    return options->tokenizer ? wg_checkpoint_put_text(checkpoint, "/tokenizer", options->tokenizer)
                              : 0;
}

static wg_tensor *rounded(const wg_weights_writer *writer, const wg_tensor *x) {
    wg_tensor *as_is = wg_alias((wg_tensor *)x);
    if (writer->type == WG_WEIGHTS_KEEP || !wg_dtype_is_float(x->spec.dtype))
        return as_is;
    return wg_cast(as_is, writer->type == WG_WEIGHTS_F32 ? WG_F32 : WG_BF16);
}

static int put_hdf5(wg_weights_writer *writer, int64_t index, const wg_tensor *x) {
    char name[WG__MAX_TENSOR_NAME + sizeof group];
    return wg_checkpoint_put_tensor(
        writer->own, dataset_of(name, sizeof name, writer->slots[index].name), rounded(writer, x));
}

static int commit_hdf5(wg_weights_writer *writer) {
    return wg_checkpoint_commit(writer->own);
}

static void abort_hdf5(wg_weights_writer *writer) {
    wg_checkpoint_abort(writer->own);
}

const wg__weights_format wg__hdf5_writer = {.name = "hdf5",
                                            .begin = begin_hdf5,
                                            .put = put_hdf5,
                                            .commit = commit_hdf5,
                                            .abort = abort_hdf5};
