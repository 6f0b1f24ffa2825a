/* GPT-2's alphabet: every byte as one printable character, so that vocabularies of bytes are text.
 * Bytes that print stand for themselves (! to ~, U+00A1 to U+00AC, U+00AE to U+00FF), the others
 * for U+0100, U+0101... in their order: a space is U+0120. */
#ifndef WG_DATA_TOKENIZER_BYTE_LEVEL_H
#define WG_DATA_TOKENIZER_BYTE_LEVEL_H

#include <stdint.h>

/* Writes a byte's character as UTF-8 and returns its length, 1 or 2. */
int64_t wg__byte_to_letter(unsigned char byte, char letter[2]);

/* The byte of the letter that `text` begins with, and the letter's length; -1 if it is none. */
int wg__letter_to_byte(const char *text, int64_t length, int64_t *letter_length);

#endif
