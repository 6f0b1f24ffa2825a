#!/bin/sh
# Runs the fuzzed readers of tokenizers on their seeds: whole, and for small ones cut at every byte.
# Prints TAP.
source=$(cd "$(dirname "$0")" && pwd) || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-fuzz.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
program=$PWD/tests/fuzz/fuzz_tokenizer

number=0
for seed in "$source"/seeds/tokenizer/*; do
    size=$(wc -c <"$seed")
    cut=0
    while test "$cut" -lt "$size" && test "$size" -lt 500; do
        head -c "$cut" "$seed" >"$work/$cut"
        cut=$((cut + 1))
    done
    number=$((number + 1))
    if "$program" "$seed" "$work"/* >"$work.out" 2>&1; then
        echo "ok $number - $(basename "$seed")"
    else
        echo "not ok $number - $(basename "$seed")"
        sed 's/^/# /' "$work.out"
    fi
    rm -f "$work"/* "$work.out"
done
echo "1..$number"
