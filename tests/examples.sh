#!/bin/sh
# Runs the examples that make names in $EXAMPLES, in an empty folder: each has to succeed, and to
# print what stands in its file of tests/fixtures if it has one there. The program that README.md
# shows has to be an example, word for word. Prints TAP.
source=$(cd "$(dirname "$0")/.." && pwd)
build=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# shellcheck disable=SC2086
set -- $EXAMPLES
echo "1..$(($# + 1))"
number=0
failed=0
result() {
    number=$((number + 1))
    echo "$1 $number - $2"
    test "$1" = ok || failed=1
}

for example in "$@"; do
    expected=$source/tests/fixtures/$(basename "$example").out
    if ! "$build/$example" >out 2>err; then
        sed 's/^/# /' err
        result 'not ok' "$example runs"
    elif test -f "$expected" && ! diff "$expected" out >difference; then
        sed 's/^/# /' difference
        result 'not ok' "$example prints what it should"
    else
        result ok "$example runs"
    fi
done

# shellcheck disable=SC2016
sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$source/README.md" >shown
if diff "$source/examples/line.c" shown >difference; then
    result ok "README.md shows examples/line.c"
else
    sed 's/^/# /' difference
    result 'not ok' "README.md shows examples/line.c"
fi
exit $failed
