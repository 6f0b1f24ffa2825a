/* Results on stdout, as JSON. */
#ifndef WG_CLI_RESULTS_H
#define WG_CLI_RESULTS_H

#include <jansson.h>

/* A JSON number; null for one that is not finite, which JSON cannot write. */
json_t *wg__json_number(double value);

/* Prints a JSON object to stdout, indented, and frees it. */
void wg__print_json(json_t *object);

/* The same on one line. */
void wg__print_json_line(json_t *object);

#endif
