#!/bin/sh
# `pretrain --dry-run' and `finetune --dry-run': the memory that is told is that of a real run, and
# nothing is written. Prints TAP.
. "$(dirname "$0")/setup.sh"
book 1500 >text.txt

# The number of a key in the JSON of a file.
number_of() {
    sed -n "s/^ *\"$1\": \([0-9.e+]*\),\{0,1\}$/\1/p" "$2"
}
# within PERCENT A B
within() {
    echo "$1 $2 $3" | awk '{ exit !($2 > 0 && $3 > 0 && 100 * ($2 / $3 - 1) <= $1 && 100 * ($3 / $2 - 1) <= $1) }'
}

# compares WHAT ARGUMENT...: a dry run, and a real one of 4 steps with evaluations.
compares() {
    what=$1
    shift
    find . ! -name out ! -name err ! -name before ! -name after | sort >before
    run "$@" --dry-run --json
    find . ! -name out ! -name err ! -name before ! -name after | sort >after
    cp out dry.json
    check "$what: a dry run writes nothing" eval 'test $code = 0 && cmp -s before after'
    run "$@" --out real.h5 --overwrite --json
    check "$what: the peak of memory is that of a run, within 10 %" eval 'test $code = 0 &&
        within 10 $(number_of peak dry.json) $(number_of peak_bytes out)'
    check "$what: its parts are the whole" eval 'echo "$(number_of weights dry.json) \
        $(number_of gradients dry.json) $(number_of optimizer dry.json) $(number_of activations dry.json) \
        $(number_of other dry.json) $(number_of peak dry.json)" |
        awk "{ exit !(\$1 + \$2 + \$3 + \$4 + \$5 == \$6 && \$4 > 0 && \$5 >= 0) }"'
    check "$what: parameters" test "$(number_of parameters dry.json)" = "$(number_of parameters out)"
    rm -f real.h5
}

set -- --corpus text.txt --vocab-size 400 --steps 4 --eval-every 2 --batch 8 --seq 64
compares gpt pretrain gpt --preset gpt2-tiny "$@"
check 'gpt: tokens of a step' test "$(number_of step_tokens dry.json)" = 512.0
compares 'bert, with SGD' pretrain bert --preset bert-tiny "$@" --optimizer sgd
compares 'llama, in two batches a step' pretrain llama --preset llama-260k "$@" --accumulate 2
check 'tokens of two batches' test "$(number_of step_tokens dry.json)" = 1024.0
compares 'gpt, recomputed' pretrain gpt --preset gpt2-tiny "$@" --recompute

run pretrain bert --preset bert-tiny "$@" --out run.h5
printf 'a good day\tyes\na bad day\tno\n' >labels.tsv
set -- finetune run.h5 --task classify --train labels.tsv --eval labels.tsv --batch 2 --seq 16 --steps 12
compares 'fine-tuning' "$@"
check 'an epoch of two examples is one batch' test "$(number_of epoch_batches dry.json)" = 1
run "$@" --dry-run
check 'in words' eval 'grep -q "nothing is written" out && grep -qE "weights +[0-9.]+ [KM]iB" out &&
    grep -q "a step of .*mean of 2 real steps" out'
run pretrain gpt --preset gpt2-tiny --corpus text.txt --vocab-size 400 --steps 1 --dry-run --tokens tokens.h5
check 'no token file is written' eval 'test $code = 0 && ! test -e tokens.h5'

misused 'not for one that is resumed' pretrain gpt --resume --out run.h5 --dry-run
refuses 'a text that is not there' 'none.txt' pretrain gpt --corpus none.txt --dry-run
finish
