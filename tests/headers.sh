#!/bin/sh
# Checks the installed headers, which make lists in $PUBLIC_HEADERS: each compiles on its own in plain
# C11, wengert.h includes all of them and no other, and a C++ program that includes wengert.h links
# with the library and runs. Prints TAP, one result a header.
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
echo "1..$(($# + 2))"
number=0
failed=0
for header in "$@"; do
    number=$((number + 1))
    printf '#include <wengert/%s>\nint unit;\n' "$header" >"$work/use.c"
    if ! compile -fsyntax-only 2>"$work/errors"; then
        sed 's/^/# /' "$work/errors"
        echo "not ok $number - $header compiles on its own"
        failed=1
    elif ! echo "$brought" | grep -qx "$header"; then
        echo "not ok $number - $header is included by wengert.h"
        failed=1
    else
        echo "ok $number - $header compiles on its own and is included by wengert.h"
    fi
done

unknown=$(echo "$brought" | grep -vxF "$(printf '%s\n' "$@")")
if test -n "$unknown"; then
    echo "$unknown" | sed 's/$/ is in no list of public headers in Makefile.am/; s/^/# /'
    echo "not ok $((number + 1)) - wengert.h includes installed headers only"
    failed=1
else
    echo "ok $((number + 1)) - wengert.h includes installed headers only"
fi

# A program in C++. Its sanitizers are the library's.
number=$(($# + 2))
what="a C++ program includes wengert.h, links and runs"
sanitizers=$(sed -n 's/^CFLAGS = .*\(-fsanitize=[a-z,]*\).*/\1/p' Makefile)
cat >"$work/use.cc" <<'END'
#include <wengert/wengert.h>

#include <cstring>

int main() {
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(2, 3)), *y = wg_full(WG_F32, WG_DIMS(2, 1), 5);
    wg_tensor *sum = wg_sum(wg_cat(WG_TENSORS(x, y), -1), WG_ALL, false);
    const bool same_version = std::strcmp(wg_version(), WG_VERSION) == 0;
    const bool right = wg_item(sum) == 16 && wg_tensor_size(wg_sum(x, WG_DIMS(-1), true), 1) == 1;
    wg_scope_clear_root();
    return same_version && right ? 0 : 1;
}
END
# shellcheck disable=SC2086
if ! command -v "${CXX:-g++}" >/dev/null; then
    echo "ok $number - $what # SKIP there is no ${CXX:-g++}"
elif "${CXX:-g++}" -std=c++17 -Wall -Wextra -pedantic -Werror $sanitizers -I"$work/include" \
    "$work/use.cc" -o "$work/use" -L.libs -lwengert -Wl,-rpath,"$PWD/.libs" 2>"$work/errors" &&
    "$work/use" 2>>"$work/errors"; then
    echo "ok $number - $what"
else
    sed 's/^/# /' "$work/errors"
    echo "not ok $number - $what"
    failed=1
fi
exit $failed
