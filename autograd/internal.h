/* Functions that the files of autograd/ share, a section for each file. A file calls only files
 * before it in this list:
 *
 *     anomaly   graph   activation_checkpointing   backward   forward   vmap   functional
 */
#ifndef WG_AUTOGRAD_INTERNAL_H
#define WG_AUTOGRAD_INTERNAL_H

#include "autograd/functional.h"
#include "tensor/internal.h"

/* ---- anomaly.c: which op made the first NaN, and its caller ---- */

/* Anomaly mode that finds infinities as well as NaNs; the error names the layer in place of the
 * caller. The trainer uses it to explain an infinite loss or gradient. Returns whether it was on.
 */
bool wg__set_nonfinite_mode(bool on);

/* Where a recorded call came from. */
typedef struct wg__origin {
    int64_t number;      /* counted over the calls that this thread recorded in anomaly mode */
    const char *within;  /* the op in whose vjp it ran, or NULL */
    int64_t within_call; /* that op's number; 0: unknown */
    char layer[128];     /* the place of errors then, a module's path; "": none */
    int frame_count;
    void *frames[32]; /* return addresses, the innermost first */
} wg__origin;

/* Makes the origin of a call that is being recorded; NULL and 0 when the mode is off. */
int wg__origin_make(wg__origin **origin);

/* Suspends the checks until wg__anomaly_leave. The origin of calls recorded meanwhile names `node`
 * as the op whose vjp ran; NULL keeps the node of an outer vjp. */
typedef struct wg__anomaly_state {
    bool checks;
    const wg_node *within;
} wg__anomaly_state;

wg__anomaly_state wg__anomaly_enter(const wg_node *node);
void wg__anomaly_leave(wg__anomaly_state before);

/* 0, or -1 with ANOMALY: a result has a NaN and no operand has one. */
int wg__check_forward(const wg_call *call);
int wg__check_vjp(const wg_node *node, wg_tensor *const *cotangents, wg_tensor *const *gradients);
int wg__check_jvp(const wg_call *call, wg_tensor *const *tangents,
                  wg_tensor *const *output_tangents);

/* ---- graph.c: a node for each recorded op, and one for each leaf
 *
 *     output tensor --> node(op) --edge 0--> node(op) --...--> leaf node --> its gradient
 *                          |   `--edge 1--> ...
 *                          `--> saved inputs, outputs and extras
 *
 * An edge counts as a reference to its target, a tensor as one to its node. A saved output is kept
 * without its node, which would be a cycle; backward sets its node again. ---- */

typedef struct wg__edge {
    wg_node *node; /* NULL: this input requires no gradient */
    int output_index;
} wg__edge;

typedef struct wg__saved {
    wg_tensor *tensor; /* NULL: not saved */
    uint64_t version;  /* of its storage when it was saved */
} wg__saved;

typedef struct wg__hook {
    int id;
    int output_index;
    wg_gradient_hook function;          /* NULL: a hook of the leaf's post_hooks */
    wg_post_accumulate_grad_hook after; /* the function of a post hook */
    wg_tensor *leaf;                    /* of a post hook; kept, without the node */
    void *context;
    struct wg__hook *next; /* registered later */
} wg__hook;

typedef struct wg__region wg__region;

struct wg_node {
    atomic_int refcount;
    const wg_op *op; /* NULL: a leaf */
    int input_count;
    int output_count;
    wg__edge *edges;       /* input_count; in the node's block, as the arrays below */
    wg__saved *inputs;     /* input_count */
    wg__saved *outputs;    /* output_count */
    wg_tensor **gradients; /* output_count: a leaf's, or under wg_retain_grad; kept */
    wg_spec *input_specs;  /* input_count */
    wg_spec *output_specs; /* output_count */
    void *options;         /* a copy */
    wg_tensor *extras[WG_MAX_SAVED];
    bool retains[WG_MAX_OUTPUTS];
    bool freed;            /* backward has released the saved tensors */
    wg__hook *hooks;       /* of its outputs */
    wg__hook *post_hooks;  /* of a leaf, for when its gradient is complete */
    wg__origin *origin;    /* anomaly mode's, or NULL */
    wg__region *region;    /* the checkpointed region that made it, or NULL; counted */
    int64_t region_call;   /* its number among the region's calls */
    bool lacks;            /* its saved tensors were dropped: the region must run again first */
    wg_tensor *rounded;    /* output 0 in bf16, for ops that save it so; kept, or NULL */
    uint64_t rounded_from; /* the version of output 0 that `rounded` is a copy of */
    uint64_t visit;        /* the id of the last backward pass that reached the node */
    int64_t slot;          /* its place in the table of that pass */
    wg_node *next_to_free; /* in the list of wg__node_release, which does not recurse */
};

void wg__node_retain(wg_node *node);
void wg__node_release(wg_node *node);

/* Releases the saved tensors of a node; whether there were any. */
bool wg__node_drop_saved(wg_node *node);

/* Releases the saved tensors after backward has used them, and marks the node as freed. */
void wg__node_free_saved(wg_node *node);

/* Fills in the call that the vjp of a node sees; its saved inputs go into `inputs`. The caller sets
 * the members that backward chooses. */
void wg__node_call(const wg_node *node, wg_tensor **inputs, wg_call *call);

/* Runs the hooks of an output on its gradient, a kept tensor that they may replace. */
int wg__hooks_run(wg_node *node, int output_index, wg_tensor **gradient);

/* Runs the hooks of a leaf that wait for its gradient. */
int wg__post_hooks_run(wg_node *node);

/* ---- graph.c, continued: regions, functions that run twice under activation checkpointing.
 *
 *     first run    each recorded call makes its node, which saves nothing and is listed here
 *     second run   call i saves the tensors that node i lacks, and its outputs get node i
 *
 * So the graph is the one of the first run. Nodes count as references to their region; the region's
 * pointers to nodes do not count. If a node was freed, its call is recorded as a new node, which is
 * freed with the scope of the second run. ---- */

typedef struct wg__region_call {
    const wg_op *op;
    uint64_t shapes; /* a hash of all specs */
    wg_node *node;   /* NULL: freed */
} wg__region_call;

/* A generator and its state before the first run. */
typedef struct wg__region_generator {
    wg_generator *generator;
    wg_generator before;
} wg__region_generator;

struct wg__region {
    atomic_int refcount;
    wg_function function;
    void *context;
    void *own_context; /* the copy that `context` points to; NULL: it is the caller's */
    int input_count, output_count, generator_count;
    wg__saved *inputs; /* NULL tensors: absent */
    wg__region_generator *generators;
    wg__region_call *calls;
    int64_t count, capacity; /* of calls */
    bool filled;             /* the second run is done */
    wg_dtype matmul_dtype;   /* of the first run */
};

/* The region that this thread is running, if any. */
typedef struct wg__region_run {
    wg__region *region; /* NULL: none */
    bool again;         /* this is the second run */
    int64_t next;       /* in the second run: the number of the next call */
} wg__region_run;

extern WG__THREAD_LOCAL wg__region_run wg__active_region;

void wg__region_release(wg__region *region);

/* ---- activation_checkpointing.c ---- */

/* Runs the region of a node once more, which saves the tensors that its nodes lack. */
int wg__region_run_again(const wg_node *node);

/* Runs the function, which must set all its outputs. */
int wg__call_function(wg_function function, void *context, int input_count,
                      wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                      const char *where);

/* Moves results one scope out, or after a failure makes them NULL. `results` may be NULL. */
void wg__escape_results(int status, int count, wg_tensor **results);

/* ---- backward.c ---- */

/* A handle in place of x where a backward pass of wg_grad can stop: the output of a recorded
 * identity op on x, or a leaf if x requires no gradient. [scope] */
wg_tensor *wg__stand_in(wg_tensor *x);

/* ---- forward.c: dual numbers. A handle may carry tangents, one for each wg_jvp that it takes part
 * in.
 *
 *     x --> tangent of level 7 --> tangent of level 5          level 7 runs inside of level 5
 *
 * A level is one run of wg_jvp; numbers grow, so that an inner run has the higher one. An op
 * removes the highest level among its inputs, and runs on inputs that carry lower levels only (this
 * run handles lower levels and recording). op->jvp, on the same inputs, gives the outputs' tangent
 * of the highest level. So the levels never mix (Siskind & Pearlmutter 2005). A jvp consists of
 * public ops, so lower levels differentiate it and the graph records it.
 *
 * Handles share a list by counting its first entry. A level knows its entries and empties them when
 * it ends: a node that saved a dual tensor and outlives the level then holds a plain one. ---- */

typedef struct wg__level {
    uint64_t number;
    int64_t samples;                                          /* of wg_vmap */
    int (*run_batch)(wg_call *call, struct wg__level *level); /* wg_vmap's; NULL: of wg_jvp */
    wg_tangent *first;                                        /* of this level's entries */
    struct wg__level *outer;
} wg__level;

/* The innermost open level of this thread; NULL outside of wg_jvp. While there is one, a backward
 * pass must run in public ops alone. */
extern WG__THREAD_LOCAL wg__level *wg__innermost_level;

/* Opens a level on this thread; closes it, which must be the innermost. */
void wg__level_begin(wg__level *level);
void wg__level_end(wg__level *level);

/* Adds a tangent to x. The tangents that x carries are of lower levels. */
int wg__tangent_push(wg_tensor *x, wg__level *level, wg_tensor *tangent);

/* Copies the tangents of inputs and outputs to the tensors that the call's node saved, for a
 * backward pass in the same level. */
void wg__mark_saved(const wg_call *call);

/* The tangent of x in `level`, the highest level that x can carry; NULL: zero. Borrowed. */
wg_tensor *wg__tangent_of(const wg_tensor *x, const wg__level *level);

/* An alias of x in the innermost scope without the tangent of `level`, the highest level that x can
 * carry. */
wg_tensor *wg__primal(wg_tensor *x, const wg__level *level);

/* ---- vmap.c: a level of wg_vmap. A sample handle has the shape of a single sample and no memory;
 * its entry holds all samples, as axis 0 of a tensor that carries lower levels only.
 *
 *     x (3, 4) --> entry of level 7: (samples, 3, 4) --> ...
 *
 * An op on sample handles runs its batching rule on the entries' tensors, and its outputs become
 * sample handles. It is recorded twice where gradients are wanted: on the handles, for a backward
 * pass inside of the function, and on the tensors, for one around wg_vmap. ---- */

#endif
