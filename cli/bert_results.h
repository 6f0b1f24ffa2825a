/* What an evaluation of BERT's pre-training found, for people and as JSON. */
#ifndef WG_CLI_BERT_RESULTS_H
#define WG_CLI_BERT_RESULTS_H

#include <jansson.h>

#include "train/metrics.h"

/* Prints the results to stdout. */
void wg__print_bert_results(const wg_metrics *metrics);

/* The same as a JSON object, which the caller frees by json_decref. */
json_t *wg__bert_results_json(const wg_metrics *metrics);

/* Prints a JSON object to stdout, indented, and frees it. */
void wg__print_json(json_t *object);

#endif
