/* A LLaMA in the formats that know nothing else (llama2.c's) or name it otherwise (GGUF).
 *
 * The rotation turns pairs of numbers of a head. Published checkpoints of Hugging Face pair number
 * i with i + D/2 ("halves"); Meta's, llama2.c's and llama.cpp's pair 2i with 2i + 1 ("adjacent").
 * The same model has the rows of its q and k in another order, head by head:
 *
 *     adjacent   0a 0b 1a 1b 2a 2b        halves   0a 1a 2a 0b 1b 2b
 */
#ifndef WG_IO_LLAMA_LAYOUT_H
#define WG_IO_LLAMA_LAYOUT_H

#include "tensor/tensor.h"

typedef struct wg__llama_sizes {
    int64_t width, inner, layers, heads, key_value_heads, vocabulary, positions;
    double eps, theta;
    bool tied;          /* the head is the table of tokens */
    int64_t begin, end; /* ids of tokens, -1: none */
} wg__llama_sizes;

/* From a configuration's JSON, which must be of a llama; `where` needs it, for the message.
 * -1 with ARGUMENT, FORMAT. */
int wg__llama_sizes_read(wg__llama_sizes *sizes, const char *json, const char *where);

/* As such JSON, freed with wg__free. NULL with MEMORY. */
char *wg__llama_sizes_json(const wg__llama_sizes *sizes);

/* 0 if every size is at least 1, fits the others, and is one that a file of `bytes` bytes, of at
 * least a bit a number, can hold; else -1, without an error: the caller knows the file. */
int wg__llama_sizes_check(const wg__llama_sizes *sizes, int64_t bytes);

typedef enum wg__llama_order { WG__ADJACENT_TO_HALVES, WG__HALVES_TO_ADJACENT } wg__llama_order;

/* A copy of (heads * D, C) with rows in the other order. [scope; SHAPE] */
wg_tensor *wg__llama_rows(const wg_tensor *x, int64_t heads, wg__llama_order order);

/* The heads of a tensor of that published name whose rows are so ordered; 0 for any other. */
int64_t wg__llama_ordered_heads(const wg__llama_sizes *sizes, const char *name);

/* The tensors of a LLaMA, by layer those that have one. */
typedef enum wg__llama_dimension {
    WG__NONE,
    WG__WIDTH,
    WG__INNER,
    WG__KEYS,
    WG__VOCABULARY
} wg__llama_dimension;

typedef struct wg__llama_part {
    const char *published,
        *gguf; /* what follows "model.layers.N." and "blk.N.", or the whole name */
    bool by_layer;
    wg__llama_dimension rows, columns; /* columns WG__NONE: a vector */
} wg__llama_part;

typedef enum wg__llama_part_id {
    WG__TOKENS,
    WG__ATTENTION_NORM,
    WG__QUERY,
    WG__KEY,
    WG__VALUE,
    WG__OUTPUT,
    WG__NET_NORM,
    WG__GATE,
    WG__DOWN,
    WG__UP,
    WG__NORM,
    WG__HEAD,
    WG__PART_COUNT
} wg__llama_part_id;

extern const wg__llama_part wg__llama_parts[WG__PART_COUNT];

/* The published name of a part, of `layer` if it has layers. Returns `buffer`. */
const char *wg__llama_published(char *buffer, size_t size, wg__llama_part_id part, int64_t layer);

/* Its shape; returns the number of dimensions. */
int wg__llama_shape(const wg__llama_sizes *sizes, wg__llama_part_id part, int64_t *shape);

/* A name of one naming in the other, in `buffer`; false if there is none. */
bool wg__llama_to_gguf(char *buffer, size_t size, const char *published);
bool wg__llama_from_gguf(char *buffer, size_t size, const char *gguf);

#endif
