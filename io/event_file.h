/* Event files that TensorBoard reads: scalars and texts of a run, with their step and time.
 *
 *     wg_event_file *events = wg__event_file_open("runs/a", time);   a new file in the folder
 *     wg__event_file_scalar(events, "train/loss", 6.5);
 *     wg__event_file_scalar(events, "train/lr", 1e-3);
 *     if (wg__event_file_end(events, step, time) < 0)                  one event with both
 *         ...
 *     wg__event_file_close(events);
 *
 * A file is a row of records, TFRecord's: the length as u64, its checksum, the bytes of a protocol
 * buffer (tensorflow.Event), and their checksum; numbers are little-endian, and a checksum is
 * CRC32C, rotated right by 15 bits plus 0xa282ead8. An event is written whole when it is ended, or
 * not at all. */
#ifndef WG_IO_EVENT_FILE_H
#define WG_IO_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/internal.h"

typedef struct wg_event_file wg_event_file;

/* Makes a file whose name no other has, in a folder, which is made if it is not there. Times are
 * seconds since 1970. NULL with [IO, NOT_FOUND for a folder above that is not there; MEMORY] */
WG__COMMAND wg_event_file *wg__event_file_open(const char *folder, double time);

/* Closes the file; an event that was not ended is dropped. NULL is allowed. */
WG__COMMAND void wg__event_file_close(wg_event_file *file);

/* The path of the file, borrowed. */
const char *wg__event_file_path(const wg_event_file *file);

/* Adds to the current event a number, or a text, which TensorBoard shows as Markdown. [MEMORY] */
WG__COMMAND int wg__event_file_scalar(wg_event_file *file, const char *tag, double value);
WG__COMMAND int wg__event_file_text(wg_event_file *file, const char *tag, const char *text);

/* Writes the event and begins an empty one. After a failure the file is as it was before the event,
 * which is dropped. -1 with [IO: disk full and so on; MEMORY], or when an error was pending. */
WG__COMMAND int wg__event_file_end(wg_event_file *file, int64_t step, double time);

/* The CRC32C (Castagnoli) of some bytes: RFC 3720, appendix B.4. */
uint32_t wg__crc32c(const void *bytes, size_t count);

#endif
