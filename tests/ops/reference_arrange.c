/* Rearranging, diagonals, windows, padding and taking against PyTorch:
 * tests/fixtures/ops/arrange.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

#include <string.h>

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

SUITES {
    static const reference_op table[] = {
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
    add_reference_suite("reference_arrange", "ops/arrange.json", WG_COUNT(table), table);
}
