#!/bin/sh
# Checks the symbols that the shared library exports: they are what the installed headers declare and no
# more, and have the version of the soname; but those of the command, wg__..., have one of their own. Prints TAP.
#
#   tests/symbols.sh       checks
#   tests/symbols.sh TAG   prints what the headers of that version declare and those of now do not: a program
#                          that was linked with it breaks (CONTRIBUTING.md)
#
# PUBLIC_HEADERS: the headers, as make names them.
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
. "$source/tests/cli/tap.sh"
library=$PWD/.libs/libwengert.so.0
declared() {
    awk -f "$source/tests/declared.awk" "$@" | cut -d ' ' -f 2 | LC_ALL=C sort -u
}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-symbols.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$source" || exit 1
# shellcheck disable=SC2086 # a list of names
declared ${PUBLIC_HEADERS:-*/*.h */*/*.h} >"$work/now"
cd "$work" || exit 1
if test -n "$1"; then
    git -C "$source" archive "$1" | tar -x && declared */*.h */*/*.h | LC_ALL=C comm -23 - now
    exit
fi
if ! test -e "$library" || ! command -v nm >/dev/null || ! command -v readelf >/dev/null; then
    skip "exported symbols" "there is no $library, nm or readelf here"
    finish
fi
exported() {
    nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }'
}
check "the soname is that of the symbols' version" \
    eval 'readelf -d "$library" | grep -q "SONAME.*libwengert\.so\.0]"'
check "every symbol begins with wg_ and has the version WENGERT_0, or is the command's" \
    eval '! exported | grep -Evq "^wg_[a-z0-9][a-z0-9_]*@@WENGERT_0$|^wg__[a-z0-9_]*@@WENGERT_PRIVATE$"'
agrees() {
    exported | sed -n 's/@@WENGERT_0$//p' | LC_ALL=C sort | LC_ALL=C comm -3 - now >out
    ! test -s out
}
check "the library exports what the installed headers declare and no more" agrees
finish
