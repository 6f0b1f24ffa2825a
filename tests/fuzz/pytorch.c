/* Fuzzes the reader of pytorch. See weights.h. */
#include "tests/fuzz/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    wg__fuzz_weights("x.pt", bytes, count);
    return 0;
}
