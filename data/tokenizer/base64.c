/* Base64. See base64.h. */
#include <stdbool.h>
#include <string.h>

#include "data/tokenizer/base64.h"
#include "tensor/internal.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int wg__base64_encode(const char *bytes, int64_t length, wg__text *text) {
    const unsigned char *b = (const unsigned char *)bytes;
    for (int64_t i = 0; i < length; i += 3) {
        unsigned word = (unsigned)b[i] << 16 | (i + 1 < length ? (unsigned)b[i + 1] << 8 : 0) |
                        (i + 2 < length ? b[i + 2] : 0);
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63],
                        i + 1 < length ? digits[word >> 6 & 63] : '=',
                        i + 2 < length ? digits[word & 63] : '='};
        if (wg__text_append(text, four, 4) < 0)
            return -1;
    }
    return wg__text_append(text, "", 0);
}

static int digit_of(char c) {
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

int wg__base64_decode(const char *text, int64_t length, wg__text *bytes, const char *where) {
    for (int64_t i = 0; i < length; i += 4) {
        int padding = length - i < 4 || text[i + 3] != '=' ? 0 : text[i + 2] == '=' ? 2 : 1;
        unsigned word = 0;
        bool good = length - i >= 4 && (padding == 0 || i + 4 == length);
        for (int64_t j = 0; good && j < 4 - padding; j++) {
            int digit = digit_of(text[i + j]);
            good = digit >= 0;
            word |= (unsigned)digit << (18 - 6 * j);
        }
        if (!good)
            return wg_fail(WG_ERROR_FORMAT, where, "no base64 at byte %lld", (long long)i);
        char three[3] = {(char)(word >> 16), (char)(word >> 8), (char)word};
        if (wg__text_append(bytes, three, 3 - padding) < 0)
            return -1;
    }
    return wg__text_append(bytes, "", 0);
}
