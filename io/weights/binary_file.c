/* Binary files. A new file is made under a temporary name of its own, so that a process that dies
 * leaves the old one. */
#include "io/weights/binary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/internal.h"

static int fail_with_errno(const char *path) {
    return wg_fail(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, "file", "%s: %s", path,
                   strerror(errno));
}

/* ---- Reading ---- */

int wg__input_open(wg__input *input, const char *path) {
    *input = (wg__input){.descriptor = -1, .path = wg__strdup(path)};
    struct stat status;
    if (!input->path)
        return -1;
    input->descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int result = 0;
    if (input->descriptor < 0 || fstat(input->descriptor, &status) < 0)
        result = fail_with_errno(path);
    else if (!S_ISREG(status.st_mode))
        result = wg_fail(WG_ERROR_IO, "file", "%s is not a regular file", path);
    else
        input->size = status.st_size;
    if (result < 0)
        wg__input_close(input);
    return result;
}

void wg__input_close(wg__input *input) {
    if (input->descriptor >= 0)
        close(input->descriptor);
    wg__free(input->path);
    *input = (wg__input){.descriptor = -1};
}

int wg__input_read(const wg__input *input, int64_t offset, void *out, int64_t count) {
    if (offset < 0 || count < 0 || offset > input->size || count > input->size - offset)
        return wg_fail(WG_ERROR_FORMAT, "file",
                       "%s ends too early: %lld bytes at %lld are wanted, it has %lld", input->path,
                       (long long)count, (long long)offset, (long long)input->size);
    char *to = out;
    while (count > 0) {
        ssize_t got = pread(input->descriptor, to, (size_t)count, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_with_errno(input->path);
        if (got == 0)
            return wg_fail(WG_ERROR_IO, "file", "%s became shorter while it was read", input->path);
        to += got;
        offset += got;
        count -= got;
    }
    return 0;
}

int wg__buffer_add(wg__buffer *buffer, const void *bytes, int64_t count) {
    if (buffer->count + count >= buffer->capacity) {
        int64_t capacity = 2 * (buffer->count + count) + 64;
        char *larger = wg__alloc((size_t)capacity);
        if (!larger)
            return -1;
        if (buffer->count)
            memcpy(larger, buffer->bytes, (size_t)buffer->count);
        wg__free(buffer->bytes);
        buffer->bytes = larger;
        buffer->capacity = capacity;
    }
    if (count)
        memcpy(buffer->bytes + buffer->count, bytes, (size_t)count);
    buffer->count += count;
    buffer->bytes[buffer->count] = '\0';
    return 0;
}

void wg__buffer_free(wg__buffer *buffer) {
    wg__free(buffer->bytes);
    *buffer = (wg__buffer){0};
}

char *wg__read_whole(const char *path, int64_t most, int64_t *count) {
    wg__input input;
    if (wg__input_open(&input, path) < 0)
        return NULL;
    char *bytes = NULL;
    if (input.size > most)
        wg_fail(WG_ERROR_FORMAT, "file", "%s has %lld bytes; at most %lld are read", path,
                (long long)input.size, (long long)most);
    else
        bytes = wg__alloc((size_t)input.size + 1);
    if (bytes && wg__input_read(&input, 0, bytes, input.size) < 0) {
        wg__free(bytes);
        bytes = NULL;
    }
    if (bytes)
        bytes[input.size] = '\0';
    if (count)
        *count = input.size;
    wg__input_close(&input);
    return bytes;
}

char *wg__path_in(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = wg__alloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

char *wg__path_beside(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash + 1 - path) : 0;
    size_t size = (size_t)length + strlen(name) + 1;
    char *result = wg__alloc(size);
    if (result)
        snprintf(result, size, "%.*s%s", length, path, name);
    return result;
}

/* ---- Little-endian numbers ---- */

uint16_t wg__le16(const void *bytes) {
    const uint8_t *b = bytes;
    return (uint16_t)(b[0] | b[1] << 8);
}

uint32_t wg__le32(const void *bytes) {
    const uint8_t *b = bytes;
    return (uint32_t)wg__le16(b) | (uint32_t)wg__le16(b + 2) << 16;
}

uint64_t wg__le64(const void *bytes) {
    const uint8_t *b = bytes;
    return (uint64_t)wg__le32(b) | (uint64_t)wg__le32(b + 4) << 32;
}

static void put(void *bytes, uint64_t value, int count) {
    uint8_t *b = bytes;
    for (int i = 0; i < count; i++)
        b[i] = (uint8_t)(value >> 8 * i);
}

void wg__put_le16(void *bytes, uint16_t value) {
    put(bytes, value, 2);
}

void wg__put_le32(void *bytes, uint32_t value) {
    put(bytes, value, 4);
}

void wg__put_le64(void *bytes, uint64_t value) {
    put(bytes, value, 8);
}

/* ---- Writing ---- */

struct wg__output {
    char *path, *temporary;
    int descriptor;
};

static void free_output(wg__output *output) {
    if (output->descriptor >= 0)
        close(output->descriptor);
    wg__free(output->temporary);
    wg__free(output->path);
    wg__free(output);
}

/* mkstemp makes files that only their owner reads; a new file has the mode that any other has, an
 * old one's successor the old one's. */
static mode_t mode_for(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0)
        return status.st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

wg__output *wg__output_create(const char *path) {
    if (wg_error_pending())
        return NULL;
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        wg_fail(WG_ERROR_IO, "file", "%s is not a regular file", path);
        return NULL;
    }
    wg__output *output = wg__calloc(1, sizeof *output);
    if (!output)
        return NULL;
    size_t size = strlen(path) + sizeof ".XXXXXX";
    *output = (wg__output){wg__strdup(path), wg__alloc(size), -1};
    if (output->path && output->temporary) {
        snprintf(output->temporary, size, "%s.XXXXXX", path);
        output->descriptor = mkstemp(output->temporary);
        if (output->descriptor < 0)
            fail_with_errno(path);
    }
    if (output->descriptor >= 0 && fchmod(output->descriptor, mode_for(path)) == 0)
        return output;
    if (output->descriptor >= 0) {
        fail_with_errno(path);
        unlink(output->temporary);
    }
    free_output(output);
    return NULL;
}

int wg__output_write(wg__output *output, int64_t offset, const void *bytes, int64_t count) {
    const char *from = bytes;
    while (count > 0) {
        ssize_t put = pwrite(output->descriptor, from, (size_t)count, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail_with_errno(output->path);
        from += put;
        offset += put;
        count -= put;
    }
    return 0;
}

int wg__output_sync(wg__output *output) {
    if (wg_error_pending())
        return -1;
    return fsync(output->descriptor) < 0 ? fail_with_errno(output->path) : 0;
}

int wg__output_commit(wg__output *output) {
    int status = wg__output_sync(output);
    if (status == 0 && rename(output->temporary, output->path) < 0)
        status = fail_with_errno(output->path);
    if (status < 0) {
        wg__output_abort(output);
        return -1;
    }
    free_output(output);
    return 0;
}

void wg__output_abort(wg__output *output) {
    if (!output)
        return;
    unlink(output->temporary);
    free_output(output);
}
