#!/bin/sh
# `wengert doctor' says what the system says, and advises what would help. Prints TAP.
. "$(dirname "$0")/setup.sh"
unset OMP_NUM_THREADS
unset OMP_NUM_THREADS

# Succeeds if the report has a line of that member and value.
says() {
    grep -qF -- "$(printf '    %-26s %s' "$1" "$2")" out
}
succeeds "it succeeds" doctor
model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
numbers=$(sed -n 's/^CPU implementer[^:]*: */, implementer /p; s/^CPU part[^:]*: */, part /p' /proc/cpuinfo | head -n 2 | tr -d '\n')
check "the processor is that of /proc/cpuinfo" says model "${model:-$(uname -m)$numbers}"
check "all processors may be used" says allowed "$(nproc)"
check "and all compute" says threads "$(nproc)"
pages=$(sed 's/.*\[\(.*\)\].*/\1/' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null)
check "huge pages are those of /sys" says 'huge pages' "${pages:-unknown}"
flags=$(sed -n 's/^flags[^:]*: *//p' /proc/cpuinfo | head -n 1)
for feature in avx2 fma avx512f avx512_vnni; do
    has=$(echo " $flags " | grep -c " $feature ")
    told=$(sed -n 's/^    features //p' out | sed 's/$/ /' | grep -c " $feature ")
    check "$feature is told as /proc/cpuinfo tells it" test "$has" = "$told"
done
case " $flags " in
*" avx512vl "*) vectors=v4 ;;
*" avx2 "*) vectors=v3 ;;
*) test "$(uname -m)" = aarch64 && vectors=neon || vectors=base ;;
esac
check "its kernels are in use" says vectors "$vectors"
case " $flags " in
*" amx_bf16 "*) tiles="in use" products=amx ;;
*" avx512_bf16 "*) tiles="this processor has no AMX for bf16" products=bf16 ;;
*) tiles="this processor has no AMX for bf16" products=$vectors ;;
esac
check "tiles are in use where the processor has them" says tiles "$tiles"
check "and multiply bf16" says 'products in bf16' "$products"
check "BLIS has a version" eval 'sed -n "s/^    blis  *//p" out | grep -q "^[0-9]*\.[0-9]"'
check "the file of LAPACK is told" test -e "$(sed -n 's/^    lapack file  *//p' out)"
if says 'calls of lapack' 'one after the other'; then
    check "where calls of LAPACK wait for each other, another library is advised" grep -q 'install liblapack3' out
else
    check "the reference LAPACK is called by several threads at a time" eval \
        'says "calls of lapack" "several threads at a time" && says lapack "the reference LAPACK"'
fi
check "HDF5 has one" eval 'sed -n "s/^    hdf5  *//p" out | grep -q "^[0-9]*\.[0-9]*\.[0-9]*$"'
check "the room for temporary files is told" says 'temporary folder' "${TMPDIR:-/tmp}"

# advises TEXT NAME=VALUE...: the advice with these in the environment.
advises() {
    text=$1
    shift
    env "$@" "$wengert" doctor >out 2>err
    check "with $*" grep -qF -- "$text" out
}
more=$(($(nproc) + 3))
advises "set OMP_NUM_THREADS=$(nproc)" OMP_NUM_THREADS=$more
OMP_NUM_THREADS=1e9 "$wengert" doctor >out 2>err
check "OMP_NUM_THREADS=1e9 is no number" says threads "$(nproc)"
advises 'TMPDIR is /nowhere, which is no folder' TMPDIR=/nowhere
advises 'there is no gnuplot' PATH=/nowhere
if test "$(nproc)" -gt 1; then
    advises "1 of $(nproc) processors compute" OMP_NUM_THREADS=1
    taskset -c "$(taskset -pc $$ | sed 's/.*: \([0-9]*\).*/\1/')" "$wengert" doctor >out 2>err
    check "of one processor alone" grep -q 'only 1 of [0-9]* processors may be used' out
else
    skip "of one processor alone" "there is one"
fi

WENGERT_SIMD=v4 "$wengert" doctor >out 2>err
check "WENGERT_SIMD=v4 excludes tiles" says tiles 'excluded by WENGERT_SIMD'
WENGERT_DETERMINISTIC=1 "$wengert" doctor >out 2>err
check "deterministic mode does without them" says tiles 'not in deterministic mode'
run doctor --json
check "--json has the same parts" test "$(grep -c '^  "[a-z0-9]*": [{[]' out)" = 7
check "and the version" grep -qF "\"version\": \"$("$wengert" --version | sed 's/wengert //')\"" out
misused "one too many" doctor run.h5
finish
