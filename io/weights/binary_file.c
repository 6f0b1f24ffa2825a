/* Binary files and the storage of elements: see binary_file.h. */
#include "io/weights/binary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replacement.h"
#include "tensor/internal.h"
#include "tensor/quantize_rows.h"

int64_t wg__read_at(int descriptor, void *out, int64_t count, int64_t offset) {
    int64_t done = 0;
    while (done < count) {
        const ssize_t got =
            pread(descriptor, (char *)out + done, (size_t)(count - done), (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += got;
    }
    return done;
}

int wg__input_open(wg__input *input, const char *path) {
    *input = (wg__input){.descriptor = -1, .path = wg__strdup(path)};
    struct stat status;
    if (!input->path)
        return -1;
    input->descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int result = 0;
    if (input->descriptor < 0 || fstat(input->descriptor, &status) < 0)
        result = wg__fail_with_errno(path, "file");
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
    const int64_t got = wg__read_at(input->descriptor, out, count, offset);
    if (got < 0)
        return wg__fail_with_errno(input->path, "file");
    return got == count
               ? 0
               : wg_fail(WG_ERROR_IO, "file", "%s became shorter while it was read", input->path);
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

char *wg__joined(const char *first, const char *second, const char *third) {
    /* cppcheck-suppress ctunullpointer ; io/settings.c joins the key of an object, which has one */
    const size_t size = strlen(first) + strlen(second) + strlen(third) + 1;
    char *text = wg__alloc(size);
    if (text)
        snprintf(text, size, "%s%s%s", first, second, third);
    return text;
}

char *wg__path_in(const char *folder, const char *name) {
    return wg__joined(folder, "/", name);
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

void wg__put_le(void *bytes, uint64_t value, int count) {
    uint8_t *b = bytes;
    for (int i = 0; i < count; i++)
        b[i] = (uint8_t)(value >> 8 * i);
}

int wg__append_varint(wg__text *out, uint64_t value) {
    uint8_t bytes[10];
    int count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    return wg__text_append(out, bytes, count);
}

int wg__append_field(wg__text *out, int number, const void *bytes, int64_t count) {
    enum { BYTES = 2 }; /* the wire type */
    if (wg__append_varint(out, (uint64_t)number << 3 | BYTES) < 0 ||
        wg__append_varint(out, (uint64_t)count) < 0)
        return -1;
    return wg__text_append(out, bytes ? bytes : "", count);
}

uint32_t wg__crc(const void *bytes, size_t count, uint32_t polynomial) {
    const uint8_t *at = bytes;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    }
    return ~crc;
}

int wg__output_write(const wg__replacement *output, int64_t offset, const void *bytes,
                     int64_t count) {
    return wg__write_at(output->descriptor, bytes, count, offset) < 0
               ? wg__fail_with_errno(output->path, "file")
               : 0;
}

int wg__write_whole(const char *path, const char *bytes, int64_t count, bool newline) {
    wg__replacement output;
    if (wg_error_pending() || wg__replacement_begin(&output, path, "file") < 0)
        return -1;
    const bool written = wg__output_write(&output, 0, bytes, count) == 0 &&
                         wg__output_write(&output, count, "\n", newline) == 0 &&
                         wg__replacement_finish(&output, "file") == 0;
    wg__replacement_end(&output);
    return written ? 0 : -1;
}

const wg__storage_kind wg__storage_kinds[] = {
    [WG__STORAGE_F64] = {"f64", WG_F64, 1, 8},     [WG__STORAGE_F32] = {"f32", WG_F32, 1, 4},
    [WG__STORAGE_F16] = {"f16", WG_F32, 1, 2},     [WG__STORAGE_BF16] = {"bf16", WG_BF16, 1, 2},
    [WG__STORAGE_I64] = {"i64", WG_I64, 1, 8},     [WG__STORAGE_I32] = {"i32", WG_I32, 1, 4},
    [WG__STORAGE_U8] = {"u8", WG_U8, 1, 1},        [WG__STORAGE_BOOL] = {"bool", WG_BOOL, 1, 1},
    [WG__STORAGE_Q8_0] = {"q8_0", WG_F32, 32, 34}, [WG__STORAGE_Q4_0] = {"q4_0", WG_F32, 32, 18},
};

int64_t wg__storage_bytes(wg__storage_dtype storage, int ndim, const int64_t *shape) {
    int64_t count = 1;
    bool is_empty = false;
    for (int i = 0; i < ndim; i++) {
        is_empty |= shape[i] == 0;
        if (shape[i] < 0 || (shape[i] > 0 && __builtin_mul_overflow(count, shape[i], &count)))
            return -1;
    }
    if (count > ((int64_t)1 << 58))
        return -1;
    const int64_t block = wg__storage_kinds[storage].block;
    if (block > 1 && (ndim == 0 || shape[ndim - 1] % block != 0))
        return -1;
    return is_empty ? 0 : count / block * wg__storage_kinds[storage].block_bytes;
}

static void decode_plain(size_t size, int64_t count, const uint8_t *bytes, void *out) {
    memcpy(out, bytes, size * (size_t)count);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    uint8_t *to = out;
    for (int64_t i = 0; i < count; i++)
        for (size_t j = 0; j < size; j++)
            to[(size_t)i * size + j] = bytes[(size_t)i * size + size - 1 - j];
#endif
}

void wg__storage_decode(wg__storage_dtype storage, int64_t count, const uint8_t *bytes, void *out) {
    float *numbers = out;
    switch (storage) {
    case WG__STORAGE_F16:
        for (int64_t i = 0; i < count; i++)
            numbers[i] = wg__half_to_f32(wg__le16(bytes + 2 * i));
        break;
    case WG__STORAGE_BOOL:
        for (int64_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = bytes[i] != 0;
        break;
    case WG__STORAGE_Q8_0:
        wg__dequantize_row(WG_QUANTIZATION_Q8_0, count, bytes, numbers);
        break;
    case WG__STORAGE_Q4_0:
        wg__dequantize_row(WG_QUANTIZATION_Q4_0, count, bytes, numbers);
        break;
    default:
        decode_plain((size_t)wg__storage_kinds[storage].block_bytes, count, bytes, out);
    }
}

void wg__storage_encode(wg__storage_dtype storage, int64_t count, const void *in, uint8_t *bytes) {
    const float *numbers = in;
    switch (storage) {
    case WG__STORAGE_F16:
        for (int64_t i = 0; i < count; i++)
            wg__put_le(bytes + 2 * i, wg__f32_to_half(numbers[i]), 2);
        break;
    case WG__STORAGE_BF16:
        for (int64_t i = 0; i < count; i++)
            wg__put_le(bytes + 2 * i, wg__f32_to_bf16(numbers[i]), 2);
        break;
    case WG__STORAGE_Q8_0:
        wg__quantize_row(WG_QUANTIZATION_Q8_0, count, numbers, bytes);
        break;
    default:
        decode_plain((size_t)wg__storage_kinds[storage].block_bytes, count, in, bytes);
    }
}
