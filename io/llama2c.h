/* llama2.c's .bin (export.py of karpathy/llama2.c): a header, then the tensors of a LLaMA one after
 * the other in f32, all layers of one part together.
 *
 *     version 0   7 x i32: dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size (negative:
 * the head is a tensor of its own), seq_len; tensors; tables of the rotation before the head
 *     version 1   256 bytes: "24ka" (0x616b3432), i32 1, those 7, u8 1 if the head is shared,
 * zeros; tensors, norms first
 */
#ifndef WG_IO_LLAMA2C_H
#define WG_IO_LLAMA2C_H

#include "io/llama_layout.h"

/* Calls `visit` for every tensor at its offset; its -1 ends the walk. Returns the size of the file
 * that has just these, or -1 with whatever error there is. */
typedef int (*wg__llama2c_visitor)(const char *name, const wg_spec *spec, int64_t offset,
                                   int64_t adjacent_heads, void *context);
int64_t wg__llama2c_walk(const wg__llama_sizes *sizes, int version, wg__llama2c_visitor visit,
                         void *context);

#endif
