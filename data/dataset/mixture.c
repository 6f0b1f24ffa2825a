/* In which proportions an epoch takes examples from the sources of a text: see mixture.h. */
#include "data/dataset/mixture.h"

#include <math.h>

#include "tensor/internal.h"

int wg__mixture_of(wg__mixture *mixture, const wg__token_view *view) {
    *mixture = (wg__mixture){0};
    if (!view->weights)
        return 0;
    mixture->ends = wg__calloc((size_t)view->source_count, sizeof *mixture->ends);
    mixture->weights = wg__calloc((size_t)view->source_count, sizeof *mixture->weights);
    if (!mixture->ends || !mixture->weights) {
        wg__mixture_clear(mixture);
        return -1;
    }
    mixture->sources = view->source_count;
    for (int64_t i = 0; i < mixture->sources; i++)
        mixture->weights[i] = view->weights[i];
    return 0;
}

void wg__mixture_clear(wg__mixture *mixture) {
    wg__free(mixture->ends);
    wg__free(mixture->weights);
    *mixture = (wg__mixture){0};
}

void wg__mixture_reach(wg__mixture *mixture, const wg__token_view *view, int64_t documents,
                       int64_t examples) {
    if (documents == 0)
        mixture->reached = 0;
    while (mixture->reached < mixture->sources &&
           wg__token_view_source_end(view, mixture->reached) == documents)
        mixture->ends[mixture->reached++] = examples;
}

void wg__mixture_windows(wg__mixture *mixture, wg__token_view *view, int64_t offset, int64_t step,
                         int64_t count) {
    for (int64_t i = 0; i < mixture->sources; i++) {
        const int64_t end = wg__token_view_document(view, wg__token_view_source_end(view, i));
        const int64_t before = end > offset ? (end - offset + step - 1) / step : 0;
        mixture->ends[i] = before < count ? before : count;
    }
}

/* Fills `wanted` places with examples first .. end - 1: whole rounds, and then each of them with
 * the chance that is left (selection sampling: Knuth, The Art of Computer Programming, 3.4.2). */
static void fill_source(wg_generator *g, int64_t first, int64_t end, int64_t wanted,
                        int64_t *order) {
    const int64_t size = end - first;
    for (; wanted >= size; wanted -= size)
        for (int64_t i = first; i < end; i++)
            *order++ = i;
    for (int64_t i = first; wanted > 0; i++)
        if ((int64_t)wg_random_below(g, (uint64_t)(end - i)) < wanted) {
            *order++ = i;
            wanted--;
        }
}

static int64_t first_of(const wg__mixture *mixture, int64_t source) {
    return source > 0 ? mixture->ends[source - 1] : 0;
}

void wg__mixture_fill(const wg__mixture *mixture, wg_generator *generator, int64_t count,
                      int64_t *order) {
    double total = 0, sum = 0;
    int64_t filled = 0;
    if (!mixture || mixture->sources == 0) {
        for (int64_t i = 0; i < count; i++)
            order[i] = i;
        return;
    }
    for (int64_t i = 0; i < mixture->sources; i++)
        if (mixture->ends[i] > first_of(mixture, i)) /* a source without examples has no share */
            total += mixture->weights[i];
    for (int64_t i = 0; i < mixture->sources; i++) {
        const int64_t first = first_of(mixture, i), end = mixture->ends[i];
        if (end == first)
            continue;
        sum += mixture->weights[i];
        const int64_t until = llrint((double)count * (sum / total));
        fill_source(generator, first, end, until - filled, order + filled);
        filled = until;
    }
}
