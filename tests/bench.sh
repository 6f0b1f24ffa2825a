#!/bin/sh
# wengert bench: it runs, names its roofs, and refuses wrong usage. What it measures is no test.
# Prints TAP.
#
# WENGERT: the command (default ./wengert).
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-bench.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
number=0

# Runs the command and compares its exit code; then each further pattern must be a line's in what it
# printed.
expect() {
    name=$1 wanted=$2 arguments=$3
    shift 3
    number=$((number + 1))
    # shellcheck disable=SC2086 # arguments are words
    "$wengert" bench $arguments >"$work/out" 2>&1 </dev/null
    code=$?
    result=ok
    test "$code" = "$wanted" || result='not ok'
    for pattern; do
        grep -q -- "$pattern" "$work/out" || result='not ok'
    done
    echo "$result $number - $name"
    test "$result" = ok && return
    sed "s/^/# exit $code: /" "$work/out"
}

expect 'an op is timed forward and backward' 0 'ops add --seconds 0.001' \
    'threads, memory [0-9.]* GB/s, sgemm [0-9.]* GFLOP/s' '^add  *[0-9.]* .* of memory$'
expect 'a product is held against sgemm' 0 'ops matmul --seconds 0.001' '^matmul .* of sgemm$'
expect 'the number of threads is chosen' 0 'ops add --seconds 0.001 --threads 1' '^1 threads'
expect 'JSON tells the same' 0 'ops add --json --seconds 0.001' '"memory_gb_per_s"' '"op": "add"' \
    '"share_of_roof"'
expect 'an op that is not there is wrong usage' 2 'ops nosuch' "there is no op 'nosuch'"
expect 'an op that is not timed is wrong usage' 2 'ops flip' 'flip is not timed'
expect 'a bench that is not there is wrong usage' 2 'nosuch' "there is no bench 'nosuch'"
expect 'no bench is wrong usage' 2 '' 'A bench is wanted'
expect 'help lists the benches' 0 '--help' '^  ops '
expect 'help of a bench is given' 0 'ops --help' 'share of the roof'
echo "1..$number"
