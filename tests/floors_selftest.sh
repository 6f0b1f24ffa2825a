#!/bin/sh
# Tests tests/floors.sh: it has to pass a small tree of four folders, and to fail the same tree with each
# of several faults. Prints TAP, one result a fault.
. "$(dirname "$0")/cli/setup.sh"

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
    : >tensor/tensor.h
}

# found FAULT: whether floors.sh prints this fault, or none, and no other.
found() {
    for file in base/error tensor/tensor models/objects cli/main; do
        ${CC:-cc} -I. -c "$file.c" -o "build/$file.o" 2>"$file.errors" || cat "$file.errors"
    done
    sh "$source/tests/floors.sh" "$work" "$work/build" >out 2>&1
    test $? = "$(test -z "$1"; echo $?)" && test "$(grep '^# ' out | sort)" = "${1:+# $1}"
}

# fault TITLE FILE TEXT FAULT: with this text (printf) in addition.
fault() {
    plant
    # shellcheck disable=SC2059
    printf "$3\n" >>"$2"
    check "$1" found "$4"
}

plant
check 'a tree without faults passes' found ''
fault 'an include of a floor above is found' base/error.h '#include "../tensor/tensor.h"' \
    'base/error.h:2:#include "../tensor/tensor.h"'
fault 'an include of the umbrella below the command is found' tensor/tensor.h \
    '#include <wengert/wengert.h>' 'tensor/tensor.h:1:#include <wengert/wengert.h>'
fault 'a call of a floor above, and with it a circle of calls, is found' base/error.c \
    'int wg_add(void); int wg__up(void) { return wg_add(); }' \
    'base/error.o uses wg_add, which tensor/ defines'
fault 'the name of a model in a text is found' tensor/tensor.c \
    'int wg_load(const char *kind) { return kind == "bert"; }' \
    'tensor/tensor.c:3: int wg_load(const char *kind) { return kind == "bert"; }'
fault 'the name of a model in an identifier is found, in a comment it may be' cli/main.c \
    '/* of\n * wg_bert_new */ int wg__use_bert;' 'cli/main.c:3:  * wg_bert_new */ int wg__use_bert;'
fault 'an external name of two files is found' cli/main.c 'int wg_add(void) { return 2; }' \
    'wg_add is defined in tensor/tensor.o and cli/main.o'
fault 'an external name of the library without its prefix is found' tensor/tensor.c \
    'int helper(void) { return 2; }' \
    'tensor/tensor.o defines helper, which does not begin with wg_'
fault 'a struct of two files is found' models/objects.c 'struct wg_bert { int height; };' \
    'tag wg_bert is defined in models/bert.h and models/objects.c'
fault 'a line of a drawing that became prose is found' base/error.h \
    '/* Boxes:\n *\n *     +---+   a box\n *     |   |\n * tail of a line +---+\n */' \
    'base/error.h:6:  * tail of a line +---+'
fault 'a line of prose in the midst of a drawing is found' base/error.h \
    '/* Parts:\n *\n *     a --> b -->\n * c\n *     d --> e\n */' 'base/error.h:5:  * c'
finish
