/* A training of random tokens: what `wengert bench train' times.
 *
 * One batch is drawn and trained on again and again, without dropout, by AdamW and without
 * clipping: forward, backward and with it the step, as a trainer does without clipping. */
#ifndef WG_BENCH_WORKLOAD_H
#define WG_BENCH_WORKLOAD_H

#include "optim/optimizer.h"
#include "nn/module.h"

#define WG__WORKLOAD_RATE 1e-4 /* AdamW's */

typedef struct wg__workload_kind wg__workload_kind;

/* What is trained, and on how much. Who asks for it fills in the first part. */
typedef struct wg__workload {
    const char *model;       /* a kind ("bert"), or one of the presets of any */
    const char *preset;      /* of the kind; NULL: its usual one */
    int64_t batch, sequence; /* B, T; 0: the preset's usual. Encoder-decoders have a source and a
                              * target of T tokens each */
    int64_t vocabulary;      /* 0: the preset's usual */
    bool recompute;          /* layers run again in backward, to keep less */

    const wg__workload_kind *kind;
    wg_module *module;
    wg_optimizer *optimizer;
    int64_t tokens; /* a step: all positions, of encoder-decoders those of the target */
    wg_scope scope; /* of the batch */
    void *parts;    /* the kind's own */
} wg__workload;

/* A kind of model. */
struct wg__workload_kind {
    const char *name;   /* "gpt" */
    const char *preset; /* the usual one */
    const char *(*preset_name)(int index);

    /* Makes model, module and batch, by preset, batch, sequence and vocabulary, which are set. The
     * batch belongs to the scope that is open, and so does nothing else; parts are freed by free,
     * the module by wg_module_free. -1 with an error. */
    int (*begin)(wg__workload *workload);

    wg_tensor *(*loss)(wg__workload *workload);
};

/* Up to one without a name. */
extern const wg__workload_kind wg__workload_kinds[];

/* Makes all of it. Scopes that are opened afterwards must be closed before wg__workload_end; after
 * an error there is nothing to end. -1 with [ARGUMENT for a model or preset that is not there, with
 * those that are; whatever making the model gives] */
int wg__workload_begin(wg__workload *workload);
void wg__workload_end(wg__workload *workload);

/* One step; its loss, NaN with an error. */
double wg__workload_step(wg__workload *workload);

#endif
