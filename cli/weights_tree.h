/* The tensors of a file as the tree that their names spell: what `info` and `report` show.
 *
 *     {"name": "encoder.layer", "numbers": N, "bytes": N, "children": [
 *         {"name": "0", ..., "alike": 12, "last": "11"},        layers 0 to 11, of which 0 is shown
 *     {"name": "pooler.dense.weight", "numbers": N, "bytes": N, "dtype": "f32", "shape": [2, 2]} */
#ifndef WG_CLI_WEIGHTS_TREE_H
#define WG_CLI_WEIGHTS_TREE_H

#include <jansson.h>

#include "cli/units.h"

/* A tensor as lists of tensors have it: {"name", "dtype" (as stored), "shape", "numbers",
 * "bytes"}. */
json_t *wg__tensor_row(const char *name, const char *type, int ndim, const int64_t *shape,
                       int64_t bytes);

/* Writes a list of sizes as "(2, 3)". */
void wg__shape_write(FILE *stream, const json_t *shape);

/* The root, whose name is "", of a list of such rows. Parts with one child are joined by dots.
 * Neighbours whose names are numbers and that are alike in all but their names are one node, whose
 * "alike" and "last" say how many they are. */
json_t *wg__weights_tree(const json_t *rows);

/* Prints the children of the root, indented. */
void wg__weights_tree_print(const json_t *root, FILE *stream);

#endif
