/* What the files of optim/ share: the optimizer's struct, and the one walk over its parameters. */
#ifndef WG_OPTIM_INTERNAL_H
#define WG_OPTIM_INTERNAL_H

#include "optim/kernels.h"
#include "optim/optimizer.h"

#define WG__MAX_STATES 2

typedef struct wg__optimizer_entry {
    wg_optimizer *optimizer; /* whose it is */
    char *name;
    wg_tensor *parameter; /* borrowed */
    bool no_decay;
    bool as_matrix; /* the rule's own: whether it is updated as a matrix */
    int state_count;
    const char *slots[WG__MAX_STATES];
    wg_tensor *states[WG__MAX_STATES]; /* kept */
    wg_dtype dtype;                    /* of the parameter when it was added */
    const void *gradient; /* during a walk: contiguous elements, NULL if there is none */
    int64_t first_chunk;  /* the number of its first chunk */
    int hook;             /* during a step in backward: on the parameter; 0: none */
    bool stepped;         /* in that step */
} wg__optimizer_entry;

/* Elements [begin, end) of an entry, which are chunk number `chunk` of the walk. */
typedef struct wg__optimizer_chunk {
    const wg__optimizer_entry *entry;
    int64_t begin, end;
    int64_t chunk;
} wg__optimizer_chunk;

typedef void (*wg__optimizer_body)(const wg__optimizer_chunk *chunk, void *context);

/* What makes one optimizer differ from another. */
typedef struct wg__optimizer_rule {
    /* Makes the state of an entry, by wg__optimizer_add_state, and asks for its scratch. */
    int (*prepare)(wg_optimizer *optimizer, wg__optimizer_entry *entry);
    /* One update of every entry from optimizer->first to last that has a gradient, as step number
     * optimizer->steps: what it does to an entry depends on no other. */
    void (*step)(wg_optimizer *optimizer, double learning_rate);
} wg__optimizer_rule;

struct wg_optimizer {
    const wg__optimizer_rule *rule;
    union {
        wg_adamw_options adam;
        wg_sgd_options sgd;
        wg_adafactor_options adafactor;
        wg_lion_options lion;
        wg_muon_options muon;
    } options; /* with their defaults filled in */
    const wg__optimizer_kernels *kernels;
    int64_t steps;
    wg__optimizer_entry *entries;
    int64_t count, capacity;
    int64_t first, last;   /* which entries are walked over: from first to before last */
    double *partial_norms; /* a sum of squares for each chunk of all entries */
    int64_t chunks;
    void *scratch; /* what a rule asked for, for one entry at a time */
    size_t scratch_size;
    double gradient_scale; /* what the next step multiplies gradients by: 1 unless clipped */
    bool not_finite;       /* the gradients, when they were last measured */
    struct {
        bool open; /* between wg_optimizer_step_begin and wg_optimizer_step_end */
        double learning_rate;
        double *norm;    /* of the caller; NULL: gradients are not measured */
        int64_t stepped; /* entries so far */
    } in_backward;
};

/* An optimizer without parameters; NULL with MEMORY. */
wg_optimizer *wg__optimizer_new(const wg__optimizer_rule *rule);

/* Gives an entry one more state, zeros of its parameter's dtype. `slot` is static. [MEMORY] */
int wg__optimizer_add_state(wg__optimizer_entry *entry, const char *slot, int ndim,
                            const int64_t *shape);

/* The same, of the parameter's shape. */
int wg__optimizer_add_state_like(wg__optimizer_entry *entry, const char *slot);

/* Makes optimizer->scratch at least so large. [MEMORY] */
int wg__optimizer_reserve_scratch(wg_optimizer *optimizer, size_t size);

/* Those for the instruction set of the processor. */
const wg__optimizer_kernels *wg__optimizer_kernels_for_cpu(void);

/* The loops for the dtype of an entry. */
const wg__optimizer_loops *wg__optimizer_loops_of(const wg_optimizer *optimizer,
                                                  const wg__optimizer_entry *entry);

/* Elements `at` and on of an entry's gradient, parameter and states. */
const void *wg__entry_gradient(const wg__optimizer_entry *entry, int64_t at);
void *wg__entry_weight(const wg__optimizer_entry *entry, int64_t at);
void *wg__entry_state(const wg__optimizer_entry *entry, int state, int64_t at);

/* Runs body on all chunks of the entries from first to last that have a gradient, in parallel.
 * Chunks are the same at any number of threads, and whatever is walked over with them. */
void wg__optimizer_walk(wg_optimizer *optimizer, wg__optimizer_body body, void *context);

/* ---- Parts of a step: of all entries, or of one ---- */

/* Refuses what must not be in the midst of a step in backward. [STATE] */
int wg__optimizer_check_outside(const wg_optimizer *optimizer, const char *where);

/* Refuses while an error is pending, for such a rate, and for gradients that were found not to be
 * finite. */
int wg__optimizer_check_step(const wg_optimizer *optimizer, const char *where,
                             double learning_rate);

/* Finds an entry's gradient, NULL if there is none, copied into the scope where its elements do not
 * lie in order. [STATE for a parameter whose dtype was changed, MEMORY] */
int wg__optimizer_find_gradient(wg__optimizer_entry *entry, const char *where);

/* Sums of squares of the gradients of entries [first, last) into their chunks' partial norms, which
 * are all 0 after wg__optimizer_forget_norms; the norm that those of such entries make. */
void wg__optimizer_measure(wg_optimizer *optimizer, int64_t first, int64_t last);
void wg__optimizer_forget_norms(wg_optimizer *optimizer);
double wg__optimizer_norm(const wg_optimizer *optimizer, int64_t first, int64_t last);

/* Fails for a norm that is not finite, and names the first entry that is not. */
int wg__optimizer_check_norm(wg_optimizer *optimizer, const char *where, double norm);

/* One update of entries [first, last) that have a gradient. */
void wg__optimizer_update(wg_optimizer *optimizer, int64_t first, int64_t last,
                          double learning_rate);

/* Lets go of the parameters of a step in backward, if one is under way. */
void wg__optimizer_leave_backward(wg_optimizer *optimizer);

/* Checks of options; NaN is refused. -1 with ARGUMENT. */
int wg__check_fraction(const char *where, const char *name, double value); /* 0 < value < 1 */
int wg__check_positive(const char *where, const char *name, double value);
int wg__check_not_negative(const char *where, const char *name, double value);

/* ---- AdamW, which Muon shares ---- */

int wg__adamw_fill_options(const char *where, wg_adamw_options *options);
int wg__adam_prepare(wg_optimizer *optimizer, wg__optimizer_entry *entry);
wg__adam_rates wg__adamw_rates(const wg_adamw_options *options, const wg_optimizer *optimizer,
                               double learning_rate);

/* One chunk of AdamW or, with rates that have a coupled_decay, of Adam. */
void wg__adam_update_chunk(const wg_optimizer *optimizer, const wg__optimizer_chunk *chunk,
                           const wg__adam_rates *rates);

#endif
