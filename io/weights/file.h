/* What the formats of tensor files share: the list of tensors, how their bytes are stored, and the
 * record of functions by which weights.c runs a format. A format is one file with such a record. */
#ifndef WG_IO_WEIGHTS_FILE_H
#define WG_IO_WEIGHTS_FILE_H

#include <stdio.h>

#include "io/weights/binary_file.h"
#include "io/checkpoint/checkpoint.h"
#include "io/weights/weights.h"

#define WG__MAX_TENSOR_NAME 1023
#define WG__MAX_TENSORS 1000000

/* ---- How elements are stored ---- */

typedef enum wg__stored {
    WG__STORED_F64,
    WG__STORED_F32,
    WG__STORED_F16,
    WG__STORED_BF16,
    WG__STORED_I64,
    WG__STORED_I32,
    WG__STORED_U8,
    WG__STORED_BOOL,
    WG__STORED_Q8_0, /* 32 numbers: an f16 scale and 32 signed bytes */
    WG__STORED_Q4_0, /* 32 numbers: an f16 scale and 16 bytes of two numbers, less 8, each */
} wg__stored;

/* The dtype that such elements are read as. */
wg_dtype wg__stored_dtype(wg__stored stored);

/* The numbers and the bytes of one block: 1 and the size of the dtype for what is not quantised. */
int64_t wg__stored_block(wg__stored stored);
int64_t wg__stored_block_bytes(wg__stored stored);

/* The bytes of a tensor of that shape, or -1 if they are no whole blocks along the last dimension
 * or more than 2^62. */
int64_t wg__stored_bytes(wg__stored stored, int ndim, const int64_t *shape);

/* `count` elements from bytes to memory of the dtype, and from memory of dtype F32 (or, for what is
 * stored as it is, of the same dtype) to bytes. Booleans become 0 or 1. */
void wg__stored_decode(wg__stored stored, int64_t count, const uint8_t *bytes, void *out);
void wg__stored_encode(wg__stored stored, int64_t count, const void *in, uint8_t *bytes);

/* ---- Reading ---- */

typedef struct wg__weights_entry {
    char *name;
    wg_spec spec; /* as it is read */
    wg__stored stored;
    int file;       /* which of the files it is in */
    int64_t offset; /* of its first byte */
    int64_t
        bytes; /* of a dense tensor; of a strided one those from its first to its last element */
    bool is_strided;
    int64_t strides[WG_MAX_DIMS];
    int64_t adjacent_heads; /* its rows are of so many heads that pair neighbours; 0: as they are */
} wg__weights_entry;

typedef struct wg__weights_format {
    const char *name;
    int (*open)(wg_weights *file);                       /* lists the tensors */
    wg_tensor *(*read)(wg_weights *file, int64_t index); /* NULL: from `offset` of the file */
    void (*close)(wg_weights *file);                     /* what `own` holds; NULL: nothing */
} wg__weights_format;

struct wg_weights {
    const wg__weights_format *format;
    char *path;
    wg__input *files; /* file_count of them; [0] is `path` itself unless it is an index */
    int file_count;
    int64_t count, capacity;
    wg__weights_entry *entries;
    int64_t *by_name; /* indices, sorted by name */
    char *config, *tokenizer;
    void *own;
};

extern const wg__weights_format wg__weights_hdf5, wg__weights_safetensors, wg__weights_pytorch,
    wg__weights_llama2c, wg__weights_gguf;

/* Appends a tensor; the name is copied. Its bytes are checked to lie within the file that it is in,
 * and its name to be UTF-8 text of a fair length. -1 with FORMAT, MEMORY. */
int wg__weights_add(wg_weights *file, const char *name, const wg__weights_entry *entry);

/* -1 with FORMAT if a byte belongs to two tensors of the one file. */
int wg__weights_check_apart(const wg_weights *file);

/* wg_fail with FORMAT: "PATH: format...". Returns -1. */
int wg__weights_fail(const wg_weights *file, const char *format, ...) WG_PRINTF(2, 3);

/* Lists what a single file of safetensors or of torch.save holds, which is files[index]. */
int wg__safetensors_list(wg_weights *file, int index);
int wg__pytorch_list(wg_weights *file, int index);

/* The same for all the files that the index `path` names. */
int wg__weights_open_shards(wg_weights *file);

/* ---- Writing ---- */

typedef struct wg__weights_slot {
    char *name;
    wg_spec spec;
    wg__stored stored;
    int64_t offset, bytes;
    int64_t adjacent_heads;
    bool is_put;
} wg__weights_slot;

typedef struct wg__weights_kind {
    const char *name;
    /* Fills the slots' stored, offset and bytes, and writes what is not tensors. */
    int (*begin)(wg_weights_writer *writer);
} wg__weights_kind;

struct wg_weights_writer {
    const wg__weights_kind *kind; /* NULL: hdf5 */
    struct wg__shards *shards;    /* they have all tensors; NULL: one file has */
    wg__output *output;
    char *whole_path;          /* of safetensors, unless this is a shard: NAME.safetensors */
    wg_checkpoint *checkpoint; /* of hdf5 */
    const wg_weights_options *options;
    wg_weights_type type;
    int64_t count;
    wg__weights_slot *slots;
    bool failed;
};

extern const wg__weights_kind wg__safetensors_writer, wg__llama2c_writer, wg__gguf_writer;

/* Writers of the single files among which tensors are shared out. */
typedef struct wg__shards wg__shards;

/* Begins the files beside `path`, NAME.safetensors; *shards stays NULL if one will do. -1 with
 * [ARGUMENT, NOT_FOUND, IO, MEMORY]. The other functions: as those of wg_weights_writer. */
int wg__shards_begin(wg__shards **shards, const char *path, const wg_weights_options *options,
                     int64_t count, const wg_weights_info *infos);
int wg__shards_put(wg__shards *shards, int64_t index, const wg_tensor *x);
int wg__shards_commit(wg__shards *shards);
void wg__shards_abort(wg__shards *shards);

/* The length of NAME in FOLDER/NAME.safetensors, by which its shards begin, too. */
size_t wg__shard_stem(const char *path, const char **name);

/* Removes the shards of an earlier write of that model but for the `count` files named, and the
 * index where none is. What cannot be removed stays: the model is whole without. */
void wg__remove_stale_shards(const char *path, int64_t count, char *const *names);

/* How a tensor of that dtype is stored when floating ones are to be of that type. */
wg__stored wg__stored_for(wg_weights_type type, wg_dtype dtype);

#endif
