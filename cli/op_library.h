/* Ops in a shared library of the user's: what WG_EXPORT_OPS of tensor/op.h makes, opened at run
 * time. */
#ifndef WG_CLI_OP_LIBRARY_H
#define WG_CLI_OP_LIBRARY_H

#include "tensor/op.h"

/* True for what is a path and no op's name. */
bool wg__is_op_library(const char *argument);

/* The ops that the library at `path` exports, a list that ends in NULL. It stays open to the end of
 * the program. NULL after writing why not into `reason`. */
const wg_op *const *wg__op_library_open(const char *path, char *reason, size_t size);

#endif
