/* wengert gradcheck: compares the gradients of ops, layers, models and modules, the library's or
 * the user's, with central differences. --jacobian draws the Jacobian of each output by each input.
 * --list prints the table of ops of docs/ops.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"
#include "autograd/functional.h"
#include "cli/options.h"
#include "cli/draw.h"
#include "cli/output.h"
#include "models/model.h"
#include "tensor/internal.h"
#include "gradcheck/internal.h"

/* An op, a layer or a model to check: exactly one of the three pointers is not NULL. */
typedef struct subject {
    const wg_op *op;
    const wg_module_example *example;
    const wg_model_type *model;
    bool is_layer; /* the example is a layer of the library */
} subject;

/* The names of all ops, then of all layers, then of all models; NULL after them. */
static const char *checked_name(int index) {
    int layers = 0;
    if (index < wg_op_count())
        return wg_op_at(index)->name;
    for (index -= wg_op_count(); wg__gradcheck_layer_at(layers); layers++)
        if (layers == index)
            return wg__gradcheck_layer_at(layers)->name;
    const wg_model_type *model = wg_model_type_at(index - layers);
    return model ? model->name : NULL;
}

typedef struct arguments {
    wg_gradcheck_options options;
    int64_t order, seed;
    bool json, list;
    const char *jacobian;  /* draw Jacobians into this file; "": on the terminal; NULL: check */
    wg_setting_list names; /* of ops, layers and models, and paths of libraries */
    int count;             /* of `subjects`; 0: all ops of the library */
    subject *subjects;
} arguments;

static const wg_setting rows[] = {
    {"names", WG_SETTING_TEXTS, WG__AT(names), .word = true, .choice = checked_name,
     .argument = "LIBRARY.so"},
    {"order", WG_SETTING_INTEGER, WG__AT(order), .low = 1, .high = 2, .argument = "N",
     .help = "1: first-order gradients; 2: also second-order, of fused ops by their decomposition; "
             "default: 2 for primitives and 1 for all else"},
    {"forward", WG_SETTING_FLAG, WG__AT(options.forward), .help = "Also check forward mode"},
    {"fast", WG_SETTING_FLAG, WG__AT(options.fast),
     .help = "Check random projections instead of every coordinate; check failures in full"},
    {"f32", WG_SETTING_FLAG, WG__AT(options.f32),
     .help = "Compute in f32 instead of f64, with wider tolerances"},
    {"seed", WG_SETTING_INTEGER, WG__AT(seed), .high = INFINITY, .standard = "0", .argument = "N",
     .help = "The seed of samples, cotangents and directions"},
    {"list", WG_SETTING_FLAG, WG__AT(list),
     .help = "Only print the library's ops as a table in Markdown"},
    {"jacobian", WG_SETTING_TEXT, WG__AT(jacobian), .argument = "[=FILE]",
     .help = "Instead of checking, draw the Jacobian of the first sample of the named ops and "
             "layers, on the terminal or into FILE, an .svg: the dependence of outputs on inputs "
             "(. 0, - up to a 16th of the largest entry, + up to a quarter, # more)"},
    WG__ROW_JSON(arguments),
};

static void add_subject(arguments *a, subject added) {
    subject *subjects = reallocarray(a->subjects, (size_t)a->count + 1, sizeof *subjects);
    if (!subjects)
        exit(wg__cli_fail("no memory is left for the names"));
    a->subjects = subjects;
    a->subjects[a->count++] = added;
}

/* Adds the op, the layer and the model of that name. */
static void add(arguments *a, const char *name) {
    const int before = a->count;
    const wg_op *op = wg_op_find(name);
    const wg_model_type *model = wg_model_type_find(name);
    char suggestion[96];
    wg_error_clear();
    if (op)
        add_subject(a, (subject){.op = op});
    for (int i = 0; wg__gradcheck_layer_at(i); i++)
        if (strcmp(wg__gradcheck_layer_at(i)->name, name) == 0)
            add_subject(a, (subject){.example = wg__gradcheck_layer_at(i), .is_layer = true});
    if (model)
        add_subject(a, (subject){.model = model});
    if (a->count == before)
        wg__cli_misuse(
            "no op, layer or model is named '%s'; wengert gradcheck --list prints all ops%s", name,
            wg__cli_suggestion(suggestion, sizeof suggestion, name, checked_name));
}

static void check_line(const void *values) {
    const char *path = ((const arguments *)values)->jacobian;
    if (path && *path && (!strrchr(path, '.') || strcmp(strrchr(path, '.'), ".svg") != 0))
        wg__cli_misuse("--jacobian=%s: the file's name must end in .svg", path);
}

typedef struct finding {
    subject of;
    wg_gradcheck_report report;
    const char *verdict;     /* "passed", "failed" or "no gradient" */
    const char *no_gradient; /* the reason of an op without a gradient, or NULL */
} finding;

/* "softmax"; of a layer "lstm layer", as an op may have its name. Returns buffer. */
static const char *name_of(const subject *of, char *buffer, size_t size) {
    snprintf(buffer, size, "%s%s",
             of->op        ? of->op->name
             : of->example ? of->example->name
                           : of->model->name,
             of->is_layer ? " layer" : "");
    return buffer;
}

static finding check(const subject *of, const arguments *a) {
    finding found = {.of = *of};
    if (of->op)
        wg_gradcheck_op(of->op, &a->options, &found.report);
    else if (of->example)
        wg_gradcheck_example(of->example, &a->options, &found.report);
    else
        wg_gradcheck_model(of->model, NULL, &a->options, &found.report);
    if (!found.report.passed && !found.report.message[0] && wg_error_pending())
        snprintf(found.report.message, sizeof found.report.message, "%s",
                 wg_error_pending()->message);
    wg_error_clear(); /* the report has its message */
    found.no_gradient = of->op && !of->op->differentiable ? of->op->no_gradient : NULL;
    found.verdict = !found.report.passed ? "failed" : found.no_gradient ? "no gradient" : "passed";
    return found;
}

static void print_row(const finding *found) {
    enum { WIDTH = 92 };
    const wg_gradcheck_report *report = &found->report;
    const char *const orders[] = {"-", "1", "1, 2"};
    char error[32] = "-", name[96];
    if (report->compared > 0)
        snprintf(error, sizeof error, "%.1e", report->largest_absolute_error);
    printf("%-18s %-6s %-7s %7d %8d %8lld %5lld %13s  %s", name_of(&found->of, name, sizeof name),
           orders[report->order], report->forward ? "yes" : "-", report->samples, report->variants,
           (long long)report->compared, (long long)report->kinks, error, found->verdict);
    if (!report->passed)
        printf(": %s", wg__diagnosis_words(report->diagnosis));
    else if (found->no_gradient)
        printf(": %s", found->no_gradient);
    putchar('\n');
    for (const char *text = report->passed ? "" : report->message; *text;) {
        size_t length = strlen(text); /* a line of the paragraph, broken between words */
        if (length > WIDTH) {
            length = WIDTH;
            while (length > 1 && text[length] != ' ')
                length--;
            length = length > 1 ? length : WIDTH;
        }
        printf("    %.*s\n", (int)length, text);
        text += length;
        text += *text == ' ';
    }
    fflush(stdout); /* a check takes seconds: each row appears at once */
}

static int check_all(const arguments *a, json_t *rows) {
    int count = a->count ? a->count : wg_op_count(), failed = 0;
    bool only_ops = true;
    char name[96];
    if (!rows)
        printf("%-18s %-6s %-7s %7s %8s %8s %5s %13s  %s\n", "op", "orders", "forward", "samples",
               "variants", "compared", "kinks", "largest error", "verdict");
    for (int i = 0; i < count; i++) {
        const subject of = a->count ? a->subjects[i] : (subject){.op = wg_op_at(i)};
        finding found = check(&of, a);
        failed += !found.report.passed;
        only_ops &= of.op != NULL;
        if (!rows) {
            print_row(&found);
            continue;
        }
        const wg_gradcheck_report *report = &found.report;
        json_t *orders = json_array();
        for (int order = 1; order <= report->order; order++)
            json_array_append_new(orders, json_integer(order));
        json_array_append_new(
            rows,
            json_pack("{s:s, s:o, s:b, s:i, s:i, s:i, s:I, s:I, s:o, s:o, s:s, s:s, s:I, s:s}",
                      "op", name_of(&of, name, sizeof name), "orders", orders, "forward",
                      report->forward, "samples", report->samples, "variants", report->variants,
                      "refused", report->refused, "compared", (json_int_t)report->compared, "kinks",
                      (json_int_t)report->kinks, "largest_error",
                      wg__json_number(report->largest_absolute_error), "share_of_tolerance",
                      wg__json_number(report->largest_error), "verdict", found.verdict, "diagnosis",
                      wg_diagnosis_name(report->diagnosis), "seed", (json_int_t)report->seed,
                      "message", report->message));
    }
    if (failed > 0)
        wg__cli_fail("%d of %d %s failed", failed, count, only_ops ? "ops" : "checks");
    return failed;
}

/* ---- --jacobian: a row for each element of an output, a column for each of an input ----
 *
 *     softmax: d output 0 (2, 3) f64 / d input 0 (2, 3) f64: 6 x 6, 18 entries are not 0: block...
 *         ##+...
 *         #+#...
 *         +##...
 *         ...##+
 *         ...#+#
 *         ...+##
 */

/* Cells of the largest picture; a larger Jacobian has several entries a cell. */
enum { MOST_COLUMNS = 72, MOST_ROWS = 48, CELL = 8 /* points of a cell in a file */ };

/* An SVG with a column of Jacobians. */
typedef struct picture {
    FILE *cells;   /* its elements so far; NULL: pictures go to the terminal */
    double height; /* that they take */
} picture;

/* An op with its options, or a module that draws the same random numbers each time, as a function
 * of flat inputs with flat outputs: a Jacobian is a matrix then. */
typedef struct drawn {
    const wg_op *op;
    wg_sample of_op;
    wg_module_sample of_module;
    wg_generator generator;
    wg_spec inputs[WG_MAX_INPUTS], outputs[WG_MAX_OUTPUTS];
} drawn;

static int run_flat(int input_count, wg_tensor *const *inputs, int output_count,
                    wg_tensor **outputs, void *context) {
    drawn *d = context;
    const wg_module_sample *m = &d->of_module;
    wg_tensor *shaped[WG_MAX_INPUTS] = {NULL};
    for (int i = 0; i < input_count; i++)
        if (inputs[i])
            shaped[i] = wg_reshape(inputs[i], d->inputs[i].ndim, d->inputs[i].shape);
    if (!d->op)
        *wg_module_generator(m->module) = d->generator;
    const int status = d->op ? wg_apply(d->op, input_count, shaped, d->of_op.options, outputs)
                             : m->forward(input_count, shaped, output_count, outputs,
                                          m->context ? m->context : m->module);
    if (status < 0)
        return -1;
    for (int j = 0; j < output_count; j++) {
        d->outputs[j] = outputs[j]->spec;
        outputs[j] = wg_reshape(outputs[j], 1, (int64_t[]){-1});
    }
    return wg_error_pending() ? -1 : 0;
}

typedef struct matrix {
    int64_t rows, columns;
    const double *entries;
} matrix;

/* Describes the pattern of the `filled` entries that are not 0. */
static void describe_zeros(const matrix *m, int64_t filled, char *text, size_t size) {
    int64_t below = 0, above = 0, of_row = 0, of_column = 0, blocks = 1;
    for (int64_t i = 0; i < m->rows; i++) {
        int64_t count = 0;
        for (int64_t j = 0; j < m->columns; j++)
            if (m->entries[i * m->columns + j] != 0) {
                below = wg__larger(below, i - j);
                above = wg__larger(above, j - i);
                count++;
            }
        of_row = wg__larger(of_row, count);
    }
    for (int64_t j = 0; j < m->columns; j++) {
        int64_t count = 0;
        for (int64_t i = 0; i < m->rows; i++)
            count += m->entries[i * m->columns + j] != 0;
        of_column = wg__larger(of_column, count);
    }
    /* The most blocks of equal size along the diagonal that hold all entries. */
    for (int64_t n = 2; n <= m->rows && n <= m->columns; n++) {
        bool holds = m->rows % n == 0 && m->columns % n == 0;
        for (int64_t k = 0; holds && k < m->rows * m->columns; k++)
            holds = m->entries[k] == 0 ||
                    k / m->columns / (m->rows / n) == k % m->columns / (m->columns / n);
        blocks = holds ? n : blocks;
    }
    const bool is_square = m->rows == m->columns;
    const char *triangle = !is_square || (below > 0) == (above > 0) ? ""
                           : below > 0                              ? "lower triangular"
                                                                    : "upper triangular";
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
    else if (of_row == 1)
        snprintf(text, size, "each output depends on at most one input");
    else if (of_column == 1)
        snprintf(text, size, "each input moves at most one output");
    else if (is_square && 2 * (below + above + 1) <= m->rows)
        snprintf(text, size, "a band of %lld below the diagonal and %lld above", (long long)below,
                 (long long)above);
    else
        snprintf(text, size, "%s", filled == m->rows * m->columns ? "dense" : "sparse");
}

/* The entry of a cell with the largest absolute value; NaN if there is one. */
static double cell(const matrix *m, int64_t rows, int64_t columns, int64_t i, int64_t j) {
    double largest = 0;
    for (int64_t r = i * m->rows / rows; r < (i + 1) * m->rows / rows; r++)
        for (int64_t c = j * m->columns / columns; c < (j + 1) * m->columns / columns; c++) {
            const double entry = m->entries[r * m->columns + c];
            if (isnan(entry) || fabs(entry) > fabs(largest))
                largest = entry;
        }
    return largest;
}

/* Positive entries are red and negative ones blue, the larger the darker. */
static void draw_cells(picture *picture, const matrix *m, int64_t rows, int64_t columns,
                       double largest, const char *title) {
    const double top = picture->height + 20;
    const double width = (double)(CELL * columns), height = (double)(CELL * rows);
    fprintf(picture->cells, "<text x=\"10\" y=\"%g\">", top - 6);
    wg__draw_text(picture->cells, title);
    fputs("</text>\n", picture->cells);
    wg__draw_rectangle(picture->cells, 9, top - 1, width + 2, height + 2, "#999999", 1);
    wg__draw_rectangle(picture->cells, 10, top, width, height, "#f4f4f4", 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const double value = cell(m, rows, columns, i, j), size = fabs(value) / largest;
            const char *colour = !isfinite(value) ? "#000000" : value > 0 ? "#c0392b" : "#2c5aa0";
            if (value != 0)
                wg__draw_rectangle(picture->cells, (double)(10 + CELL * j),
                                   top + (double)(CELL * i), CELL, CELL, colour,
                                   isfinite(size) ? 0.15 + 0.85 * size : 1);
        }
    picture->height = top + height + 16;
}

static int show(picture *picture, const char *name, const drawn *d, int output, int input,
                wg_tensor *jacobian) {
    char title[768], pattern[256], to[96], from[96];
    const int64_t count = wg_tensor_count(jacobian);
    double *entries = wg__cli_calloc((size_t)count, sizeof *entries);
    const matrix m = {wg_tensor_size(jacobian, 0), wg_tensor_size(jacobian, 1), entries};
    if (wg_to_array(wg_cast(wg_detach(jacobian), WG_F64), entries) < 0) {
        free(entries);
        return -1;
    }
    int64_t filled = 0;
    double largest = 0;
    for (int64_t k = 0; k < count; k++) {
        filled += entries[k] != 0;
        largest = isfinite(entries[k]) ? fmax(largest, fabs(entries[k])) : largest;
    }
    describe_zeros(&m, filled, pattern, sizeof pattern);
    snprintf(title, sizeof title,
             "%s: d output %d %s / d input %d %s: %lld x %lld, %lld entries are not 0: %s", name,
             output, wg_spec_text(to, sizeof to, &d->outputs[output]), input,
             wg_spec_text(from, sizeof from, &d->inputs[input]), (long long)m.rows,
             (long long)m.columns, (long long)filled, pattern);
    const int64_t rows = wg__smaller(m.rows, MOST_ROWS),
                  columns = wg__smaller(m.columns, MOST_COLUMNS);
    printf("%s\n", title);
    if (picture->cells)
        draw_cells(picture, &m, rows, columns, largest, title);
    for (int64_t i = 0; !picture->cells && i < rows; i++) {
        printf("    ");
        for (int64_t j = 0; j < columns; j++) {
            const double size = fabs(cell(&m, rows, columns, i, j)) / largest;
            putchar(size == 0 || largest == 0 ? '.'
                    : !isfinite(size)         ? '?'
                    : size <= 1.0 / 16        ? '-'
                    : size <= 1.0 / 4         ? '+'
                                              : '#');
        }
        putchar('\n');
    }
    free(entries);
    return 0;
}

/* Draws d output / d input of each pair that has a derivative. Returns how many there are, or -1.
 */
static int show_jacobians(picture *picture, const char *name, drawn *d, int input_count,
                          wg_tensor *const *inputs, int output_count) {
    wg_tensor *flattened[WG_MAX_INPUTS] = {NULL}, *jacobians[WG_MAX_OUTPUTS * WG_MAX_INPUTS];
    int shown = 0, status = 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int i = 0; i < input_count; i++)
        if (inputs[i]) {
            d->inputs[i] = inputs[i]->spec;
            flattened[i] = wg_reshape(wg_detach(inputs[i]), 1, (int64_t[]){-1});
        }
    if (wg_jacobian(run_flat, d, input_count, flattened, output_count, NULL, jacobians) < 0)
        status = -1;
    for (int j = 0; j < output_count && status == 0; j++)
        for (int i = 0; i < input_count && status == 0; i++) {
            wg_tensor *jacobian = jacobians[j * input_count + i];
            if (!jacobian || wg_tensor_count(jacobian) == 0)
                continue;
            status = show(picture, name, d, j, i, jacobian);
            shown++;
        }
    wg_scope_end(&scope, NULL);
    return status < 0 ? -1 : shown;
}

/* Draws the first sample. */
static int draw(picture *picture, const subject *of, const arguments *a) {
    wg_generator generator = {.seed = a->options.seed};
    drawn d = {.op = of->op};
    int shown = -1;
    char name[96];
    name_of(of, name, sizeof name);
    if (of->model)
        return wg__cli_fail("%s is a model; --jacobian draws ops and layers", name);
    if (of->op && !of->op->differentiable)
        return wg__cli_fail("%s has no gradient: %s", name, of->op->no_gradient);
    wg_scope scope;
    wg_scope_begin(&scope);
    if (of->op) {
        if (of->op->sample(0, &generator, &d.of_op) > 0)
            shown = show_jacobians(picture, name, &d, d.of_op.input_count, d.of_op.inputs,
                                   of->op->output_count);
    } else {
        if (of->example->sample(0, &generator, &d.of_module) > 0 &&
            wg_module_to(d.of_module.module, WG_F64) == 0) {
            d.generator = *wg_module_generator(d.of_module.module);
            shown = show_jacobians(picture, name, &d, d.of_module.input_count, d.of_module.inputs,
                                   d.of_module.output_count ? d.of_module.output_count : 1);
        }
        wg_module_free(d.of_module.module);
    }
    wg_scope_end(&scope, NULL);
    return shown < 0    ? wg__cli_fail_pending()
           : shown == 0 ? wg__cli_fail("%s has no input to draw", name)
                        : 0;
}

static int draw_all(const arguments *a) {
    enum { WIDTH = 960 };
    picture picture = {0};
    char *cells = NULL, *page = NULL;
    size_t size;
    int failed = 0;
    if (*a->jacobian && !(picture.cells = open_memstream(&cells, &size)))
        return wg__cli_fail("no memory for a picture");
    for (int i = 0; i < a->count && !failed; i++)
        failed = draw(&picture, &a->subjects[i], a);
    if (picture.cells) {
        int length = fclose(picture.cells);
        if (length == 0)
            length =
                asprintf(&page,
                         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%g\" "
                         "font-family=\"sans-serif\" font-size=\"12\">\n"
                         "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
                         WIDTH, picture.height + 10, cells);
        if (!failed)
            failed = length < 0 ? wg__cli_fail("no memory for a picture")
                                : wg__cli_write_file(a->jacobian, page, (size_t)length);
        free(length < 0 ? NULL : page);
        free(cells);
    }
    wg_error_clear();
    return failed;
}

/* ---- --list: the table of ops ---- */

/* The text of a cell in one line, with bars escaped. */
static void print_cell(const char *text) {
    for (; *text; text++) {
        if (*text == '|')
            putchar('\\');
        putchar(*text == '\n' ? ' ' : *text);
    }
}

/* Whether the op runs on one of its samples after all inputs of the first input's dtype are cast to
 * `dtype`. */
static bool takes(const wg_op *op, wg_dtype dtype) {
    bool taken = false;
    for (int k = 0, more = 1; more > 0 && !taken; k++) {
        wg_generator generator = {.seed = 1, .offset = (uint64_t)k << 16};
        wg_sample sample = {0};
        wg_scope scope;
        wg_scope_begin(&scope);
        more = op->sample(k, &generator, &sample);
        if (more > 0 && sample.input_count > 0 && sample.inputs[0]) {
            wg_tensor *outputs[WG_MAX_OUTPUTS];
            const wg_dtype first = wg_tensor_dtype(sample.inputs[0]);
            for (int i = 0; i < sample.input_count; i++)
                if (sample.inputs[i] && wg_tensor_dtype(sample.inputs[i]) == first)
                    sample.inputs[i] = wg_cast(sample.inputs[i], dtype);
            taken = wg_apply(op, sample.input_count, sample.inputs, sample.options, outputs) == 0;
            wg_error_clear();
        }
        wg_scope_end(&scope, NULL);
    }
    return taken;
}

static void print_op_row(const wg_op *op) {
    static const wg_dtype dtypes[] = {WG_F32, WG_F64, WG_BF16, WG_I32, WG_I64, WG_U8, WG_BOOL};
    const char *before = "", *zero = op->exceptions ? op->exceptions->zero_gradient : NULL;
    const char *why = op->no_gradient ? op->no_gradient : zero;
    printf("| `%s` | %s | %d", op->name,
           !op->forward               ? "composite"
           : op->vjp && op->decompose ? "fused"
           : op->is_view              ? "view"
                                      : "primitive",
           op->min_inputs);
    if (op->max_inputs == WG_MAX_INPUTS && op->min_inputs < op->max_inputs)
        printf(" or more");
    else if (op->min_inputs < op->max_inputs)
        printf(" to %d", op->max_inputs);
    printf(" | ");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (takes(op, dtypes[i])) {
            printf("%s%s", before, wg_dtype_name(dtypes[i]));
            before = " ";
        }
    printf(" | %s | %s | ",
           !op->differentiable ? "none"
           : zero              ? "any, zero"
                               : "any",
           !op->differentiable        ? "no"
           : op->jvp || op->decompose ? "yes"
                                      : "by its vjp");
    print_cell(op->doc);
    if (why) {
        printf("%s %s: ", op->doc[strlen(op->doc) - 1] == '.' ? "" : ".",
               op->no_gradient ? "No gradient" : "Its gradient is zero");
        print_cell(why);
    }
    printf(" |\n");
}

/* ---- The verb ---- */

int wg__verb_gradcheck(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .parts = {WG__PART(rows, a)},
        .check = check_line,
        .lines = "[OP | LAYER | MODEL | ./LIBRARY.so]...",
        .doc =
            "Checks the gradients of ops on their samples and on variants of them (memory layouts, "
            "sizes of 0 and 1, broadcasting): compares backward with central differences in f64, "
            "and checks further properties of a gradient. A failure is reported with a diagnosis. "
            "The ops are all ops of the library, the named ops, or the ops that a shared library "
            "exports by WG_EXPORT_OPS. A layer (linear, lstm, multi_head_attention, batch_norm...) "
            "is checked by its inputs and parameters in its forms, very small ones; if an op has "
            "the same name, both are checked. A model (bert, gpt...) is checked by every parameter "
            "of a very small one, with dropout that drops the same in each run; so are the modules "
            "that a shared library exports by WG_EXPORT_MODULES, and a failure names the parameter "
            "by its path. The largest error is the largest difference of a derivative; kinks are "
            "places where a subgradient was accepted.",
    };
    wg__cli_read(&usage, argc, argv);
    a.options.order = (int)a.order;
    a.options.seed = (uint64_t)a.seed;
    for (int64_t i = 0; i < a.names.count; i++)
        if (strchr(a.names.items[i], '/') || wg__ends_with(a.names.items[i], ".so")) {
            const wg_op *const *ops;
            const wg_module_example *const *examples;
            if (wg__gradcheck_library_open(a.names.items[i], &ops, &examples) < 0)
                exit(wg__cli_fail_pending());
            for (; *ops; ops++)
                add_subject(&a, (subject){.op = *ops});
            for (; *examples; examples++)
                add_subject(&a, (subject){.example = *examples});
        } else
            add(&a, a.names.items[i]);
    int code = 0;
    if (a.list) {
        const bool recording = wg_set_grad_enabled(false);
        printf("| op | kind | inputs | dtypes | orders | forward mode | what |\n"
               "| --- | --- | --- | --- | --- | --- | --- |\n");
        for (int i = 0; i < wg_op_count(); i++)
            print_op_row(wg_op_at(i));
        wg_set_grad_enabled(recording);
    } else if (a.jacobian) {
        code =
            a.count ? draw_all(&a) : wg__cli_fail("--jacobian wants the name of an op or a layer");
    } else {
        json_t *rows = a.json ? json_array() : NULL;
        const int failed = check_all(&a, rows);
        code = failed > 0;
        if (rows)
            wg__print_json(JSON_INDENT(2), json_pack("{s:o, s:i}", "ops", rows, "failed", failed));
    }
    free(a.subjects);
    return code;
}
