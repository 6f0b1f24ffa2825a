#!/bin/bash
# The targets of make that test the tree in other ways than `make check': docs/testing.md says what each
# proves. Run from the folder of a build:
#
#   tests/targets.sh check-asan|check-tsan|check-valgrind|check-oom|check-crash|fuzz|coverage|lint|
#                    check-reproducible|check-all
#
# Each builds in ./NAME (fuzz in ./fuzz), keeps its log in ./NAME.log and prints one line in the end.
# TESTS, FUZZ_SECONDS, FAULT_TRIES, CK_RUN_SUITE, LINT (names of checks) and LINT_FOLDERS narrow or widen what
# runs.
set -uo pipefail
target=${1:?which target?}
build=$PWD
source=$(cd "$(dirname "$0")/.." && pwd)
log=$build/$target.log
begin=$SECONDS
: >"$log"

# summary WORDS...: the last line. Its exit code says whether the target succeeded.
summary() {
    local failed=$1
    shift
    printf '%s: %s (%s s)\n' "$target" "$*" $((SECONDS - begin))
    test "$failed" = 0
    exit
}

needs() {
    for program in "$@"; do
        command -v "$program" >/dev/null ||
            summary 1 "$program is missing; on Debian: apt-get install clang clang-tidy libomp-dev \
cppcheck valgrind gcovr shellcheck"
    done
}

# build_in FOLDER CONFIGURE-ARGUMENT...: configures a folder of its own once, and builds what the tests
# need.
build_in() {
    local folder=$1
    shift
    mkdir -p "$folder" && cd "$folder" || exit 1
    { test -f config.status || "$source/configure" -q "$@"; } >>"$log" 2>&1 &&
        make --no-print-directory -j "$(nproc)" all >>"$log" 2>&1 &&
        make --no-print-directory -j "$(nproc)" check TESTS= >>"$log" 2>&1 ||
        summary 1 "it does not build; see $log"
}

# Runs TESTS, or the ones given, and counts.
run_tests() {
    make --no-print-directory -k -j "$(nproc)" check TESTS="${TESTS-$*}" VERBOSE=1 >>"$log" 2>&1
    passed=$(sed -n 's/^# PASS: *//p' "$log" | tail -n 1)
    failed=$(awk '/^# (FAIL|XPASS|ERROR):/ { n += $3 } /^# TOTAL:/ { n = 0 } END { print n + 0 }' "$log")
    test -n "$passed" || failed=1
}

unit_tests=$(sed -n '/^unit_tests/,/nil/s|^\t\(tests/[a-z_]*\) .*|\1|p' "$source/tests/files.mk" | tr '\n' ' ')
command_tests=$(sed -n '/^command_tests/,/nil/s|^\t\(tests/cli/.*\) .*|\1|p' "$source/tests/files.mk" | tr '\n' ' ')

case $target in
check-asan)
    build_in asan --enable-werror --enable-sanitize
    run_tests "$unit_tests"
    summary "$failed" "${passed:-0} passed, $failed failed with AddressSanitizer and UndefinedBehaviorSanitizer"
    ;;
check-tsan)
    needs clang
    build_in tsan CC=clang CFLAGS='-g -O1 -fsanitize=thread' LDFLAGS=-fsanitize=thread
    export OMP_NUM_THREADS=3
    export CK_TIMEOUT_MULTIPLIER=10 # instrumented tests are several times slower
    export TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=0 \
suppressions=$source/tests/tsan.supp"
    run_tests tests/test_base tests/test_train tests/test_io tests/test_autograd
    reports=$(cat tests/*.log | grep -c 'WARNING: ThreadSanitizer')
    test "$reports" = 0 || failed=$((failed + 1))
    summary "$failed" "${passed:-0} passed, $failed failed, $reports reports of ThreadSanitizer"
    ;;
check-valgrind)
    needs valgrind
    build_in valgrind CFLAGS='-g -O1'
    # A process of its own for each test would be valgrind's, too; these suites touch all folders. Those of
    # the allocator expect blocks where the system puts them without valgrind. A suite without a test fails.
    passed=0 failed=0
    for suite in tests/test_base:parallel tests/test_io:checkpoint tests/test_models:model_extremes \
        tests/test_optim:optim tests/test_train:divergence; do
        echo "#### $suite" >>"$log"
        if CK_RUN_SUITE=${suite#*:} OMP_NUM_THREADS=1 CK_DEFAULT_TIMEOUT=0 ./libtool --mode=execute valgrind -q \
            --error-exitcode=99 --trace-children=yes "${suite%:*}" >"$suite.valgrind" 2>&1 &&
            grep -q '^1\.\.[1-9]' "$suite.valgrind"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
        cat "$suite.valgrind" >>"$log"
    done
    summary "$failed" "$passed suites passed, $failed failed under valgrind"
    ;;
check-oom | check-crash)
    build_in faults --enable-werror CC="${CC:-gcc}"
    FAULT_TRIES=${FAULT_TRIES-0} sh "$source/tests/faults/faults.sh" "${target#check-}" >>"$log" 2>&1
    failed=$(grep -c '^not ok\|^Bail out' "$log")
    grep '^not ok\|^Bail out\|^# .*: .*(exit' "$log"
    passed=$(grep -c '^ok' "$log")
    test "$passed" -gt 0 || failed=1
    summary "$failed" "$passed cases passed, $failed failed, $(sed -n 's/^# .*: \([0-9]* faults tried\).*/\1/p' "$log")"
    ;;
fuzz)
    needs clang
    CONFIGURE=--enable-werror "$source/tests/fuzz/run.sh" all "${FUZZ_SECONDS:-60}" "$build/fuzz" >>"$log" 2>&1
    status=$?
    runs=$(awk '/^stat::number_of_executed_units:/ { n += $2; f++ } END { printf "%d runs of %d fuzzers", n, f }' "$log")
    failed=$(find "$build/fuzz" -maxdepth 1 \( -name 'crash-*' -o -name 'leak-*' -o -name 'oom-*' -o -name 'timeout-*' \) |
        wc -l)
    summary $status "$runs of ${FUZZ_SECONDS:-60} s each, $failed inputs that failed"
    ;;
coverage)
    needs gcovr
    # At -O1 gcc does not fuse products and sums, which tests of kernels expect.
    build_in coverage CFLAGS='-O2 -g0 --coverage' LDFLAGS=--coverage
    # What an earlier run counted, and the lines of files that are gone since.
    find . -name '*.gcda' -delete
    find . -name '*.gcno' | while read -r lines; do
        file=$(dirname "$lines" | sed 's|/\.libs$||')/$(basename "${lines##*-}" .gcno).c
        test -f "$source/$file" || rm "$lines"
    done
    run_tests "$unit_tests $command_tests"
    # Vector kernels are compiled for each instruction set, with functions of one name on other lines, at which
    # gcovr 5.2 ends; and sets that this machine does not have cannot run here.
    find . \( -name '*libsimd*.gc*' -o -name '*libtiles*.gc*' \) -delete
    gcovr -r "$source" . --gcov-ignore-parse-errors --print-summary \
        --filter "$source/(base|tensor|autograd|nn|optim|gradcheck|io|data|train|models|objectives|formats)/" \
        --exclude-unreachable-branches >coverage.txt 2>>"$log"
    lines=$(sed -n 's/^lines: \([0-9.]*\)%.*/\1/p' coverage.txt)
    failed=$(awk "BEGIN { print !(${lines:-0} >= 92) }")
    summary "$failed" "${lines:-0} % of the lines of the library ran (at least 92 are wanted); by file: $PWD/coverage.txt"
    ;;
lint)
    needs cppcheck shellcheck clang-tidy gcc
    cd "$source" || exit 1
    folders='base tensor autograd nn optim gradcheck io data train models objectives formats cli bench'
    readers='base io data formats'
    mpi=$(pkg-config --cflags mpi-c 2>/dev/null)
    # shellcheck disable=SC2046,SC2086 # flags are words
    set -- -std=c11 -D_GNU_SOURCE -DNDEBUG -DWG_SIMD=base -I. -I"$build" \
        $(sed -n 's/^BLIS_CFLAGS = //p' "$build/Makefile") \
        $(pkg-config --cflags hdf5-serial hdf5 2>/dev/null) -I/usr/include/hdf5/serial $mpi
    # SC1091: the files that scripts source are checked by themselves. SC2154: tap.sh sets $code. SC2034: the
    # texts that `check' evaluates use variables. SC3045: dash and bash know the limits of ulimit.
    lint_scripts() {
        shellcheck -S warning -e SC1091,SC2154,SC2034,SC3045 quickstart autogen.sh .ci/run tests/*.sh \
            tests/cli/*.sh tests/faults/*.sh tests/fuzz/*.sh man/*.sh bench/*.sh
    }
    # -DWG_SIMD is set by the build; headers of the system are not ours. A tensor's elements have addresses of
    # char *, which kernels cast; cppcheck cannot read _Generic, and takes vectors of which each lane is set for
    # unset.
    lint_cppcheck() {
        cppcheck -q -j "$(nproc)" --enable=warning,portability --inline-suppr --error-exitcode=1 --std=c11 \
            --suppress=invalidPointerCast --suppress='uninitvar:tensor/simd/*' -D'_Generic(...)=1' -DWG_SIMD=base -DWG_API= -I. \
            ${LINT_FOLDERS:-$folders}
    }
    sources() { # base/group_mpi.c needs mpi.h
        find "$@" -name '*.c' | { test -n "$mpi" && cat || grep -v group_mpi.c; } | LC_ALL=C sort
    }
    # A reader of files calls itself only where a comment says how deep.
    lint_recursion() {
        sources $readers | xargs -P "$(nproc)" -n 20 sh -c 'clang-tidy --quiet \
            --checks="-*,misc-no-recursion" --warnings-as-errors="*" "$@" -- $FLAGS 2>/dev/null' sh
    }
    # clang's analyzer takes minutes for some files: gcc's goes through all, clang's through the readers of
    # files, where mistakes cost most (LINT=readers).
    lint_tidy() {
        sources ${LINT_FOLDERS:-$folders} | xargs -P "$(nproc)" -n 4 sh -c 'clang-tidy --quiet \
            --checks="-clang-analyzer-*" --warnings-as-errors="*" "$@" -- $FLAGS 2>/dev/null' sh
    }
    # Of the checks in .clang-tidy those of the analyzer are left. Assertions tell it what holds.
    lint_readers() {
        # shellcheck disable=SC2086
        sources ${LINT_FOLDERS:-$readers} | xargs -P "$(nproc)" -I FILE sh -c 'clang-tidy --quiet \
            --checks="-bugprone-*,-cert-*" --warnings-as-errors="*" FILE -- $FLAGS -UNDEBUG \
            -DLINT_$(basename FILE .c) -include tests/lint.h 2>/dev/null'
    }
    # Prints the options that turn off the warnings which tests/analyzer.txt explains for a file.
    analyzer_options() {
        while read -r pattern warning _; do
            # shellcheck disable=SC2254 # a pattern it is
            case $1 in $pattern) echo "-Wno-$warning" ;; esac
        done <tests/analyzer.txt
    }
    lint_analyzer() {
        sources ${LINT_FOLDERS:-$folders} | while read -r file; do
            # shellcheck disable=SC2046 # options are words
            echo "gcc $FLAGS -O1 -fanalyzer" $(analyzer_options "$file") "-Werror -c -o /dev/null $file"
        done | xargs -P "$(nproc)" -I COMMAND sh -c COMMAND
    }
    FLAGS="$*"
    export FLAGS
    failed=0 tools=0 wrong=
    for tool in ${LINT:-scripts cppcheck recursion tidy readers analyzer}; do
        tools=$((tools + 1))
        echo "#### $tool" >>"$log"
        "lint_$tool" >>"$log" 2>&1 || {
            failed=$((failed + 1)) wrong="$wrong $tool"
        }
    done
    summary "$failed" "$failed of $tools checks complain${wrong:+:$wrong}; see $log"
    ;;
check-reproducible)
    # Two clones of the tree as it is, in folders whose names have different lengths. With ccache the second
    # build would be given the objects of the first, and nothing would be compared.
    export CCACHE_DISABLE=1
    work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
    for folder in "$work/a" "$work/another-folder"; do
        mkdir "$folder" && (cd "$source" && git ls-files -z | xargs -0 cp -P --parents -t "$folder") &&
            cd "$folder" && { ./autogen.sh && mkdir build && cd build &&
            ../configure -q CC="${CC:-gcc}" && make -s -j "$(nproc)"; } >>"$log" 2>&1 ||
            summary 1 "it does not build; see $log"
    done
    failed=0
    for file in .libs/libwengert.so .libs/wengert; do
        cmp "$work/a/build/$file" "$work/another-folder/build/$file" >>"$log" 2>&1 || failed=$((failed + 1))
    done
    summary $failed "$failed of 2 files differ between two folders (libwengert.so, wengert)"
    ;;
check-all)
    failed=0
    for one in check-asan check-tsan check-valgrind check-oom check-crash fuzz coverage lint check-reproducible; do
        (cd "$build" && "$0" $one) || failed=$((failed + 1))
    done
    summary $failed "$failed of 9 targets failed"
    ;;
*)
    echo "$0: no target '$target'" >&2
    exit 2
    ;;
esac
