/* Results: see results.h. */
#include "cli/results.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"

json_t *wg__json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *wg__json_metrics(const wg_metrics *metrics, const char *const *means, const char *counted,
                         const char *weight) {
    json_t *object = json_object();
    for (; *means; means++)
        json_object_set_new(object, *means, wg__json_number(wg_metrics_get(metrics, *means)));
    json_object_set_new(object, weight,
                        json_integer((json_int_t)wg_metrics_weight(metrics, counted)));
    return object;
}

static void print(json_t *object, size_t layout) {
    json_dumpf(object, stdout, layout | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}

void wg__print_json(json_t *object) {
    print(object, JSON_INDENT(2));
}

void wg__print_json_line(json_t *object) {
    print(object, 0);
}

static int fail(const char *path) {
    return wg_fail(WG_ERROR_IO, "results", "cannot write %s: %s", path, strerror(errno));
}

FILE *wg__results_open(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path);
    return file;
}

int wg__results_close(FILE *file, const char *path) {
    const bool written = fflush(file) == 0 && !ferror(file);
    const int reason = errno;
    const bool closed = fclose(file) == 0;
    if (!written)
        errno = reason;
    return written && closed ? 0 : fail(path);
}
