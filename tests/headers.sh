#!/bin/sh
# Checks the installed headers, which make lists in $PUBLIC_HEADERS: each compiles on its own in plain
# C11, wengert.h includes all of them and no other, and a C++ program that includes wengert.h links
# with the library and runs. Prints TAP, one result a header.
. "$(dirname "$0")/cli/setup.sh"
mkdir include
ln -s "$source" include/wengert

compile() {
    ${CC:-cc} -std=c11 -Wall -Wextra -pedantic -Werror -Iinclude "$@" use.c 2>err
}

# Every header that the compiler reads for wengert.h, as paths from the root.
echo '#include <wengert/wengert.h>' >use.c
brought=$(compile -M | sed 's/[ \\]/\n/g' | sed -n "s|^include/wengert/||p" |
    while read -r header; do
        realpath --relative-to="$source" "$source/$header"
    done)

# shellcheck disable=SC2086
set -- $PUBLIC_HEADERS
for header in "$@"; do
    printf '#include <wengert/%s>\nint unit;\n' "$header" >use.c
    check "$header compiles on its own" compile -fsyntax-only
    check "$header is included by wengert.h" eval 'echo "$brought" | grep -qx "$header"'
done
echo "$brought" | grep -vxF "$(printf '%s\n' "$@")" >out
check 'wengert.h includes headers of the list in Makefile.am only' test ! -s out

# A program in C++. Its sanitizers are the library's.
what="a C++ program includes wengert.h, links and runs"
sanitizers=$(sed -n 's/^CFLAGS = .*\(-fsanitize=[a-z,]*\).*/\1/p' "$build/Makefile")
cat >use.cc <<'END'
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
runs_in_cxx() {
    # shellcheck disable=SC2086
    "${CXX:-g++}" -std=c++17 -Wall -Wextra -pedantic -Werror $sanitizers -Iinclude use.cc -o use \
        -L"$build/.libs" -lwengert -Wl,-rpath,"$build/.libs" 2>err && ./use 2>err
}
if command -v "${CXX:-g++}" >/dev/null; then
    check "$what" runs_in_cxx
else
    skip "$what" "there is no ${CXX:-g++}"
fi
finish
