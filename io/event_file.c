/* Event files for TensorBoard: see internal.h. Messages are written by hand: a field is its key,
 * number << 3 | wire type, and its value, as a varint (0), 8 bytes (1), a length and bytes (2) or 4
 * bytes (5). Of tensorflow's event.proto, summary.proto and tensor.proto:
 *
 *     Event            wall_time = 1 double   step = 2 int64   file_version = 3   summary = 5
 *     Summary          value = 1
 *     Summary.Value    tag = 1   simple_value = 2 float   tensor = 8   metadata = 9
 *     TensorProto      dtype = 1 (7: string)   tensor_shape = 2   string_val = 8
 *     SummaryMetadata  plugin_data = 1 { plugin_name = 1 }                                      */
#include "io/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "io/weights/binary_file.h"

#define WHERE "event file"

enum { VARINT = 0, BYTES_8 = 1, BYTES = 2, BYTES_4 = 5 };

struct wg_event_file {
    char *path;
    int file;
    wg__text summary; /* the values of the current event */
};

/* add_value and write_record check for the errors of the functions that append. */

static void put_le(wg__text *out, uint64_t value, int count) {
    uint8_t bytes[8];
    wg__put_le(bytes, value, count);
    wg__text_append(out, bytes, count);
}

static void put_time(wg__text *event, double time) {
    uint64_t bits;
    memcpy(&bits, &time, sizeof bits);
    wg__append_varint(event, 1 << 3 | BYTES_8);
    put_le(event, bits, 8);
}

/* Adds a value to the summary, whole or not at all, and frees it. */
static int add_value(wg_event_file *file, wg__text *value) {
    const int64_t before = file->summary.length;
    wg__append_field(&file->summary, 1, value->bytes, value->length);
    wg__free(value->bytes);
    if (!wg_error_pending())
        return 0;
    file->summary.length = before;
    return -1;
}

static void put_crc(wg__text *record, const void *bytes, int64_t count) {
    const uint32_t crc = wg__crc(bytes, (size_t)count, WG__CRC32C);
    put_le(record, (crc >> 15 | crc << 17) + 0xa282ead8u, 4);
}

/* Writes an event, whole or not at all, and frees it. */
static int write_record(wg_event_file *file, wg__text *event) {
    wg__text record = {0};
    put_le(&record, (uint64_t)event->length, 8);
    if (!wg_error_pending()) {
        put_crc(&record, record.bytes, 8);
        wg__text_append(&record, event->bytes, event->length);
        put_crc(&record, event->bytes, event->length);
    }
    if (!wg_error_pending()) {
        const off_t end = lseek(file->file, 0, SEEK_END);
        if (wg__write_at(file->file, record.bytes, record.length, end) < 0) {
            const int reason = errno;
            if (ftruncate(file->file, end) < 0)
                errno = reason; /* a reader stops at the cut record */
            errno = reason;
            wg__fail_with_errno(file->path, WHERE);
        }
    }
    wg__free(record.bytes);
    wg__free(event->bytes);
    return wg_error_pending() ? -1 : 0;
}

wg_event_file *wg__event_file_open(const char *folder, double time) {
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
    char host[64] = "localhost", name[192];
    if (gethostname(host, sizeof host - 1) < 0)
        strcpy(host, "localhost");
    /* TensorBoard reads a folder's files in the order of their names. */
    for (int number = 0; number < 1000 && file->file < 0; number++) {
        snprintf(name, sizeof name, "events.out.tfevents.%010lld.%.60s.%ld.%d", (long long)time,
                 host, (long)getpid(), number);
        wg__free(file->path);
        file->path = wg__path_in(folder, name);
        if (file->path)
            file->file = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (!file->path || (file->file < 0 && errno != EEXIST))
            break;
    }
    if (file->path && file->file < 0)
        wg__fail_with_errno(file->path, WHERE);
    if (file->file >= 0) {
        wg__text version = {0};
        put_time(&version, time);
        wg__append_field(&version, 3, "brain.Event:2", 13);
        if (write_record(file, &version) == 0)
            return file;
    }
    wg__event_file_close(file);
    return NULL;
}

void wg__event_file_close(wg_event_file *file) {
    if (!file)
        return;
    if (file->file >= 0)
        close(file->file);
    wg__free(file->summary.bytes);
    wg__free(file->path);
    wg__free(file);
}

const char *wg__event_file_path(const wg_event_file *file) {
    return file->path;
}

int wg__event_file_scalar(wg_event_file *file, const char *tag, double value) {
    if (!file || wg_error_pending())
        return -1;
    /* a cast beyond the range of float is undefined */
    const float rounded = value > 3.4028234e38    ? (float)INFINITY
                          : value < -3.4028234e38 ? -(float)INFINITY
                                                  : (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    wg__text message = {0};
    wg__append_field(&message, 1, tag, (int64_t)strlen(tag));
    wg__append_varint(&message, 2 << 3 | BYTES_4);
    put_le(&message, bits, 4);
    return add_value(file, &message);
}

int wg__event_file_text(wg_event_file *file, const char *tag, const char *text) {
    /* The shape (1). */
    static const char shape[] = {2 << 3 | BYTES, 2, 1 << 3 | VARINT, 1};
    static const char metadata[] = {1 << 3 | BYTES, 6, 1 << 3 | BYTES, 4, 't', 'e', 'x', 't'};
    if (!file || wg_error_pending())
        return -1;
    wg__text message = {0}, tensor = {0};
    wg__append_varint(&tensor, 1 << 3 | VARINT);
    wg__append_varint(&tensor, 7);
    wg__append_field(&tensor, 2, shape, sizeof shape);
    wg__append_field(&tensor, 8, text, (int64_t)strlen(text));
    wg__append_field(&message, 1, tag, (int64_t)strlen(tag));
    wg__append_field(&message, 8, tensor.bytes, tensor.length);
    wg__free(tensor.bytes);
    wg__append_field(&message, 9, metadata, sizeof metadata);
    return add_value(file, &message);
}

int wg__event_file_end(wg_event_file *file, int64_t step, double time) {
    if (!file || wg_error_pending())
        return -1;
    wg__text event = {0}, *summary = &file->summary;
    put_time(&event, time);
    if (step != 0) { /* a field that is 0 is left out */
        wg__append_varint(&event, 2 << 3 | VARINT);
        wg__append_varint(&event, (uint64_t)step);
    }
    wg__append_field(&event, 5, summary->bytes, summary->length);
    summary->length = 0;
    return write_record(file, &event);
}
