/* The events of a profile in Chrome's format: see trace.h. */
#include "io/trace.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tensor/profile.h"

static int write_event(FILE *file, const wg_profile_event *event) {
    json_t *arguments = json_object();
    if (*event->shapes)
        json_object_set_new(arguments, "operands", json_string(event->shapes));
    if (event->flops > 0 && event->seconds > 0)
        json_object_set_new(arguments, "gflops", json_real(1e-9 * event->flops / event->seconds));
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:o}", "name", event->name, "cat",
                  wg_profile_kind_name(event->kind), "ph", "X", "ts", 1e6 * event->start, "dur",
                  1e6 * event->seconds, "pid", 1, "tid", event->thread, "args", arguments);
    const int status = object ? json_dumpf(object, file, JSON_REAL_PRECISION(12)) : -1;
    json_decref(object);
    return status;
}

static int write_events(FILE *file) {
    const int64_t count = wg_profile_events(NULL);
    int status = fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n", file);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        status = write_event(file, wg_profile_event_at(i));
        if (status >= 0 && i + 1 < count)
            status = fputs(",\n", file);
    }
    return status < 0 || fputs("\n]}\n", file) < 0 ? -1 : 0;
}

int wg_trace_write(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        return wg_fail(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, path,
                       "cannot be written: %s", strerror(errno));
    errno = 0;
    int status = write_events(file), reason = errno;
    if (fclose(file) != 0 && status == 0) {
        status = -1;
        reason = errno;
    }
    return status < 0 ? wg_fail(WG_ERROR_IO, path, "cannot be written: %s",
                                reason ? strerror(reason) : "the trace is no JSON")
                      : 0;
}
