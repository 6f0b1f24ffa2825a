/* GGUF, llama.cpp's format, version 3, little-endian:
 *
 *     "GGUF"  u32 version  u64 tensors  u64 metadata
 *     metadata, each      string key   u32 type   value
 *     tensors, each       string name  u32 dimensions  u64 size of each, the last first
 *                         u32 type     u64 offset
 *     padding up to the alignment (general.alignment, else 32), then the tensors' bytes
 *
 * A string is a u64 length and its bytes; an array a u32 type, a u64 count and its values. */
#ifndef WG_IO_GGUF_H
#define WG_IO_GGUF_H

#include <jansson.h>

#include "io/weights/file.h"

/* Types of values. */
enum {
    WG__GGUF_U8,
    WG__GGUF_I8,
    WG__GGUF_U16,
    WG__GGUF_I16,
    WG__GGUF_U32,
    WG__GGUF_I32,
    WG__GGUF_F32,
    WG__GGUF_BOOL,
    WG__GGUF_STRING,
    WG__GGUF_ARRAY,
    WG__GGUF_U64,
    WG__GGUF_I64,
    WG__GGUF_F64,
    WG__GGUF_TYPES
};

/* Reads the header: metadata as a JSON object (numbers, texts, lists), and the tensors, with names
 * as the file has them. *metadata is the caller's, NULL after an error. */
int wg__gguf_read(wg_weights *file, json_t **metadata);

/* A LLaMA's metadata as a configuration and, if there is one that wengert has, a tokenizer; its
 * tensors under their published names. */
int wg__gguf_take_llama(wg_weights *file, const json_t *metadata);

/* Appends a key with its value to what becomes a header. [MEMORY] */
int wg__gguf_put_text(wg__buffer *header, const char *key, const char *value);
int wg__gguf_put_u32(wg__buffer *header, const char *key, uint32_t value);
int wg__gguf_put_f32(wg__buffer *header, const char *key, double value);
int wg__gguf_put_bool(wg__buffer *header, const char *key, bool value);

/* Begins an array, whose values follow. */
int wg__gguf_put_array(wg__buffer *header, const char *key, uint32_t type, uint64_t count);
int wg__gguf_add_string(wg__buffer *header, const char *text, size_t length);
int wg__gguf_add_u32(wg__buffer *header, uint32_t value);
int wg__gguf_add_f32(wg__buffer *header, double value);

/* True for a tokenizer, given as wg_tokenizer_to_json writes it, that llama.cpp has. */
bool wg__gguf_keeps_tokenizer(const char *json);

/* Byte-level BPE: see gguf_bpe.c. A reading is NULL if the metadata have none that is known. */
bool wg__gguf_is_bpe(const json_t *root);
int wg__gguf_put_bpe(wg__buffer *header, const json_t *root, int64_t vocabulary, int *keys);
json_t *wg__gguf_bpe_of(const json_t *metadata);

/* Appends the metadata of a tokenizer, given as wg_tokenizer_to_json writes it (NULL: none), and
 * counts the keys. For none, and for kinds that llama.cpp does not have, they say so: such a model
 * can be loaded, and given ids. */
int wg__gguf_put_tokenizer(wg__buffer *header, const char *json, int64_t vocabulary, int *keys);

/* Such a tokenizer's JSON, freed with wg__free, in *json; NULL if the metadata has none that is
 * known. */
int wg__gguf_take_tokenizer(const json_t *metadata, char **json);

#endif
