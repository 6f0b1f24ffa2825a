/* Checks derivatives, and diagnoses wrong ones.
 *
 *     wg_gradcheck           a function of tensors, made of any ops
 *     wg_gradcheck_op        an op, built-in or user-defined, on its samples and their variants
 *     wg_gradcheck_module    a module with all its parameters
 *     wg_gradcheck_example   a module with example inputs
 *
 * The comparison: with J = d outputs / d inputs, by central differences,
 *
 *     numeric_i = (y(x + eps e_i) - y(x - eps e_i)) / (2 eps)        a column of J
 *     analytic  = the gradient that backward gives under a cotangent
 *     |numeric - analytic| <= atol + rtol |numeric|
 *
 * Slow mode (the default) compares under a random cotangent (cotangents of ones would hide
 * transposes), and under the unit cotangent of each output element: the whole of J. If J has more
 * than 2^22 entries, it compares under the random cotangent only.
 * Fast mode compares random projections, u^T J v against u^T (J v). After a disagreement the check
 * is repeated in slow mode, to explain the failure.
 *
 * If the slopes to the left and to the right differ, any value between them is accepted: the
 * coordinate counts as a kink, and second order is not checked.
 *
 * Further checks:
 *     inputs and cotangents keep their values and versions
 *     the same inputs give the same bits, run twice and at 1, 2 and 3 threads
 *     a run of the function on other inputs does not change a backward pass that follows it
 *     a gradient is the same alone and together with all others
 *     two backward passes add up to twice the gradient
 *     a cotangent of zeros gives zeros, and a missing one (NULL) gives the same
 *     no tensor is left alive */
#ifndef WG_GRADCHECK_GRADCHECK_H
#define WG_GRADCHECK_GRADCHECK_H

#include "../autograd/functional.h"
#include "../nn/module.h"

WG_BEGIN_DECLS

/* The diagnoses: X(name, the function of the op to look at, a description, where to look in the
 * function). A report may name another function if the failed check knows better. */
#define WG_DIAGNOSES(X)                                                                            \
    X(NONE, "", "nothing is wrong", "")                                                            \
    X(FAILED, "", "it does not run", "")                                                           \
    X(BACKWARD_FAILED, "vjp", "backward does not run", "the error says which op refused and why")  \
    X(NOTHING_COMPARED, "sample", "nothing was compared",                                          \
      "an input of the checked dtype, with at least one element, has to require a gradient")       \
    X(ALL_ZERO, "vjp", "every gradient is zero, and no reason is declared",                        \
      "if that is meant, write the reason into zero_gradient (of the wg_op, or of the options)")   \
    X(NOT_ZERO, "vjp", "a gradient that is declared to be zero is not",                            \
      "take zero_gradient out, or look for a wrong sample")                                        \
    X(FACTOR, "vjp", "a missing factor", "its constants")                                          \
    X(SMALL_FACTOR, "vjp", "a factor that is a little off",                                        \
      "rounded constants, approximations, and an epsilon that the forward does not have")          \
    X(SIGN, "vjp", "the wrong sign", "its minus signs")                                            \
    X(TRANSPOSED, "vjp", "something is transposed", "its transposes")                              \
    X(UNSUMMED, "vjp", "not summed over a broadcast axis",                                         \
      "it has to sum over the axes that broadcasting gave this input: wg_sum_to")                  \
    X(EXCHANGED, "vjp", "the gradients of two inputs are exchanged", "the order of gradients[]")   \
    X(MISSING, "vjp", "the gradient is missing",                                                   \
      "it leaves gradients[i] NULL: it does not set it, or what it is made of is NULL because "    \
      "saves_inputs or saves_outputs does not name it")                                            \
    X(DETACHED, "", "the outputs do not depend on this input as far as backward knows",            \
      "wg_detach, wg_tensor_data or recording switched off between the input and the output")      \
    X(ZERO, "vjp", "the gradient is zero where the derivative is not", "what it multiplies by")    \
    X(CONSTANT, "vjp",                                                                             \
      "the gradient is a constant: the same under any cotangent and for any input",                \
      "it has to multiply by cotangents[0]")                                                       \
    X(IGNORES_COTANGENT, "vjp", "the cotangent is ignored: another one gives the same gradient",   \
      "it has to multiply by cotangents[0]")                                                       \
    X(IGNORES_INPUTS, "vjp",                                                                       \
      "the gradient does not depend on the inputs, but the derivative does",                       \
      "the factor that comes from call->inputs, call->outputs or call->saved")                     \
    X(NOT_FINITE, "vjp", "the gradient is not finite where the derivative is",                     \
      "its divisions, logarithms and infinities")                                                  \
    X(LOCAL, "vjp", "wrong in some coordinates only",                                              \
      "what sets these coordinates apart: a mask, a border, an index, a branch of the formula")    \
    X(WRONG, "vjp", "wrong, in no way that is known", "its formula")                               \
    X(KINK, "vjp", "outside the one-sided slopes of a kink",                                       \
      "at a kink any value between the two slopes will do")                                        \
    X(JUMP, "sample", "the function jumps here, so there is nothing to compare with",              \
      "move the sample away from the jump")                                                        \
    X(STALE, "forward", "backward uses what another run saved",                                    \
      "static or shared buffers: what backward needs belongs into call->saved, made anew by each " \
      "forward")                                                                                   \
    X(REMEMBERED, "forward", "the function gives the result of an earlier run",                    \
      "a cache that knows its inputs by their address or shape: values change in place")           \
    X(INPUT_MODIFIED, "forward", "an input is modified",                                           \
      "writes in place: clone what is to be changed")                                              \
    X(COTANGENT_MODIFIED, "vjp", "a cotangent is modified",                                        \
      "writes in place: cotangents belong to backward, which may use them again")                  \
    X(NONDETERMINISTIC, "forward", "the same inputs give two results",                             \
      "random draws without a fixed seed, static state, memory that is not written")               \
    X(THREADS, "forward", "the number of threads changes the result",                              \
      "sums whose parts depend on the number of threads, and races")                               \
    X(WRONG_DTYPE, "vjp", "a gradient of the wrong dtype",                                         \
      "the gradient has the dtype of its input")                                                   \
    X(WRONG_SHAPE, "vjp", "a gradient of the wrong shape",                                         \
      "the gradient has the shape of its input")                                                   \
    X(WANTS_IGNORED, "vjp", "the mask of wanted gradients is ignored",                             \
      "it sets gradients[i] where bit i of call->wants is set, and nowhere else; what one input "  \
      "gets does not depend on the others' bits")                                                  \
    X(ACCUMULATION, "vjp", "two backward passes do not add up to twice the gradient",              \
      "a gradient that is written over where one is found, or memory that is handed out and used " \
      "again")                                                                                     \
    X(COTANGENTS, "vjp", "zero and missing cotangents are not treated as zeros",                   \
      "cotangents[j] is NULL where output j got no gradient")                                      \
    X(LAYOUT, "forward", "views give another result than contiguous copies",                       \
      "strides: a kernel that walks memory as if it were contiguous, or starts at the storage "    \
      "instead of wg_tensor_data")                                                                 \
    X(RECORDED, "decompose", "with create_graph the gradient is another one",                      \
      "decompose has to compute what forward does; a vjp that has two ways has to agree in both")  \
    X(CUT, "vjp", "the vjp cannot be differentiated again: the graph is cut",                      \
      "a vjp is written in public ops, without wg_detach and without kernels while "               \
      "call->create_graph")                                                                        \
    X(FORWARD_MODE, "", "forward mode is wrong",                                                   \
      "the op has no jvp of its own: forward mode differentiates what it has instead")             \
    X(JVP, "jvp", "the jvp and the vjp disagree", "the vjp agrees with differences")               \
    X(DECOMPOSITION, "forward", "forward differs from its own decomposition",                      \
      "the kernel and decompose have to compute the same function")                                \
    X(F32, "forward", "wrong in f32 only",                                                         \
      "the kernel of f32: its constants, types of accumulators, and the loop after the last "      \
      "whole vector")                                                                              \
    X(AT_ZERO, "vjp", "wrong where an input is 0",                                                 \
      "divisions by an input or an output, comparisons with 0, and shortcuts for zeros")           \
    X(AT_NEGATIVE_ZERO, "vjp", "wrong where an input is -0",                                       \
      "sign bits and 1 / x: -0 is to be treated as 0")                                             \
    X(AT_TIES, "vjp", "wrong where elements are equal",                                            \
      "what happens to the gradient where several elements are the largest")                       \
    X(AT_TINY, "vjp", "wrong where an input is subnormal",                                         \
      "divisions by an input, and thresholds under which a value counts as 0")                     \
    X(AT_LARGE, "vjp", "wrong where an input is large",                                            \
      "exponentials and powers that overflow, inf / inf, inf - inf and 0 * inf, and thresholds")   \
    X(TAIL, "vjp", "the end of long inputs is lost",                                               \
      "the loop after the last whole vector or block, and buffers of a fixed size")                \
    X(LONG, "vjp", "wrong in long inputs only",                                                    \
      "what begins with many elements: a blocked kernel, a parallel loop, a threshold")            \
    X(ALIVE, "forward", "tensors are left alive", "wg_keep without wg_release")

typedef enum wg_diagnosis {
#define WG_DIAGNOSIS(name, function, words, advice) WG_DIAGNOSIS_##name,
    WG_DIAGNOSES(WG_DIAGNOSIS)
#undef WG_DIAGNOSIS
} wg_diagnosis;

/* "FACTOR"; "a missing factor". Never NULL. */
WG_API const char *wg_diagnosis_name(wg_diagnosis diagnosis);

typedef struct wg_gradcheck_options {
    bool f32;     /* check inputs of f32 instead of f64; samples of an op are cast */
    double eps;   /* 0: 1e-6; of f32 2^-8 */
    double atol;  /* 0: 1e-6; of f32 1e-3; WG_ZERO: 0 */
    double rtol;  /* 0: 1e-5; of f32 1e-2; WG_ZERO: 0. In f32 plus 4 roundings of the values */
    int order;    /* 1: the gradient; 2: the gradient of the gradient, too; 0: 2 for an op without
                     decomposition, to find a vjp that cuts the graph, else 1 */
    bool forward; /* forward mode, too */
    bool fast;    /* random projections */
    bool no_variants; /* of an op: only its samples, no variants */
    uint64_t seed;    /* of cotangents, directions and samples: the same seed, the same check */
    const char *zero_gradient; /* the reason why all gradients are zero; NULL: zeros are an error */

    /* Leaves that the function uses and that are not among its inputs: parameters. They are checked
     * like inputs, and numbered after them. Names may be NULL. */
    int parameter_count;
    wg_tensor *const *parameters;
    const char *const *parameter_names;
} wg_gradcheck_options;

typedef struct wg_gradcheck_index {
    int ndim;
    int64_t at[WG_MAX_DIMS];
} wg_gradcheck_index;

typedef struct wg_gradcheck_report {
    bool passed;
    wg_diagnosis diagnosis; /* NONE when it passed */
    const char *function;   /* of the op, to look at: "forward", "vjp", "jvp", "decompose",
                               "sample", or two, "vjp or forward", "forward or decompose"; ""
                               when it passed, and where there is no op */
    uint64_t seed;          /* replays it */

    /* How much was checked: */
    int samples;          /* of an op */
    int variants;         /* derived from them and run, */
    int refused;          /* variants that the op refused by its shape rule */
    int order;            /* the highest that was compared; 0: none */
    bool forward;         /* forward mode was compared */
    int64_t compared;     /* coordinates of inputs (in fast mode projections), over all orders */
    int64_t kinks;        /* coordinates where a subgradient was accepted */
    double largest_error; /* |numeric - analytic| / (atol + rtol |numeric|): 1 is the limit */
    double largest_absolute_error; /* |numeric - analytic| */

    /* The coordinate that disagrees most; if the check passed, the one nearest to the limit: */
    int sample;        /* of an op; -1 before the first */
    char variant[128]; /* "" for the sample itself */
    int at_order;      /* 1 or 2 */
    int input;         /* -1: none in particular. Parameters come after the inputs; in order 2 the
                          cotangent of output j comes after both, as (their number) + j */
    char name[160];    /* of the parameter that failed, or "" */
    wg_gradcheck_index coordinate;        /* of the input */
    int output;                           /* -1: the sum of all, weighted by a random cotangent */
    wg_gradcheck_index output_coordinate; /* the element whose derivative disagrees */
    double numeric, analytic;

    /* Found by the diagnosis: */
    double factor; /* FACTOR, SIGN: analytic = factor * numeric */
    int axis;      /* UNSUMMED: of the output; -1 */

    char message[1024]; /* the report in one paragraph of text */
} wg_gradcheck_report;

/* Checks the gradients of `function` for each input and parameter that is f64 (or f32, see options)
 * and requires a gradient. These tensors are moved in place and restored. They may be views, but
 * not views whose elements share an address (expanded). Returns 0 if all checks pass; -1 with the
 * report's message as a pending GRADIENT error if one fails; -1 while an error is pending. `report`
 * (may be NULL) is filled in either case. [GRADIENT]
 */
WG_API int wg_gradcheck(wg_function function, void *context, int input_count,
                        wg_tensor *const *inputs, int output_count,
                        const wg_gradcheck_options *options, wg_gradcheck_report *report);

/* Checks an op, built-in or the user's own: on each of its samples, and on variants of them:
 *
 *     layouts   each input and each cotangent expanded, flipped, stepped or padded along each axis,
 *               transposed, or from the middle of its storage; pairs of these layouts; in f64 and
 *               in f32: the same outputs and gradients as with contiguous copies
 *     shapes    axes of size 1 and 0, an input that broadcasts against another one, and rank 0
 *               if the op has no options (options may name axes)
 *     grown     long inputs, enough for several threads: the same bits at any number of threads
 *
 * Variants that the op refuses with an error are counted as refused. Besides the checks of
 * wg_gradcheck, the vjp runs alone, to check the shapes and dtypes of gradients, and that unwanted
 * gradients stay NULL. The report describes the best explained failure. An op with `no_gradient`
 * passes with compared == 0 if its forward passes these checks.
 *
 * If forward and vjp disagree by a factor, differences do not show which of them is wrong. The
 * report names forward if the jvp agrees with the vjp, the vjp if forward agrees with decompose,
 * and otherwise both. If forward and decompose differ, the vjp decides which is wrong. Order 2 of a
 * fused op differentiates its decomposition, and compares the kernels with it. [as wg_gradcheck] */
WG_API int wg_gradcheck_op(const wg_op *op, const wg_gradcheck_options *options,
                           wg_gradcheck_report *report);

/* Checks `function`, which runs `module` on the inputs, as wg_gradcheck does, for each input that
 * requires grad and for every parameter of the module (tied ones once). The report names a
 * parameter by its path. Parameters are cast to f64 for the check (with options->f32 to f32) and
 * back, which drops their gradients; inputs have to be f64 (f32) already. The generator of the
 * module's root is reset before each run, so that dropout drops the same elements; buffers are not
 * restored. Forward mode checks only inputs, because parameters are constants there. The parameter
 * list of the options must be empty. [as wg_gradcheck; ARGUMENT, MEMORY] */
WG_API int wg_gradcheck_module(wg_module *module, wg_function function, void *context,
                               int input_count, wg_tensor *const *inputs, int output_count,
                               const wg_gradcheck_options *options, wg_gradcheck_report *report);

/* ---- Modules that come with inputs, in a program or in a shared library ---- */

/* A module and inputs for its check. */
typedef struct wg_module_sample {
    wg_module *module;   /* a root; the checker frees it */
    wg_function forward; /* runs the module on the inputs; its random numbers come from the module's
                            generator (wg_dropout), so that each run draws the same */
    void *context;       /* of `forward`; NULL: the module */
    int input_count;     /* 0 for a module that is checked by its parameters alone */
    wg_tensor *inputs[8]; /* f64 ones require a gradient and are checked; ids and masks are not */
    int output_count;     /* 0: 1 */
} wg_module_sample;

typedef struct wg_module_example {
    const char *name;
    /* Makes sample `index`: 1; 0 after the last; -1 with an error pending. Numbers come from the
     * generator. A sample is as small as it can be: each parameter is moved twice. */
    int (*sample)(int index, wg_generator *generator, wg_module_sample *sample);
} wg_module_example;

/* Runs wg_gradcheck_module on each sample up to the first failure; the report counts all samples.
 * With options->f32 the inputs of f64 are cast. [as wg_gradcheck_module] */
WG_API int wg_gradcheck_example(const wg_module_example *example,
                                const wg_gradcheck_options *options, wg_gradcheck_report *report);

/* The record that a library of modules exports as `wengert_modules`: its examples, and the struct
 * sizes, which show whether it was compiled against the same headers. */
typedef struct wg_module_library {
    size_t example_size, sample_size, module_size;
    const wg_module_example *const *examples; /* NULL comes after the last */
} wg_module_library;

/* Exports examples, given by their addresses, for `wengert gradcheck ./my_model.so`. Use it once in
 * a library, outside of functions. */
#define WG_EXPORT_MODULES(...)                                                                     \
    static const wg_module_example *const wengert_module_list[] = {__VA_ARGS__, NULL};             \
    extern WG_API const wg_module_library wengert_modules;                                         \
    const wg_module_library wengert_modules = {sizeof(wg_module_example),                          \
                                               sizeof(wg_module_sample), sizeof(wg_module),        \
                                               wengert_module_list}

WG_END_DECLS

#endif
