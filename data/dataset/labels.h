/* The labels of a classification: texts, numbered 0, 1, 2... */
#ifndef WG_DATA_DATASET_LABELS_H
#define WG_DATA_DATASET_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../base/api.h"

/* {0} is empty; freed with wg__labels_free. */
typedef struct wg__labels {
    char **names; /* UTF-8, all different */
    int64_t count, capacity;
} wg__labels;

/* The most labels of a classification. A file with more most likely has texts in the label column.
 */
enum { WG_LABELS_MOST = 4096 };

/* The number of a label, added if it is new. [MEMORY; FORMAT beyond WG_LABELS_MOST] */
int64_t wg__labels_add(wg__labels *labels, const char *name);

/* The number of a label, or -1. */
int64_t wg__labels_find(const wg__labels *labels, const char *name);

/* Sorts labels: by value if all are whole numbers, else by their bytes. */
void wg__labels_sort(wg__labels *labels);

/* Makes `copy` the same labels; {0} after an error. [MEMORY] */
int wg__labels_copy(wg__labels *copy, const wg__labels *labels);

/* True if both have the same labels in the same order. */
bool wg__labels_equal(const wg__labels *a, const wg__labels *b);

/* Frees the names and makes it {0}. */
void wg__labels_free(wg__labels *labels);

#endif
