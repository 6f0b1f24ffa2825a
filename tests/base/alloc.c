/* The allocator: freed memory serves later requests, and little memory is held besides what is in
 * use. */
#include "base/alloc.h"
#include "base/array.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tensor/internal.h"
#include "tensor/ops.h"
#include "base/internal.h"
#include "base/system.h"
#include "tests/support/testing.h"

enum { MIB = 1 << 20 };

static int64_t asked(void) {
    return wg_alloc_get_stats().system_allocations;
}

/* ---- Use and reuse ---- */

TEST(freed_blocks_are_used_again) {
    wg_scope scope;
    int64_t asked = 0;
    for (int i = 0; i < 5; i++) {
        wg_scope_begin(&scope);
        wg_zeros(WG_F32, WG_DIMS(100 + i, 1000)); /* sizes of one class */
        wg_scope_end(&scope, NULL);
        if (i == 0)
            asked = wg_alloc_get_stats().system_allocations;
    }
    ck_assert_int_eq(wg_alloc_get_stats().system_allocations, asked);
}

TEST(the_counters_tell_what_is_in_use) {
    wg_alloc_stats before = wg_alloc_get_stats();
    wg_tensor *x = wg_keep(wg_zeros(WG_F32, WG_DIMS(1000)));
    wg_alloc_stats during = wg_alloc_get_stats();
    ck_assert_int_gt(during.live_blocks, before.live_blocks);
    ck_assert_int_ge(during.live_bytes, before.live_bytes + 4000);
    ck_assert_int_ge(during.peak_bytes, during.live_bytes);
    wg_release(x);
    wg_alloc_stats after = wg_alloc_get_stats();
    ck_assert_int_eq(after.live_blocks, before.live_blocks);
    ck_assert_int_eq(after.live_bytes, before.live_bytes);
    ck_assert_int_ge(after.cached_bytes, 4000);
    wg__alloc_trim();
    ck_assert_int_eq(wg_alloc_get_stats().cached_bytes, 0);
}

TEST(trimming_leaves_neighbours_of_what_it_gives_back_alone) {
    enum { COUNT = 24, SIZE = 300000 };
    signed char *blocks[COUNT];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = wg__alloc(SIZE);
            memset(blocks[i], i + 1, SIZE);
        }
        for (int i = 0; i < COUNT; i += 2)
            wg__free(blocks[i]);
        ck_assert_int_ge(wg_alloc_get_stats().cached_bytes, (int64_t)COUNT / 2 * SIZE);
        wg__alloc_trim();
        wg__alloc_trim();
        ck_assert_int_eq(wg_alloc_get_stats().cached_bytes, 0);
        for (int i = 1; i < COUNT; i += 2)
            ck_assert(blocks[i][0] == i + 1 && blocks[i][SIZE - 1] == i + 1);
        for (int i = 0; i < COUNT; i += 2) {
            blocks[i] = wg__alloc(SIZE);
            memset(blocks[i], -i, SIZE);
        }
        for (int i = 0; i < COUNT; i++) {
            ck_assert_int_eq(blocks[i][SIZE - 1], i % 2 ? i + 1 : -i);
            wg__free(blocks[i]);
        }
        wg__alloc_trim();
    }
}

TEST(blocks_are_aligned_whatever_their_size) {
    for (size_t size = 0; size < 5000; size += 7) {
        void *block = wg__alloc(size);
        ck_assert_uint_eq((uintptr_t)block % 64, 0);
        memset(block, 1, size);
        wg__free(block);
    }
    for (size_t size = 1; size < (size_t)1 << 26; size *= 3) {
        char *block = wg__alloc(size);
        ck_assert_uint_eq((uintptr_t)block % 64, 0);
        block[size - 1] = 1;
        wg__free(block);
    }
    wg__free(NULL);
}

TEST(the_hook_fails_the_allocation_after_n) {
    wg__alloc_fail_after(2);
    void *first = wg__alloc(10), *second = wg__alloc(10), *third = wg__alloc(10);
    ck_assert(first && second && !third);
    assert_error(WG_ERROR_MEMORY, "no memory");
    ck_assert(!wg__alloc(10) && !wg__calloc(3, 3) && !wg__strdup("text"));
    wg_error_clear();
    wg__alloc_fail_after(-1);
    void *fourth = wg__alloc(10);
    ck_assert_ptr_nonnull(fourth);
    wg__free(first);
    wg__free(second);
    wg__free(fourth);
}

TEST(calloc_gives_zeros_and_sees_overflow) {
    unsigned char *block = wg__alloc(100);
    memset(block, 0xff, 100);
    wg__free(block);
    block = wg__calloc(10, 10);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(block[i], 0);
    wg__free(block);
    assert_fails(wg__calloc(SIZE_MAX / 2, 3), WG_ERROR_MEMORY, "no memory");
    assert_fails(wg__alloc(SIZE_MAX), WG_ERROR_MEMORY, "no memory");
}

/* ---- Large blocks are cut to measure, and merge ---- */

TEST(large_blocks_are_as_large_as_was_asked_for) {
    for (size_t size = 100000; size < 100 * (size_t)MIB; size = size * 7 / 4) {
        const int64_t before = wg_alloc_get_stats().live_bytes;
        void *block = wg__alloc(size);
        const int64_t more = wg_alloc_get_stats().live_bytes - before;
        ck_assert(more >= (int64_t)size && more < (int64_t)size + 64);
        wg__free(block);
    }
}

TEST(a_large_block_is_cut_for_smaller_ones) {
    enum { PARTS = 7 };
    void *parts[PARTS];
    wg__free(wg__alloc(8 * MIB));
    const int64_t before = asked();
    for (int i = 0; i < PARTS; i++)
        parts[i] = wg__alloc((size_t)(MIB + i * 1000));
    ck_assert_int_eq(asked(), before);
    for (int i = 0; i < PARTS; i++)
        wg__free(parts[i]);
}

/* The blocks are freed in different orders. The wall keeps them from merging with the memory behind
 * them. */
TEST(neighbours_that_are_freed_serve_a_larger_block) {
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}};
    char *parts[4];
    for (size_t k = 0; k < WG_COUNT(orders); k++) {
        for (int i = 0; i < 4; i++)
            parts[i] = wg__alloc(3 * MIB);
        char *wall = wg__alloc(2 * MIB);
        for (int i = 0; i < 4; i++)
            wg__free(parts[orders[k][i]]);
        const int64_t before = asked();
        char *whole = wg__alloc(12 * MIB);
        ck_assert_int_eq(asked(), before);
        ck_assert_ptr_eq(whole, parts[0]);
        wg__free(whole);
        wg__free(wall);
    }
}

TEST(the_lowest_piece_that_fits_is_taken) {
    char *large = wg__alloc(4 * MIB), *wall = wg__alloc(MIB), *small = wg__alloc(MIB),
         *end = wg__alloc(3 * MIB / 2);
    wg__free(large);
    wg__free(small);
    char *too_large = wg__alloc(5 * MIB), *fitting = wg__alloc(MIB - 1000);
    ck_assert_ptr_eq(fitting, large);
    ck_assert(too_large != large && too_large != small);
    wg__free(fitting);
    wg__free(too_large);
    wg__free(wall);
    wg__free(end);
}

/* As in mixed precision, where two bf16 tensors take the place of an f32 tensor that was freed. The
 * block `wall` stays allocated, so that the freed place cannot grow. */
TEST(the_place_of_a_block_holds_two_of_half_its_size) {
    for (size_t half = 65536; half < 20 * (size_t)MIB; half = (half * 7 / 4 + 63) / 64 * 64) {
        char *whole = wg__alloc(2 * half), *wall = wg__alloc(half);
        wg__free(whole);
        char *first = wg__alloc(half), *second = wg__alloc(half);
        ck_assert_ptr_eq(first, whole);
        ck_assert(second > first && second < wall);
        wg__free(first);
        wg__free(second);
        wg__free(wall);
    }
}

/* The pattern of training: activations are allocated, then freed in reverse order while gradients
 * are allocated and freed. */
static void take_a_step(char **places, int64_t *peak) {
    enum { LAYERS = 12 };
    char *kept[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        char *passing = wg__alloc((size_t)(900000 + 70000 * (i % 3)));
        kept[i] = wg__alloc((size_t)(2100000 + 330000 * (i % 5)));
        places[i] = kept[i];
        wg__free(passing);
    }
    char *gradient = wg__alloc(1500000);
    for (int i = LAYERS; i-- > 0;) {
        char *next = wg__alloc((size_t)(1500000 + 110000 * (i % 3)));
        wg__free(gradient);
        wg__free(kept[i]);
        gradient = next;
        places[LAYERS + i] = gradient;
    }
    wg__free(gradient);
    *peak = wg_alloc_get_stats().peak_bytes;
}

TEST(little_more_is_held_than_was_ever_in_use) {
    char *places[24];
    int64_t peak = 0;
    wg__alloc_trim();
    for (int i = 0; i < 5; i++)
        take_a_step(places, &peak);
    const wg_alloc_stats after = wg_alloc_get_stats();
    ck_assert_int_le(after.cached_bytes, peak + peak / 8 + 2 * MIB);
}

TEST(equal_steps_find_their_blocks_where_those_before_were) {
    char *first[24], *later[24];
    int64_t peak;
    take_a_step(first, &peak);
    const int64_t before = asked();
    for (int i = 0; i < 3; i++) {
        take_a_step(later, &peak);
        ck_assert(memcmp(first, later, sizeof first) == 0);
    }
    ck_assert_int_eq(asked(), before);
}

/* ---- What the system gets back ---- */

static char *full_block(size_t size) {
    char *block = wg__alloc(size);
    ck_assert_ptr_nonnull(block);
    return memset(block, 1, size);
}

TEST(trimming_gives_memory_back_between_blocks_and_above_them) {
    enum { SIZE = 40 * MIB, MARGIN = 6 * MIB };
    char *between = full_block(SIZE), *wall = full_block(MIB), *above = full_block(SIZE);
    int64_t before = wg__resident_bytes();
    wg__free(between);
    wg__alloc_trim();
    ck_assert_int_le(wg__resident_bytes(), before - SIZE + MARGIN);
    before = wg__resident_bytes();
    wg__free(above);
    wg__alloc_trim();
    ck_assert_int_le(wg__resident_bytes(), before - SIZE + MARGIN);
    ck_assert(wall[0] == 1 && wall[MIB - 1] == 1);
    wg__free(wall);
}

/* A request of this size counts as one call of the system. */
TEST(memory_that_was_given_back_is_asked_for_again) {
    char *block = full_block(4 * MIB), *wall = full_block(MIB);
    wg__free(block);
    wg__alloc_trim();
    ck_assert_int_eq(wg_alloc_get_stats().cached_bytes, 0);
    for (int64_t round = 0, before = asked(); round < 3; round++) {
        block = full_block(4 * MIB);
        ck_assert_int_eq(asked(), before + 1);
        wg__free(block);
    }
    wg__free(wall);
}

#ifndef WG__POISONS /* the shadow memory has more addresses than any limit leaves */

/* The limit leaves addresses for each request, but not for all that the allocator would like to
 * reserve. */
TEST(a_limit_on_addresses_is_lived_with) {
    struct rlimit was, limited;
    wg__alloc_trim();
    getrlimit(RLIMIT_AS, &was);
    limited = was;
    limited.rlim_cur = (rlim_t)(wg__mapped_bytes() + 300 * MIB);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limited), 0);
    void *beyond = mmap(NULL, 400 * (size_t)MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (beyond != MAP_FAILED) {
        munmap(beyond, 400 * (size_t)MIB);
        fprintf(stderr, "skipped: the system keeps no limit on addresses, as QEMU's user mode\n");
        return;
    }
    char *first = full_block(100 * MIB), *second = full_block(100 * MIB);
    assert_fails(wg__alloc(200 * (size_t)MIB), WG_ERROR_MEMORY, "no memory for 209715200 bytes");
    wg__free(first);
    wg__free(second);
    wg__free(full_block(200 * MIB)); /* after the first two were freed */
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &was), 0);
    wg__alloc_trim();
}

#else

TEST(the_sanitizer_sees_reads_past_a_block_and_of_freed_ones) {
    for (size_t size = 10; size < 20 * (size_t)MIB; size = size * 5 / 2) {
        char *block = wg__alloc(size), *next = wg__alloc(size);
        ck_assert_ptr_null(__asan_region_is_poisoned(block, size));
        ck_assert(__asan_address_is_poisoned(block + size));
        ck_assert(__asan_address_is_poisoned(block + (size + 63) / 64 * 64));
        wg__free(block);
        for (size_t i = 0; i < size; i += size / 10)
            ck_assert(__asan_address_is_poisoned(block + i));
        ck_assert_ptr_null(__asan_region_is_poisoned(next, size));
        wg__free(next);
    }
}

#endif

/* ---- Failures ---- */

TEST(any_allocation_of_many_may_fail) {
    static const size_t sizes[] = {100, 200000, 3 * MIB, 70000, 5000, 40 * MIB};
    enum { COUNT = WG_COUNT(sizes) };
    void *blocks[COUNT];
    const wg_alloc_stats before = wg_alloc_get_stats();
    for (int64_t n = 0; n <= COUNT; n++) {
        wg__alloc_fail_after(n);
        for (int64_t i = 0; i < COUNT; i++) {
            blocks[i] = wg__try_alloc(sizes[i]);
            ck_assert_int_eq(blocks[i] != NULL, i < n);
        }
        wg__alloc_fail_after(-1);
        for (int i = 0; i < COUNT; i++)
            wg__free(blocks[i]);
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, before.live_blocks);
        ck_assert_int_eq(wg_alloc_get_stats().live_bytes, before.live_bytes);
    }
}

/* ---- Threads ---- */

enum { SLOTS = 60, ROUNDS = 6000 };

typedef struct holder {
    uint64_t state;
    unsigned char sign;
    unsigned char *blocks[SLOTS];
    size_t sizes[SLOTS];
    bool broken;
} holder;

static uint64_t draw(holder *h) {
    h->state = h->state * 6364136223846793005U + 1442695040888963407U;
    return h->state >> 33;
}

/* Words of a block that no other owner may have written: at both ends and between. */
static void mark(unsigned char *block, size_t size, unsigned char value) {
    for (size_t k = 0; k <= 8; k++)
        block[(size - 1) * k / 8] = value;
}

static bool is_marked(const unsigned char *block, size_t size, unsigned char value) {
    bool same = true;
    for (size_t k = 0; k <= 8; k++)
        same &= block[(size - 1) * k / 8] == value;
    return same;
}

/* Sizes from a byte to 4 MiB, small ones as often as large ones. */
static void *take_and_give_at_random(void *argument) {
    holder *h = argument;
    for (int round = 0; round < ROUNDS + SLOTS; round++) {
        const size_t slot = round < ROUNDS ? draw(h) % SLOTS : (size_t)(round - ROUNDS);
        unsigned char *block = h->blocks[slot];
        if (block)
            h->broken |= !is_marked(block, h->sizes[slot], h->sign);
        wg__free(block);
        h->blocks[slot] = NULL;
        if (round >= ROUNDS)
            continue;
        const size_t size = 1 + draw(h) % ((size_t)1 << (draw(h) % 23));
        h->blocks[slot] = block = wg__alloc(size);
        h->sizes[slot] = size;
        h->broken |= !block || (uintptr_t)block % 64 != 0;
        mark(block, size, h->sign);
        if (draw(h) % 1000 == 0)
            wg__alloc_trim();
    }
    return NULL;
}

TEST(blocks_of_threads_do_not_meet) {
    static holder holders[3];
    pthread_t threads[3];
    const int64_t before = wg_alloc_get_stats().live_bytes;
    for (int i = 0; i < 3; i++) {
        holders[i] = (holder){.state = (uint64_t)i + 1, .sign = (unsigned char)(i + 1)};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_give_at_random, &holders[i]),
                         0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++)
        ck_assert(!holders[i].broken);
    ck_assert_int_eq(wg_alloc_get_stats().live_bytes, before);
    wg__alloc_trim();
    ck_assert_int_eq(wg_alloc_get_stats().cached_bytes, 0);
}

/* ---- Small blocks, which threads keep for themselves ---- */

enum { MANY = 64, SMALL = 1000 };

static void *take_many(void *blocks) {
    for (int i = 0; i < MANY; i++)
        ((void **)blocks)[i] = wg__alloc(SMALL);
    return NULL;
}

static void *free_many(void *blocks) {
    for (int i = 0; i < MANY; i++)
        wg__free(((void **)blocks)[i]);
    return NULL;
}

static void *take_and_free_many(void *blocks) {
    take_many(blocks);
    return free_many(blocks);
}

static void run_in_a_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, body, argument), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

TEST(a_thread_leaves_its_blocks_to_the_others) {
    void *blocks[MANY];
    run_in_a_thread(take_and_free_many, blocks);
    const int64_t before = asked();
    take_and_free_many(blocks);
    ck_assert_int_eq(asked(), before);
}

TEST(what_one_thread_takes_another_may_free) {
    void *blocks[MANY];
    const wg_alloc_stats before = wg_alloc_get_stats();
    take_many(blocks);
    run_in_a_thread(free_many, blocks);
    run_in_a_thread(take_many, blocks);
    ck_assert_int_eq(wg_alloc_get_stats().live_blocks, before.live_blocks + MANY);
    ck_assert_int_ge(wg_alloc_get_stats().live_bytes, before.live_bytes + MANY * SMALL);
    free_many(blocks);
    ck_assert_int_eq(wg_alloc_get_stats().live_blocks, before.live_blocks);
    ck_assert_int_eq(wg_alloc_get_stats().live_bytes, before.live_bytes);
}

/* A thread that frees more than it allocates keeps no more than its limit. */
TEST(blocks_come_back_from_the_thread_that_frees_them) {
    void *blocks[MANY];
    int64_t before = 0;
    for (int round = 0; round < 20; round++) {
        run_in_a_thread(take_many, blocks);
        free_many(blocks);
        if (round == 8)
            before = asked();
    }
    ck_assert_int_eq(asked(), before);
    wg__alloc_trim();
    ck_assert_int_eq(wg_alloc_get_stats().cached_bytes, 0);
}

/* Sizes are multiplied in one place, which finds what overflows. */
TEST(arrays_of_impossible_sizes_are_refused) {
    static const struct {
        int64_t count;
        size_t size;
    } bad[] = {{-1, 1}, {INT64_MAX, 16}, {INT64_MAX / 4, SIZE_MAX / 2}, {INT64_C(1) << 61, 8}};
    for (size_t i = 0; i < WG_COUNT(bad); i++)
        assert_fails(wg__alloc_array(bad[i].count, bad[i].size), WG_ERROR_MEMORY, "no memory for");
    ck_assert_int_eq(wg__times(3, INT64_C(1) << 40), INT64_C(3) << 40);
    ck_assert_int_eq(wg__times(0, INT64_MAX), 0);
    static const int64_t unlike[][2] = {
        {INT64_C(1) << 32, INT64_C(1) << 32}, {INT64_MAX, 2}, {-1, -1}, {-1, 8}, {INT64_MIN, -1}};
    for (size_t i = 0; i < WG_COUNT(unlike); i++) {
        const int64_t product = wg__times(unlike[i][0], unlike[i][1]);
        ck_assert_int_eq(wg__times(product, 8), product); /* which larger factors leave as it is */
        assert_fails(wg__alloc_array(product + 1, 16), WG_ERROR_MEMORY, "no memory for");
    }
    assert_fails(wg__calloc(SIZE_MAX, 1), WG_ERROR_MEMORY, "no memory for");
    int64_t capacity = INT64_MAX / 2 + 1;
    void *none = NULL;
    assert_fails(wg__reserve(&none, 0, &capacity, INT64_MAX, 16), WG_ERROR_MEMORY, "no memory for");
    void *block = wg__alloc_array(0, 8);
    ck_assert_ptr_nonnull(block);
    wg__free(block);
}
