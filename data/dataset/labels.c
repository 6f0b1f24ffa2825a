/* The labels of a classification: see labels.h. */
#include "data/dataset/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tensor/internal.h"

int64_t wg__labels_find(const wg__labels *labels, const char *name) {
    for (int64_t i = 0; i < labels->count; i++)
        if (strcmp(labels->names[i], name) == 0)
            return i;
    return -1;
}

int64_t wg__labels_add(wg__labels *labels, const char *name) {
    const int64_t found = wg__labels_find(labels, name);
    if (found >= 0)
        return found;
    if (labels->count == WG_LABELS_MOST)
        return wg_fail(WG_ERROR_FORMAT, "labels",
                       "there are more than %d different labels, as \"%.40s\": is the last column "
                       "the label?",
                       WG_LABELS_MOST, name);
    if (wg__reserve(&labels->names, labels->count, &labels->capacity, labels->count + 1,
                    sizeof *labels->names) < 0)
        return -1;
    labels->names[labels->count] = wg__strdup(name);
    return labels->names[labels->count] ? labels->count++ : -1;
}

/* The value of a text that is a whole number and nothing else. */
static bool read_number(const char *text, long long *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* By value; 1 and 01, which have the same value, by their texts. */
static int compare_numbers(const void *a, const void *b) {
    long long left = 0, right = 0;
    read_number(*(char *const *)a, &left);
    read_number(*(char *const *)b, &right);
    return left != right ? (left > right) - (left < right) : compare_texts(a, b);
}

void wg__labels_sort(wg__labels *labels) {
    bool numbers = true;
    long long value;
    for (int64_t i = 0; i < labels->count && numbers; i++)
        numbers = read_number(labels->names[i], &value);
    if (labels->count > 0)
        qsort(labels->names, (size_t)labels->count, sizeof *labels->names,
              numbers ? compare_numbers : compare_texts);
}

int wg__labels_copy(wg__labels *copy, const wg__labels *labels) {
    *copy = (wg__labels){0};
    for (int64_t i = 0; i < labels->count; i++)
        if (wg__labels_add(copy, labels->names[i]) < 0) {
            wg__labels_free(copy);
            return -1;
        }
    return 0;
}

bool wg__labels_equal(const wg__labels *a, const wg__labels *b) {
    if (a->count != b->count)
        return false;
    for (int64_t i = 0; i < a->count; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return false;
    return true;
}

void wg__labels_free(wg__labels *labels) {
    for (int64_t i = 0; i < labels->count; i++)
        wg__free(labels->names[i]);
    wg__free(labels->names);
    *labels = (wg__labels){0};
}
