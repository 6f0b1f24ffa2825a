/* Ops against PyTorch and NumPy, by JSON files: see reference.h. */
#include "tests/ops/reference.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "tensor/ops.h"

/* A file of cases and the table of their ops. */
typedef struct reference_file {
    const char *file;
    size_t op_count;
    const reference_op *table;
    int first, name_count; /* the number of its first op, and of ops in the table or the file */
    char **names;
} reference_file;

/* Check passes a test one number: it counts the ops of all files. */
static reference_file files[32];
static int file_count;

/* The file whose op is being tested. */
static const reference_file *run;

static const reference_file *file_of(int number) {
    const reference_file *last = &files[file_count - 1];
    while (number < last->first)
        last--;
    return last;
}

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
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        if (strcmp(wg_dtype_name((wg_dtype)dtype), json_string_value(value)) == 0)
            return (wg_dtype)dtype;
    ck_abort_msg("there is no dtype %s", json_string_value(value));
    return WG_F32;
}

static int list_of(const json_t *value, int most, int64_t *out) {
    const int count = (int)json_array_size(value);
    ck_assert_int_le(count, most);
    for (int i = 0; i < count; i++)
        out[i] = integer_of(json_array_get(value, (size_t)i));
    return count;
}

int64_t reference_integer(const reference_case *c, const char *name) {
    return integer_of(need(c, name));
}

double reference_number(const reference_case *c, const char *name) {
    return number_of(need(c, name));
}

const char *reference_text(const reference_case *c, const char *name) {
    return json_string_value(need(c, name));
}

wg_dtype reference_dtype(const reference_case *c, const char *name) {
    return dtype_of(need(c, name));
}

bool reference_flag(const reference_case *c, const char *name) {
    return json_is_true(find(c, name));
}

int reference_integers(const reference_case *c, const char *name, int64_t *out) {
    return list_of(find(c, name), REFERENCE_LIST, out);
}

/* ---- Tensors ---- */

static void write_element(wg_dtype dtype, void *data, size_t i, const json_t *value) {
    const float single = wg_dtype_is_float(dtype) ? (float)number_of(value) : 0;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    switch (dtype) {
    case WG_F32:
        ((float *)data)[i] = single;
        break;
    case WG_F64:
        ((double *)data)[i] = number_of(value);
        break;
    case WG_BF16:
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        break;
    case WG_I32:
        ((int32_t *)data)[i] = (int32_t)integer_of(value);
        break;
    case WG_I64:
        ((int64_t *)data)[i] = integer_of(value);
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)integer_of(value);
    }
}

static wg_tensor *tensor_of(wg_dtype dtype, int ndim, const int64_t *shape, const json_t *values) {
    wg_tensor *x = wg_empty(dtype, ndim, shape);
    ck_assert_int_eq(wg_tensor_count(x), (int64_t)json_array_size(values));
    for (size_t i = 0; i < json_array_size(values); i++)
        write_element(dtype, wg_tensor_data(x), i, json_array_get(values, i));
    return x;
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

/* The assertions take a file and a line: here the position of the case and the output or gradient,
 * and its number. */
typedef struct place {
    char text[200];
    int number;
} place;

static place place_of(size_t line, const char *what, int number) {
    place p = {.number = number};
    snprintf(p.text, sizeof p.text, "%s:%zu: %s", run->file, line, what);
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

static const reference_op *entry_of(const char *op) {
    for (size_t i = 0; i < run->op_count; i++)
        if (strcmp(run->table[i].op, op) == 0)
            return &run->table[i];
    return NULL;
}

static int call(const reference_op *op, const reference_case *c, wg_tensor **outputs) {
    wg_tensor *const *in = c->inputs;
    if (op->call)
        return op->call(c, in, outputs);
    ck_assert_int_eq(c->input_count, op->unary ? 1 : op->binary ? 2 : c->input_count);
    outputs[0] = op->unary    ? op->unary(in[0])
                 : op->binary ? op->binary(in[0], in[1])
                              : op->one(c, in);
    return outputs[0] ? 0 : -1;
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
    wg_tensor *from[REFERENCE_LIST], *weights[REFERENCE_LIST];
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

static void check_case(const reference_op *op, size_t line, const json_t *json) {
    reference_case c = {.json = json};
    wg_tensor *outputs[REFERENCE_LIST] = {NULL};
    const json_t *expected = json_object_get(json, "outputs"), *output;
    ck_assert_int_le((int)json_array_size(expected), REFERENCE_LIST);
    make_inputs(&c);
    const int status = call(op, &c, outputs);
    if (wg_error_pending())
        ck_abort_msg("%s:%zu: %s", run->file, line, wg_error_pending()->message);
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

/* ---- The test, once for each op ---- */

static const char *op_of(const json_t *json) {
    return json_string_value(json_object_get(json, "op"));
}

/* The cases of a file. Each test reads them anew: every case is a fork of this program, and a fork
 * takes the longer the more memory the program has. */
static json_t *read_cases(const char *path) {
    json_error_t error;
    json_t *root = json_load_file(fixture(path), 0, &error);
    if (!root) {
        printf("Bail out! %s:%d: %s\n", fixture(path), error.line, error.text);
        exit(EXIT_FAILURE);
    }
    json_t *cases = json_incref(json_object_get(root, "cases"));
    json_decref(root);
    return cases;
}

START_TEST(values_and_gradients_agree_with_pytorch) {
    run = file_of(_i);
    const char *name = run->names[_i - run->first];
    json_t *cases = read_cases(run->file);
    const reference_op *op = entry_of(name);
    ck_assert_msg(op != NULL, "%s has cases of %s, which the table does not know", run->file, name);
    int count = 0;
    size_t i;
    const json_t *json;
    json_array_foreach(cases, i, json) {
        if (strcmp(op_of(json), name) != 0)
            continue;
        wg_scope scope;
        wg_scope_begin(&scope);
        check_case(op, i + 2, json); /* the first line of the file is the bracket of the list */
        wg_scope_end(&scope, NULL);
        count++;
    }
    ck_assert_msg(count > 0, "%s has no case of %s", run->file, name);
    json_decref(cases);
}
END_TEST

static const char *name_at(int i) {
    const reference_file *file = file_of(i);
    return file->names[i - file->first];
}

static void add_name(reference_file *file, const char *name) {
    for (int i = 0; i < file->name_count; i++)
        if (strcmp(file->names[i], name) == 0)
            return;
    file->names[file->name_count++] = strdup(name);
}

void(add_reference_suite)(const char *name, const char *path, size_t count,
                          const reference_op *table) {
    const TTest *const tests[] = {values_and_gradients_agree_with_pytorch};
    json_t *cases = read_cases(path);
    assert(file_count < (int)WG_COUNT(files));
    const reference_file *before = file_count ? &files[file_count - 1] : NULL;
    reference_file *file = &files[file_count++];
    *file = (reference_file){.file = path,
                             .op_count = count,
                             .table = table,
                             .first = before ? before->first + before->name_count : 0};
    file->names = calloc(count + json_array_size(cases), sizeof *file->names);
    for (size_t i = 0; i < count; i++)
        add_name(file, table[i].op);
    for (size_t i = 0; i < json_array_size(cases); i++)
        add_name(file, op_of(json_array_get(cases, i)));
    json_decref(cases);
    add_suite_of_range(name, WG_COUNT(tests), tests, file->first, file->first + file->name_count,
                       name_at);
}
