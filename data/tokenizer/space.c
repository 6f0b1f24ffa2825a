/* White space: U+0009..000D, 0020, 0085, 00A0, 1680, 2000..200A, 2028, 2029, 202F, 205F, 3000. */
#include <stdbool.h>

#include "data/tokenizer/space.h"

int64_t wg__space_length(const char *text, int64_t length) {
    const unsigned char *b = (const unsigned char *)text;
    if (length < 1)
        return 0;
    if (b[0] < 0x80)
        return b[0] == ' ' || (b[0] >= '\t' && b[0] <= '\r');
    if (length >= 2 && b[0] == 0xC2)
        return b[1] == 0x85 || b[1] == 0xA0 ? 2 : 0;
    if (length < 3 || b[0] < 0xE1 || b[0] > 0xE3)
        return 0;
    int character = (b[0] & 0xF) << 12 | (b[1] & 0x3F) << 6 | (b[2] & 0x3F);
    bool space = character == 0x1680 || (character >= 0x2000 && character <= 0x200A) ||
                 character == 0x2028 || character == 0x2029 || character == 0x202F ||
                 character == 0x205F || character == 0x3000;
    return space ? 3 : 0;
}
