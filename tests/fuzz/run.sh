#!/bin/sh
# Fuzzes the readers of files, with clang's libFuzzer and sanitizers.
#
#   tests/fuzz/run.sh build|FORMAT|all SECONDS [FOLDER]
#
# FORMAT is safetensors, llama2c, pytorch, gguf, index (of shards), tokenizer, config, data (texts, tables,
# questions, tagged words, arrays) or hdf5; `all' takes each but hdf5 for so many seconds, as many at once as
# there are processors. (HDF5's own library leaks on damaged files.) dictionaries/FORMAT has words of a format,
# where it has some. `build' only configures a build in FOLDER (default ./fuzz-build), which also keeps the
# corpora that grow and the inputs that failed: crash-*. Reduce such an input and add it to
# tests/fuzz/seeds/FORMAT, which make check reads. `all' begins without the results of an earlier run: it removes
# the logs, and puts inputs that failed then into FOLDER/earlier.
# CONFIGURE in the environment holds further arguments for ./configure.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
formats=${1:?which format?}
seconds=${2:?how many seconds?}
folder=${3:-$PWD/fuzz-build}
mkdir -p "$folder"
cd "$folder"
# clang takes minutes to instrument the vectors of the kernels, which read no files. Every object depends on this list,
# so it is not written again.
test -f kernels || echo 'src:*/tensor/simd/*' >kernels
flags="-g -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
    -fsanitize-ignorelist=$PWD/kernels -fsanitize-coverage-ignorelist=$PWD/kernels"
flags=$(echo $flags)
# shellcheck disable=SC2086
test -f Makefile || "$source/configure" -q CC=clang CFLAGS="$flags" \
    LDFLAGS='-fsanitize=address,undefined' ${CONFIGURE:-}
test "$formats" != build || exit 0
make -s -j2 libwengert_all.la

# fuzz FORMAT: builds its fuzzer and runs it.
fuzz() {
    format=$1
    leaks=1
    case $format in
    tokenizer) harness="-DWG_LIBFUZZER $source/tests/fuzz/fuzz_tokenizer.c" ;;
    config) harness=$source/tests/fuzz/config.c ;;
    data) harness="-DWG_FUZZ_DATA $source/tests/fuzz/data.c $source/tests/fuzz/weights.c" ;;
    index) name=x.safetensors.index.json ;;
    safetensors | gguf) name=x.$format ;;
    llama2c) name=x.bin ;;
    pytorch) name=x.pt ;;
    hdf5) name=x.h5 leaks=0 ;;
    *) echo "$0: no format '$format'" >&2 && return 2 ;;
    esac
    # The quotes are the compiler's: the name is a string of C.
    # shellcheck disable=SC2089
    test -z "${name-}" || harness="-DWG_FUZZ_NAME=\"$name\" $source/tests/fuzz/weights.c"
    mkdir -p "$format"
    dictionary=$source/tests/fuzz/dictionaries/$format
    set --
    test ! -f "$dictionary" || set -- "-dict=$dictionary"
    # shellcheck disable=SC2086,SC2090
    ./libtool --quiet --tag=CC --mode=link clang $flags -fsanitize=fuzzer -std=c11 -D_GNU_SOURCE \
        -I"$source" $harness libwengert_all.la -ljansson -o "fuzz-$format"
    ASAN_OPTIONS=detect_leaks=$leaks nice -n 19 "./fuzz-$format" -max_total_time="$seconds" \
        -max_len=65536 -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1 \
        "$@" "$format" "$source/tests/fuzz/seeds/$format"
}

test "$formats" = all || {
    fuzz "$formats"
    exit
}
rm -f fuzz-*.log
mkdir -p earlier
find . -maxdepth 1 -type f \( -name 'crash-*' -o -name 'leak-*' -o -name 'oom-*' -o -name 'slow-unit-*' \
    -o -name 'timeout-*' \) -exec mv {} earlier \;
# The output of each stays together.
# shellcheck disable=SC2016
printf '%s\n' safetensors llama2c pytorch gguf index tokenizer config data |
    xargs -P "$(nproc)" -I FORMAT sh -c '
        "$0" FORMAT "$1" . >fuzz-FORMAT.log 2>&1
        code=$?
        cat fuzz-FORMAT.log
        exit "$code"' "$source/tests/fuzz/run.sh" "$seconds"
