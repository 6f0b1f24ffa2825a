/* Tokenizers as the files of other programs. Each of these appends a file to `out` and returns 1;
 * 0, without an error, if that format cannot say what this tokenizer does; -1 with MEMORY. */
#ifndef WG_DATA_TOKENIZER_EXPORT_H
#define WG_DATA_TOKENIZER_EXPORT_H

#include "data/tokenizer/sentencepiece_kind.h"

/* tokenizer.json of huggingface/tokenizers. WordPiece is said to fold rare characters as that
 * library does. huggingface_write.c */
int wg__huggingface_write(const wg_tokenizer *tokenizer, wg__text *out);

/* SentencePiece's tokenizer.model, also of llama2.c's kind. sentencepiece_write.c */
int wg__sentencepiece_write(const wg_tokenizer *tokenizer, wg__text *out);

/* llama2.c's tokenizer.bin, also of a SentencePiece BPE that is laid out as LLaMA's. llama2c.c */
int wg__llama2c_write(const wg_tokenizer *tokenizer, wg__text *out);

/* llama2.c's tokenizer as the SentencePiece BPE that it was: spaces are U+2581 and one stands
 * before each text. Freed with wg_tokenizer_free. [MEMORY; FORMAT if it has two names for a space]
 */
wg__pieces *wg__llama2c_pieces(const wg_tokenizer *tokenizer);

/* How a token that is read whole stands in a text. */
const char *wg__tokenizer_added_text(const wg_tokenizer *tokenizer, int32_t id);

/* Appends JSON as text. [MEMORY] */
int wg__dump_json(const json_t *json, size_t flags, wg__text *out);

#endif
