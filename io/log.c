/* Metric logs, and profiles as traces.
 *
 * A log is opened for appending and each line is one write, so that readers see whole lines, also
 * after the process is killed. Only a crash of the system within a write can leave half a line; a
 * newline ends it when the log is opened again. If the disk is full, half a line is cut off. */
#include "io/internal.h"
#include "io/trace.h"

#include "base/json.h"
#include "base/replacement.h"
#include "tensor/internal.h"
#include "tensor/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct wg__metric_log {
    char *path; /* for messages */
    int file;
    json_t *line;      /* not ended yet */
    bool mend_newline; /* the file ends in the middle of a line */
};

wg__metric_log *wg__metric_log_open(const char *path) {
    if (!path || wg_error_pending())
        return NULL;
    wg__metric_log *log = wg__calloc(1, sizeof *log);
    if (!log)
        return NULL;
    log->file = -1;
    log->path = wg__strdup(path);
    log->line = json_object();
    if (!log->line)
        wg_fail(WG_ERROR_MEMORY, "log", "no memory for %s", path);
    struct stat status;
    char last = '\n';
    if (log->path && log->line)
        log->file = open(log->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    const bool is_open = log->file >= 0 && fstat(log->file, &status) == 0 &&
                         (!S_ISREG(status.st_mode) || status.st_size == 0 ||
                          pread(log->file, &last, 1, status.st_size - 1) >= 0);
    log->mend_newline = last != '\n';
    if (is_open)
        return log;
    if (log->path && log->line)
        wg__fail_with_errno(log->path, "log");
    wg__metric_log_close(log);
    return NULL;
}

void wg__metric_log_close(wg__metric_log *log) {
    if (!log)
        return;
    if (log->file >= 0)
        close(log->file);
    json_decref(log->line);
    wg__free(log->path);
    wg__free(log);
}

int wg__metric_log_integer(wg__metric_log *log, const char *name, int64_t value) {
    return log ? wg__json_set(log->line, name, json_integer(value), "log") : -1;
}

int wg__metric_log_number(wg__metric_log *log, const char *name, double value) {
    if (!log)
        return -1;
    return wg__json_set(log->line, name, isfinite(value) ? json_real(value) : json_null(), "log");
}

/* Writes all bytes or none: a part that was written before an error is cut off again. */
static int write_whole(wg__metric_log *log, const char *bytes, size_t count) {
    off_t end = lseek(log->file, 0, SEEK_END);
    size_t done = 0;
    while (done < count) {
        ssize_t written = write(log->file, bytes + done, count - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            wg__fail_with_errno(log->path, "log");
            if (done > 0 && ftruncate(log->file, end) < 0)
                log->mend_newline = true;
            return -1;
        }
        done += (size_t)written;
    }
    log->mend_newline = false;
    return 0;
}

int wg__metric_log_end_line(wg__metric_log *log) {
    if (!log || wg_error_pending())
        return -1;
    char *text = wg__json_text(log->line, log->mend_newline ? "\n{" : "{", ", ", "}\n");
    json_object_clear(log->line);
    if (!text)
        return -1;
    int status = write_whole(log, text, strlen(text));
    wg__free(text);
    return status;
}

int wg_trace_write(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        return wg_fail(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, path,
                       "cannot be written: %s", strerror(errno));
    errno = 0;
    int64_t count;
    const wg_profile_event *events = wg__profile_events(&count, NULL);
    int status = fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n", file);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        const wg_profile_event *event = &events[i];
        json_t *arguments = json_object();
        if (*event->shapes)
            wg__json_put(&arguments, "operands", json_string(event->shapes));
        if (event->flops > 0 && event->seconds > 0)
            wg__json_put(&arguments, "gflops", json_real(1e-9 * event->flops / event->seconds));
        json_t *object = json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:o}", "name", event->name,
                                   "cat", wg__profile_kind_name(event->kind), "ph", "X", "ts",
                                   1e6 * event->start, "dur", 1e6 * event->seconds, "pid", 1, "tid",
                                   event->thread, "args", arguments);
        status = object ? json_dumpf(object, file, JSON_REAL_PRECISION(12)) : -1;
        json_decref(object);
        if (status >= 0 && i + 1 < count)
            status = fputs(",\n", file);
    }
    const bool written = status >= 0 && fputs("\n]}\n", file) >= 0;
    const int reason = errno;
    if (fclose(file) == 0 && written)
        return 0;
    return wg_fail(WG_ERROR_IO, path, "cannot be written: %s",
                   written  ? strerror(errno)
                   : reason ? strerror(reason)
                            : "the trace is no JSON");
}
