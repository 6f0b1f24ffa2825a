#!/bin/sh
# Fuzzes the reader of one format, with clang's libFuzzer and sanitizers.
#
#   tests/fuzz/run.sh safetensors|llama2c|pytorch|gguf SECONDS [FOLDER]
#
# FOLDER (default ./fuzz-build) holds the build, the corpus that grows, and what is found: crash-*.
# A find goes, made small, into tests/fuzz/seeds/FORMAT, which make check reads.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
format=${1:?which format?}
seconds=${2:?how many seconds?}
folder=${3:-$PWD/fuzz-build}
flags='-g -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined'
mkdir -p "$folder/$format"
cd "$folder"
test -f Makefile || "$source/configure" -q CC=clang CFLAGS="$flags" LDFLAGS='-fsanitize=address,undefined'
make -s -j2 libwengert_all.la
./libtool --quiet --tag=CC --mode=link clang $flags -fsanitize=fuzzer -std=c11 -D_GNU_SOURCE \
    -I"$source" "$source/tests/fuzz/weights.c" "$source/tests/fuzz/$format.c" \
    libwengert_all.la -o "fuzz-$format"
exec nice -n 19 "./fuzz-$format" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 \
    -malloc_limit_mb=1024 -print_final_stats=1 "$format" "$source/tests/fuzz/seeds/$format"
