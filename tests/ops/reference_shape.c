/* Ops on shapes and indices against PyTorch and NumPy. The cases of a suite are in
 * tests/fixtures/ops/SUITE.json, which SUITE.py writes: view, arrange, index. */
#include "tensor/ops.h"

#include <string.h>

#include "tests/ops/reference.h"

/* ---- Views, joins and copies ---- */

static wg_tensor *reshape(const reference_case *c, wg_tensor *const *in) {
    int64_t shape[REFERENCE_LIST];
    const int ndim = reference_integers(c, "shape", shape);
    return wg_reshape(in[0], ndim, shape);
}

static wg_tensor *permute(const reference_case *c, wg_tensor *const *in) {
    int64_t order[REFERENCE_LIST];
    const int count = reference_integers(c, "order", order);
    return wg_permute(in[0], count, order);
}

static wg_tensor *transpose(const reference_case *c, wg_tensor *const *in) {
    return wg_transpose(in[0], (int)reference_integer(c, "axis_a"),
                        (int)reference_integer(c, "axis_b"));
}

static wg_tensor *expand(const reference_case *c, wg_tensor *const *in) {
    int64_t shape[REFERENCE_LIST];
    const int ndim = reference_integers(c, "shape", shape);
    return wg_expand(in[0], ndim, shape);
}

static wg_tensor *slice(const reference_case *c, wg_tensor *const *in) {
    return wg_slice(in[0], (int)reference_integer(c, "axis"), reference_integer(c, "start"),
                    reference_integer(c, "stop"), reference_integer(c, "step"));
}

static wg_tensor *select_index(const reference_case *c, wg_tensor *const *in) {
    return wg_select(in[0], (int)reference_integer(c, "axis"), reference_integer(c, "index"));
}

static wg_tensor *squeeze(const reference_case *c, wg_tensor *const *in) {
    return wg_squeeze(in[0], (int)reference_integer(c, "axis"));
}

static wg_tensor *unsqueeze(const reference_case *c, wg_tensor *const *in) {
    return wg_unsqueeze(in[0], (int)reference_integer(c, "axis"));
}

static int split(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    int64_t sizes[REFERENCE_LIST];
    const int count = reference_integers(c, "sizes", sizes);
    return wg_split(in[0], (int)reference_integer(c, "axis"), count, sizes, outputs);
}

static int chunk(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_chunk(in[0], (int)reference_integer(c, "axis"), (int)reference_integer(c, "count"),
                    outputs);
}

static wg_tensor *cat(const reference_case *c, wg_tensor *const *in) {
    return wg_cat(c->input_count, in, (int)reference_integer(c, "axis"));
}

static wg_tensor *stack(const reference_case *c, wg_tensor *const *in) {
    return wg_stack(c->input_count, in, (int)reference_integer(c, "axis"));
}

static wg_tensor *tril(const reference_case *c, wg_tensor *const *in) {
    return wg_tril(in[0], reference_integer(c, "diagonal"));
}

static wg_tensor *triu(const reference_case *c, wg_tensor *const *in) {
    return wg_triu(in[0], reference_integer(c, "diagonal"));
}

static const reference_op view_ops[] = {
    {"reshape", .one = reshape},
    {"permute", .one = permute},
    {"transpose", .one = transpose},
    {"expand", .one = expand},
    {"slice", .one = slice},
    {"select", .one = select_index},
    {"squeeze", .one = squeeze},
    {"unsqueeze", .one = unsqueeze},
    {"split", .call = split},
    {"chunk", .call = chunk},
    {"cat", .one = cat},
    {"stack", .one = stack},
    {"tril", .one = tril},
    {"triu", .one = triu},
    {"clone", .unary = wg_clone},
    {"contiguous", .unary = wg_contiguous},
};

/* ---- Rearranging, diagonals, windows, padding and taking ---- */

static int integer(const reference_case *c, const char *name) {
    return (int)reference_integer(c, name);
}

static wg_tensor *flatten(const reference_case *c, wg_tensor *const *in) {
    return wg_flatten(in[0], integer(c, "first"), integer(c, "last"));
}

static wg_tensor *unflatten(const reference_case *c, wg_tensor *const *in) {
    int64_t sizes[REFERENCE_LIST];
    const int count = reference_integers(c, "sizes", sizes);
    return wg_unflatten(in[0], integer(c, "axis"), count, sizes);
}

static wg_tensor *movedim(const reference_case *c, wg_tensor *const *in) {
    int64_t from[REFERENCE_LIST], to[REFERENCE_LIST];
    const int count = reference_integers(c, "from", from);
    reference_integers(c, "to", to);
    return wg_movedim(in[0], count, from, to);
}

static wg_tensor *narrow(const reference_case *c, wg_tensor *const *in) {
    return wg_narrow(in[0], integer(c, "axis"), reference_integer(c, "start"),
                     reference_integer(c, "length"));
}

static int meshgrid(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_meshgrid(c->input_count, in, outputs);
}

static wg_tensor *flip(const reference_case *c, wg_tensor *const *in) {
    int64_t axes[REFERENCE_LIST];
    const int count = reference_integers(c, "axes", axes);
    return wg_flip(in[0], count, axes);
}

static wg_tensor *roll(const reference_case *c, wg_tensor *const *in) {
    int64_t shifts[REFERENCE_LIST], axes[REFERENCE_LIST];
    const int count = reference_integers(c, "shifts", shifts);
    return wg_roll(in[0], count, shifts, reference_integers(c, "axes", axes) ? axes : NULL);
}

static wg_tensor *tile(const reference_case *c, wg_tensor *const *in) {
    int64_t repeats[REFERENCE_LIST];
    const int count = reference_integers(c, "repeats", repeats);
    return wg_tile(in[0], count, repeats);
}

static wg_tensor *repeat_interleave(const reference_case *c, wg_tensor *const *in) {
    return wg_repeat_interleave(in[0], reference_integer(c, "repeats"), integer(c, "axis"));
}

static wg_tensor *diagonal(const reference_case *c, wg_tensor *const *in) {
    return wg_diagonal(in[0], reference_integer(c, "offset"), integer(c, "axis_a"),
                       integer(c, "axis_b"));
}

static wg_tensor *diag_embed(const reference_case *c, wg_tensor *const *in) {
    return wg_diag_embed(in[0], reference_integer(c, "offset"), integer(c, "axis_a"),
                         integer(c, "axis_b"));
}

static wg_tensor *unfold(const reference_case *c, wg_tensor *const *in) {
    return wg_unfold(in[0], integer(c, "axis"), reference_integer(c, "size"),
                     reference_integer(c, "step"));
}

static wg_tensor *pad(const reference_case *c, wg_tensor *const *in) {
    static const char *const modes[] = {"constant", "reflect", "replicate", "circular"};
    int64_t widths[REFERENCE_LIST];
    const int count = reference_integers(c, "widths", widths);
    int mode = WG_PAD_CONSTANT;
    while (strcmp(modes[mode], reference_text(c, "mode")) != 0)
        mode++;
    return wg_pad(in[0], count / 2, widths, (wg_pad_mode)mode, reference_number(c, "value"));
}

static wg_tensor *take_along_axis(const reference_case *c, wg_tensor *const *in) {
    return wg_take_along_axis(in[0], integer(c, "axis"), in[1]);
}

static const reference_op arrange_ops[] = {
    {"flatten", .one = flatten},
    {"unflatten", .one = unflatten},
    {"movedim", .one = movedim},
    {"narrow", .one = narrow},
    {"meshgrid", .call = meshgrid},
    {"flip", .one = flip},
    {"roll", .one = roll},
    {"tile", .one = tile},
    {"repeat_interleave", .one = repeat_interleave},
    {"diagonal", .one = diagonal},
    {"diag_embed", .one = diag_embed},
    {"unfold", .one = unfold},
    {"pad", .one = pad},
    {"take_along_axis", .one = take_along_axis},
    {"take", .binary = wg_take},
};

/* ---- Masks and indices ---- */

static wg_tensor *where(const reference_case *c, wg_tensor *const *in) {
    (void)c;
    return wg_where(in[0], in[1], in[2]);
}

static wg_tensor *masked_fill(const reference_case *c, wg_tensor *const *in) {
    return wg_masked_fill(in[0], in[1], reference_number(c, "value"));
}

static wg_tensor *gather(const reference_case *c, wg_tensor *const *in) {
    return wg_gather(in[0], (int)reference_integer(c, "axis"), in[1]);
}

static wg_tensor *scatter_add(const reference_case *c, wg_tensor *const *in) {
    return wg_scatter_add(in[0], (int)reference_integer(c, "axis"), in[1], in[2]);
}

static wg_tensor *index_select(const reference_case *c, wg_tensor *const *in) {
    return wg_index_select(in[0], (int)reference_integer(c, "axis"), in[1]);
}

static wg_tensor *embedding(const reference_case *c, wg_tensor *const *in) {
    return wg_embedding_op(in[0], in[1], reference_integer(c, "padding_index"));
}

static wg_tensor *one_hot(const reference_case *c, wg_tensor *const *in) {
    return wg_one_hot(in[0], reference_integer(c, "classes"));
}

static wg_tensor *scatter(const reference_case *c, wg_tensor *const *in) {
    return wg_scatter(in[0], (int)reference_integer(c, "axis"), in[1], in[2]);
}

static wg_tensor *index_by(const reference_case *c, wg_tensor *const *in) {
    return wg_index(in[0], c->input_count - 1, in + 1);
}

static wg_tensor *index_put(const reference_case *c, wg_tensor *const *in) {
    return wg_index_put(in[0], c->input_count - 2, in + 2, in[1], reference_flag(c, "accumulate"));
}

static wg_tensor *masked_scatter(const reference_case *c, wg_tensor *const *in) {
    (void)c;
    return wg_masked_scatter(in[0], in[1], in[2]);
}

static wg_tensor *bincount(const reference_case *c, wg_tensor *const *in) {
    return wg_bincount(in[0], in[1], reference_integer(c, "min_length"));
}

static wg_tensor *searchsorted(const reference_case *c, wg_tensor *const *in) {
    return wg_searchsorted(in[0], in[1], reference_flag(c, "right"));
}

static const reference_op index_ops[] = {
    {"where", .one = where},
    {"masked_fill", .one = masked_fill},
    {"gather", .one = gather},
    {"scatter_add", .one = scatter_add},
    {"index_select", .one = index_select},
    {"embedding_op", .one = embedding},
    {"one_hot", .one = one_hot},
    {"scatter", .one = scatter},
    {"index", .one = index_by},
    {"index_put", .one = index_put},
    {"masked_select", .binary = wg_masked_select},
    {"masked_scatter", .one = masked_scatter},
    {"nonzero", .unary = wg_nonzero},
    {"bincount", .one = bincount},
    {"searchsorted", .one = searchsorted},
};

SUITES {
    add_reference_suite("view", view_ops);
    add_reference_suite("arrange", arrange_ops);
    add_reference_suite("index", index_ops);
}
