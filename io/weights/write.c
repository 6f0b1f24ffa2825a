/* Tensor files: writing with a format's record. See weights.h.
 *
 * The list of tensors comes first, so a format computes the offset of every tensor, and each tensor
 * is encoded directly to its offset. */
#include <string.h>

#include "io/weights/file.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "weights"

static void free_writer(wg_weights_writer *writer) {
    for (int64_t i = 0; writer->slots && i < writer->count; i++)
        wg__free(writer->slots[i].name);
    wg__free(writer->slots);
    wg__replacement_end(&writer->output);
    wg__free(writer->path);
    wg__free(writer);
}

wg_weights_writer *wg__weights_begin(const char *path, const wg__weights_format *format,
                                     const wg_weights_options *options, int64_t count,
                                     const wg_weights_info *infos) {
    if (!path || wg_error_pending())
        return NULL;
    const wg_weights_options defaults = {0};
    wg_weights_writer *writer = wg__calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    if (!options)
        options = &defaults;
    writer->output.descriptor = -1;
    writer->format = format;
    writer->path = wg__strdup(path);
    writer->type = options->type;
    writer->count = count;
    writer->slots = wg__calloc((size_t)count + 1, sizeof *writer->slots);
    int status = writer->path && writer->slots ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < count; i++) {
        const bool is_long = strlen(infos[i].name) > WG__MAX_TENSOR_NAME;
        char *name = is_long ? NULL : wg__strdup(infos[i].name);
        writer->slots[i] = (wg__weights_slot){.name = name, .spec = infos[i].spec};
        if (is_long)
            wg_fail(WG_ERROR_ARGUMENT, WHERE, "%.64s... is too long a name", infos[i].name);
        status = name ? 0 : -1;
    }
    if (status == 0 && !format->put)
        status = wg__replacement_begin(&writer->output, path, "file");
    if (status == 0 && format->begin(writer, options) == 0)
        return writer;
    wg_weights_abort(writer);
    return NULL;
}

wg__storage_dtype wg__storage_for(wg_weights_type type, wg_dtype dtype) {
    static const wg__storage_dtype as_they_are[] = {
        [WG_F32] = WG__STORAGE_F32,   [WG_F64] = WG__STORAGE_F64, [WG_BF16] = WG__STORAGE_BF16,
        [WG_I32] = WG__STORAGE_I32,   [WG_I64] = WG__STORAGE_I64, [WG_U8] = WG__STORAGE_U8,
        [WG_BOOL] = WG__STORAGE_BOOL,
    };
    static const wg__storage_dtype floating[] = {
        [WG_WEIGHTS_F32] = WG__STORAGE_F32,
        [WG_WEIGHTS_F16] = WG__STORAGE_F16,
        [WG_WEIGHTS_BF16] = WG__STORAGE_BF16,
        [WG_WEIGHTS_Q8_0] = WG__STORAGE_Q8_0,
    };
    return type == WG_WEIGHTS_KEEP || !wg_dtype_is_float(dtype) ? as_they_are[dtype]
                                                                : floating[type];
}

/* Encodes and writes a contiguous tensor of the dtype that the encoder takes, in runs, so that the
 * encoded bytes take little memory. */
static int put_runs(wg_weights_writer *writer, const wg__weights_slot *slot,
                    const wg_tensor *given) {
    const wg__storage_kind *kind = &wg__storage_kinds[slot->storage];
    const bool as_is = kind->read_as == given->spec.dtype && slot->storage != WG__STORAGE_BF16;
    wg_tensor *x = wg_alias((wg_tensor *)given);
    if (!as_is)
        x = wg_cast(x, slot->storage == WG__STORAGE_F64 ? WG_F64 : WG_F32);
    x = wg_contiguous(x);
    if (x && writer->format->arrange)
        x = writer->format->arrange(slot, x);
    const int64_t block = kind->block, block_bytes = kind->block_bytes, most = 32768,
                  blocks = slot->bytes / block_bytes;
    uint8_t *bytes = x ? wg__alloc_array(wg__times(most, block_bytes), 1) : NULL;
    if (!bytes)
        return -1;
    const char *from = wg__tensor_address(x);
    const size_t size = wg_dtype_size(x->spec.dtype);
    int status = 0;
    for (int64_t at = 0; status == 0 && at < blocks; at += most) {
        const int64_t count = blocks - at < most ? blocks - at : most;
        wg__storage_encode(slot->storage, count * block, from + size * (size_t)(at * block), bytes);
        status = wg__output_write(&writer->output, slot->offset + at * block_bytes, bytes,
                                  count * block_bytes);
    }
    wg__free(bytes);
    return status;
}

static int check_put(const wg_weights_writer *writer, int64_t index, const wg_tensor *x) {
    if (writer->failed)
        return wg_fail(WG_ERROR_STATE, WHERE, "an earlier tensor could not be written");
    if (index < 0 || index >= writer->count)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "there is no tensor %lld", (long long)index);
    if (wg__check_memory(x, WHERE) < 0)
        return -1;
    const wg__weights_slot *slot = &writer->slots[index];
    if (slot->is_put)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s was written already", slot->name);
    char has[64], wants[64];
    if (!wg__same_shape(&x->spec, &slot->spec) || x->spec.dtype != slot->spec.dtype)
        return wg_fail(WG_ERROR_SHAPE, WHERE, "%s is %s; %s was announced", slot->name,
                       wg_spec_text(has, sizeof has, &x->spec),
                       wg_spec_text(wants, sizeof wants, &slot->spec));
    return 0;
}

int wg_weights_put(wg_weights_writer *writer, int64_t index, const wg_tensor *x) {
    if (!writer || !x || wg_error_pending() || check_put(writer, index, x) < 0) {
        if (writer)
            writer->failed = true;
        return -1;
    }
    wg__weights_slot *slot = &writer->slots[index];
    const bool recording = wg_set_grad_enabled(false);
    wg_scope scope;
    wg_scope_begin(&scope);
    const int status =
        writer->format->put ? writer->format->put(writer, index, x) : put_runs(writer, slot, x);
    wg_scope_end(&scope, NULL);
    wg_set_grad_enabled(recording);
    slot->is_put = status == 0;
    writer->failed |= status < 0;
    return status;
}

int wg_weights_commit(wg_weights_writer *writer) {
    if (!writer)
        return -1;
    int64_t i = 0;
    while (i < writer->count && writer->slots[i].is_put)
        i++;
    if (writer->failed || wg_error_pending() || i < writer->count) {
        if (writer->failed || wg_error_pending())
            wg_fail(WG_ERROR_STATE, WHERE, "a tensor could not be written; nothing is kept");
        else
            wg_fail(WG_ERROR_STATE, WHERE, "%s was announced and not written; nothing is kept",
                    writer->slots[i].name);
        wg_weights_abort(writer);
        return -1;
    }
    const int status = writer->format->commit ? writer->format->commit(writer)
                                              : wg__replacement_finish(&writer->output, "file");
    free_writer(writer);
    return status;
}

void wg_weights_abort(wg_weights_writer *writer) {
    if (!writer)
        return;
    if (writer->format->abort)
        writer->format->abort(writer);
    free_writer(writer);
}
