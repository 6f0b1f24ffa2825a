/* SentencePiece's precompiled table of character rules. See charsmap.h. */
#include <string.h>

#include "data/tokenizer/charsmap.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

#define WHERE "charsmap"

/* ---- Units: the parts of 32 bits, as darts-clone packs them ---- */

static uint32_t unit_at(const wg__charsmap *map, uint64_t i) {
    const unsigned char *b = map->units + 4 * i;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool has_leaf(uint32_t unit) {
    return unit >> 8 & 1;
}

static uint32_t value_of(uint32_t unit) {
    return unit & 0x7FFFFFFF;
}

/* The byte by which the unit was reached; a leaf has its top bit set and so is none. */
static uint32_t label_of(uint32_t unit) {
    return unit & 0x800000FF;
}

static uint64_t offset_of(uint32_t unit) {
    return (uint64_t)(unit >> 10) << ((unit & 0x200) >> 6);
}

/* ---- The table ---- */

int wg__charsmap_set(wg__charsmap *map, const char *blob, int64_t length) {
    const unsigned char *b = (const unsigned char *)blob;
    if (length < 4)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "the character rules are cut short");
    int64_t trie = b[0] | (int64_t)b[1] << 8 | (int64_t)b[2] << 16 | (int64_t)b[3] << 24;
    if (trie % 4 != 0 || trie == 0 || trie >= length - 4)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "the character rules say that their trie has %lld bytes, of %lld in all",
                       (long long)trie, (long long)length);
    const char *texts = blob + 4 + trie;
    int64_t texts_length = length - 4 - trie;
    if (texts[texts_length - 1] != '\0' || wg__utf8_invalid(texts, texts_length) >= 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "the replacements of the character rules are not UTF-8 closed by NUL");
    map->blob = wg__alloc((size_t)length);
    if (!map->blob)
        return -1;
    memcpy(map->blob, blob, (size_t)length);
    map->length = length;
    map->units = (const unsigned char *)map->blob + 4;
    map->unit_count = trie / 4;
    map->texts = map->blob + 4 + trie;
    map->texts_length = texts_length;
    return 0;
}

void wg__charsmap_clear(wg__charsmap *map) {
    wg__free(map->blob);
    *map = (wg__charsmap){0};
}

static bool continues_character(char byte) {
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* The text of the leaf below the node at `node`; NULL for what a broken table says. */
static const char *text_of_leaf(const wg__charsmap *map, uint64_t node) {
    if (node >= (uint64_t)map->unit_count)
        return NULL;
    uint32_t value = value_of(unit_at(map, node));
    if (value >= map->texts_length || continues_character(map->texts[value]))
        return NULL;
    return map->texts + value;
}

const char *wg__charsmap_find(const wg__charsmap *map, const char *text, int64_t length,
                              bool shortest, int64_t *matched) {
    const char *found = NULL;
    if (map->unit_count == 0)
        return NULL;
    uint64_t node = offset_of(unit_at(map, 0));
    for (int64_t i = 0; i < length && !(found && shortest); i++) {
        unsigned char byte = (unsigned char)text[i];
        node ^= byte;
        if (node >= (uint64_t)map->unit_count)
            break;
        uint32_t unit = unit_at(map, node);
        if (label_of(unit) != byte)
            break;
        node ^= offset_of(unit);
        if (!has_leaf(unit) || (i + 1 < length && continues_character(text[i + 1])))
            continue;
        const char *replacement = text_of_leaf(map, node);
        if (replacement) {
            found = replacement;
            *matched = i + 1;
        }
    }
    return found;
}
