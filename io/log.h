/* Metric logs, one JSON object a line, appended to a file.
 *
 *     wg__metric_log *log = wg__metric_log_open("run.jsonl");
 *     wg__metric_log_integer(log, "step", 7);
 *     wg__metric_log_number(log, "loss", 6.5);
 *     if (wg__metric_log_end_line(log) < 0)        {"step": 7, "loss": 6.5}
 *         ...
 *     wg__metric_log_close(log);
 *
 * A line is written whole when it is ended, or not at all. */
#ifndef WG_IO_LOG_H
#define WG_IO_LOG_H

#include <stdint.h>

typedef struct wg__metric_log wg__metric_log;

/* Opens a file for appending, and creates it if it does not exist. If its last line was cut off,
 * the next begins on a line of its own. NULL with [IO, NOT_FOUND for a folder that is not there,
 * MEMORY] */
wg__metric_log *wg__metric_log_open(const char *path);

/* Closes the file; a line that was not ended is dropped. NULL is allowed. */
void wg__metric_log_close(wg__metric_log *log);

/* Adds a member to the current line. A number that is not finite is written as null, as JSON has no
 * other way. -1 with [MEMORY; FORMAT for text that is not UTF-8] */
int wg__metric_log_integer(wg__metric_log *log, const char *name, int64_t value);
int wg__metric_log_number(wg__metric_log *log, const char *name, double value);
int wg__metric_log_text(wg__metric_log *log, const char *name, const char *value);

/* Writes the line and begins an empty one. After a failure the file is as it was before the line,
 * which is dropped. -1 with [IO: disk full and so on; MEMORY], or when an error was pending. */
int wg__metric_log_end_line(wg__metric_log *log);

#endif
