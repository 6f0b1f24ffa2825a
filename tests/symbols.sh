#!/bin/sh
# Checks the symbols that the shared library exports: all begin with wg_ and have the version of the
# soname, and none of libwengert.symbols is gone, which would break programs that were linked with it.
# Prints TAP; with --write it rewrites the list, as after a change of the soname or before a release
# (`make symbols').
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
. "$source/tests/cli/tap.sh"
library=.libs/libwengert.so.0
if ! test -e "$library" || ! command -v nm >/dev/null || ! command -v readelf >/dev/null; then
    skip "exported symbols" "there is no $library, nm or readelf here"
    finish
fi
exported() {
    nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }'
}
if test "$1" = --write; then
    exported | sed 's/@.*//' | LC_ALL=C sort >"$source/libwengert.symbols"
    exit
fi
check "the soname is that of the symbols' version" \
    eval 'readelf -d "$library" | grep -q "SONAME.*libwengert\.so\.0]"'
check "every symbol begins with wg_ and has the version WENGERT_0" \
    eval '! exported | grep -vq "^wg_[a-z0-9_]*@@WENGERT_0$"'
gone=$(exported | sed 's/@.*//' | LC_ALL=C sort | LC_ALL=C comm -13 - "$source/libwengert.symbols" | paste -s -d ' ')
check "no symbol of libwengert.symbols is gone${gone:+: $gone}" test -z "$gone"
finish
