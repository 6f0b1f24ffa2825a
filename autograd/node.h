/* The graph that recording builds: a node for each op that ran, and one for each leaf.
 *
 *     output tensor --> node(op) --edge 0--> node(op) --...--> leaf node --> its gradient
 *                          |   `--edge 1--> ...
 *                          `--> saved inputs, outputs and extras
 *
 * Edges own their target by counting; tensors own their node. A saved output is held without its
 * node, which would be a cycle; backward gives it the node back. */
#ifndef WG_AUTOGRAD_NODE_H
#define WG_AUTOGRAD_NODE_H

#include "autograd/autograd.h"
#include "tensor/internal.h"

typedef struct wg__edge {
    wg_node *node; /* NULL: this input wants no gradient */
    int output_index;
} wg__edge;

typedef struct wg__saved {
    wg_tensor *tensor; /* NULL: not saved */
    uint64_t version;  /* of its storage when it was saved */
} wg__saved;

typedef struct wg__hook {
    int id;
    int output_index;
    wg_gradient_hook function;          /* NULL: it is one of a leaf's post_hooks */
    wg_post_accumulate_grad_hook after; /* that one */
    wg_tensor *leaf;                    /* for that one; kept, without the node */
    void *context;
    struct wg__hook *next; /* later registered */
} wg__hook;

typedef struct wg__origin wg__origin; /* autograd/anomaly.h */
typedef struct wg__region wg__region; /* autograd/activation_checkpointing.c */

struct wg_node {
    atomic_int refcount;
    const wg_op *op; /* NULL: a leaf */
    int input_count;
    int output_count;
    wg__edge *edges;       /* input_count; these arrays stand behind the node, in its block */
    wg__saved *inputs;     /* input_count */
    wg__saved *outputs;    /* output_count */
    wg_tensor **gradients; /* output_count: a leaf's, or under wg_retain_grad; kept */
    wg_spec *input_specs;  /* input_count */
    wg_spec *output_specs; /* output_count */
    void *options;         /* a copy */
    wg_tensor *extras[WG_MAX_SAVED];
    bool retains[WG_MAX_OUTPUTS];
    bool freed;            /* backward has released what was saved */
    wg__hook *hooks;       /* of its outputs */
    wg__hook *post_hooks;  /* of a leaf, for when its gradient is there */
    wg__origin *origin;    /* anomaly mode's, or NULL */
    wg__region *region;    /* that will be recomputed, or NULL; counted */
    int64_t region_call;   /* which call of the region it is */
    bool lacks;            /* what it would have saved: the region runs again first */
    uint64_t visit;        /* of the backward pass that saw it last */
    int64_t slot;          /* in that pass: its place in the engine's table */
    wg_node *next_to_free; /* the list by which release walks instead of recursing */
};

/* Makes tensor/ call autograd, from now on. */
void wg__autograd_start(void);

/* A handle that stands in for x where a walk of wg_grad can stop: x passed through by a recorded
 * op, or, where x wants no gradient, a leaf. [scope] */
wg_tensor *wg__stand_in(wg_tensor *x);

void wg__node_retain(wg_node *node);
void wg__node_release(wg_node *node);

/* Runs the hooks of an output on its gradient, a kept tensor that they may replace. */
int wg__hooks_run(wg_node *node, int output_index, wg_tensor **gradient);

/* Runs the hooks of a leaf that wait for its gradient. */
int wg__post_hooks_run(wg_node *node);

void wg__hooks_free(wg_node *node);

/* For a node of a recomputed region: notes what it would save, fills it in from the same call of
 * the second run, and takes that back. */
void wg__node_note_versions(wg_node *node, const wg_call *call);
int wg__node_fill(wg_node *node, const wg_call *call);
void wg__node_unfill(wg_node *node);

/* Fills in the call that the vjp of a node sees: what the node is and saved, its inputs in
 * `inputs`. What backward asks of it, nothing yet, is the caller's to put in. */
void wg__node_call(const wg_node *node, wg_tensor **inputs, wg_call *call);

/* Releases what a node saved, after backward has used it. */
void wg__node_free_saved(wg_node *node);

#endif
