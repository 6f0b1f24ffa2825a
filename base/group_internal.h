/* What carries a group's messages, and sums that are under way while the caller computes. */
#ifndef WG_BASE_GROUP_INTERNAL_H
#define WG_BASE_GROUP_INTERNAL_H

#include "base/group.h"
#include "base/internal.h"

enum { WG__GROUP_NAME = 320 };

struct wg_group {
    int rank, size;
    int threads;    /* as wg_group_threads gives */
    double timeout; /* seconds; not above 0: none */
    char name[WG__GROUP_NAME];
};

/* Sums of a series, beside the other exchanges: each is begun, in the same order on all ranks, with
 * data that must be left alone until it has ended. An element count fits an int. *request is the
 * transport's, and becomes NULL at the end. [IO] */
int wg__group_begin_sum(wg_group *group, wg_group_element element, int count, void *data,
                        void **request);
int wg__group_end_sum(wg_group *group, void **request);

/* Lets a sum that is under way go on. MPI does so only while it is called. */
void wg__group_progress(void **request);

/* ---- group_mpi.c. Without MPI it is left out, and groups have one rank. Counts are ints, as MPI
 * has them; the elements and ops are those of group.h. ---- */

/* Fills rank, size, threads and name of a group that is zeros. [IO] */
int wg__mpi_join(wg_group *group);
void wg__mpi_leave(void);

/* "Open MPI v4.1.4" */
void wg__mpi_library(char *name, size_t size);

void wg__mpi_abort(wg_group *group, const char *message);
int wg__mpi_reduce(wg_group *group, wg_group_element element, bool sums, int count, void *data);
int wg__mpi_begin_sum(wg_group *group, wg_group_element element, int count, void *data,
                      void **request);
int wg__mpi_end_sum(wg_group *group, void **request);
void wg__mpi_progress(void **request);
int wg__mpi_broadcast(wg_group *group, int root, int bytes, void *data);

#endif
