/* Text files as a whole, and UTF-8. See text_file.h. */
#include <string.h>

#include "data/dataset/mmap.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

char *wg__text_file_read(const char *path, int64_t *length, const char *where) {
    wg__text_map map;
    char *bytes = NULL;
    if (wg__text_map_open(&map, path, where) == 0)
        bytes = wg__alloc((size_t)map.length + 1);
    if (bytes) {
        memcpy(bytes, map.bytes, (size_t)map.length);
        bytes[map.length] = '\0';
        *length = map.length;
    }
    wg__text_map_close(&map);
    return bytes;
}

/* ---- UTF-8 ---- */

int64_t wg__utf8_invalid(const char *text, int64_t length) {
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text;
    int64_t i = 0;
    while (i < length) {
        if (bytes[i] < 0x80) {
            i++;
            continue;
        }
        utf8proc_int32_t character;
        utf8proc_ssize_t size = utf8proc_iterate(bytes + i, length - i, &character);
        if (size <= 0)
            return i;
        i += size;
    }
    return -1;
}

int wg__utf8_check(const char *text, int64_t length, const char *name, const char *where) {
    int64_t offset = wg__utf8_invalid(text, length);
    if (offset < 0)
        return 0;
    int64_t line = 1;
    for (int64_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return wg_fail(WG_ERROR_FORMAT, where,
                   "%s is not UTF-8: line %lld, byte %lld is 0x%02x; convert it, for example with "
                   "iconv -f latin1 -t utf-8",
                   name, (long long)line, (long long)offset, (unsigned char)text[offset]);
}

int wg__append_replaced(wg__text *out, const char *text, const char *from, const char *to) {
    for (const char *found; from && (found = strstr(text, from)); text = found + strlen(from))
        if (wg__text_append(out, text, found - text) < 0 ||
            wg__text_append(out, to, (int64_t)strlen(to)) < 0)
            return -1;
    return wg__text_append(out, text, (int64_t)strlen(text));
}

/* U+0009..000D, 0020, 0085, 00A0, 1680, 2000..200A, 2028, 2029, 202F, 205F, 3000. */
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
