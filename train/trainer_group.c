/* Data parallelism: what the ranks of a group compare, sum and share. See trainer.h.
 *
 *     backward   | layer 3 | layer 2 | layer 1 | embedding |
 *     buffer     |   piece 0    |   piece 1    |   piece 2    |
 *     network                   | sum piece 0  | sum piece 1  | sum piece 2 |
 *
 * As backward completes a gradient, it is copied into a buffer, from the last parameter to the
 * first; a piece that is full is summed over the ranks while backward goes on. All ranks sum all
 * pieces in each step, also one that has failed or has no batch, so that none waits in vain.
 *
 * An embedding that is the output layer, too, is often the largest parameter, and complete last of
 * all, when the lookups have added their rows to what the output layer gave it first. So it stands
 * at the beginning of the buffer: what the output layer gave is taken out of the gradient and sent
 * at once, and the rows of this rank's last batch follow when all else is there:
 *
 *     backward   | output layer | layer 3 | layer 2 | layer 1 | lookups |
 *     network                   | embedding  | layer 3, 2, 1 ...        | rows |
 */
#include "train/trainer_state.h"

#include <stdio.h>

#include "autograd/internal.h"
#include "base/array.h"
#include "base/group_internal.h"
#include "optim/internal.h"
#include "tensor/internal.h"
#include "tensor/kernels.h"
#include "tensor/ops.h"
#include "tensor/simd/simd.h"
#include "tensor/span.h"

#define WHERE "train"

/* Bytes that are summed at a time: enough for the network's full speed, little beside a model. */
enum { PIECE_BYTES = 4 << 20 };

int wg__trainer_share(wg_trainer *trainer, int status) {
    const int shared = wg_group_check(trainer->options.group, status);
    if (shared < 0)
        trainer->is_told = true;
    return shared;
}

int wg__trainer_check_group(const wg_trainer *trainer) {
    const wg_trainer_options *options = &trainer->options;
    const int ranks = wg_group_size(options->group);
    if (options->zero < 0 || options->zero > 3)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "stage %d of ZeRO; 1 (optimizer state is sharded), 2 (gradients too) and 3 "
                       "(weights too) are there, and 0 for none",
                       options->zero);
    if (ranks == 1)
        return 0;
    if (options->accumulate < ranks)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "a step has %lld batch%s, too few for %d ranks, which share out whole "
                       "batches; --accumulate %d (of a smaller --batch) gives each rank one",
                       (long long)options->accumulate, options->accumulate == 1 ? "" : "es", ranks,
                       ranks);
    if (!trainer->task.batches)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the task does not name its batches, which %d ranks are to share; set "
                       "wg_task.batches",
                       ranks);
    return 0;
}

/* ---- Gradients ---- */

/* A parameter that no batch of this rank used has a gradient of zeros, if another rank's did. */
static int make_zero_gradient(wg_tensor *parameter) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *zeros = wg_zeros_like(parameter);
    const int status = wg_backward(wg_sum(wg_mul(parameter, zeros), 0, NULL, false), NULL);
    wg_scope_end(&scope, NULL);
    return status;
}

/* Parameters that have a gradient on any rank, into `used`. */
static int find_used(wg_trainer *trainer, bool *used) {
    const wg_optimizer *optimizer = trainer->optimizer;
    double *flags = wg__alloc_array(optimizer->count, sizeof *flags);
    if (!flags)
        return -1;
    for (int64_t i = 0; i < optimizer->count; i++)
        flags[i] = wg_gradient(optimizer->entries[i].parameter) != NULL;
    int status = wg_group_max(trainer->options.group, WG_GROUP_F64, optimizer->count, flags);
    for (int64_t i = 0; status == 0 && i < optimizer->count; i++) {
        wg_tensor *parameter = optimizer->entries[i].parameter;
        used[i] = flags[i] != 0;
        if (used[i] && !wg_gradient(parameter))
            status = make_zero_gradient(parameter);
    }
    wg__free(flags);
    return status;
}

/* A parameter in a backward pass. */
typedef struct hooked {
    wg__rows_hook rows; /* first, so that it is its address */
    wg_trainer *trainer;
    int64_t index;
    int hook; /* 0: none */
} hooked;

/* The rows of a table's gradient, as the ranks exchange them. */
typedef struct rows {
    int64_t width;    /* elements of a row */
    size_t stride;    /* bytes from one to the next: a number in the place of an element first */
    int64_t own;      /* of this rank */
    int32_t *numbers; /* (own) */
    int64_t begin;    /* of this rank's among those of all */
    int64_t total;    /* of all ranks */
    int *elements;    /* (ranks) that come from each, numbers included */
} rows;

struct wg__gradient_sums {
    wg_group_element element;
    size_t size;     /* of an element */
    int64_t count;   /* of parameters: the optimizer's */
    int64_t *starts; /* (count) where the gradient of each begins, in elements */
    hooked *hooks;   /* (count) */
    bool *is_taken;  /* (count) the gradient is in the buffer */
    bool *is_table;  /* (count) ops use it as a whole, and others as a table that is looked up */
    rows *rows;      /* (count) of tables, in the midst of an exchange */
    bool *is_ahead;  /* (count) of such ones: in the buffer without the rows that lookups added */
    wg_tensor **wholes; /* (count) of such ones, until the tables are known: kept, or NULL */
    bool keeps_whole;   /* while they are looked for */
    bool *used;         /* (count) it is one of any rank */
    int64_t elements, pieces, begun;
    char *buffer;             /* (elements) */
    int64_t *missing;         /* (pieces) elements that are not yet there */
    wg__exchange **exchanges; /* (pieces) */
};

static int64_t piece_of(const wg__gradient_sums *sums, int64_t element) {
    return element / (PIECE_BYTES / (int64_t)sums->size);
}

/* Elements [*begin, *end) are the piece. */
static void piece_range(const wg__gradient_sums *sums, int64_t piece, int64_t *begin,
                        int64_t *end) {
    const int64_t all = PIECE_BYTES / (int64_t)sums->size;
    *begin = piece * all;
    *end = wg__smaller(*begin + all, sums->elements);
}

void wg__gradient_sums_free(wg__gradient_sums *sums) {
    if (!sums)
        return;
    wg__free(sums->starts);
    wg__free(sums->hooks);
    wg__free(sums->is_taken);
    wg__free(sums->is_table);
    wg__free(sums->is_ahead);
    wg__free(sums->wholes);
    wg__free(sums->rows);
    wg__free(sums->used);
    wg__free(sums->buffer);
    wg__free(sums->missing);
    wg__free(sums->exchanges);
    wg__free(sums);
}

/* Places the gradients in the order in which backward completes them, about: tables without their
 * rows, then the others, the last parameter first. */
static void place_gradients(wg__gradient_sums *sums, const wg_optimizer *optimizer) {
    sums->elements = 0;
    for (int tables = 1; tables >= 0; tables--)
        for (int64_t i = optimizer->count; i-- > 0;)
            if (sums->is_table[i] == (tables == 1)) {
                sums->starts[i] = sums->elements;
                sums->elements += wg_tensor_count(optimizer->entries[i].parameter);
            }
    sums->pieces = piece_of(sums, sums->elements - 1) + 1;
}

static int find_element(wg__gradient_sums *sums, const wg_optimizer *optimizer) {
    if (optimizer->count == 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the module has no parameters");
    const wg_dtype dtype = wg_tensor_dtype(optimizer->entries[0].parameter);
    sums->element = dtype == WG_F32 ? WG_GROUP_F32 : WG_GROUP_F64;
    sums->size = wg_dtype_size(dtype);
    for (int64_t i = 0; i < optimizer->count; i++)
        if (wg_tensor_dtype(optimizer->entries[i].parameter) != dtype)
            return wg_fail(WG_ERROR_DTYPE, WHERE,
                           "parameters of several dtypes, which several ranks do not train");
    return 0;
}

static int make_sums(wg_trainer *trainer) {
    const wg_optimizer *optimizer = trainer->optimizer;
    const size_t count = (size_t)optimizer->count;
    wg__gradient_sums *sums = trainer->sums = wg__calloc(1, sizeof *sums);
    if (!sums)
        return -1;
    sums->count = optimizer->count;
    sums->starts = wg__calloc(count, sizeof *sums->starts);
    sums->hooks = wg__calloc(count, sizeof *sums->hooks);
    sums->is_taken = wg__calloc(count, sizeof *sums->is_taken);
    sums->is_table = wg__calloc(count, sizeof *sums->is_table);
    sums->is_ahead = wg__calloc(count, sizeof *sums->is_ahead);
    sums->rows = wg__calloc(count, sizeof *sums->rows);
    sums->wholes = wg__calloc(count, sizeof(wg_tensor *));
    sums->used = wg__calloc(count, sizeof *sums->used);
    if (!sums->starts || !sums->hooks || !sums->is_taken || !sums->is_table || !sums->is_ahead ||
        !sums->rows || !sums->used || find_element(sums, optimizer) < 0)
        return -1;
    place_gradients(sums, optimizer);
    sums->buffer = wg__alloc_array(sums->elements, sums->size);
    sums->missing = wg__calloc((size_t)sums->pieces, sizeof *sums->missing);
    sums->exchanges = wg__calloc((size_t)sums->pieces, sizeof *sums->exchanges);
    return sums->buffer && sums->missing && sums->exchanges ? 0 : -1;
}

/* Begins the sums of pieces that are full, in order, and lets those before go on. */
static int begin_full_pieces(wg_trainer *trainer) {
    wg__gradient_sums *sums = trainer->sums;
    int64_t begin, end;
    for (; sums->begun < sums->pieces && sums->missing[sums->begun] == 0; sums->begun++) {
        piece_range(sums, sums->begun, &begin, &end);
        if (wg__group_begin_sum(trainer->options.group, sums->element, wg__trainer_transit(trainer),
                                (int)(end - begin), sums->buffer + (size_t)begin * sums->size,
                                &sums->exchanges[sums->begun]) < 0)
            return -1;
    }
    for (int64_t i = 0; i < sums->begun; i++)
        if (wg__group_progress(trainer->options.group, &sums->exchanges[i]) < 0)
            return -1;
    return 0;
}

/* Copies the gradient of a parameter into the buffer, or zeros where there is none. */
static void take_gradient(wg_trainer *trainer, int64_t index, const wg_tensor *gradient) {
    wg__gradient_sums *sums = trainer->sums;
    const wg_tensor *parameter = trainer->optimizer->entries[index].parameter;
    const int64_t first = sums->starts[index], end = first + wg_tensor_count(parameter);
    char *to = sums->buffer + (size_t)first * sums->size;
    const size_t bytes = (size_t)(end - first) * sums->size;
    if (gradient)
        memcpy(to, wg_tensor_data(gradient), bytes);
    else
        memset(to, 0, bytes);
    sums->is_taken[index] = true;
    for (int64_t piece = piece_of(sums, first), from, until; first < end; piece++) {
        piece_range(sums, piece, &from, &until);
        sums->missing[piece] -= wg__smaller(end, until) - wg__larger(first, from);
        if (until >= end)
            break;
    }
}

static int take_in_backward(wg_tensor *leaf, void *context) {
    const hooked *of = context;
    if (!of->trainer->sums->is_ahead[of->index])
        take_gradient(of->trainer, of->index, wg_gradient(leaf));
    return begin_full_pieces(of->trainer);
}

/* Takes what a table has without its rows. */
static void take_whole(wg_trainer *trainer, int64_t index, const wg_tensor *whole) {
    take_gradient(trainer, index, whole);
    trainer->sums->is_ahead[index] = true;
}

/* The rows are then alone in the gradient. */
static int take_ahead(wg__rows_hook *hook, wg_tensor *gradient) {
    const hooked *of = (const hooked *)hook;
    take_whole(of->trainer, of->index, gradient);
    memset(wg_tensor_data(gradient), 0,
           (size_t)wg_tensor_count(gradient) * of->trainer->sums->size);
    return begin_full_pieces(of->trainer);
}

static void remove_hooks(wg_trainer *trainer) {
    wg__gradient_sums *sums = trainer->sums;
    for (int64_t i = 0; i < sums->count; i++) {
        if (wg_requires_grad(trainer->optimizer->entries[i].parameter))
            wg__set_rows_hook(trainer->optimizer->entries[i].parameter, NULL);
        if (sums->hooks[i].hook > 0)
            wg_remove_hook(trainer->optimizer->entries[i].parameter, sums->hooks[i].hook);
        sums->hooks[i].hook = 0;
    }
}

void wg__trainer_begin_sums(wg_trainer *trainer) {
    wg__gradient_sums *sums = trainer->sums;
    int64_t begin, end;
    sums->begun = 0;
    for (int64_t i = 0; i < sums->count; i++)
        sums->is_taken[i] = sums->is_ahead[i] = false;
    for (int64_t i = 0; i < sums->pieces; i++) {
        piece_range(sums, i, &begin, &end);
        sums->missing[i] = end - begin;
    }
}

int wg__trainer_sum_in_backward(wg_trainer *trainer) {
    wg__gradient_sums *sums = trainer->sums;
    for (int64_t i = 0; i < sums->count; i++) {
        wg_tensor *parameter = trainer->optimizer->entries[i].parameter;
        if (!wg_requires_grad(parameter))
            continue;
        hooked *of = &sums->hooks[i];
        *of = (hooked){.rows = {take_ahead}, .trainer = trainer, .index = i};
        if (sums->is_table[i])
            wg__set_rows_hook(parameter, &of->rows);
        of->hook = wg_register_post_accumulate_grad_hook(parameter, take_in_backward, of);
        if (of->hook < 0) {
            remove_hooks(trainer);
            return -1;
        }
    }
    return 0;
}

/* ---- Tables ---- */

/* What the table has without its rows is kept until it has a place, if this batch is sent. */
static int note_table(wg__rows_hook *hook, wg_tensor *gradient) {
    const hooked *of = (const hooked *)hook;
    wg__gradient_sums *sums = of->trainer->sums;
    sums->is_table[of->index] = true;
    if (!sums->keeps_whole)
        return 0;
    sums->wholes[of->index] = wg_keep(wg_clone(gradient));
    memset(wg_tensor_data(gradient), 0, (size_t)wg_tensor_count(gradient) * sums->size);
    return sums->wholes[of->index] ? 0 : -1;
}

void wg__trainer_begin_finding_tables(wg_trainer *trainer, bool is_last) {
    wg__gradient_sums *sums = trainer->sums;
    sums->keeps_whole = is_last;
    for (int64_t i = 0; i < sums->count; i++) {
        wg_tensor *parameter = trainer->optimizer->entries[i].parameter;
        sums->hooks[i] = (hooked){.rows = {note_table}, .trainer = trainer, .index = i};
        if (wg_requires_grad(parameter) && wg_tensor_ndim(parameter) > 1)
            wg__set_rows_hook(parameter, &sums->hooks[i].rows);
    }
}

int wg__trainer_share_tables(wg_trainer *trainer) {
    wg__gradient_sums *sums = trainer->sums;
    remove_hooks(trainer);
    const int status = wg_group_broadcast(
        trainer->options.group, 0, (size_t)sums->count * sizeof *sums->is_table, sums->is_table);
    place_gradients(sums, trainer->optimizer);
    for (int64_t i = 0; i < sums->count; i++) {
        if (sums->wholes[i])
            take_whole(trainer, i, sums->wholes[i]);
        wg_release(sums->wholes[i]);
        sums->wholes[i] = NULL;
    }
    return status;
}

static bool is_zero(const char *row, size_t bytes) {
    return row[0] == 0 && memcmp(row, row + 1, bytes - 1) == 0;
}

/* Numbers the rows of a gradient that are not zero. */
static void find_rows(const wg_tensor *gradient, size_t size, rows *r) {
    const int64_t count = wg_tensor_count(gradient) / r->width;
    const char *data = wg_tensor_data(gradient);
    const size_t bytes = (size_t)r->width * size;
    for (int64_t i = 0; i < count; i++)
        if (!is_zero(data + (size_t)i * bytes, bytes))
            r->numbers[r->own++] = (int32_t)i;
}

static void pack_rows(const wg_tensor *gradient, size_t size, const rows *r, char *to) {
    const char *data = wg_tensor_data(gradient);
    const size_t bytes = (size_t)r->width * size;
    for (int64_t i = 0; i < r->own; i++, to += r->stride) {
        memcpy(to, &r->numbers[i], sizeof r->numbers[i]);
        memcpy(to + size, data + (size_t)r->numbers[i] * bytes, bytes);
    }
}

static void add_row(const wg__gradient_sums *sums, int64_t start, int64_t width, const char *row) {
    if (sums->element == WG_GROUP_F32) {
        float *to = (float *)sums->buffer + start;
        for (int64_t i = 0; i < width; i++)
            to[i] += ((const float *)row)[i];
    } else {
        double *to = (double *)sums->buffer + start;
        for (int64_t i = 0; i < width; i++)
            to[i] += ((const double *)row)[i];
    }
}

/* The rows that this rank has added to a table since it sent it, or NULL. */
static const wg_tensor *own_rows(const wg_trainer *trainer, int64_t index) {
    return trainer->sums->is_ahead[index]
               ? wg_gradient(trainer->optimizer->entries[index].parameter)
               : NULL;
}

/* How many rows each rank has, and where this rank's stand. */
static int count_rows(wg_trainer *trainer, int64_t index) {
    wg__gradient_sums *sums = trainer->sums;
    wg_group *group = trainer->options.group;
    const wg_tensor *parameter = trainer->optimizer->entries[index].parameter;
    const wg_tensor *own = own_rows(trainer, index);
    const int ranks = wg_group_size(group), mine = wg_group_rank(group);
    rows *r = &sums->rows[index];
    const int64_t count = wg_tensor_shape(parameter)[0];
    *r = (rows){.width = wg_tensor_count(parameter) / count,
                .numbers = wg__alloc_array(count, sizeof *r->numbers),
                .elements = wg__calloc((size_t)ranks, sizeof *r->elements)};
    r->stride = (size_t)(r->width + 1) * sums->size;
    double *counts = wg__calloc((size_t)ranks, sizeof *counts);
    if (!counts || !r->numbers || !r->elements) { /* the others are in the sum below */
        wg_group_abort(group, "there is no memory for a step");
        wg__free(counts);
        return -1;
    }
    if (own)
        find_rows(own, sums->size, r);
    counts[mine] = (double)r->own;
    const int status = wg_group_sum(group, WG_GROUP_F64, ranks, counts);
    for (int rank = 0; rank < ranks; rank++) {
        r->begin += rank < mine ? (int64_t)counts[rank] : 0;
        r->total += (int64_t)counts[rank];
        r->elements[rank] = (int)((int64_t)counts[rank] * (r->width + 1));
    }
    wg__free(counts);
    return status;
}

/* Adds the rows of all ranks to the sums of the table, in the order of ranks. */
static int sum_rows(wg_trainer *trainer, int64_t index) {
    wg__gradient_sums *sums = trainer->sums;
    wg_group *group = trainer->options.group;
    const rows *r = &sums->rows[index];
    const wg_tensor *own = own_rows(trainer, index);
    wg__exchange *exchange = NULL;
    char *data = wg__alloc_array(r->total, r->stride);
    if (!data) {
        wg_group_abort(group, "there is no memory for a step");
        return -1;
    }
    if (own)
        pack_rows(own, sums->size, r, data + (size_t)r->begin * r->stride);
    int status = wg__group_begin_all_gather(group, sums->element, r->elements, data, &exchange);
    if (status == 0)
        status = wg__group_end_exchange(group, &exchange);
    for (int64_t i = 0; status == 0 && i < r->total; i++) {
        const char *row = data + (size_t)i * r->stride;
        int32_t number;
        memcpy(&number, row, sizeof number);
        add_row(sums, sums->starts[index] + number * r->width, r->width, row + sums->size);
    }
    wg__free(data);
    return status;
}

/* The same where they are so many that the whole is shorter. */
static int sum_all_rows(wg_trainer *trainer, int64_t index) {
    wg__gradient_sums *sums = trainer->sums;
    wg_group *group = trainer->options.group;
    const wg_tensor *own = own_rows(trainer, index);
    const int64_t count = wg_tensor_count(trainer->optimizer->entries[index].parameter);
    char *all = wg__calloc((size_t)count, sums->size);
    if (!all) {
        wg_group_abort(group, "there is no memory for a step");
        return -1;
    }
    if (own)
        memcpy(all, wg_tensor_data(own), (size_t)count * sums->size);
    const int status = wg_group_sum(group, sums->element, count, all);
    add_row(sums, sums->starts[index], count, all);
    wg__free(all);
    return status;
}

/* Sums the rows that ranks have added to a table. An all-gather sends each row to all ranks, an
 * all-reduce each element of the table about twice. */
static int add_rows(wg_trainer *trainer, int64_t index) {
    rows *r = &trainer->sums->rows[index];
    const int64_t count = wg_tensor_shape(trainer->optimizer->entries[index].parameter)[0];
    const bool is_long = r->total >= count || (double)r->total * (double)r->stride > INT32_MAX;
    const int status = r->total == 0 ? 0
                       : is_long     ? sum_all_rows(trainer, index)
                                     : sum_rows(trainer, index);
    wg__free(r->numbers);
    wg__free(r->elements);
    *r = (rows){0};
    return status;
}

int wg__trainer_end_sums(wg_trainer *trainer) {
    wg__gradient_sums *sums = trainer->sums;
    int status = 0;
    wg__span span;
    wg__span_begin(&span, "sum gradients", WG_PROFILE_REGION);
    remove_hooks(trainer);
    for (int64_t i = sums->count; i-- > 0;)
        if (!sums->is_taken[i])
            take_gradient(trainer, i, wg_gradient(trainer->optimizer->entries[i].parameter));
    if (begin_full_pieces(trainer) < 0)
        status = -1;
    for (int64_t i = 0; i < sums->count; i++)
        if (sums->is_table[i] && count_rows(trainer, i) < 0)
            status = -1;
    for (int64_t i = 0; i < sums->begun; i++)
        if (wg__group_end_exchange(trainer->options.group, &sums->exchanges[i]) < 0)
            status = -1;
    for (int64_t i = 0; i < sums->count; i++)
        if (sums->is_table[i] && add_rows(trainer, i) < 0)
            status = -1;
    wg__span_end(&span);
    return status;
}

int wg__trainer_take_sums(wg_trainer *trainer) {
    wg__gradient_sums *sums = trainer->sums;
    if (find_used(trainer, sums->used) < 0)
        return -1;
    for (int64_t i = 0; i < sums->count; i++) {
        wg_tensor *parameter = trainer->optimizer->entries[i].parameter;
        if (sums->used[i])
            memcpy(wg_tensor_data(wg_gradient(parameter)),
                   sums->buffer + (size_t)sums->starts[i] * sums->size,
                   (size_t)wg_tensor_count(parameter) * sums->size);
    }
    return 0;
}

/* ---- Buffers ---- */

static int broadcast(wg_group *group, wg_tensor *x) {
    if (!wg_tensor_is_contiguous(x))
        return wg_fail(WG_ERROR_STATE, WHERE, "a tensor of the module is not contiguous");
    return wg_group_broadcast(group, 0, (size_t)wg_tensor_count(x) * wg_dtype_size(x->spec.dtype),
                              wg_tensor_data(x));
}

/* A buffer that training writes, such as a running mean. */
typedef struct written {
    wg_tensor *buffer; /* borrowed from the module */
    uint64_t version;  /* when the ranks had it alike */
} written;

struct wg__shared_buffers {
    written *buffers;
    int64_t count, capacity;
    double *sums; /* room for the flags of all, and for the elements of the largest */
};

void wg__shared_buffers_free(wg__shared_buffers *shared) {
    if (!shared)
        return;
    wg__free(shared->buffers);
    wg__free(shared->sums);
    wg__free(shared);
}

/* Notes all buffers: at this moment the ranks have them alike. */
static int make_shared_buffers(wg_trainer *trainer, const wg_state_dict *state) {
    wg__shared_buffers_free(trainer->buffers);
    wg__shared_buffers *shared = trainer->buffers = wg__calloc(1, sizeof *shared);
    int64_t room = 1;
    for (int64_t i = 0; shared && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind != WG_SLOT_BUFFER || slot->tied)
            continue;
        const written added = {slot->tensor, wg__tensor_version(slot->tensor)};
        room = wg__larger(room, wg_tensor_count(slot->tensor));
        if (wg__append(&shared->buffers, &shared->count, &shared->capacity, &added, sizeof added) <
            0)
            return -1;
    }
    if (shared)
        shared->sums = wg__alloc_array(wg__larger(room, shared->count), sizeof(double));
    return shared && shared->sums ? 0 : -1;
}

/* The mean over the ranks that have written it, of which there are `writers`. */
static int average_buffer(wg_group *group, wg_tensor *x, bool has_written, double writers,
                          double *sums) {
    const int64_t count = wg_tensor_count(x);
    void *data = wg_tensor_data(x);
    for (int64_t i = 0; i < count; i++)
        sums[i] = !has_written                   ? 0
                  : wg_tensor_dtype(x) == WG_F32 ? ((const float *)data)[i]
                                                 : ((const double *)data)[i];
    if (wg_group_sum(group, WG_GROUP_F64, count, sums) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        if (wg_tensor_dtype(x) == WG_F32)
            ((float *)data)[i] = (float)(sums[i] / writers);
        else
            ((double *)data)[i] = sums[i] / writers;
    }
    wg_tensor_touch(x);
    return 0;
}

int wg__trainer_share_buffers(wg_trainer *trainer) {
    wg__shared_buffers *shared = trainer->buffers;
    wg_group *group = trainer->options.group;
    for (int64_t i = 0; i < shared->count; i++)
        shared->sums[i] =
            wg__tensor_version(shared->buffers[i].buffer) != shared->buffers[i].version;
    if (shared->count == 0)
        return 0;
    double *writers = wg__alloc_array(shared->count, sizeof *writers);
    if (!writers) { /* the others are in the sum below */
        wg_group_abort(group, "there is no memory for a step");
        return -1;
    }
    memcpy(writers, shared->sums, (size_t)shared->count * sizeof *writers);
    int status = wg_group_sum(group, WG_GROUP_F64, shared->count, writers);
    for (int64_t i = 0; status == 0 && i < shared->count; i++) {
        written *own = &shared->buffers[i];
        const wg_dtype dtype = wg_tensor_dtype(own->buffer);
        if (writers[i] == 0)
            continue;
        if (dtype == WG_F32 || dtype == WG_F64)
            status =
                average_buffer(group, own->buffer, wg__tensor_version(own->buffer) != own->version,
                               writers[i], shared->sums);
        else
            status = broadcast(group, own->buffer);
        own->version = wg__tensor_version(own->buffer);
    }
    wg__free(writers);
    return status;
}

/* ---- Before the first step ---- */

/* Names and shapes of parameters and buffers. */
static int describe_module(const wg_state_dict *state, char *text, size_t size) {
    uint64_t found = WG__HASH_BEGIN;
    int64_t elements = 0;
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        const wg_tensor *x = entry->slot->tensor;
        const int dtype = (int)wg_tensor_dtype(x);
        found = wg__hash(found, entry->path, strlen(entry->path));
        found = wg__hash(found, &dtype, sizeof dtype);
        found = wg__hash(found, wg_tensor_shape(x), (size_t)wg_tensor_ndim(x) * sizeof(int64_t));
        elements += entry->slot->tied ? 0 : wg_tensor_count(x);
    }
    return snprintf(text, size, "%lld tensors of %lld numbers, fingerprint %016llx",
                    (long long)state->count, (long long)elements, (unsigned long long)found);
}

static void describe_options(const wg_trainer_options *o, char *text, size_t size) {
    const wg_schedule *s = &o->schedule;
    snprintf(
        text, size,
        "steps %lld, accumulate %lld in %lld, clip %g, average %g, evaluate every %lld, "
        "patience %lld, ZeRO %d%s, %s; %s to %g, %g at the end, warm-up %lld of %lld, decay %lld, "
        "width %lld",
        (long long)o->steps, (long long)o->accumulate, (long long)o->accumulate_ramp, o->clip,
        o->average_decay, (long long)o->evaluate_every, (long long)o->patience, o->zero,
        o->bf16_gradients ? " bf16" : "", wg_dtype_name(o->matmul_dtype), wg_schedule_name(s->kind),
        s->peak, s->final, (long long)s->warmup_steps, (long long)s->total_steps,
        (long long)s->decay_steps, (long long)s->width);
}

static int agree(wg_trainer *trainer, const wg_state_dict *state) {
    wg_group *group = trainer->options.group;
    char text[256];
    if (wg_group_agree(group, "the version of Wengert", wg_version()) < 0 ||
        wg_group_agree(group, "the processor's instruction set", wg__simd_for(WG_F32)->name) < 0 ||
        wg_group_agree(group, "deterministic mode", wg_is_deterministic() ? "on" : "off") < 0)
        return -1;
    describe_module(state, text, sizeof text);
    if (wg_group_agree(group, "the model", text) < 0)
        return -1;
    describe_options(&trainer->options, text, sizeof text);
    if (wg_group_agree(group, "the options of training", text) < 0 ||
        (trainer->task.agree && trainer->task.agree(trainer->task.context, group) < 0))
        return -1;
    const wg_data_position at = wg_batches_position(trainer->task.batches);
    snprintf(text, sizeof text, "step %lld, epoch %lld, example %lld of %lld, seed %llu",
             (long long)trainer->step, (long long)at.epoch, (long long)at.next,
             (long long)wg_batches_examples(trainer->task.batches), (unsigned long long)at.seed);
    return wg_group_agree(group, "the place in the run", text);
}

/* All ranks begin with the weights, buffers, optimizer state and random numbers of rank 0. */
static int take_state(wg_trainer *trainer, const wg_state_dict *state) {
    wg_group *group = trainer->options.group;
    const char *slot, *name;
    wg_tensor *x;
    for (int64_t i = 0; i < state->count; i++)
        if (!state->entries[i].slot->tied && broadcast(group, state->entries[i].slot->tensor) < 0)
            return -1;
    for (int64_t i = 0; !wg__trainer_is_sharded(trainer) &&
                        wg__optimizer_state(trainer->optimizer, i, &slot, &name, &x);
         i++)
        if (broadcast(group, x) < 0)
            return -1;
    return wg_group_broadcast(group, 0, sizeof(wg_generator),
                              wg_module_generator(trainer->task.module));
}

int wg__trainer_begin_group(wg_trainer *trainer) {
    if (!wg__trainer_is_shared(trainer))
        return 0;
    wg_state_dict *state = wg_module_state(trainer->task.module);
    int status = state && (trainer->zero || trainer->sums || make_sums(trainer) == 0) &&
                         make_shared_buffers(trainer, state) == 0
                     ? 0
                     : -1;
    status = wg__trainer_share(trainer, status);
    if (status == 0)
        status = agree(trainer, state) < 0 || take_state(trainer, state) < 0 ? -1 : 0;
    wg_state_dict_free(state);
    if (status == 0 && wg__trainer_shards_weights(trainer))
        status = wg__trainer_share(trainer, wg__zero_part_weights(trainer));
    return status;
}

/* ---- Metrics ---- */

/* Rank 0 has the first batch of the step, so it knows all names. */
int wg__trainer_sum_metrics(wg_trainer *trainer, double *loss, wg_metrics *metrics) {
    if (wg_group_sum(trainer->options.group, WG_GROUP_F64, 1, loss) < 0)
        return -1;
    return wg__metrics_sum(trainer->options.group, metrics);
}

/* ---- Memory ---- */

void wg_trainer_memory(const wg_trainer *trainer, int64_t *state, int64_t *gradients) {
    const wg_optimizer *optimizer = trainer->optimizer;
    int64_t all = 0;
    for (int64_t i = 0; i < optimizer->count; i++)
        all += wg_tensor_count(optimizer->entries[i].parameter) *
               (int64_t)wg_dtype_size(optimizer->entries[i].dtype);
    *state = wg__optimizer_state_bytes(optimizer);
    if (!wg__trainer_is_shared(trainer)) {
        *gradients = all;
    } else if (!wg__trainer_is_sharded(trainer)) {
        *gradients = 2 * all; /* and the buffer of their sums */
    } else {
        const bool adds_up = trainer->options.zero == 1 &&
                             trainer->options.accumulate > wg_group_size(trainer->options.group);
        *gradients =
            (adds_up ? all : 0) + wg__zero_buffer_bytes(trainer->zero) +
            optimizer->shard.elements * (int64_t)wg_dtype_size(optimizer->entries[0].dtype);
    }
}

int64_t wg_trainer_weight_bytes(const wg_trainer *trainer) {
    const wg_optimizer *optimizer = trainer->optimizer;
    int64_t bytes = 0;
    for (int64_t i = 0; i < optimizer->count; i++) {
        const wg__optimizer_entry *entry = &optimizer->entries[i];
        bytes += (int64_t)wg_dtype_size(entry->dtype) * (wg__trainer_shards_weights(trainer)
                                                             ? entry->end - entry->begin
                                                             : wg_tensor_count(entry->parameter));
    }
    return bytes;
}
