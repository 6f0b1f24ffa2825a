/* Fuzzes the reader of checkpoints. See weights.h. Every chunk has a checksum, so most of what is
 * found here is about the list of tensors; the HDF5 library is not instrumented. */
#include "tests/fuzz/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    wg__fuzz_weights("x.h5", bytes, count);
    return 0;
}
