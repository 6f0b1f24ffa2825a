#!/bin/sh
# Trains and generates for a long time, and samples memory, open files and time a step.
#
#   tests/soak.sh [SECONDS]        each of the two runs takes so long (default 600, at least 120)
#
# Training saves every 50 steps, evaluates every 20 and logs each one; generation samples one text and
# four in turns (tests/soak_generate.c). After a first minute in which memory is taken and caches fill,
# the samples of the first half of the time are compared with those of the second:
#
#     memory   the most of the second half is at most 2 % and 1 MB above that of the first
#     files    the most of the second half is at most that of the first
#     time     the median processor time of a step differs by at most 10 %
#     file     the checkpoint grows by at most 1 % and 256 kB, as many as the history of evaluations
#              has when it is full (train/history.h)
#
# Prints a line for each sample to soak.TRAIN_OR_GENERATE in the current folder, and what is flat and
# what is not; exits with 1 if anything is not.
#
# WENGERT: the command (default ./wengert). SOAK_GENERATE: the program (default tests/soak_generate).
set -u
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
soak_generate=${SOAK_GENERATE:-$PWD/tests/soak_generate}
seconds=${1:-600}
results=$PWD
if test "$seconds" -lt 120 2>/dev/null || ! test "$seconds" -eq "$seconds" 2>/dev/null; then
    echo 'usage: tests/soak.sh [SECONDS], 120 or more' >&2
    exit 2
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-soak.XXXXXX") || exit 1
process=
trap 'test -n "$process" && kill "$process" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1

# The processor time of the process so far, in hundredths of a second, its children left out.
ticks() {
    sed 's/.*) //' "/proc/$process/stat" | cut -d ' ' -f 12,13 | tr ' ' '+'
}

# sample: prints seconds, kB of memory, open files, processor time, steps done, bytes of the checkpoint.
sample() {
    memory=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$process/status")
    files=$(find "/proc/$process/fd" -type l | wc -l)
    step=$(tail -n 1 log | sed -n 's/.*"step": *\([0-9]*\).*/\1/p')
    size=$(wc -c 2>/dev/null <run.h5)
    echo "$(($(date +%s) - begun)) $memory $files $(($(ticks))) ${step:-0} ${size:-0}"
}

# soak NAME COMMAND...: runs it for the time and judges the samples.
soak() {
    name=$1
    shift
    rm -f log
    : >log
    "$@" >out 2>err </dev/null &
    process=$!
    begun=$(date +%s)
    : >"$results/soak.$name"
    while test $(($(date +%s) - begun)) -lt "$seconds"; do
        sleep 2
        if ! kill -0 $process 2>/dev/null; then
            echo "$name: it ended by itself: $(tail -n 1 err)"
            process=
            return 1
        fi
        sample >>"$results/soak.$name"
    done
    kill $process
    wait $process 2>/dev/null
    process=
    judge "$name"
}

judge() {
    LC_ALL=C awk -v name="$1" -v seconds="$seconds" '
    function median(list, count,    i, j, x) {
        for (i = 2; i <= count; i++)
            for (j = i; j > 1 && list[j] < list[j - 1]; j--) { x = list[j]; list[j] = list[j - 1]; list[j - 1] = x }
        return list[int((count + 1) / 2)]
    }
    function say(what, first, second, unit, flat) {
        printf "%s: %s %s %s, then %s %s: %s\n", name, what, first, unit, second, unit, flat ? "flat" : "NOT FLAT"
        failed = failed || !flat
    }
    $1 >= 60 {
        half = $1 < 60 + (seconds - 60) / 2 ? 1 : 2
        if ($2 > memory[half]) memory[half] = $2
        if ($3 > files[half]) files[half] = $3
        if ($6 > size[half]) size[half] = $6
        if (steps && $5 > steps) {
            if (half == 1) early[++earlies] = ($4 - time) / ($5 - steps)
            else late[++lates] = ($4 - time) / ($5 - steps)
        }
        if (!steps || $5 > steps) { time = $4; steps = $5 }
    }
    END {
        if (!earlies || !lates) { print name ": too few steps to judge"; exit 1 }
        say("memory", memory[1], memory[2], "kB", memory[2] <= 1.02 * memory[1] + 1024)
        say("open files", files[1], files[2], "", files[2] <= files[1])
        a = 10 * median(early, earlies); b = 10 * median(late, lates)
        say("processor time of a step", sprintf("%.4f", a), sprintf("%.4f", b), "ms", b <= 1.1 * a && a <= 1.1 * b)
        if (size[1]) say("checkpoint", size[1], size[2], "bytes", size[2] <= 1.01 * size[1] + 262144)
        printf "%s: %d steps in %d s\n", name, steps, seconds
        exit failed
    }' "$results/soak.$1"
}

echo '{"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 64}' >gpt.json
failed=0
soak train "$wengert" pretrain gpt --config gpt.json --corpus "$source/corpus/books/persuasion.txt" \
    --tokenizer byte --steps 100000000 --seq 32 --batch 4 --save-every 50 --eval-every 20 --log log \
    --threads 1 --out run.h5 || failed=1
soak generate "$soak_generate" run.h5 log || failed=1
exit $failed
