/* Writes in place onto overlapping memory: what wg_fill_, wg_copy_, wg_add_ and wg_scale_ do where
 * the source lies in the memory of the target, or where elements of the target share an address. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"

/* ---- The cases that were found ---- */

static wg_tensor *count_to(double n) {
    return wg_arange(WG_F32, 0, n, 1);
}

static wg_tensor *part(wg_tensor *x, int64_t start, int64_t stop) {
    return wg_slice(x, 0, start, stop, 1);
}

static wg_tensor *reversed(wg_tensor *x) {
    return wg_slice(x, 0, WG_END, WG_END, -1);
}

/* A target and a source of 0 to 5, and what 0 to 5 is after the copy and after the sum. */
static const struct shift {
    int64_t to, from, count;
    bool is_reversed;
    float copied[6], added[6];
} shifts[] = {
    {1, 0, 5, false, {0, 0, 1, 2, 3, 4}, {0, 1, 3, 5, 7, 9}},
    {0, 1, 5, false, {1, 2, 3, 4, 5, 5}, {1, 3, 5, 7, 9, 5}},
    {2, 0, 4, false, {0, 1, 0, 1, 2, 3}, {0, 1, 2, 4, 6, 8}},
    {0, 0, 6, true, {5, 4, 3, 2, 1, 0}, {5, 5, 5, 5, 5, 5}},
    {1, 0, 5, true, {0, 4, 3, 2, 1, 0}, {0, 5, 5, 5, 5, 5}},
    {0, 0, 6, false, {0, 1, 2, 3, 4, 5}, {0, 2, 4, 6, 8, 10}},
    {0, 3, 3, false, {3, 4, 5, 3, 4, 5}, {3, 5, 7, 3, 4, 5}},
};

TEST(a_source_in_the_target_is_read_before_the_write) {
    for (size_t i = 0; i < WG_COUNT(shifts); i++)
        for (int adds = 0; adds < 2; adds++) {
            const struct shift *s = &shifts[i];
            wg_tensor *x = count_to(6), *from = part(x, s->from, s->from + s->count);
            if (s->is_reversed)
                from = reversed(from);
            wg_tensor *to = part(x, s->to, s->to + s->count);
            ck_assert_int_eq(adds ? wg_add_(to, from, 1) : wg_copy_(to, from), 0);
            assert_close(x, wg_from_array(WG_F32, WG_DIMS(6), adds ? s->added : s->copied), 0, 0);
        }
}

TEST(a_matrix_plus_its_transpose_is_symmetric) {
    const int64_t sizes[] = {3, 548}; /* the latter of 300,304 elements */
    for (size_t s = 0; s < WG_COUNT(sizes); s++)
        for (int threads = 1; threads <= 4; threads *= 2) {
            const int64_t n = sizes[s];
            wg_set_threads(threads);
            wg_tensor *x = wg_reshape(count_to((double)(n * n)), WG_DIMS(n, n));
            wg_tensor *expected = wg_add(x, wg_transpose(x, 0, 1));
            ck_assert_int_eq(wg_add_(x, wg_transpose(x, 0, 1), 1), 0);
            assert_close(x, expected, 0, 0);
        }
}

TEST(a_row_of_the_target_is_copied_to_all_rows) {
    for (int64_t row = 0; row < 3; row++) {
        wg_tensor *x = wg_reshape(count_to(6), WG_DIMS(3, 2));
        const float a = (float)(2 * row), b = a + 1;
        ck_assert_int_eq(wg_copy_(x, wg_select(x, 0, row)), 0);
        assert_close(x, wg_from_array(WG_F32, WG_DIMS(3, 2), (float[]){a, b, a, b, a, b}), 0, 0);
    }
}

/* ---- Targets whose elements share an address ---- */

static wg_tensor *expanded(void) {
    return wg_expand(wg_ones(WG_F32, WG_DIMS(1)), WG_DIMS(5));
}

static wg_tensor *expanded_column(void) {
    return wg_expand(wg_ones(WG_F32, WG_DIMS(2, 1)), WG_DIMS(2, 3));
}

static wg_tensor *windows(void) {
    return wg_unfold(wg_ones(WG_F32, WG_DIMS(6)), 0, 3, 2);
}

static wg_tensor *blob_of_overlapping_rows(void) {
    static float memory[16];
    for (int i = 0; i < 16; i++)
        memory[i] = 1;
    return wg_from_blob(WG_F32, WG_DIMS(3, 4), (int64_t[]){3, -1}, memory + 4, NULL, NULL);
}

static int fill(wg_tensor *x) {
    return wg_fill_(x, 2);
}

static int copy(wg_tensor *x) {
    return wg_copy_(x, wg_full_like(x, 2));
}

static int add(wg_tensor *x) {
    return wg_add_(x, wg_full_like(x, 2), 1);
}

static int add_itself(wg_tensor *x) {
    return wg_add_(x, x, 1);
}

static int scale(wg_tensor *x) {
    return wg_scale_(x, 2);
}

TEST(a_target_with_two_elements_at_one_address_is_refused) {
    wg_tensor *(*const targets[])(void) = {expanded, expanded_column, windows,
                                           blob_of_overlapping_rows};
    int (*const writes[])(wg_tensor *) = {fill, copy, add, add_itself, scale};
    const char *const names[] = {"fill_", "copy_", "add_", "add_", "scale_"};
    for (size_t t = 0; t < WG_COUNT(targets); t++)
        for (size_t w = 0; w < WG_COUNT(writes); w++) {
            wg_tensor *x = targets[t]();
            const uint64_t version = wg__tensor_version(x);
            ck_assert_int_eq(writes[w](x), -1);
            ck_assert_str_eq(wg_error_pending()->where, names[w]);
            assert_error(WG_ERROR_ARGUMENT, "share an address");
            assert_close(x, wg_ones_like(x), 0, 0);
            ck_assert_uint_eq(wg__tensor_version(x), version);
        }
}

TEST(the_refusal_names_shape_strides_and_a_way_out) {
    ck_assert_int_eq(wg_scale_(expanded_column(), 2), -1);
    ck_assert_str_eq(wg_error_pending()->message,
                     "scale_: (2, 3) f32 with strides (1, 0): elements share an address, as in an "
                     "expanded view, and would be written several times; use a clone, or the "
                     "tensor that the view is of");
    wg_error_clear();
}

TEST(an_expanded_axis_of_size_one_or_zero_is_no_overlap) {
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(1));
    ck_assert_int_eq(wg_scale_(wg_expand(x, WG_DIMS(1, 1)), 2), 0);
    ck_assert_double_eq(wg_item(x), 2);
    ck_assert_int_eq(wg_fill_(wg_expand(x, WG_DIMS(0)), 3), 0);
    ck_assert_int_eq(wg_fill_(wg_slice(wg_expand(x, WG_DIMS(5)), 0, 0, 1, 1), 3), 0);
    ck_assert_double_eq(wg_item(x), 3);
}

/* ---- Memory that two storages share ---- */

TEST(two_blobs_of_one_memory_overlap) {
    float memory[6] = {0, 1, 2, 3, 4, 5};
    wg_tensor *to = wg_from_blob(WG_F32, WG_DIMS(5), NULL, memory + 1, NULL, NULL);
    wg_tensor *from = wg_from_blob(WG_F32, WG_DIMS(5), NULL, memory, NULL, NULL);
    ck_assert_int_eq(wg_add_(to, from, 1), 0);
    ck_assert_mem_eq(memory, ((float[]){0, 1, 3, 5, 7, 9}), sizeof memory);
}

TEST(a_blob_of_another_tensor_overlaps_it) {
    wg_tensor *x = count_to(6);
    wg_tensor *from = wg_from_blob(WG_F32, WG_DIMS(5), NULL, wg_tensor_data(x), NULL, NULL);
    ck_assert_int_eq(wg_copy_(part(x, 1, 6), from), 0);
    assert_close(x, wg_from_array(WG_F32, WG_DIMS(6), shifts[0].copied), 0, 0);
}

/* The source is the memory of the target from `lag` bytes before it on, of every other dtype. */
TEST(blobs_of_different_dtypes_overlap) {
    enum { COUNT = 40, LAG = 8 };
    for (int to = 0; to < WG_DTYPE_COUNT; to++)
        for (int from = 0; from < WG_DTYPE_COUNT; from++)
            for (int lag = -LAG; lag <= LAG; lag += LAG) {
                if (from == WG_BOOL) /* bytes other than 0 and 1 are none */
                    continue;
                uint64_t words[COUNT + 2], expected[COUNT];
                for (int i = 0; i < COUNT + 2; i++)
                    words[i] = 0x40213040213 * (uint64_t)(i + 3);
                char *memory = (char *)(words + 1);
                wg_tensor *x = wg_from_blob(to, WG_DIMS(COUNT), NULL, memory, NULL, NULL);
                wg_tensor *y = wg_from_blob(from, WG_DIMS(COUNT), NULL, memory + lag, NULL, NULL);
                ck_assert_int_eq(wg_to_array(wg_cast(wg_clone(y), to), expected), 0);
                ck_assert_int_eq(wg_copy_(x, y), 0);
                ck_assert_mem_eq(memory, expected, COUNT * wg_dtype_size(to));
            }
}

TEST(elements_are_read_into_the_memory_of_the_tensor) {
    wg_tensor *x = count_to(1000);
    float *memory = wg_tensor_data(x);
    ck_assert_int_eq(wg_to_array(part(x, 1, 1000), memory), 0);
    for (int i = 0; i < 999; i++)
        ck_assert_double_eq(memory[i], i + 1);
    ck_assert_int_eq(wg_to_array(reversed(x), memory), 0);
    ck_assert_double_eq(memory[0], 999);
    ck_assert_double_eq(memory[999], 1);
}

/* ---- What costs no memory ---- */

TEST(only_a_partial_overlap_takes_memory) {
    enum { N = 512 };
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(N, N)), *turned = wg_transpose(x, 0, 1);
    wg_tensor *left = wg_slice(x, 1, 0, N / 2, 1), *right = wg_slice(x, 1, N / 2, N, 1);
    wg_tensor *even = wg_slice(x, 0, 0, N, 2), *odd = wg_slice(x, 0, 1, N, 2);
    wg_tensor *const pairs[][2] = {{x, x},        {x, wg_alias(x)}, {turned, turned}, {left, left},
                                   {left, right}, {right, left},    {even, odd},      {x, turned}};
    for (size_t i = 0; i < WG_COUNT(pairs); i++)
        for (int adds = 0; adds < 2; adds++) {
            const int64_t before = peak_begin();
            ck_assert_int_eq(adds ? wg_add_(pairs[i][0], pairs[i][1], 1)
                                  : wg_copy_(pairs[i][0], pairs[i][1]),
                             0);
            const int64_t taken = peak_end(before), all = sizeof(float) * N * N;
            if (i + 1 < WG_COUNT(pairs))
                ck_assert_int_lt(taken, all / 8);
            else
                ck_assert_int_ge(taken, all);
        }
}

/* ---- All functions on random views of one storage, against the same on clones ---- */

enum { MOST = 3 };

/* A view by its strides: of any layout, also such as no op makes. */
typedef struct layout {
    int64_t strides[MOST], offset;
} layout;

static int64_t below(wg_generator *generator, int64_t bound) {
    return (int64_t)wg_random_below(generator, (uint64_t)bound);
}

/* Strides that slices, steps, flips, transposes, expansions, windows and diagonals have. False if
 * the view is larger than a storage of `room` elements. */
static bool draw_layout(wg_generator *generator, const wg_spec *spec, int64_t room, layout *to) {
    int64_t low = 0, high = 0, reach = 1;
    int order[MOST] = {0, 1, 2};
    for (int i = spec->ndim - 1; i > 0; i--) {
        const int64_t j = below(generator, i + 1);
        const int kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    const bool is_plain = below(generator, 3) > 0; /* no overlap within it */
    for (int i = 0; i < spec->ndim; i++) {
        const int64_t size = spec->shape[order[i]];
        int64_t stride = reach * (1 + below(generator, 8) / 6);
        if (!is_plain && below(generator, 2) == 0)
            stride = below(generator, reach < 6 ? reach + 2 : 6);
        reach = stride * size > reach ? stride * size : reach;
        to->strides[order[i]] = below(generator, 3) == 0 ? -stride : stride;
    }
    for (int i = 0; i < spec->ndim; i++)
        *(to->strides[i] < 0 ? &low : &high) += (spec->shape[i] - 1) * to->strides[i];
    if (high - low >= room)
        return false;
    to->offset = below(generator, 2) == 0 ? (room - 1 - high - low) / 2
                                          : -low + below(generator, room - high + low);
    return true;
}

/* The place of element i of a view. */
static int64_t place_of(const wg_spec *spec, const layout *at, int64_t i) {
    int64_t place = at->offset;
    for (int axis = spec->ndim - 1; axis >= 0; axis--) {
        place += i % spec->shape[axis] * at->strides[axis];
        i /= spec->shape[axis];
    }
    return place;
}

static bool shares_an_address(const wg_spec *spec, const layout *at, int64_t room) {
    char *seen = calloc((size_t)room, 1);
    bool shares = false;
    for (int64_t i = 0, n = wg__spec_count(spec); i < n; i++)
        shares |= seen[place_of(spec, at, i)]++ > 0;
    free(seen);
    return shares;
}

enum { FILL, COPY, ADD, SCALE, WRITES };

static int run(int write, wg_tensor *x, const wg_tensor *y) {
    return write == FILL   ? wg_fill_(x, 7)
           : write == COPY ? wg_copy_(x, y)
           : write == ADD  ? wg_add_(x, y, 2)
                           : wg_scale_(x, 2);
}

/* Small integers, of which all dtypes have the sums exactly. */
static wg_tensor *make_storage(wg_dtype dtype, int64_t room) {
    wg_tensor *numbers = wg_arange(WG_I64, 0, (double)room, 1);
    return wg_cast(wg_remainder(wg_mul_scalar(numbers, 7), wg_scalar(WG_I64, 31)), dtype);
}

/* Writes to one view from another, and compares the whole storage with what clones give. */
static void try_write(wg_dtype dtype, const wg_spec *spec, const layout *to, const layout *from,
                      int64_t room, int write) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const size_t size = wg_dtype_size(dtype);
    wg_tensor *storage = make_storage(dtype, room), *expected = wg_clone(storage);
    wg_tensor *x = wg__tensor_view(storage, spec, to->strides, to->offset);
    wg_tensor *y = wg__tensor_view(storage, spec, from->strides, from->offset);
    wg_tensor *written = wg_clone(x);
    const bool is_refused = shares_an_address(spec, to, room);
    if (!is_refused) {
        ck_assert_int_eq(run(write, written, wg_clone(y)), 0);
        for (int64_t i = 0, n = wg_tensor_count(x); i < n; i++)
            memcpy((char *)wg_tensor_data(expected) + (size_t)place_of(spec, to, i) * size,
                   (char *)wg_tensor_data(written) + (size_t)i * size, size);
    }
    ck_assert_int_eq(run(write, x, y), is_refused ? -1 : 0);
    if (is_refused)
        assert_error(WG_ERROR_ARGUMENT, "share an address");
    ck_assert_msg(
        memcmp(wg_tensor_data(storage), wg_tensor_data(expected), (size_t)room * size) == 0,
        "%s, write %d, shape (%lld, %lld, %lld) of %d axes, strides (%lld, %lld, %lld) "
        "from %lld, source (%lld, %lld, %lld) from %lld",
        wg_dtype_name(dtype), write, (long long)spec->shape[0], (long long)spec->shape[1],
        (long long)spec->shape[2], spec->ndim, (long long)to->strides[0], (long long)to->strides[1],
        (long long)to->strides[2], (long long)to->offset, (long long)from->strides[0],
        (long long)from->strides[1], (long long)from->strides[2], (long long)from->offset);
    wg_scope_end(&scope, NULL);
}

static void draw_and_try(uint64_t seed, wg_dtype dtype, const wg_spec *shape, int64_t room) {
    wg_generator generator = {.seed = seed};
    wg_spec spec = *shape;
    layout to, from;
    spec.dtype = dtype;
    if (!draw_layout(&generator, &spec, room, &to) || !draw_layout(&generator, &spec, room, &from))
        return;
    if (below(&generator, 8) == 0)
        from = to;
    for (int write = 0; write < WRITES; write++)
        if (write != SCALE || wg_dtype_is_float(dtype))
            try_write(dtype, &spec, &to, &from, room, write);
}

static const wg_dtype fuzzed[] = {WG_F32, WG_F64, WG_BF16, WG_I32, WG_I64, WG_U8};

TEST(small_views_of_one_storage_are_written_as_clones) {
    enum { CASES = 4000, ROOM = 200 };
    for (int threads = 1; threads <= 4; threads *= 2) {
        wg_set_threads(threads);
        for (uint64_t seed = 0; seed < CASES; seed++) {
            wg_generator generator = {.seed = seed + CASES};
            wg_spec spec = {.ndim = (int)below(&generator, MOST + 1), .shape = {1, 1, 1}};
            for (int i = 0; i < spec.ndim; i++)
                spec.shape[i] = 1 + below(&generator, 6);
            draw_and_try(seed, fuzzed[seed % WG_COUNT(fuzzed)], &spec, ROOM);
        }
    }
}

TEST(large_views_of_one_storage_are_written_as_clones) {
    enum { CASES = 60, ROOM = 1000000 };
    static const wg_spec shapes[] = {
        {.ndim = 1, .shape = {300000, 1, 1}}, {.ndim = 2, .shape = {500, 600, 1}},
        {.ndim = 2, .shape = {4, 75000, 1}},  {.ndim = 2, .shape = {550, 550, 1}},
        {.ndim = 3, .shape = {20, 3, 5000}},  {.ndim = 3, .shape = {60, 50, 100}},
    };
    for (int threads = 1; threads <= 4; threads *= 2) {
        wg_set_threads(threads);
        for (uint64_t seed = 0; seed < CASES; seed++)
            draw_and_try(seed, fuzzed[seed % WG_COUNT(fuzzed)],
                         &shapes[seed / 7 % WG_COUNT(shapes)], ROOM);
    }
}
