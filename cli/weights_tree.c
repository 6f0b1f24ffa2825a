/* The tensors of a file as a tree: see output.h. */
#include "cli/output.h"

#include <string.h>

json_t *wg__tensor_row(const char *name, const char *type, int ndim, const int64_t *shape,
                       int64_t bytes) {
    json_t *sizes = json_array();
    int64_t numbers = 1;
    for (int i = 0; i < ndim; i++) {
        numbers *= shape[i];
        json_array_append_new(sizes, json_integer(shape[i]));
    }
    return json_pack("{s:s, s:s, s:o, s:I, s:I}", "name", name, "dtype", type, "shape", sizes,
                     "numbers", (json_int_t)numbers, "bytes", (json_int_t)bytes);
}

void wg__shape_write(FILE *stream, const json_t *shape) {
    for (size_t i = 0; i < json_array_size(shape); i++)
        fprintf(stream, "%s%lld", i ? ", " : "(",
                (long long)json_integer_value(json_array_get(shape, i)));
    fputs(json_array_size(shape) == 0 ? "()" : ")", stream);
}

static const char *name_of(const json_t *node) {
    return json_string_value(json_object_get(node, "name"));
}

double wg__json_number_at(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

/* Adds a row's numbers and bytes to the sums of a node. */
static void add_sizes(json_t *node, const json_t *row) {
    static const char *const keys[] = {"numbers", "bytes"};
    for (int i = 0; i < 2; i++) {
        const json_int_t sum = json_integer_value(json_object_get(node, keys[i])) +
                               json_integer_value(json_object_get(row, keys[i]));
        json_object_set_new(node, keys[i], json_integer(sum));
    }
}

static bool is_number(const char *text) {
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* Simplifies a tree: neighbours with numbers as names and equal children become one node, and
 * "encoder" with the single child "layer" becomes "encoder.layer". Layers keep their numbers apart.
 * Children come first, so that layers are compared when they are simple. */
static void fold(json_t *node, bool is_root) {
    json_t *children = json_object_get(node, "children");
    for (size_t i = 0; i < json_array_size(children); i++)
        fold(json_array_get(children, i), false);
    for (size_t i = 0; i + 1 < json_array_size(children);) {
        json_t *first = json_array_get(children, i), *next = json_array_get(children, i + 1);
        const json_t *below = json_object_get(first, "children");
        if (!is_number(name_of(first)) || !is_number(name_of(next)) || !below ||
            !json_equal(below, json_object_get(next, "children"))) {
            i++;
            continue;
        }
        const json_int_t before = json_integer_value(json_object_get(first, "alike"));
        json_object_set_new(first, "alike", json_integer(before ? before + 1 : 2));
        json_object_set(first, "last", json_object_get(next, "name"));
        json_array_remove(children, i + 1);
    }

    while (!is_root && json_array_size(children) == 1 && !json_object_get(node, "shape")) {
        json_t *child = json_array_get(children, 0), *name;
        if (is_number(name_of(child)) || is_number(name_of(node)) ||
            !(name = json_sprintf("%s.%s", name_of(node), name_of(child))))
            return;
        json_incref(child);
        json_object_del(node, "children");
        json_object_set_new(child, "name", name);
        json_object_update(node, child);
        json_decref(child);
        children = json_object_get(node, "children");
    }
}

json_t *wg__weights_tree(const json_t *rows) {
    json_t *root = json_pack("{s:s}", "name", "");
    for (size_t r = 0; r < json_array_size(rows); r++) {
        /* Add a row, with the nodes on its path that are missing. The last child is the likeliest
         * to match: most files list tensors in the order of the tree. */
        const json_t *row = json_array_get(rows, r);
        json_t *node = root;
        add_sizes(node, row);
        for (const char *part = name_of(row), *dot; node && part; part = dot ? dot + 1 : NULL) {
            dot = strchr(part, '.');
            const size_t length = dot ? (size_t)(dot - part) : strlen(part);
            json_t *children = json_object_get(node, "children"), *child = NULL;
            if (!children)
                json_object_set_new(node, "children", children = json_array());
            for (size_t i = json_array_size(children); i-- > 0 && !child;) {
                child = json_array_get(children, i);
                if (strlen(name_of(child)) != length || memcmp(name_of(child), part, length) != 0)
                    child = NULL;
            }
            if (!child) {
                child = json_pack("{s:s%}", "name", part, length);
                json_array_append_new(children, child);
            }
            node = child;
            add_sizes(node, row);
        }
        json_object_set(node, "dtype", json_object_get(row, "dtype"));
        json_object_set(node, "shape", json_object_get(row, "shape"));
    }
    fold(root, true);
    return root;
}

enum { NAME_WIDTH = 48 };

static void print_node(const json_t *node, int depth, const wg__style *style, FILE *stream) {
    const json_t *shape = json_object_get(node, "shape"),
                 *children = json_object_get(node, "children");
    const json_int_t count = json_integer_value(json_object_get(node, "alike"));
    const double numbers = wg__json_number_at(node, "numbers"),
                 bytes = wg__json_number_at(node, "bytes");
    char name[512];
    snprintf(name, sizeof name, "%s", name_of(node));
    if (count)
        snprintf(name, sizeof name, "%s to %s, each", name_of(node),
                 json_string_value(json_object_get(node, "last")));
    const int width = NAME_WIDTH - 2 * depth > 8 ? NAME_WIDTH - 2 * depth : 8;
    fprintf(stream, "  %*s%s%-*s%s %8s %10s", 2 * depth, "", shape ? "" : style->bold, width, name,
            style->plain, wg__count(numbers).text, wg__bytes(bytes).text);
    if (shape) {
        fprintf(stream, "  %s%s ", style->dim, json_string_value(json_object_get(node, "dtype")));
        wg__shape_write(stream, shape);
        fputs(style->plain, stream);
    }
    if (count)
        fprintf(stream, "  %sx %lld%s", style->accent, (long long)count, style->plain);
    fputc('\n', stream);
    for (size_t i = 0; i < json_array_size(children); i++)
        print_node(json_array_get(children, i), depth + 1, style, stream);
}

void wg__weights_tree_print(const json_t *root, FILE *stream) {
    const wg__style style = wg__style_of(stream);
    const json_t *children = json_object_get(root, "children");
    for (size_t i = 0; i < json_array_size(children); i++)
        print_node(json_array_get(children, i), 0, &style, stream);
}
