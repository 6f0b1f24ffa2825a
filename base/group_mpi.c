/* The messages of a group through MPI. No other file calls MPI.
 *
 * Collective calls begin without blocking, and this file waits for them, so that a waiting rank can
 * notice a rank that never joins the call:
 *
 *     rank 0 waits in a sum      . . . . . time-out   asks all: "are you waiting, too?"
 *     rank 1 waits in a sum        . . . . . . . . .     answers
 *     rank 2 hangs elsewhere                             does not: it is named, and the run ended
 */
#include "base/group_internal.h"
#include "base/system.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WHERE "group"

/* Tags of the messages beside collective calls. */
enum { QUESTION = 1, ANSWER = 2 };

/* Seconds. A waiting rank looks for questions every look_every, sleeps between its looks after
 * sleeps_after, and waits answers_within for answers. */
static const double look_every = 0.2, answers_within = 3, sleeps_after = 0.5;
enum { SLEEP_NANOSECONDS = 100000 };

/* Messages of separate communicators never meet messages of a program that uses MPI, too. */
static MPI_Comm everyone;  /* exchanges that are waited for */
static MPI_Comm series;    /* exchanges in the background */
static MPI_Comm returns;   /* second halves of `series`, in a separate order */
static MPI_Comm questions; /* of waiting ranks */
static MPI_Comm *const communicators[] = {&everyone, &series, &returns, &questions};
enum { COMMUNICATORS = sizeof communicators / sizeof *communicators };
static bool has_joined, is_ours; /* is_ours: MPI was begun here */

static int fail_mpi(int code, const char *call) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    return wg_fail(WG_ERROR_IO, WHERE, "%s: %s", call, text);
}

void wg__mpi_library(char *name, size_t size) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    for (char *c = version; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    snprintf(name, size, "%s", version);
}

int wg__mpi_join(wg_group *group) {
    int begun, level, status;
    MPI_Initialized(&begun);
    if (!begun &&
        (status = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level)) != MPI_SUCCESS)
        return fail_mpi(status, "MPI_Init_thread");
    is_ours = !begun;
    for (int i = 0; i < COMMUNICATORS; i++) {
        if ((status = MPI_Comm_dup(MPI_COMM_WORLD, communicators[i])) != MPI_SUCCESS)
            return fail_mpi(status, "MPI_Comm_dup");
        MPI_Comm_set_errhandler(*communicators[i], MPI_ERRORS_RETURN);
    }
    has_joined = true;
    MPI_Comm_rank(everyone, &group->rank);
    MPI_Comm_size(everyone, &group->size);
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    MPI_Get_processor_name(host, &length);
    snprintf(group->name, sizeof group->name, "rank %d on %s", group->rank, host);
    /* The cores of this machine that this rank may run on, shared out among the ranks that may: two
     * ranks bound to the same eight cores have four each. */
    enum { MOST = 4096 };
    static int ranks_on[MOST], own[MOST];
    MPI_Comm machine;
    double share = 0;
    group->threads = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) !=
        MPI_SUCCESS)
        return 0;
    wg__allowed_processors(MOST, own);
    MPI_Allreduce(own, ranks_on, MOST, MPI_INT, MPI_SUM, machine);
    for (int i = 0; i < MOST; i++)
        if (own[i])
            share += 1.0 / ranks_on[i];
    MPI_Comm_free(&machine);
    if (share >= 1)
        group->threads = (int)(share + 1e-6);
    return 0;
}

void wg__mpi_leave(void) {
    int finalized;
    MPI_Finalized(&finalized);
    if (finalized || !has_joined)
        return;
    has_joined = false;
    for (int i = COMMUNICATORS; i-- > 0;)
        MPI_Comm_free(communicators[i]);
    if (is_ours)
        MPI_Finalize();
}

void wg__mpi_abort(wg_group *group, const char *message) {
    fflush(stdout);
    fprintf(stderr, "wengert: %s: %s\n", group->name, message);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/* Sends an empty message, which is on its way when this returns. */
static void send_empty(int rank, int tag) {
    MPI_Request request;
    if (MPI_Isend(NULL, 0, MPI_BYTE, rank, tag, questions, &request) == MPI_SUCCESS)
        MPI_Request_free(&request);
}

/* Receives an empty message with this tag, if one has come. Its sender, or -1. */
static int receive_empty(int tag) {
    int there = 0;
    MPI_Status from;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tag, questions, &there, &from) != MPI_SUCCESS || !there)
        return -1;
    MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, tag, questions, MPI_STATUS_IGNORE);
    return from.MPI_SOURCE;
}

/* Asks all ranks, and ends the run with a message that names the ranks which do not answer. */
static void end_hanging_run(wg_group *group) {
    char missing[256] = "", message[512];
    bool *answered = calloc((size_t)group->size, sizeof *answered), is_first = true;
    for (int rank = 0; answered && rank < group->size; rank++)
        if (rank != group->rank)
            send_empty(rank, QUESTION);
    for (const double begun = wg__now(); answered && wg__now() - begun < answers_within;
         sched_yield()) {
        for (int rank; (rank = receive_empty(QUESTION)) >= 0;)
            send_empty(rank, ANSWER);
        for (int rank; (rank = receive_empty(ANSWER)) >= 0;)
            answered[rank] = true;
    }
    for (int rank = 0; answered && rank < group->size; rank++) {
        is_first = is_first && !(rank < group->rank && answered[rank]);
        if (rank != group->rank && !answered[rank]) {
            const size_t used = strlen(missing);
            snprintf(missing + used, sizeof missing - used, "%srank %d", used > 0 ? ", " : "",
                     rank);
        }
    }
    free(answered);
    snprintf(message, sizeof message,
             "%s did not come to the next exchange within %g seconds, and the run is ended; the "
             "last checkpoint is good, and --resume goes on with it",
             *missing ? missing : "a message", group->timeout);
    /* The lowest rank that answers ends the run and says why; its signal ends this sleep. */
    for (const double begun = wg__now(); !is_first && wg__now() - begun < 4 * answers_within;)
        sleep(1);
    wg__mpi_abort(group, message);
}

/* Waits for a call that was begun with `status`. Ranks may share cores, so a waiting rank yields;
 * while rank 0 writes a checkpoint, waiting ranks sleep. */
static int wait_for(wg_group *group, int status, MPI_Request *request, const char *call) {
    const struct timespec pause = {.tv_nsec = SLEEP_NANOSECONDS};
    double begun = 0, looked = 0;
    for (int tests = 0;; tests++) {
        int done = 0;
        if (status == MPI_SUCCESS)
            status = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (status != MPI_SUCCESS)
            return fail_mpi(status, call);
        if (done)
            return 0;
        if (tests < 100)
            continue;
        const double now = wg__now();
        if (begun == 0)
            begun = looked = now;
        if (now - looked > look_every) {
            for (int rank; (rank = receive_empty(QUESTION)) >= 0;)
                send_empty(rank, ANSWER);
            looked = now;
        }
        if (group->timeout > 0 && now - begun > group->timeout)
            end_hanging_run(group);
        if (now - begun > sleeps_after)
            nanosleep(&pause, NULL);
        else
            sched_yield();
    }
}

static const MPI_Datatype types[] = {
    [WG_GROUP_F32] = MPI_FLOAT, [WG_GROUP_F64] = MPI_DOUBLE, [WG_GROUP_I64] = MPI_INT64_T};

int wg__mpi_reduce(wg_group *group, wg_group_element element, bool sums, int count, void *data) {
    MPI_Request request;
    const int status = MPI_Iallreduce(MPI_IN_PLACE, data, count, types[element],
                                      sums ? MPI_SUM : MPI_MAX, everyone, &request);
    return wait_for(group, status, &request, "MPI_Iallreduce");
}

int wg__mpi_move(wg_group *group, wg__mpi_move_kind kind, int rank, int bytes, void *data) {
    static const char *const calls[] = {[WG__MPI_BROADCAST] = "MPI_Ibcast",
                                        [WG__MPI_SEND] = "MPI_Isend",
                                        [WG__MPI_RECEIVE] = "MPI_Irecv"};
    MPI_Request request;
    int status;
    if (kind == WG__MPI_BROADCAST)
        status = MPI_Ibcast(data, bytes, MPI_BYTE, rank, everyone, &request);
    else if (kind == WG__MPI_SEND)
        status = MPI_Isend(data, bytes, MPI_BYTE, rank, 0, everyone, &request);
    else
        status = MPI_Irecv(data, bytes, MPI_BYTE, rank, 0, everyone, &request);
    return wait_for(group, status, &request, calls[kind]);
}

/* ---- Calls in the background ---- */

/* Reports a call that could not begin, and frees its request. */
static int begun(int status, const char *call, void **request) {
    if (status == MPI_SUCCESS)
        return 0;
    wg__free(*request);
    *request = NULL;
    return fail_mpi(status, call);
}

int wg__mpi_begin_sum(void *data, wg_group_element element, int count, void **request) {
    MPI_Request *own = *request = wg__alloc(sizeof *own);
    return !own ? -1
                : begun(MPI_Iallreduce(MPI_IN_PLACE, data, count, types[element], MPI_SUM, series,
                                       own),
                        "MPI_Iallreduce", request);
}

int wg__mpi_begin_all_to_all(const void *sent, const int *sent_bytes, const int *sent_at,
                             void *received, const int *received_bytes, const int *received_at,
                             void **request) {
    MPI_Request *own = *request = wg__alloc(sizeof *own);
    return !own ? -1
                : begun(MPI_Ialltoallv(sent, sent_bytes, sent_at, MPI_BYTE, received,
                                       received_bytes, received_at, MPI_BYTE, series, own),
                        "MPI_Ialltoallv", request);
}

int wg__mpi_begin_all_gather(void *data, const int *bytes, const int *at, void **request) {
    MPI_Request *own = *request = wg__alloc(sizeof *own);
    return !own ? -1
                : begun(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data, bytes, at, MPI_BYTE,
                                        returns, own),
                        "MPI_Iallgatherv", request);
}

int wg__mpi_end(wg_group *group, void **request) {
    const int status = *request ? wait_for(group, MPI_SUCCESS, *request, "an exchange") : 0;
    wg__free(*request);
    *request = NULL;
    return status;
}

/* A call that has ended leaves MPI_REQUEST_NULL, which tests as done. */
int wg__mpi_test(void **request, bool *done) {
    int flag = 1;
    const int status = *request ? MPI_Test(*request, &flag, MPI_STATUS_IGNORE) : MPI_SUCCESS;
    *done = flag;
    return status == MPI_SUCCESS ? 0 : fail_mpi(status, "MPI_Test");
}
