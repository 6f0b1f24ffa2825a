/* Tensor files: named tensors, listed first and read or written one at a time, whatever the format.
 * formats/weights_files.h has the list of formats, and opens and creates files.
 *
 * No file is trusted: sizes, offsets, counts, names and nesting are checked before they are used,
 * and memory is allocated only for data that the file has. */
#ifndef WG_IO_WEIGHTS_WEIGHTS_H
#define WG_IO_WEIGHTS_WEIGHTS_H

#include "../../nn/module.h"

WG_BEGIN_DECLS

/* ---- Reading ---- */

typedef struct wg_weights wg_weights;

/* Closes a file; NULL is allowed. */
WG_API void wg_weights_close(wg_weights *file);

/* The number of tensors; 0 given NULL. */
WG_API int64_t wg_weights_count(const wg_weights *file);

/* The name of tensor `index`, 0 .. count - 1; borrowed, NULL outside. */
WG_API const char *wg_weights_name(const wg_weights *file, int64_t index);

/* The index of the tensor of that name, or -1. */
WG_API int64_t wg_weights_find(const wg_weights *file, const char *name);

/* Reads one tensor; f16 and quantized blocks as f32. [scope; INDEX, IO, FORMAT] */
WG_API wg_tensor *wg_weights_read(wg_weights *file, int64_t index);

/* Fills every slot below `module`, tied ones once; floating dtypes are cast. Strict and
 * transactional, as wg_checkpoint_get_module is: every missing, unexpected and misshapen name is
 * listed in one error, and after any error nothing has changed. [NOT_FOUND if names are missing;
 * FORMAT, IO] */
WG_API int wg_weights_get_module(wg_weights *file, wg_module *module);

/* Names that a partial load did not use: slots of the module, or tensors of the file. */
typedef struct wg_left_out {
    int64_t missing_count, unexpected_count, misshapen_count;
    char **missing;    /* slots that the file does not have */
    char **unexpected; /* tensors of the file under `prefix` that have no slot */
    char **misshapen;  /* slots whose tensor in the file has another shape or dtype */
} wg_left_out;

/* In a checkpoint: the text of a published generation_config.json, how texts are drawn. */
#define WG_GENERATION_CONFIG "/generation_config"

/* ---- Writing: create with the whole list, put each tensor in any order, commit ---- */

typedef struct wg_weights_info {
    const char *name; /* published */
    wg_spec spec;
} wg_weights_info;

typedef enum wg_weights_type {
    WG_WEIGHTS_KEEP, /* as the tensors are; llama2c: f32; gguf: f32 unless they are f16 or bf16 */
    WG_WEIGHTS_F32,
    WG_WEIGHTS_F16,
    WG_WEIGHTS_BF16,
    WG_WEIGHTS_Q8_0, /* blocks of 32 numbers, gguf only; f16 if rows are no whole blocks */
} wg_weights_type;

typedef struct wg_weights_options {
    wg_weights_type type; /* of floating tensors */
    const char *config;   /* JSON of published keys; llama2c and gguf need it, hdf5 keeps it */
    const char
        *tokenizer; /* JSON of wg_tokenizer_to_json; hdf5 keeps it, gguf if it has its kind */
    const char *generation; /* a published generation_config.json, which hdf5 keeps; NULL: none */
    int version;            /* of llama2c: 0 or 1 */

    /* safetensors only: the most bytes of tensors in a file, unless one tensor has more; 0: no
     * limit. If the tensors need several files, `path` NAME.safetensors becomes
     * NAME-00001-of-0000N.safetensors... and NAME.safetensors.index.json. */
    int64_t shard_bytes;
} wg_weights_options;

typedef struct wg_weights_writer wg_weights_writer;

/* Writes tensor `index` of the list, of that spec. [ARGUMENT, SHAPE; IO; STATE after a failure] */
WG_API int wg_weights_put(wg_weights_writer *writer, int64_t index, const wg_tensor *x);

/* Syncs the file, renames it over its path and frees `writer` in every case. If an error is
 * pending, or a tensor was not put, the new file is removed and the old one stays. Shards are all
 * synced before the first is renamed. While they are renamed there is no index, so that old and new
 * shards are never read together. Then files of an earlier write are removed: NAME.safetensors,
 * which readers would prefer to the index, old shards and, if one file has all tensors now, the
 * index. [IO, STATE] */
WG_API int wg_weights_commit(wg_weights_writer *writer);

/* Removes the new file and frees `writer`; an old file stays. NULL is allowed. */
WG_API void wg_weights_abort(wg_weights_writer *writer);

WG_END_DECLS

#endif
