/* The simplest tokenizers: one token a character, as char-rnn and nanoGPT do for Shakespeare, or
 * one a byte. Any text that they encode decodes to exactly that text. */
#ifndef WG_DATA_TOKENIZER_CHARACTERS_H
#define WG_DATA_TOKENIZER_CHARACTERS_H

#include "tokenizer.h"

WG_BEGIN_DECLS

/* The tokenizer of bytes: 256 tokens, <0x00> to <0xFF>; the id of a byte is its value. Freed with
 * wg_tokenizer_free. [MEMORY] */
WG_API wg_tokenizer *wg_byte_new(void);

typedef struct wg_char_training {
    bool unknown; /* the first token is <unk>, for characters that the text does not have; without
                   * it such characters cannot be encoded */
} wg_char_training;

/* The tokenizer of the characters of a text, in order of code points. U+0000, which a token cannot
 * hold, is written <0x00>. Freed with wg_tokenizer_free.
 * [FORMAT for text that is not UTF-8, or empty] */
WG_API wg_tokenizer *wg_char_train(const char *text, int64_t length,
                                   const wg_char_training *training);

/* The same from text files together. [also NOT_FOUND, IO] */
WG_API wg_tokenizer *wg_char_train_files(int count, const char *const *paths,
                                         const wg_char_training *training);

WG_END_DECLS

#endif
