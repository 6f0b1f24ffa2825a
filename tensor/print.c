/* Prints tensors as NumPy's str() does.
 *
 *     [[ 1.    2.5   3.  ]        one layout for all elements, so that decimal points line up;
 *      [-4.    0.25  nan]]        rows broken at 75 characters, blank lines between planes
 *
 * A first pass over the printed elements finds the layout, a second pass writes. Spaces are held
 * back until text follows them, because a broken row has no spaces at its end. */
#include "tensor/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/internal.h"

#define LINE_WIDTH 75
#define THRESHOLD 1000 /* elements; beyond that, the middle of every long axis is left out */
#define EDGE 3         /* elements that are kept at either end of the axis */
#define PLACES 8       /* after the point, at most */

/* ---- Floating point numbers as decimal digits. printf rounds the exact value correctly at any
 * number of digits; the fewest that read back as the same number are found by trying. ---- */

#define DECIMAL_DIGITS 17 /* enough to tell any two doubles apart */

/* value = +-d.ddd x 10^exponent, with no zeros at the end; zero is the one digit 0. */
typedef struct decimal_digits {
    bool negative;
    int exponent;
    int count; /* of digits, 1 to 17 */
    char digits[DECIMAL_DIGITS];
} decimal_digits;

/* Splits "-1.2345e-05" into its parts. The point may be any character: the locale chooses it. */
static decimal_digits parse_scientific(const char *text) {
    decimal_digits decimal = {.negative = *text == '-'};
    for (; *text != 'e'; text++)
        if (*text >= '0' && *text <= '9')
            decimal.digits[decimal.count++] = *text;
    decimal.exponent = atoi(text + 1);
    while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0')
        decimal.count--;
    return decimal;
}

static bool reads_back(const char *text, double value, wg_dtype dtype) {
    return dtype == WG_F64 ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value;
}

/* The fewest digits that read back as this finite value of that dtype (f64, or f32 for others). */
static decimal_digits shortest_decimal(double value, wg_dtype dtype) {
    char text[32];
    for (int count = 1; count <= DECIMAL_DIGITS; count++) {
        snprintf(text, sizeof(text), "%.*e", count - 1, value);
        if (count == DECIMAL_DIGITS || reads_back(text, value, dtype))
            break;
        /* Below a power of two, neighbours are half as far apart as above it. So if the nearest
         * decimal of some length lies below the number, it may read back as a neighbour, while the
         * next decimal up reads back as the number. */
        char *last = strchr(text, 'e') - 1;
        if (*last >= '0' && *last <= '8' && (++*last, reads_back(text, value, dtype)))
            break;
    }
    return parse_scientific(text);
}

/* The fewest digits if they are `least` to `most` (1 to 17); else the exact value rounded to the
 * nearer of these two numbers of digits, ties to even. */
static decimal_digits decimal_between(double value, wg_dtype dtype, int least, int most) {
    decimal_digits decimal = shortest_decimal(value, dtype);
    if (least <= decimal.count && decimal.count <= most)
        return decimal;
    char text[32];
    snprintf(text, sizeof(text), "%.*e", (decimal.count < least ? least : most) - 1, value);
    return parse_scientific(text);
}

typedef struct sink {
    FILE *stream; /* or NULL, and then: */
    char *buffer;
    size_t size;
    int64_t length; /* of the text so far */
    int column;     /* characters of the line so far, with spaces held back */
    int spaces;     /* held back */
    bool refused;
} sink;

static void append_byte(sink *out, char c) {
    if (out->stream)
        out->refused |= putc(c, out->stream) == EOF;
    else if (out->length + 1 < (int64_t)out->size)
        out->buffer[out->length] = c;
    out->length++;
}

static void append(sink *out, const char *text) {
    for (; *text; text++) {
        out->column++;
        if (*text == ' ') {
            out->spaces++;
            continue;
        }
        for (; out->spaces > 0; out->spaces--)
            append_byte(out, ' ');
        append_byte(out, *text);
    }
}

/* Ends the line; the next one begins with `indent` spaces. */
static void append_line_end(sink *out, int indent) {
    out->spaces = indent;
    out->column = indent;
    append_byte(out, '\n');
}

/* ---- The layout of an element ---- */

typedef struct layout {
    wg_dtype dtype;
    bool scientific;
    int left;     /* characters before the point, or all of an integer or bool */
    int places;   /* after the point */
    int exponent; /* digits of the exponent, if scientific */
    int right;    /* characters from the point on: point, places and exponent */
} layout;

typedef struct survey {
    layout layout;
    double smallest, largest; /* of the finite values that are not 0, by magnitude */
    bool any_nan, any_infinite, any_negative_infinite;
} survey;

static int max_int(int a, int b) {
    return a > b ? a : b;
}

/* All digits before the point, and at most PLACES after it. */
static decimal_digits fixed_decimal(double value, wg_dtype dtype) {
    int whole = shortest_decimal(value, dtype).exponent + 1; /* below 1 for 0.0ddd */
    return decimal_between(value, dtype, max_int(whole, 1), whole + PLACES);
}

static void survey_range(survey *seen, const char *address) {
    double value = wg__element(seen->layout.dtype, address);
    if (isnan(value))
        seen->any_nan = true;
    else if (isinf(value)) {
        seen->any_infinite = true;
        seen->any_negative_infinite |= value < 0;
    } else {
        double magnitude = fabs(value);
        seen->largest = fmax(seen->largest, magnitude);
        if (magnitude > 0)
            seen->smallest = fmin(seen->smallest, magnitude);
    }
}

static void survey_width(survey *seen, const char *address) {
    layout *layout = &seen->layout;
    double value = wg__element(layout->dtype, address);
    if (!wg_dtype_is_float(layout->dtype)) {
        const int64_t integer = /* a double would lose bits of an i64 */
            layout->dtype == WG_I64 ? *(const int64_t *)address : (int64_t)value;
        layout->left = max_int(layout->left, snprintf(NULL, 0, "%" PRId64, integer));
    } else if (!isfinite(value)) {
        return;
    } else if (layout->scientific) {
        decimal_digits decimal = decimal_between(value, layout->dtype, 1, PLACES + 1);
        layout->left = max_int(layout->left, decimal.negative + 1);
        layout->places = max_int(layout->places, decimal.count - 1);
        layout->exponent = max_int(layout->exponent, abs(decimal.exponent) > 99 ? 3 : 2);
    } else {
        decimal_digits decimal = fixed_decimal(value, layout->dtype);
        layout->left = max_int(layout->left, decimal.negative + max_int(decimal.exponent, 0) + 1);
        layout->places = max_int(layout->places, decimal.count - 1 - decimal.exponent);
    }
}

/* ---- Visiting the printed elements ---- */

typedef struct view {
    const wg_spec *spec;
    const int64_t *strides; /* in elements */
    int64_t item;           /* bytes of an element */
    bool summarised;
} view;

/* The place after `index` on an axis, over the gap that a summary leaves out. */
static int64_t next_shown(const view *x, int axis, int64_t index) {
    bool gap = x->summarised && x->spec->shape[axis] > 2 * EDGE && index == EDGE - 1;
    return gap ? x->spec->shape[axis] - EDGE : index + 1;
}

static void survey_all(const view *x, int axis, const char *address,
                       void (*visit)(survey *, const char *), survey *seen) {
    if (axis == x->spec->ndim) {
        visit(seen, address);
        return;
    }
    for (int64_t i = 0; i < x->spec->shape[axis]; i = next_shown(x, axis, i))
        survey_all(x, axis + 1, address + i * x->strides[axis] * x->item, visit, seen);
}

static layout find_layout(const view *x, const char *address) {
    survey seen = {.layout.dtype = x->spec->dtype, .smallest = INFINITY};
    layout *found = &seen.layout;
    if (x->spec->dtype == WG_BOOL) {
        found->left = 5;
    } else if (!wg_dtype_is_float(x->spec->dtype)) {
        survey_all(x, 0, address, survey_width, &seen);
    } else {
        survey_all(x, 0, address, survey_range, &seen);
        /* NumPy divides in the dtype of the elements. */
        const double ratio = x->spec->dtype == WG_F64
                                 ? seen.largest / seen.smallest
                                 : (double)((float)seen.largest / (float)seen.smallest);
        found->scientific =
            seen.largest > 0 && (seen.largest >= 1e8 || seen.smallest < 1e-4 || ratio > 1000);
        survey_all(x, 0, address, survey_width, &seen);
        found->right = 1 + found->places + (found->scientific ? 2 + found->exponent : 0);
        if (seen.any_nan)
            found->left = max_int(found->left, 3 - found->right);
        if (seen.any_infinite)
            found->left = max_int(found->left, 3 + seen.any_negative_infinite - found->right);
    }
    return seen.layout;
}

/* ---- Writing an element: into `text`, which holds ELEMENT characters ---- */

#define ELEMENT 48

/* d.ddde+xx */
static void write_scientific(char *text, const decimal_digits *decimal, int left, int places,
                             const char *point, int exponent) {
    int at =
        sprintf(text, "%*s%c%s", left - 1, decimal->negative ? "-" : "", decimal->digits[0], point);
    for (int i = 1; i <= places; i++)
        text[at++] = i < decimal->count ? decimal->digits[i] : '0';
    sprintf(text + at, "e%c%0*d", decimal->exponent < 0 ? '-' : '+', exponent,
            abs(decimal->exponent));
}

/* ddd.ddd, with `pad` in place of zeros at the end. Digit i of the decimal is at 10^power. */
static void write_fixed(char *text, const decimal_digits *decimal, int left, int places, char pad) {
    int whole = max_int(decimal->exponent, 0) + 1;
    int at = sprintf(text, "%*s", left - whole, decimal->negative ? "-" : "");
    for (int power = whole - 1; power >= -places; power--) {
        const int i = decimal->exponent - power;
        text[at] = i > 0 && power < 0 ? pad : '0';
        if (i >= 0 && i < decimal->count)
            text[at] = decimal->digits[i];
        at++;
        if (power == 0)
            text[at++] = '.';
    }
    text[at] = '\0';
}

static void write_element(char *text, const layout *layout, const char *address) {
    if (layout->dtype == WG_BOOL) {
        sprintf(text, "%*s", layout->left, *(const uint8_t *)address ? "True" : "False");
        return;
    }
    const double value = wg__element(layout->dtype, address);
    if (!wg_dtype_is_float(layout->dtype)) {
        sprintf(text, "%*" PRId64, layout->left,
                layout->dtype == WG_I64 ? *(const int64_t *)address : (int64_t)value);
        return;
    }
    decimal_digits decimal;
    if (!isfinite(value)) {
        sprintf(text, "%*s", layout->left + layout->right,
                isnan(value) ? "nan"
                : value < 0  ? "-inf"
                             : "inf");
    } else if (layout->scientific) {
        decimal = decimal_between(value, layout->dtype, layout->places + 1, PLACES + 1);
        write_scientific(text, &decimal, layout->left, layout->places, ".", layout->exponent);
    } else {
        decimal = fixed_decimal(value, layout->dtype);
        write_fixed(text, &decimal, layout->left, layout->places, ' ');
    }
}

/* ---- Writing the whole ---- */

typedef struct printer {
    view view;
    layout layout;
    sink *out;
} printer;

/* Writes a word of a row, on a new line if it would cross the margin. */
static void append_word(printer *p, const char *word) {
    int ndim = p->view.spec->ndim;
    bool line_has_words = p->out->column > ndim;
    if (line_has_words && p->out->column + (int)strlen(word) > LINE_WIDTH - ndim)
        append_line_end(p->out, ndim);
    append(p->out, word);
}

static void append_separator(printer *p, int axis) {
    int inner = p->view.spec->ndim - 1 - axis;
    if (inner == 0)
        append(p->out, " ");
    for (int i = 0; i < inner; i++)
        append_line_end(p->out, axis + 1);
}

static void append_axis(printer *p, int axis, const char *address) {
    const view *x = &p->view;
    if (axis == x->spec->ndim) {
        char text[ELEMENT];
        write_element(text, &p->layout, address);
        append_word(p, text);
        return;
    }
    append(p->out, "[");
    for (int64_t i = 0, next; i < x->spec->shape[axis]; i = next) {
        next = next_shown(x, axis, i);
        append_axis(p, axis + 1, address + i * x->strides[axis] * x->item);
        if (next != i + 1) {
            append_separator(p, axis);
            append_word(p, "...");
        }
        if (next < x->spec->shape[axis])
            append_separator(p, axis);
    }
    append(p->out, "]");
}

static void append_tensor(sink *out, const wg_tensor *x) {
    int64_t count = wg_tensor_count(x);
    const char *address = wg_tensor_data(x);
    view view = {&x->spec, x->strides, (int64_t)wg_dtype_size(x->spec.dtype), count > THRESHOLD};
    if (count == 0) {
        append(out, "[]");
    } else if (x->spec.ndim == 0) {
        /* A scalar has no columns and is written with all of its digits: 0.3333333333333333, 100.0,
         * 1e-05. */
        char text[ELEMENT];
        const wg_dtype dtype = x->spec.dtype;
        const double value = wg_dtype_is_float(dtype) ? wg__element(dtype, address) : NAN;
        decimal_digits decimal = {0};
        if (isfinite(value))
            decimal = shortest_decimal(value, dtype);
        if (!isfinite(value))
            write_element(text, &(layout){.dtype = dtype}, address);
        else if (value != 0 && (fabs(value) < 1e-4 || fabs(value) >= 1e16))
            write_scientific(text, &decimal, decimal.negative + 1, decimal.count - 1,
                             decimal.count > 1 ? "." : "", 2);
        else
            write_fixed(text, &decimal, decimal.negative + max_int(decimal.exponent, 0) + 1,
                        max_int(decimal.count - 1 - decimal.exponent, 1), '0');
        append(out, text);
    } else {
        printer p = {view, find_layout(&view, address), out};
        append_axis(&p, 0, address);
    }
}

int wg_print(FILE *stream, const wg_tensor *x) {
    if (!x || wg__check_memory(x, "print") < 0)
        return -1;
    sink out = {.stream = stream};
    append_tensor(&out, x);
    append_line_end(&out, 0);
    if (out.refused)
        return wg_fail(WG_ERROR_IO, "print", "the stream takes no more");
    return 0;
}

int64_t wg_format(char *buffer, size_t size, const wg_tensor *x) {
    if (!x || wg__check_memory(x, "print") < 0)
        return -1;
    sink out = {.buffer = buffer, .size = size};
    append_tensor(&out, x);
    if (size > 0)
        buffer[out.length < (int64_t)size ? out.length : (int64_t)size - 1] = '\0';
    return out.length;
}
