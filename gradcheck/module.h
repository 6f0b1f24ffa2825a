/* Checks the gradients of a module: of its inputs and of all its parameters. */
#ifndef WG_GRADCHECK_MODULE_H
#define WG_GRADCHECK_MODULE_H

#include "gradcheck.h"
#include "../nn/module.h"

WG_BEGIN_DECLS

/* Checks `function`, which runs `module` on the inputs, as wg_gradcheck does, for each input that
 * requires grad and for every parameter of the module (tied ones once). The report names a
 * parameter by its path. Parameters are cast to f64 for the check (with options->f32 to f32) and
 * back, which drops their gradients; inputs have to be f64 (f32) already. Before each run the
 * generator of the module's root is put back to where it was, so that dropout drops the same;
 * buffers are left as the function leaves them. In forward mode parameters are constants, so that
 * it checks inputs alone. The parameter list of the options is the module's to fill: it must be
 * empty. [as wg_gradcheck; ARGUMENT, MEMORY] */
WG_API int wg_gradcheck_module(wg_module *module, wg_function function, void *context,
                               int input_count, wg_tensor *const *inputs, int output_count,
                               const wg_gradcheck_options *options, wg_gradcheck_report *report);

WG_END_DECLS

#endif
