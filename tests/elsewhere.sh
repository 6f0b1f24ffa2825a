#!/bin/bash
# Builds and tests the tree on other systems, with other compilers, and under other loads:
#
#   tests/elsewhere.sh SYSTEM...|quick|all
#
#   debian13       Debian 13 (gcc 14.2, BLIS 1.1, HDF5 1.14.5, SLEEF 3.6), in a folder that debootstrap
#                  fills: the README's two commands. Needs root
#   dist           make dist, and the README's second command on what it packs: in Debian 13 where that
#                  folder is there, else here
#   gcc11          gcc 11, the compiler of Ubuntu 22.04 and RHEL 9
#   clang14        the clang of Debian 12
#   clang19        the clang of Debian 13
#   sanitize       AddressSanitizer and UndefinedBehaviorSanitizer
#   fuzz           each reader of files fuzzed by clang's libFuzzer: 60 s, 5 s with `quick'
#   lto            -flto
#   native         -march=native
#   without-blis   configure --without-blis
#   base           WENGERT_SIMD=base, the kernels for any x86-64 processor
#   v3             WENGERT_SIMD=v3, the kernels for AVX2
#   threads-N      the library on N threads; `all' takes 1, 3, 4 and 8
#   busy           two endless loops beside the tests
#   arm64          Debian 12 on arm64, cross-built and emulated: five programs of tests, and 30 steps of each
#                  objective with --deterministic, whose weights are those of x86-64
#
# Compilers and their options run the unit tests and five command tests (lto: three programs, since a program takes
# minutes to link); sanitize, kernels, threads and busy run the unit tests and all command tests.
#
# `all' runs every system. `quick' runs the systems and tests that find most, in less than ten minutes on two
# cores when the folders are there. A system prints one line: its name, ok, FAILED or skipped, what ran, the
# counts and the seconds; the names of failed tests follow. The exit code is 1 if a system failed.
#
# ELSEWHERE is the folder of all systems, outside of the tree: ${XDG_CACHE_HOME:-~/.cache}/wengert-elsewhere
# unless set. ELSEWHERE/tree is a copy of the tree with its uncommitted changes, and the builds are folders of it;
# ELSEWHERE/SYSTEM.log is the log of a system. Builds are taken up where they are. TESTS='tests/test_ops' runs
# those tests alone. Debian 13 is fetched from the mirror of this machine's apt.
set -uo pipefail
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
here=${ELSEWHERE:-${XDG_CACHE_HOME:-$HOME/.cache}/wengert-elsewhere}
mkdir -p "$here" && here=$(cd "$here" && pwd) || exit 1
all='debian13 dist gcc11 clang14 clang19 sanitize fuzz lto native without-blis base v3 threads-1 threads-3 threads-4 threads-8 busy arm64'
some='debian13 gcc11 clang19 fuzz without-blis v3 base threads-1 threads-3 busy arm64'
quick=
# One more at once than there are processors: some tests wait for processes most of their time.
jobs=$(($(nproc) + 1))
# A user has none of these variables.
unset CONFIGURE OPENBLAS_CORETYPE OPENBLAS_L2_SIZE OMP_NUM_THREADS OMP_WAIT_POLICY WENGERT_SIMD MAKEFLAGS
test ! -d /usr/lib/ccache || PATH=/usr/lib/ccache:$PATH
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$here}" CCACHE_NOHASHDIR=1

# The words of a list in tests/files.mk.
list() {
    sed -n "/^$1 = /,/nil/s|^\t\(tests/[^ ]*\) .*|\1|p" "$source/tests/files.mk" | xargs
}

# Tests that depend on how the library was compiled.
some_command_tests='tests/cli/cli.sh tests/cli/mlm.sh tests/cli/ranks.sh tests/cli/resources.sh tests/examples.sh'
compiled_tests="$(list unit_tests) $some_command_tests"
# A program with -flto takes minutes to link.
lto_tests="tests/test_ops tests/test_nn tests/test_io $some_command_tests"
# Tests that depend on kernels, threads and load, too; debian13 and dist run the others as well.
running_tests="$(list unit_tests) $(list command_tests)"

skip() {
    echo "skipped: $*"
    exit 77
}

needs() {
    for program; do
        command -v "$program" >/dev/null || skip "$program is missing"
    done
}

# copy_to FOLDER: makes FOLDER/tree a copy of the tree. Unchanged files keep their times, so that make compiles
# only what depends on a change.
copy_to() {
    local commit index=$scratch/index
    cp "$(git -C "$source" rev-parse --path-format=absolute --git-path index)" "$index"
    commit=$(cd "$source" && export GIT_INDEX_FILE="$index" && git add -A && git -c user.name=elsewhere \
        -c user.email=elsewhere commit-tree -p HEAD -m elsewhere "$(git write-tree)") || return 1
    { test -d "$1/tree" || git init -q "$1/tree"; } &&
        git -C "$source" push -q -f "$1/tree" "$commit:refs/heads/elsewhere" &&
        git -C "$1/tree" checkout -q -f --detach elsewhere && git -C "$1/tree" clean -q -d -f
}

# build NAME CONFIGURE-ARGUMENT...: builds the tree and its tests in ELSEWHERE/tree/build-NAME, and stays there. The
# small files of the tests are in memory where there is room.
build() {
    cd "$here/tree" && mkdir -p "build-$1" "$scratch/$1" || return 1
    test -f configure && test -z "$(find configure.ac m4/wg_* -newer configure)" || ./autogen.sh || return 1
    cd "build-$1" && rm -rf scratch && ln -s "$scratch/$1" scratch || return 1
    shift
    { test -f config.status || ../configure -q "$@"; } && make -j "$jobs" --no-print-directory all
}

# The programs to build for tests: unit tests, and what scripts among them run.
programs_of() {
    local test
    for test; do
        case $test in *.sh) ;; *) echo "$test" ;; esac
    done
    case "$*" in
    *.sh*) echo 'print: ; @echo $(filter-out $(unit_tests:=$(EXEEXT)),$(check_PROGRAMS))' |
        make -s --no-print-directory -f Makefile -f - print ;;
    esac
}

# check ALL-TESTS QUICK-TEST...: builds and runs TESTS if set, else the tests that are named with `quick', else all of
# them. The function $load is called between.
check() {
    local all_tests=$1 tests programs
    shift
    tests=${quick:+$*}
    tests=${TESTS-${tests:-$all_tests}}
    case $tests in
    "$running_tests") echo 'ran: unit tests, command tests' ;;
    "$compiled_tests") echo "ran: unit tests, ${some_command_tests//tests\//}" ;;
    *) echo "ran: ${tests//tests\//}" ;;
    esac
    # shellcheck disable=SC2086 # names of files
    programs=$(programs_of $tests | xargs) && make -j "$jobs" --no-print-directory check TESTS= \
        check_PROGRAMS="$programs" || return 1
    "${load:-:}"
    make -j "$jobs" -k --no-print-directory check VERBOSE=1 TESTS="$tests" check_PROGRAMS="$programs"
}

# ---- The systems: each runs in a process of its own, with its output in the log. ----

# in_debian13 FOLDER COMMAND: runs a shell command there, in a folder. The mounts end with it.
in_debian13() {
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" &&
            mount -t devpts -o newinstance,ptmxmode=666 devpts "$0/dev/pts" &&
            mkdir -p "$0/dev/shm" && mount -t tmpfs tmpfs "$0/dev/shm" &&
            mkdir -p "$0/$1/build" && rm -rf "$0/$1/build/scratch" && ln -s /dev/shm "$0/$1/build/scratch" &&
            exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin CONFIGURE=--enable-werror \
                chroot "$0" /bin/sh -c "cd /$1 && $2"' "$here/debian13" "$@"
}

mirror() {
    apt-get indextargets --format '$(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "Debian" && $2 == "main" { print $3; exit }'
}

make_debian13() {
    test "$(id -u)" = 0 || skip 'needs root'
    test ! -f "$here/debian13/complete" || return 0
    needs apt-get debootstrap
    rm -rf "$here/debian13"
    debootstrap --variant=minbase trixie "$here/debian13" "$(mirror)" && touch "$here/debian13/complete"
}

# quickstart_check FOLDER: the README's second command, or its build and the tests of TESTS or `quick'.
quickstart_check() {
    local tests=${TESTS-${quick:+tests/test_nn tests/test_io}}
    echo "ran: ${2-}quickstart check${tests:+ of $tests}"
    in_debian13 "$1" "${tests:+MAKEFLAGS='TESTS=${tests// /\\ }'} ./quickstart check"
}

system_debian13() {
    make_debian13 && copy_to "$here/debian13" &&
        in_debian13 tree 'rm -f run.h5* loss.svg && STEPS=20 ./quickstart && test -s loss.svg' &&
        quickstart_check tree 'quickstart of 20 steps, '
}

system_dist() {
    build plain && rm -f wengert-*.tar.xz && make dist || return 1
    if test -f "$here/debian13/complete" && test "$(id -u)" = 0; then
        tar -xf wengert-*.tar.xz -C "$here/debian13" && quickstart_check "$(basename wengert-*.tar.xz .tar.xz)"
    else
        tar -xf wengert-*.tar.xz && mkdir -p wengert-*/build && cd wengert-*/build &&
            { test -f config.status || ../configure -q; } && make -j "$jobs" &&
            check "$running_tests" tests/test_nn tests/test_io
    fi
}

system_gcc11() {
    needs gcc-11
    build gcc11 CC=gcc-11 --enable-werror && check "$compiled_tests" tests/test_tensor
}

system_clang14() {
    needs clang-14
    build clang14 CC=clang-14 --enable-werror && check "$compiled_tests" tests/test_tensor
}

system_clang19() {
    needs clang-19
    build clang19 CC=clang-19 --enable-werror && check "$compiled_tests" tests/test_tensor
}

system_sanitize() {
    build sanitize --enable-werror --enable-sanitize && LINALG_ROUNDS=1 check "$running_tests" tests/test_data
}

system_fuzz() {
    needs clang
    local seconds=${quick:+5} folder=$here/tree/build-fuzz status
    build plain && CONFIGURE=--enable-werror ../tests/fuzz/run.sh build 0 "$folder" &&
        ../tests/fuzz/run.sh all "${seconds:-60}" "$folder"
    status=$?
    echo "ran: each reader for ${seconds:-60} s"
    # The inputs that were read are counted as tests that passed.
    cat "$folder"/fuzz-*.log | awk '
        $1 == "stat::number_of_executed_units:" { n += $2 }
        END { printf "Testsuite summary\n# PASS: %d\n", n }'
    return $status
}

system_lto() {
    build lto CFLAGS='-O3 -g -flto=auto' && check "$lto_tests" tests/test_nn
}

system_native() {
    build native CFLAGS='-O3 -g -march=native' && check "$compiled_tests" tests/test_nn
}

system_without-blis() {
    build without-blis --without-blis && check "$compiled_tests" tests/test_nn
}

system_base() {
    build plain && WENGERT_SIMD=base check "$running_tests" tests/test_nn
}

system_v3() {
    build plain && WENGERT_SIMD=v3 check "$running_tests" tests/test_nn
}

threads() {
    build plain && OMP_NUM_THREADS=$1 check "$running_tests" tests/test_models tests/test_train
}

start_loops() {
    for _ in 1 2; do
        while kill -0 $$; do :; done &
    done
}

system_busy() {
    build plain || return 1
    load=start_loops check "$running_tests" tests/test_base tests/test_io
    local status=$?
    jobs -p | xargs -r kill
    return $status
}

# ---- arm64. Nothing runs as the other system but the programs of the tree, by qemu's user mode. ----

# Unpacks Debian's packages into a folder for the cross compiler and the emulator. Links of the whole system
# become those of the folder.
make_arm64() {
    local root=$here/arm64-root libraries=usr/lib/aarch64-linux-gnu package link
    test ! -f "$root/complete" || return 0
    test "$(id -u)" = 0 || skip 'needs root'
    needs apt-get debootstrap
    rm -rf "$root"
    debootstrap --foreign --arch=arm64 --variant=minbase --include=check,libc6-dev,libhdf5-dev,libjansson-dev,\
liblapacke-dev,libpcre2-dev,librandom123-dev,libsleef-dev,libutf8proc-dev bookworm "$root" "$(mirror)" || return 1
    for package in "$root"/var/cache/apt/archives/*.deb; do
        dpkg-deb -x "$package" "$root" || return 1
    done
    ln -sfn blas/libblas.so.3 "$root/$libraries/libblas.so.3"
    ln -sfn lapack/liblapack.so.3 "$root/$libraries/liblapack.so.3"
    find "$root/usr/lib" "$root/lib" -lname '/*' | while read -r link; do
        ln -sfn "$root$(readlink "$link")" "$link"
    done
    touch "$root/complete"
}

# The objectives, each with a model that fits and its configuration.
objectives() {
    local size='"hidden_size": 32, "num_attention_heads": 2, "vocab_size": 400' sides
    local encoder="$size, \"num_hidden_layers\": 1, \"intermediate_size\": 64, \"max_position_embeddings\": 64"
    sides=$(printf '"%s_layers": 1, "%s_attention_heads": 2, "%s_ffn_dim": 64, ' \
        encoder encoder encoder decoder decoder decoder)
    cat <<END
masked-lm bert {$encoder}
mlm modernbert {$encoder}
hybrid modernbert {$encoder}
causal-lm llama {$encoder}
blank-infilling glm {$size, "num_layers": 1, "max_sequence_length": 64}
span-corruption t5 {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2, "vocab_size": 400}
translation transformer {"d_model": 32, $sides "vocab_size": 300, "decoder_vocab_size": 300, "max_position_embeddings": 64}
END
}

# train COMMAND...: 30 steps of each objective, of mlm alone with `quick'; the models go to the current folder.
train() {
    local objective model config texts held batch
    objectives | while read -r objective model config; do
        test -z "$quick" || test "$objective" = mlm || continue
        texts="../alice.txt ../opticks.txt" held=../held.txt batch=2
        test "$objective" != translation || texts='../source.txt ../target.txt' held=$texts batch=128
        echo "$config" >config.json
        # shellcheck disable=SC2086 # names of files
        "$@" pretrain "$model" --objective "$objective" --config config.json --corpus $texts --eval $held \
            --steps 30 --seq 32 --batch $batch --optimizer muon --deterministic --out "$objective.h5" \
            --overwrite </dev/null || exit 1
    done
}

same_models() {
    local folder=$scratch/objectives model
    rm -rf "$folder" && mkdir -p "$folder/native" "$folder/arm64" && cd "$folder" || return 1
    head -c 60000 "$source/corpus/books/alice-in-wonderland.txt" >alice.txt
    head -c 60000 "$source/corpus/books/opticks.txt" >opticks.txt
    { head -c 3000 alice.txt && printf '\n\n\n\n' && head -c 3000 opticks.txt; } >held.txt
    grep -E '^.{20,60}$' alice.txt | head -n 100 >source.txt
    rev source.txt >target.txt
    (cd native && train "$here/tree/build-plain/wengert") &&
        (cd arm64 && train "$here/tree/build-arm64/emulator" .libs/wengert) || return 1
    for model in native/*.h5; do
        model=$(basename "$model" .h5)
        for place in native arm64; do
            "$here/tree/build-plain/wengert" convert "$place/$model.h5" "$place/$model.safetensors" || return 1
        done
        cmp "native/$model.safetensors" "arm64/$model.safetensors" || return 1
    done
}

system_arm64() {
    local libraries=usr/lib/aarch64-linux-gnu
    needs aarch64-linux-gnu-gcc pkg-config qemu-aarch64-static
    make_arm64 && build plain || return 1
    export PKG_CONFIG_SYSROOT_DIR=$here/arm64-root PKG_CONFIG_LIBDIR=$here/arm64-root/$libraries/pkgconfig
    (build arm64 --host=aarch64-linux-gnu --without-blis --without-mpi --enable-werror \
        CC="aarch64-linux-gnu-gcc --sysroot=$here/arm64-root") && cd "$here/tree/build-arm64" || return 1
    printf '#!/bin/sh\nprogram=$1\nshift\nexec %s -L %s -E LD_LIBRARY_PATH=%s/.libs "%s/$program" "$@"\n' \
        "$(command -v qemu-aarch64-static)" "$here/arm64-root" "$PWD" "$PWD" >emulator && chmod +x emulator
    # Tests have a time of their own, and an emulated one takes ten times as long. The suite linalg_threads, which
    # looks for faults of LAPACK libraries, would take an hour.
    export CK_TIMEOUT_MULTIPLIER=20 LINALG_ROUNDS=0
    same_models && cd "$here/tree/build-arm64" && export MAKEFLAGS="LOG_COMPILER=$PWD/emulator" &&
        check 'tests/test_base tests/test_tensor tests/test_ops tests/test_nn tests/test_io' tests/test_base
}

# ---- Running them, one after the other ----

# Sums lines such as "# PASS:  12" of automake's summaries. The logs of failures follow with such lines, too.
count() {
    awk -v names=" $* " '
        /^Testsuite summary/ { summary = 1 }
        summary && $1 == "#" && index(names, " " $2 " ") { n += $3 }
        $2 == "ERROR:" { summary = 0 }
        END { print n + 0 }' "$log"
}

# run SYSTEM: prints its line. Fails if the system does.
run() {
    local log=$here/$1.log begin=$SECONDS status words
    case $1 in
    threads-*) set -- "$1" threads "${1#threads-}" ;;
    *) set -- "$1" "system_$1" ;;
    esac
    ("${@:2}") >"$log" 2>&1 </dev/null 9>&-
    status=$?
    words="$(sed -n 's/^ran: //p' "$log"): $(count PASS: XFAIL:) passed, $(count FAIL: XPASS: ERROR:) failed, \
$(count SKIP:) skipped"
    if test $status = 77; then
        status=0 words=$(sed -n 's/^skipped: \(.*\)/skipped (\1)/p' "$log")
    elif test $status = 0 && test "$(count PASS:)" -gt 0; then
        words="ok      $words"
    else
        status=1 words="FAILED  $words"
    fi
    printf '%-12s %s, %s s\n' "$1" "$words" $((SECONDS - begin))
    test $status = 0 && return
    grep -E '^(FAIL|XPASS|ERROR): | error: |^configure: error' "$log" | sort -u | head -n 20 | sed 's/^/    /'
    return 1
}

case ${1:-} in
'')
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
quick)
    # shellcheck disable=SC2086 # names are words
    quick=yes && set -- $some
    ;;
all)
    # shellcheck disable=SC2086
    set -- $all
    ;;
esac
for system; do
    case $system in threads-[1-9]*) continue ;; esac
    declare -F "system_$system" >/dev/null || { echo "$0: no system $system" >&2 && exit 2; }
done
exec 9>"$here/lock"
flock -n 9 || { echo "waiting for another run in $here" >&2 && flock 9; }
memory=$here
test "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 2>/dev/null && memory=/dev/shm
scratch=$(mktemp -d -p "$memory" wengert-elsewhere.XXXXXX) || exit 1
trap 'rm -rf "$scratch"' EXIT
copy_to "$here" || exit 1
failed=0
for system; do
    run "$system" || failed=1
done
exit $failed
