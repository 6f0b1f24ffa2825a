#!/bin/sh
# wengert gradcheck: the table, its JSON, and wrong usage. Prints TAP.
. "$(dirname "$0")/setup.sh"
unset OMP_NUM_THREADS
verb=gradcheck

expect 'a primitive is checked to order 2' 0 'tanh' '^tanh  *1, 2 .*passed$'
expect 'a fused op is checked to order 1' 0 'gelu' '^gelu  *1  .*passed$'
expect 'a fused op is checked to order 2 when asked' 0 'gelu --order 2' '^gelu  *1, 2 .*passed$'
expect 'forward mode is checked when asked' 0 'tanh --forward' '^tanh  *1, 2   yes .*passed$'
expect 'random projections will do' 0 'mul --fast --order 1' '^mul  *1  .*passed$'
expect 'f32 is checked' 0 'mul --f32 --order 1' '^mul  *1  .*passed$'
expect 'an op without gradient says why' 0 'eq' '^eq .*no gradient: .'
expect 'several ops are checked' 0 'add mul' '^add .*passed$' '^mul .*passed$'
expect 'JSON tells the same' 0 'add --json --seed 3' '"op": "add"' '"verdict": "passed"' \
    '"diagnosis": "NONE"' '"seed": 3' '"failed": 0'
expect 'a model is checked by its name' 0 'gpt' '^gpt  *1  .*passed$'
expect 'layers are checked by their names' 0 'lstm conv2d --order 2' '^lstm  *1.*passed$' \
    '^lstm layer  *1, 2 .*passed$' '^conv2d layer  *1, 2 .*passed$'
expect 'all layers pass' 0 "$(sed -n 's/^    {"\([a-z0-9_]*\)", .*_sample},$/\1/p' \
    "$source/gradcheck/layers.c") --fast" '^mamba layer .*passed$'
expect 'a Jacobian is drawn on the terminal' 0 'cumsum --jacobian' 'block diagonal, 2 blocks of 8 x 8, lower tri' \
    '^    \.#\.#\.#\.#\.\.\.\.\.\.\.\.$'
expect 'the Jacobian of a layer is one by its inputs' 0 'linear --jacobian' \
    '^linear layer: d output 0 (2, 3, 3) f64 / d input 0 (2, 3, 4) f64: 18 x 24, 72 entries are not 0: block diagonal'
expect 'Jacobians are drawn into a file' 0 "flip --jacobian=flip.svg" 'flip: d output 0 (2, 3) f64'
expect 'a file that cannot be written is told' 1 'flip --jacobian=no/flip.svg' 'no/flip.svg: No such file or directory'
expect 'a file of another kind is wrong usage' 2 "flip --jacobian=flip.pdf" 'must end in .svg'
expect 'a Jacobian of no op is refused' 1 '--jacobian' 'wants the name of an op or a layer'
expect 'a Jacobian of an op without gradient is refused' 1 'eq --jacobian' 'eq has no gradient'
check 'the file has a rectangle for each entry' eval 'test "$(grep -c "fill=\"#c0392b\"" flip.svg)" = 6 &&
    grep -q "^</svg>$" flip.svg'
expect 'an op that is not there is wrong usage' 2 'nosuch' "no op, layer or model is named 'nosuch'"
expect 'a misspelt layer is suggested' 2 'multihead_attention' "did you mean 'multi_head_attention'"
expect 'a third order is wrong usage' 2 'add --order 3' 'order'
expect 'help is given' 0 '--help' 'WG_EXPORT_OPS'
expect 'a library that is not there is told' 1 './nosuch.so' 'nosuch.so cannot be read'
expect 'a file that is no library is told' 1 "./flip.svg" 'is no shared library that can be opened'

# Libraries of ops, compiled here against the headers of the tree.
library() {
    { printf '#include <wengert/wengert.h>\n' && cat; } >op.c
    ${CC:-cc} -shared -fPIC -I"$build/include" op.c -o "$1.so" -L"$build/.libs" $2
}
if test -e "$build/.libs/libwengert.so"; then
    echo 'int unit;' | library empty '-Wl,--no-as-needed -lwengert'
    expect 'a library that exports no ops is told' 1 "./empty.so" 'exports no ops'
    echo 'int unit;' | ${CC:-cc} -shared -fPIC -xc - -o alone.so
    expect 'a library that knows nothing of wengert exports no ops' 1 ./alone.so 'exports no ops'
    library other '-Wl,--no-as-needed -lwengert' <<'END'
extern WG_API const wg_op_library wengert_ops;
const wg_op_library wengert_ops = {.op_size = sizeof(wg_op) + 8};
END
    expect 'a library of another version is told' 1 "./other.so" 'another version'
    echo 'static const wg_module_example e = {"odd", 0}; extern WG_API const wg_module_library
        wengert_modules; const wg_module_library wengert_modules = {sizeof e, 1, 1, 0};' |
        library module '-Wl,--no-as-needed -lwengert'
    expect 'a library with modules of another version is told' 1 "./module.so" 'another version'
    echo 'static const wg_op op = {.name = "odd"}; WG_EXPORT_OPS(&op);' |
        library odd '-Wl,--no-as-needed -lwengert'
    expect 'an op without samples fails' 1 "./odd.so" '^odd .*failed' 'it has no samples'
fi
finish
