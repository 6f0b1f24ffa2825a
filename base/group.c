/* Groups of processes: see group.h. Only group_mpi.c, which is called here, knows MPI. */
#include "base/group_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config.h"

#define WHERE "group"

/* Seconds; writing the checkpoint of a large model to a slow disk takes minutes. */
#define USUAL_TIMEOUT 600

/* ---- Joining and leaving ---- */

/* How many processes mpirun or srun started with this one. */
static int processes_started(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                            "SLURM_STEP_NUM_TASKS"};
    int most = 1;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *size = getenv(variables[i]);
        if (size && atoi(size) > most)
            most = atoi(size);
    }
    return most;
}

/* So many runs that know nothing of each other would write the same checkpoint. */
static int check_size(const wg_group *group) {
    const int started = processes_started();
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

static int join(wg_group *group) {
#ifdef WG_MPI
    if (is_started_by_mpi() && wg__mpi_join(group) < 0)
        return -1;
#endif
    return check_size(group);
}

wg_group *wg_group_join(void) {
    wg_group *group = wg__calloc(1, sizeof *group);
    if (!group)
        return NULL;
    *group = (wg_group){.size = 1, .timeout = USUAL_TIMEOUT, .name = "rank 0"};
    if (join(group) == 0)
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
    if (wg_group_size(group) == 1)
        return;
#ifdef WG_MPI
    wg__mpi_abort(group, message);
#else
    (void)message;
#endif
}

int wg_group_rank(const wg_group *group) {
    return group ? group->rank : 0;
}

int wg_group_size(const wg_group *group) {
    return group ? group->size : 1;
}

const char *wg_group_name(const wg_group *group) {
    return group ? group->name : "rank 0";
}

int wg_group_threads(const wg_group *group) {
    return wg_group_size(group) == 1 || getenv("OMP_NUM_THREADS") ? 0 : group->threads;
}

void wg_group_set_timeout(wg_group *group, double seconds) {
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
        char *from = (char *)data + (size_t)done * size;
#ifdef WG_MPI
        status = wg__mpi_reduce(group, element, sums, piece, from);
#else
        (void)piece, (void)from, (void)sums;
#endif
    }
    return status;
}

int wg_group_sum(wg_group *group, wg_group_element element, int64_t count, void *data) {
    return reduce(group, element, true, count, data);
}

int wg_group_max(wg_group *group, wg_group_element element, int64_t count, void *data) {
    return reduce(group, element, false, count, data);
}

int wg_group_broadcast(wg_group *group, int root, size_t bytes, void *data) {
    int status = 0;
    for (size_t done = 0; status == 0 && done < bytes && wg_group_size(group) > 1; done += PIECE) {
        const int piece = (int)(bytes - done < PIECE ? bytes - done : PIECE);
#ifdef WG_MPI
        status = wg__mpi_broadcast(group, root, piece, (char *)data + done);
#else
        (void)piece, (void)root, (void)data;
#endif
    }
    return status;
}

int wg_group_barrier(wg_group *group) {
    double nothing = 0;
    return wg_group_max(group, WG_GROUP_F64, 1, &nothing);
}

int wg__group_gather(wg_group *group, const int64_t *counts, void *data) {
    int status = 0;
    char *part = data;
    for (int rank = 0; status == 0 && rank < wg_group_size(group); rank++) {
        for (int64_t done = 0; status == 0 && rank > 0 && done < counts[rank]; done += PIECE) {
#ifdef WG_MPI
            const int piece = (int)wg__smaller(counts[rank] - done, PIECE);
            if (group->rank == 0)
                status = wg__mpi_receive(group, rank, piece, part + done);
            else if (group->rank == rank)
                status = wg__mpi_send(group, 0, piece, (char *)data + done);
#endif
        }
        part += wg_group_rank(group) == 0 ? counts[rank] : 0;
    }
    return status;
}

/* The others are in an exchange, or on their way there. */
static void *alloc_or_abort(wg_group *group, size_t size) {
    void *data = wg__alloc(size + 1);
    if (!data)
        wg_group_abort(group, "there is no memory for what the ranks exchange");
    return data;
}

/* Bytes go round in a buffer of one rank after the other. */
int wg_group_collect(wg_group *group, int64_t count, size_t size, const int *owners, void *data) {
    int status = 0;
    if (wg_group_size(group) == 1)
        return 0;
    for (int rank = 0; status == 0 && rank < group->size; rank++) {
        int64_t own = 0, at = 0;
        for (int64_t i = 0; i < count; i++)
            own += owners[i] == rank;
        char *items = alloc_or_abort(group, (size_t)own * size), *all = data;
        for (int64_t i = 0; rank == group->rank && i < count; i++)
            if (owners[i] == rank)
                memcpy(items + (size_t)at++ * size, all + (size_t)i * size, size);
        status = wg_group_broadcast(group, rank, (size_t)own * size, items);
        at = 0;
        for (int64_t i = 0; status == 0 && i < count; i++)
            if (owners[i] == rank)
                memcpy(all + (size_t)i * size, items + (size_t)at++ * size, size);
        wg__free(items);
    }
    return status;
}

/* The lengths first, then the texts of one rank after the other. */
int wg_group_collect_texts(wg_group *group, int64_t count, const int *owners, char **texts) {
    if (wg_group_size(group) == 1)
        return 0;
    int64_t *lengths = alloc_or_abort(group, (size_t)count * sizeof *lengths);
    for (int64_t i = 0; i < count; i++)
        lengths[i] = owners[i] == group->rank ? (int64_t)strlen(texts[i]) + 1 : 0;
    int status = wg_group_collect(group, count, sizeof *lengths, owners, lengths);
    for (int64_t i = 0; status == 0 && i < count; i++)
        if (owners[i] != group->rank)
            texts[i] = alloc_or_abort(group, (size_t)lengths[i]);
    for (int rank = 0; status == 0 && rank < group->size; rank++) {
        int64_t bytes = 0, at = 0;
        for (int64_t i = 0; i < count; i++)
            bytes += owners[i] == rank ? lengths[i] : 0;
        char *all = alloc_or_abort(group, (size_t)bytes);
        for (int64_t i = 0; rank == group->rank && i < count; i++)
            if (owners[i] == rank) {
                memcpy(all + at, texts[i], (size_t)lengths[i]);
                at += lengths[i];
            }
        status = wg_group_broadcast(group, rank, (size_t)bytes, all);
        at = 0;
        for (int64_t i = 0; status == 0 && i < count; i++)
            if (owners[i] == rank) {
                memcpy(texts[i], all + at, (size_t)lengths[i]);
                at += lengths[i];
            }
        wg__free(all);
    }
    wg__free(lengths);
    return status;
}

/* ---- Agreement ---- */

/* The lowest rank for which `mine` is true; -1 if it is for none, -2 with an error. *all: whether
 * it is for each. */
static int lowest_rank(wg_group *group, bool mine, bool *all) {
    double found[] = {mine ? group->size - group->rank : 0, !mine};
    if (wg_group_max(group, WG_GROUP_F64, 2, found) < 0)
        return -2;
    *all = found[1] == 0;
    return found[0] > 0 ? group->size - (int)found[0] : -1;
}

/* What a rank that failed sends. */
typedef struct failure {
    wg_error error;
    char name[WG__GROUP_NAME];
} failure;

static failure own_failure(const wg_group *group) {
    static const wg_error unsaid = {.code = WG_ERROR_STATE,
                                    .message = "it failed without an error"};
    const wg_error *pending = wg_error_pending();
    failure mine = {.error = pending ? *pending : unsaid};
    memcpy(mine.name, group->name, sizeof mine.name);
    return mine;
}

int wg_group_check(wg_group *group, int status) {
    bool all;
    if (wg_group_size(group) == 1)
        return status;
    const int failed = lowest_rank(group, status < 0, &all);
    if (failed < 0)
        return failed == -1 ? 0 : -1;
    failure first = own_failure(group);
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

int wg_group_agree(wg_group *group, const char *what, const char *text) {
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
