#include "tensor/gemm/product.h"

#include <string.h>

wg__product wg__product_part(const wg__product *product, int64_t i, int64_t m, int64_t j,
                             int64_t n) {
    wg__product part = *product;
    part.m = m;
    part.n = n;
    part.a = wg__matrix_at(part.dtype, part.a, i, 0);
    part.b = wg__matrix_at(part.dtype, part.b, 0, j);
    part.c = wg__matrix_at(part.dtype, part.c, i, j);
    if (part.row)
        part.row = (const char *)part.row + j * (int64_t)wg_dtype_size(part.dtype);
    return part;
}

void wg__product_place_row(wg__product *product) {
    const size_t size = wg_dtype_size(product->dtype);
    if (!product->row)
        return;
    for (int64_t i = 0; i < product->m; i++) {
        const wg__matrix c = wg__matrix_at(product->dtype, product->c, i, 0);
        if (c.column_stride == 1)
            memcpy(c.data, product->row, (size_t)product->n * size);
        else
            for (int64_t j = 0; j < product->n; j++)
                memcpy(wg__matrix_at(product->dtype, c, 0, j).data,
                       (const char *)product->row + (size_t)j * size, size);
    }
    product->row = NULL;
    product->beta = 1;
}
