#!/bin/sh
# Checks docs/custom-op.md: installs the library into a temporary folder, compiles the page's op and model
# against it with pkg-config, runs the page's commands, applies its changes, and compares all output with the
# page, except for digits that depend on rounding. Prints TAP.
#
#   tests/custom_op.sh           checks the page
#   tests/custom_op.sh --write   writes the commands' output into the page
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
page=$source/docs/custom-op.md
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-custom-op.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
if ! test -e .libs/libwengert.so; then
    echo '1..0 # SKIP this build has no shared library'
    exit 0
fi
if ! ${MAKE:-make} install DESTDIR="$work/root" >"$work/install.log" 2>&1; then
    sed 's/^/# /' "$work/install.log"
    echo 'Bail out! the library cannot be installed'
    exit 1
fi
package=$(find "$work/root" -name wengert.pc)
PKG_CONFIG_PATH=$(dirname "$package")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
PATH=$(dirname "$(find "$work/root" -path '*/bin/wengert')"):$PATH
export PKG_CONFIG_PATH LD_LIBRARY_PATH PATH
# In a sanitized build the sanitizer's library would have to be loaded first, and cc does not do that.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS

# The page's blocks as files: 1.c, 2.console, 3.diff, 4.console, ...
cd "$work" || exit 1
awk '/^```./ { n++; file = n "." substr($0, 4); next } /^```$/ { file = ""; next }
     file { print > file }' "$page"

# Runs the commands of a block, and prints them with their output.
replay() {
    sed -n 's/^\$ //p' "$1" | while IFS= read -r command; do
        printf '$ %s\n' "$command"
        eval "$command" 2>&1
    done
}

# Rounds numbers to three digits, and replaces small ones by one text.
plain() {
    sed -e 's/[0-9.]*e-[0-9][0-9]/SMALL/g' -e 's/  *SMALL/ SMALL/g' \
        -e 's/\(\.[0-9][0-9][0-9]\)[0-9]*/\1/g' "$1"
}

count=$(find . -name '*.console' | wc -l)
test "$1" = --write || echo "1..$count"
number=0
name=
# The files are this script's, numbered.
# shellcheck disable=SC2010
for block in $(ls | grep -E '^[0-9]+\.(c|console|diff)$' | sort -n); do
    case $block in
    *.c) # the op, and then the model
        test -z "$name" && name=my_op || name=my_model
        cp "$block" original.c
        cp "$block" $name.c
        ;;
    *.diff)
        sed -n 's/^-//p' "$block" >old
        sed -n 's/^+//p' "$block" >new
        awk 'FILENAME == "old" { old = $0; next } FILENAME == "new" { new = $0; next }
             $0 == old { print new; changed = 1; next } { print } END { exit !changed }' \
            old new original.c >$name.c || { echo "Bail out! $block changes nothing"; exit 1; }
        sed -n "s/^\\$ \\(cc .*$name.*\\)/\\1/p" *.console >compile.sh
        sh compile.sh || exit 1
        ;;
    *)
        number=$((number + 1))
        replay "$block" >"$block.out"
        plain "$block" >wanted
        plain "$block.out" >found
        if test "$1" = --write; then
            continue
        elif diff wanted found >difference; then
            echo "ok $number - block $block prints what the page shows"
        else
            sed 's/^/# /' difference
            echo "not ok $number - block $block prints what the page shows"
        fi
        ;;
    esac
done
if test "$1" = --write; then
    awk '/^```./ { n++; block = n "." substr($0, 4); print
                   if (block ~ /console$/) { while ((getline line < (block ".out")) > 0) print line
                                             skip = 1 }
                   next }
         /^```$/ { skip = 0 }
         !skip' "$page" >page.md && cp page.md "$page"
fi
