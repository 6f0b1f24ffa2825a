/* Exchanges in the background while the caller computes: see group_internal.h.
 *
 *     all-reduce                   MPI's
 *     reduce-scatter               each rank gets its part from all, and adds them up
 *     all-reduce in bf16           a reduce-scatter of equal parts, then an all-gather
 *
 *         rank 0   | a0 | b0 |     | a0 + a1 |         |     | a0 + a1 | b0 + b1 |
 *         rank 1   | a1 | b1 | --> |         | b0 + b1 | --> | a0 + a1 | b0 + b1 |
 *
 * MPI has no sums of bf16, and a rank that adds them up itself does so in f32, in the order of
 * ranks, which no MPI library changes. The second half of a sum begins when the first has ended,
 * which ranks notice at different times; a queue keeps the second halves in the order of the first
 * ones, as MPI wants them. */
#include "base/group_internal.h"

#include <string.h>

#define WHERE "group"

struct wg__exchange {
    void *request; /* of MPI; NULL: it has ended */
    wg_group_element element;
    wg__transit transit;
    bool returns; /* a second half gives all ranks the sums */
    bool adds;    /* the received parts are added up */
    bool is_queued;
    int count; /* elements of all parts */
    char *data;
    char *sent, *received;        /* data, or its elements as bf16; a part from each rank */
    int *own_bytes, *own_at;      /* (ranks) sizes and offsets in `received` */
    int *part_bytes, *part_at;    /* (ranks) sizes and offsets in `sent` */
    int own_begin, own_count;     /* this rank's part, in elements */
    size_t size, size_in_transit; /* bytes of an element in `data` and in `sent` */
    wg__exchange *next;           /* in the queue */
};

/* Adds up this rank's part in the order of ranks. */
static void add_up(const wg_group *group, const wg__exchange *x) {
    char *sum = x->data + (size_t)x->own_begin * x->size;
    float *sum32 = (float *)sum;
    double *sum64 = (double *)sum;
    memset(sum, 0, (size_t)x->own_count * x->size);
    for (int rank = 0; rank < group->size; rank++) {
        const void *part = x->received + x->own_at[rank];
        for (int i = 0; i < x->own_count; i++)
            if (x->transit == WG__TRANSIT_BF16)
                sum32[i] += wg__bf16_to_f32(((const uint16_t *)part)[i]);
            else if (x->element == WG_GROUP_F64)
                sum64[i] += ((const double *)part)[i];
            else
                sum32[i] += ((const float *)part)[i];
    }
}

/* Begins the second half of the first exchange in the queue, whose first half has ended. */
static int begin_return(wg_group *group) {
    wg__exchange *x = group->first;
    const float *data = (const float *)x->data;
    uint16_t *sums = (uint16_t *)x->sent;
    x->is_queued = false;
    group->first = x->next;
    if (!group->first)
        group->last = NULL;
    if (wg__mpi_end(group, &x->request) < 0)
        return -1;
    add_up(group, x);
    for (int i = x->own_begin; i < x->own_begin + x->own_count; i++)
        sums[i] = wg__f32_to_bf16(data[i]);
    return wg__mpi_begin_all_gather(sums, x->part_bytes, x->part_at, &x->request);
}

/* ---- Beginning ---- */

static void free_exchange(wg__exchange *x) {
    if (!x)
        return;
    if (x->sent != x->data)
        wg__free(x->sent);
    wg__free(x->received);
    wg__free(x->own_bytes);
    wg__free(x);
}

static wg__exchange *new_exchange(const wg_group *group, wg_group_element element,
                                  wg__transit transit, const int *counts, void *data) {
    if (transit == WG__TRANSIT_BF16 && element != WG_GROUP_F32)
        return wg__fail_null(WG_ERROR_DTYPE, WHERE, "only f32 is sent as bf16");
    wg__exchange *x = wg__calloc(1, sizeof *x);
    const size_t ranks = (size_t)group->size;
    if (!x)
        return NULL;
    *x = (wg__exchange){.element = element, .transit = transit, .data = data, .sent = data};
    x->own_bytes = wg__calloc((size_t)wg__times(4, ranks), sizeof *x->own_bytes);
    if (!x->own_bytes) {
        free_exchange(x);
        return NULL;
    }
    x->own_at = x->own_bytes + ranks;
    x->part_bytes = x->own_at + ranks;
    x->part_at = x->part_bytes + ranks;
    x->size = element == WG_GROUP_F64 ? sizeof(double) : sizeof(float);
    x->size_in_transit = transit == WG__TRANSIT_BF16 ? sizeof(uint16_t) : x->size;
    const int size = (int)x->size_in_transit;
    x->own_count = counts[group->rank];
    for (int rank = 0; rank < group->size; rank++) {
        if (rank == group->rank)
            x->own_begin = x->count;
        x->part_bytes[rank] = counts[rank] * size;
        x->part_at[rank] = x->count * size;
        x->own_bytes[rank] = x->own_count * size;
        x->own_at[rank] = rank * x->own_count * size;
        x->count += counts[rank];
    }
    return x;
}

static int begin_all_to_all(wg_group *group, wg__exchange *x) {
    const bool rounds = x->transit == WG__TRANSIT_BF16;
    const size_t size = x->size_in_transit;
    x->adds = true;
    x->received = wg__alloc_array(wg__times(wg__times(x->own_count, group->size), size) + 1, 1);
    if (rounds)
        x->sent = wg__alloc_array(wg__times(x->count, size) + 1, 1);
    if (!x->received || !x->sent)
        return -1;
    for (int i = 0; rounds && i < x->count; i++)
        ((uint16_t *)x->sent)[i] = wg__f32_to_bf16(((const float *)x->data)[i]);
    return wg__mpi_begin_all_to_all(x->sent, x->part_bytes, x->part_at, x->received, x->own_bytes,
                                    x->own_at, &x->request);
}

/* Assigns the exchange to *exchange, or frees it if it failed to begin. */
static int finish_beginning(wg__exchange *x, int status, wg__exchange **exchange) {
    if (status == 0)
        *exchange = x;
    else
        free_exchange(x);
    return status;
}

int wg__group_begin_sum(wg_group *group, wg_group_element element, wg__transit transit, int count,
                        void *data, wg__exchange **exchange) {
    *exchange = NULL;
    if (wg_group_size(group) == 1)
        return 0;
    wg__exchange *x;
    if (transit == WG__TRANSIT_AS_IS) {
        x = wg__calloc(1, sizeof *x);
        if (!x)
            return -1;
        *x = (wg__exchange){.element = element, .data = data, .sent = data};
        return finish_beginning(x, wg__mpi_begin_sum(data, element, count, &x->request), exchange);
    }
    int *counts = wg__alloc_array(group->size, sizeof *counts); /* nearly equal parts */
    for (int rank = 0; counts && rank < group->size; rank++)
        counts[rank] = count / group->size + (rank < count % group->size);
    x = counts ? new_exchange(group, element, transit, counts, data) : NULL;
    wg__free(counts);
    if (!x)
        return -1;
    x->returns = true;
    const int status = begin_all_to_all(group, x);
    if (status == 0) {
        x->is_queued = true;
        *(group->last ? &group->last->next : &group->first) = x;
        group->last = x;
    }
    return finish_beginning(x, status, exchange);
}

int wg__group_begin_reduce_scatter(wg_group *group, wg_group_element element, wg__transit transit,
                                   const int *counts, void *data, wg__exchange **exchange) {
    *exchange = NULL;
    if (wg_group_size(group) == 1)
        return 0;
    wg__exchange *x = new_exchange(group, element, transit, counts, data);
    return !x ? -1 : finish_beginning(x, begin_all_to_all(group, x), exchange);
}

int wg__group_begin_all_gather(wg_group *group, wg_group_element element, const int *counts,
                               void *data, wg__exchange **exchange) {
    *exchange = NULL;
    if (wg_group_size(group) == 1)
        return 0;
    wg__exchange *x = new_exchange(group, element, WG__TRANSIT_AS_IS, counts, data);
    return !x ? -1
              : finish_beginning(
                    x, wg__mpi_begin_all_gather(data, x->part_bytes, x->part_at, &x->request),
                    exchange);
}

int wg__group_test(wg_group *group, wg__exchange **exchange, bool *done) {
    wg__exchange *x = *exchange;
    *done = !x;
    if (!x)
        return 0;
    if (wg__mpi_test(&x->request, done) < 0)
        return -1;
    while (group->first) {
        bool ended = false;
        if (wg__mpi_test(&group->first->request, &ended) < 0)
            return -1;
        if (!ended)
            break;
        if (begin_return(group) < 0)
            return -1;
    }
    *done = *done && !x->returns;
    return 0;
}

int wg__group_end_exchange(wg_group *group, wg__exchange **exchange) {
    int status = 0;
    wg__exchange *x = *exchange;
    if (!x)
        return 0;
    while (status == 0 && x->is_queued)
        status = wg__mpi_end(group, &group->first->request) < 0 ? -1 : begin_return(group);
    if (wg__mpi_end(group, &x->request) < 0)
        status = -1;
    if (status == 0 && x->returns)
        for (int i = 0; i < x->count; i++)
            ((float *)x->data)[i] = wg__bf16_to_f32(((const uint16_t *)x->sent)[i]);
    else if (status == 0 && x->adds)
        add_up(group, x);
    free_exchange(x);
    *exchange = NULL;
    return status;
}
