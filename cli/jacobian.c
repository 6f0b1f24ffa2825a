/* Pictures of Jacobians, for `wengert gradcheck --jacobian`: a row for each element of an output, a
 * column for each of an input, and what the zeros among the derivatives look like.
 *
 *     softmax: d output 0 (2, 3) / d input 0 (2, 3): 6 x 6, 18 entries are not 0: block diagonal...
 *         ##+...
 *         #+#...
 *         +##...
 *         ...##+
 *         ...#+#
 *         ...+##
 */
#include "cli/jacobian.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

/* Cells of the largest picture; a larger Jacobian has several entries a cell. */
enum { MOST_COLUMNS = 72, MOST_ROWS = 48, CELL = 8 /* points of a cell in SVG */ };

/* ---- The function, of flat inputs with flat outputs: a Jacobian is a matrix then ---- */

typedef struct flat {
    wg_function function;
    void *context;
    wg_spec inputs[WG_MAX_INPUTS], outputs[WG_MAX_OUTPUTS];
} flat;

static int run_flat(int input_count, wg_tensor *const *inputs, int output_count,
                    wg_tensor **outputs, void *context) {
    flat *f = context;
    wg_tensor *shaped[WG_MAX_INPUTS] = {NULL};
    for (int i = 0; i < input_count; i++)
        if (inputs[i])
            shaped[i] = wg_reshape(inputs[i], f->inputs[i].ndim, f->inputs[i].shape);
    if (f->function(input_count, shaped, output_count, outputs, f->context) < 0)
        return -1;
    for (int j = 0; j < output_count; j++) {
        f->outputs[j] = outputs[j]->spec;
        outputs[j] = wg_reshape(outputs[j], 1, (int64_t[]){-1});
    }
    return wg_error_pending() ? -1 : 0;
}

/* ---- The pattern of the zeros ---- */

typedef struct matrix {
    int64_t rows, columns;
    const double *entries;
} matrix;

static double entry(const matrix *m, int64_t i, int64_t j) {
    return m->entries[i * m->columns + j];
}

/* No entry lies outside of `blocks` equal blocks along the diagonal. */
static bool has_blocks(const matrix *m, int64_t blocks) {
    const int64_t height = m->rows / blocks, width = m->columns / blocks;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++)
            if (entry(m, i, j) != 0 && i / height != j / width)
                return false;
    return true;
}

/* The most entries of a row, or of a column. */
static int64_t fullest(const matrix *m, bool of_rows) {
    int64_t most = 0;
    for (int64_t i = 0; i < (of_rows ? m->rows : m->columns); i++) {
        int64_t count = 0;
        for (int64_t j = 0; j < (of_rows ? m->columns : m->rows); j++)
            count += (of_rows ? entry(m, i, j) : entry(m, j, i)) != 0;
        most = count > most ? count : most;
    }
    return most;
}

/* How far entries lie below the diagonal, or above it. */
static int64_t reach(const matrix *m, bool below) {
    int64_t most = 0;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++)
            if (entry(m, i, j) != 0)
                most = wg__larger(most, below ? i - j : j - i);
    return most;
}

static int64_t count_filled(const matrix *m) {
    int64_t filled = 0;
    for (int64_t k = 0; k < m->rows * m->columns; k++)
        filled += m->entries[k] != 0;
    return filled;
}

static void describe(const matrix *m, char *text, size_t size) {
    const int64_t filled = count_filled(m), below = reach(m, true), above = reach(m, false);
    const bool is_square = m->rows == m->columns;
    const char *triangle = !is_square || (below > 0) == (above > 0) ? ""
                           : below > 0                              ? "lower triangular"
                                                                    : "upper triangular";
    int64_t blocks = 1;
    for (int64_t n = 2; n <= m->rows && n <= m->columns; n++)
        if (m->rows % n == 0 && m->columns % n == 0 && has_blocks(m, n))
            blocks = n;
    if (filled == 0)
        snprintf(text, size, "zero");
    else if (is_square && blocks == m->rows)
        snprintf(text, size, "diagonal");
    else if (blocks > 1)
        snprintf(text, size, "block diagonal, %lld blocks of %lld x %lld%s%s", (long long)blocks,
                 (long long)(m->rows / blocks), (long long)(m->columns / blocks),
                 *triangle ? ", " : "", triangle);
    else if (*triangle)
        snprintf(text, size, "%s", triangle);
    else if (fullest(m, true) == 1)
        snprintf(text, size, "each output depends on at most one input");
    else if (fullest(m, false) == 1)
        snprintf(text, size, "each input moves at most one output");
    else if (is_square && 2 * (below + above + 1) <= m->rows)
        snprintf(text, size, "a band of %lld below the diagonal and %lld above", (long long)below,
                 (long long)above);
    else
        snprintf(text, size, "%s", filled == m->rows * m->columns ? "dense" : "sparse");
}

/* ---- Drawing ---- */

/* The entry of the largest size among those of a cell; NaN if there is one. */
static double cell(const matrix *m, int64_t rows, int64_t columns, int64_t i, int64_t j) {
    double largest = 0;
    for (int64_t r = i * m->rows / rows; r < (i + 1) * m->rows / rows; r++)
        for (int64_t c = j * m->columns / columns; c < (j + 1) * m->columns / columns; c++)
            if (isnan(entry(m, r, c)) || fabs(entry(m, r, c)) > fabs(largest))
                largest = entry(m, r, c);
    return largest;
}

static double largest_of(const matrix *m) {
    double largest = 0;
    for (int64_t k = 0; k < m->rows * m->columns; k++)
        if (isfinite(m->entries[k]))
            largest = fmax(largest, fabs(m->entries[k]));
    return largest;
}

static void draw_text(const matrix *m, int64_t rows, int64_t columns) {
    const double largest = largest_of(m);
    for (int64_t i = 0; i < rows; i++) {
        printf("    ");
        for (int64_t j = 0; j < columns; j++) {
            const double size = fabs(cell(m, rows, columns, i, j)) / largest;
            putchar(size == 0 || largest == 0 ? '.'
                    : !isfinite(size)         ? '?'
                    : size <= 1.0 / 16        ? '-'
                    : size <= 1.0 / 4         ? '+'
                                              : '#');
        }
        putchar('\n');
    }
}

/* Positive entries are red and negative ones blue, the larger the darker. */
static void draw_svg(wg__jacobian_picture *picture, const matrix *m, int64_t rows, int64_t columns,
                     const char *title) {
    const double largest = largest_of(m), top = picture->height + 20;
    fprintf(picture->file, "<text x=\"10\" y=\"%g\">%s</text>\n", top - 6, title);
    fprintf(picture->file,
            "<rect x=\"10\" y=\"%g\" width=\"%lld\" height=\"%lld\" fill=\"#f4f4f4\" "
            "stroke=\"#999\"/>\n",
            top, (long long)(CELL * columns), (long long)(CELL * rows));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const double value = cell(m, rows, columns, i, j), size = fabs(value) / largest;
            if (value == 0)
                continue;
            fprintf(picture->file,
                    "<rect x=\"%lld\" y=\"%g\" width=\"%d\" height=\"%d\" fill=\"%s\" "
                    "fill-opacity=\"%.3f\"/>\n",
                    (long long)(10 + CELL * j), top + (double)(CELL * i), CELL, CELL,
                    !isfinite(value) ? "#000"
                    : value > 0      ? "#c0392b"
                                     : "#2c5aa0",
                    isfinite(size) ? 0.15 + 0.85 * size : 1);
        }
    picture->height = top + (double)(CELL * rows) + 16;
}

/* "(2, 3)". Returns buffer. */
static const char *shape_text(char *buffer, size_t size, const wg_spec *spec) {
    size_t used = (size_t)snprintf(buffer, size, "(");
    for (int d = 0; d < spec->ndim && used < size; d++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%lld", d ? ", " : "",
                                 (long long)spec->shape[d]);
    snprintf(buffer + (used < size ? used : size - 1), size - (used < size ? used : size - 1), ")");
    return buffer;
}

static int show(wg__jacobian_picture *picture, const char *name, const flat *f, int output,
                int input, wg_tensor *jacobian) {
    const int64_t rows_of = wg_tensor_size(jacobian, 0), columns_of = wg_tensor_size(jacobian, 1);
    char title[768], pattern[256], to[96], from[96];
    double *entries = calloc((size_t)wg_tensor_count(jacobian) + 1, sizeof *entries);
    const matrix m = {rows_of, columns_of, entries};
    if (!entries || wg_to_array(wg_cast(wg_detach(jacobian), WG_F64), entries) < 0) {
        free(entries);
        return wg_error_pending() ? -1 : wg_fail(WG_ERROR_MEMORY, "jacobian", "no memory");
    }
    describe(&m, pattern, sizeof pattern);
    snprintf(title, sizeof title,
             "%s: d output %d %s / d input %d %s: %lld x %lld, %lld entries are not 0: %s", name,
             output, shape_text(to, sizeof to, &f->outputs[output]), input,
             shape_text(from, sizeof from, &f->inputs[input]), (long long)m.rows,
             (long long)m.columns, (long long)count_filled(&m), pattern);
    const int64_t rows = wg__smaller(m.rows, MOST_ROWS),
                  columns = wg__smaller(m.columns, MOST_COLUMNS);
    printf("%s\n", title);
    if (picture->file)
        draw_svg(picture, &m, rows, columns, title);
    else
        draw_text(&m, rows, columns);
    free(entries);
    return 0;
}

int wg__show_jacobians(wg__jacobian_picture *picture, const char *name, wg_function function,
                       void *context, int input_count, wg_tensor *const *inputs, int output_count) {
    flat f = {function, context, {{0}}, {{0}}};
    wg_tensor *flattened[WG_MAX_INPUTS] = {NULL}, *jacobians[WG_MAX_OUTPUTS * WG_MAX_INPUTS];
    int shown = 0, status = 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int i = 0; i < input_count; i++)
        if (inputs[i]) {
            f.inputs[i] = inputs[i]->spec;
            flattened[i] = wg_reshape(wg_detach(inputs[i]), 1, (int64_t[]){-1});
        }
    if (wg_jacobian(run_flat, &f, input_count, flattened, output_count, NULL, jacobians) < 0)
        status = -1;
    for (int j = 0; j < output_count && status == 0; j++)
        for (int i = 0; i < input_count && status == 0; i++) {
            wg_tensor *jacobian = jacobians[j * input_count + i];
            if (!jacobian || wg_tensor_count(jacobian) == 0)
                continue;
            status = show(picture, name, &f, j, i, jacobian);
            shown++;
        }
    wg_scope_end(&scope, NULL);
    return status < 0 ? -1 : shown;
}

/* ---- The file ---- */

int wg__jacobian_picture_begin(wg__jacobian_picture *picture, const char *path) {
    *picture = (wg__jacobian_picture){.path = path};
    if (!path)
        return 0;
    picture->file = tmpfile();
    return picture->file ? 0
                         : wg_fail(WG_ERROR_IO, "jacobian", "no temporary file can be made: %s",
                                   strerror(errno));
}

int wg__jacobian_picture_end(wg__jacobian_picture *picture) {
    if (!picture->file)
        return 0;
    FILE *out = fopen(picture->path, "w");
    bool written = out != NULL;
    if (out) {
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"%g\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                picture->height + 10);
        rewind(picture->file);
        for (int c; (c = getc(picture->file)) != EOF;)
            putc(c, out);
        fprintf(out, "</svg>\n");
        written = !ferror(out) && !ferror(picture->file);
        written &= fclose(out) == 0;
    }
    const int reason = errno;
    fclose(picture->file);
    picture->file = NULL;
    return written ? 0
                   : wg_fail(WG_ERROR_IO, "jacobian", "cannot write %s: %s", picture->path,
                             strerror(reason));
}
