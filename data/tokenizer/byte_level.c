/* GPT-2's alphabet of bytes. See byte_level.h. */
#include <stdbool.h>

#include "data/tokenizer/byte_level.h"

/* The bytes that do not print, in order: 0 to 0x20, 0x7F to 0xA0, 0xAD. */
#define LOW 0x21             /* of them below '!' */
#define MIDDLE (0xA0 - 0x7E) /* from 0x7F on */

static int character_of(unsigned char byte) {
    if (byte < LOW)
        return 0x100 + byte;
    if (byte >= 0x7F && byte <= 0xA0)
        return 0x100 + LOW + byte - 0x7F;
    return byte == 0xAD ? 0x100 + LOW + MIDDLE : byte;
}

static int byte_of(int character) {
    if (character < 0x100)
        return character_of((unsigned char)character) == character ? character : -1;
    int number = character - 0x100;
    return number < LOW             ? number
           : number < LOW + MIDDLE  ? number - LOW + 0x7F
           : number == LOW + MIDDLE ? 0xAD
                                    : -1;
}

int64_t wg__byte_to_letter(unsigned char byte, char letter[2]) {
    int character = character_of(byte);
    if (character < 0x80) {
        letter[0] = (char)character;
        return 1;
    }
    letter[0] = (char)(0xC0 | character >> 6);
    letter[1] = (char)(0x80 | (character & 0x3F));
    return 2;
}

int wg__letter_to_byte(const char *text, int64_t length, int64_t *letter_length) {
    const unsigned char *bytes = (const unsigned char *)text;
    if (length < 1)
        return -1;
    if (bytes[0] < 0x80) {
        *letter_length = 1;
        return byte_of(bytes[0]);
    }
    if (length < 2 || (bytes[0] & 0xE0) != 0xC0)
        return -1;
    *letter_length = 2;
    return byte_of((bytes[0] & 0x1F) << 6 | (bytes[1] & 0x3F));
}
