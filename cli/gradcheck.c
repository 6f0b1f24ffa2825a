/* wengert gradcheck: the gradients of the registry's ops against central differences, in f64. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/gradcheck.h"
#include "cli/cli.h"
#include "cli/results.h"

typedef struct arguments {
    int order; /* 0: 2 for primitives, 1 for fused ops */
    bool json;
    int count; /* of ops that are named; 0: all */
    const wg_op **ops;
} arguments;

enum { KEY_ORDER = WG__KEY_OWN };

static const struct argp_option options[] = {
    {"order", KEY_ORDER, "N", 0,
     "1: gradients; 2: theirs too, of fused ops by their decomposition; if not given, 2 for "
     "primitives and 1 for fused ops",
     0},
    WG__OPTION_JSON,
    {0}};

static void add_op(arguments *a, const char *name, const struct argp_state *state) {
    const wg_op *op = wg_op_find(name);
    if (!op)
        argp_error(state, "there is no op '%s'; wengert gradcheck without one lists them", name);
    const wg_op **ops = realloc(a->ops, (size_t)(a->count + 1) * sizeof *ops);
    if (!ops)
        argp_failure(state, 1, 0, "no memory");
    a->ops = ops;
    a->ops[a->count++] = op;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_ORDER:
        a->order = (int)wg__cli_integer(state, "order", text, 1, 2);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        add_op(a, text, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- What is found of one op ---- */

typedef struct finding {
    const wg_op *op;
    int order; /* 0: it has no gradient */
    wg_gradcheck_report report;
} finding;

static const char *verdict_of(const finding *found) {
    if (!found->report.passed)
        return "failed";
    return found->order ? "passed" : "no gradient";
}

static finding check(const wg_op *op, int order) {
    finding found = {.op = op};
    if (op->differentiable)
        found.order = order ? order : op->vjp && op->decompose ? 1 : 2;
    wg_gradcheck_op(op, &(wg_gradcheck_options){.order = found.order}, &found.report);
    wg_error_clear(); /* the report has its message */
    return found;
}

/* ---- The table ---- */

static void print_head(void) {
    printf("%-18s %-6s %7s %8s %13s  %s\n", "op", "orders", "samples", "compared", "largest error",
           "verdict");
}

static void print_row(const finding *found) {
    const wg_gradcheck_report *report = &found->report;
    const char *const orders[] = {"-", "1", "1, 2"};
    char error[32] = "-";
    if (report->compared > 0)
        snprintf(error, sizeof error, "%.1e", report->largest_absolute_error);
    printf("%-18s %-6s %7d %8lld %13s  %s", found->op->name, orders[found->order], report->samples,
           (long long)report->compared, error, verdict_of(found));
    if (!report->passed)
        printf(": %s", report->message);
    else if (!found->order)
        printf(": %s", found->op->no_gradient);
    putchar('\n');
    fflush(stdout); /* checking takes seconds: rows appear as they are found */
}

/* ---- JSON ---- */

static json_t *row_of(const finding *found) {
    const wg_gradcheck_report *report = &found->report;
    json_t *orders = json_array();
    for (int order = 1; order <= found->order; order++)
        json_array_append_new(orders, json_integer(order));
    return json_pack("{s:s, s:o, s:i, s:I, s:o, s:o, s:s, s:s}", "op", found->op->name, "orders",
                     orders, "samples", report->samples, "compared", (json_int_t)report->compared,
                     "largest_error", wg__json_number(report->largest_absolute_error),
                     "share_of_tolerance", wg__json_number(report->largest_error), "verdict",
                     verdict_of(found), "message", report->message);
}

static int check_all(const arguments *a, json_t *rows) {
    int count = a->count ? a->count : wg_op_count(), failed = 0;
    if (!rows)
        print_head();
    for (int i = 0; i < count; i++) {
        finding found = check(a->count ? a->ops[i] : wg_op_at(i), a->order);
        failed += !found.report.passed;
        if (rows)
            json_array_append_new(rows, row_of(&found));
        else
            print_row(&found);
    }
    if (failed > 0)
        wg__cli_fail("%d of %d ops failed", failed, count);
    return failed;
}

int wg__verb_gradcheck(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "[OP...]",
        .doc = "Checks the gradients of ops, all of the library's or those named, on their "
               "samples: central differences in f64 against what backward gives. The largest "
               "error is the largest difference of the two.",
    };
    arguments a = {0};
    wg__cli_parse(&parser, argc, argv, &a);
    json_t *rows = a.json ? json_array() : NULL;
    int failed = check_all(&a, rows);
    if (rows)
        wg__print_json(json_pack("{s:o, s:i}", "ops", rows, "failed", failed));
    free(a.ops);
    return failed ? 1 : 0;
}
