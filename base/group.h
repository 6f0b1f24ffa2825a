/* A group: the processes that train one model together, each on its share of the data.
 *
 *     mpirun -n 3 ...      rank 0         rank 1         rank 2
 *                          batches 0 3    batches 1 4    batches 2 5
 *                          gradients      gradients      gradients
 *                             '------------- sum ------------'
 *                          the same step on every rank
 *
 * MPI carries the messages (base/group_mpi.c); without MPI, and in a process that was not started
 * by mpirun or srun, a group has one rank. Every function takes NULL for a group with one rank.
 *
 * The functions that exchange something are collective: all ranks call the same ones in the same
 * order, from one thread. Sums are the same bits on all ranks; the MPI library chooses their order
 * by the number of ranks and where they run. A failing rank reports by wg_group_check. If a rank
 * dies, mpirun ends the run. If a rank hangs, a time-out ends the run with a message that names the
 * rank. */
#ifndef WG_BASE_GROUP_H
#define WG_BASE_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "api.h"

WG_BEGIN_DECLS

typedef struct wg_group wg_group;

/* Joins the processes that mpirun or srun started with this one; a process that was started alone
 * has a group with one rank. Once in a process. The caller must leave the group. NULL with [STATE
 * where several processes were started, but the library has no MPI or not mpirun's; IO, MEMORY] */
WG_API wg_group *wg_group_join(void);

/* Waits until all ranks leave, and frees the group. A process that has joined and exits without
 * leaving ends the run. NULL is allowed. */
WG_API void wg_group_leave(wg_group *group);

/* Ends all ranks at once, after `message` was printed with the rank's name, with exit code 1. For
 * errors after which a rank cannot go on to the next wg_group_check. Does not return, unless the
 * group has one rank. */
WG_API void wg_group_abort(wg_group *group, const char *message);

/* The number of this process, from 0, and how many processes there are. */
WG_API int wg_group_rank(const wg_group *group);
WG_API int wg_group_size(const wg_group *group);

/* ---- Collective functions. 0, or -1 with [IO: an error of MPI] ---- */

typedef enum wg_group_element { WG_GROUP_F32, WG_GROUP_F64, WG_GROUP_I64 } wg_group_element;

/* Replaces `count` elements by their sums over all ranks. */
WG_API int wg_group_sum(wg_group *group, wg_group_element element, int64_t count, void *data);

/* Copies the bytes of rank `root` to all ranks. */
WG_API int wg_group_broadcast(wg_group *group, int root, size_t bytes, void *data);

/* Waits until all ranks are here. */
WG_API int wg_group_barrier(wg_group *group);

/* ---- Agreement. Collective, and with the same outcome on all ranks. ---- */

/* Shares an outcome: 0 if `status` is 0 on all ranks. Otherwise -1 on all ranks, with the error of
 * the lowest failed rank pending. The message names this rank, unless all ranks failed. */
WG_API int wg_group_check(wg_group *group, int status);

WG_END_DECLS

#endif
