/* Growing arrays. Their capacity doubles, so that appending n elements costs O(n). */
#include <string.h>

#include "base/array.h"
#include "base/internal.h"

void *wg__grow(void *block, int64_t used, int64_t *capacity, int64_t wanted, size_t element_size) {
    if (block && wanted <= *capacity)
        return block;
    int64_t larger = *capacity < 8 ? 16 : *capacity < INT64_MAX / 2 ? *capacity * 2 : wanted;
    if (larger < wanted)
        larger = wanted;
    void *grown = wg__alloc_array(larger, element_size);
    if (!grown)
        return NULL;
    if (block)
        memcpy(grown, block, (size_t)used * element_size);
    wg__free(block);
    *capacity = larger;
    return grown;
}

int wg__text_append(wg__text *text, const void *bytes, int64_t length) {
    char *grown =
        wg__grow(text->bytes, text->length, &text->capacity, text->length + length + 1, 1);
    if (!grown)
        return -1;
    text->bytes = grown;
    memcpy(grown + text->length, bytes, (size_t)length);
    text->length += length;
    grown[text->length] = '\0';
    return 0;
}
