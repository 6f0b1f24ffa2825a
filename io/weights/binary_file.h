/* Binary files: read at any offset within a known size, and written beside their place, then
 * renamed; and how tensor files store elements: as little-endian numbers, halves, or blocks. */
#ifndef WG_IO_WEIGHTS_BINARY_FILE_H
#define WG_IO_WEIGHTS_BINARY_FILE_H

#include <stdint.h>

#include "base/array.h"
#include "base/replacement.h"
#include "tensor/tensor.h"

/* Reads a range of an open file, again after signals. Returns the number of bytes, fewer than
 * `count` at the end of the file. -1 with errno. */
int64_t wg__read_at(int descriptor, void *out, int64_t count, int64_t offset);

/* ---- Reading ---- */

typedef struct wg__input {
    char *path;
    int descriptor;
    int64_t size;
} wg__input;

/* Opens a regular file. -1, with *input closed, and NOT_FOUND, IO, MEMORY. */
int wg__input_open(wg__input *input, const char *path);
void wg__input_close(wg__input *input);

/* Reads `count` bytes. -1 with FORMAT if the file does not have them, or IO. */
int wg__input_read(const wg__input *input, int64_t offset, void *out, int64_t count);

/* The contents of a file of at most `most` bytes, followed by a NUL; freed with wg__free. NULL with
 * NOT_FOUND, IO, MEMORY, or FORMAT if it is longer. */
char *wg__read_whole(const char *path, int64_t most, int64_t *count);

/* Three texts joined; freed with wg__free. NULL with MEMORY. */
char *wg__joined(const char *first, const char *second, const char *third);

/* PATH/NAME, or NAME beside the file PATH; freed with wg__free. NULL with MEMORY. */
char *wg__path_in(const char *folder, const char *name);
char *wg__path_beside(const char *path, const char *name);

/* ---- Little-endian numbers at any address ---- */

uint16_t wg__le16(const void *bytes);
uint32_t wg__le32(const void *bytes);
uint64_t wg__le64(const void *bytes);

/* Writes the lower `count` bytes of a value. */
void wg__put_le(void *bytes, uint64_t value, int count);

/* ---- Protocol buffers: a number as varint; a field of bytes, or of a message ---- */

int wg__append_varint(wg__text *out, uint64_t value);
int wg__append_field(wg__text *out, int number, const void *bytes, int64_t count);

/* ---- Checksums of 32 bits, by a polynomial with its bits reflected ---- */

#define WG__CRC32 0xedb88320u  /* of zlib, gzip and PNG, as Python's zlib.crc32 */
#define WG__CRC32C 0x82f63b78u /* Castagnoli's: RFC 3720, appendix B.4 */
uint32_t wg__crc(const void *bytes, size_t count, uint32_t polynomial);

/* ---- Writing ---- */

/* Writes at an offset of a file that replaces another; gaps become zeros. [IO] */
int wg__output_write(const wg__replacement *output, int64_t offset, const void *bytes,
                     int64_t count);

/* Writes a file of these bytes and, if `newline`, a newline after them. [NOT_FOUND, IO, MEMORY] */
int wg__write_whole(const char *path, const char *bytes, int64_t count, bool newline);

/* ---- How elements are stored ---- */

typedef enum wg__storage_dtype {
    WG__STORAGE_F64,
    WG__STORAGE_F32,
    WG__STORAGE_F16,
    WG__STORAGE_BF16,
    WG__STORAGE_I64,
    WG__STORAGE_I32,
    WG__STORAGE_U8,
    WG__STORAGE_BOOL,
    WG__STORAGE_Q8_0, /* 32 numbers: an f16 scale and 32 signed bytes */
    WG__STORAGE_Q4_0, /* 32 numbers: an f16 scale and 16 bytes of two numbers, less 8, each */
} wg__storage_dtype;

typedef struct wg__storage_kind {
    const char *name;           /* "f16", "q8_0"... */
    wg_dtype read_as;           /* the dtype of the tensor that is read */
    int64_t block, block_bytes; /* numbers and bytes of a block; block is 1 except Q8_0, Q4_0 */
} wg__storage_kind;

extern const wg__storage_kind wg__storage_kinds[]; /* by wg__storage_dtype */

/* A tensor's bytes; -1 if its rows are no whole blocks, or it has more than 2^58 elements. */
int64_t wg__storage_bytes(wg__storage_dtype storage, int ndim, const int64_t *shape);

/* Decodes `count` elements into memory of the dtype `read_as`. Booleans become 0 or 1. Encodes f32
 * as F16, BF16 or Q8_0, and every other kind from the dtype `read_as`. */
void wg__storage_decode(wg__storage_dtype storage, int64_t count, const uint8_t *bytes, void *out);
void wg__storage_encode(wg__storage_dtype storage, int64_t count, const void *in, uint8_t *bytes);

#endif
