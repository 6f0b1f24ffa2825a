/* The unigram language model: its trie, and training its pieces. See sentencepiece.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/sentencepiece.h"

#define WHERE "unigram"
#define SEEDS_PER_PIECE 20
#define EM_STEPS 2 /* before each pruning */
#define KEPT 0.75  /* the share of the pieces that a pruning keeps */
#define SPARE 1.1  /* pruning ends at this multiple of the wanted number of pieces */
#define LEAST_EXPECTED 0.5
enum { LONGEST = 16 /* characters of a piece */, LONGEST_BYTES = 4 * LONGEST, STRETCH = 4096 };

int wg__unigram_add(wg__unigram *model, const char *text, int64_t length, int32_t piece) {
    int32_t node = 0;
    if (model->node_count == 0)
        model->node_count = 1;
    for (int64_t i = 0; i < length; i++) {
        wg__pair *edge = wg__pair_table_add(&model->trie, node, (unsigned char)text[i]);
        if (!edge)
            return -1;
        if (edge->first < 0) {
            if (model->node_count == INT32_MAX)
                return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                               "more than 2^31 - 1 nodes in the trie of pieces");
            edge->first = model->node_count++;
        }
        if (i + 1 == length)
            edge->second = piece;
        node = edge->first;
    }
    return 0;
}

/* ---- Seeds ----
 * All suffixes of all words are sorted. The common beginning of a run of neighbours is a substring;
 * its frequency is the sum of the counts of their words. The runs are the inner nodes of the suffix
 * tree; a stack has the open runs.
 *
 *     suffixes     common with the next   runs
 *     er  x 2      0
 *     ow  x 5      2  ow                  ow x 7
 *     ower x 2     0
 */

typedef struct suffix {
    const char *text; /* NUL-terminated */
    int64_t count;    /* of its word */
} suffix;

typedef struct seed {
    const char *text;
    int64_t length; /* in bytes */
    double weight;  /* frequency x characters */
} seed;

typedef struct seeds {
    seed *items;
    int64_t count, capacity;
} seeds;

static int compare_suffixes(const void *a, const void *b) {
    return strncmp(((const suffix *)a)->text, ((const suffix *)b)->text, LONGEST_BYTES);
}

/* The larger weight first; equal weights in byte order. */
static int compare_seeds(const void *a, const void *b) {
    const seed *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    const int64_t shorter = x->length < y->length ? x->length : y->length;
    const int order = memcmp(x->text, y->text, (size_t)shorter);
    return order != 0 ? order : (x->length > y->length) - (x->length < y->length);
}

/* The length of the common beginning of two texts: whole characters, at most 16. */
static int64_t common_length(const char *a, const char *b) {
    int64_t length = 0;
    for (int n = 0; n < LONGEST && a[length]; n++) {
        const int64_t size = wg__utf8_length(a + length);
        if (strncmp(a + length, b + length, (size_t)size) != 0)
            break;
        length += size;
    }
    return length;
}

static int add_seed(seeds *all, const char *text, int64_t length, int64_t frequency) {
    const int64_t count = wg__utf8_count(text, length);
    if (count < 2 || frequency < 2)
        return 0;
    const seed item = {text, length, (double)frequency * (double)count};
    return wg__append(&all->items, &all->count, &all->capacity, &item, sizeof item);
}

/* ---- Pieces and segmentations ---- */

/* Bytes start .. end - 1 of a text are a piece. */
typedef struct edge {
    int32_t start, end, piece;
} edge;

typedef struct learner {
    const wg__unigram_training *training;
    int64_t letter_count; /* the first pieces are the characters, which are never pruned */
    wg__strings pieces;
    double *scores, *expected; /* by piece */
    wg__unigram model;

    /* Of the current text. */
    edge *edges; /* sorted by `start` */
    int64_t edge_count, edge_capacity;
    double *forward, *backward; /* by byte; -INFINITY: no segmentation ends or begins there */
    int32_t *best;              /* by byte: the best edge that ends there, or -1 */
    int64_t place_capacity;
} learner;

/* log(exp(x) + exp(y)) */
static double add_logarithms(double x, double y) {
    const double larger = x < y ? y : x, smaller = x < y ? x : y;
    return smaller == -INFINITY ? larger : larger + log1p(exp(smaller - larger));
}

static int make_trie(learner *l) {
    wg__pair_table_clear(&l->model.trie);
    l->model.node_count = 0;
    for (int64_t i = 0; i < l->pieces.count; i++)
        if (wg__unigram_add(&l->model, wg__strings_text(&l->pieces, i),
                            wg__strings_length(&l->pieces, i), (int32_t)i) < 0)
            return -1;
    return 0;
}

/* Finds all pieces in a text, except `without` (-1: none). */
static int find_edges(learner *l, const char *text, int64_t length, int32_t without) {
    l->edge_count = 0;
    for (int64_t start = 0; start < length; start += wg__utf8_length(text + start)) {
        int32_t node = 0;
        for (int64_t at = start; at < length; at++) {
            const wg__pair *next =
                wg__pair_table_find(&l->model.trie, node, (unsigned char)text[at]);
            if (!next)
                break;
            node = next->first;
            const edge found = {(int32_t)start, (int32_t)at + 1, next->second};
            if (next->second >= 0 && next->second != without &&
                wg__append(&l->edges, &l->edge_count, &l->edge_capacity, &found, sizeof found) < 0)
                return -1;
        }
    }
    const int64_t count = length + 1;
    if (count <= l->place_capacity)
        return 0;
    wg__free(l->forward);
    wg__free(l->backward);
    wg__free(l->best);
    l->forward = wg__alloc_array(count, sizeof *l->forward);
    l->backward = wg__alloc_array(count, sizeof *l->backward);
    l->best = wg__alloc_array(count, sizeof *l->best);
    l->place_capacity = count;
    return l->forward && l->backward && l->best ? 0 : -1;
}

/* Fills `forward` with the log probability of all segmentations up to each byte. With `only_best`:
 * with the score of the best segmentation, and `best` with its last edge (Viterbi). */
static void go_forward(learner *l, int64_t length, bool only_best) {
    for (int64_t i = 0; i <= length; i++) {
        l->forward[i] = i == 0 ? 0 : -INFINITY;
        l->best[i] = -1;
    }
    for (int64_t i = 0; i < l->edge_count; i++) {
        const edge *e = &l->edges[i];
        const double score = l->forward[e->start] + l->scores[e->piece];
        double *there = &l->forward[e->end];
        if (!only_best) {
            *there = add_logarithms(*there, score);
        } else if (score > *there) {
            *there = score;
            l->best[e->end] = (int32_t)i;
        }
    }
}

static bool is_of_letters(const wg__strings *letters, const char *text, int64_t length) {
    for (int64_t at = 0; at < length; at += wg__utf8_length(text + at))
        if (wg__strings_find(letters, text + at, wg__utf8_length(text + at)) < 0)
            return false;
    return true;
}

/* Calls `work` with each word that has only known characters, at most 4096 bytes at a time. */
static int each_stretch(learner *l,
                        int (*work)(learner *l, const char *text, int64_t length, double count)) {
    const wg__strings *words = l->training->words;
    for (int64_t w = 0; w < words->count; w++) {
        const char *text = wg__strings_text(words, w);
        const int64_t length = wg__strings_length(words, w);
        const bool known = is_of_letters(l->training->letters, text, length);
        for (int64_t at = 0, end = 0; known && at < length; at = end) {
            while (end < length && end - at < STRETCH)
                end += wg__utf8_length(text + end);
            if (work(l, text + at, end - at, (double)l->training->word_counts[w]) < 0)
                return -1;
        }
    }
    return 0;
}

/* ---- Expectation and maximization ---- */

/* Adds the expected frequency of each piece in `count` copies of a text (forward-backward). */
static int expect(learner *l, const char *text, int64_t length, double count) {
    if (find_edges(l, text, length, -1) < 0)
        return -1;
    go_forward(l, length, false);
    for (int64_t i = 0; i <= length; i++)
        l->backward[i] = i == length ? 0 : -INFINITY;
    const double all = l->forward[length];
    for (int64_t i = l->edge_count - 1; i >= 0; i--) {
        const edge *e = &l->edges[i];
        const double score = l->scores[e->piece] + l->backward[e->end];
        l->expected[e->piece] += count * exp(l->forward[e->start] + score - all);
        l->backward[e->start] = add_logarithms(l->backward[e->start], score);
    }
    return 0;
}

/* The derivative of log gamma, for x > 0, by its asymptotic series. */
static double digamma(double x) {
    double shift = 0;
    for (; x < 7; x++)
        shift -= 1 / x;
    const double y = 1 / (x * x);
    return shift + log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252));
}

/* Keeps piece i, with its score, if kept[i]. */
static int keep(learner *l, const bool *kept) {
    wg__strings pieces = {0};
    int64_t count = 0;
    for (int64_t i = 0; i < l->pieces.count; i++) {
        if (!kept[i])
            continue;
        if (wg__strings_add(&pieces, wg__strings_text(&l->pieces, i),
                            wg__strings_length(&l->pieces, i)) < 0) {
            wg__strings_clear(&pieces);
            return -1;
        }
        l->scores[count++] = l->scores[i];
    }
    wg__strings_clear(&l->pieces);
    l->pieces = pieces;
    return make_trie(l);
}

/* Adds the pieces of a text's best segmentation to `expected`. */
static int count_best(learner *l, const char *text, int64_t length, double count) {
    if (find_edges(l, text, length, -1) < 0)
        return -1;
    go_forward(l, length, true);
    for (int64_t at = length; at > 0; at = l->edges[l->best[at]].start)
        l->expected[l->edges[l->best[at]].piece] += count;
    return 0;
}

/* The decrease of the log likelihood if a piece is removed: the next best pieces then spell its
 * text and become more frequent. 0 for a piece that is in no best segmentation, or if other pieces
 * spell its text with a better score. */
static int measure_loss(learner *l, int64_t piece, double total, double *value) {
    const char *text = wg__strings_text(&l->pieces, piece);
    const int64_t length = wg__strings_length(&l->pieces, piece);
    const double frequency = l->expected[piece];
    *value = 0;
    if (frequency == 0)
        return 0;
    if (find_edges(l, text, length, (int32_t)piece) < 0)
        return -1;
    go_forward(l, length, true);
    if (l->forward[length] > l->scores[piece])
        return 0;
    int64_t parts = 0;
    double other = 0;
    for (int64_t at = length; at > 0; at = l->edges[l->best[at]].start) {
        other += log(l->expected[l->edges[l->best[at]].piece] + frequency);
        parts++;
    }
    other -= (double)parts * log(total + frequency * (double)(parts - 1));
    *value = frequency * (log(frequency) - log(total) - other);
    return 0;
}

/* Removes the pieces with the smallest losses. `kept` and `losses` are scratch, one per piece. */
static int prune(learner *l, int64_t wanted, bool *kept, double *losses) {
    memset(l->expected, 0, (size_t)l->pieces.count * sizeof *l->expected);
    if (each_stretch(l, count_best) < 0)
        return -1;
    double total = 0;
    for (int64_t i = 0; i < l->pieces.count; i++)
        total += l->expected[i];
    for (int64_t piece = l->letter_count; piece < l->pieces.count; piece++)
        if (measure_loss(l, piece, total, &losses[piece]) < 0)
            return -1;
    int64_t *order =
        wg__sorted_indices(l->letter_count, l->pieces.count, wg__largest_first, losses);
    if (!order)
        return -1;
    int64_t left = (int64_t)(KEPT * (double)l->pieces.count);
    left = (left > wanted ? left : wanted) - l->letter_count;
    for (int64_t i = 0; i < l->letter_count; i++)
        kept[i] = true;
    for (int64_t i = 0; i < l->pieces.count - l->letter_count; i++)
        kept[order[i]] = i < left && losses[order[i]] > 0;
    wg__free(order);
    return keep(l, kept);
}

static int collect_seeds(const wg__unigram_training *t, suffix **suffixes, seeds *found) {
    int64_t count = 0, at = 0;
    for (int64_t w = 0; w < t->words->count; w++)
        count += wg__utf8_count(wg__strings_text(t->words, w), wg__strings_length(t->words, w));
    *suffixes = wg__alloc_array(count + 1, sizeof **suffixes);
    if (!*suffixes)
        return -1;
    for (int64_t w = 0; w < t->words->count; w++)
        for (const char *text = wg__strings_text(t->words, w); *text; text += wg__utf8_length(text))
            (*suffixes)[at++] = (suffix){text, t->word_counts[w]};
    qsort(*suffixes, (size_t)count, sizeof **suffixes, compare_suffixes);
    /* Finds the repeated substrings. */
    const suffix *sorted = *suffixes;
    typedef struct run {
        int64_t length, frequency;
    } run;
    run open[LONGEST_BYTES + 2]; /* by ascending length, at most LONGEST_BYTES */
    int open_count = 0;
    int64_t before = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *text = sorted[i].text;
        const int64_t whole = common_length(text, text);
        const int64_t after = i + 1 < count ? common_length(text, sorted[i + 1].text) : 0;
        int64_t frequency = sorted[i].count;
        if (whole > before && whole > after && add_seed(found, text, whole, frequency) < 0)
            return -1;
        for (; open_count > 0 && open[open_count - 1].length > after; open_count--) {
            frequency += open[open_count - 1].frequency;
            if (add_seed(found, text, open[open_count - 1].length, frequency) < 0)
                return -1;
        }
        if (after > 0) {
            if (open_count > 0 && open[open_count - 1].length == after)
                open[open_count - 1].frequency += frequency;
            else
                open[open_count++] = (run){after, frequency};
        }
        before = after;
    }
    if (found->count > 0) /* qsort refuses NULL */
        qsort(found->items, (size_t)found->count, sizeof *found->items, compare_seeds);
    return 0;
}

/* Makes the first pieces: the characters and the seeds, with probabilities by weight. */
static int begin(learner *l) {
    const wg__unigram_training *t = l->training;
    l->letter_count = t->letters->count;
    const int64_t most = l->letter_count + SEEDS_PER_PIECE * t->piece_count;
    l->scores = wg__alloc_array(most + 1, sizeof *l->scores);
    l->expected = wg__alloc_array(most + 1, sizeof *l->expected);
    if (!l->scores || !l->expected)
        return -1;
    suffix *suffixes = NULL;
    seeds found = {0};
    int status = collect_seeds(t, &suffixes, &found);
    /* The weight of a character is its frequency. Seeds with unknown characters are skipped. */
    for (int64_t i = 0; status == 0 && i < l->letter_count; i++) {
        l->scores[i] = (double)t->counted[i].count;
        if (wg__strings_add(&l->pieces, wg__strings_text(t->letters, i),
                            wg__strings_length(t->letters, i)) < 0)
            status = -1;
    }
    for (int64_t i = 0; status == 0 && i < found.count && l->pieces.count < most; i++) {
        const seed *item = &found.items[i];
        if (!is_of_letters(t->letters, item->text, item->length))
            continue;
        l->scores[l->pieces.count] = item->weight;
        status = wg__strings_add(&l->pieces, item->text, item->length) < 0 ? -1 : 0;
    }
    wg__free(suffixes);
    wg__free(found.items);
    if (status < 0)
        return -1;
    double sum = 0;
    for (int64_t i = 0; i < l->pieces.count; i++)
        sum += l->scores[i];
    for (int64_t i = 0; i < l->pieces.count; i++)
        l->scores[i] = log(l->scores[i] / sum);
    return make_trie(l);
}

static int improve(learner *l) {
    const int64_t wanted = (int64_t)(SPARE * (double)l->training->piece_count);
    bool *kept = wg__alloc_array(l->pieces.count + 1, sizeof *kept);
    double *losses = wg__alloc_array(l->pieces.count + 1, sizeof *losses);
    int status = kept && losses ? 0 : -1;
    for (bool done = false; status == 0 && !done;) {
        for (int i = 0; status == 0 && i < EM_STEPS; i++) {
            memset(l->expected, 0, (size_t)l->pieces.count * sizeof *l->expected);
            status = each_stretch(l, expect);
            if (status == 0) {
                /* Computes new scores from the expected frequencies. Pieces with a frequency below
                 * 0.5 are removed, unless they are characters. log p would maximize the likelihood;
                 * the digamma function lowers the scores of rare pieces further, so that more of
                 * them fall below the limit. */
                double sum = 0;
                for (int64_t k = 0; k < l->pieces.count; k++) {
                    kept[k] = k < l->letter_count || l->expected[k] >= LEAST_EXPECTED;
                    l->expected[k] = fmax(l->expected[k], LEAST_EXPECTED);
                    if (kept[k])
                        sum += l->expected[k];
                }
                for (int64_t k = 0; k < l->pieces.count; k++)
                    l->scores[k] = digamma(l->expected[k]) - digamma(sum);
                status = keep(l, kept);
            }
        }
        done = l->pieces.count <= wanted;
        if (status == 0 && !done)
            status = prune(l, wanted, kept, losses);
    }
    wg__free(kept);
    wg__free(losses);
    return status;
}

/* The result: all characters and the most probable longer pieces, sorted by probability. */
static int finish(learner *l, wg__unigram_training *t) {
    const int64_t count = l->pieces.count;
    int64_t *order = wg__sorted_indices(0, count, wg__largest_first, l->scores);
    t->scores = wg__alloc_array(count + 1, sizeof *t->scores);
    int status = order && t->scores ? 0 : -1;
    int64_t room = t->piece_count - l->letter_count;
    for (int64_t i = 0; status == 0 && i < count; i++) {
        const int64_t piece = order[i];
        if (piece >= l->letter_count && room-- <= 0)
            continue;
        t->scores[t->pieces.count] = (double)(float)l->scores[piece];
        if (wg__strings_add(&t->pieces, wg__strings_text(&l->pieces, piece),
                            wg__strings_length(&l->pieces, piece)) < 0)
            status = -1;
    }
    wg__free(order);
    return status;
}

int wg__learn_unigram(wg__unigram_training *training) {
    learner l = {.training = training};
    const int status = begin(&l) < 0 || improve(&l) < 0 || finish(&l, training) < 0 ? -1 : 0;
    wg__strings_clear(&l.pieces);
    wg__free(l.scores);
    wg__free(l.expected);
    wg__pair_table_clear(&l.model.trie);
    wg__free(l.edges);
    wg__free(l.forward);
    wg__free(l.backward);
    wg__free(l.best);
    return status;
}
