/* One walk back: its table of nodes, and what its files share. See backward.c.
 *
 *     slot   node         pending   cotangents
 *     0      of output    0         seed
 *     1      op           1         added up as the nodes that depend on it run
 *     ...    leaf         2         its own gradient stands here, to be added onto
 *
 * A pass keeps its own table, one entry a node; node->slot finds the entry. */
#ifndef WG_AUTOGRAD_PASS_H
#define WG_AUTOGRAD_PASS_H

#include "autograd/node.h"

typedef struct wg__pass_entry {
    wg_node *node;
    int64_t pending; /* edges whose cotangents have not come */
    bool needed;
    bool holds_gradient;  /* a leaf's own gradient stands in for its cotangent, to be added onto */
    uint64_t outer_visit; /* what the node said before: passes may nest, in a vjp */
    int64_t outer_slot;
    wg_tensor *cotangents[WG_MAX_OUTPUTS]; /* kept */
} wg__pass_entry;

typedef struct wg__pass {
    uint64_t id;
    bool retain_graph, create_graph;
    bool in_ops; /* vjps in public ops and decompositions, nothing in place: the gradient is itself
                    to be differentiated, by a recorded graph or by forward mode */
    int input_count; /* of the functional form; 0: leaves take their gradients */
    wg_tensor *const *inputs;
    wg_tensor **results; /* kept, one for each input */
    wg__pass_entry *entries;
    int64_t count, capacity;
    int64_t *stack; /* of slots; capacity as large as entries' */
} wg__pass;

/* Fills the table, and gives the slots in the order in which they are to run; freed by wg__free.
 * NULL with MEMORY. */
int64_t *wg__pass_plan(wg__pass *p, int output_count, wg_tensor *const *outputs);

/* Frees the table, and gives back what a broken pass still holds: gradients moved out of their
 * leaves return there. */
void wg__pass_end(wg__pass *p);

/* Whether the gradient of that input of a node leads to anything wanted. */
bool wg__pass_needs(const wg__pass *p, const wg_node *node, int input);

/* The cotangent of that place, ready to be added onto in place, or NULL. A leaf's own gradient is
 * moved here at first, so that ops which accumulate write straight into it. */
wg_tensor **wg__pass_cotangent_of(wg__pass *p, wg__edge edge);

/* Adds a gradient to what stands at a place; puts a sum there instead. */
int wg__pass_accumulate(wg__pass *p, wg_tensor **place, wg_tensor *gradient);
int wg__pass_put(wg_tensor **place, wg_tensor *sum);

/* Runs the vjp of an op on its cotangents, hands the gradients on along its edges, and frees what
 * it saved unless that is to be kept. */
int wg__pass_run_op(wg__pass *p, wg__pass_entry *e);

#endif
