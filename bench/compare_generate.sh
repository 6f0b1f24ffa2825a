#!/bin/sh
# Prefill and decode of a LLaMA of 110M, in turns with llama2.c and llama.cpp on this machine.
#
#   bench/compare_generate.sh [PEERS_FOLDER]
#
# llama2.c takes part where PEERS_FOLDER has its `run', tokenizer.bin and a model 110m.bin, of any
# weights; llama.cpp where it has its `llama-bench' and models 110m-f32.gguf, 110m-bf16.gguf..., which
# `wengert convert' makes of 110m.bin, and llama-quantize --pure 110m-q4_0.gguf of the first. Each
# reads a prompt of 128 tokens and writes 64 after it, but llama2.c, which has no prompt. Prints the
# medians of the rounds, in tokens a second.
#
# WENGERT: the command (default build/wengert). ROUNDS: default 3. THREADS: default 2.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
wengert=${WENGERT:-$here/../build/wengert}
rounds=${ROUNDS:-3}
threads=${THREADS:-2}
peers=${1:-}
if test $# -gt 1 || { test -n "$peers" && ! test -d "$peers"; }; then
    echo "usage: bench/compare_generate.sh [PEERS_FOLDER]" >&2
    exit 2
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-compare.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# One round of each adds a line "prefill decode share" to the file of its row in $work.
run_ours() { # dtype batch
    "$wengert" bench generate llama-110m --threads "$threads" --dtype "$1" --batch "$2" \
        >"$work/out" || return 1
    sed 's/.*"prefill_tokens_per_s": \([^,]*\),.*"decode_tokens_per_s": \([^,]*\),.*"share_of_bandwidth": \([^}]*\)}/\1 \2 \3/' \
        "$work/out" >>"$work/wengert $1, batch $2"
}

run_llama2c() {
    OMP_NUM_THREADS=$threads "$peers/run" "$peers/110m.bin" -t 0 -n 65 -z "$peers/tokenizer.bin" \
        >"$work/out" 2>&1 || return 1
    sed -n 's/.*achieved tok\/s: \([0-9.]*\).*/- \1 -/p' "$work/out" >>"$work/llama2.c f32"
}

# One figure of llama-bench: run_llama_cpp_of DTYPE ARGUMENT...
run_llama_cpp_of() {
    model=$peers/110m-$1.gguf
    shift
    "$peers/llama-bench" -m "$model" -t "$threads" -fa 1 -r 1 -o jsonl "$@" 2>"$work/err" |
        sed -n 's/.*"avg_ts": \([0-9.]*\).*/\1/p'
}

run_llama_cpp() { # dtype
    prefill=$(run_llama_cpp_of "$1" -p 128 -n 0)
    decode=$(run_llama_cpp_of "$1" -p 0 -n 64 -d 128)
    if test -z "$prefill" || test -z "$decode"; then
        cat "$work/err" >&2
        return 1
    fi
    echo "$prefill $decode -" >>"$work/llama.cpp $1"
}

median() { # file column
    awk -v column="$2" '{ print $column }' "$1" | sort -g |
        awk '{ x[NR] = $1 } END { print x[int(NR / 2) + 1] }'
}

round=0
while test "$round" -lt "$rounds"; do
    for dtype in f32 bf16 q8_0 q4_0; do
        for batch in 1 4 8; do
            run_ours $dtype $batch || exit 1
        done
        if test -x "$peers/llama-bench" && test -f "$peers/110m-$dtype.gguf"; then
            run_llama_cpp $dtype || exit 1
        fi
    done
    if test -x "$peers/run"; then
        run_llama2c || exit 1
    fi
    round=$((round + 1))
done
printf '%-24s %9s %9s %6s\n' '' prefill decode share
for row in "$work"/wengert* "$work"/llama*; do
    test -f "$row" || continue
    printf '%-24s %9.5s %9.5s %6.4s\n' "${row##*/}" "$(median "$row" 1)" "$(median "$row" 2)" \
        "$(median "$row" 3)"
done
