/* Sums over rows. WIDE vectors of columns are summed at once, in parts of SUM_ROWS rows: a sum of
 * sums has the smaller rounding error. */

enum { WIDE = 4, SUM_ROWS = 64 };

static inline void sum_columns(int64_t rows, int64_t row_stride, const real *x, real *sums) {
    vector total[WIDE];
    for (int v = 0; v < WIDE; v++)
        total[v] = load(sums + v * LANES);
    for (int64_t begin = 0; begin < rows; begin += SUM_ROWS) {
        int64_t end = begin + SUM_ROWS < rows ? begin + SUM_ROWS : rows;
        vector part[WIDE] = {{0}};
        for (int64_t row = begin; row < end; row++)
            for (int v = 0; v < WIDE; v++)
                part[v] += load(x + row * row_stride + v * LANES);
        for (int v = 0; v < WIDE; v++)
            total[v] += part[v];
    }
    for (int v = 0; v < WIDE; v++)
        store(sums + v * LANES, total[v]);
}

/* Up to one vector of columns. */
static inline void sum_few_columns(int64_t rows, int64_t columns, int64_t row_stride, const real *x,
                                   real *sums) {
    vector total = row_vector(columns, sums, 0, 0);
    for (int64_t begin = 0; begin < rows; begin += SUM_ROWS) {
        int64_t end = begin + SUM_ROWS < rows ? begin + SUM_ROWS : rows;
        vector part = {0};
        for (int64_t row = begin; row < end; row++)
            part += row_vector(columns, x + row * row_stride, 0, 0);
        total += part;
    }
    store_row_vector(columns, sums, 0, total);
}

static void column_sums(int64_t rows, int64_t columns, int64_t row_stride, const void *x,
                        void *sums) {
    const real *from = x;
    real *to = sums;
    int64_t j = 0;
    for (; j + WIDE * LANES <= columns; j += WIDE * LANES)
        sum_columns(rows, row_stride, from + j, to + j);
    for (; j < columns; j += LANES) {
        int64_t few = columns - j < LANES ? columns - j : LANES;
        sum_few_columns(rows, few, row_stride, from + j, to + j);
    }
}
