/* Shared by the files of formats/: LLaMA's configuration and row order, model cards, GGUF's header.
 *
 * Rotary positions rotate pairs of numbers of a head. Hugging Face's checkpoints, and the module
 * tree, pair number i with i + D/2 ("halves"); Meta's, llama2.c's and llama.cpp's pair 2i with
 * 2i + 1 ("adjacent"). So the rows of q and k are ordered differently, head by head:
 *
 *     adjacent   0a 0b 1a 1b 2a 2b        halves   0a 1a 2a 0b 1b 2b
 */
#ifndef WG_FORMATS_INTERNAL_H
#define WG_FORMATS_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/internal.h"
#include "io/weights/file.h"
#include "models/llama.h"
#include "models/model.h"
#include "base/array.h"
#include "formats/weights_files.h"

/* Reads the JSON of a configuration for a format, `where`, that can only hold a plain LLaMA.
 * -1 with [ARGUMENT for another model or one with options that the format lacks; FORMAT, MEMORY] */
int wg__llama_config_for(wg_llama_config *config, const char *json, const char *where);

/* 0 if the sizes fit each other, and a file of `bytes` bytes can hold the weights at four bits a
 * number; else -1, without an error. */
int wg__llama_config_fits(const wg_llama_config *config, int64_t bytes);

/* The number of heads of a tensor, by its published name, if its rows have to be reordered: for the
 * `extra` of an entry or a slot. 0 for all tensors but q and k. */
int64_t wg__llama_heads_to_reorder(const wg_llama_config *config, const char *name);

/* `arrange` of a reader, adjacent to halves, and of a writer, halves to adjacent. A copy of x,
 * (heads * D, C), or x itself if `extra` is 0. [scope; SHAPE] */
wg_tensor *wg__llama_to_halves(const wg__weights_entry *entry, wg_tensor *x);
wg_tensor *wg__llama_to_adjacent(const wg__weights_slot *slot, wg_tensor *x);

extern const wg__weights_reader wg__weights_gguf, wg__weights_llama2c;
extern const wg__weights_format wg__gguf_writer, wg__llama2c_writer;

/* Writes a file in a folder. count -1: up to the NUL. [IO, NOT_FOUND, MEMORY] */
int wg__write_in(const char *folder, const char *name, const char *bytes, int64_t count);

/* Other files in a published model's folder:
 *
 *     generation_config.json   which tokens begin, end and pad a text, and how tokens are drawn
 *     README.md                the model card: a description of the model and its training */

typedef struct wg__card {
    const char
        *in; /* the converted checkpoint or folder; a run's checkpoint describes its training */
    const char *folder; /* to write into */
    const wg_model_type *type;
    int head; /* a wg__head_kind; -1: none */
    wg_model_sizes sizes;
    int64_t numbers;        /* parameters */
    const char *generation; /* the generation_config.json that IN has; NULL: none */
} wg__card;

/* Writes generation_config.json for models that write texts: a copy of IN's, or a new one with the
 * sampling of `wengert generate`. [IO, MEMORY] */
int wg__write_generation_config(const wg__card *card);

/* Writes README.md unless the folder has one: a copy of IN's, else a generated one, which names no
 * licence. [IO, MEMORY] */
int wg__write_model_card(const wg__card *card);

/* The generation_config.json of IN, a checkpoint or a folder, which is checked to be a JSON object;
 * freed with wg__free. NULL without an error if there is none. [FORMAT, IO, MEMORY] */
char *wg__find_generation_config(const char *in);

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

/* ggml's number for a storage dtype. */
uint32_t wg__gguf_type_of(wg__storage_dtype storage);

/* Appends a key with its value: a text, or a number's bits. A failure stays pending. [MEMORY] */
void wg__gguf_write_text(wg__text *header, const char *key, const char *value);
void wg__gguf_write(wg__text *header, const char *key, uint32_t type, uint64_t bits);

/* Begins an array; the caller appends its values by wg__gguf_append. */
void wg__gguf_write_array(wg__text *header, const char *key, uint32_t type, uint64_t count);
void wg__gguf_append_string(wg__text *header, const char *text, size_t length);
void wg__gguf_append(wg__text *header, uint32_t type, uint64_t bits);

/* The bits of a number as f32, for WG__GGUF_F32. */
uint32_t wg__gguf_f32(double value);

/* ---- Tokenizers (gguf_tokenizer.c) ---- */

/* True if GGUF has a tokenizer of that kind, given as wg_tokenizer_to_json writes it. */
bool wg__gguf_keeps_tokenizer(const char *json);

/* Appends the metadata of a tokenizer, given as wg_tokenizer_to_json writes it, and adds the number
 * of keys to *keys. For NULL and for kinds that llama.cpp does not have, the metadata say that
 * there is no tokenizer: llama.cpp then loads the model, and reads ids. [FORMAT, MEMORY] */
int wg__gguf_write_tokenizer(wg__text *header, const char *json, int64_t vocabulary, int *keys);

/* The tokenizer of the metadata, as wg_tokenizer_to_json writes it, freed with wg__free; *json is
 * NULL if there is none of a known kind. *refused is the reason why a tokenizer of a known kind
 * cannot be read, else NULL; also freed. [MEMORY] */
int wg__gguf_read_tokenizer(const json_t *metadata, char **json, char **refused);

/* ---- Configuration and tokenizer of a file of weights (weights_files.c) ---- */

/* The configuration of the model in `path`, which `file` was opened from: in the file, or in
 * config.json in the folder or beside the file. NULL, without an error, if there is none. Freed
 * with wg_text_free. NULL with [IO, MEMORY] */
WG__COMMAND char *wg__weights_find_config(const wg_weights *file, const char *path);

/* The tokenizer, found in the same places. Freed with wg_tokenizer_free. [as wg_tokenizer_load] */
WG__COMMAND wg_tokenizer *wg__weights_find_tokenizer(const wg_weights *file, const char *path);

#endif
