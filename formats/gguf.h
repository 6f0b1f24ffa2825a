/* GGUF, llama.cpp's format, version 3, little-endian:
 *
 *     "GGUF"  u32 version  u64 tensors  u64 metadata
 *     metadata, each      string key   u32 type   value
 *     tensors, each       string name  u32 dimensions  u64 size of each, the last first
 *                         u32 type     u64 offset
 *     padding up to the alignment (general.alignment, else 32), then the tensors' bytes
 *
 * A string is a u64 length and its bytes; an array a u32 type, a u64 count and its values. Of a
 * LLaMA the metadata hold the configuration and, if GGUF has its kind, the tokenizer. */
#ifndef WG_FORMATS_GGUF_H
#define WG_FORMATS_GGUF_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
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

/* ---- Reading a header (gguf_header.c) ---- */

/* Reads the metadata as a JSON object (numbers, texts, lists), and lists the tensors under GGUF's
 * names. *metadata is the caller's, NULL after an error. */
int wg__gguf_read(wg_weights *file, json_t **metadata);

/* ---- Writing a header (gguf_header.c) ---- */

/* ggml's type of tensors that are stored so. */
uint32_t wg__gguf_type_of(wg__storage_dtype storage);

/* Appends a key with its value. [MEMORY] */
int wg__gguf_put_text(wg__text *header, const char *key, const char *value);
int wg__gguf_put_u32(wg__text *header, const char *key, uint32_t value);
int wg__gguf_put_f32(wg__text *header, const char *key, double value);
int wg__gguf_put_bool(wg__text *header, const char *key, bool value);

/* Begins an array; the caller appends its values. */
int wg__gguf_put_array(wg__text *header, const char *key, uint32_t type, uint64_t count);
int wg__gguf_add_string(wg__text *header, const char *text, size_t length);
int wg__gguf_add_u32(wg__text *header, uint32_t value);
int wg__gguf_add_u64(wg__text *header, uint64_t value);
int wg__gguf_add_f32(wg__text *header, double value);

/* ---- Tokenizers (gguf_tokenizer.c) ---- */

/* True if GGUF has a tokenizer of that kind, given as wg_tokenizer_to_json writes it. */
bool wg__gguf_keeps_tokenizer(const char *json);

/* Appends the metadata of a tokenizer, given as wg_tokenizer_to_json writes it, and adds the number
 * of keys to *keys. For NULL and for kinds that llama.cpp does not have, the metadata say that
 * there is no tokenizer: such a model can be loaded, and given ids. [FORMAT, MEMORY] */
int wg__gguf_put_tokenizer(wg__text *header, const char *json, int64_t vocabulary, int *keys);

/* The tokenizer of the metadata as such JSON, freed with wg__free; *json is NULL if there is none
 * of a known kind. *refused is a text for a tokenizer of a known kind that has a key with another
 * meaning than ours, else NULL; also freed. [MEMORY] */
int wg__gguf_take_tokenizer(const json_t *metadata, char **json, char **refused);

#endif
