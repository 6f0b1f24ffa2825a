/* Every op of the elementwise, view, reduction and index families against NumPy and PyTorch:
 * values, broadcasting, dtypes, layouts in memory, corner values, no elements. The cases are
 * written by tests/fixtures/ops.py; a case of this program is an op. */
#include "tensor/ops.h"

#include <math.h>
#include <string.h>

#include "tests/testing.h"

/* What an operand is in memory, and the letter of the layout under which the op sees it. */
typedef struct op_operand {
    wg_dtype dtype;
    int ndim;
    int64_t shape[4];
    char layout;
    const double *values; /* NULL for no elements */
} op_operand;

typedef struct op_case {
    int input_count;
    op_operand inputs[3];
    int argument_count;
    double arguments[5];
    op_operand expected;
    double rtol, atol;
} op_case;

typedef struct op_cases {
    const char *op;
    const op_case *cases;
    size_t count;
} op_cases;

#include "tests/fixtures/ops.h"

/* ---- Operands ---- */

static wg_tensor *in_memory(const op_operand *operand) {
    wg_tensor *x = wg_empty(operand->dtype, operand->ndim, operand->shape);
    void *data = wg_tensor_data(x);
    for (int64_t i = 0; i < wg_tensor_count(x); i++) {
        const double value = operand->values[i];
        const float single = (float)value;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        switch (operand->dtype) {
        case WG_F32:
            ((float *)data)[i] = single;
            break;
        case WG_F64:
            ((double *)data)[i] = value;
            break;
        case WG_BF16:
            ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
            break;
        case WG_I32:
            ((int32_t *)data)[i] = (int32_t)value;
            break;
        case WG_I64:
            ((int64_t *)data)[i] = (int64_t)value;
            break;
        default:
            ((uint8_t *)data)[i] = (uint8_t)value;
        }
    }
    return x;
}

static wg_tensor *operand_of(const op_operand *operand) {
    wg_tensor *x = in_memory(operand);
    int64_t repeated[4] = {2, -1, -1, -1};
    switch (operand->layout) {
    case 't':
        return wg_transpose(x, -1, -2);
    case 'r':
        return wg_slice(x, -1, WG_END, WG_END, -1);
    case 's':
        return wg_slice(x, -1, 1, WG_END, 2);
    case 'e':
        return wg_expand(x, operand->ndim, repeated);
    default:
        return x;
    }
}

/* ---- Calls, by the name of the op ---- */

typedef wg_tensor *(*unary_function)(wg_tensor *);
typedef wg_tensor *(*binary_function)(wg_tensor *, wg_tensor *);

static const struct {
    const char *name;
    unary_function call;
} unary_functions[] = {
    {"neg", wg_neg},
    {"abs", wg_abs},
    {"sign", wg_sign},
    {"exp", wg_exp},
    {"log", wg_log},
    {"sqrt", wg_sqrt},
    {"rsqrt", wg_rsqrt},
    {"tanh", wg_tanh},
    {"sigmoid", wg_sigmoid},
    {"erf", wg_erf},
    {"relu", wg_relu},
    {"gelu", wg_gelu},
    {"clone", wg_clone},
    {"contiguous", wg_contiguous},
    {"gelu_tanh", wg_gelu_tanh},
    {"logical_not", wg_logical_not},
};

static const struct {
    const char *name;
    binary_function call;
} binary_functions[] = {
    {"add", wg_add},
    {"sub", wg_sub},
    {"mul", wg_mul},
    {"div", wg_div},
    {"pow", wg_pow},
    {"maximum", wg_maximum},
    {"minimum", wg_minimum},
    {"eq", wg_eq},
    {"ne", wg_ne},
    {"lt", wg_lt},
    {"le", wg_le},
    {"gt", wg_gt},
    {"ge", wg_ge},
    {"logical_and", wg_logical_and},
    {"logical_or", wg_logical_or},
    {"logical_xor", wg_logical_xor},
};

static wg_tensor *call_listed(const char *op, wg_tensor **in, int count) {
    for (size_t i = 0; i < WG_COUNT(unary_functions) && count == 1; i++)
        if (strcmp(op, unary_functions[i].name) == 0)
            return unary_functions[i].call(in[0]);
    for (size_t i = 0; i < WG_COUNT(binary_functions) && count == 2; i++)
        if (strcmp(op, binary_functions[i].name) == 0)
            return binary_functions[i].call(in[0], in[1]);
    return NULL;
}

/* A position among the arguments: 2^63, which no i64 holds, stands for WG_END. Arguments that are
 * no positions give any. */
static int64_t position(double argument) {
    return argument >= 0x1p63 ? WG_END : argument < -0x1p63 ? INT64_MIN : (int64_t)argument;
}

/* Calls an op that takes plain numbers: `a` are the arguments as they are, `n` as integers. */
static wg_tensor *call_with_arguments(const char *op, wg_tensor **in, const op_case *c) {
    const double *a = c->arguments;
    const int count = c->argument_count;
    int64_t n[5];
    for (int i = 0; i < 5; i++)
        n[i] = position(a[i]);
#define IS(name) (strcmp(op, name) == 0)
    if (IS("cast"))
        return wg_cast(in[0], (wg_dtype)n[0]);
    if (IS("clamp"))
        return wg_clamp(in[0], a[0], a[1]);
    if (IS("affine"))
        return wg_affine(in[0], a[0], a[1]);
    if (IS("add_scalar"))
        return wg_add_scalar(in[0], a[0]);
    if (IS("mul_scalar"))
        return wg_mul_scalar(in[0], a[0]);
    if (IS("pow_scalar"))
        return wg_pow_scalar(in[0], a[0]);
    if (IS("where"))
        return wg_where(in[0], in[1], in[2]);
    if (IS("masked_fill"))
        return wg_masked_fill(in[0], in[1], a[0]);
    if (IS("sum"))
        return wg_sum(in[0], count - 1, n + 1, n[0] != 0);
    if (IS("mean"))
        return wg_mean(in[0], count - 1, n + 1, n[0] != 0);
    if (IS("var"))
        return wg_var(in[0], count - 2, n + 2, a[0], n[1] != 0);
    if (IS("max"))
        return wg_max(in[0], count - 1, n + 1, n[0] != 0);
    if (IS("min"))
        return wg_min(in[0], count - 1, n + 1, n[0] != 0);
    if (IS("argmax"))
        return wg_argmax(in[0], (int)n[1], n[0] != 0);
    if (IS("sum_to"))
        return wg_sum_to(in[0], count, n);
    if (IS("reshape"))
        return wg_reshape(in[0], count, n);
    if (IS("permute"))
        return wg_permute(in[0], count, n);
    if (IS("transpose"))
        return wg_transpose(in[0], (int)n[0], (int)n[1]);
    if (IS("expand"))
        return wg_expand(in[0], count, n);
    if (IS("slice"))
        return wg_slice(in[0], (int)n[0], n[1], n[2], n[3]);
    if (IS("select"))
        return wg_select(in[0], (int)n[0], n[1]);
    if (IS("squeeze"))
        return wg_squeeze(in[0], (int)n[0]);
    if (IS("unsqueeze"))
        return wg_unsqueeze(in[0], (int)n[0]);
    if (IS("cat"))
        return wg_cat(c->input_count, in, (int)n[0]);
    if (IS("stack"))
        return wg_stack(c->input_count, in, (int)n[0]);
    if (IS("tril"))
        return wg_tril(in[0], n[0]);
    if (IS("triu"))
        return wg_triu(in[0], n[0]);
    if (IS("gather"))
        return wg_gather(in[0], (int)n[0], in[1]);
    if (IS("scatter_add"))
        return wg_scatter_add(in[0], (int)n[0], in[1], in[2]);
    if (IS("index_select"))
        return wg_index_select(in[0], (int)n[0], in[1]);
    if (IS("embedding_op"))
        return wg_embedding_op(in[0], in[1], n[0]);
    if (IS("one_hot"))
        return wg_one_hot(in[0], n[0]);
#undef IS
    ck_abort_msg("no call of %s", op);
    return NULL;
}

static wg_tensor *call(const char *op, const op_case *c) {
    wg_tensor *in[3] = {NULL};
    for (int i = 0; i < c->input_count; i++)
        in[i] = operand_of(&c->inputs[i]);
    assert_no_error();
    wg_tensor *y = call_listed(op, in, c->input_count);
    return y ? y : call_with_arguments(op, in, c);
}

/* ---- The test, once for each op ---- */

static const char *op_name(int i) {
    return all_cases[i].op;
}

START_TEST(values_agree_with_numpy_and_pytorch) {
    const op_cases *cases = &all_cases[_i];
    for (size_t k = 0; k < cases->count; k++) {
        const op_case *c = &cases->cases[k];
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *y = call(cases->op, c);
        if (wg_error_pending())
            ck_abort_msg("case %zu: %s", k, wg_error_pending()->message);
        (assert_close)(cases->op, (int)k, y, in_memory(&c->expected), c->rtol, c->atol);
        wg_scope_end(&scope, NULL);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {values_agree_with_numpy_and_pytorch};
    return wg_run_tests_of_each("ops_values", WG_COUNT(tests), tests, (int)WG_COUNT(all_cases),
                                op_name);
}
