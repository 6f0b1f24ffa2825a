/* The labels of a classification: texts, numbered 0, 1, 2... */
#ifndef WG_DATA_DATASET_LABELS_H
#define WG_DATA_DATASET_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../base/api.h"

WG_BEGIN_DECLS

/* {0} is empty; freed with wg_labels_free. */
typedef struct wg_labels {
    char **names; /* UTF-8, all different */
    int64_t count, capacity;
} wg_labels;

/* The most labels of a classification. A file with more most likely has texts in the label column.
 */
enum { WG_LABELS_MOST = 4096 };

/* The number of a label, added if it is new. [MEMORY; FORMAT beyond WG_LABELS_MOST] */
WG_API int64_t wg_labels_add(wg_labels *labels, const char *name);

/* The number of a label, or -1. */
WG_API int64_t wg_labels_find(const wg_labels *labels, const char *name);

/* Sorts labels: by value if all are whole numbers, else by their bytes. */
WG_API void wg_labels_sort(wg_labels *labels);

/* Makes `copy` the same labels; {0} after an error. [MEMORY] */
WG_API int wg_labels_copy(wg_labels *copy, const wg_labels *labels);

/* True if both have the same labels in the same order. */
WG_API bool wg_labels_equal(const wg_labels *a, const wg_labels *b);

/* Frees the names and makes it {0}. */
WG_API void wg_labels_free(wg_labels *labels);

WG_END_DECLS

#endif
