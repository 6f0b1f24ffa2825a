/* Derivatives of functions: transforms that take a function of tensors and a point.
 *
 *     static int squares(int input_count, wg_tensor *const *inputs, int output_count,
 *                        wg_tensor **outputs, void *context) {
 *         outputs[0] = wg_mul(inputs[0], inputs[0]);
 *         return outputs[0] ? 0 : -1;
 *     }
 *
 *     wg_jvp(squares, NULL, 1, &x, &direction, 1, NULL, &slope);
 *
 * Transforms nest: the function may itself call wg_grad or any transform, of its inputs or of what
 * it computes, to any order. */
#ifndef WG_AUTOGRAD_FUNCTIONAL_H
#define WG_AUTOGRAD_FUNCTIONAL_H

#include "autograd.h"

/* A function to be differentiated: makes its outputs from the inputs by ops; 0, or -1 with an error
 * pending. It may use tensors that are not among its inputs (parameters): in forward mode those are
 * constants. It runs once or several times, on the caller's thread, and has to compute the same
 * each time (fix the seeds of random ops). Its outputs may be inputs, and need not be owned by the
 * innermost scope. Entries of `inputs` that a transform was given as NULL are NULL here too. */
typedef int (*wg_function)(int input_count, wg_tensor *const *inputs, int output_count,
                           wg_tensor **outputs, void *context);

/* Forward mode: the Jacobian-vector product. output_tangents[j] becomes the derivative of output j
 * along the tangents: sum over i of (d output j / d input i) tangents[i], of the shape and dtype of
 * output j, zeros where output j depends on no input. It takes one run of the function, each op of
 * which is followed by its jvp, and keeps nothing of the run; so it costs about as much again, and
 * no memory that grows with the length of the function.
 *
 * `tangents` are of the shape and dtype of their inputs; NULL entries stand for zero, and an input
 * that is not floating has none. `outputs` (may be NULL) receives the values. An output that is not
 * floating gets NULL for its tangent.
 *
 * Inside, wg_grad and wg_backward work on what depends on the inputs (forward over reverse); a
 * tensor that does may not be written in place, and wg_detach cuts it off. If recording is on and
 * something wants a gradient, outputs and tangents are recorded (reverse over forward).
 * [scope; SHAPE, DTYPE of a tangent; whatever the function says; nothing runs while an error is
 * pending. On error every output is NULL] */
WG_API int wg_jvp(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
                  wg_tensor *const *tangents, int output_count, wg_tensor **outputs,
                  wg_tensor **output_tangents);

#endif
