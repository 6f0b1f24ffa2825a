/* Tensor files of any format: writing. See weights.h.
 *
 * The list comes first, so a format knows the place of every tensor before it has any, and each is
 * encoded straight to its place. */
#include <string.h>

#include "io/checkpoint/checkpoint.h"
#include "io/gguf.h"
#include "io/llama_layout.h"
#include "io/weights/file.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "weights"

/* ---- Making ---- */

static void free_writer(wg_weights_writer *writer) {
    for (int64_t i = 0; writer->slots && i < writer->count; i++)
        wg__free(writer->slots[i].name);
    wg__free(writer->slots);
    wg__free(writer->whole_path);
    wg__free(writer);
}

static int find_kind(wg_weights_writer *writer, const char *format) {
    static const wg__weights_kind *const kinds[] = {&wg__safetensors_writer, &wg__llama2c_writer,
                                                    &wg__gguf_writer};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->name, format) == 0)
            writer->kind = kinds[i];
    if (writer->kind || strcmp(format, "hdf5") == 0)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "%s is not written; hdf5, safetensors, llama2c and gguf are", format);
}

bool wg_weights_keeps_tokenizer(const char *format, const char *tokenizer) {
    if (!format || !tokenizer)
        return false;
    return strcmp(format, "hdf5") == 0 ||
           (strcmp(format, "gguf") == 0 && wg__gguf_keeps_tokenizer(tokenizer));
}

static int begin_hdf5(wg_weights_writer *writer, const char *path) {
    if (writer->type == WG_WEIGHTS_F16 || writer->type == WG_WEIGHTS_Q8_0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "hdf5 is written in f32 or bf16");
    writer->checkpoint = wg_checkpoint_create(path);
    if (!writer->checkpoint)
        return -1;
    const char *config = writer->options->config, *tokenizer = writer->options->tokenizer;
    if (config && wg_checkpoint_put_text(writer->checkpoint, "/config", config) < 0)
        return -1;
    return tokenizer ? wg_checkpoint_put_text(writer->checkpoint, "/tokenizer", tokenizer) : 0;
}

static int fill_slots(wg_weights_writer *writer, const wg_weights_info *infos) {
    writer->slots = wg__calloc((size_t)writer->count + 1, sizeof *writer->slots);
    if (!writer->slots)
        return -1;
    for (int64_t i = 0; i < writer->count; i++) {
        if (strlen(infos[i].name) > WG__MAX_TENSOR_NAME)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%.64s... is too long a name", infos[i].name);
        writer->slots[i] =
            (wg__weights_slot){.name = wg__strdup(infos[i].name), .spec = infos[i].spec};
        if (!writer->slots[i].name)
            return -1;
    }
    return 0;
}

static int begin(wg_weights_writer *writer, const char *path, const char *format,
                 const wg_weights_info *infos) {
    if (find_kind(writer, format) < 0 || fill_slots(writer, infos) < 0)
        return -1;
    if (writer->options->shard_bytes) {
        if (writer->kind != &wg__safetensors_writer)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "%s is written as one file; safetensors alone "
                           "are written in shards",
                           format);
        if (wg__shards_begin(&writer->shards, path, writer->options, writer->count, infos) < 0)
            return -1;
        if (writer->shards)
            return 0;
    }
    if (!writer->kind)
        return begin_hdf5(writer, path);
    if (writer->kind == &wg__safetensors_writer) {
        writer->whole_path = wg__strdup(path);
        if (!writer->whole_path)
            return -1;
    }
    writer->output = wg__output_create(path);
    return writer->output ? writer->kind->begin(writer) : -1;
}

wg_weights_writer *wg_weights_create(const char *path, const char *format,
                                     const wg_weights_options *options, int64_t count,
                                     const wg_weights_info *infos) {
    if (!path || !format || wg_error_pending())
        return NULL;
    const wg_weights_options defaults = {0};
    wg_weights_writer *writer = wg__calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    writer->options = options ? options : &defaults;
    writer->type = writer->options->type;
    writer->count = count;
    const int status = begin(writer, path, format, infos);
    writer->options = NULL; /* the caller's, until here */
    if (status == 0)
        return writer;
    wg_weights_abort(writer);
    return NULL;
}

/* ---- Tensors ---- */

static wg_tensor *rounded(const wg_weights_writer *writer, const wg_tensor *x) {
    wg_tensor *as_is = wg_alias((wg_tensor *)x);
    if (writer->type == WG_WEIGHTS_KEEP || !wg_dtype_is_float(x->spec.dtype))
        return as_is;
    return wg_cast(as_is, writer->type == WG_WEIGHTS_F32 ? WG_F32 : WG_BF16);
}

static int put_hdf5(wg_weights_writer *writer, const wg__weights_slot *slot, const wg_tensor *x) {
    char name[WG__MAX_TENSOR_NAME + 8];
    snprintf(name, sizeof name, "/model/%s", slot->name);
    for (char *c = name; *c; c++)
        if (*c == '.')
            *c = '/';
    return wg_checkpoint_put_tensor(writer->checkpoint, name, rounded(writer, x));
}

/* A contiguous tensor of the dtype that its encoder takes. */
static wg_tensor *prepared(const wg__weights_slot *slot, const wg_tensor *x) {
    const bool as_is =
        wg__stored_dtype(slot->stored) == x->spec.dtype && slot->stored != WG__STORED_BF16;
    wg_tensor *ready = wg_alias((wg_tensor *)x);
    if (!as_is)
        ready = wg_cast(ready, slot->stored == WG__STORED_F64 ? WG_F64 : WG_F32);
    ready = wg_contiguous(ready);
    if (slot->adjacent_heads)
        ready = wg__llama_rows(ready, slot->adjacent_heads, WG__HALVES_TO_ADJACENT);
    return ready;
}

/* In runs, so that the encoded bytes take little memory. */
static int put_runs(wg_weights_writer *writer, const wg__weights_slot *slot, const wg_tensor *x) {
    const int64_t block = wg__stored_block(slot->stored),
                  block_bytes = wg__stored_block_bytes(slot->stored), most = 32768,
                  blocks = slot->bytes / block_bytes;
    uint8_t *bytes = wg__alloc((size_t)(most * block_bytes));
    if (!bytes)
        return -1;
    const char *from = wg__tensor_address(x);
    const size_t size = wg_dtype_size(x->spec.dtype);
    int status = 0;
    for (int64_t at = 0; status == 0 && at < blocks; at += most) {
        const int64_t count = blocks - at < most ? blocks - at : most;
        wg__stored_encode(slot->stored, count * block, from + size * (size_t)(at * block), bytes);
        status = wg__output_write(writer->output, slot->offset + at * block_bytes, bytes,
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
    int status;
    if (writer->checkpoint)
        status = put_hdf5(writer, slot, x);
    else if (writer->shards)
        status = wg__shards_put(writer->shards, index, x);
    else {
        const wg_tensor *ready = prepared(slot, x);
        status = ready ? put_runs(writer, slot, ready) : -1;
    }
    wg_scope_end(&scope, NULL);
    wg_set_grad_enabled(recording);
    slot->is_put = status == 0;
    writer->failed |= status < 0;
    return status;
}

/* ---- The end ---- */

static int check_whole(const wg_weights_writer *writer) {
    if (writer->failed || wg_error_pending())
        return wg_fail(WG_ERROR_STATE, WHERE, "a tensor could not be written; nothing is kept");
    for (int64_t i = 0; i < writer->count; i++)
        if (!writer->slots[i].is_put)
            return wg_fail(WG_ERROR_STATE, WHERE,
                           "%s was announced and not written; nothing is kept",
                           writer->slots[i].name);
    return 0;
}

int wg_weights_commit(wg_weights_writer *writer) {
    if (!writer)
        return -1;
    if (check_whole(writer) < 0) {
        wg_weights_abort(writer);
        return -1;
    }
    int status;
    if (writer->checkpoint)
        status = wg_checkpoint_commit(writer->checkpoint);
    else if (writer->shards)
        status = wg__shards_commit(writer->shards);
    else
        status = wg__output_commit(writer->output);
    if (status == 0 && writer->whole_path)
        wg__remove_stale_shards(writer->whole_path, 0, NULL);
    free_writer(writer);
    return status;
}

void wg_weights_abort(wg_weights_writer *writer) {
    if (!writer)
        return;
    wg_checkpoint_abort(writer->checkpoint);
    wg__output_abort(writer->output);
    wg__shards_abort(writer->shards);
    free_writer(writer);
}
