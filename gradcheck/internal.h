/* Functions of the checker for the library and the command that are not installed. */
#ifndef WG_GRADCHECK_INTERNAL_H
#define WG_GRADCHECK_INTERNAL_H

#include "base/internal.h"
#include "gradcheck/gradcheck.h"

WG__COMMAND const char *wg__diagnosis_words(wg_diagnosis diagnosis);

/* The library's own layers in small forms, named as their constructors are ("linear", "lstm",
 * "multi_head_attention"): number `index`, in alphabetical order; NULL after the last. */
WG__COMMAND const wg_module_example *wg__gradcheck_layer_at(int index);

/* Opens a shared library of ops, of modules, or of both, as WG_EXPORT_OPS (tensor/op.h) and
 * WG_EXPORT_MODULES export them: lists that end in NULL and may be empty. The library stays open to
 * the end of the program. -1 with [NOT_FOUND; FORMAT for a file that exports neither list, or was
 * built for another copy or version of wengert; both lists are then NULL] */
WG__COMMAND int wg__gradcheck_library_open(const char *path, const wg_op *const **ops,
                                           const wg_module_example *const **examples);

#endif
