/* In which proportions an epoch takes examples from the sources of a text.
 *
 *     examples    |0 a 1 a 2 a|3 b 4 b 5 b 6 b 7 b|       weights 3 and 1
 *     an epoch     0 1 2 0 1 2 5 6                        before it is shuffled
 *
 * Without weights an epoch is all examples. With weights it has as many, of each source as its
 * weight asks: all of its examples as often as they go into that, and of what is missing a choice
 * of chance, another one in each epoch. */
#ifndef WG_DATA_DATASET_MIXTURE_H
#define WG_DATA_DATASET_MIXTURE_H

#include "data/dataset/token_view.h"
#include "tensor/random.h"

/* {0}: there are no weights. Cleared with wg__mixture_clear. */
typedef struct wg__mixture {
    int64_t sources, reached; /* reached: how many have their end */
    int64_t *ends;            /* of each, in examples */
    double *weights;
} wg__mixture;

/* The weights of a view; how many examples each source has is still to be said. [MEMORY] */
int wg__mixture_of(wg__mixture *mixture, const wg__token_view *view);
void wg__mixture_clear(wg__mixture *mixture);

/* The first `documents` of the view have so many examples. To be called after each of them, in
 * order; 0 documents begin anew. */
void wg__mixture_reach(wg__mixture *mixture, const wg__token_view *view, int64_t documents,
                       int64_t examples);

/* Of a stream: example i begins with token offset + i * step. */
void wg__mixture_windows(wg__mixture *mixture, wg__token_view *view, int64_t offset, int64_t step,
                         int64_t count);

/* The examples of an epoch, `count` numbers below `count`, not yet shuffled; NULL is {0}. */
void wg__mixture_fill(const wg__mixture *mixture, wg_generator *generator, int64_t count,
                      int64_t *order);

#endif
