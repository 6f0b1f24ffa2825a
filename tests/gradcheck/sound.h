/* Correct ops, from which the broken ones of the tests differ in one thing each, and assertions
 * about the gradient checker's verdict. */
#ifndef WG_TESTS_SOUND_H
#define WG_TESTS_SOUND_H

#include "gradcheck/gradcheck.h"

typedef int (*vjp)(wg_call *, wg_tensor *const *, wg_tensor **);

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

#endif
