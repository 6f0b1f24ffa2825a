/* What clang's analyzer is told before each file: these functions return -1. It follows calls
 * within one file only, and would take a caller to go on after an error. `make lint' includes this
 * (-include), with LINT_name for the file name.c, so that a file which defines one of them can do
 * so; no build does. */
#include "base/error.h"
#include "base/replacement.h"
#include "io/weights/file.h"

#ifndef LINT_error
#define wg_fail(...) (wg_fail(__VA_ARGS__), -1)
#endif
#ifndef LINT_replacement
#define wg__fail_with_errno(...) (wg__fail_with_errno(__VA_ARGS__), -1)
#endif
#ifndef LINT_weights
#define wg__weights_fail(...) (wg__weights_fail(__VA_ARGS__), -1)
#endif
