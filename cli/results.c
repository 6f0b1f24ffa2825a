/* Results on stdout: see results.h. */
#include "cli/results.h"

#include <math.h>
#include <stdio.h>

json_t *wg__json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

void wg__print_json(json_t *object) {
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}
