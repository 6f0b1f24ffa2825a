/* The tokenizer.bin of karpathy/llama2.c: LLaMA's SentencePiece BPE as its export.py writes it.
 *
 *     int32       the length of the longest token
 *     per token   float32 score, int32 length, bytes       little-endian, up to the end of the file
 *
 * Tokens 0 to 2 are <unk>, <s> and </s>, 3 to 258 the bytes. Spaces stand as spaces. A text has a
 * space put before it; a character that is no token is its bytes; then those neighbours are joined
 * first that make the token of the best score. The ids equal those of run.c, but that no text
 * becomes <s> or </s> unless special tokens are asked for. */
#ifndef WG_DATA_TOKENIZER_LLAMA2C_H
#define WG_DATA_TOKENIZER_LLAMA2C_H

#include "tokenizer.h"

WG_BEGIN_DECLS

/* Reads such a file. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT for a file cut short, or without the tokens named above] */
WG_API wg_tokenizer *wg_llama2c_load(const char *path);

WG_END_DECLS

#endif
