/* What the files of optim/ share: the optimizer's struct, and the one walk over its parameters. */
#ifndef WG_OPTIM_INTERNAL_H
#define WG_OPTIM_INTERNAL_H

#include "optim/kernels.h"
#include "optim/optimizer.h"

#define WG__MAX_STATES 2

typedef struct wg__optimizer_entry {
    char *name;
    wg_tensor *parameter; /* borrowed */
    bool no_decay;
    wg_tensor *states[WG__MAX_STATES]; /* kept; named by the rule */
    const void *gradient; /* during a walk: contiguous elements, NULL if there is none */
    int64_t first_chunk;  /* during a walk: the number of its first chunk */
} wg__optimizer_entry;

/* Elements [begin, end) of an entry, which are chunk number `chunk` of the walk. */
typedef struct wg__optimizer_chunk {
    const wg__optimizer_entry *entry;
    int64_t begin, end;
    int64_t chunk;
} wg__optimizer_chunk;

typedef void (*wg__optimizer_body)(const wg__optimizer_chunk *chunk, void *context);

/* What makes one optimizer differ from another. */
typedef struct wg__optimizer_rule {
    int state_count;
    const char *state_names[WG__MAX_STATES];
    /* One update of every entry that has a gradient, as step number optimizer->steps. */
    void (*step)(wg_optimizer *optimizer, double learning_rate);
} wg__optimizer_rule;

struct wg_optimizer {
    const wg__optimizer_rule *rule;
    wg_adamw_options options; /* with their defaults filled in */
    const wg__optimizer_kernels *kernels;
    int64_t steps;
    wg__optimizer_entry *entries;
    int64_t count, capacity;
    double *partial_norms; /* a sum of squares for each chunk that there can be */
    int64_t chunk_capacity;
    double gradient_scale; /* what the next step multiplies gradients by: 1 unless clipped */
    bool not_finite;       /* the gradients, when they were last measured */
};

/* An optimizer without parameters; NULL with MEMORY. */
wg_optimizer *wg__optimizer_new(const wg__optimizer_rule *rule);

/* Runs body on all chunks of the entries with a gradient, in parallel. Chunks are the same at any
 * number of threads; returns how many there are. */
int64_t wg__optimizer_walk(wg_optimizer *optimizer, wg__optimizer_body body, void *context);

#endif
