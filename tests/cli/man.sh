#!/bin/sh
# Checks the man pages: there is one for each verb, and each is the output of man/generate.sh for the
# verb's --help (`make man` rewrites them). Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-man.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
sh "$source/man/generate.sh" "$wengert" "$work" || exit 1

number=0
for page in "$work"/*.1 "$source"/man/*.1; do
    name=$(basename "$page")
    number=$((number + 1))
    if diff -u "$source/man/$name" "$work/$name" >"$work/diff" 2>&1; then
        echo "ok $number - $name says what --help says"
    else
        echo "not ok $number - $name says what --help says"
        sed 's/^/# /' "$work/diff"
    fi
done
echo "1..$number"
