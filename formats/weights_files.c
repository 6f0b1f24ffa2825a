/* Detecting and choosing the formats of tensor files. See weights_files.h. */
#include "formats/weights_files.h"

#include <stdio.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "formats/internal.h"
#include "io/internal.h"

#define WHERE "weights"

static bool begins(const uint8_t *bytes, int64_t count, const char *with, int64_t length) {
    return count >= length && memcmp(bytes, with, (size_t)length) == 0;
}

/* Chooses the reader by the first bytes, or by the suffix for formats without magic bytes. */
static const wg__weights_reader *detect(const char *path, const uint8_t *bytes, int64_t count) {
    if (begins(bytes, count, "\x89HDF\r\n\x1a\n", 8))
        return &wg__weights_hdf5;
    if (begins(bytes, count, "PK\x03\x04", 4) || begins(bytes, count, "PK\x05\x06", 4))
        return &wg__weights_pytorch;
    if (begins(bytes, count, "GGUF", 4))
        return &wg__weights_gguf;
    if (wg__ends_with(path, ".safetensors") || (count > 8 && bytes[8] == '{'))
        return &wg__weights_safetensors;
    if (begins(bytes, count, "\x80\x02\x8a\x0al\xfc\x9c", 7))
        return wg__fail_null(WG_ERROR_FORMAT, WHERE,
                             "%.300s: is what torch.save wrote before PyTorch 1.6; load it there, "
                             "and save it again",
                             path);
    if (begins(bytes, count, "24ka", 4) || wg__ends_with(path, ".bin"))
        return &wg__weights_llama2c;
    static const struct {
        const char *suffix, *format;
    } named[] = {
        {".h5", "HDF5"}, {".gguf", "GGUF"}, {".pt", "PyTorch's zip"}, {".pth", "PyTorch's zip"}};
    char kind[800],
        text[900] = "is none of HDF5, safetensors, PyTorch's zip, llama2.c's .bin and GGUF";
    bool is_named = false;
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (wg__ends_with(path, named[i].suffix)) {
            is_named = true;
            snprintf(text, sizeof text, "is no file of %s, though its name says so",
                     named[i].format);
        }
    /* unknown bytes may be a file that lost its beginning */
    if (wg__file_kind(path, kind, sizeof kind) &&
        !(is_named && wg__starts_with(kind, "no checkpoint:")))
        snprintf(text + strlen(text), sizeof text - strlen(text), "; it is %s", kind);
    else if (is_named)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 ": it does not begin as one; is it damaged?");
    return wg__fail_null(WG_ERROR_FORMAT, WHERE, "%.300s: %s", path, text);
}

wg_weights *wg_weights_open(const char *path) {
    if (!path || wg_error_pending())
        return NULL;
    char *file = wg__is_folder(path) ? wg__find_weights(path) : wg__strdup(path);
    if (!file)
        return wg__fail_null(
            WG_ERROR_NOT_FOUND, WHERE,
            "%s has no model.safetensors and no pytorch_model.bin, nor an index.json of either",
            path);
    const wg__weights_reader *reader = NULL;
    wg__input input;
    if (wg__ends_with(file, ".index.json"))
        reader = &wg__weights_shards;
    else if (wg__input_open(&input, file) == 0) {
        uint8_t bytes[16] = {0};
        const int64_t count = input.size < 16 ? input.size : 16;
        if (wg__input_read(&input, 0, bytes, count) == 0)
            reader = detect(file, bytes, count);
        wg__input_close(&input);
    }
    wg_weights *weights = reader ? wg__weights_open_as(file, reader) : NULL;
    wg__free(file);
    return weights;
}

enum { MOST_CONFIG = 1 << 24 };

char *wg__weights_find_config(const wg_weights *file, const char *path) {
    static const char name[] = "config.json";
    if (wg__weights_config(file))
        return wg__strdup(wg__weights_config(file));
    char *beside = wg__is_folder(path) ? wg__path_in(path, name) : wg__path_beside(path, name);
    char *text = wg__is_file(beside) ? wg__read_whole(beside, MOST_CONFIG, NULL) : NULL;
    wg__free(beside);
    return text;
}

wg_tokenizer *wg__weights_find_tokenizer(const wg_weights *file, const char *path) {
    if (wg__weights_tokenizer(file))
        return wg_tokenizer_from_json(wg__weights_tokenizer(file));
    return wg__is_folder(path) && wg__tokenizer_is_in(path) ? wg_tokenizer_load(path) : NULL;
}

static const struct {
    const char *suffix;
    const wg__weights_format *format;
} written[] = {
    {".h5", &wg__hdf5_writer},
    {".hdf5", &wg__hdf5_writer},
    {".safetensors", &wg__shards_writer},
    {".gguf", &wg__gguf_writer},
    {".bin", &wg__llama2c_writer},
};

enum { WRITTEN = sizeof written / sizeof written[0] };

const char *wg__weights_format_by_suffix(const char *path) {
    for (int i = 0; i < WRITTEN; i++)
        if (wg__ends_with(path, written[i].suffix))
            return written[i].format->name;
    return NULL;
}

bool wg__weights_keeps_tokenizer(const char *format, const char *tokenizer) {
    if (!format || !tokenizer)
        return false;
    return strcmp(format, "hdf5") == 0 ||
           (strcmp(format, "gguf") == 0 && wg__gguf_keeps_tokenizer(tokenizer));
}

wg_weights_writer *wg_weights_create(const char *path, const char *name,
                                     const wg_weights_options *options, int64_t count,
                                     const wg_weights_info *infos) {
    if (!path || !name || wg_error_pending())
        return NULL;
    const wg__weights_format *format = NULL;
    for (int i = 0; i < WRITTEN; i++)
        if (strcmp(written[i].format->name, name) == 0)
            format = written[i].format;
    if (!format)
        wg_fail(WG_ERROR_ARGUMENT, WHERE,
                "%s is not written; hdf5, safetensors, llama2c and gguf are", name);
    else if (options && options->shard_bytes && format != &wg__shards_writer)
        wg_fail(WG_ERROR_ARGUMENT, WHERE,
                "%s is written as one file; safetensors alone are written in shards", name);
    else
        return wg__weights_begin(path, format, options, count, infos);
    return NULL;
}
