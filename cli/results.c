/* Results on stdout: see results.h. */
#include "cli/results.h"

#include <math.h>
#include <stdio.h>

json_t *wg__json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
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
