/* Applying and learning byte-pair merges. See merges.h. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/text_file.h"

/* Up to this number of ids, scanning all of them for each merge is faster than a heap. */
#define SHORT 48
#define NO_RANK INT32_MAX

static wg__pair *free_slot(wg__pair *slots, uint64_t mask, int32_t left, int32_t right) {
    uint64_t i = wg__pair_hash(left, right) & mask;
    while (slots[i].left >= 0)
        i = (i + 1) & mask;
    return &slots[i];
}

wg__pair *wg__pair_table_add(wg__pair_table *table, int32_t left, int32_t right) {
    wg__pair *slot = (wg__pair *)wg__pair_table_find(table, left, right);
    if (slot)
        return slot;
    uint64_t size = table->slots ? table->mask + 1 : 0;
    if ((uint64_t)(table->count + 1) * 2 > size) { /* at least half of the slots stay free */
        size = size ? size * 2 : 64;
        wg__pair *slots = wg__alloc_array(size, sizeof *slots);
        if (!slots)
            return NULL;
        memset(slots, 0xff, size * sizeof *slots); /* every number -1 */
        for (uint64_t i = 0; table->slots && i <= table->mask; i++) {
            const wg__pair *old = &table->slots[i];
            if (old->left >= 0)
                *free_slot(slots, size - 1, old->left, old->right) = *old;
        }
        wg__free(table->slots);
        table->slots = slots;
        table->mask = size - 1;
    }
    slot = free_slot(table->slots, table->mask, left, right);
    slot->left = left;
    slot->right = right;
    table->count++;
    return slot;
}

void wg__pair_table_clear(wg__pair_table *table) {
    wg__free(table->slots);
    *table = (wg__pair_table){0};
}

/* ---- Applying merges to few ids: scan all pairs for the best ---- */

typedef struct candidate {
    int32_t rank, joined;
} candidate;

static candidate candidate_of(const wg__pair_table *merges, int32_t left, int32_t right) {
    const wg__pair *pair = left < 0 ? NULL : wg__pair_table_find(merges, left, right);
    return pair ? (candidate){pair->first, pair->second} : (candidate){NO_RANK, -1};
}

static int64_t merge_short(const wg__pair_table *merges, int32_t *ids, int64_t count) {
    candidate pairs[SHORT]; /* of ids[i] and ids[i + 1] */
    for (int64_t i = 0; i + 1 < count; i++)
        pairs[i] = candidate_of(merges, ids[i], ids[i + 1]);
    while (count > 1) {
        int64_t best = 0;
        for (int64_t i = 1; i + 1 < count; i++)
            if (pairs[i].rank < pairs[best].rank)
                best = i;
        if (pairs[best].rank == NO_RANK)
            break;
        ids[best] = pairs[best].joined;
        count--;
        for (int64_t i = best + 1; i < count; i++) {
            ids[i] = ids[i + 1];
            pairs[i - 1] = pairs[i];
        }
        if (best > 0)
            pairs[best - 1] = candidate_of(merges, ids[best - 1], ids[best]);
        if (best + 1 < count)
            pairs[best] = candidate_of(merges, ids[best], ids[best + 1]);
    }
    return count;
}

/* ---- Applying merges to many ids ----
 * A linked list of the remaining ids, and a heap of the pairs that may be joined. Outdated entries
 * stay in the heap; pop's caller skips them. */

typedef struct entry {
    int32_t rank, at;
} entry;

typedef struct link {
    int32_t previous, next; /* -1: none */
    candidate pair; /* of this id and the next; NO_RANK if the id was joined to the previous one */
} link;

typedef struct entry_heap {
    entry *entries;
    int64_t count;
} entry_heap;

static bool entry_precedes(entry a, entry b) {
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static entry pop(entry_heap *heap) {
    entry top = heap->entries[0], last = heap->entries[--heap->count];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            entry_precedes(heap->entries[child + 1], heap->entries[child]))
            child++;
        if (!entry_precedes(heap->entries[child], last))
            break;
        heap->entries[i] = heap->entries[child];
        i = child;
    }
    heap->entries[i] = last;
    return top;
}

static void update_pair(const wg__pair_table *merges, const int32_t *ids, link *links, int32_t at,
                        entry_heap *heap) {
    if (at < 0)
        return;
    int32_t next = links[at].next;
    links[at].pair = next < 0 ? (candidate){NO_RANK, -1} : candidate_of(merges, ids[at], ids[next]);
    if (links[at].pair.rank != NO_RANK) {
        const entry added = {links[at].pair.rank, at};
        int64_t i = heap->count++;
        for (; i > 0 && entry_precedes(added, heap->entries[(i - 1) / 2]); i = (i - 1) / 2)
            heap->entries[i] = heap->entries[(i - 1) / 2];
        heap->entries[i] = added;
    }
}

static int64_t merge_long(const wg__pair_table *merges, int32_t *ids, int64_t length,
                          wg__merge_buffer *buffer) {
    if (length > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, "tokenizer",
                       "more than 2^31 - 1 characters in one stretch");
    int32_t count = (int32_t)length;
    /* Every merge removes one id and pushes at most two entries. */
    int64_t bytes = length * (int64_t)(sizeof(link) + 3 * sizeof(entry));
    if (wg__reserve(&buffer->block, 0, &buffer->capacity, bytes, 1) < 0)
        return -1;
    link *links = (link *)buffer->block;
    entry_heap heap = {(entry *)(links + count), 0};
    for (int32_t i = 0; i < count; i++)
        links[i] = (link){i - 1, i + 1 < count ? i + 1 : -1, {NO_RANK, -1}};
    for (int32_t i = 0; i < count; i++)
        update_pair(merges, ids, links, i, &heap);
    while (heap.count > 0) {
        entry top = pop(&heap);
        link *link = &links[top.at];
        if (link->pair.rank != top.rank)
            continue;
        int32_t gone = link->next;
        ids[top.at] = link->pair.joined;
        link->next = links[gone].next;
        links[gone].pair.rank = NO_RANK;
        if (link->next >= 0)
            links[link->next].previous = top.at;
        update_pair(merges, ids, links, link->previous, &heap);
        update_pair(merges, ids, links, top.at, &heap);
    }
    int64_t left = 0;
    for (int32_t i = 0; i >= 0; i = links[i].next)
        ids[left++] = ids[i];
    return left;
}

int64_t wg__merge(const wg__pair_table *merges, int32_t *ids, int64_t count,
                  wg__merge_buffer *buffer) {
    if (count <= 1)
        return count;
    return count <= SHORT ? merge_short(merges, ids, count)
                          : merge_long(merges, ids, count, buffer);
}

static int compare_scores(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

int wg__rank_scores(int64_t count, const double *scores, int32_t *ranks) {
    double *sorted = wg__alloc_array(count + 1, sizeof *sorted);
    if (!sorted)
        return -1;
    memcpy(sorted, scores, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_scores);
    size_t distinct = 0;
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || sorted[i] != sorted[distinct - 1])
            sorted[distinct++] = sorted[i];
    for (int64_t i = 0; i < count; i++) {
        const double *found = bsearch(&scores[i], sorted, distinct, sizeof *sorted, compare_scores);
        ranks[i] = (int32_t)(found - sorted);
    }
    wg__free(sorted);
    return 0;
}

/* ---- Learning: counting words and pairs ---- */

typedef struct wg__counted_pair {
    int32_t left, right; /* pieces */
    int64_t count;
    int64_t last_place; /* index in training.places; -1: none */
} pair;

/* A word that has a pair, or had it before a merge. */
typedef struct wg__pair_place {
    int32_t word;
    int64_t previous; /* the previous place of the same pair, or -1 */
} place;

typedef struct wg__training_entry {
    int64_t count;
    int64_t pair;
} heap_entry;

typedef wg__merge_training trainer;

int wg__count_word(trainer *t, const char *word, int64_t length) {
    int64_t known = t->words.count;
    int64_t number = wg__strings_add(&t->words, word, length);
    if (number < 0)
        return -1;
    if (number == known) {
        if (wg__reserve(&t->word_counts, known, &t->word_count_capacity, known + 1,
                        sizeof *t->word_counts) < 0)
            return -1;
        t->word_counts[number] = 0;
    }
    t->word_counts[number]++;
    return 0;
}

static bool comes_before(const trainer *t, heap_entry a, heap_entry b) {
    if (a.count != b.count)
        return a.count > b.count;
    const pair *x = &t->pairs[a.pair], *y = &t->pairs[b.pair];
    int order =
        strcmp(wg__strings_text(&t->pieces, x->left), wg__strings_text(&t->pieces, y->left));
    if (order == 0)
        order =
            strcmp(wg__strings_text(&t->pieces, x->right), wg__strings_text(&t->pieces, y->right));
    return order < 0;
}

static int heap_push(trainer *t, int64_t pair_number) {
    if (wg__reserve(&t->heap, t->heap_count, &t->heap_capacity, t->heap_count + 1,
                    sizeof *t->heap) < 0)
        return -1;
    heap_entry *heap = t->heap;
    heap_entry entry = {t->pairs[pair_number].count, pair_number};
    int64_t i = t->heap_count++;
    for (; i > 0 && comes_before(t, entry, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
    return 0;
}

static int64_t pair_number(trainer *t, int32_t left, int32_t right) {
    wg__pair *slot = wg__pair_table_add(&t->numbers, left, right);
    if (!slot)
        return -1;
    if (slot->first >= 0)
        return slot->first;
    if (t->pair_count >= INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, "training", "more than 2^31 - 1 pairs of pieces");
    if (wg__reserve(&t->pairs, t->pair_count, &t->pair_capacity, t->pair_count + 1,
                    sizeof *t->pairs) < 0)
        return -1;
    t->pairs[t->pair_count] = (pair){.left = left, .right = right, .last_place = -1};
    slot->first = (int32_t)t->pair_count;
    return t->pair_count++;
}

/* Adds `sign` times the word's count to the counts of its pairs. With `record`, the word becomes a
 * place of the pairs that contain the piece `fresh` (-1: of all pairs). All other pairs have the
 * word as a place already. */
static int count_pairs(trainer *t, int64_t word, int sign, bool record, int32_t fresh) {
    const int32_t *symbols = t->symbols + t->word_starts[word];
    for (int32_t i = 0; i + 1 < t->word_lengths[word]; i++) {
        int64_t number = pair_number(t, symbols[i], symbols[i + 1]);
        if (number < 0)
            return -1;
        t->pairs[number].count += sign * t->word_counts[word];
        if (!record || (fresh >= 0 && symbols[i] != fresh && symbols[i + 1] != fresh))
            continue;
        /* A pair may occur twice in a word: then its last place is this word already. */
        const place p = {(int32_t)word, t->pairs[number].last_place};
        if (p.previous >= 0 && t->places[p.previous].word == p.word)
            continue;
        if (wg__append(&t->places, &t->place_count, &t->place_capacity, &p, sizeof p) < 0)
            return -1;
        t->pairs[number].last_place = t->place_count - 1;
    }
    return 0;
}

/* ---- Learning: merging ---- */

static bool has_pair(const trainer *t, int64_t word, int32_t left, int32_t right) {
    const int32_t *symbols = t->symbols + t->word_starts[word];
    for (int32_t i = 0; i + 1 < t->word_lengths[word]; i++)
        if (symbols[i] == left && symbols[i + 1] == right)
            return true;
    return false;
}

static int merge(trainer *t, int64_t number) {
    int32_t left = t->pairs[number].left, right = t->pairs[number].right;
    /* The text of the new piece: both texts, without the prefix (##) of the second. */
    wg__text text = {0};
    int64_t piece = -1;
    if (wg__text_append(&text, wg__strings_text(&t->pieces, left),
                        wg__strings_length(&t->pieces, left)) == 0 &&
        wg__text_append(&text, wg__strings_text(&t->pieces, right) + t->prefix,
                        wg__strings_length(&t->pieces, right) - t->prefix) == 0)
        piece = wg__strings_add(&t->pieces, text.bytes, text.length);
    wg__free(text.bytes);
    int32_t merged = (int32_t)piece;
    if (merged < 0)
        return -1;
    const int32_t merge[2] = {left, right};
    if (wg__append(&t->merges, &t->merge_count, &t->merge_capacity, merge, sizeof merge) < 0)
        return -1;
    int64_t first = t->pairs[number].last_place;
    t->pairs[number].last_place = -1;
    for (int64_t p = first; p >= 0; p = t->places[p].previous) {
        int64_t word = t->places[p].word;
        if (!has_pair(t, word, left, right))
            continue;
        if (count_pairs(t, word, -1, false, merged) < 0)
            return -1;
        /* Joins every (left, right) in the word. */
        int32_t *symbols = t->symbols + t->word_starts[word];
        int32_t length = t->word_lengths[word], count = 0;
        for (int32_t i = 0; i < length; i++) {
            bool here = i + 1 < length && symbols[i] == left && symbols[i + 1] == right;
            symbols[count++] = here ? merged : symbols[i];
            i += here;
        }
        t->word_lengths[word] = count;
        if (count_pairs(t, word, 1, true, merged) < 0)
            return -1;
    }
    /* Pushes the pairs that contain the new piece: their counts may have risen. */
    for (int64_t p = first; p >= 0; p = t->places[p].previous) {
        const int64_t word = t->places[p].word;
        const int32_t *symbols = t->symbols + t->word_starts[word];
        for (int32_t i = 0; i + 1 < t->word_lengths[word]; i++) {
            if (symbols[i] != merged && symbols[i + 1] != merged)
                continue;
            const int64_t pushed = pair_number(t, symbols[i], symbols[i + 1]);
            if (pushed < 0 || heap_push(t, pushed) < 0)
                return -1;
        }
    }
    return 0;
}

int wg__learn_merges(trainer *t, wg__word_splitter split) {
    int64_t words = t->words.count, total = words ? t->words.starts[words] : 0;
    t->symbols = wg__alloc_array(total + 1, sizeof *t->symbols);
    t->word_starts = wg__alloc_array(words + 1, sizeof *t->word_starts);
    t->word_lengths = wg__alloc_array(words + 1, sizeof *t->word_lengths);
    if (!t->symbols || !t->word_starts || !t->word_lengths)
        return -1;
    for (int64_t w = 0; w < words; w++) {
        t->word_starts[w] = t->words.starts[w]; /* no more pieces than bytes */
        t->word_lengths[w] =
            split(t, wg__strings_text(&t->words, w), wg__strings_length(&t->words, w),
                  t->symbols + t->word_starts[w]);
        if (count_pairs(t, w, 1, true, -1) < 0)
            return -1;
    }
    for (int64_t p = 0; p < t->pair_count; p++)
        if (heap_push(t, p) < 0)
            return -1;
    while (t->heap_count > 0 && t->pieces.count < t->most_pieces) {
        /* Pops the top of the heap: the last entry sinks down from there. */
        heap_entry *heap = t->heap, top = heap[0], last = heap[--t->heap_count];
        int64_t i = 0;
        for (;;) {
            int64_t child = 2 * i + 1;
            if (child >= t->heap_count)
                break;
            if (child + 1 < t->heap_count && comes_before(t, heap[child + 1], heap[child]))
                child++;
            if (!comes_before(t, heap[child], last))
                break;
            heap[i] = heap[child];
            i = child;
        }
        heap[i] = last;

        /* Merges the pair, or pushes it again if its count has fallen since. */
        const pair *best = &t->pairs[top.pair];
        int64_t characters = 0;
        for (int side = 0; t->most_characters && side < 2; side++) {
            const int32_t piece = side == 0 ? best->left : best->right;
            characters += wg__utf8_count(wg__strings_text(&t->pieces, piece),
                                         wg__strings_length(&t->pieces, piece));
        }
        if (best->count < t->min_frequency || characters > t->most_characters)
            continue;
        if ((top.count == best->count ? merge : heap_push)(t, top.pair) < 0)
            return -1;
    }
    return 0;
}

void wg__merge_training_clear(trainer *t) {
    wg__strings_clear(&t->words);
    wg__free(t->word_counts);
    wg__strings_clear(&t->pieces);
    wg__free(t->merges);
    wg__free(t->symbols);
    wg__free(t->word_starts);
    wg__free(t->word_lengths);
    wg__pair_table_clear(&t->numbers);
    wg__free(t->pairs);
    wg__free(t->places);
    wg__free(t->heap);
    *t = (trainer){0};
}

#define COVERAGE 0.9995

static int compare(const void *left, const void *right) {
    const wg__letter *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return strcmp(a->text, b->text);
}

int wg__alphabet_count(wg__alphabet *a, const wg__merge_training *words) {
    for (int64_t w = 0; w < words->words.count; w++) {
        const char *word = wg__strings_text(&words->words, w);
        const char *end = word + wg__strings_length(&words->words, w);
        const bool within = word + wg__utf8_length(word) < end;
        for (const char *at = word; at < end; at += wg__utf8_length(at)) {
            const int64_t number = wg__strings_add(&a->texts, at, wg__utf8_length(at));
            if (number < 0 || wg__reserve(&a->letters, a->count, &a->capacity, a->texts.count,
                                          sizeof *a->letters) < 0)
                return -1;
            if (number == a->count)
                a->letters[a->count++] = (wg__letter){0};
            a->letters[number].count += words->word_counts[w];
            a->letters[number].within |= within;
        }
    }
    for (int64_t i = 0; i < a->count; i++)
        a->letters[i].text = wg__strings_text(&a->texts, i);
    if (a->count > 0)
        qsort(a->letters, (size_t)a->count, sizeof *a->letters, compare);
    return 0;
}

int64_t wg__alphabet_covering(const wg__alphabet *a) {
    int64_t total = 0, covered = 0, count = 0;
    for (int64_t i = 0; i < a->count; i++)
        total += a->letters[i].count;
    while (count < a->count && (double)covered < COVERAGE * (double)total)
        covered += a->letters[count++].count;
    return count;
}
