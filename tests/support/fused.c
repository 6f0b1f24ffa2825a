/* Results at several numbers of threads: see fused.h. */
#include "tests/support/fused.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/support/testing.h"

enum { MOST = 8 };

static size_t bytes_of(const wg_tensor *x) {
    return (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x));
}

static void read_results(int count, fused_results make, void **bits, size_t *sizes) {
    wg_tensor *results[MOST] = {NULL};
    make(count, results);
    assert_no_error();
    for (int i = 0; i < count; i++) {
        sizes[i] = bytes_of(results[i]);
        bits[i] = malloc(sizes[i] + 1);
        ck_assert_int_eq(wg_to_array(results[i], bits[i]), 0);
    }
}

void assert_same_bits_at_any_thread_count(int count, fused_results make) {
    static const int threads[] = {1, 2, 3};
    void *first[MOST];
    size_t sizes[MOST];
    int before = wg_threads();
    for (size_t t = 0; t < WG_COUNT(threads); t++) {
        void *bits[MOST];
        wg_set_threads(threads[t]);
        read_results(count, make, t == 0 ? first : bits, sizes);
        for (int i = 0; i < count && t > 0; i++) {
            ck_assert_msg(memcmp(first[i], bits[i], sizes[i]) == 0,
                          "result %d has other bits at %d threads than at 1", i, threads[t]);
            free(bits[i]);
        }
    }
    for (int i = 0; i < count; i++)
        free(first[i]);
    wg_set_threads(before);
}
