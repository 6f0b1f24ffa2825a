/* Converts a model from one published format into another, tensor by tensor: memory stays near the
 * size of the largest tensor.
 *
 *     run.h5, .hdf5      wengert's checkpoint          read and written
 *     model.safetensors  with config.json beside it    read and written
 *     FOLDER             config.json, model.safetensors (or several, or pytorch_model.bin), and the
 *                        tokenizer's files             read and written
 *     .bin, .pt, .pth    torch.save's zip              read, with config.json beside it; of the
 *                        checkpoint of a trainer, {"model": ..., "optimizer": ...}, the model
 *     .bin               llama2.c's                    read and written
 *     .gguf              llama.cpp's                   read and written, a LLaMA's */
#ifndef WG_FORMATS_CONVERT_H
#define WG_FORMATS_CONVERT_H

#include "../io/weights/weights.h"

WG_BEGIN_DECLS

typedef struct wg_convert_options {
    const char *config;    /* a config.json; NULL: from IN, or from IN's folder */
    const char *tokenizer; /* a file or folder of wg_tokenizer_load; NULL: from IN */
    const char *prefix;    /* of the model's names in IN, if IN also holds other tensors: an
                              optimizer's. NULL: it is searched */
    const char *adapter;   /* a folder with a LoRA adapter of PEFT's, which is added to the weights;
                              NULL: none is */
    bool adapter_only;     /* OUT becomes a PEFT folder with the adapter of IN, a checkpoint of a
                              LoRA training; type, tokenizer and so on are ignored */
    wg_weights_type type;  /* of the numbers in OUT */
    int version;           /* of llama2.c's format */
    int64_t shard_bytes;   /* of tensors in a file of safetensors at most; 0: one file has all */

    /* Receives notes: which part of IN was taken, heads that are not in IN, a tokenizer that was
     * not found. NULL: no notes. */
    void (*note)(const char *message, void *context);
    void *context;
} wg_convert_options;

typedef struct wg_convert_summary {
    const char *type;      /* the model_type: "bert", "gpt2"... */
    const char *from, *to; /* formats, as wg__weights_format_name names them */
    int64_t tensors, numbers;
    bool tokenizer; /* OUT has one */
} wg_convert_summary;

/* Converts `in` to `out`. Files appear under their names when they are whole; nothing is left of a
 * failure, nor the folder unless it was there. Strict: every missing, unexpected and misshapen
 * tensor is listed in one error; BERT's heads alone may be missing, and begin as the paper's code
 * begins. `summary` may be NULL. [NOT_FOUND, IO, FORMAT, ARGUMENT, MEMORY] */
WG_API int wg_convert(const char *in, const char *out, const wg_convert_options *options,
                      wg_convert_summary *summary);

WG_END_DECLS

#endif
