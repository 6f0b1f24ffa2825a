#!/bin/sh
# Checks bindings/python: that its prototypes are those of the exported symbols, which takes no Python;
# with python3 and NumPy that it does what its own tests, the cases of tests/fixtures/ops and its example
# say; and with pycparser that the generated files are those of the headers. Prints TAP.
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=$PWD
. "$source/tests/cli/tap.sh"
package=$source/bindings/python
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-python.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# ---- Without Python ----

sed -n 's/^    "\(wg_[a-z0-9_]*\)": (.*/\1/p' "$package/wengert/_api.py" | LC_ALL=C sort >prototypes
# The records that headers declare as `extern' are data.
(cd "$source" && find . -name '*.h' ! -path './build*' ! -path './tests/*' -exec cat {} +) | tr '\n' ' ' |
    grep -oE '(WG_API extern|extern WG_API) [^;]*;' | grep -oE 'wg_[a-z0-9_]+' | sort -u >data
grep -v '^wg__' "$source/libwengert.symbols" | grep -vxFf data | LC_ALL=C sort >symbols
agrees() {
    LC_ALL=C comm -3 prototypes symbols >out
    ! test -s out
}
check "every exported function has a prototype in _api.py, and none is gone" agrees

# ---- With Python ----

python=
for candidate in "${PYTHON:-python3}" /usr/bin/python3; do
    if test -z "$python" && "$candidate" -c 'import numpy' 2>/dev/null; then
        python=$candidate
    fi
done
library=$build/.libs/libwengert.so.0
why=
test -n "$python" || why="there is no python3 with NumPy (Debian: python3-numpy)"
test -e "$library" || why="there is no $library"
nm -D "$library" 2>/dev/null | grep -q '__asan_\|__tsan_' && why="the library has a sanitizer"

export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$package" WENGERT_LIBRARY="$library"

python_check() {
    if test -n "$why"; then
        skip "$1" "$why"
    else
        check "$@"
    fi
}

quietly() {
    "$@" >out 2>err
}

up_to_date() {
    CC="${CC:-cc}" quietly "$python" "$package/generate.py" --check
}

lies_as_in_c() {
    "$python" "$package/tests/layout.py" >layout.c 2>err &&
        quietly ${CC:-cc} -std=c11 -fsyntax-only -I"$source" layout.c
}

learns() {
    quietly "$python" "$package/examples/spiral.py" && grep -q '^right: \(9[5-9]\|100\)' out &&
        grep -q 'coordinates agree' out
}

# The page's examples, with what they print.
page_is_true() {
    quietly "$python" -m doctest "$source/docs/python.md" && ! test -s out
}

# The rule by which the library is found: WENGERT_LIBRARY alone, if it is set.
says_how_to_find_it() {
    ! WENGERT_LIBRARY=/nowhere.so "$python" -c 'import wengert' >out 2>err &&
        grep -q 'set WENGERT_LIBRARY' err
}

checks_lifetimes() {
    WENGERT_CHECK=1 quietly "$python" -W error "$package/tests/test_wengert.py"
}

if test -z "$why" && ! "$python" -c 'import pycparser' 2>/dev/null; then
    skip "the generated files are those of the headers" "there is no python3-pycparser"
else
    python_check "the generated files are those of the headers" up_to_date
fi
python_check "structs and constants are those of C" lies_as_in_c
python_check "the bindings do what their tests say, with lifetimes checked" checks_lifetimes
python_check "the cases of tests/fixtures/ops agree with PyTorch and NumPy" \
    quietly "$python" -W error "$package/tests/test_fixtures.py"
python_check "the example learns, and its gradients are right" learns
python_check "docs/python.md prints what it says" page_is_true
python_check "a library that is not there is an error that says what to do" says_how_to_find_it
finish
