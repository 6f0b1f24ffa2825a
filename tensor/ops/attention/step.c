/* Attention of the positions that come next in texts: see attention_step.h. */
#include "tensor/ops/attention/step.h"

#include <math.h>
#include <string.h>

#include "tensor/iter.h"
#include "tensor/ops/attention/tiles.h"
#include "tensor/ops/attention/rotary.h"
#include "tensor/span.h"

/* ---- What the step can take ---- */

static bool is_plain(const wg_tensor *x, wg_dtype dtype) {
    return x && x->spec.dtype == dtype && !x->node && !x->tangents;
}

static bool is_dense_table(const wg_tensor *table, const wg_spec *q, int64_t head_width) {
    const wg_spec *spec = &table->spec;
    const bool of_all = spec->ndim == 2 && spec->shape[0] == q->shape[1],
               of_each = spec->ndim == 4 && spec->shape[0] == q->shape[0] && spec->shape[1] == 1 &&
                         spec->shape[2] == q->shape[1];
    return (of_all || of_each) && 2 * spec->shape[spec->ndim - 1] <= head_width &&
           wg_tensor_is_contiguous(table);
}

static bool tables_suit(const wg__attention_step *step, int64_t head_width) {
    const wg_spec *q = &step->q->spec;
    if (!step->cos)
        return !step->sin;
    return is_plain(step->cos, q->dtype) && is_plain(step->sin, q->dtype) &&
           wg__same_shape(&step->cos->spec, &step->sin->spec) &&
           is_dense_table(step->cos, q, head_width) && is_dense_table(step->sin, q, head_width) &&
           (step->pairing == WG_ROTARY_HALVES || step->pairing == WG_ROTARY_ADJACENT);
}

static wg_spec scores_of(const wg__attention_step *step, int64_t seen) {
    const wg_spec *q = &step->q->spec;
    return (wg_spec){q->dtype, 4, {q->shape[0], step->heads, q->shape[1], seen + q->shape[1]}};
}

static bool mask_suits(const wg__attention_step *step, int64_t seen) {
    if (!step->mask)
        return true;
    const wg_spec scores = scores_of(step, seen);
    wg_spec both;
    return step->mask->spec.dtype == WG_BOOL && wg__broadcast(&scores, &step->mask->spec, &both) &&
           wg__same_shape(&scores, &both);
}

/* Heads side by side in dense rows. */
static bool is_projection(const wg_tensor *x, const wg_spec *q, int64_t width) {
    return is_plain(x, q->dtype) && x->spec.ndim == 3 && x->spec.shape[0] == q->shape[0] &&
           x->spec.shape[1] == q->shape[1] && x->spec.shape[2] == width && x->strides[2] == 1 &&
           x->strides[0] >= 0 && x->strides[1] >= 0;
}

bool wg__attention_step_suits(const wg__attention_step *step, int64_t seen) {
    if (!step->q || step->q->spec.ndim != 3 ||
        (step->q->spec.dtype != WG_F32 && step->q->spec.dtype != WG_F64))
        return false;
    const wg_spec *q = &step->q->spec;
    const int64_t head_width = q->shape[2] / step->heads;
    return wg__spec_count(q) > 0 && is_projection(step->q, q, step->heads * head_width) &&
           is_projection(step->k, q, step->key_heads * head_width) &&
           is_projection(step->v, q, step->key_heads * head_width) &&
           step->heads % step->key_heads == 0 && tables_suit(step, head_width) &&
           mask_suits(step, seen) && step->options.dropout >= 0 && step->options.dropout < 1;
}

/* ---- What is new goes to its place ---- */

typedef struct job {
    const wg__attention_step *step;
    wg__rotation rotation; /* no pairs: nothing is turned */
    int64_t size, positions, seen;
    int64_t table_strides[2]; /* of a sequence, and of a position */
    wg_tensor *keys, *values;
    char *turned; /* (B, T, H D), where queries are turned */
} job;

static char *row_at(const wg_tensor *x, int64_t size, int64_t b, int64_t t) {
    return (char *)wg__tensor_address(x) + (b * x->strides[0] + t * x->strides[1]) * size;
}

static char *place_in(const wg_tensor *room, const job *j, int64_t b, int64_t h, int64_t t) {
    return (char *)wg__tensor_address(room) +
           (b * room->strides[0] + h * room->strides[1] + (j->seen + t) * room->strides[2]) *
               j->size;
}

static void turn(const job *j, int64_t b, int64_t t, const char *from, char *to) {
    const int64_t table = (b * j->table_strides[0] + t * j->table_strides[1]) * j->size;
    wg__rotate_row(&j->rotation, from, (char *)wg__tensor_address(j->step->cos) + table,
                   (char *)wg__tensor_address(j->step->sin) + table, to);
}

static void place_position(const job *j, int64_t b, int64_t t) {
    const wg__attention_step *step = j->step;
    const int64_t bytes = j->rotation.width * j->size;
    const char *q = row_at(step->q, j->size, b, t), *k = row_at(step->k, j->size, b, t),
               *v = row_at(step->v, j->size, b, t);
    char *turned = j->turned + (b * j->positions + t) * step->heads * bytes;
    for (int64_t h = 0; h < step->key_heads; h++) {
        char *key = place_in(j->keys, j, b, h, t);
        memcpy(place_in(j->values, j, b, h, t), v + h * bytes, (size_t)bytes);
        if (step->cos)
            turn(j, b, t, k + h * bytes, key);
        else
            memcpy(key, k + h * bytes, (size_t)bytes);
    }
    for (int64_t h = 0; step->cos && h < step->heads; h++)
        turn(j, b, t, q + h * bytes, turned + h * bytes);
}

static void place_positions(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t i = begin; i < end; i++)
        place_position(j, i / j->positions, i % j->positions);
}

static job job_of(const wg__attention_step *step, wg_tensor *keys, wg_tensor *values,
                  int64_t seen) {
    const wg_spec *q = &step->q->spec;
    job j = {.step = step,
             .rotation = {q->dtype, step->pairing, 0, q->shape[2] / step->heads},
             .size = (int64_t)wg_dtype_size(q->dtype),
             .positions = q->shape[1],
             .seen = seen,
             .keys = keys,
             .values = values};
    if (step->cos) {
        const wg_spec *table = &step->cos->spec;
        j.rotation.pairs = table->shape[table->ndim - 1];
        j.table_strides[0] = table->ndim == 4 ? step->cos->strides[0] : 0;
        j.table_strides[1] = step->cos->strides[table->ndim - 2];
    }
    return j;
}

/* ---- Attention ---- */

/* (B, T, H D) as heads. */
static wg__heads side_by_side(const wg_tensor *x, int64_t size, int64_t head_width) {
    return (wg__heads){wg__tensor_address(x), x->strides[0] * size, head_width * size,
                       x->strides[1], 1};
}

static wg__heads heads_of(const wg_tensor *room, int64_t size) {
    return (wg__heads){wg__tensor_address(room), room->strides[0] * size, room->strides[1] * size,
                       room->strides[2], 1};
}

static int attend(const job *j, wg_tensor *out) {
    const wg__attention_step *step = j->step;
    const wg_spec *q = &step->q->spec;
    const int64_t width = j->rotation.width;
    wg__attention at = {.dtype = q->dtype,
                        .size = j->size,
                        .options = step->options,
                        .batch = q->shape[0],
                        .query_heads = step->heads,
                        .key_heads = step->key_heads,
                        .queries = j->positions,
                        .keys = j->seen + j->positions,
                        .width = width,
                        .q = side_by_side(step->q, j->size, width),
                        .k = heads_of(j->keys, j->size),
                        .v = heads_of(j->values, j->size),
                        .out = side_by_side(out, j->size, width)};
    if (step->cos) {
        at.q = at.out;
        at.q.data = j->turned;
    }
    if (at.options.scale == 0)
        at.options.scale = 1 / sqrt((double)width);
    if (step->mask) {
        const wg_spec scores = scores_of(step, j->seen);
        at.mask = wg__tensor_address(step->mask);
        wg__broadcast_strides(step->mask, &scores, at.mask_strides);
    }
    return wg__attention_run(&at);
}

static int run(job *j, wg_tensor *out) {
    const wg_spec *q = &j->step->q->spec;
    const int64_t bytes = wg__spec_count(q) * j->size, width = j->rotation.width,
                  numbers = (j->step->heads + 2 * j->step->key_heads) * width;
    j->turned = j->step->cos ? wg__alloc((size_t)bytes) : NULL;
    if (j->step->cos && !j->turned)
        return -1;
    wg__parallel_for(q->shape[0] * j->positions, 1 + WG__GRAIN / numbers, place_positions, j);
    wg_tensor_touch(j->keys);
    wg_tensor_touch(j->values);
    const int status = attend(j, out);
    wg__free(j->turned);
    return status;
}

wg_tensor *wg__attention_step_run(const wg__attention_step *step, wg_tensor *keys,
                                  wg_tensor *values, int64_t seen) {
    wg_tensor *out = wg__tensor_new(&step->q->spec);
    if (!out)
        return NULL;
    wg__span span;
    wg__span_begin(&span, "attention", WG_PROFILE_FORWARD);
    job j = job_of(step, keys, values, seen);
    const int status = run(&j, out);
    if (span.taken) {
        const double part = (double)(seen + j.positions) / (double)keys->spec.shape[2];
        wg_tensor *const rooms[] = {keys, values};
        wg__span_close(&span, 2 * wg__bytes_of(1, &step->q) + part * wg__bytes_of(2, rooms), 1,
                       &step->q->spec);
    }
    return status < 0 ? NULL : out;
}
