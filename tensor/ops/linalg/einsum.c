/* Sums of products in Einstein's notation: "bqhd,bkhd->bhqk".
 *
 *     wg_einsum       the text into tokens, which is all that can be said without the operands
 *     read_equation   tokens and operands into labels and sizes (contraction.h)
 *     wg__contract    the products */
#include "tensor/ops/linalg/contraction.h"
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <string.h>

/* Tokens beside letters and the comma. */
enum { ELLIPSIS = '.', ARROW = '>' };

/* Room for any equation that WG_MAX_INPUTS operands and a result of WG_MAX_DIMS axes can have. */
enum { MOST_TOKENS = (WG_MAX_INPUTS + 1) * (WG_MAX_DIMS + 2) };

typedef struct einsum_options {
    char tokens[MOST_TOKENS + 1];
} einsum_options;

/* ---- Tokens ---- */

static bool is_letter(char token) {
    return ('A' <= token && token <= 'Z') || ('a' <= token && token <= 'z');
}

/* Reads one token; returns its length, 0 for none. */
static int token_at(const char *text, char *token) {
    *token = *text;
    if (is_letter(*text) || *text == ',')
        return 1;
    *token = *text == '-' ? ARROW : ELLIPSIS;
    return strncmp(text, "->", 2) == 0 ? 2 : strncmp(text, "...", 3) == 0 ? 3 : 0;
}

/* False, with ARGUMENT, for what is no equation whatever the operands are. */
static bool read_tokens(const char *text, einsum_options *options) {
    int count = 0;
    bool ellipsis = false, arrow = false; /* in this term; before it */
    *options = (einsum_options){{0}};
    for (const char *rest = text; *rest;) {
        if (*rest == ' ') {
            rest++;
            continue;
        }
        char token;
        const int length = token_at(rest, &token);
        const char *wrong = NULL;
        if (length == 0)
            wrong = "it takes letters, ',', '->' and '...'";
        else if (token == ELLIPSIS && ellipsis)
            wrong = "a term has at most one '...'";
        else if (arrow && (token == ',' || token == ARROW))
            wrong = "there is one result";
        else if (count == MOST_TOKENS)
            wrong = "it is longer than any that operands can have";
        if (wrong) {
            wg_fail(WG_ERROR_ARGUMENT, "einsum", "%s; see character %d of \"%.200s\"", wrong,
                    (int)(rest - text) + 1, text);
            return false;
        }
        ellipsis = token == ELLIPSIS || (ellipsis && is_letter(token));
        arrow = arrow || token == ARROW;
        options->tokens[count++] = token;
        rest += length;
    }
    return true;
}

/* ---- Labels: 0 to 51 are letters, in the order of ASCII, the others the axes of "...", of which
 * the last is always the same. ---- */

enum { LETTERS = 52 };

static int label_of(char letter) {
    return letter <= 'Z' ? letter - 'A' : letter - 'a' + 26;
}

static char letter_of(int label) {
    return (char)(label < 26 ? 'A' + label : 'a' + label - 26);
}

static const char *label_text(int label, char room[4]) {
    if (label >= LETTERS)
        return "'...'";
    memcpy(room, "' '", 4);
    room[1] = letter_of(label);
    return room;
}

/* A term, from its first token, and how many axes it names beside "...". */
typedef struct term {
    const char *tokens;
    int length, letters;
    bool ellipsis;
} term;

static term term_at(const char *tokens) {
    term t = {.tokens = tokens};
    for (; tokens[t.length] && tokens[t.length] != ',' && tokens[t.length] != ARROW; t.length++) {
        t.ellipsis |= tokens[t.length] == ELLIPSIS;
        t.letters += tokens[t.length] != ELLIPSIS;
    }
    return t;
}

/* The labels of a term in which "..." stands for so many axes. */
static int write_labels(const term *t, int ellipsis_ndim, int *labels) {
    int count = 0;
    for (int i = 0; i < t->length; i++)
        if (t->tokens[i] != ELLIPSIS)
            labels[count++] = label_of(t->tokens[i]);
        else
            for (int axis = WG_MAX_DIMS - ellipsis_ndim; axis < WG_MAX_DIMS; axis++)
                labels[count++] = LETTERS + axis;
    return count;
}

/* ---- The equation ---- */

typedef struct equation {
    wg__contraction contraction;
    int ellipsis_ndim;  /* of the operand for which it stands for most axes */
    int times[LETTERS]; /* that a letter is in terms of operands */
} equation;

static int set_size(const wg_call *call, equation *e, int operand, int axis) {
    const int label = e->contraction.operands[operand].labels[axis];
    const int64_t size = call->input_specs[operand].shape[axis];
    int64_t *known = &e->contraction.sizes[label];
    char room[4];
    for (int before = 0; before < axis; before++)
        if (e->contraction.operands[operand].labels[before] == label &&
            call->input_specs[operand].shape[before] != size)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "%s stands for sizes %lld and %lld in operand %d, which has no "
                               "such diagonal",
                               label_text(label, room),
                               (long long)call->input_specs[operand].shape[before], (long long)size,
                               operand);
    if (*known >= 0 && *known != 1 && size != 1 && *known != size)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "%s stands for size %lld in operand %d, and for %lld before; make them "
                           "equal, or one of them 1",
                           label_text(label, room), (long long)size, operand, (long long)*known);
    if (*known < 0 || *known == 1)
        *known = size;
    return 0;
}

static int read_operand(const wg_call *call, const term *t, int operand, equation *e) {
    const int ndim = call->input_specs[operand].ndim, rest = ndim - t->letters;
    if (rest < 0 || (rest > 0 && !t->ellipsis))
        return wg__op_fail(call, WG_ERROR_SHAPE, "operand %d has %d axes, its term has %d labels%s",
                           operand, ndim, t->letters,
                           rest < 0 ? "" : "; '...' stands for the rest");
    wg__labelled *x = &e->contraction.operands[operand];
    write_labels(t, rest, x->labels);
    if (rest > e->ellipsis_ndim)
        e->ellipsis_ndim = rest;
    for (int axis = 0; axis < ndim; axis++) {
        if (set_size(call, e, operand, axis) < 0)
            return -1;
        if (x->labels[axis] < LETTERS)
            e->times[x->labels[axis]]++;
    }
    return 0;
}

/* The labels after the arrow. */
static int read_output(const wg_call *call, const term *t, equation *e) {
    bool seen[LETTERS] = {false};
    for (int i = 0; i < t->length; i++) {
        if (t->tokens[i] == ELLIPSIS)
            continue;
        const int label = label_of(t->tokens[i]);
        if (e->times[label] == 0)
            return wg__op_fail(call, WG_ERROR_ARGUMENT, "the result has '%c', which no operand has",
                               t->tokens[i]);
        if (seen[label])
            return wg__op_fail(call, WG_ERROR_ARGUMENT, "the result has '%c' twice", t->tokens[i]);
        seen[label] = true;
    }
    if (!t->ellipsis && e->ellipsis_ndim > 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "'...' stands for %d axes, which the result lacks; label those that are "
                           "to be summed over",
                           e->ellipsis_ndim);
    return 0;
}

/* Without an arrow: "..." and the letters that come once. Returns a term of tokens in `room`. */
static term implied_output(const equation *e, char *room) {
    int count = 0;
    room[count++] = ELLIPSIS;
    for (int label = 0; label < LETTERS; label++)
        if (e->times[label] == 1)
            room[count++] = letter_of(label);
    room[count] = '\0';
    return term_at(room);
}

static int read_equation(const wg_call *call, equation *e) {
    const char *tokens = ((const einsum_options *)call->options)->tokens;
    int terms = 1;
    for (const char *at = tokens; *at && *at != ARROW; at++)
        terms += *at == ',';
    if (terms != call->input_count)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "the equation has terms for %d operands, not %d", terms,
                           call->input_count);
    e->contraction.count = terms;
    memset(e->contraction.sizes, -1, sizeof e->contraction.sizes);
    for (int i = 0; i < terms; i++) {
        const term t = term_at(tokens);
        if (read_operand(call, &t, i, e) < 0)
            return -1;
        tokens += t.length + (i + 1 < terms);
    }
    char room[LETTERS + 2];
    term output = *tokens == ARROW ? term_at(tokens + 1) : implied_output(e, room);
    if (*tokens == ARROW && read_output(call, &output, e) < 0)
        return -1;
    const int ndim = output.letters + (output.ellipsis ? e->ellipsis_ndim : 0);
    if (ndim > WG_MAX_DIMS)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the result has %d axes; there are at most %d",
                           ndim, WG_MAX_DIMS);
    e->contraction.output_ndim = write_labels(&output, e->ellipsis_ndim, e->contraction.output);
    return 0;
}

/* ---- einsum: y[output] = the sum over all other labels of the product of all operands. ---- */

static int einsum_infer(wg_call *call) {
    equation e = {0};
    int64_t shape[WG_MAX_DIMS];
    wg_dtype dtype = call->input_specs[0].dtype;
    if (read_equation(call, &e) < 0)
        return -1;
    for (int i = 0; i < e.contraction.output_ndim; i++)
        shape[i] = e.contraction.sizes[e.contraction.output[i]];
    for (int i = 1; i < call->input_count; i++)
        dtype = wg_dtype_promote(dtype, call->input_specs[i].dtype);
    if (dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "bools do not add up; cast an operand");
    return wg__spec_make(&call->output_specs[0], dtype, e.contraction.output_ndim, shape,
                         call->op->name);
}

static int einsum_decompose(wg_call *call) {
    equation e = {0};
    if (read_equation(call, &e) < 0)
        return -1;
    wg_tensor *operands[WG_MAX_INPUTS];
    memcpy(operands, call->inputs, (size_t)call->input_count * sizeof *operands);
    if (!wg__promote_all(call->input_count, operands))
        return -1;
    const wg_dtype dtype = operands[0]->spec.dtype;
    for (int i = 0; i < call->input_count; i++)
        e.contraction.operands[i].tensor = wg__widen(operands[i]);
    call->outputs[0] = wg_cast(wg__contract(call, &e.contraction), dtype);
    return call->outputs[0] ? 0 : -1;
}

static int einsum_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const struct {
        einsum_options options;
        int count;
        struct {
            int ndim;
            int64_t shape[4];
        } operands[4];
    } cases[] = {
        {{"ij,jk>ik"}, 2, {{2, {2, 3}}, {2, {3, 4}}}},
        {{"bqhd,bkhd>bhqk"}, 2, {{4, {2, 2, 2, 3}}, {4, {2, 3, 2, 3}}}},
        {{".ij,jk"}, 2, {{4, {2, 1, 2, 3}}, {2, {3, 2}}}},
        {{"iij>j"}, 1, {{3, {3, 3, 2}}}},
        {{"ii"}, 1, {{2, {3, 3}}}},
        {{"ij>ji"}, 1, {{2, {2, 3}}}},
        {{"i,j>ji"}, 2, {{1, {2}}, {1, {3}}}},
        {{"ij,ij,j>"}, 3, {{2, {2, 3}}, {2, {2, 3}}, {1, {1}}}},
        {{"ab,bc,cd,da>ca"}, 4, {{2, {2, 3}}, {2, {3, 2}}, {2, {2, 4}}, {2, {4, 2}}}},
        {{"b.i,.ji,>b.j"}, 3, {{3, {2, 1, 3}}, {3, {2, 2, 3}}, {0, {0}}}},
    };
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    sample->options = &cases[index].options;
    for (int i = 0; i < cases[index].count; i++)
        sample->inputs[i] = wg__sample_normal(generator, cases[index].operands[i].ndim,
                                              cases[index].operands[i].shape);
    return wg__sample_status(sample, cases[index].count);
}

/* 2^31 operations: the scores of attention, of heads that lie within the positions. */
static int einsum_bench(wg_generator *generator, wg_sample *sample) {
    static const einsum_options options = {"bqhd,bkhd>bhqk"};
    sample->options = &options;
    for (int i = 0; i < 2; i++)
        sample->inputs[i] = wg_rand(generator, WG_F32, 4, (int64_t[]){8, 512, 8, 64});
    return wg__sample_status(sample, 2);
}

/* Of the products, in the order that is chosen; of a single operand, an addition an element. */
static double einsum_flops(const wg_call *call) {
    equation e = {0};
    wg__labels operands[WG_MAX_INPUTS] = {0}, output = 0;
    wg__contraction_step steps[WG_MAX_INPUTS];
    if (call->input_count == 1 || read_equation(call, &e) < 0)
        return (double)wg__spec_count(&call->input_specs[0]);
    for (int i = 0; i < call->input_count; i++)
        for (int axis = 0; axis < call->input_specs[i].ndim; axis++)
            operands[i] |= (wg__labels)1 << e.contraction.operands[i].labels[axis];
    for (int i = 0; i < e.contraction.output_ndim; i++)
        output |= (wg__labels)1 << e.contraction.output[i];
    return 2 *
           wg__contraction_order(call->input_count, operands, output, e.contraction.sizes, steps);
}

static const wg_op einsum = {
    .name = "einsum",
    .doc = "y = the sum, over the labels that the result lacks, of the product of all operands: "
           "\"ij,jk->ik\" is a matrix product. In the order that costs least, by matrix products.",
    .min_inputs = 1,
    .max_inputs = WG_MAX_INPUTS,
    .output_count = 1,
    .options_size = sizeof(einsum_options),
    .differentiable = UINT32_MAX,
    .infer = einsum_infer,
    .decompose = einsum_decompose,
    .sample = einsum_sample,
    .bench = einsum_bench,
    .flops = einsum_flops,
};

wg_tensor *wg_einsum(const char *equation, int count, wg_tensor *const *operands) {
    einsum_options options;
    if (!equation)
        wg_fail(WG_ERROR_ARGUMENT, "einsum", "the equation is NULL");
    if (!equation || !read_tokens(equation, &options))
        return NULL;
    return wg_apply_one(&einsum, count, operands, &options);
}

static const wg_op *const ops[] = {&einsum};

const wg__op_family wg__family_einsum = {ops, sizeof ops / sizeof *ops};
