#!/bin/sh
# Compares `wengert plan' with `wengert pretrain': predicted and measured milliseconds of a step, on one and on
# two ranks with one thread each.
#
#     sh bench/plan.sh [WENGERT [MODEL...]]        bert-mini, gpt2-124m and llama-3m
#
# It needs two idle cores. A step has two batches; the vocabulary is learnt from the text, with at most 4096
# words. ROUNDS (3) times in turns `mpirun -n 2 wengert plan' measures and predicts, and one rank and two ranks
# train for STEPS (12), without counting the first two: the table has the medians.
set -u
. "$(dirname "$0")/mpirun.sh"
test $# -gt 0 && shift
test $# -gt 0 || set -- bert-mini gpt2-124m llama-3m
steps=${STEPS:-12} rounds=${ROUNDS:-3}

median() {
    sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
# train RANKS STEPS: trains the model on so many ranks, and leaves its lines in out and err.
train() {
    rm -f run.h5 run.log
    # shellcheck disable=SC2086
    mpirun -n "$1" "$wengert" pretrain $kind --preset "$model" --corpus text.txt --eval held.txt --batch $batch \
        --accumulate 2 --seq $sequence --vocab-size 4096 --tokens "$model.tokens" --save-every 100000 \
        --steps "$2" --out run.h5 --log run.log >out 2>err </dev/null || {
        cat err >&2
        exit 1
    }
}
# predict: the plan's rows of one and of two ranks, one a line.
predict() {
    mpirun -n 2 "$wengert" plan "$model" --batch $batch --seq $sequence --accumulate 2 --vocab "$vocabulary" \
        --ranks 2 --json >plan.json 2>err </dev/null || {
        cat err >&2
        exit 1
    }
    tr -d '\n' <plan.json | tr '{' '\n' | sed -n 's/.*"ranks": \([12]\),.*"step_ms": \([0-9.]*\).*/\1 \2/p'
}

echo "load $(cut -d ' ' -f 1-3 /proc/loadavg); steps of two batches, one thread a rank, medians of $rounds"
echo '| model | vocabulary | batch | ranks | predicted, ms | measured, ms | off |'
echo '| --- | --- | --- | --- | --- | --- | --- |'
for model in "$@"; do
    case $model in
    bert*) kind=bert batch=16 sequence=128 ;;
    llama*) kind=llama batch=16 sequence=128 ;;
    *) kind=gpt batch=4 sequence=64 ;;
    esac
    train 1 1
    vocabulary=$(sed -n 's/^model .* parameters, \([0-9]*\) tokens in its vocabulary.*/\1/p' err)
    for _ in $(seq "$rounds"); do
        predict >predicted
        for ranks in 1 2; do
            sed -n "s/^$ranks //p" predicted >>"predicted.$ranks"
            train $ranks "$steps"
            sed 's/.*"tokens_per_s": \([^,}]*\).*/\1/' run.log | tail -n +3 | median |
                awk -v tokens=$((2 * batch * sequence)) '{ print 1e3 * tokens / $1 }' >>"measured.$ranks"
        done
    done
    for ranks in 1 2; do
        awk -v start="| $model | $vocabulary | $batch x $sequence | $ranks" -v plan="$(median <"predicted.$ranks")" \
            -v run="$(median <"measured.$ranks")" \
            'BEGIN { printf "%s | %.1f | %.1f | %+.1f %% |\n", start, plan, run, 100 * (plan / run - 1) }'
    done
    rm -f predicted.* measured.*
done
