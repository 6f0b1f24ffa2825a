/* The record of a check, and functions that the files of the checker share. A file calls only files
 * before it in this list, but differences.c also calls the forward-mode check in oracles.c:
 *
 *     run.c           verdicts in words; runs of the function, values and gradients as plain arrays
 *     differences.c   central differences, kinks, the comparison, patterns of wrong gradients
 *     variants.c      checks of calls, masks and threads; variants of other shapes
 *     layouts.c       other layouts of memory
 *     oracles.c       decomposition, forward mode, and kernels in f32
 *     points.c        special values: 0, -0, ties, subnormal, large, kinks
 *     grown.c         long inputs
 *     gradcheck.c     the public functions: functions, second order, modules
 *     op.c            ops on their samples and variants, and libraries of ops
 *
 * Numbers are in plain arrays. `values` has the elements of all floating outputs, then the elements
 * of integer outputs; `gradients` has the elements of all wanted inputs. A Jacobian has a row for
 * each coordinate of the inputs, with an entry for each floating value. */
#ifndef WG_GRADCHECK_CHECK_H
#define WG_GRADCHECK_CHECK_H

#include "gradcheck/gradcheck.h"
#include "tensor/internal.h"

/* A copy of a tensor's elements in row-major order, and the version of its storage. */
typedef struct wg__snapshot {
    wg_tensor *of;
    uint64_t version;
    void *bytes; /* NULL: no tensor */
} wg__snapshot;

/* The context of the function that runs an op. */
typedef struct wg__sampled_op {
    const wg_op *op;
    const void *options;
} wg__sampled_op;

/* The inputs whose gradients are checked, or the outputs that are weighted: all floating ones. */
typedef struct wg__selection {
    int count;
    int *index;          /* the places among all inputs, or all outputs */
    int64_t *at;         /* offsets of their elements in arrays of numbers */
    wg_tensor **tensors; /* the inputs, or the random cotangents of the outputs */
    int64_t elements;    /* of all of them together */
} wg__selection;

/* Derivatives by differences and by backward. The radius is half the distance between the one-sided
 * slopes at a kink. */
typedef struct wg__comparison {
    double *numeric, *analytic, *radius;
} wg__comparison;

/* The values and gradients of a run. */
typedef struct wg__results {
    double *values, *gradients;
} wg__results;

typedef struct wg__findings {
    int64_t kinks; /* coordinates with a kink */
    bool jumps;
    bool nonzero;                      /* some gradient is not zero */
    bool null_gradient[WG_MAX_INPUTS]; /* the vjp of the op left it NULL */
    const char *blames; /* the function of the op that a verdict names; NULL: the diagnosis's */
} wg__findings;

typedef struct wg__gradcheck {
    wg_function function;
    void *context;
    const wg_op *op; /* the op that the function runs, or NULL */
    int user_count;  /* inputs of the function; the parameters follow them, and in order 2 the
                        cotangents of the outputs */
    int input_count;
    wg_tensor *const *inputs;
    int output_count;
    int order;    /* 1, or 2 for the gradient as a function */
    bool derived; /* a variant: a jump is no failure there */
    wg_dtype dtype;
    wg_gradcheck_options options; /* with defaults */
    wg_gradcheck_report *report;

    wg__selection wanted, weighted;
    wg__snapshot *snapshots; /* of all inputs before the check */
    wg_tensor **outputs;     /* of the current run; freed with its scope */
    wg_spec *output_specs;
    int64_t all_count; /* elements of all outputs */

    double *weight_values;         /* weighted.elements: the cotangents */
    double *values, *plus, *minus; /* all_count */
    double *slopes, *spreads;      /* weighted.elements: the column of the current coordinate */
    wg__comparison sums;           /* wanted.elements: the gradients under the cotangents */
    wg__comparison entries;        /* of the Jacobian; NULL where it is too large or not needed */
    double *gradient, *other;      /* wanted.elements: for one check at a time */
    double *first, *far;           /* weighted.elements: the same */
    int64_t *kinks_at;             /* wanted.elements: the number of kinks in a row */
    wg__findings found;
} wg__gradcheck;

/* The exceptions that an op declares; never NULL. */
static inline const wg_op_exceptions *wg__op_exceptions(const wg_op *op) {
    static const wg_op_exceptions none;
    return op->exceptions ? op->exceptions : &none;
}

/* ---- run.c: verdicts ---- */

/* Records a verdict in the report. The message of a pending error is added to it, and the error is
 * cleared. `input` is -1 for none in particular. Returns -1. */
int wg__gradcheck_fail(wg__gradcheck *c, wg_diagnosis diagnosis, int input, const char *format, ...)
    WG_PRINTF(4, 5);

/* Records a verdict on the gradient at a coordinate: `before`, "the gradient of input 1 at (0, 2)",
 * and the formatted text. Returns -1. */
int wg__gradcheck_fail_at(wg__gradcheck *c, wg_diagnosis diagnosis, int64_t at, const char *before,
                          const char *format, ...) WG_PRINTF(5, 6);

/* Records that there is no memory for the check itself. Returns -1. */
int wg__gradcheck_no_memory(wg__gradcheck *c);

/* "input 1", "parameter encoder.weight" or "the cotangent of output 0". Returns buffer. */
const char *wg__gradcheck_input_text(char *buffer, size_t size, const wg__gradcheck *c, int input);

/* "(0, 2)". Returns buffer. */
const char *wg__index_text(char *buffer, size_t size, const wg_gradcheck_index *index);

/* ---- run.c: runs ---- */

/* Lists the wanted inputs, runs the function, reads the values, makes the cotangents (in the
 * caller's scope) and allocates all arrays. wg__gradcheck_free releases them, also after an error.
 */
int wg__gradcheck_prepare(wg__gradcheck *c);
void wg__gradcheck_free(wg__gradcheck *c);

/* Runs the function once: c->outputs, in the caller's scope. -1 with a verdict. */
int wg__gradcheck_run(wg__gradcheck *c);

/* Backward from the outputs of the current run under the cotangents c->weighted.tensors; NULL: a
 * missing cotangent. Computes the gradients of the wanted inputs as tensors, or as numbers. */
int wg__gradcheck_pull_tensors(wg__gradcheck *c, const wg_backward_options *options,
                               wg_tensor **gradients);
int wg__gradcheck_pull(wg__gradcheck *c, bool retain_graph, double *gradients);

/* Runs the function in a new scope; reads all values unless `values` is NULL, and runs
 * backward unless `gradients` is NULL. */
int wg__gradcheck_evaluate(wg__gradcheck *c, double *values, double *gradients);

/* Writes the elements of a tensor, as doubles. */
int wg__read_doubles(wg_tensor *x, double *out);

int wg__snapshot_take(wg__snapshot *snapshot, wg_tensor *x);
bool wg__snapshot_holds(const wg__snapshot *snapshot); /* the tensor is unchanged */

/* Restores the wanted inputs from the snapshots after they were moved. */
void wg__gradcheck_restore(wg__gradcheck *c);

/* The address of an element, given by its number in row-major order. */
char *wg__element_address(const wg_tensor *x, int64_t number);

/* -1 with a verdict, after restoring all inputs, if an input has changed. `when` is "the function"
 * or "backward". */
int wg__gradcheck_inputs_unmodified(wg__gradcheck *c, const char *when);

/* The index of an element, from its number in row-major order. */
void wg__unravel(int64_t number, int ndim, const int64_t *shape, int64_t *index);
wg_gradcheck_index wg__index_of(int64_t number, const wg_spec *spec);

/* The place in the selection of the tensor that element number `element` belongs to. */
int wg__selection_find(const wg__selection *selection, int64_t element);

/* ---- differences.c ---- */

/* Compares the gradient with differences: c->sums and c->entries. -1 with a verdict if they
 * disagree. */
int wg__gradcheck_differences(wg__gradcheck *c);

/* Whether |numeric - analytic| is within the tolerances plus `radius`. */
bool wg__gradcheck_agrees(const wg__gradcheck *c, double numeric, double analytic, double radius);

/* The derivative of all floating values along a direction (of the wanted inputs; NULL is coordinate
 * `at` alone) into c->slopes, and half the difference of its one-sided forms into c->spreads. */
int wg__gradcheck_slope(wg__gradcheck *c, const double *direction, int64_t at, double eps);

/* Moves the coordinate `at`, or all coordinates along a direction, evaluates, and restores the
 * inputs. *made: the step of a single coordinate after rounding. */
int wg__gradcheck_evaluate_moved(wg__gradcheck *c, const double *direction, int64_t at, double step,
                                 double *made, double *values);

/* "; input 0 is not in saves_inputs...", or "". Returns buffer. */
const char *wg__gradcheck_unsaved(char *buffer, size_t size, const wg__gradcheck *c);

/* ---- variants.c: 0, or -1 with a verdict ---- */

/* The first place where a number is not scale * expected, to rounding; -1: none. */
int64_t wg__gradcheck_unlike(const wg__gradcheck *c, int64_t count, const double *numbers,
                             const double *expected, double scale);

int wg__gradcheck_conduct_before(wg__gradcheck *c); /* determinism, and unmodified inputs */
int wg__gradcheck_conduct_after(wg__gradcheck *c);  /* threads, masks, cotangents, accumulation */
int wg__gradcheck_threads(wg__gradcheck *c);
/* For an op: one input alone requires a gradient, already when the op runs forward. */
int wg__gradcheck_leaves_alone(wg__gradcheck *c);

/* How a variant with special values is compared. */
typedef struct wg__point {
    int input;
    int64_t only[3]; /* elements of that input; -1: none */
    wg_diagnosis diagnosis;
    bool undefined; /* the op declares that it has no derivative there */
} wg__point;

/* A variant of a sample. */
typedef struct wg__variant {
    wg_sample sample;
    char name[96];     /* "" for the sample itself */
    wg__point point;   /* of wg__variant_of_value */
    int64_t grown, to; /* of wg__variant_long: axes of that size have this length instead */
} wg__variant;

/* Makes variant number `number` and returns 1; 0 after the last; -1 if the variant does not exist
 * for this sample. `first`: it is the first sample of the op. The variants have other shapes;
 * special values; inputs of 67 and, for the first sample, 259 and 4099 elements along some axes;
 * inputs long enough for several threads. */
typedef int wg__variant_maker(const wg_op *op, int number, const wg_sample *sample, bool first,
                              wg__variant *variant);
wg__variant_maker wg__variant_of_shape, wg__variant_of_value, wg__variant_long, wg__variant_grown;

/* ---- layouts.c: 0, or -1 with a verdict ---- */

/* Compares the values and gradients in c with the values and gradients for other layouts of inputs
 * and cotangents. Pairs of layouts are tried on samples, not on variants of samples. */
int wg__gradcheck_layouts(wg__gradcheck *c);

/* wg__gradcheck_layouts in f32, for a check in f64 of an op that takes f32. */
int wg__gradcheck_layouts_in_f32(wg__gradcheck *c);

/* A view that has the elements of x and is not contiguous: transposed, or stepped if x has fewer
 * than two axes. */
wg_tensor *wg__layout_strided(wg_tensor *x);

/* ---- oracles.c: 0, or -1 with a verdict ---- */

/* Compare the values, or the gradients, of an op with its decomposition, if it has both. */
int wg__gradcheck_decomposed_values(wg__gradcheck *c);
int wg__gradcheck_decomposed_gradient(wg__gradcheck *c);

/* Compares tangents with the gradients of backward and, if `numeric`, with differences. */
int wg__gradcheck_forward_mode(wg__gradcheck *c, bool numeric);

/* Compares values and gradients in f32 with values and gradients in f64, if the op takes f32. With
 * only_finite, only checks that they are finite in f32 if they are in f64. */
int wg__gradcheck_f32(wg__gradcheck *c, bool only_finite);

/* ---- points.c ---- */

/* Prepares the check and compares the derivatives at a point. */
int wg__gradcheck_point(wg__gradcheck *c, const wg__point *point);

/* ---- grown.c ---- */

/* Prepares the check and compares the derivatives along random directions. */
int wg__gradcheck_long(wg__gradcheck *c, const wg__variant *variant);

/* ---- gradcheck.c ---- */

/* All checks of a function on a set of inputs. */
int wg__gradcheck_all(wg__gradcheck *c);

/* The options with defaults filled in. */
wg_gradcheck_options wg__gradcheck_defaults(const wg_gradcheck_options *options);

/* A report that has passed, without counts. */
wg_gradcheck_report wg__gradcheck_report(uint64_t seed);

/* Adds the counts of a report. With `replaces` all other members are copied from `one`. */
void wg__gradcheck_merge(wg_gradcheck_report *all, const wg_gradcheck_report *one, bool replaces);

/* Begin and end a public function. Begin returns false, with a report of the reason, while an error
 * is pending or if the options are invalid. End records the report's message as the error if the
 * status is -1. */
bool wg__gradcheck_begin(const wg_gradcheck_options *options, wg_gradcheck_report *report);
int wg__gradcheck_end(int status, wg_gradcheck_report *report);

#endif
