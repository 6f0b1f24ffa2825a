/* What clang's analyzer is told before each file but those that define these functions: they return -1.
 * It follows calls within one file only, and would take a caller to go on after an error. `make lint'
 * includes this (-include); no build does. */
#include "base/error.h"
#include "base/replacement.h"
#include "io/weights/file.h"

#define wg_fail(...) (wg_fail(__VA_ARGS__), -1)
#define wg__fail_with_errno(...) (wg__fail_with_errno(__VA_ARGS__), -1)
#define wg__weights_fail(...) (wg__weights_fail(__VA_ARGS__), -1)
