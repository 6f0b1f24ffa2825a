/* Fuzzes the reader of gguf. See weights.h. */
#include "tests/fuzz/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    wg__fuzz_weights("x.gguf", bytes, count);
    return 0;
}
