/* Text files, lines and UTF-8: see text_file.h. */
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replacement.h"
#include "base/system.h"
#include "data/tokenizer/text_file.h"

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

int64_t wg__utf8_count(const char *text, int64_t length) {
    int64_t count = 0;
    for (int64_t at = 0; at < length; at += wg__utf8_length(text + at))
        count++;
    return count;
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

/* Pages are released in steps of 4 MiB, a multiple of every page size. */
#define PASS_STEP (4 << 20)

/* Opens an unnamed file in $TMPDIR or /tmp; negative with errno. */
static int open_temporary(void) {
    const char *folder = getenv("TMPDIR");
    char name[4096];
    const int length =
        snprintf(name, sizeof name, "%s/wengert-XXXXXX", folder && *folder ? folder : "/tmp");
    if (length >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int descriptor = mkostemp(name, O_CLOEXEC);
    if (descriptor >= 0)
        unlink(name);
    return descriptor;
}

/* Maps `length` bytes, at least one. */
static int map_bytes(wg__text_map *map, int descriptor, int64_t length) {
    void *mapping = mmap(NULL, (size_t)length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED)
        return -1;
    wg__read_in_order(mapping, (size_t)length);
    map->mapping = mapping;
    map->bytes = mapping;
    map->length = length;
    return 0;
}

/* Copies a descriptor to a temporary file, and maps the copy. */
static int map_copy(wg__text_map *map, int descriptor) {
    const int temporary = open_temporary();
    char buffer[1 << 16];
    int64_t length = 0;
    ssize_t count = temporary < 0 ? -1 : 1;
    while (count > 0) {
        while ((count = read(descriptor, buffer, sizeof buffer)) < 0 && errno == EINTR)
            ;
        if (count > 0 && wg__write_at(temporary, buffer, count, length) < 0)
            count = -1;
        length += count;
    }
    const int result = count == 0 && length > 0 ? map_bytes(map, temporary, length) : (int)count;
    const int reason = errno;
    if (temporary >= 0)
        close(temporary);
    errno = reason;
    return result;
}

int wg__text_map_open(wg__text_map *map, const char *path, const char *where) {
    *map = (wg__text_map){.bytes = ""};
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status = {0};
    int result = descriptor < 0 ? -1 : fstat(descriptor, &status);
    map->modified = result == 0 ? wg__modified(&status) : 0;
    if (result == 0 && (!S_ISREG(status.st_mode) || status.st_size == 0 ||
                        map_bytes(map, descriptor, status.st_size) < 0))
        result = map_copy(map, descriptor);
    if (result < 0)
        wg_fail(errno == ENOENT || errno == ENOTDIR ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, where,
                "cannot read %s: %s%s", path, strerror(errno),
                errno == EISDIR ? "; name the files in it" : "");
    if (descriptor >= 0)
        close(descriptor);
    return result;
}

wg__text_map wg__text_map_of(const char *text, int64_t length) {
    return (wg__text_map){.bytes = text, .length = length < 0 ? (int64_t)strlen(text) : length};
}

void wg__text_map_close(wg__text_map *map) {
    if (map->mapping)
        munmap(map->mapping, (size_t)map->length);
    *map = (wg__text_map){0};
}

void wg__text_map_pass(wg__text_map *map, int64_t at) {
    if (!map->mapping)
        return;
    if (at < map->passed) /* a new pass began */
        map->passed = at / PASS_STEP * PASS_STEP;
    if (at - map->passed < PASS_STEP)
        return;
    const int64_t until = at / PASS_STEP * PASS_STEP;
    wg__release_pages((char *)map->mapping + map->passed, (size_t)(until - map->passed));
    map->passed = until;
}

void wg__text_map_release(wg__text_map *map) {
    if (map->mapping)
        wg__release_pages(map->mapping, (size_t)map->length);
}

int wg__text_map_check(wg__text_map *map, const char *name, const char *where) {
    for (int64_t at = 0; at < map->length;) {
        int64_t end = at + PASS_STEP;
        for (int back = 0;
             back < 4 && end < map->length && ((unsigned char)map->bytes[end] & 0xc0) == 0x80;
             back++)
            end--;
        if (end > map->length)
            end = map->length;
        if (wg__utf8_invalid(map->bytes + at, end - at) >= 0)
            return wg__utf8_check(map->bytes, map->length, name, where);
        at = end;
        wg__text_map_pass(map, at);
    }
    return 0;
}

wg__trimmed_line wg__next_line(wg__text_map *text, int64_t *at) {
    wg__text_map_pass(text, *at);
    const char *begin = text->bytes + *at;
    const char *newline = memchr(begin, '\n', (size_t)(text->length - *at));
    const char *end = newline ? newline : text->bytes + text->length;
    *at = end - text->bytes + 1;
    wg__trimmed_line l = {.whole = begin,
                          .whole_length = end - begin,
                          .carriage_return = newline && end > begin && end[-1] == '\r'};
    while (begin < end && wg__is_blank(*begin))
        begin++;
    while (begin < end && wg__is_blank(end[-1]))
        end--;
    l.text = begin;
    l.length = end - begin;
    l.ends_document = l.length == WG__END_OF_TEXT_LENGTH &&
                      memcmp(begin, WG__END_OF_TEXT, WG__END_OF_TEXT_LENGTH) == 0;
    return l;
}
