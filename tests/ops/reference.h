/* Holds ops against PyTorch and NumPy: values, dtypes, shapes and gradients.
 *
 *     tests/fixtures/ops/FAMILY.py  ->  tests/fixtures/ops/FAMILY.json      by a maintainer, once
 *                                              |
 *     tests/ops/reference_*.c:  a table from the names of the family's ops to their calls,
 *                               and one line
 *
 * A case of the program is an op; its failures name the line of the JSON file. */
#ifndef WG_TESTS_REFERENCE_H
#define WG_TESTS_REFERENCE_H

#include "tests/support/testing.h"

#include "tensor/op.h"

struct json_t;

/* A call of an op: its operands as tensors, and the other arguments by name. */
typedef struct reference_case {
    int input_count;
    wg_tensor *inputs[WG_MAX_INPUTS]; /* NULL for an optional operand that is absent */
    const struct json_t *json;
} reference_case;

/* How to call an op: one of the four members is set. */
typedef struct reference_op {
    const char *op;
    wg_tensor *(*unary)(wg_tensor *x);
    wg_tensor *(*binary)(wg_tensor *a, wg_tensor *b);

    /* For an op with arguments or with other numbers of operands; `in` is c->inputs. */
    wg_tensor *(*one)(const reference_case *c, wg_tensor *const *in);

    /* For an op with several outputs: 0, or -1 after an error. */
    int (*call)(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs);
} reference_op;

/* Adds the suite reference_FAMILY, of all cases of tests/fixtures/ops/FAMILY.json and one test for
 * each op. Outputs and gradients have to agree within the tolerances of the case; where PyTorch
 * gives no gradient, it has to be zero. An op that the table or the file lacks fails, too. */
#define add_reference_suite(family, table)                                                         \
    (add_reference_suite)("reference_" family, "ops/" family ".json", WG_COUNT(table), table)
void(add_reference_suite)(const char *name, const char *path, size_t count,
                          const reference_op *table);

/* ---- The arguments of a case. One that is not there fails the test, except where a default is
 * named. ---- */

int64_t reference_integer(const reference_case *c, const char *name);
double reference_number(const reference_case *c, const char *name);
const char *reference_text(const reference_case *c, const char *name);
wg_dtype reference_dtype(const reference_case *c, const char *name);

/* False if it is missing. */
bool reference_flag(const reference_case *c, const char *name);

/* Writes the list into `out`, at most REFERENCE_LIST numbers; returns its length, 0 if it is
 * missing. */
#define REFERENCE_LIST 32
int reference_integers(const reference_case *c, const char *name, int64_t *out);

#endif
