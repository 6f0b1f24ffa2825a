#!/bin/sh
# Checks the Python module of the build: with python3 and NumPy, that it does what its own tests, the cases of
# tests/fixtures/ops and its example say. Prints TAP.
. "$(dirname "$0")/cli/setup.sh"
unset OMP_NUM_THREADS
bindings=$source/bindings/python

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
test -e "$build/python/wengert/_api.py" || why="this was configured without Python"
nm -D "$library" 2>/dev/null | grep -q '__asan_\|__tsan_' && why="the library has a sanitizer"

export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$build/python" WENGERT_LIBRARY="$library"

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

lies_as_in_c() {
    "$python" "$bindings/tests/layout.py" >layout.c 2>err &&
        quietly ${CC:-cc} -std=c11 -fsyntax-only -I"$source" layout.c
}

learns() {
    quietly "$python" "$bindings/examples/spiral.py" && grep -q '^right: \(9[5-9]\|100\)' out &&
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
    WENGERT_CHECK=1 quietly "$python" -W error "$bindings/tests/test_wengert.py"
}

agrees() {
    sed -n 's/^    "\(wg_[a-z0-9_]*\)": (.*/function \1/p' "$build/python/wengert/_api.py" | LC_ALL=C sort >prototypes
    awk -f "$source/tests/declared.awk" "$source"/*/*.h "$source"/*/*/*.h | grep '^function' | LC_ALL=C sort -u |
        LC_ALL=C comm -3 prototypes - >out
    ! test -s out
}
python_check "every exported function has a prototype in _api.py, and none is gone" agrees
python_check "structs and constants are those of C" lies_as_in_c
python_check "the bindings do what their tests say, with lifetimes checked" checks_lifetimes
python_check "the cases of tests/fixtures/ops agree with PyTorch and NumPy" \
    quietly "$python" -W error "$bindings/tests/test_fixtures.py"
python_check "the example learns, and its gradients are right" learns
python_check "docs/python.md prints what it says" page_is_true
python_check "a library that is not there is an error that says what to do" says_how_to_find_it
finish
