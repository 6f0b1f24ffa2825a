/* Results on stdout, for people and as JSON. */
#ifndef WG_CLI_RESULTS_H
#define WG_CLI_RESULTS_H

#include <jansson.h>

#include "train/metrics.h"

/* Prints what an evaluation of BERT's pre-training found. */
void wg__print_bert_results(const wg_metrics *metrics);

/* The same as a JSON object, which the caller frees by json_decref. */
json_t *wg__bert_results_json(const wg_metrics *metrics);

/* A JSON number; null for one that is not finite, which JSON cannot write. */
json_t *wg__json_number(double value);

/* Prints a JSON object to stdout, indented, and frees it. */
void wg__print_json(json_t *object);

#endif
