#!/bin/sh
# wengert plan: that its figures follow from what it measures and is told, and that wrong usage is refused.
# Prints TAP.
. "$(dirname "$0")/setup.sh"
mkdir "$work/.mpi" # of this mpirun: runs beside each other would share /tmp
export TMPDIR="$work/.mpi"
unset OMP_NUM_THREADS

# plan ARGUMENT...: a small model on 1, 2, 4 and 8 ranks, one a machine; its rows go to `rows', one a line.
plan() {
    run plan gpt2-tiny --batch 2 --seq 16 --vocab 512 --ranks-per-machine 1 --json "$@"
    tr -d '\n' <out | tr '{' '\n' | grep '"ranks"' >rows
}
# value RANKS KEY
value() {
    grep "\"ranks\": $1," rows | sed "s/.*\"$2\": \([^,} ]*\).*/\1/"
}
# holds CONDITION NAME=VALUE...
holds() {
    condition=$1
    shift
    for pair in "$@"; do
        set -- "$@" -v "$pair"
        shift
    done
    awk "$@" "BEGIN { exit !($condition) }"
}

plan --tokens 1e6
check 'it plans for 1, 2, 4 and 8 ranks' eval 'test $code = 0 && test "$(wc -l <rows)" = 4'
check 'one rank is as efficient as one rank' holds 'e > 0.999 && e < 1.001' e="$(value 1 efficiency)"
check 'and sends nothing' holds 'm == 0' m="$(value 1 sent_mib)"
check 'an all-reduce of N ranks sends 2 (N - 1) / N gradients' \
    holds 's / (2 * 7 / 8 * g / 2) > 0.999 && s / (2 * 7 / 8 * g / 2) < 1.001' \
    s="$(value 8 sent_mib)" g="$(value 8 gradients_mib)"
check 'hours are those of the tokens' holds 'h * t * 3600 > 0.999e6 && h * t * 3600 < 1.001e6' \
    h="$(value 4 hours)" t="$(value 4 tokens_per_s)"
plain=$(value 8 sent_mib) state=$(value 8 state_mib) exchange=$(value 8 exchange_ms)
plan --communication-dtype bf16
check 'bf16 sends half' holds 'a * 2 > 0.999 * b && a * 2 < 1.001 * b' a="$(value 8 sent_mib)" b="$plain"
plan --zero 2
check 'ZeRO shares out the state' holds 'b > 0 && a * 8 > 0.99 * b && a * 8 < 1.01 * b' a="$(value 8 state_mib)" b="$state"
plan --bandwidth 0.0125
check 'a slower network takes longer' holds 'a > 10 * b' a="$(value 8 exchange_ms)" b="$exchange"
run plan gpt2-tiny --batch 2 --seq 16 --vocab 512 --ranks 3 --price 2
check 'a table has the cost' eval 'test $code = 0 && grep -q " cost$" out && grep -qE "^ +3 " out'
refuses 'a model that is not there' "there is no model 'gpt3'" plan gpt3
misused 'which model' plan
misused "there is no 'f16'" plan gpt2-tiny --communication-dtype f16
misused "--zero" plan gpt2-tiny --zero 3
finish
