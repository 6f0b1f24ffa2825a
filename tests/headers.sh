#!/bin/sh
# Holds the installed headers, which make names in $PUBLIC_HEADERS: each compiles on its own in
# plain C11, and wengert.h brings them all but easy.h, and no other. Prints TAP, one result a header.
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/include"
ln -s "$source" "$work/include/wengert"

compile() {
    ${CC:-cc} -std=c11 -Wall -Wextra -pedantic -Werror -I"$work/include" "$@" "$work/use.c"
}

# Every header that the compiler reads for wengert.h, as paths from the root.
echo '#include <wengert/wengert.h>' >"$work/use.c"
brought=$(compile -M | sed 's/[ \\]/\n/g' | sed -n "s|^$work/include/wengert/||p" |
    while read -r header; do
        realpath --relative-to="$source" "$source/$header"
    done)

# shellcheck disable=SC2086
set -- $PUBLIC_HEADERS
echo "1..$(($# + 1))"
number=0
failed=0
for header in "$@"; do
    number=$((number + 1))
    printf '#include <wengert/%s>\nint unit;\n' "$header" >"$work/use.c"
    if ! compile -fsyntax-only 2>"$work/errors"; then
        sed 's/^/# /' "$work/errors"
        echo "not ok $number - $header compiles on its own"
        failed=1
    elif test "$header" != tensor/easy.h && ! echo "$brought" | grep -qx "$header"; then
        echo "not ok $number - $header is brought by wengert.h"
        failed=1
    else
        echo "ok $number - $header compiles on its own and is brought by wengert.h"
    fi
done

unknown=$(echo "$brought" | grep -vxF "$(printf '%s\n' "$@")")
if test -n "$unknown"; then
    echo "$unknown" | sed 's/$/ is in no list of public headers in Makefile.am/; s/^/# /'
    echo "not ok $((number + 1)) - wengert.h brings installed headers only"
    failed=1
else
    echo "ok $((number + 1)) - wengert.h brings installed headers only"
fi
exit $failed
