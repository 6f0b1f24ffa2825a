#!/bin/sh
# Fuzzes the reader of one format, with clang's libFuzzer and sanitizers.
#
#   tests/fuzz/run.sh FORMAT|all SECONDS [FOLDER]
#
# FORMAT is safetensors, llama2c, pytorch, gguf, tokenizer, config or hdf5; `all` takes all but the
# last in turn for so many seconds. (HDF5's own library leaks on damaged files.) FOLDER (default
# ./fuzz-build) holds the build, the corpora that grow, and what is found: crash-*. A find goes, made
# small, into tests/fuzz/seeds/FORMAT, which make check reads.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
formats=${1:?which format?}
seconds=${2:?how many seconds?}
folder=${3:-$PWD/fuzz-build}
test "$formats" != all || formats='safetensors llama2c pytorch gguf tokenizer config'
mkdir -p "$folder"
cd "$folder"
# Kernels, which read no files: clang would take minutes to instrument their vectors.
echo 'src:*/tensor/simd/*' >kernels
flags="-g -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
    -fsanitize-ignorelist=$PWD/kernels -fsanitize-coverage-ignorelist=$PWD/kernels"
flags=$(echo $flags)
test -f Makefile || "$source/configure" -q CC=clang CFLAGS="$flags" LDFLAGS='-fsanitize=address,undefined'
make -s -j2 libwengert_all.la

for format in $formats; do
    case $format in
    tokenizer) harness="-DWG_LIBFUZZER $source/tests/fuzz/fuzz_tokenizer.c" ;;
    config) harness=$source/tests/fuzz/config.c ;;
    *) harness="$source/tests/fuzz/weights.c $source/tests/fuzz/$format.c" ;;
    esac
    leaks=1
    test "$format" != hdf5 || leaks=0
    mkdir -p "$format"
    ./libtool --quiet --tag=CC --mode=link clang $flags -fsanitize=fuzzer -std=c11 -D_GNU_SOURCE \
        -I"$source" $harness libwengert_all.la -ljansson -o "fuzz-$format"
    ASAN_OPTIONS=detect_leaks=$leaks nice -n 19 "./fuzz-$format" -max_total_time="$seconds" \
        -max_len=65536 -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1 "$format" "$source/tests/fuzz/seeds/$format"
done
