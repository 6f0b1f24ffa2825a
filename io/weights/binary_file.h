/* Binary files: read at any offset of a known size, and written beside their place, then renamed.
 */
#ifndef WG_IO_WEIGHTS_BINARY_FILE_H
#define WG_IO_WEIGHTS_BINARY_FILE_H

#include <stdint.h>

#include "base/api.h"

/* ---- Reading ---- */

typedef struct wg__input {
    char *path;
    int descriptor;
    int64_t size;
} wg__input;

/* Opens a regular file; {NULL, -1, 0} and -1 with NOT_FOUND, IO, MEMORY. */
int wg__input_open(wg__input *input, const char *path);
void wg__input_close(wg__input *input);

/* Reads exactly so many bytes; -1 with FORMAT if the file has no such bytes, or IO. */
int wg__input_read(const wg__input *input, int64_t offset, void *out, int64_t count);

/* A text that grows; {0} is empty. NUL-terminated once something was added. */
typedef struct wg__buffer {
    char *bytes;
    int64_t count, capacity;
} wg__buffer;

/* Appends bytes. [MEMORY] */
int wg__buffer_add(wg__buffer *buffer, const void *bytes, int64_t count);
void wg__buffer_free(wg__buffer *buffer);

/* The whole of a file that is no longer than `most`, followed by a NUL, freed with wg__free. NULL
 * with NOT_FOUND, IO, MEMORY, or FORMAT if it is longer. */
char *wg__read_whole(const char *path, int64_t most, int64_t *count);

/* PATH/NAME, or NAME beside the file PATH; freed with wg__free. NULL with MEMORY. */
char *wg__path_in(const char *folder, const char *name);
char *wg__path_beside(const char *path, const char *name);

/* ---- Little-endian numbers at any address ---- */

uint16_t wg__le16(const void *bytes);
uint32_t wg__le32(const void *bytes);
uint64_t wg__le64(const void *bytes);
void wg__put_le16(void *bytes, uint16_t value);
void wg__put_le32(void *bytes, uint32_t value);
void wg__put_le64(void *bytes, uint64_t value);

/* ---- Writing ---- */

typedef struct wg__output wg__output;

/* Begins a file beside `path`. NULL with NOT_FOUND, IO, MEMORY. */
wg__output *wg__output_create(const char *path);

/* Writes at an offset; gaps become zeros. [IO] */
int wg__output_write(wg__output *output, int64_t offset, const void *bytes, int64_t count);

/* Syncs it, so that what is left to do is quick and seldom fails. [IO] */
int wg__output_sync(wg__output *output);

/* Syncs it, renames it over its path, and frees it in every case; or removes it. */
int wg__output_commit(wg__output *output);
void wg__output_abort(wg__output *output);

#endif
