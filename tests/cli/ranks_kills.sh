#!/bin/sh
# Kills a random rank of a training at a random moment, KILLS times (3), with and without ZeRO, and resumes on
# 1, 2 and 4 ranks in turn: nobody is left hanging, the last checkpoint is good, and at the end the losses are
# those of a run that nobody killed. Prints TAP.
#
# SEED: of the random numbers (1).
. "$(dirname "$0")/setup.sh"
kills=${KILLS:-3}
. "$source/tests/cli/mpirun.sh"

need_ranks
if ! test -r "/proc/$$/environ"; then
    skip 'ranks that are killed' 'there is no /proc, in which they are found'
    finish
fi
numbers_in_order >text.txt
cat >llama.json <<END
{"model_type": "llama", "vocab_size": 256, "hidden_size": 32, "intermediate_size": 64,
 "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 24}
END
steps=$((kills * 60 + 60))
base="pretrain llama --config llama.json --corpus text.txt --tokenizer byte --batch 2 --accumulate 4 --seq 24
    --lr 0.001 --seed 3 --steps $steps --timeout 60"
# shellcheck disable=SC2086
ranks 1 $base --out whole.h5 --log whole.log
check 'a run that nobody kills' test "$code" = 0

# The processes that train killed.h5. It takes a few processes alone: on a busy machine the run would end before
# its victim is found.
processes() {
    for file in $(grep -lzxF "$work/killed.h5" /proc/[0-9]*/cmdline 2>/dev/null); do
        process=${file%/cmdline}
        grep -qzE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=' "$process/environ" 2>/dev/null && echo "${process#/proc/}"
    done
}
# random BELOW: the next number.
seed=${SEED:-1}
random() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 65536 % $1))
}

done=0
while test $done -lt "$kills"; do
    set -- 2 4 3
    shift $((done % 3))
    several=$1
    begun=$(cat killed.log 2>/dev/null | wc -l)
    # shellcheck disable=SC2086
    if test $done = 0; then
        mpirun -n "$several" "$wengert" $base --save-every 3 --out "$work/killed.h5" --log killed.log >out 2>err \
            </dev/null &
    else
        mpirun -n "$several" "$wengert" pretrain llama --resume --zero $((done % 3)) --save-every 3 \
            --out "$work/killed.h5" --log killed.log >out 2>err </dev/null &
    fi
    job=$!
    random 30
    tries=0
    while test $tries -lt 600 && test "$(cat killed.log 2>/dev/null | wc -l)" -lt $((begun + 5 + drawn)) &&
        kill -0 $job 2>/dev/null; do
        sleep 0.1
        tries=$((tries + 1))
    done
    random "$several"
    victim=$(processes | sed -n "$((drawn + 1))p")
    kill -KILL "$victim" 2>/dev/null
    wait $job
    code=$?
    done=$((done + 1))
    check "kill $done: one of $several ranks; the others end, and mpirun says why" eval \
        'test $code != 0 && cat out err | grep -qi "killed\|signal 9" && test -z "$(processes)"'
    succeeds "kill $done: the last checkpoint is good" info killed.h5
done
for count in 1 2 4; do
    cp killed.h5 go.h5
    ranks $count pretrain llama --resume --out go.h5 --log go.log
    check "$count ranks go on to the end" test "$code" = 0
    # The last line of each step counts: steps after the last checkpoint were run again.
    cat killed.log go.log | sed 's/.*"step": \([0-9]*\), "loss": \([^,]*\),.*/\1 \2/' >all
    sed 's/.*"step": \([0-9]*\), "loss": \([^,]*\),.*/\1 \2/' whole.log >wanted
    check "nothing is lost: the losses of all $steps steps are those of the other run" awk -v steps=$steps '
        NR == FNR { loss[$1] = $2; next }
        { d = loss[$1] - $2; if ($1 in loss && d < 1e-4 && d > -1e-4) n++ }
        END { exit n != steps }' all wanted
    rm -f go.log
done
finish
