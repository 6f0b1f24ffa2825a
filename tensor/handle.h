/* What scope.c and tensor.c share about the life of a handle. */
#ifndef WG_TENSOR_HANDLE_H
#define WG_TENSOR_HANDLE_H

#include "tensor/internal.h"

/* Puts a new handle under the innermost scope of this thread; takes one out of its scope. */
void wg__scope_adopt(wg_tensor *x);
void wg__scope_forget(wg_tensor *x);

/* Takes a handle out of its scope and frees it, with its share of storage and node. */
void wg__handle_free(wg_tensor *x);

#endif
