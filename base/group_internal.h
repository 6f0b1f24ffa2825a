/* The group record, exchanges in the background while the caller computes, and the MPI layer. */
#ifndef WG_BASE_GROUP_INTERNAL_H
#define WG_BASE_GROUP_INTERNAL_H

#include "base/group.h"
#include "base/internal.h"
#include "config.h"

enum { WG__GROUP_NAME = 320 };

typedef struct wg__exchange wg__exchange; /* group_exchange.c */

struct wg_group {
    int rank, size;
    int threads;    /* the result of wg__group_threads */
    double timeout; /* seconds; not above 0: none */
    char name[WG__GROUP_NAME];
    wg__exchange *first, *last; /* sums in bf16 whose second half is not yet begun, in order */
};

/* ---- Exchanges in the background (group_exchange.c). All ranks begin and end them in the same
 * order, and must not use the data in between. The bytes of all ranks together fit an int.
 * *exchange becomes NULL at the end. A single rank exchanges nothing. [IO, MEMORY] ---- */

/* The format of elements in messages. BF16 rounds each rank's elements once and adds them up in
 * f32, in the order of ranks; for WG_GROUP_F32 only. */
typedef enum wg__transit { WG__TRANSIT_AS_IS, WG__TRANSIT_BF16 } wg__transit;

/* All-reduce: replaces `count` elements by their sums over all ranks, which are rounded once more
 * if they travel as bf16. */
int wg__group_begin_sum(wg_group *group, wg_group_element element, wg__transit transit, int count,
                        void *data, wg__exchange **exchange);

/* Reduce-scatter: `data` has a part for each rank, part r of counts[r] elements. This rank's part
 * is replaced by its sum over all ranks, added up in the order of ranks. */
int wg__group_begin_reduce_scatter(wg_group *group, wg_group_element element, wg__transit transit,
                                   const int *counts, void *data, wg__exchange **exchange);

/* All-gather: `data` has a part for each rank, and this rank receives all parts but its own. */
int wg__group_begin_all_gather(wg_group *group, wg_group_element element, const int *counts,
                               void *data, wg__exchange **exchange);

int wg__group_end_exchange(wg_group *group, wg__exchange **exchange);

/* Lets an exchange progress, which MPI does only while it is called. *done: whether the exchange
 * could be ended without waiting; never true for a sum in bf16. */
int wg__group_test(wg_group *group, wg__exchange **exchange, bool *done);

/* ---- To one rank ---- */

/* Collects the parts of all ranks on rank 0. On rank 0 `data` has room for all parts in the order
 * of ranks, counts[r] bytes for rank r, and holds the first part already. On another rank `data` is
 * the part of this rank. Collective. */
int wg__group_gather(wg_group *group, const int64_t *counts, void *data);

/* ---- group_mpi.c. Counts are ints, as in MPI. In a build without MPI nothing calls these
 * functions. ---- */

typedef enum wg__mpi_move_kind {
    WG__MPI_BROADCAST,
    WG__MPI_SEND,
    WG__MPI_RECEIVE
} wg__mpi_move_kind;

#ifdef WG_MPI

/* Fills rank, size, threads and name of a group that is zeros. [IO] */
int wg__mpi_join(wg_group *group);
void wg__mpi_leave(void);

/* "Open MPI v4.1.4" */
void wg__mpi_library(char *name, size_t size);

void wg__mpi_abort(wg_group *group, const char *message);
int wg__mpi_reduce(wg_group *group, wg_group_element element, bool sums, int count, void *data);

/* Calls in the background: *request is NULL once the call has ended. Counts and offsets are bytes,
 * one for each rank, and must not change until then. */
int wg__mpi_begin_sum(void *data, wg_group_element element, int count, void **request);
int wg__mpi_begin_all_to_all(const void *sent, const int *sent_bytes, const int *sent_at,
                             void *received, const int *received_bytes, const int *received_at,
                             void **request);
int wg__mpi_begin_all_gather(void *data, const int *bytes, const int *at, void **request);
int wg__mpi_end(wg_group *group, void **request);
int wg__mpi_test(void **request, bool *done);

/* Broadcasts bytes from `rank`, sends them to `rank`, or receives them from it. */
int wg__mpi_move(wg_group *group, wg__mpi_move_kind kind, int rank, int bytes, void *data);

#else

static inline int wg__without_mpi(const void *first, ...) {
    (void)first;
    return 0;
}

#define wg__mpi_abort wg__without_mpi
#define wg__mpi_reduce wg__without_mpi
#define wg__mpi_begin_sum wg__without_mpi
#define wg__mpi_begin_all_to_all wg__without_mpi
#define wg__mpi_begin_all_gather wg__without_mpi
#define wg__mpi_end wg__without_mpi
#define wg__mpi_test wg__without_mpi
#define wg__mpi_move wg__without_mpi

#endif

#endif
