/* Arrays and texts: see array.h and internal.h. */
#include <string.h>

#include "base/array.h"
#include "base/internal.h"

void *wg__try_alloc_array(int64_t count, size_t element_size) {
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, element_size, &bytes))
        return NULL;
    return wg__try_alloc(bytes);
}

void *wg__alloc_array(int64_t count, size_t element_size) {
    size_t bytes;
    if (count >= 0 && !__builtin_mul_overflow((size_t)count, element_size, &bytes))
        return wg__alloc(bytes);
    wg_fail(WG_ERROR_MEMORY, "alloc", "no memory for %lld times %zu bytes", (long long)count,
            element_size);
    return NULL;
}

void *wg__calloc(size_t count, size_t size) {
    void *block = wg__alloc_array(count > INT64_MAX ? -1 : (int64_t)count, size);
    return block ? memset(block, 0, count * size) : NULL;
}

int64_t wg__times(int64_t a, int64_t b) {
    const int64_t most = (int64_t)1 << 60;
    int64_t product;
    const bool is_counted = a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, &product);
    return is_counted && product < most ? product : most;
}

char *wg__strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = wg__alloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

char *wg_text_new(const char *text) {
    return text ? wg__strdup(text) : NULL;
}

void wg_text_free(char *text) {
    wg__free(text);
}

/* The capacity doubles, so that appending n elements costs O(n). */
int wg__reserve(void *items, int64_t used, int64_t *capacity, int64_t wanted, size_t element_size) {
    void *block;
    memcpy(&block, items, sizeof block);
    if (block && wanted <= *capacity)
        return 0;
    const int64_t doubled = *capacity < 8 ? 16 : *capacity < INT64_MAX / 2 ? *capacity * 2 : wanted;
    const int64_t larger = wg__larger(doubled, wanted);
    void *grown = wg__alloc_array(larger, element_size);
    if (!grown)
        return -1;
    if (block)
        memcpy(grown, block, (size_t)used * element_size);
    wg__free(block);
    memcpy(items, &grown, sizeof grown);
    *capacity = larger;
    return 0;
}

int wg__text_append(wg__text *text, const void *bytes, int64_t length) {
    if (wg__reserve(&text->bytes, text->length, &text->capacity, text->length + length + 1, 1) < 0)
        return -1;
    memcpy(text->bytes + text->length, bytes, (size_t)length);
    text->length += length;
    text->bytes[text->length] = '\0';
    return 0;
}

/* Merges runs of 1, 2, 4, ... indices back and forth between both halves of a block. */
int64_t *wg__sorted_indices(int64_t first, int64_t end, wg__index_comparison compare,
                            const void *context) {
    const int64_t count = end - first;
    int64_t *order = wg__alloc_array(wg__times(count + 1, 2), sizeof *order);
    for (int64_t i = 0; order && i < count; i++)
        order[i] = first + i;
    for (int64_t run = 1; order && run < count; run *= 2) {
        memcpy(order + count, order, (size_t)count * sizeof *order);
        const int64_t *from = order + count;
        for (int64_t begin = 0; begin < count; begin += 2 * run) {
            const int64_t middle = wg__smaller(begin + run, count),
                          stop = wg__smaller(begin + 2 * run, count);
            for (int64_t i = begin, j = middle, k = begin; k < stop; k++)
                order[k] = j == stop || (i < middle && compare(from[i], from[j], context) <= 0)
                               ? from[i++]
                               : from[j++];
        }
    }
    return order;
}

int wg__largest_first(int64_t a, int64_t b, const void *values) {
    const double x = ((const double *)values)[a], y = ((const double *)values)[b];
    return (x < y) - (x > y);
}
