/* Correct ops, from which the broken ones of the tests differ in one thing each, and assertions
 * about the gradient checker's verdict. */
#ifndef WG_TESTS_SOUND_H
#define WG_TESTS_SOUND_H

#include "gradcheck/gradcheck.h"

typedef int (*vjp)(wg_call *, wg_tensor *const *, wg_tensor **);

/* A vjp by the formula of its gradient, from the operand x and the cotangent g. */
#define VJP(NAME, ...)                                                                             \
    static int NAME(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {          \
        wg_tensor *x = call->inputs[0], *g = cotangents[0];                                        \
        (void)x, (void)g;                                                                          \
        gradients[0] = __VA_ARGS__;                                                                \
        return status_of(gradients[0]);                                                            \
    }

/* A vjp of two operands, a and b, by the formulas of both gradients. */
#define VJP_OF_TWO(NAME, OF_A, OF_B)                                                               \
    static int NAME(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {          \
        wg_tensor *a = call->inputs[0], *b = call->inputs[1], *g = cotangents[0];                  \
        if (call->wants & 1)                                                                       \
            gradients[0] = OF_A;                                                                   \
        if (call->wants & 2)                                                                       \
            gradients[1] = OF_B;                                                                   \
        return a && b ? 0 : -1;                                                                    \
    }

/* A forward by the formula of its output. */
#define FORWARD(NAME, ...)                                                                         \
    static int NAME(wg_call *call) {                                                               \
        wg_tensor *x = call->inputs[0];                                                            \
        (void)x;                                                                                   \
        return wg_copy_(call->outputs[0], __VA_ARGS__);                                            \
    }

/* Samples by the number of the last one, and the inputs of each. */
#define SAMPLES(NAME, LAST, ...)                                                                   \
    static int NAME(int index, wg_generator *generator, wg_sample *sample) {                       \
        wg_tensor *inputs[] = {__VA_ARGS__};                                                       \
        (void)generator;                                                                           \
        sample->input_count = (int)WG_COUNT(inputs);                                               \
        memcpy(sample->inputs, inputs, sizeof inputs);                                             \
        return index <= LAST;                                                                      \
    }

/* Each with another vjp in place of its own, which is declared below. */
wg_op square_op(vjp vjp); /* x^2 */
wg_op flip_op(vjp vjp);   /* the transpose of a square matrix */
wg_op scale_op(vjp vjp);  /* a b, where b broadcasts to a */
wg_op powers_op(vjp vjp); /* x^2 and x^3 */

int square_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients);
int flip_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients);
int scale_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients);
int powers_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients);

int square_forward(wg_call *call);
int square_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents);

/* The gradient summed to the shape of input 1; and the status of a result: 0, or -1 for NULL. */
wg_tensor *to_shape_of_b(const wg_call *call, wg_tensor *gradient);
int status_of(const void *result);

extern const wg_gradcheck_options second_order, samples_alone, fast;

/* Fails the test unless the op passes. */
wg_gradcheck_report assert_passes(wg_op op, const wg_gradcheck_options *options);

/* Fails the test unless the op fails with that diagnosis and a message that contains `part`; clears
 * the error. */
wg_gradcheck_report assert_caught(wg_op op, wg_diagnosis diagnosis, const char *part);
wg_gradcheck_report assert_caught_with(wg_op op, const wg_gradcheck_options *options,
                                       wg_diagnosis diagnosis, const char *part);

/* A right op with other parts, and what the checker must say of it: the diagnosis, words of the
 * message, and if they are given the variant of a sample and the function that is to blame. */
typedef struct broken_op {
    const char *name;
    wg_op (*base)(vjp vjp);
    vjp vjp;
    wg_diagnosis diagnosis;
    const char *words, *variant, *function;
    int (*forward)(wg_call *call);
    int (*jvp)(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents);
    int (*decompose)(wg_call *call);
    int (*infer)(wg_call *call);
    int (*sample)(int index, wg_generator *generator, wg_sample *sample);
    uint64_t accumulates;
} broken_op;

wg_op build(const broken_op *broken);
wg_gradcheck_report assert_diagnosed(const broken_op *broken);

#endif
