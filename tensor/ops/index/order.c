/* Sorting by keys: unsigned numbers that are ordered as the elements are, beside their indices.
 *
 *     element --> key, its bits flipped for a descending order
 *     entry       | key, 32 bits | index, 32 bits |  or, of 64-bit elements and of very long rows,
 *                 | key, 64 bits | index, 64 bits |
 *
 * Entries are sorted by one digit of the key after the other, the lowest first, each into as many
 * buckets as the digit has values; digits that all keys share cost no pass. */
#include "tensor/ops/index/order.h"

#include "tensor/convert.h"

#include <string.h>

#define SHORT 48 /* so few entries are sorted by insertion */
#define DIGITS 256

/* ---- Keys ---- */

static inline uint32_t key_f32(float x) {
    uint32_t bits;
    if (x != x)
        return UINT32_MAX;
    x += 0.0F; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | (uint32_t)1 << 31;
}

/* The lower half is the same for all, and costs no passes. */
static inline uint32_t key_bf16(uint16_t x) {
    return key_f32(wg__bf16_to_f32(x)) | 0xffff;
}

static inline uint32_t key_i32(int32_t x) {
    return (uint32_t)x ^ (uint32_t)1 << 31;
}

static inline uint32_t key_u8(uint8_t x) {
    return x;
}

static inline uint64_t key_f64(double x) {
    uint64_t bits;
    if (x != x)
        return UINT64_MAX;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static inline uint64_t key_i64(int64_t x) {
    return (uint64_t)x ^ (uint64_t)1 << 63;
}

/* ---- Entries ---- */

typedef uint64_t narrow;

static inline narrow narrow_entry(uint32_t key, uint32_t flip, int64_t index) {
    return (uint64_t)(key ^ flip) << 32 | (uint64_t)index;
}

static inline bool narrow_before(narrow a, narrow b) {
    return a < b;
}

static inline unsigned narrow_digit(narrow entry, int place) {
    return entry >> 8 * place & (DIGITS - 1);
}

static inline int64_t narrow_index(narrow entry) {
    return (int64_t)(entry & UINT32_MAX);
}

typedef struct wide {
    uint64_t key;
    int64_t index;
} wide;

static inline wide wide_entry(uint64_t key, uint64_t flip, int64_t index) {
    return (wide){key ^ flip, index};
}

static inline bool wide_before(wide a, wide b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

static inline unsigned wide_digit(wide entry, int place) {
    const uint64_t half = place < 8 ? (uint64_t)entry.index : entry.key;
    return half >> 8 * (place % 8) & (DIGITS - 1);
}

static inline int64_t wide_index(wide entry) {
    return entry.index;
}

/* Rows whose indices fit 32 bits, of elements whose keys do. */
static bool is_narrow(wg_dtype dtype, int64_t n) {
    return wg_dtype_size(dtype) <= 4 && n <= UINT32_MAX;
}

#define FILL(NAME, ENTRY, UNSIGNED, TYPE, KEY)                                                     \
    static void NAME(int64_t n, const void *x, bool descending, void *to) {                        \
        const UNSIGNED flip = descending ? (UNSIGNED)-1 : 0;                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((ENTRY *)to)[i] = ENTRY##_entry(KEY(((const TYPE *)x)[i]), flip, i);                  \
    }

FILL(narrow_f32, narrow, uint32_t, float, key_f32)
FILL(narrow_bf16, narrow, uint32_t, uint16_t, key_bf16)
FILL(narrow_i32, narrow, uint32_t, int32_t, key_i32)
FILL(narrow_u8, narrow, uint32_t, uint8_t, key_u8)
FILL(wide_f32, wide, uint64_t, float, key_f32)
FILL(wide_bf16, wide, uint64_t, uint16_t, key_bf16)
FILL(wide_i32, wide, uint64_t, int32_t, key_i32)
FILL(wide_u8, wide, uint64_t, uint8_t, key_u8)
FILL(wide_f64, wide, uint64_t, double, key_f64)
FILL(wide_i64, wide, uint64_t, int64_t, key_i64)

typedef void (*fill)(int64_t n, const void *x, bool descending, void *to);

static const fill narrow_fills[WG_DTYPE_COUNT] = {[WG_F32] = narrow_f32,
                                                  [WG_BF16] = narrow_bf16,
                                                  [WG_I32] = narrow_i32,
                                                  [WG_U8] = narrow_u8,
                                                  [WG_BOOL] = narrow_u8};
static const fill wide_fills[WG_DTYPE_COUNT] = {
    [WG_F32] = wide_f32, [WG_F64] = wide_f64, [WG_BF16] = wide_bf16, [WG_I32] = wide_i32,
    [WG_I64] = wide_i64, [WG_U8] = wide_u8,   [WG_BOOL] = wide_u8};

/* ---- Sorting and selecting ---- */

/* For entries of type ENTRY, of so many bytes, of which the lower half is the index:
 *
 * _select leaves the first k of the order among the first k entries: a heap, the last of them at
 * its root, which each entry that comes before it replaces. _sort gives where the sorted entries
 * lie: in `entries` or in `spare`. Those that are in the order of their indices need no passes over
 * these, the digits up to `from`. */
#define ORDER(ENTRY, BYTES)                                                                        \
    static void ENTRY##_sift(ENTRY *heap, int64_t k, int64_t at) {                                 \
        const ENTRY moved = heap[at];                                                              \
        for (int64_t child = 2 * at + 1; child < k; child = 2 * at + 1) {                          \
            if (child + 1 < k && ENTRY##_before(heap[child], heap[child + 1]))                     \
                child++;                                                                           \
            if (!ENTRY##_before(moved, heap[child]))                                               \
                break;                                                                             \
            heap[at] = heap[child];                                                                \
            at = child;                                                                            \
        }                                                                                          \
        heap[at] = moved;                                                                          \
    }                                                                                              \
    static void ENTRY##_select(ENTRY *entries, int64_t n, int64_t k) {                             \
        for (int64_t i = k / 2 - 1; i >= 0; i--)                                                   \
            ENTRY##_sift(entries, k, i);                                                           \
        for (int64_t i = k; i < n; i++)                                                            \
            if (ENTRY##_before(entries[i], entries[0])) {                                          \
                entries[0] = entries[i];                                                           \
                ENTRY##_sift(entries, k, 0);                                                       \
            }                                                                                      \
    }                                                                                              \
    static void ENTRY##_insert(ENTRY *entries, int64_t n) {                                        \
        for (int64_t i = 1; i < n; i++) {                                                          \
            const ENTRY moved = entries[i];                                                        \
            int64_t at = i;                                                                        \
            for (; at > 0 && ENTRY##_before(moved, entries[at - 1]); at--)                         \
                entries[at] = entries[at - 1];                                                     \
            entries[at] = moved;                                                                   \
        }                                                                                          \
    }                                                                                              \
    static ENTRY *ENTRY##_sort(ENTRY *entries, ENTRY *spare, int64_t n, int from) {                \
        int64_t counts[BYTES][DIGITS];                                                             \
        memset(counts[from], 0, (size_t)(BYTES - from) * sizeof counts[0]);                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int place = from; place < BYTES; place++)                                         \
                counts[place][ENTRY##_digit(entries[i], place)]++;                                 \
        for (int place = from; place < BYTES; place++) {                                           \
            int64_t *next = counts[place], sum = 0;                                                \
            if (next[ENTRY##_digit(entries[0], place)] == n)                                       \
                continue;                                                                          \
            for (int digit = 0; digit < DIGITS; digit++) {                                         \
                const int64_t count = next[digit];                                                 \
                next[digit] = sum;                                                                 \
                sum += count;                                                                      \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                spare[next[ENTRY##_digit(entries[i], place)]++] = entries[i];                      \
            ENTRY *const sorted = spare;                                                           \
            spare = entries;                                                                       \
            entries = sorted;                                                                      \
        }                                                                                          \
        return entries;                                                                            \
    }                                                                                              \
    static void ENTRY##_order(ENTRY *entries, int64_t n, int64_t k, int64_t *order) {              \
        if (k < n)                                                                                 \
            ENTRY##_select(entries, n, k);                                                         \
        if (k <= SHORT)                                                                            \
            ENTRY##_insert(entries, k);                                                            \
        else                                                                                       \
            entries = ENTRY##_sort(entries, entries + n, k, k < n ? 0 : BYTES / 2);                \
        for (int64_t i = 0; i < k; i++)                                                            \
            order[i] = ENTRY##_index(entries[i]);                                                  \
    }

ORDER(narrow, 8)
ORDER(wide, 16)

/* ---- For rows ---- */

size_t wg__order_room(wg_dtype dtype, int64_t n) {
    return 2 * (size_t)n * (is_narrow(dtype, n) ? sizeof(narrow) : sizeof(wide));
}

void wg__order(wg_dtype dtype, bool descending, int64_t n, const void *x, int64_t k, void *room,
               int64_t *order) {
    if (is_narrow(dtype, n)) {
        narrow_fills[dtype](n, x, descending, room);
        narrow_order(room, n, k, order);
    } else {
        wide_fills[dtype](n, x, descending, room);
        wide_order(room, n, k, order);
    }
}

bool wg__order_same(wg_dtype dtype, const void *x, int64_t i, int64_t j) {
    switch (dtype) {
    case WG_F32:
        return key_f32(((const float *)x)[i]) == key_f32(((const float *)x)[j]);
    case WG_F64:
        return key_f64(((const double *)x)[i]) == key_f64(((const double *)x)[j]);
    case WG_BF16:
        return key_bf16(((const uint16_t *)x)[i]) == key_bf16(((const uint16_t *)x)[j]);
    case WG_I32:
        return ((const int32_t *)x)[i] == ((const int32_t *)x)[j];
    case WG_I64:
        return ((const int64_t *)x)[i] == ((const int64_t *)x)[j];
    default:
        return ((const uint8_t *)x)[i] == ((const uint8_t *)x)[j];
    }
}
