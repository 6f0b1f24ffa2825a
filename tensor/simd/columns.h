/* Sums over rows: of UNROLLED rows at a time, so that the sums are loaded and stored less often. */

enum { UNROLLED = 4 };

static inline void add_few_rows(int64_t rows, int64_t columns, int64_t row_stride, const real *x,
                                real *sums) {
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        vector part = load(x + j);
        for (int64_t row = 1; row < rows; row++)
            part += load(x + row * row_stride + j);
        store(sums + j, load(sums + j) + part);
    }
    if (j == columns)
        return;
    vector part = load_part(x + j, columns - j, 0);
    for (int64_t row = 1; row < rows; row++)
        part += load_part(x + row * row_stride + j, columns - j, 0);
    store_part(sums + j, load_part(sums + j, columns - j, 0) + part, columns - j);
}

static void add_rows(int64_t rows, int64_t columns, int64_t row_stride, const void *x, void *sums) {
    const real *from = x;
    int64_t row = 0;
    for (; row + UNROLLED <= rows; row += UNROLLED)
        add_few_rows(UNROLLED, columns, row_stride, from + row * row_stride, sums);
    for (; row < rows; row++)
        add_few_rows(1, columns, row_stride, from + row * row_stride, sums);
}
