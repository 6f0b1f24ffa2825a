/* The formats of tensor files: the list of tensors, and a record of functions for reading (used by
 * weights.c) and for writing (used by write.c) a format. A format is one C file with one record or
 * two; formats/weights_files.c has the table of all formats. */
#ifndef WG_IO_WEIGHTS_FILE_H
#define WG_IO_WEIGHTS_FILE_H

#include <jansson.h>

#include "io/weights/adapter.h"
#include "io/weights/binary_file.h"
#include "io/weights/weights.h"

#define WG__MAX_TENSOR_NAME 1023
#define WG__MAX_TENSORS 1000000

/* ---- Reading ---- */

typedef struct wg__weights_entry {
    char *name;
    wg_spec spec; /* as the tensor is read */
    wg__storage_dtype storage;
    int file;       /* index of the file that has the tensor, in `files` */
    int64_t offset; /* of its first byte */
    int64_t bytes;  /* of all elements; if strided, from the first to the last one in the file */
    bool is_strided;
    int64_t strides[WG_MAX_DIMS];
    int64_t extra; /* for the format's own use */
} wg__weights_entry;

/* A format that is read. Of `list` and `open` exactly one is set. */
typedef struct wg__weights_reader {
    const char *name;

    /* Lists the tensors of files[index], which is open. */
    int (*list)(wg_weights *file, int index);

    /* Opens what `path` names, and lists the tensors. */
    int (*open)(wg_weights *file);

    /* Reads a tensor; NULL: its bytes are decoded as the entry says. */
    wg_tensor *(*read)(wg_weights *file, int64_t index);

    /* Rearranges a tensor that was decoded; may be NULL. */
    wg_tensor *(*arrange)(const wg__weights_entry *entry, wg_tensor *x);

    /* Frees `own`; may be NULL. */
    void (*close)(wg_weights *file);
} wg__weights_reader;

struct wg_weights {
    const wg__weights_reader *reader;
    char *path;
    wg__input *files; /* file_count of them; none if the reader opens `path` in another way */
    int file_count;
    int64_t count, capacity;
    wg__weights_entry *entries;
    int64_t *by_name; /* indices, sorted by name */
    char *config, *tokenizer;
    char *tokenizer_refused; /* why the header's tokenizer is not read; NULL: it is, or there is
                              * none */
    char *metadata;          /* a JSON object of the header's remaining keys; NULL: none */
    void *own;               /* private to the reader */
};

extern const wg__weights_reader wg__weights_hdf5, wg__weights_safetensors, wg__weights_pytorch,
    wg__weights_shards;

/* Opens a file of a known format; as wg_weights_open otherwise. */
wg_weights *wg__weights_open_as(const char *path, const wg__weights_reader *reader);

/* Sets file->metadata to a copy of the metadata, unless it is set or `metadata` is NULL. Lists of
 * more than a few values become "N values". [MEMORY] */
int wg__weights_keep_metadata(wg_weights *file, const json_t *metadata);

/* Appends a tensor; the name is copied. Checks that the bytes lie within the file, and that the
 * name is UTF-8 text of at most WG__MAX_TENSOR_NAME bytes. -1 with FORMAT, MEMORY. */
int wg__weights_add(wg_weights *file, const char *name, const wg__weights_entry *entry);

/* -1 with FORMAT if a byte belongs to two tensors of the one file. */
int wg__weights_check_overlap(const wg_weights *file);

/* -1 with FORMAT unless every byte from `begin` to `end` of a file belongs to exactly one of its
 * tensors, numbered from `first` on. */
int wg__weights_check_cover(const wg_weights *file, int64_t first, int64_t begin, int64_t end);

/* Records FORMAT, "PATH: format...", and returns -1. */
int wg__weights_fail(const wg_weights *file, const char *format, ...) WG_PRINTF(2, 3);

/* ---- LoRA adapters (adapter.c) ---- */

/* A configuration of PEFT. Its options borrow from `json` and `names`. */
typedef struct wg__lora_config {
    wg_lora_options options;
    double scale;    /* of B A */
    bool transposed; /* the weights are (I, O) */
    json_t *json;
    const char **names;
} wg__lora_config;

/* Parses it; cleared in every case. -1 with [FORMAT, MEMORY] */
int wg__lora_parse(const char *json, const char *name, wg__lora_config *parsed);
void wg__lora_parsed_clear(wg__lora_config *parsed);

/* The configuration of an adapter's folder (wg__free), and its tensors. NULL with an error. */
char *wg__lora_read_config(const char *folder);
wg_weights *wg__lora_open(const char *folder);

/* How the names of an adapter's tensors begin. */
#define WG__LORA_BEGINNING "base_model.model."

/* ---- Writing ---- */

typedef struct wg__weights_slot {
    char *name;
    wg_spec spec;
    wg__storage_dtype storage;
    int64_t offset, bytes;
    int64_t extra; /* for the format's own use */
    bool is_put;
} wg__weights_slot;

/* A format that is written. Formats without `put` write one binary file, `output`. */
typedef struct wg__weights_format {
    const char *name;

    /* Fills the slots' storage, offset and bytes, and writes everything but the tensors. */
    int (*begin)(wg_weights_writer *writer, const wg_weights_options *options);

    /* Rearranges a contiguous tensor before it is encoded; may be NULL. */
    wg_tensor *(*arrange)(const wg__weights_slot *slot, wg_tensor *x);

    /* Only for formats that write in another way. commit and abort free `own`. */
    int (*put)(wg_weights_writer *writer, int64_t index, const wg_tensor *x);
    int (*commit)(wg_weights_writer *writer);
    void (*abort)(wg_weights_writer *writer);
} wg__weights_format;

struct wg_weights_writer {
    const wg__weights_format *format;
    char *path;
    wg_weights_type type;
    int64_t count;
    wg__weights_slot *slots;
    wg__replacement output; /* of formats without `put` */
    void *own;              /* private to the format */
    bool failed;
};

/* wg__safetensors_writer writes a single file. wg__shards_writer writes one or several files, by
 * the options, and removes the remaining files of an earlier write of the same model. */
extern const wg__weights_format wg__hdf5_writer, wg__safetensors_writer, wg__shards_writer;

/* As wg_weights_create, of a known format. */
wg_weights_writer *wg__weights_begin(const char *path, const wg__weights_format *format,
                                     const wg_weights_options *options, int64_t count,
                                     const wg_weights_info *infos);

/* How a tensor of that dtype is stored when floating ones are to be of that type. */
wg__storage_dtype wg__storage_for(wg_weights_type type, wg_dtype dtype);

#endif
