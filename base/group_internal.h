/* What carries a group's messages. */
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

/* ---- group_mpi.c. Without MPI it is left out, and groups have one rank. Counts are ints, as MPI
 * has them; the elements and ops are those of group.h. ---- */

/* Fills rank, size, threads and name of a group that is zeros. [IO] */
int wg__mpi_join(wg_group *group);
void wg__mpi_leave(void);

/* "Open MPI v4.1.4" */
void wg__mpi_library(char *name, size_t size);

void wg__mpi_abort(wg_group *group, const char *message);
int wg__mpi_reduce(wg_group *group, wg_group_element element, bool sums, int count, void *data);
int wg__mpi_broadcast(wg_group *group, int root, int bytes, void *data);

#endif
