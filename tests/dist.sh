#!/bin/sh
# Checks that `make dist' packs every file that git knows but those of git itself and of the checks on
# the server, and that the package of Debian has the version of the library. Prints TAP.
. "$(dirname "$0")/cli/setup.sh"
version=$(sed -n 's/.*define WG_VERSION "\(.*\)"/\1/p' "$source/base/api.h")
check "debian/changelog begins with the version of base/api.h, $version" \
    eval 'head -n 1 "$source/debian/changelog" | grep -q "^wengert ($version) "'
what="every file of the tree is in the distribution"
# Sources that distcheck has unpacked below a checkout are none.
if ! git -C "$source" ls-files --error-unmatch configure.ac >/dev/null 2>&1; then
    skip "$what" "this is no checkout of git"
    finish
fi
MAKEFLAGS='' MAKELEVEL='' make -C "$build" distdir distdir="$work/wengert" >out 2>err ||
    not_ok "make distdir succeeds"

all_are_there() {
    git -C "$source" ls-files -c -o --exclude-standard | grep -Ev '^(\.ci/|\.git)' | while read -r file; do
        test ! -e "$source/$file" || test -e "wengert/$file" || echo "missing: $file"
    done >out
    ! test -s out
}
check "$what" all_are_there
check "the pages that make wrote are in it" test -s wengert/man1/wengert.1
if test -e "$build/python.stamp"; then
    check "the Python that make wrote is in it" test -s wengert/python/wengert/_ops.py
else
    skip "the Python that make wrote is in it" "configured without Python"
fi
finish
