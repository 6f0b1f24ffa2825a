/* The profile and its trace: which ops are timed, under which names, and their operation counts. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "autograd/autograd.h"
#include "io/trace.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tensor/profile.h"
#include "tests/support/tensors.h"
#include "tensor/internal.h"

enum { M = 8, N = 16, K = 32 };

/* Forward and backward of sum(gelu(a b)), under a profile. */
static void profile(bool events) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *a = wg_ones(WG_F32, WG_DIMS(M, K)), *b = wg_ones(WG_F32, WG_DIMS(K, N));
    wg_set_requires_grad(a, true);
    wg_set_requires_grad(b, true);
    ck_assert_int_eq(wg_profile_begin(events), 0);
    wg_tensor *product = wg_matmul(a, b);
    wg_backward(wg_sum(wg_gelu(product), WG_ALL, false), NULL);
    wg_profile_end();
    wg_scope_end(&scope, NULL);
}

static const wg_profile_row *row(const char *name, wg_profile_kind kind) {
    int count;
    const wg_profile_row *rows = wg__profile_rows(&count, NULL);
    for (int i = 0; i < count; i++)
        if (rows[i].kind == kind && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static void assert_counts(int rows, int64_t events) {
    int row_count;
    int64_t event_count;
    wg__profile_rows(&row_count, NULL);
    wg__profile_events(&event_count, NULL);
    ck_assert_int_eq(row_count, rows);
    ck_assert_int_eq(event_count, events);
}

TEST(an_op_has_a_row_for_each_direction_with_its_products_and_bytes) {
    profile(false);
    const wg_profile_row *forward = row("matmul", WG_PROFILE_FORWARD);
    const wg_profile_row *backward = row("matmul", WG_PROFILE_BACKWARD);
    ck_assert(forward && backward && row("gelu", WG_PROFILE_FORWARD));
    ck_assert_int_eq(forward->calls, 1);
    ck_assert_int_eq(backward->calls, 1);
    ck_assert(forward->flops == 2 * M * N * K);
    ck_assert(backward->flops == 2 * forward->flops);
    ck_assert(forward->bytes == 4 * (M * K + K * N + M * N));
    ck_assert(row("gelu", WG_PROFILE_FORWARD)->flops == 0);
    wg__profile_free();
}

TEST(rows_are_outermost_sorted_and_no_longer_than_the_whole) {
    profile(false);
    int count;
    double sum = 0, seconds;
    const wg_profile_row *rows = wg__profile_rows(&count, &seconds);
    for (int i = 0; i < count; i++) {
        sum += rows[i].seconds;
        ck_assert(i == 0 || rows[i].seconds <= rows[i - 1].seconds);
    }
    ck_assert(sum > 0 && sum <= seconds);
    ck_assert_ptr_null(row("transpose", WG_PROFILE_FORWARD)); /* which matmul's vjp calls */
    wg__profile_free();
}

TEST(nothing_is_taken_before_begin_and_after_end) {
    profile(true);
    int rows;
    int64_t events;
    wg__profile_rows(&rows, NULL);
    wg__profile_events(&events, NULL);
    const int64_t calls = row("matmul", WG_PROFILE_FORWARD)->calls;
    wg_matmul(wg_ones(WG_F32, WG_DIMS(M, K)), wg_ones(WG_F32, WG_DIMS(K, N)));
    ck_assert_int_eq(row("matmul", WG_PROFILE_FORWARD)->calls, calls);
    assert_counts(rows, events);
    wg__profile_free();
    assert_counts(0, 0);
}

TEST(taking_a_profile_asks_for_no_memory) {
    profile(true);
    const int64_t before = wg_alloc_get_stats().system_allocations;
    profile(true);
    ck_assert_int_eq(wg_alloc_get_stats().system_allocations, before);
    wg__profile_free();
}

TEST(no_memory_is_an_error_and_nothing_is_taken) {
    for (int64_t n = 0; n < 2; n++) {
        wg__alloc_fail_after(n);
        ck_assert_int_eq(wg_profile_begin(true), -1);
        wg__alloc_fail_after(-1);
        assert_error(WG_ERROR_MEMORY, "bytes");
        wg_matmul(wg_ones(WG_F32, WG_DIMS(M, K)), wg_ones(WG_F32, WG_DIMS(K, N)));
        assert_counts(0, 0);
    }
}

TEST(a_trace_is_json_with_a_complete_event_for_each_span) {
    char path[512];
    snprintf(path, sizeof path, "%s/trace.json", scratch());
    profile(true);
    ck_assert_int_eq(wg_trace_write(path), 0);
    json_t *trace = json_load_file(path, 0, NULL);
    json_t *list = json_object_get(trace, "traceEvents"), *event;
    int64_t events;
    wg__profile_events(&events, NULL);
    ck_assert_int_eq(json_array_size(list), events);
    ck_assert_int_gt(json_array_size(list), 4);
    size_t i, products = 0;
    json_array_foreach(list, i, event) {
        ck_assert_str_eq(json_string_value(json_object_get(event, "ph")), "X");
        ck_assert(json_number_value(json_object_get(event, "ts")) >= 0);
        ck_assert(json_number_value(json_object_get(event, "dur")) >= 0);
        ck_assert_int_ge(json_integer_value(json_object_get(event, "tid")), 1);
        const char *name = json_string_value(json_object_get(event, "name"));
        const char *category = json_string_value(json_object_get(event, "cat"));
        const char *operands =
            json_string_value(json_object_get(json_object_get(event, "args"), "operands"));
        if (strcmp(name, "matmul") == 0 && strcmp(category, "forward") == 0 && operands &&
            strcmp(operands, "(8, 32) f32 x (32, 16) f32") == 0)
            products++;
    }
    ck_assert_int_eq(products, 1);
    json_decref(trace);
    wg__profile_free();
}

TEST(a_trace_that_cannot_be_written_is_an_error) {
    profile(true);
    failed(wg_trace_write("/dev/full"), IO, "No space left");
    failed(wg_trace_write("/nosuch/trace.json"), NOT_FOUND, "No such file");
    wg__profile_free();
}
