#!/bin/sh
# wengert gradcheck: the table, its JSON, and wrong usage. Prints TAP.
#
# WENGERT: the command (default ./wengert).
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-gradcheck.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
number=0
failed=0

# Runs the command and compares its exit code; then each further pattern must be a line's in what it
# printed.
expect() {
    name=$1 wanted=$2 arguments=$3
    shift 3
    number=$((number + 1))
    # shellcheck disable=SC2086 # arguments are words
    "$wengert" gradcheck $arguments >"$work/out" 2>&1 </dev/null
    code=$?
    result=ok
    test "$code" = "$wanted" || result='not ok'
    for pattern; do
        grep -q -- "$pattern" "$work/out" || result='not ok'
    done
    echo "$result $number - $name"
    test "$result" = ok && return
    failed=1
    sed "s/^/# exit $code: /" "$work/out"
}

expect 'a primitive is checked to order 2' 0 'tanh' '^tanh  *1, 2 .*passed$'
expect 'a fused op is checked to order 1' 0 'gelu' '^gelu  *1  .*passed$'
expect 'a fused op is checked to order 2 when asked' 0 'gelu --order 2' '^gelu  *1, 2 .*passed$'
expect 'an op without gradient says why' 0 'eq' '^eq .*no gradient: .'
expect 'several ops are checked' 0 'add mul' '^add .*passed$' '^mul .*passed$'
expect 'JSON tells the same' 0 'add --json' '"op": "add"' '"verdict": "passed"' '"failed": 0'
expect 'an op that is not there is wrong usage' 2 'nosuch' "there is no op 'nosuch'"
expect 'a third order is wrong usage' 2 'add --order 3' 'order'
expect 'help is given' 0 '--help' 'central differences'
echo "1..$number"
exit $failed
