/* Wengert's checkpoint as a tensor file: the datasets below /model, with dots between the names.
 * LoRA adapters are added to the weights that they adapt as these are read. */
#include <string.h>

#include "io/checkpoint/file.h"
#include "io/weights/file.h"
#include "nn/internal.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

static const char group[] = "/model/";

typedef struct hdf5_file {
    wg_checkpoint *checkpoint;
    bool adapted;    /* it has LoRA adapters */
    double scale;    /* of the adapters */
    bool transposed; /* the adapted weights are (I, O) */
} hdf5_file;

static int add_dataset(const char *name, const wg_spec *spec, void *context) {
    wg_weights *file = context;
    const hdf5_file *own = file->own;
    if (strncmp(name, group, sizeof group - 1) != 0 ||
        (own->adapted && (strstr(name, "/lora_A/") || strstr(name, "/lora_B/"))))
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
    hdf5_file *own = file->own = wg__calloc(1, sizeof *own);
    wg_checkpoint *checkpoint = own ? own->checkpoint = wg_checkpoint_open(file->path) : NULL;
    if (!checkpoint)
        return -1;
    if (wg_checkpoint_has(checkpoint, "/lora")) {
        char *json = wg_checkpoint_get_text(checkpoint, "/lora");
        wg__lora_config parsed = {0};
        own->adapted = json && wg__lora_parse(json, file->path, &parsed) == 0;
        own->scale = parsed.scale;
        own->transposed = parsed.transposed;
        wg__lora_parsed_clear(&parsed);
        wg_text_free(json);
    }
    if (wg_error_pending() || wg_checkpoint_each(checkpoint, add_dataset, file) < 0)
        return -1;
    if (wg_checkpoint_has(checkpoint, "/config"))
        file->config = wg_checkpoint_get_text(checkpoint, "/config");
    if (wg_checkpoint_has(checkpoint, "/tokenizer"))
        file->tokenizer = wg_checkpoint_get_text(checkpoint, "/tokenizer");
    return wg_error_pending() ? -1 : 0;
}

static const char *dataset_of(char *name, size_t size, const char *path) {
    snprintf(name, size, "%s%s", group, path);
    for (char *c = name; *c; c++)
        if (*c == '.')
            *c = '/';
    return name;
}

/* The adapter's part beside a weight, LAYER/lora_A/weight for LAYER/weight; NULL without one. */
static wg_tensor *read_part(const hdf5_file *own, const char *name, const char *part) {
    char path[WG__MAX_PATH + sizeof group + 16];
    const size_t layer = strlen(name) - strlen("/weight");
    snprintf(path, sizeof path, "%.*s/%s/weight", (int)layer, name, part);
    return wg_checkpoint_has(own->checkpoint, path)
               ? wg_checkpoint_get_tensor(own->checkpoint, path)
               : NULL;
}

static wg_tensor *read_hdf5(wg_weights *file, int64_t index) {
    const hdf5_file *own = file->own;
    char name[WG__MAX_PATH + sizeof group];
    dataset_of(name, sizeof name, file->entries[index].name);
    wg_tensor *x = wg_checkpoint_get_tensor(own->checkpoint, name);
    if (!x || !own->adapted || !wg__ends_with(name, "/weight"))
        return x;
    wg_tensor *a = read_part(own, name, "lora_A"), *b = read_part(own, name, "lora_B");
    if (!a || !b)
        return wg_error_pending() ? NULL : x;
    return wg__lora_merged(x, a, b, own->scale, own->transposed);
}

static void close_hdf5(wg_weights *file) {
    hdf5_file *own = file->own;
    if (own)
        wg_checkpoint_close(own->checkpoint);
    wg__free(own);
}

const wg__weights_reader wg__weights_hdf5 = {
    .name = "hdf5", .open = open_hdf5, .read = read_hdf5, .close = close_hdf5};

static int begin_hdf5(wg_weights_writer *writer, const wg_weights_options *options) {
    if (writer->type == WG_WEIGHTS_F16 || writer->type == WG_WEIGHTS_Q8_0)
        return wg_fail(WG_ERROR_ARGUMENT, "weights", "hdf5 is written in f32 or bf16");
    wg_checkpoint *checkpoint = writer->own = wg_checkpoint_create(writer->path);
    if (!checkpoint)
        return -1;
    if (options->config)
        wg_checkpoint_put_text(checkpoint, "/config", options->config);
    if (options->generation)
        wg_checkpoint_put_text(checkpoint, WG_GENERATION_CONFIG, options->generation);
    if (options->tokenizer)
        wg_checkpoint_put_text(checkpoint, "/tokenizer", options->tokenizer);
    return wg_error_pending() ? -1 : 0;
}

static int put_hdf5(wg_weights_writer *writer, int64_t index, const wg_tensor *x) {
    char name[WG__MAX_TENSOR_NAME + sizeof group];
    wg_tensor *value = wg_alias((wg_tensor *)x);
    if (writer->type != WG_WEIGHTS_KEEP && wg_dtype_is_float(x->spec.dtype))
        value = wg_cast(value, writer->type == WG_WEIGHTS_F32 ? WG_F32 : WG_BF16);
    return wg_checkpoint_put_tensor(
        writer->own, dataset_of(name, sizeof name, writer->slots[index].name), value);
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
