/* Forward mode by dual numbers: a handle may carry tangents, one for each wg_jvp that it takes part
 * in.
 *
 *     x --> tangent of level 7 --> tangent of level 5          level 7 runs inside of level 5
 *
 * A level is one run of wg_jvp; numbers grow, so that an inner run has the higher one. An op takes
 * off the highest level among its inputs, runs on what is left (which takes care of lower levels
 * and of recording), and gives its outputs the tangent of that level by op->jvp, on inputs that
 * carry lower levels only. So the levels never mix (Siskind & Pearlmutter 2005), and jvps, which
 * are public ops, are differentiated by the lower levels and recorded like all else.
 *
 * Handles share a list by counting its first entry. A level knows its entries and empties them when
 * it ends: what outlives it (a node that saved a dual tensor) is then as if it had never been. */
#ifndef WG_AUTOGRAD_FORWARD_H
#define WG_AUTOGRAD_FORWARD_H

#include "autograd/node.h"

typedef struct wg__level {
    uint64_t number;
    wg_tangent *first; /* of this level's entries */
    struct wg__level *outer;
} wg__level;

/* Opens a level on this thread; closes it, which must be the innermost. */
void wg__level_begin(wg__level *level);
void wg__level_end(wg__level *level);

/* True inside of a wg_jvp on this thread: a backward pass must then run in public ops alone. */
bool wg__level_is_open(void);

/* Gives x, which carries no level so high, a tangent. */
int wg__tangent_push(wg_tensor *x, wg__level *level, wg_tensor *tangent);

/* The tangent of x in that level, which is the highest that x can carry; NULL: zero. Borrowed. */
wg_tensor *wg__tangent_of(const wg_tensor *x, const wg__level *level);

/* A handle in the innermost scope as x, without that level, the highest that x can carry. */
wg_tensor *wg__primal(wg_tensor *x, const wg__level *level);

/* What tensor/ calls through its hooks. */
int wg__run_dual(wg_call *call);
wg_tangent *wg__tangents_share(wg_tangent *tangents);
void wg__tangents_release(wg_tangent *tangents);
bool wg__is_dual(const wg_tensor *x);

#endif
