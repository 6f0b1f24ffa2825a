#!/bin/sh
# Training by several processes, as a user runs it under mpirun: curves and bits by the number of
# ranks, resuming, threads, ranks that differ, fail, die and hang. Prints TAP.
. "$(dirname "$0")/setup.sh"
. "$source/tests/cli/mpirun.sh"

# ---- Text and models ----

numbers_in_order >text.txt
sed 's/nine/two/' text.txt >other.txt
write_vocabulary
cat >bert.json <<END
{"model_type": "bert", "vocab_size": 24, "hidden_size": 32, "num_hidden_layers": 2,
 "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 24,
 "type_vocab_size": 2, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
END
sed 's/"intermediate_size": 64/"intermediate_size": 48/' bert.json >narrow.json
sed 's/_prob": 0.1/_prob": 0.2/g' bert.json >dropping.json
cat >glm.json <<END
{"vocab_size": 24, "hidden_size": 32, "num_layers": 2, "num_attention_heads": 2,
 "max_sequence_length": 24, "embedding_dropout_prob": 0.1, "attention_dropout_prob": 0.1,
 "output_dropout_prob": 0.1}
END
cat >llama.json <<END
{"model_type": "llama", "vocab_size": 256, "hidden_size": 32, "intermediate_size": 64,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
 "max_position_embeddings": 24, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
 "tie_word_embeddings": false}
END

# pretrain RANKS MODEL OUT ARGUMENT...: 50 steps of 6 batches of 4 sequences.
pretrain() {
    ranks_of=$1 model=$2 run=$3
    shift 3
    case $model in
    llama) tokenizer=byte ;;
    *) tokenizer=vocab.txt ;;
    esac
    ranks "$ranks_of" pretrain "$model" --config "$model.json" --corpus text.txt --tokenizer $tokenizer \
        --batch 4 --accumulate 6 --seq 24 --steps 50 --lr 0.003 --seed 3 --timeout 120 --overwrite \
        --out "$run.h5" --log "$run.log" "$@"
}

need_ranks

# ---- Curves ----

# within LIMIT LOG LOG: whether no loss of the same step differs by more, in 20 steps or more.
within() {
    for log in "$2" "$3"; do
        sed 's/.*"step": \([0-9]*\), "loss": \([^,]*\),.*/\1 \2/' "$log.log" >"$log.losses"
    done
    awk -v limit="$1" '
        NR == FNR { loss[$1] = $2; next }
        $1 in loss { d = loss[$1] - $2; if (d < 0) d = -d; if (!(d <= limit)) { bad = 1; exit }; n++ }
        END { exit bad || n < 20 }' "$2.losses" "$3.losses"
}

# agrees NAME LOG RANKS MODEL ARGUMENT...: such a run has the losses of that log.
agrees() {
    name=$1 log_of=$2 count=$3 model=$4
    shift 4
    pretrain "$count" "$model" same "$@"
    check "$name" within 1e-5 "$log_of" same
    rm -f same.log
}

# same_bits NAME LOG RANKS MODEL ARGUMENT...: such a run has the bits of that log.
same_bits() {
    name=$1 log_of=$2 count=$3 model=$4
    shift 4
    pretrain "$count" "$model" same "$@"
    losses "$log_of.log" >a
    losses same.log >b
    check "$name" cmp -s a b
    rm -f same.log
}

# goes_on NAME FILE LOG RANKS MODEL ARGUMENT...: the run of the file, at step 25, ends with the
# losses of the log.
goes_on() {
    name=$1 begun=$2 log_of=$3 count=$4 model=$5
    shift 5
    cp "$begun" go.h5
    rm -f go.log
    ranks "$count" pretrain "$model" --resume --out go.h5 --log go.log "$@"
    check "$name" within 1e-5 "$log_of" go
}

# goes_on_alike: goes_on, with the same bits.
goes_on_alike() {
    goes_on "$@"
    losses "$log_of.log" | tail -n "$(wc -l <go.log)" >a
    losses go.log >b
    check "$name, and with the same bits" eval 'test -s b && cmp -s a b'
}

pretrain 2 bert bert2
check 'two ranks train' has 'masked words'
check 'rank 0 alone prints' eval 'test "$(grep -c "masked words" out)" = 1 &&
    test "$(grep -c "2 ranks of 1 thread" err)" = 1'
check 'rank 0 alone logs' test "$(wc -l <bert2.log)" = 50
for model in bert glm llama; do
    pretrain 1 $model ${model}1
    check "$model: one rank of mpirun is a usual run" test "$code" = 0
    agrees "$model: 2 ranks have the losses of 1" ${model}1 2 $model
    pretrain 3 $model ${model}3
    check "$model: 3 ranks have the losses of 1" within 1e-5 ${model}1 ${model}3
    same_bits "$model: a second run of 3 ranks has the same bits" ${model}3 3 $model
done
pretrain 1 bert other --seed 4
check 'curves of other runs do differ' eval '! within 1e-5 bert1 other'
pretrain 1 bert unclipped1 --clip 0
agrees 'without clipping they agree, too' unclipped1 3 bert --clip 0
pretrain 1 bert ramped1 --accumulate-ramp 30
agrees 'steps of fewer batches than ranks agree, too' ramped1 3 bert --accumulate-ramp 30

# ---- ZeRO: a share of optimizer state and gradients for each rank ----

pretrain 1 llama muon1 --optimizer muon
pretrain 1 llama adafactor1 --optimizer adafactor --lr 0.01
for stage in 1 2; do
    for count in 2 3 4; do
        agrees "ZeRO $stage: $count ranks have the losses of 1" llama1 $count llama --zero $stage
    done
    while IFS='|' read -r name log_of count model more; do
        # shellcheck disable=SC2086
        agrees "ZeRO $stage: $name" "$log_of" "$count" "$model" --zero $stage $more
    done <<'END'
with dropout, and layers run once more in backward, too|bert1|3|bert|--recompute
of a GLM, too|glm1|3|glm|
Muon's matrices stay whole|muon1|3|llama|--optimizer muon
so do Adafactor's|adafactor1|3|llama|--optimizer adafactor --lr 0.01
without clipping|unclipped1|3|bert|--clip 0
steps of fewer batches than ranks|ramped1|4|bert|--accumulate-ramp 30
END
done
pretrain 3 llama zero3 --zero 2
same_bits 'ZeRO: a second run has the same bits' zero3 3 llama --zero 2
pretrain 2 bert mixed --zero 2 --dtype bf16 --recompute --communication-dtype bf16 --ema 0.9 --eval-every 10
check 'ZeRO 2: in mixed precision, with an average of weights' eval 'test $code = 0 && grep -q eval_loss mixed.log'

# adapt RANKS OUT ARGUMENT...: trains adapters of the LLaMA for 20 steps.
adapt() {
    ranks_of=$1 name=$2
    shift 2
    ranks "$ranks_of" pretrain llama --init llama1.h5 --lora 4 --corpus text.txt --batch 4 --accumulate 6 --seq 24 \
        --steps 20 --lr 0.01 --seed 3 --timeout 120 --overwrite --out "$name.h5" --log "$name.log" "$@"
}
adapt 1 adapted
adapt 3 adapted2 --zero 2
check '--lora with ZeRO 2 has the losses of one process' within 1e-5 adapted adapted2
check 'and says that frozen weights are whole' eval 'grep -q "^memory.* each has the 0.1[0-9] MiB of frozen weights whole$" err'

# What a run of 50 steps wrote: numbers of the shape of the file, and the losses of going on.
pretrain 2 llama sharded --zero 2 --keep-every 25
pretrain 2 llama plain --keep-every 25
run info sharded.h5
sed 's/sharded/NAME/' out >a
run info plain.h5
sed 's/plain/NAME/' out >b
check 'ZeRO: a checkpoint holds what one without holds' eval 'test $code = 0 && cmp -s a b'
for count in 1 2 4; do
    goes_on "ZeRO 1: $count ranks go on with what ZeRO 2 wrote" sharded.25.h5 llama1 $count llama \
        --zero 1
    goes_on "ZeRO 2: $count ranks go on with what 2 wrote without" plain.25.h5 llama1 $count llama \
        --zero 2
done
pretrain 3 bert averaged --zero 2 --ema 0.9 --keep-every 25 --eval-every 10
goes_on_alike 'ZeRO 2: a run with an average of weights goes on' averaged.25.h5 averaged 3 bert \
    --zero 2
# The embedding of this one is the output layer, too.
pretrain 3 bert tied --accumulate 3 --keep-every 25
goes_on_alike 'a run with a tied embedding goes on' tied.25.h5 tied 3 bert
cp muon1.h5 go.h5
ranks 3 pretrain llama --resume --zero 2 --steps 55 --out go.h5
check 'ZeRO: three ranks go on with the Muon of one' test "$code" = 0
ranks 1 pretrain llama --resume --steps 60 --out go.h5
check 'and one with theirs' test "$code" = 0

# Embeddings of 8 MiB: shares are cut to chunks of 64 KiB.
sed 's/256/8192/;s/"hidden_size": 32/"hidden_size": 128/' llama.json >wide.json
# memory_of RANKS STAGE: bytes of state and gradients that the run says, in hundredths of MiB.
memory_of() {
    ranks "$1" pretrain llama --config wide.json --corpus text.txt --tokenizer byte --batch 1 \
        --accumulate 4 --seq 24 --steps 1 --overwrite --out wide.h5 --zero "$2"
    sed -n 's/^memory \(.*\) MiB of optimizer state and \(.*\) MiB of gradients .*/\1 \2/p' \
        err | tr -d .
}
memory_of 2 0 >whole
for count in 2 4; do
    for stage in 1 2; do
        memory_of $count $stage >share
        check "ZeRO $stage: optimizer state falls as 1/$count" \
            awk -v n=$count 'NR == FNR { all = $1; next }
                END { exit !(NR == 2 && $1 * n < 1.02 * all && $1 * n > 0.98 * all) }' whole share
    done
    # The buffers hold 3 buckets of a sixteenth of the model each, and as much that comes in.
    check "ZeRO 2: gradients fall as 1/$count, but for the buckets under way" \
        awk -v n=$count 'NR == FNR { all = $2 / 2; next }
            END { exit !(NR == 2 && $2 < 1.02 * (all / n + all * 6 / 16)) }' whole share
done

# ---- Gradients in bf16 ----

pretrain 3 llama bf16 --communication-dtype bf16
check 'gradients travel as bf16' eval 'test $code = 0 && within 1e-3 llama1 bf16 &&
    ! within 1e-7 llama1 bf16'
same_bits 'bf16: a second run has the same bits' bf16 3 llama --communication-dtype bf16
pretrain 3 llama bf16zero --communication-dtype bf16 --zero 2
check 'bf16 and ZeRO' eval 'test $code = 0 && within 1e-3 llama1 bf16zero'

# ---- Running statistics, of a model in C ----

if test -x "$build/tests/test_train"; then
    for count in 2 3; do
        CK_RUN_SUITE=ranks CK_FORK=no mpirun -n $count "$build/tests/test_train" >out 2>err </dev/null
        code=$?
        check "$count ranks: running statistics are the mean of those of the ranks" eval \
            'test $code = 0 && test "$(grep -c "^ok" out)" = $count'
    done
else
    skip 'running statistics' "there is no $build/tests/test_train"
fi

# ---- Resuming ----

pretrain 2 bert kept --keep-every 25
for count in 1 3; do
    goes_on "$count ranks go on with what 2 wrote" kept.25.h5 bert1 $count bert
done
goes_on_alike '2 ranks go on with what they wrote' kept.25.h5 bert2 2 bert

# ---- Threads ----

(
    unset OMP_NUM_THREADS
    cores=$(nproc)
    each=$((cores / 2 > 0 ? cores / 2 : 1))
    pretrain 2 bert threads --steps 1
    grep -q "2 ranks of $each thread" err
)
check 'ranks share the cores of their machine' test $? = 0

# ---- Ranks that differ ----

base='pretrain bert --config bert.json --corpus text.txt --tokenizer vocab.txt --batch 4
    --accumulate 6 --seq 24 --steps 50 --timeout 120'
# differs NAME TEXT ARGUMENT...: two ranks, of which rank 1 has these arguments, too, are refused
# with one line that says TEXT.
differs() {
    name=$1 text=$2
    shift 2
    command="\"\$wengert\" $(echo $base) --out bad.h5"
    each_rank "$command" "$command $*"
    refused_once "$name"
}

# refuses_ranks RANKS NAME TEXT ARGUMENT...: all ranks fail alike, with one line.
refuses_ranks() {
    count=$1 name=$2 text=$3
    shift 3
    # shellcheck disable=SC2086
    ranks "$count" $base --out bad.h5 "$@"
    refused_once "$name"
}

refused_once() {
    grep '^wengert: ' err | grep -v '^wengert: note: ' >said
    check "$1" eval 'test $code = 1 && test "$(wc -l <said)" = 1 && grep -qF -- "$text" said'
    rm -f bad*.h5
}

differs 'another option is told with both values' \
    "differs from rank 0 in --lr: it has '0.5', rank 0" --lr 0.5
check 'the rank is named' grep -q 'rank 1 on' said
differs 'an option that rank 0 has not' "in --patience: it has '3', rank 0 'not given'" --patience 3
differs 'another corpus' 'in the corpus: it has' --corpus other.txt
differs 'another model' 'in the model: it has' --config narrow.json
differs 'another configuration' 'in the configuration: it has' --config dropping.json
mkdir -p there
cp bert.json text.txt there
sed 's/twelve/thirteen/' vocab.txt >there/vocab.txt
text='in the vocabulary: it has'
each_rank "$command" "env -C there $command"
refused_once 'another vocabulary'
differs 'another checkpoint' 'in --out: it has' --out bad2.h5
differs 'a corpus that one rank does not have' 'none.txt' --corpus none.txt
check 'that rank is named' grep -q 'rank 1 on' said
refuses_ranks 3 'a corpus that no rank has' 'cannot read none.txt' --corpus none.txt
refuses_ranks 3 'fewer batches than ranks' '--accumulate 3' --accumulate 2
refuses_ranks 2 'a checkpoint that exists' 'bert1.h5 exists' --out bert1.h5
refuses_ranks 2 'a run that diverges' 'step' --lr 1000 --warmup 0 --schedule constant --clip 0
refuses_ranks 2 'ZeRO 2: so does one there' 'step' --lr 1000 --warmup 0 --schedule constant --clip 0 \
    --zero 2

# ---- Ranks that die, hang and are interrupted ----

# The process of rank $2 that trains $1.h5.
process_of() {
    for process in /proc/[0-9]*; do
        tr '\0' '\n' 2>/dev/null <"$process/cmdline" | grep -qxF "$1.h5" &&
            tr '\0' '\n' 2>/dev/null <"$process/environ" |
            grep -qE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$2\$" && echo "${process#/proc/}"
    done 2>/dev/null | head -n 1
}

# Begins a long run of 3 ranks, and waits until it has saved its first steps.
begin_ranks() {
    long=$1 tries=0
    shift
    # shellcheck disable=SC2086
    mpirun -n 3 "$wengert" $base --steps 100000 --save-every 5 --out "$long.h5" \
        --log "$long.log" "$@" >out 2>err </dev/null &
    job=$!
    while test $tries -lt 240 && test "$(cat "$long.log" 2>/dev/null | wc -l)" -lt 10; do
        sleep 0.5
        tries=$((tries + 1))
    done
}

if ! test -r "/proc/$$/environ"; then
    skip 'ranks that die' 'there is no /proc, in which they are found'
    finish
fi
begin_ranks killed
kill -KILL "$(process_of killed 1)"
wait $job
code=$?
check 'a rank that dies ends the run, with a message' eval \
    'test $code != 0 && cat out err | grep -qi "killed\|signal 9"'
cp killed.h5 resumed.h5
succeeds 'the last checkpoint is good' info killed.h5
ranks 2 pretrain bert --resume --out killed.h5 --steps $(($(wc -l <killed.log) + 5))
check 'fewer ranks go on with it' test "$code" = 0

for stage in 1 2; do
    begin_ranks sharing$stage --zero $stage
    kill -KILL "$(process_of sharing$stage 2)"
    wait $job
    code=$?
    check "ZeRO $stage: a rank that dies ends the run" test "$code" != 0
    ranks 1 pretrain bert --resume --out sharing$stage.h5 --steps $(($(wc -l <sharing$stage.log) + 5))
    check "ZeRO $stage: one process goes on with its last checkpoint" test "$code" = 0
done

begin_ranks hanging --timeout 2
stopped=$(process_of hanging 1)
kill -STOP "$stopped"
wait $job
code=$?
check 'a rank that hangs is found and named, once' eval 'test $code != 0 &&
    test "$(grep -c "^wengert: rank 0 on .*: rank 1 did not come" err)" = 1 &&
    test "$(grep -c "did not come" err)" = 1'
check 'nobody is left' test -z "$(process_of hanging 0)$(process_of hanging 2)"
kill -KILL "$stopped" 2>/dev/null

begin_ranks interrupted
kill -TERM "$(process_of interrupted 2)"
wait $job
check 'a signal to any rank stops all after the step, and saves' grep -q 'interrupted at step' err
ranks 2 pretrain bert --resume --out interrupted.h5 --steps $(($(wc -l <interrupted.log) + 1))
check 'which can be resumed' test "$code" = 0

if test -e /dev/full; then
    # shellcheck disable=SC2086
    ranks 2 $base --out full.h5 --log /dev/full
    grep '^wengert: ' err | grep -v '^wengert: note: ' >said
    check 'a file that rank 0 cannot write ends all ranks' eval \
        'test $code = 1 && test "$(wc -l <said)" = 1 && grep -q "/dev/full" said'
    # shellcheck disable=SC2086
    ranks 2 $base --zero 2 --out full.h5 --overwrite --log /dev/full
    grep '^wengert: ' err | grep -v '^wengert: note: ' >said
    check 'ZeRO 2: so it does there' eval \
        'test $code = 1 && test "$(wc -l <said)" = 1 && grep -q "/dev/full" said'
fi

finish
