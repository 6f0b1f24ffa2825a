/* Internals of the optimizers: the table of kernels, the optimizer's record, the parallel loop over
 * its parameters, sharding, and averages of weights. */
#ifndef WG_OPTIM_INTERNAL_H
#define WG_OPTIM_INTERNAL_H

#include "base/internal.h"
#include "optim/optimizer.h"

/* ---- The loops of the optimizers over contiguous elements, compiled once for each instruction
 * set.
 *
 * Elements are f32 or f64: there is a table of loops for each. All loops multiply the gradient by
 * gradient_scale, g' = gradient_scale g, so that clipping needs no extra pass over memory. ---- */

/* The numbers of a step of Adam or AdamW, with lr and the bias corrections folded in. */
typedef struct wg__adam_rates {
    double gradient_scale;
    double coupled_decay; /* g' += coupled_decay w: Adam's */
    double beta1, beta2;  /* m = beta1 m + (1 - beta1) g';  v = beta2 v + (1 - beta2) g'^2 */
    double root_scale;    /* 1 / sqrt(1 - beta2^t) */
    double eps;
    double step_size; /* lr / (1 - beta1^t) */
    double keep;      /* 1 - lr decay: AdamW's */
} wg__adam_rates;

typedef struct wg__sgd_rates {
    double gradient_scale;
    double decay; /* g' += decay w */
    double momentum;
    double direct, along; /* the weights of g' and m in the step */
    double step_size;
} wg__sgd_rates;

typedef struct wg__lion_rates {
    double gradient_scale;
    double beta1, beta2;
    double keep, step_size;
} wg__lion_rates;

/* Sums are in double. */
typedef struct wg__optimizer_loops {
    /* sum x^2 */
    double (*square_sum)(int64_t n, const void *x);

    /* x = scale x */
    void (*scale)(int64_t n, double scale, void *x);

    /* w = keep w - step_size x */
    void (*apply)(int64_t n, double keep, double step_size, const void *x, void *w);

    /* w = keep w - step_size m / (root_scale sqrt(v) + eps) */
    void (*adam)(int64_t n, const wg__adam_rates *rates, const void *g, void *w, void *m, void *v);

    /* w -= step_size g'; with momentum, m = momentum m + g', w -= step_size (direct g' + along m)
     */
    void (*sgd)(int64_t n, const wg__sgd_rates *rates, const void *g, void *w);
    void (*sgd_momentum)(int64_t n, const wg__sgd_rates *rates, const void *g, void *w, void *m);

    /* w = keep w - step_size sign(beta1 m + (1 - beta1) g');  m = beta2 m + (1 - beta2) g' */
    void (*lion)(int64_t n, const wg__lion_rates *rates, const void *g, void *w, void *m);

    /* m = momentum m + (1 - momentum) g';  x = momentum m + (1 - momentum) g'; gives sum x^2 */
    double (*nesterov)(int64_t n, double gradient_scale, double momentum, const void *g, void *m,
                       void *x);

    /* columns[j] += g'[j]^2 + eps; gives the sum of the addends */
    double (*add_squares)(int64_t n, double gradient_scale, double eps, const void *g,
                          double *columns);

    /* u[j] = factor g[j] c[j]: gives sum u^2 */
    double (*factored_sum)(int64_t n, double factor, const void *g, const void *c);

    /* w[j] = keep w[j] - factor g[j] c[j] */
    void (*factored_apply)(int64_t n, double keep, double factor, const void *g, const void *c,
                           void *w);

    /* v = beta2 v + (1 - beta2) (g'^2 + eps); gives sum g'^2 / v */
    double (*second_moment)(int64_t n, double gradient_scale, double beta2, double eps,
                            const void *g, void *v);

    /* w = keep w - factor g / sqrt(v) */
    void (*second_moment_apply)(int64_t n, double keep, double factor, const void *g, const void *v,
                                void *w);
} wg__optimizer_loops;

typedef struct wg__optimizer_kernels {
    wg__optimizer_loops f32, f64;
} wg__optimizer_kernels;

/* The kernels for each instruction set; only the base ones on processors other than x86-64. */
extern const wg__optimizer_kernels wg__optimizer_kernels_base;
extern const wg__optimizer_kernels wg__optimizer_kernels_v3;
extern const wg__optimizer_kernels wg__optimizer_kernels_v4;

/* ---- Parameters and their state ---- */

#define WG__MAX_STATES WG_RULE_STATES

typedef struct wg__optimizer_entry {
    wg_optimizer *optimizer; /* the optimizer that it belongs to */
    char *name;
    wg_tensor *parameter; /* borrowed */
    bool no_decay;
    double rate;        /* of its group: the learning rate as a multiple of the step's */
    double decay;       /* of its group; -1: the optimizer's */
    bool as_matrix;     /* Muon and Adafactor update it as a matrix */
    int64_t begin, end; /* the elements that this process steps: all, unless it is sharded */
    bool used;          /* it has a gradient on any rank in this step */
    int state_count;
    const char *slots[WG__MAX_STATES];
    wg_tensor *states[WG__MAX_STATES];   /* kept; sharded: this rank's part, flat */
    wg_spec state_specs[WG__MAX_STATES]; /* of whole states */
    wg_dtype dtype;                      /* of the parameter when it was added */
    const wg__optimizer_loops *loops;    /* for this dtype */
    const void *gradient;                /* during a walk: contiguous elements; NULL: no gradient */
    int64_t first_chunk;                 /* the number of its first chunk */
    int hook;                            /* during a step in backward: on the parameter; 0: none */
    bool stepped;                        /* the step in backward has updated it */
} wg__optimizer_entry;

/* Elements [begin, end) of an entry, which are chunk number `chunk` of the walk. */
typedef struct wg__optimizer_chunk {
    const wg__optimizer_entry *entry;
    int64_t begin, end;
    int64_t chunk;
} wg__optimizer_chunk;

typedef void (*wg__optimizer_body)(const wg__optimizer_chunk *chunk, void *context);

/* The update rule of an optimizer. */
typedef struct wg__optimizer_rule {
    const char *states[WG__MAX_STATES]; /* names of states of the parameter's shape, up to NULL */
    /* Makes other states of an entry, by wg__optimizer_add_state, and reserves its scratch; NULL:
     * nothing to do. */
    int (*prepare)(wg_optimizer *optimizer, wg__optimizer_entry *entry);
    /* One update of every entry from optimizer->first to last that has a gradient, as step number
     * optimizer->steps: the update of an entry depends on no other entry. -1 with an error. */
    int (*step)(wg_optimizer *optimizer, double learning_rate);
    /* Whether the update of an element depends on other elements of its parameter, so that a single
     * rank must step the whole parameter: always, or if a function says so (NULL: never). */
    bool steps_whole;
    bool (*is_whole)(const wg_optimizer *optimizer, const wg__optimizer_entry *entry);
    bool couples_decay; /* Adam: the decay is a part of the gradient */
} wg__optimizer_rule;

/* A group that was added, with a copy of its names. */
typedef struct wg__optimizer_group {
    wg_parameter_group group;
    int64_t parameters; /* whose names match, even if a later group applies to them */
} wg__optimizer_group;

/* ZeRO   (Rajbhandari et al. 2020): each rank of a group steps a share of the parameters and stores
 * the state of this share. See shard.c. */
typedef struct wg__optimizer_shard {
    wg_group *group;  /* borrowed; NULL: this process steps everything */
    int64_t *bounds;  /* (count, ranks + 1): rank r steps elements [bounds[r], bounds[r + 1]) */
    char *gradients;  /* sums over ranks of the gradients of this rank's elements, f32 or f64, from
                       * the last entry to the first; NULL: the parameters have the gradients */
    int64_t *starts;  /* (count) offset of each entry in `gradients`, in elements */
    int64_t elements; /* in `gradients` */
} wg__optimizer_shard;

/* A step during a backward pass. */
typedef struct wg__step_in_backward {
    bool open; /* between wg_optimizer_step_begin and wg_optimizer_step_end */
    double learning_rate;
    double *norm;    /* the caller's variable; NULL: gradients are not measured */
    int64_t stepped; /* entries so far */
} wg__step_in_backward;

typedef struct wg__user_rule {
    wg_update_rule rule;
    void *context;
} wg__user_rule;

struct wg_optimizer {
    const wg__optimizer_rule *rule;
    union {
        wg_adamw_options adam;
        wg_sgd_options sgd;
        wg_adafactor_options adafactor;
        wg_lion_options lion;
        wg_muon_options muon;
        wg__user_rule user;
    } options; /* with their defaults filled in */
    int64_t steps;
    wg__optimizer_entry *entries;
    int64_t count, capacity;
    wg__optimizer_group *groups;
    int64_t group_count, group_capacity;
    int64_t first, last;   /* a walk covers entries [first, last) */
    double *partial_norms; /* a sum of squares for each chunk of all entries */
    int64_t chunks;
    wg__optimizer_shard shard;
    void *scratch; /* working memory of the rule, for one entry at a time */
    size_t scratch_size;
    double gradient_scale; /* the factor of gradients in the next step: 1 unless clipped */
    bool not_finite;       /* the last measured gradients had a NaN or infinity */
    wg__step_in_backward in_backward;
};

/* An optimizer without parameters; `options` are its rule's member of wg_optimizer.options. NULL
 * with MEMORY. */
wg_optimizer *wg__optimizer_new(const wg__optimizer_rule *rule, const void *options, size_t size);

/* Adds a state to an entry, zeros of its parameter's dtype. `slot` is static. [MEMORY] */
int wg__optimizer_add_state(wg__optimizer_entry *entry, const char *slot, int ndim,
                            const int64_t *shape);

/* Makes the state of an entry by the optimizer's rule. [MEMORY] */
int wg__optimizer_prepare(wg_optimizer *optimizer, wg__optimizer_entry *entry);

/* Adds states of the parameter's shape: up to NULL, WG__MAX_STATES at most. [MEMORY] */
int wg__optimizer_add_states(wg__optimizer_entry *entry, const char *const *slots);

/* Makes optimizer->scratch at least so large. [MEMORY] */
int wg__optimizer_reserve_scratch(wg_optimizer *optimizer, size_t size);

/* The kernels for the instruction set of the processor. */
const wg__optimizer_kernels *wg__optimizer_kernels_for_cpu(void);

/* The decay of an entry; `usual` is the optimizer's decay. */
static inline double wg__entry_decay(const wg__optimizer_entry *entry, double usual) {
    return entry->no_decay ? 0 : entry->decay >= 0 ? entry->decay : usual;
}

/* The address of element `at` in an entry's gradient, parameter or state. */
const void *wg__entry_gradient(const wg__optimizer_entry *entry, int64_t at);
void *wg__entry_weight(const wg__optimizer_entry *entry, int64_t at);
void *wg__entry_state(const wg__optimizer_entry *entry, int state, int64_t at);

/* Runs body on all chunks of entries [first, last) that have a gradient, in parallel. The chunks of
 * an entry depend neither on the number of threads nor on first and last. */
void wg__optimizer_walk(wg_optimizer *optimizer, wg__optimizer_body body, void *context);

/* Refuses a step with a group that has no parameter. [ARGUMENT] */
int wg__optimizer_check_groups(const wg_optimizer *optimizer, const char *where);

/* ---- Steps in backward ---- */

/* Refuses a call in the midst of a step in backward. [STATE] */
int wg__optimizer_check_outside(const wg_optimizer *optimizer, const char *where);

/* Removes the hooks of a step in backward, if one is under way. */
void wg__optimizer_leave_backward(wg_optimizer *optimizer);

/* Checks that an option is in its range; infinities and NaN are refused. -1 with ARGUMENT. */
typedef enum wg__range {
    WG__RANGE_FRACTION /* [0, 1) */,
    WG__RANGE_POSITIVE,
    WG__RANGE_NOT_NEGATIVE
} wg__range;
int wg__check_option(const char *where, const char *name, double value, wg__range range);

/* ---- Sharding (shard.c) ---- */

/* Sharding begins when shard.group is set, before any parameter is added: then wg_optimizer_add
 * makes no state. */

/* After all parameters are added: divides the elements, the same on all ranks, and makes the state
 * of this rank's share. [MEMORY] */
int wg__optimizer_shard_state(wg_optimizer *optimizer);

/* After wg__optimizer_shard_state: makes the array of gradient sums, zeros; steps read it in place
 * of the parameters' gradients. [DTYPE for parameters of several dtypes; ARGUMENT without
 * parameters; MEMORY] */
int wg__optimizer_sum_gradients(wg_optimizer *optimizer);

static inline bool wg__optimizer_is_sharded(const wg_optimizer *optimizer) {
    return optimizer->shard.group != NULL;
}

/* The elements [*begin, *end) of entry number `index` that rank `rank` steps. */
void wg__optimizer_share(const wg_optimizer *optimizer, int64_t index, int rank, int64_t *begin,
                         int64_t *end);

void wg__optimizer_shard_clear(wg_optimizer *optimizer);

/* Collects state number `index`, in the order of wg__optimizer_state, on rank 0. All other ranks
 * wait in wg__optimizer_send_states; rank 0 must end their wait by wg__optimizer_end_gather, also
 * after an error. [scope; IO, MEMORY] */
wg_tensor *wg__optimizer_gather_state(const wg_optimizer *optimizer, int64_t index);
int wg__optimizer_send_states(const wg_optimizer *optimizer);
int wg__optimizer_end_gather(const wg_optimizer *optimizer);

/* Copies this rank's part of a whole state into place. */
void wg__optimizer_set_state(wg_optimizer *optimizer, int64_t index, const wg_tensor *whole);

/* Bytes of the state that this process holds. */
int64_t wg__optimizer_state_bytes(const wg_optimizer *optimizer);

/* The state tensors, in a fixed order: slot is the state's name, name is the parameter's.
 * Returns 1 and fills the pointers (borrowed), 0 beyond the last. */
int wg__optimizer_state(const wg_optimizer *optimizer, int64_t index, const char **slot,
                        const char **name, wg_tensor **tensor);

/* The entry of state number `index`. *state: the number of the state in the entry. NULL beyond the
 * last. */
wg__optimizer_entry *wg__optimizer_state_entry(const wg_optimizer *optimizer, int64_t index,
                                               int *state);

/* ---- Names ---- */

/* The names of the optimizers, by index from 0; NULL beyond. */
WG__COMMAND const char *wg__optimizer_name(int index);

/* The name of a kind as wg_schedule_find takes it; "?" outside the enum. */
WG__COMMAND const char *wg__schedule_name(wg_schedule_kind kind);

/* ---- Averages of weights over the steps of a run, or over checkpoints (average.c).
 *
 *     wg_average *average = wg__average_new(0.999);
 *     wg__average_add(average, w);
 *     ... wg_optimizer_step(...); wg__average_update(average); ...
 *     wg__average_swap(average);     w holds the average, and the average the former w
 *     ... evaluate ...
 *     wg__average_swap(average);     and back, bit for bit ---- */

typedef struct wg_average {
    double decay;
    int64_t updates; /* so far; a resumed run sets it */
    struct wg__average_entry *entries;
    int64_t count, capacity;
} wg_average;

/* An average without tensors. decay d in (0, 1): exponential, a = d a + (1 - d) w; 0: the mean of
 * all updates. Either way the first update is a = w   (as PyTorch's AveragedModel). NULL with
 * ARGUMENT, MEMORY. */
wg_average *wg__average_new(double decay);

/* Frees the average, not the tensors; NULL is allowed. */
void wg__average_free(wg_average *average);

/* Adds a contiguous tensor of f32 or f64, before the first update. The tensor is borrowed and must
 * outlive the average. Its average is zeros until the first update.
 * [ARGUMENT for a strided view, and for a tensor that shares memory with an added one; DTYPE,
 * MEMORY; STATE after an update] */
int wg__average_add(wg_average *average, wg_tensor *tensor);

/* Updates the averages with the present values of the tensors: one pass over memory, in parallel.
 */
void wg__average_update(wg_average *average);

/* Exchanges the tensors' contents and their averages. */
void wg__average_swap(wg_average *average);

#endif
