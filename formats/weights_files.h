/* Tensor files of all formats. The format of an existing file is detected from its content; a new
 * file's format is chosen by name.
 *
 *     format        is                                     read  written  metadata
 *     hdf5          wengert's checkpoint                   yes   yes      config, tokenizer
 *     safetensors   one file, or shards by an index.json   yes   yes      none
 *     pytorch       the zip of torch.save: .bin, .pt       yes   no       none
 *     llama2c       llama2.c's .bin, versions 0 and 1      yes   yes      config
 *     gguf          llama.cpp's                            yes   yes      config, of a LLaMA
 *
 *     wg_weights *file = wg_weights_open("model.safetensors");
 *     for (int64_t i = 0; i < wg_weights_count(file); i++)
 *         use(wg_weights_name(file, i), wg_weights_read(file, i));
 *     wg_weights_close(file);
 *
 * Names are the published ones (model.layers.0.self_attn.q_proj.weight). llama2c and gguf store
 * other names or none, and pair neighbouring rows of q and k for the rotation. Reading and writing
 * translate the names, and reorder these rows to the published halves and back. */
#ifndef WG_FORMATS_WEIGHTS_FILES_H
#define WG_FORMATS_WEIGHTS_FILES_H

#include "../data/tokenizer/tokenizer.h"
#include "../io/weights/weights.h"

WG_BEGIN_DECLS

/* Opens a file of any format, detected from its first bytes and its suffix; of a folder,
 * model.safetensors, model.safetensors.index.json, pytorch_model.bin or
 * pytorch_model.bin.index.json, the first of these that it has. Only the list is read yet. Closed
 * with wg_weights_close. NULL with [NOT_FOUND, IO, MEMORY; FORMAT, naming the fault and its place]
 */
WG_API wg_weights *wg_weights_open(const char *path);

/* Begins a file of that format, which will become `path` when it is committed. `infos` need not
 * outlive the call. NULL with [ARGUMENT for a format that is not written, a type that it does not
 * have, or tensors that are not its model's; NOT_FOUND, IO, MEMORY] */
WG_API wg_weights_writer *wg_weights_create(const char *path, const char *format,
                                            const wg_weights_options *options, int64_t count,
                                            const wg_weights_info *infos);

/* The format that is written under a name with that suffix, or NULL. */
const char *wg__weights_format_by_suffix(const char *path);

/* True if a file of that format keeps that tokenizer, JSON of wg_tokenizer_to_json: hdf5 any; gguf
 * LLaMA's (SentencePiece BPE) and the byte-level BPE of GPT-2 and LLaMA 3. */
bool wg__weights_keeps_tokenizer(const char *format, const char *tokenizer);

WG_END_DECLS

#endif
