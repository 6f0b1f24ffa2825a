/* Event files for TensorBoard: see event_file.h. Messages are written by hand: a field is its key,
 * number << 3 | wire type, and its value, as a varint (0), 8 bytes (1), a length and bytes (2) or 4
 * bytes (5). Of tensorflow's event.proto, summary.proto and tensor.proto:
 *
 *     Event            wall_time = 1 double   step = 2 int64   file_version = 3   summary = 5
 *     Summary          value = 1
 *     Summary.Value    tag = 1   simple_value = 2 float   tensor = 8   metadata = 9
 *     TensorProto      dtype = 1 (7: string)   tensor_shape = 2   string_val = 8
 *     SummaryMetadata  plugin_data = 1 { plugin_name = 1 }                                      */
#include "io/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "io/weights/binary_file.h"
#include "tensor/internal.h"

#define WHERE "event file"

enum { VARINT = 0, BYTES_8 = 1, BYTES = 2, BYTES_4 = 5 };

struct wg_event_file {
    char *path;
    int file;
    wg__text summary; /* the values of the current event */
};

/* ---- CRC32C, by the polynomial 0x1edc6f41, bits reflected ---- */

uint32_t wg__crc32c(const void *bytes, size_t count) {
    const uint8_t *at = bytes;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static uint32_t masked_crc(const void *bytes, size_t count) {
    const uint32_t crc = wg__crc32c(bytes, count);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* ---- Protocol buffers ---- */

static int put_varint(wg__text *out, uint64_t value) {
    uint8_t bytes[10];
    int count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    return wg__text_append(out, bytes, count);
}

static int put_key(wg__text *out, int field, int type) {
    return put_varint(out, (uint64_t)(field << 3 | type));
}

static int put_bytes(wg__text *out, int field, const void *bytes, int64_t count) {
    return put_key(out, field, BYTES) < 0 || put_varint(out, (uint64_t)count) < 0 ||
                   wg__text_append(out, bytes, count) < 0
               ? -1
               : 0;
}

/* The low bytes of a number, the lowest first. */
static int put_le(wg__text *out, uint64_t value, int count) {
    uint8_t bytes[8];
    for (int i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    return wg__text_append(out, bytes, count);
}

static int put_double(wg__text *out, int field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return put_key(out, field, BYTES_8) < 0 ? -1 : put_le(out, bits, 8);
}

static int put_float(wg__text *out, int field, double value) {
    /* a cast beyond the range of float is undefined */
    const float rounded = value > 3.4028234e38    ? (float)INFINITY
                          : value < -3.4028234e38 ? -(float)INFINITY
                                                  : (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return put_key(out, field, BYTES_4) < 0 ? -1 : put_le(out, bits, 4);
}

/* Appends a message that was made as a field, and frees it. */
static int put_message(wg__text *out, int field, wg__text *message, int status) {
    if (status == 0)
        status = put_bytes(out, field, message->bytes ? message->bytes : "", message->length);
    wg__free(message->bytes);
    return status;
}

/* ---- Records ---- */

/* Writes all bytes or none: a part that was written before an error is cut off again. */
static int write_whole(wg_event_file *file, const char *bytes, int64_t count) {
    const off_t end = lseek(file->file, 0, SEEK_END);
    int64_t done = 0;
    while (done < count) {
        const ssize_t written = write(file->file, bytes + done, (size_t)(count - done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            const int reason = errno;
            if (done > 0 && ftruncate(file->file, end) < 0)
                errno = reason; /* a reader stops at the cut record */
            errno = reason;
            return wg__fail_with_errno(file->path, WHERE);
        }
        done += written;
    }
    return 0;
}

static int write_record(wg_event_file *file, const wg__text *event) {
    wg__text record = {0};
    int status = put_le(&record, (uint64_t)event->length, 8);
    if (status == 0)
        status = put_le(&record, masked_crc(record.bytes, 8), 4);
    if (status == 0)
        status = wg__text_append(&record, event->bytes, event->length);
    if (status == 0)
        status = put_le(&record, masked_crc(event->bytes, (size_t)event->length), 4);
    if (status == 0)
        status = write_whole(file, record.bytes, record.length);
    wg__free(record.bytes);
    return status;
}

static int write_version(wg_event_file *file, double time) {
    static const char version[] = "brain.Event:2";
    wg__text event = {0};
    int status = put_double(&event, 1, time);
    if (status == 0)
        status = put_bytes(&event, 3, version, sizeof version - 1);
    if (status == 0)
        status = write_record(file, &event);
    wg__free(event.bytes);
    return status;
}

/* ---- Files ---- */

/* events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER: TensorBoard reads a folder's files in the order
 * of their names. */
static int create(wg_event_file *file, const char *folder, double time) {
    char host[64] = "localhost";
    if (gethostname(host, sizeof host - 1) < 0)
        strcpy(host, "localhost");
    for (int number = 0; number < 1000; number++) {
        char name[192];
        snprintf(name, sizeof name, "events.out.tfevents.%010lld.%.60s.%ld.%d", (long long)time,
                 host, (long)getpid(), number);
        wg__free(file->path);
        file->path = wg__path_in(folder, name);
        if (!file->path)
            return -1;
        file->file = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (file->file >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return wg__fail_with_errno(file->path, WHERE);
}

wg_event_file *wg_event_file_open(const char *folder, double time) {
    if (!folder || wg_error_pending())
        return NULL;
    if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
        wg__fail_with_errno(folder, WHERE);
        return NULL;
    }
    wg_event_file *file = wg__calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->file = -1;
    if (create(file, folder, time) == 0 && write_version(file, time) == 0)
        return file;
    wg_event_file_close(file);
    return NULL;
}

void wg_event_file_close(wg_event_file *file) {
    if (!file)
        return;
    if (file->file >= 0)
        close(file->file);
    wg__free(file->summary.bytes);
    wg__free(file->path);
    wg__free(file);
}

const char *wg_event_file_path(const wg_event_file *file) {
    return file->path;
}

/* ---- Events ---- */

int wg_event_file_scalar(wg_event_file *file, const char *tag, double value) {
    if (!file || wg_error_pending())
        return -1;
    wg__text message = {0};
    int status = put_bytes(&message, 1, tag, (int64_t)strlen(tag));
    if (status == 0)
        status = put_float(&message, 2, value);
    return put_message(&file->summary, 1, &message, status);
}

/* TensorProto of one string: a vector of length 1. */
static int put_string_tensor(wg__text *out, int field, const char *text) {
    static const char shape[] = {2 << 3 | BYTES, 2, 1 << 3 | VARINT, 1};
    wg__text tensor = {0};
    int status = put_key(&tensor, 1, VARINT) < 0 || put_varint(&tensor, 7) < 0 ? -1 : 0;
    if (status == 0)
        status = put_bytes(&tensor, 2, shape, sizeof shape);
    if (status == 0)
        status = put_bytes(&tensor, 8, text, (int64_t)strlen(text));
    return put_message(out, field, &tensor, status);
}

int wg_event_file_text(wg_event_file *file, const char *tag, const char *text) {
    static const char metadata[] = {1 << 3 | BYTES, 6, 1 << 3 | BYTES, 4, 't', 'e', 'x', 't'};
    if (!file || wg_error_pending())
        return -1;
    wg__text message = {0};
    int status = put_bytes(&message, 1, tag, (int64_t)strlen(tag));
    if (status == 0)
        status = put_string_tensor(&message, 8, text);
    if (status == 0)
        status = put_bytes(&message, 9, metadata, sizeof metadata);
    return put_message(&file->summary, 1, &message, status);
}

int wg_event_file_end(wg_event_file *file, int64_t step, double time) {
    if (!file || wg_error_pending())
        return -1;
    wg__text event = {0}, *summary = &file->summary;
    int status = put_double(&event, 1, time);
    if (status == 0 && step != 0) /* a field that is 0 is left out */
        status = put_key(&event, 2, VARINT) < 0 ? -1 : put_varint(&event, (uint64_t)step);
    if (status == 0)
        status = put_bytes(&event, 5, summary->bytes ? summary->bytes : "", summary->length);
    if (status == 0)
        status = write_record(file, &event);
    summary->length = 0;
    wg__free(event.bytes);
    return status;
}
