/* Groups of processes: see group.h. group_mpi.c makes all calls of MPI. */
#include "base/group_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define WHERE "group"

/* Seconds; writing the checkpoint of a large model to a slow disk takes minutes. */
#define USUAL_TIMEOUT 600

/* Fails if mpirun or srun started several processes but this one finds itself alone: all of them
 * would write the same checkpoint. */
static int check_size(const wg_group *group) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                            "SLURM_STEP_NUM_TASKS"};
    int started = 1;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *size = getenv(variables[i]);
        if (size && atoi(size) > started)
            started = atoi(size);
    }
    if (group->size > 1 || started == 1)
        return 0;
#ifdef WG_MPI
    char library[256];
    wg__mpi_library(library, sizeof library);
    return wg_fail(WG_ERROR_STATE, WHERE,
                   "this is one of %d processes, and MPI sees one; start them with the mpirun of "
                   "%s, or by srun with that library's --mpi (srun --mpi=list)",
                   started, library);
#else
    return wg_fail(WG_ERROR_STATE, WHERE,
                   "this is one of %d processes, and the library was built without MPI; install "
                   "libopenmpi-dev and run ./configure --with-mpi",
                   started);
#endif
}

#ifdef WG_MPI

/* MPI takes a while to begin, so a process that was started alone does without. */
static bool is_started_by_mpi(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                            "PMI_FD"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]))
            return true;
    return false;
}

#endif

wg_group *wg_group_join(void) {
    wg_group *group = wg__calloc(1, sizeof *group);
    if (!group)
        return NULL;
    *group = (wg_group){.size = 1, .timeout = USUAL_TIMEOUT, .name = "rank 0"};
    int status = 0;
#ifdef WG_MPI
    if (is_started_by_mpi())
        status = wg__mpi_join(group);
#endif
    if (status == 0 && check_size(group) == 0)
        return group;
    wg__free(group);
    return NULL;
}

void wg_group_leave(wg_group *group) {
#ifdef WG_MPI
    if (group && is_started_by_mpi())
        wg__mpi_leave();
#endif
    wg__free(group);
}

void wg_group_abort(wg_group *group, const char *message) {
    if (wg_group_size(group) > 1)
        wg__mpi_abort(group, message);
}

int wg_group_rank(const wg_group *group) {
    return group ? group->rank : 0;
}

int wg_group_size(const wg_group *group) {
    return group ? group->size : 1;
}

const char *wg__group_name(const wg_group *group) {
    return group ? group->name : "rank 0";
}

int wg__group_threads(const wg_group *group) {
    return wg_group_size(group) == 1 || getenv("OMP_NUM_THREADS") ? 0 : group->threads;
}

void wg__group_set_timeout(wg_group *group, double seconds) {
    if (group)
        group->timeout = seconds;
}

/* ---- Exchanges. MPI counts in ints, so large data go in pieces. ---- */

enum { PIECE = 1 << 28 };

static int reduce(wg_group *group, wg_group_element element, bool sums, int64_t count, void *data) {
    const size_t size = element == WG_GROUP_F32 ? sizeof(float) : sizeof(double);
    int status = 0;
    for (int64_t done = 0; status == 0 && done < count && wg_group_size(group) > 1; done += PIECE) {
        const int piece = (int)wg__smaller(count - done, PIECE);
        status = wg__mpi_reduce(group, element, sums, piece, (char *)data + (size_t)done * size);
    }
    return status;
}

int wg_group_sum(wg_group *group, wg_group_element element, int64_t count, void *data) {
    return reduce(group, element, true, count, data);
}

int wg__group_max(wg_group *group, wg_group_element element, int64_t count, void *data) {
    return reduce(group, element, false, count, data);
}

int wg_group_broadcast(wg_group *group, int root, size_t bytes, void *data) {
    int status = 0;
    for (size_t done = 0; status == 0 && done < bytes && wg_group_size(group) > 1; done += PIECE) {
        const int piece = (int)(bytes - done < PIECE ? bytes - done : PIECE);
        status = wg__mpi_move(group, WG__MPI_BROADCAST, root, piece, (char *)data + done);
    }
    return status;
}

int wg_group_barrier(wg_group *group) {
    double nothing = 0;
    return wg__group_max(group, WG_GROUP_F64, 1, &nothing);
}

int wg__group_gather(wg_group *group, const int64_t *counts, void *data) {
    int status = 0;
    char *part = data;
    for (int rank = 0; status == 0 && rank < wg_group_size(group); rank++) {
        for (int64_t done = 0; status == 0 && rank > 0 && done < counts[rank]; done += PIECE) {
            const int piece = (int)wg__smaller(counts[rank] - done, PIECE);
            if (group->rank == 0)
                status = wg__mpi_move(group, WG__MPI_RECEIVE, rank, piece, part + done);
            else if (group->rank == rank)
                status = wg__mpi_move(group, WG__MPI_SEND, 0, piece, (char *)data + done);
        }
        part += wg_group_rank(group) == 0 ? counts[rank] : 0;
    }
    return status;
}

/* A rank that finds no memory ends the run, because all other ranks wait for it in an exchange. */
static void *alloc_or_abort(wg_group *group, int64_t size) {
    void *data = wg__alloc((size_t)size + 1);
    if (!data)
        wg_group_abort(group, "there is no memory for the data of an exchange");
    return data;
}

/* Sends `count` items of these sizes, item i from rank owners[i], to all ranks: one buffer for each
 * rank in turn. */
static int collect(wg_group *group, int64_t count, const int *owners, const int64_t *sizes,
                   char *const *items) {
    int status = 0;
    for (int rank = 0; status == 0 && rank < group->size; rank++) {
        int64_t bytes = 0, at = 0;
        for (int64_t i = 0; i < count; i++)
            bytes += owners[i] == rank ? sizes[i] : 0;
        char *all = alloc_or_abort(group, bytes);
        for (int64_t i = 0; rank == group->rank && i < count; i++)
            if (owners[i] == rank) {
                memcpy(all + at, items[i], (size_t)sizes[i]);
                at += sizes[i];
            }
        status = wg_group_broadcast(group, rank, (size_t)bytes, all);
        at = 0;
        for (int64_t i = 0; status == 0 && i < count; i++)
            if (owners[i] == rank) {
                memcpy(items[i], all + at, (size_t)sizes[i]);
                at += sizes[i];
            }
        wg__free(all);
    }
    return status;
}

int wg__group_collect(wg_group *group, int64_t count, size_t size, const int *owners, void *data) {
    if (wg_group_size(group) == 1)
        return 0;
    int64_t *sizes = alloc_or_abort(group, wg__times(count, sizeof *sizes));
    char **items = alloc_or_abort(group, wg__times(count, sizeof *items));
    for (int64_t i = 0; i < count; i++) {
        sizes[i] = (int64_t)size;
        items[i] = (char *)data + (size_t)i * size;
    }
    const int status = collect(group, count, owners, sizes, items);
    wg__free(items);
    wg__free(sizes);
    return status;
}

/* The lengths first, then the texts. */
int wg__group_collect_texts(wg_group *group, int64_t count, const int *owners, char **texts) {
    if (wg_group_size(group) == 1)
        return 0;
    int64_t *lengths = alloc_or_abort(group, wg__times(count, sizeof *lengths));
    for (int64_t i = 0; i < count; i++)
        lengths[i] = owners[i] == group->rank ? (int64_t)strlen(texts[i]) + 1 : 0;
    int status = wg__group_collect(group, count, sizeof *lengths, owners, lengths);
    for (int64_t i = 0; status == 0 && i < count; i++)
        if (owners[i] != group->rank)
            texts[i] = alloc_or_abort(group, lengths[i]);
    if (status == 0)
        status = collect(group, count, owners, lengths, texts);
    wg__free(lengths);
    return status;
}

/* ---- Agreement ---- */

/* The lowest rank whose `mine` is true; -1: none, -2: an error. *all: whether `mine` is true on
 * every rank. */
static int lowest_rank(wg_group *group, bool mine, bool *all) {
    double found[] = {mine ? group->size - group->rank : 0, !mine};
    if (wg__group_max(group, WG_GROUP_F64, 2, found) < 0)
        return -2;
    *all = found[1] == 0;
    return found[0] > 0 ? group->size - (int)found[0] : -1;
}

int wg_group_check(wg_group *group, int status) {
    bool all;
    if (wg_group_size(group) == 1)
        return status;
    const int failed = lowest_rank(group, status < 0, &all);
    if (failed < 0)
        return failed == -1 ? 0 : -1;
    struct {
        wg_error error;
        char name[WG__GROUP_NAME];
    } first = {.error = {.code = WG_ERROR_STATE, .message = "it failed without an error"}};
    if (wg_error_pending())
        first.error = *wg_error_pending();
    memcpy(first.name, group->name, sizeof first.name);
    if (wg_group_broadcast(group, failed, sizeof first, &first) < 0)
        return -1;
    wg_error_clear();
    const wg_error *e = &first.error;
    if (all && failed == 0)
        return wg__fail_again(e);
    return wg_fail(e->code, first.name, "%s", e->message);
}

typedef struct compared_text {
    char text[256];
    char name[WG__GROUP_NAME];
} compared_text;

int wg__group_agree(wg_group *group, const char *what, const char *text) {
    bool all;
    if (wg_group_size(group) == 1)
        return 0;
    compared_text mine = {0}, first, other;
    snprintf(mine.text, sizeof mine.text, "%s", text);
    memcpy(mine.name, group->name, sizeof mine.name);
    first = mine;
    if (wg_group_broadcast(group, 0, sizeof first, &first) < 0)
        return -1;
    const int differs = lowest_rank(group, strcmp(mine.text, first.text) != 0, &all);
    if (differs < 0)
        return differs == -1 ? 0 : -1;
    other = mine;
    if (wg_group_broadcast(group, differs, sizeof other, &other) < 0)
        return -1;
    return wg_fail(WG_ERROR_STATE, WHERE,
                   "%s differs from rank 0 in %s: it has '%s', rank 0 '%s'; all ranks must be "
                   "started with the same program, command and files",
                   other.name, what, other.text, first.text);
}
