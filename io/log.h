/* Metric logs, one JSON object a line, appended to a file; and profiles as traces.
 *
 *     wg_metric_log *log = wg_metric_log_open("run.jsonl");
 *     wg_metric_log_integer(log, "step", 7);
 *     wg_metric_log_number(log, "loss", 6.5);
 *     if (wg_metric_log_end_line(log) < 0)        {"step": 7, "loss": 6.5}
 *         ...
 *     wg_metric_log_close(log);
 *
 * A line is written whole when it is ended, or not at all. */
#ifndef WG_IO_LOG_H
#define WG_IO_LOG_H

#include <stdint.h>

#include "../base/api.h"

WG_BEGIN_DECLS

typedef struct wg_metric_log wg_metric_log;

/* Opens a file for appending, and creates it if it does not exist. If its last line was cut off,
 * the next begins on a line of its own. NULL with [IO, NOT_FOUND for a folder that is not there,
 * MEMORY] */
WG_API wg_metric_log *wg_metric_log_open(const char *path);

/* Closes the file; a line that was not ended is dropped. NULL is allowed. */
WG_API void wg_metric_log_close(wg_metric_log *log);

/* Adds a member to the current line. A number that is not finite is written as null, as JSON has no
 * other way. -1 with [MEMORY; FORMAT for text that is not UTF-8] */
WG_API int wg_metric_log_integer(wg_metric_log *log, const char *name, int64_t value);
WG_API int wg_metric_log_number(wg_metric_log *log, const char *name, double value);
WG_API int wg_metric_log_text(wg_metric_log *log, const char *name, const char *value);

/* Writes the line and begins an empty one. After a failure the file is as it was before the line,
 * which is dropped. -1 with [IO: disk full and so on; MEMORY], or when an error was pending. */
WG_API int wg_metric_log_end_line(wg_metric_log *log);

/* Writes the events that wg_profile_begin(true) recorded (tensor/profile.h) as JSON in Chrome's
 * format, which chrome://tracing and Perfetto open: one complete event each, with name, category
 * (forward, backward, region), thread, microseconds, and as arguments the shapes of the operands
 * and, where there were products, GFLOP/s. -1 with [IO: disk full and so on; NOT_FOUND for a folder
 * that is not there; MEMORY] */
WG_API int wg_trace_write(const char *path);

WG_END_DECLS

#endif
