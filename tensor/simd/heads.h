/* Products of rows of several heads, side by side (simd.h says what each computes). Each head is
 * read by instructions of its own: the processor fetches ahead for all of them at once, and what a
 * short stretch of memory takes to get going is waited for once and not for each. Of heads of 64 by
 * 160 keys, three at once come at 37 GB/s and one by one at 22. */
#include "tensor/simd/cases.h"

WG__OF_KNOWN void dots_of_heads(const int heads, const wg__head_products *p) {
    const int64_t n = p->width, whole = n / LANES * LANES;
    for (int64_t r = 0; r < p->rows; r++) {
        const int64_t row = r * p->row_stride;
        vector sums[WG__HEADS_AT_ONCE] = {{0}};
        for (int64_t i = 0; i < whole; i += LANES) {
            WG__UNROLL
            for (int h = 0; h < heads; h++)
                sums[h] += load_stream((const real *)p->a[h] + row + i) *
                           load((const real *)p->vector[h] + i);
        }
        for (int h = 0; whole < n && h < heads; h++)
            sums[h] += load_part((const real *)p->a[h] + row + whole, n - whole, 0) *
                       load_part((const real *)p->vector[h] + whole, n - whole, 0);
        WG__UNROLL
        for (int h = 0; h < heads; h++)
            ((real *)p->y[h])[r] = (real)(p->scale * (double)sum_lanes(sums[h]));
    }
}

static void head_dots(int heads, const wg__head_products *p) {
#define OF(n) dots_of_heads(n, p)
    switch (heads) { WG__CASES(4, OF) }
#undef OF
}

/* Sums that stay in registers from the first row to the last. */
enum { HEAD_VECTORS = WG__VECTOR_BYTES == 64 ? 4 : 2 };

WG__OF_KNOWN void add_head_rows(const int heads, const int vectors, const wg__head_products *p,
                                int64_t column) {
    vector sums[WG__HEADS_AT_ONCE][HEAD_VECTORS] = {{{0}}};
    for (int64_t r = 0; r < p->rows; r++) {
        const int64_t place = r * p->row_stride + column;
        WG__UNROLL
        for (int h = 0; h < heads; h++) {
            const real factor = ((const real *)p->vector[h])[r];
            WG__UNROLL
            for (int v = 0; v < vectors; v++)
                sums[h][v] += factor * load_stream((const real *)p->a[h] + place + v * LANES);
        }
    }
    WG__UNROLL
    for (int h = 0; h < heads; h++) {
        WG__UNROLL
        for (int v = 0; v < vectors; v++)
            store((real *)p->y[h] + column + v * LANES, (real)p->scale * sums[h][v]);
    }
}

WG__OF_KNOWN void sums_of_heads(const int heads, const wg__head_products *p) {
    const int64_t n = p->width;
    int64_t column = 0;
    for (; column + HEAD_VECTORS * LANES <= n; column += HEAD_VECTORS * LANES)
        add_head_rows(heads, HEAD_VECTORS, p, column);
    for (; column + LANES <= n; column += LANES)
        add_head_rows(heads, 1, p, column);
    for (int h = 0; column < n && h < heads; h++) {
        vector sum = {0};
        for (int64_t r = 0; r < p->rows; r++)
            sum += ((const real *)p->vector[h])[r] *
                   load_part((const real *)p->a[h] + r * p->row_stride + column, n - column, 0);
        store_part((real *)p->y[h] + column, (real)p->scale * sum, n - column);
    }
}

static void head_sums(int heads, const wg__head_products *p) {
#define OF(n) sums_of_heads(n, p)
    switch (heads) { WG__CASES(4, OF) }
#undef OF
}
