#!/bin/sh
# Tests tests/floors.sh: it has to pass a small tree of four folders, and to fail the same tree with each
# of several faults. Prints TAP, one result a fault.
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-floors.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# Writes the tree without faults, to which each test adds one. `build' has the object files.
plant() {
    rm -rf base tensor models cli build
    mkdir base tensor models cli build build/base build/tensor build/models build/cli
    echo 'int wg__error(void); /* of any caller, of bert too */' >base/error.h
    echo 'int wg__error(void) { return 0; }' >base/error.c
    printf '#include "base/error.h"\nint wg_add(void) { return wg__error(); }\n' >tensor/tensor.c
    printf '#include "models/bert.h"\nconst wg_model_type wg_bert_type = {\n    .name = "bert",\n};\n' \
        >models/bert.c
    echo 'typedef int wg_model_type; struct wg_bert { int width; };' >models/bert.h
    echo 'int wg_bert_new(void) { return 1; }' >models/objects.c
    echo 'int main(void) { return 0; }' >cli/main.c
}

number=0
failed=0

# check TITLE: prints a result; $faults are the comment lines that floors.sh has to print.
check() {
    number=$((number + 1))
    for file in base/error tensor/tensor models/objects cli/main; do
        ${CC:-cc} -I. -c "$file.c" -o "build/$file.o" 2>"$file.errors" || cat "$file.errors"
    done
    sh "$source/tests/floors.sh" "$work" "$work/build" >out 2>&1
    status=$?
    found=$(grep '^# ' out | sort)
    if test "$found" = "$faults" && test "$status" = "$(test -z "$faults"; echo $?)"; then
        echo "ok $number - $1"
    else
        sed 's/^/# /' out
        echo "not ok $number - $1"
        failed=1
    fi
}

plant
faults=
check 'a tree without faults passes'

plant
printf '#include "../tensor/tensor.h"\n' >>base/error.h
faults='# base/error.h:2:#include "../tensor/tensor.h"'
: >tensor/tensor.h
check 'an include of a floor above is found'

plant
echo '#include <wengert/wengert.h>' >>tensor/tensor.h
faults='# tensor/tensor.h:1:#include <wengert/wengert.h>'
check 'an include of the umbrella below the command is found'

plant
echo 'int wg_add(void); int wg__error(void) { return wg_add(); }' >base/error.c
faults='# base/error.o uses wg_add, which tensor/ defines'
check 'a call of a floor above, and with it a circle of calls, is found'

plant
echo 'int wg_load(const char *kind) { return kind == "bert"; }' >>tensor/tensor.c
faults='# tensor/tensor.c:3: int wg_load(const char *kind) { return kind == "bert"; }'
check 'the name of a model in a text is found'

plant
printf '/* of\n * wg_bert_new */ int wg__use_bert;\n' >>cli/main.c
faults='# cli/main.c:3:  * wg_bert_new */ int wg__use_bert;'
check 'the name of a model in an identifier is found, in a comment it may be'

plant
echo 'int wg_add(void) { return 2; }' >>cli/main.c
faults='# wg_add is defined in tensor/tensor.o and cli/main.o'
check 'an external name of two files is found'

plant
echo 'int helper(void) { return 2; }' >>tensor/tensor.c
faults='# tensor/tensor.o defines helper, which does not begin with wg_'
check 'an external name of the library without its prefix is found'

plant
echo 'struct wg_bert { int height; };' >>models/objects.c
faults='# tag wg_bert is defined in models/bert.h and models/objects.c'
check 'a struct of two files is found'

plant
printf '/* Boxes:\n *\n *     +---+   a box\n *     |   |\n * tail of a line +---+\n */\n' >>base/error.h
faults='# base/error.h:6:  * tail of a line +---+'
check 'a line of a drawing that became prose is found'

plant
printf '/* Parts:\n *\n *     a --> b -->\n * c\n *     d --> e\n */\n' >>base/error.h
faults='# base/error.h:5:  * c'
check 'a line of prose in the midst of a drawing is found'

echo "1..$number"
exit $failed
