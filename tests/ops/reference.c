/* Checks ops against PyTorch and NumPy: values, dtypes, shapes and gradients.
 *
 *     tests/fixtures/ops/FAMILY.py  ->  tests/fixtures/ops/FAMILY.json      by a maintainer, once
 *     tests/ops/reference_ops.def:      how to call each op of the files
 *
 * A case of the program is an op; its failures name the line of the JSON file. Outputs and
 * gradients have to agree within the tolerances of the case; where PyTorch gives no gradient, it
 * has to be zero. */
#include "tests/support/tensors.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "tensor/distributions.h"
#include "tensor/op.h"
#include "tensor/ops.h"
#include "tensor/ops/support.h"

#define LONGEST 32 /* of lists of integers, and of outputs */

/* A call of an op: its operands as tensors, and the other arguments by name. */
typedef struct reference_case {
    int input_count;
    wg_tensor *inputs[WG_MAX_INPUTS]; /* NULL for an optional operand that is absent */
    const json_t *json;
} reference_case;

/* ---- Arguments ---- */

static const json_t *find(const reference_case *c, const char *name) {
    return json_object_get(json_object_get(c->json, "arguments"), name);
}

static const json_t *need(const reference_case *c, const char *name) {
    const json_t *value = find(c, name);
    if (!value)
        ck_abort_msg("the case has no argument %s", name);
    return value;
}

/* JSON has no infinities and no NaN: they are texts. */
static double number_of(const json_t *value) {
    if (json_is_string(value))
        return strtod(json_string_value(value), NULL);
    ck_assert(json_is_number(value));
    return json_number_value(value);
}

static int64_t integer_of(const json_t *value) {
    ck_assert(json_is_integer(value));
    return json_integer_value(value);
}

static wg_dtype dtype_of(const json_t *value) {
    return dtype_named(json_string_value(value));
}

/* Writes a list of integers, or a single one, and returns how many; 0 if it is missing. */
static int list_of(const json_t *value, int most, int64_t *out) {
    const int count = (int)json_array_size(value);
    ck_assert_int_le(count, most);
    if (json_is_integer(value))
        out[0] = integer_of(value);
    for (int i = 0; i < count; i++)
        out[i] = integer_of(json_array_get(value, (size_t)i));
    return json_is_integer(value) ? 1 : count;
}

/* The list of that name, zeros behind it; one of eight static buffers in turn. */
static const int64_t *values(const reference_case *c, const char *name) {
    static int64_t lists[8][LONGEST];
    static int next;
    int64_t *list = memset(lists[next++ % 8], 0, sizeof lists[0]);
    list_of(find(c, name), LONGEST, list);
    return list;
}

static int length(const reference_case *c, const char *name) {
    const json_t *value = find(c, name);
    return json_is_integer(value) ? 1 : (int)json_array_size(value);
}

/* Only flags and lists may be missing: they are false and of zeros. */
#define INTEGER(name) integer_of(need(c, #name))
#define NUMBER(name) number_of(need(c, #name))
#define TEXT(name) json_string_value(need(c, #name))
#define DTYPE(name) dtype_of(need(c, #name))
#define FLAG(name) json_is_true(find(c, #name))
#define VALUES(name) values(c, #name)
#define LIST(name) length(c, #name), values(c, #name)

/* ---- The table of ops ---- */

static wg_pad_mode pad_mode(const reference_case *c) {
    static const char *const modes[] = {"constant", "reflect", "replicate", "circular"};
    int mode = WG_PAD_CONSTANT;
    while (strcmp(modes[mode], TEXT(mode)) != 0)
        mode++;
    return (wg_pad_mode)mode;
}

static void copy_sizes(int64_t *to, const int64_t *from) {
    memcpy(to, from, 3 * sizeof *to);
}

static const wg_conv_options *conv_options(const reference_case *c) {
    static wg_conv_options options;
    copy_sizes(options.stride, VALUES(stride));
    copy_sizes(options.padding, VALUES(padding));
    copy_sizes(options.dilation, VALUES(dilation));
    copy_sizes(options.output_padding, VALUES(output_padding));
    options.groups = VALUES(groups)[0];
    options.same_padding = FLAG(same_padding);
    return &options;
}

static const wg_pool_options *pool_options(const reference_case *c) {
    static wg_pool_options options;
    copy_sizes(options.kernel, VALUES(kernel));
    copy_sizes(options.stride, VALUES(stride));
    copy_sizes(options.padding, VALUES(padding));
    copy_sizes(options.dilation, VALUES(dilation));
    options.divisor_override = VALUES(divisor)[0];
    options.ceil_mode = FLAG(ceil_mode);
    options.exclude_padding = FLAG(exclude_padding);
    return &options;
}

static int squared(int status, wg_tensor **y) {
    return status == 0 && (*y = wg_square(*y)) ? 0 : -1;
}

static wg_tensor *log_prob(const reference_case *c, wg_distribution_kind kind) {
    wg_distribution p = {.kind = kind};
    memcpy(p.parameters, c->inputs + 1, (size_t)(c->input_count - 1) * sizeof *c->inputs);
    return wg_distribution_log_prob(&p, c->inputs[0]);
}

static wg_tensor *divergence(const reference_case *c, wg_distribution_kind kind) {
    wg_distribution p = {.kind = kind}, q = {.kind = kind};
    const int count = c->input_count / 2;
    memcpy(p.parameters, c->inputs, (size_t)count * sizeof *c->inputs);
    memcpy(q.parameters, c->inputs + count, (size_t)count * sizeof *c->inputs);
    return wg_distribution_kl(&p, &q);
}

/* The slope of gamma samples, differentiated so often by concentration and sample. */
static wg_tensor *differentiated_slope(wg_tensor *a, wg_tensor *x, int64_t by_a, int64_t by_x) {
    const wg_backward_options options = {.create_graph = true};
    wg_tensor *inputs[] = {wg_clone(a), wg_clone(x)};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(wg_set_requires_grad(inputs[i], true), 0);
    wg_tensor *y = wg__gamma_slope(inputs[0], inputs[1]);
    for (int64_t i = 0; i < by_a + by_x && y; i++) {
        wg_tensor *sum = wg_sum(y, WG_ALL, false);
        ck_assert_int_eq(wg_grad(1, &sum, NULL, 1, &inputs[i < by_a ? 0 : 1], &options, &y), 0);
    }
    return wg_detach(y);
}

/* By the chain rule along x(a), in f64: s_a + s s_x, and s_aa + 2 s s_ax + s^2 s_xx + (s_a + s s_x)
 * s_x. */
static wg_tensor *gamma_quantile_derivative(wg_tensor *concentration, wg_tensor *sample,
                                            int64_t order) {
    wg_tensor *d[3][3], *a = wg_cast(concentration, WG_F64), *x = wg_cast(sample, WG_F64);
    for (int n = 0; n < 3; n++)
        for (int m = 0; n + m < 3; m++)
            d[n][m] = differentiated_slope(a, x, n, m);
    wg_tensor *second = wg_add(d[1][0], wg_mul(d[0][0], d[0][1]));
    wg_tensor *bend = wg_add(wg_mul_scalar(d[1][1], 2), wg_mul(d[0][0], d[0][2]));
    wg_tensor *third = wg_add(wg_add(d[2][0], wg_mul(d[0][0], bend)), wg_mul(second, d[0][1]));
    return wg_cast(order == 2 ? second : third, wg_tensor_dtype(concentration));
}

#define OF_CLASSES(class_weight)                                                                   \
    (&(wg_cross_entropy_options){.reduction = (wg_reduction)INTEGER(reduction),                    \
                                 .label_smoothing = NUMBER(label_smoothing),                       \
                                 .weight = class_weight})
#define ENTROPY(kind, ...) wg_distribution_entropy(&(wg_distribution){kind, {__VA_ARGS__}})

#define UNARY(op) ONE(op, wg_##op(x[0]))
#define BINARY(op) ONE(op, wg_##op(x[0], x[1]))
#define ALONG(op) ONE(op, wg_##op(x[0], INTEGER(axis)))
#define REDUCTION(op) ONE(op, wg_##op(x[0], LIST(axes), FLAG(keepdim)))
#define TRANSFORM(op)                                                                              \
    ONE(op, wg_##op(x[0], LIST(axis), VALUES(n), INTEGER(norm)))                                   \
    ONE(op##2, wg_##op(x[0], LIST(axes), VALUES(sizes), INTEGER(norm)))
#define DISTRIBUTION(name, kind, ...)                                                              \
    ONE(name##_log_prob, log_prob(c, kind))                                                        \
    ONE(name##_entropy, ENTROPY(kind, __VA_ARGS__))                                                \
    ONE(name##_kl, divergence(c, kind))
#define ONE(op, call) SEVERAL(op, (y[0] = call) ? 0 : -1)

#define SEVERAL(op, call)                                                                          \
    static int call_##op(const reference_case *c, wg_tensor *const *x, wg_tensor **y) {            \
        (void)c, (void)x;                                                                          \
        return call;                                                                               \
    }
#include "tests/ops/reference_ops.def"
#undef SEVERAL

#define SEVERAL(op, call) {#op, call_##op},
static const struct reference_op {
    const char *name;
    int (*call)(const reference_case *c, wg_tensor *const *x, wg_tensor **y);
} table[] = {
#include "tests/ops/reference_ops.def"
};

/* The number of the op in the table, -1 if it is not there. */
static int row_of(const char *op) {
    const size_t size = strlen(op);
    const bool spatial = size > 2 && strchr("123", op[size - 2]) && op[size - 1] == 'd';
    const size_t count = spatial ? size - 2 : size;
    for (size_t i = 0; i < WG_COUNT(table); i++)
        if (strlen(table[i].name) == count && strncmp(table[i].name, op, count) == 0)
            return (int)i;
    return -1;
}

/* ---- Tensors ---- */

/* The files have numbers that the dtype has, too. */
static wg_tensor *tensor_of(wg_dtype dtype, int ndim, const int64_t *shape, const json_t *values) {
    const bool is_float = wg_dtype_is_float(dtype);
    wg_tensor *x = wg_empty(is_float ? WG_F64 : WG_I64, ndim, shape);
    ck_assert_int_eq(wg_tensor_count(x), (int64_t)json_array_size(values));
    for (size_t i = 0; i < json_array_size(values); i++)
        if (is_float)
            ((double *)wg_tensor_data(x))[i] = number_of(json_array_get(values, i));
        else
            ((int64_t *)wg_tensor_data(x))[i] = integer_of(json_array_get(values, i));
    return wg_cast(x, dtype);
}

/* A tensor with the layout of its memory. */
static wg_tensor *in_memory(const json_t *json) {
    int64_t shape[WG_MAX_DIMS];
    const int ndim = list_of(json_object_get(json, "shape"), WG_MAX_DIMS, shape);
    return tensor_of(dtype_of(json_object_get(json, "dtype")), ndim, shape,
                     json_object_get(json, "values"));
}

/* The operand of a case in its layout; tests/fixtures/ops/reference.py lists the layouts. */
static wg_tensor *operand_of(const json_t *json) {
    if (json_is_null(json))
        return NULL;
    wg_tensor *x = in_memory(json);
    const char *layout = json_string_value(json_object_get(json, "layout"));
    const int64_t twice[WG_MAX_DIMS] = {2, -1, -1, -1, -1, -1, -1, -1};
    switch (layout ? layout[0] : 'c') {
    case 't':
        return wg_transpose(x, -1, -2);
    case 'r':
        return wg_slice(x, -1, WG_END, WG_END, -1);
    case 's':
        return wg_slice(x, -1, 1, WG_END, 2);
    case 'e':
        return wg_expand(x, wg_tensor_ndim(x), twice);
    default:
        return x;
    }
}

/* A tensor like x with these values. */
static wg_tensor *values_like(const wg_tensor *x, const json_t *values) {
    return tensor_of(wg_tensor_dtype(x), wg_tensor_ndim(x), wg_tensor_shape(x), values);
}

/* ---- One case ---- */

static const char *family; /* of the op that is being tested */

/* The assertions take a file and a line: here the position of the case and the output or gradient,
 * and its number. */
typedef struct place {
    char text[200];
    int number;
} place;

static place place_of(size_t line, const char *what, int number) {
    place p = {.number = number};
    snprintf(p.text, sizeof p.text, "%s.json:%zu: %s", family, line, what);
    return p;
}

/* Integers have to agree in every bit; assert_close compares doubles. */
static void check_tensor(const place *p, const wg_tensor *x, const wg_tensor *expected, double rtol,
                         double atol) {
    (assert_close)(p->text, p->number, x, expected, rtol, atol);
    if (wg_dtype_is_float(wg_tensor_dtype(x)))
        return;
    const size_t bytes = (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x));
    void *elements = malloc(bytes + 1);
    ck_assert_ptr_nonnull(elements);
    wg_to_array(x, elements);
    ck_assert_msg(memcmp(elements, wg_tensor_data(expected), bytes) == 0,
                  "%s:%d: integers differ beyond 2^53", p->text, p->number);
    free(elements);
}

static void make_inputs(reference_case *c) {
    const json_t *inputs = json_object_get(c->json, "inputs");
    const json_t *gradients = json_object_get(c->json, "gradients");
    c->input_count = (int)json_array_size(inputs);
    ck_assert_int_le(c->input_count, WG_MAX_INPUTS);
    for (int i = 0; i < c->input_count; i++) {
        c->inputs[i] = operand_of(json_array_get(inputs, (size_t)i));
        if (json_is_array(json_array_get(gradients, (size_t)i)))
            wg_set_requires_grad(c->inputs[i], true);
    }
    assert_no_error();
}

/* Outputs that require no gradient have a gradient of zero. */
static void check_gradients(size_t line, const reference_case *c, size_t output_count,
                            wg_tensor *const *outputs) {
    const json_t *cotangents = json_object_get(c->json, "cotangents");
    wg_tensor *from[LONGEST], *weights[LONGEST];
    int count = 0;
    for (size_t i = 0; i < output_count; i++) {
        const json_t *values = json_array_get(cotangents, i);
        if (!json_is_array(values) || !wg_requires_grad(outputs[i]))
            continue;
        from[count] = outputs[i];
        weights[count++] = values_like(outputs[i], values);
    }
    const double rtol = json_number_value(json_object_get(c->json, "gradient_rtol"));
    const double atol = json_number_value(json_object_get(c->json, "gradient_atol"));
    for (int i = 0; i < c->input_count; i++) {
        const json_t *values = json_array_get(json_object_get(c->json, "gradients"), (size_t)i);
        if (!json_is_array(values))
            continue;
        wg_tensor *gradient = wg_zeros_like(c->inputs[i]);
        if (count > 0)
            wg_grad(count, from, weights, 1, &c->inputs[i],
                    &(wg_backward_options){.retain_graph = true}, &gradient);
        const place p = place_of(line, "gradient", i);
        check_tensor(&p, gradient, values_like(c->inputs[i], values), rtol, atol);
    }
}

static void check_case(const struct reference_op *op, size_t line, const json_t *json) {
    reference_case c = {.json = json};
    wg_tensor *outputs[LONGEST] = {NULL};
    const json_t *expected = json_object_get(json, "outputs"), *output;
    ck_assert_int_le((int)json_array_size(expected), LONGEST);
    make_inputs(&c);
    const int status = op->call(&c, c.inputs, outputs);
    if (wg_error_pending())
        ck_abort_msg("%s.json:%zu: %s", family, line, wg_error_pending()->message);
    ck_assert_int_eq(status, 0);
    size_t i;
    json_array_foreach(expected, i, output) {
        const place p = place_of(line, "output", (int)i);
        check_tensor(&p, outputs[i], in_memory(output),
                     json_number_value(json_object_get(json, "rtol")),
                     json_number_value(json_object_get(json, "atol")));
    }
    if (json_object_get(json, "gradients"))
        check_gradients(line, &c, json_array_size(expected), outputs);
}

/* ---- The suites, with a case for each op of the files ---- */

static struct { const char *family, *op; } cases[400];
static int case_count;

static const char *op_of(const json_t *json) {
    return json_string_value(json_object_get(json, "op"));
}

/* Each test reads its cases anew: it is a fork of this program, and a fork takes the longer the
 * more memory the program has. */
static json_t *read_cases(const char *name) {
    char path[64];
    json_error_t error;
    snprintf(path, sizeof path, "ops/%s.json", name);
    json_t *root = json_load_file(fixture(path), 0, &error);
    if (!root) {
        printf("Bail out! %s:%d: %s\n", fixture(path), error.line, error.text);
        exit(EXIT_FAILURE);
    }
    json_t *list = json_incref(json_object_get(root, "cases"));
    json_decref(root);
    return list;
}

START_TEST(values_and_gradients_agree_with_pytorch) {
    const char *op = cases[_i].op;
    family = cases[_i].family;
    json_t *list = read_cases(family);
    const int row = row_of(op);
    ck_assert_msg(row >= 0, "%s.json has cases of %s, which the table lacks", family, op);
    size_t i;
    const json_t *json;
    json_array_foreach(list, i, json) {
        if (strcmp(op_of(json), op) != 0)
            continue;
        IN_SCOPE() {
            check_case(&table[row], i + 2, json); /* the first line is the bracket of the list */
        }
    }
    json_decref(list);
}
END_TEST

TEST(each_op_of_the_table_has_cases) {
    for (size_t row = 0; row < WG_COUNT(table); row++) {
        bool found = false;
        for (int i = 0; i < case_count; i++)
            found |= row_of(cases[i].op) == (int)row;
        ck_assert_msg(found, "no file has a case of %s", table[row].name);
    }
}

static const char *case_name(int i) {
    return cases[i].op;
}

/* Check keeps the pointer to the name of the suite. */
static void add_family(const char *name, char suite[64]) {
    const TTest *const tests[] = {values_and_gradients_agree_with_pytorch};
    const int first = case_count;
    json_t *list = read_cases(name), *json;
    size_t i;
    json_array_foreach(list, i, json) {
        bool known = false;
        for (int k = first; k < case_count; k++)
            known |= strcmp(cases[k].op, op_of(json)) == 0;
        assert(case_count < (int)WG_COUNT(cases));
        if (!known) {
            cases[case_count].family = name;
            cases[case_count++].op = strdup(op_of(json));
        }
    }
    json_decref(list);
    snprintf(suite, 64, "reference_%s", name);
    add_suite_of_range(suite, 1, tests, first, case_count, case_name);
}

SUITES {
    static const char *const families[] = {
        "activation",    "arrange",    "binary",    "cast",   "conv",        "create",
        "distributions", "fft",        "functions", "index",  "interpolate", "linear",
        "loss",          "matrices",   "pool",      "reduce", "rows",        "scan",
        "sort",          "statistics", "unary",     "view"};
    static char suites[WG_COUNT(families)][64];
    for (size_t i = 0; i < WG_COUNT(families); i++)
        add_family(families[i], suites[i]);
}
