/* The stack machine of pickles, as far as torch.save's state dicts need it. See pytorch_zip.h.
 *
 * Every instruction makes at most one value, and values live until the end, so memory is bounded by
 * the pickle's length; what it can name stands in one short table. */
#ifndef WG_IO_WEIGHTS_PICKLE_H
#define WG_IO_WEIGHTS_PICKLE_H

#include "io/weights/pytorch_zip.h"

typedef enum wg__pickle_kind {
    WG__PICKLE_NOTHING, /* None, a float: of no use here */
    WG__PICKLE_TRUTH,
    WG__PICKLE_INTEGER,
    WG__PICKLE_TEXT,
    WG__PICKLE_SEQUENCE, /* tuple or list: `items` */
    WG__PICKLE_DICT,     /* `items`: key, value, key, value... */
    WG__PICKLE_GLOBAL,
    WG__PICKLE_STORAGE,
    WG__PICKLE_TENSOR,
    WG__PICKLE_MARK
} wg__pickle_kind;

typedef struct wg__pickle_value {
    wg__pickle_kind kind;
    int64_t integer;  /* INTEGER, TRUTH; of a GLOBAL its row; of a TEXT its length */
    const char *text; /* in the pickle, not terminated */
    int32_t *items;   /* values by number */
    int64_t count, capacity;
    wg__pickled_storage *storage;
    wg__pickled_tensor *tensor;
} wg__pickle_value;

typedef struct wg__pickle_machine {
    const wg_weights *file;
    const uint8_t *bytes;
    int64_t count, at;
    wg__pickle_value *values;
    int64_t value_count, value_capacity;
    int32_t *stack;
    int64_t depth, stack_capacity;
    int32_t *memo; /* by number; -1: nothing */
    int64_t memo_capacity;
} wg__pickle_machine;

/* ---- The machine (pickle.c) ---- */

/* Runs the pickle to its end, where its value is on the top of the stack. -1 with FORMAT, MEMORY.
 * To be cleared in every case. */
int wg__pickle_run(wg__pickle_machine *m);
void wg__pickle_clear(wg__pickle_machine *m);

/* -1 after recording FORMAT, with the place in the pickle. */
int wg__pickle_fail(const wg__pickle_machine *m, const char *what);

/* Puts a value, by its number, onto the stack. */
int wg__pickle_push(wg__pickle_machine *m, int32_t number);

/* A new value on the stack; NULL without memory. */
wg__pickle_value *wg__pickle_push_new(wg__pickle_machine *m, wg__pickle_kind kind);

/* The value so far from the top, 0 the topmost; NULL with an error if there is none, or a mark. */
wg__pickle_value *wg__pickle_peek(const wg__pickle_machine *m, int64_t below);

/* ---- What torch's names stand for (pickle_torch.c) ---- */

/* Instructions: "module\nname\n" becomes a value; the function and its arguments, the topmost two,
 * become the result; ("storage", type, key, device, elements), on the top, becomes a storage. */
int wg__pickle_push_global(wg__pickle_machine *m);
int wg__pickle_reduce(wg__pickle_machine *m);
int wg__pickle_push_storage(wg__pickle_machine *m);

#endif
