/* Texts of any size, mapped into memory: see mmap.h. */
#include "data/dataset/mmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system.h"
#include "data/tokenizer/text_file.h"
#include "io/weights/binary_file.h"
#include "tensor/internal.h"

/* Pages are released in steps of so many bytes, a multiple of every page size. */
#define PASS_STEP (4 << 20)

static int fail(const char *path, const char *where) {
    return wg_fail(errno == ENOENT || errno == ENOTDIR ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, where,
                   "cannot read %s: %s%s", path, strerror(errno),
                   errno == EISDIR ? "; name the files in it" : "");
}

/* Opens a file without a name in the folder for temporary files; negative with errno. */
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

/* Copies all that can be read from a descriptor to an empty file; negative with errno. */
static int copy(int from, int to) {
    char buffer[1 << 16];
    for (int64_t at = 0;;) {
        const ssize_t count = read(from, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return (int)count;
        if (wg__write_at(to, buffer, count, at) < 0)
            return -1;
        at += count;
    }
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

static int map_copy(wg__text_map *map, int descriptor) {
    struct stat status;
    const int temporary = open_temporary();
    int result = temporary < 0 ? -1 : copy(descriptor, temporary);
    if (result == 0)
        result = fstat(temporary, &status);
    if (result == 0 && status.st_size > 0)
        result = map_bytes(map, temporary, status.st_size);
    const int reason = errno;
    if (temporary >= 0)
        close(temporary);
    errno = reason;
    return result;
}

static int map_file(wg__text_map *map, int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) < 0)
        return -1;
    map->modified = wg__modified(&status);
    if (S_ISREG(status.st_mode) && status.st_size > 0 &&
        map_bytes(map, descriptor, status.st_size) == 0)
        return 0;
    return map_copy(map, descriptor);
}

int wg__text_map_open(wg__text_map *map, const char *path, const char *where) {
    *map = wg__text_map_of("", 0);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail(path, where);
    const int status = map_file(map, descriptor) < 0 ? fail(path, where) : 0;
    close(descriptor);
    return status;
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
    if (at < map->passed) /* another pass */
        map->passed = at / PASS_STEP * PASS_STEP;
    if (at - map->passed < PASS_STEP)
        return;
    const int64_t until = at / PASS_STEP * PASS_STEP;
    wg__release_pages((char *)map->mapping + map->passed, (size_t)(until - map->passed));
    map->passed = until;
}

void wg__text_map_rest(wg__text_map *map) {
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
