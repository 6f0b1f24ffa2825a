/* A recomputed region as recording and backward see it. */
#ifndef WG_AUTOGRAD_REGION_H
#define WG_AUTOGRAD_REGION_H

#include "autograd/node.h"

/* The node that a call of a second run had in the first, with what it lacked filled in; NULL when
 * it is gone, or when no region is in its second run (then the call is recorded as any). -1 with an
 * error if the runs differ. */
int wg__region_replayed(const wg_call *call, wg_node **node);

/* True while this thread is in the first run of a region: nodes save nothing. */
bool wg__region_is_open(void);

/* True in the second run of the region that the node is of: what is done to it has been done. */
bool wg__region_repeats(const wg_node *node);

/* Makes a new node part of the open region. */
int wg__region_add(wg_node *node, const wg_call *call);

/* True for a node of a region that has not had its second run. */
bool wg__region_waits(const wg_node *node);

/* Runs the region of a node once more, and so fills in what its nodes lack. */
int wg__region_run_again(const wg_node *node);

/* The node goes. */
void wg__region_forget(const wg_node *node);

#endif
