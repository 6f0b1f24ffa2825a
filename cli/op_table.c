/* The registry as a table in Markdown: see op_table.h. */
#include "cli/op_table.h"

#include <stdio.h>
#include <string.h>

#include "tensor/ops.h"

static const char *kind_of(const wg_op *op) {
    if (wg_op_is_composite(op))
        return "composite";
    if (op->vjp && op->decompose)
        return "fused";
    return op->is_view ? "view" : "primitive";
}

static const char *orders_of(const wg_op *op) {
    return !op->differentiable ? "none" : op->zero_gradient ? "any, zero" : "any";
}

static const char *forward_of(const wg_op *op) {
    if (!op->differentiable)
        return "no";
    return op->jvp || op->decompose ? "yes" : "by its vjp";
}

static void print_inputs(const wg_op *op) {
    if (op->min_inputs == op->max_inputs)
        printf("%d", op->min_inputs);
    else if (op->max_inputs == WG_MAX_INPUTS)
        printf("%d or more", op->min_inputs);
    else
        printf("%d to %d", op->min_inputs, op->max_inputs);
}

/* Text between bars: one line, bars escaped. */
static void print_cell(const char *text) {
    for (; *text; text++) {
        if (*text == '|')
            putchar('\\');
        putchar(*text == '\n' ? ' ' : *text);
    }
}

/* ---- dtypes ---- */

/* Whether the op runs on a sample in which inputs of the first one's dtype are of another. */
static bool runs_on(const wg_op *op, wg_sample *sample, wg_dtype dtype) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    if (sample->input_count == 0 || !sample->inputs[0])
        return false;
    wg_dtype first = wg_tensor_dtype(sample->inputs[0]);
    for (int i = 0; i < sample->input_count; i++)
        if (sample->inputs[i] && wg_tensor_dtype(sample->inputs[i]) == first)
            sample->inputs[i] = wg_cast(sample->inputs[i], dtype);
    bool runs = wg_apply(op, sample->input_count, sample->inputs, sample->options, outputs) == 0;
    wg_error_clear();
    return runs;
}

static bool takes(const wg_op *op, wg_dtype dtype) {
    bool taken = false;
    for (int k = 0, more = 1; more > 0 && !taken; k++) {
        wg_generator generator = {.seed = 1, .offset = (uint64_t)k << 16};
        wg_sample sample = {0};
        wg_scope scope;
        wg_scope_begin(&scope);
        more = op->sample(k, &generator, &sample);
        taken = more > 0 && runs_on(op, &sample, dtype);
        wg_scope_end(&scope, NULL);
    }
    return taken;
}

static void print_dtypes(const wg_op *op) {
    static const wg_dtype dtypes[] = {WG_F32, WG_F64, WG_BF16, WG_I32, WG_I64, WG_U8, WG_BOOL};
    const char *before = "";
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (takes(op, dtypes[i])) {
            printf("%s%s", before, wg_dtype_name(dtypes[i]));
            before = " ";
        }
}

/* ---- The table ---- */

static void print_op(const wg_op *op) {
    printf("| `%s` | %s | ", op->name, kind_of(op));
    print_inputs(op);
    printf(" | ");
    print_dtypes(op);
    printf(" | %s | %s | ", orders_of(op), forward_of(op));
    print_cell(op->doc);
    if (op->no_gradient || op->zero_gradient)
        printf("%s %s: ", op->doc[strlen(op->doc) - 1] == '.' ? "" : ".",
               op->no_gradient ? "No gradient" : "Its gradient is zero");
    if (op->no_gradient || op->zero_gradient)
        print_cell(op->no_gradient ? op->no_gradient : op->zero_gradient);
    printf(" |\n");
}

void wg__print_op_table(void) {
    bool recording = wg_set_grad_enabled(false);
    printf("| op | kind | inputs | dtypes | orders | forward mode | what |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < wg_op_count(); i++)
        print_op(wg_op_at(i));
    wg_set_grad_enabled(recording);
}
