/* NumPy's .npy files (format 1.0, 2.0 and 3.0 read; 1.0 written). */
#ifndef WG_TENSOR_NPY_H
#define WG_TENSOR_NPY_H

#include "tensor.h"

WG_BEGIN_DECLS

/* Writes a tensor in row-major order. bf16 has no NumPy dtype and is refused: cast it. The file is
 * written under another name and renamed, so that an old file survives a failure. [DTYPE,
 * NOT_FOUND, IO] */
WG_API int wg_npy_save(const wg_tensor *x, const char *path);

/* Reads a file of a little-endian dtype that Wengert has, in row-major or Fortran order. Lengths
 * are checked against the size of the file. [scope; NOT_FOUND, IO, FORMAT] */
WG_API wg_tensor *wg_npy_load(const char *path);

WG_END_DECLS

#endif
