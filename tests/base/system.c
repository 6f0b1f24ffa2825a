/* What base/system.c makes the same on all systems. */
#include "base/array.h"
#include "base/system.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/testing.h"

static int by_key(int64_t a, int64_t b, const void *context) {
    const int *keys = context;
    return (keys[a] > keys[b]) - (keys[a] < keys[b]);
}

TEST(sorted_indices_are_in_order_and_equal_ones_stay) {
    enum { MOST = 300 };
    int keys[MOST];
    for (int64_t count = 0; count <= MOST; count += 1 + count / 4) {
        for (int64_t i = 0; i < count; i++)
            keys[i] = rand() % 20;
        for (int64_t first = 0; first <= count; first += 7) {
            int64_t *order = wg__sorted_indices(first, count, by_key, keys), sum = 0;
            for (int64_t i = 0; i < count - first; i++) {
                ck_assert(order[i] >= first && order[i] < count);
                if (i > 0 && keys[order[i - 1]] == keys[order[i]])
                    ck_assert_int_lt(order[i - 1], order[i]);
                else if (i > 0)
                    ck_assert_int_lt(keys[order[i - 1]], keys[order[i]]);
                sum += order[i];
            }
            ck_assert_int_eq(sum, (first + count - 1) * (count - first) / 2);
            wg__free(order);
        }
    }
}

TEST(processors_are_those_that_the_process_may_run_on) {
    enum { MOST = 1024 };
    int allowed[MOST], last = -1, count = 0;
    const int before = wg__allowed_processors(MOST, allowed);
    for (int i = 0; i < MOST; i++)
        if (allowed[i] && ++count)
            last = i;
    ck_assert_int_eq(count, before);
    ck_assert_int_eq(wg__processors(), before);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)last, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(wg__processors(), 1);
    wg__allowed_processors(MOST, allowed);
    for (int i = 0; i < MOST; i++)
        ck_assert_int_eq(allowed[i], i == last);
}

TEST(plain_numbers_have_a_point_in_any_locale) {
    char text[8], *end;
    if (!take_decimal_comma())
        return;
    ck_assert_double_eq(wg__parse_number("1.5,", &end), 1.5);
    ck_assert_str_eq(end, ",");
    void *before = wg__begin_plain_numbers();
    snprintf(text, sizeof text, "%g", 1.5);
    ck_assert_str_eq(text, "1.5");
    wg__end_plain_numbers(before);
    snprintf(text, sizeof text, "%g", 1.5);
    ck_assert_str_eq(text, "1,5");
}
