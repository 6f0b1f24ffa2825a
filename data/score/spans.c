/* Counts spans of tags, and computes correlations: see score.h. */
#include <string.h>
#include <math.h>

#include "base/array.h"
#include "base/internal.h"
#include "data/score/score.h"

/* The parts of a tag, as seqeval splits it: the first letter, and the text after the first "-" that
 * follows the letter, or "_" for an empty text. */
typedef struct tag_parts {
    char letter;
    const char *type;
} tag_parts;

bool wg__is_span_tag(const char *tag) {
    return strcmp(tag, "O") == 0 ||
           (*tag && strchr("BIES", *tag) && tag[1] == '-' && tag[2] != '\0');
}

/* An iterator over the spans of a sequence. */
typedef struct span_search {
    int64_t count;
    const char *const *tags;
    int64_t at;    /* the next tag */
    int64_t first; /* the first word of the open span */
    tag_parts before;
} span_search;

typedef struct span {
    int64_t first, last; /* words; first -1: no more spans */
    const char *type;
} span;

static span next_span(span_search *s) {
    while (s->at <= s->count) {
        const char *tag = s->at < s->count ? s->tags[s->at] : "O";
        const char *rest = *tag ? tag + 1 : tag, *dash = strchr(rest, '-');
        const char *type = dash ? dash + 1 : rest;
        const tag_parts before = s->before, now = {*tag ? *tag : 'O', *type ? type : "_"};

        const char was = before.letter, is = now.letter;
        const bool was_outside = was == 'O' || was == '.', is_outside = is == 'O' || is == '.';
        const bool differs = strcmp(before.type, now.type) != 0;
        const bool found = was == 'E' || was == 'S' ||
                           ((was == 'B' || was == 'I') && (is == 'B' || is == 'S' || is == 'O')) ||
                           (!was_outside && differs);
        const bool begins =
            is == 'B' || is == 'S' ||
            ((was == 'E' || was == 'S' || was == 'O') && (is == 'E' || is == 'I')) ||
            (!is_outside && differs);
        const span ended = {s->first, s->at - 1, before.type};
        if (begins)
            s->first = s->at;
        s->before = now;
        s->at++;
        if (found)
            return ended;
    }
    return (span){.first = -1};
}

void wg__spans_count(int64_t count, const char *const *wanted, const char *const *predicted,
                     wg__span_counts *counts) {
    span_search left = {.count = count, .tags = wanted, .before = {'O', ""}};
    span_search right = {.count = count, .tags = predicted, .before = {'O', ""}};
    span a = next_span(&left), b = next_span(&right);
    while (a.first >= 0 || b.first >= 0) {
        counts->right += a.first >= 0 && b.first >= 0 &&
                         (a.first == b.first && a.last == b.last && strcmp(a.type, b.type) == 0);
        /* Takes the span that ends first, or both: it cannot equal a later span. */
        const bool takes_a = a.first >= 0 && (b.first < 0 || a.last <= b.last);
        const bool takes_b = b.first >= 0 && (a.first < 0 || b.last <= a.last);
        counts->wanted += takes_a;
        counts->predicted += takes_b;
        if (takes_a)
            a = next_span(&left);
        if (takes_b)
            b = next_span(&right);
    }
}

double wg__pearson(int64_t count, const double *x, const double *y) {
    double mean_x = 0, mean_y = 0, xy = 0, xx = 0, yy = 0;
    for (int64_t i = 0; i < count; i++) {
        mean_x += x[i] / (double)count;
        mean_y += y[i] / (double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        const double a = x[i] - mean_x, b = y[i] - mean_y;
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    return xx > 0 && yy > 0 ? xy / (sqrt(xx) * sqrt(yy)) : 0;
}

/* Ranks numbers from the largest, rank 1. Equal numbers get the mean of their ranks. [MEMORY] */
static int rank(int64_t count, const double *values, double *ranks) {
    int64_t *order = wg__sorted_indices(0, count, wg__largest_first, values);
    for (int64_t first = 0, end; order && first < count; first = end) {
        for (end = first + 1; end < count && values[order[end]] == values[order[first]]; end++)
            ;
        for (int64_t i = first; i < end; i++)
            ranks[order[i]] = (double)(first + 1 + end) / 2;
    }
    const int status = order ? 0 : -1;
    wg__free(order);
    return status;
}

int wg__spearman(int64_t count, const double *x, const double *y, double *correlation) {
    double *ranks = wg__alloc_array(wg__times(count, 2), sizeof *ranks);
    const int status =
        ranks && rank(count, x, ranks) == 0 && rank(count, y, ranks + count) == 0 ? 0 : -1;
    if (status == 0)
        *correlation = wg__pearson(count, ranks, ranks + count);
    wg__free(ranks);
    return status;
}
