#!/bin/sh
# Using trained models by several processes under mpirun: eval, score, embed and translate give what one
# process gives, once; wrong usage is told once; other verbs run on one rank. Prints TAP.
. "$(dirname "$0")/setup.sh"
. "$source/tests/cli/mpirun.sh"
examples=90
. "$source/tests/cli/models.sh"

need_ranks

# ---- Wrong usage, and verbs that are not shared out ----

# once CODE TEXT: the last run left with that code, and said the text once.
once() {
    test "$code" = "$1" && test "$(cat out err | grep -cF -- "$2")" = 1
}

# told_once NAME CODE TEXT ARGUMENT...: by three ranks.
told_once() {
    name=$1 left=$2 text=$3
    shift 3
    ranks 3 "$@"
    check "$name" once "$left" "$text"
}

told_once 'a misspelt verb is told once' 2 "did you mean 'pretrain'?" pretrian
told_once 'so is a missing argument' 2 'RUN.h5 is missing' eval
told_once 'so is a number that is none' 2 "--batch: 'x' is not" pretrain bert --batch x
told_once 'so is an unknown option' 2 'pears' score --pears x
told_once '--help is printed once' 0 'Usage: wengert' --help
told_once '--help of a verb, too' 0 'Usage: wengert translate' translate --help
told_once '--version, too' 0 'wengert ' --version
told_once 'other verbs run on rank 0, which says so' 1 \
    '`wengert info'"'"' runs on rank 0 alone; of 3 ranks' info none.h5
check 'their errors are told once' once 1 'none.h5: No such file'
each_rank '"$wengert" eval a.h5 --corpus a' '"$wengert" eval a.h5 --corpus a --batch x'
check 'wrong usage of one rank names it' once 2 'wengert: rank 1 on '

# ---- The plan of a training, whose ranks measure themselves ----

set -- plan gpt2-tiny --batch 2 --seq 16 --vocab 512 --ranks 8 --accumulate 6
ranks 3 "$@" --ranks-per-machine 8 --json
# row RANKS KEY: a figure of that row.
row() {
    tr -d '\n' <out | tr '{' '\n' | sed -n "s/.*\"ranks\": $1,.*\"$2\": \([^,} ]*\).*/\1/p"
}
check 'plan has a row of the ranks that measured' eval 'test $code = 0 && grep -q "\"measured_ranks\": 3," out &&
    test "$(row 3 sent_mib)" != "" && test "$(row 8 sent_mib)" != ""'
check 'an exchange of more ranks of the machine takes what its bytes do' awk "BEGIN {
    found = $(row 8 exchange_ms) / $(row 3 exchange_ms); exit !(found > 3.49 && found < 3.51) }"
for how in '--zero 1' '--zero 2 --communication-dtype bf16'; do
    # shellcheck disable=SC2086
    ranks 2 "$@" $how
    check "plan measures with $how" once 0 'measured together: 2 ranks'
done
ranks 2 plan gpt2-tiny --optimizer nix
check 'what plan lacks is told once' once 1 "there is no 'nix'"

# ---- Models ----

for objective in $objectives; do
    set -- --batch 4 --steps 5
    test "$objective" = translation && set -- --batch 100 --steps 60
    train "$objective" "$@" --lr 0.01 --out "$objective.h5"
    check "$objective: a model is there" test "$code" = 0
done

# ---- eval ----

# measures MODEL FILE... ARGUMENT...: 2 and 5 ranks print what one process prints.
measures() {
    model=$1
    shift
    run eval "$model.h5" --corpus "$@"
    cp out wanted
    check "eval $model: one process measures" eval 'test $code = 0 && test -s wanted'
    for several in 2 5; do
        ranks $several eval "$model.h5" --corpus "$@"
        check "eval $model: $several ranks have the same figures, once" eval 'test $code = 0 && cmp -s out wanted'
    done
}
for objective in $objectives; do
    files=$(field "$objective" 3) length=$(field "$objective" 4)
    case $objective in
    gpt | gated) continue ;;
    translation) set -- --batch 100 ;;
    *) set -- --batch 4 --seq "$length" ;;
    esac
    # shellcheck disable=SC2086
    measures "$objective" $files "$@"
    case $objective in
    classify | multi-label | regression | tokens | squad | cloze | translation) ;;
    *) continue ;;
    esac
    # shellcheck disable=SC2086
    run eval "$objective.h5" --corpus $files "$@" --predictions one.txt
    rm -f three.txt
    # shellcheck disable=SC2086
    ranks 3 eval "$objective.h5" --corpus $files "$@" --predictions three.txt
    check "eval $objective: 3 ranks have the same predictions" eval \
        'test $code = 0 && cmp -s one.txt three.txt'
done
measures causal-lm text.txt --batch 2 --seq 24 --by-document
# ranks_agree NAME RANKS ARGUMENT...: so many ranks print what one process prints.
ranks_agree() {
    name=$1 several=$2
    shift 2
    run "$@"
    cp out wanted
    ranks "$several" "$@"
    check "$name" eval 'test $code = 0 && test -s out && cmp -s out wanted'
}

ranks_agree 'eval: --json, too' 2 eval causal-lm.h5 --corpus text.txt --json

# ---- score ----

awk '{ printf "{\"sentence_good\": \"two %s\", \"sentence_bad\": \"%s two\"}\n", $0, $0 }' lines.txt |
    head -n 60 >pairs.jsonl
for model in masked-lm blank-infilling causal-lm; do
    ranks_agree "score $model: 3 ranks have the same numbers, in order" 3 score $model.h5 \
        --text lines.txt --batch-tokens 200
    ranks_agree "score $model: 2 ranks choose the same sentences" 2 score $model.h5 \
        --pairs pairs.jsonl
done

# ---- embed ----

for model in masked-lm causal-lm; do
    run embed $model.h5 --text lines.txt --out one.npy
    check "embed $model: one process embeds" eval 'test $code = 0 && test -s one.npy'
    for several in 2 5; do
        rm -f several.npy
        ranks $several embed $model.h5 --text lines.txt --out several.npy
        check "embed $model: $several ranks have the same vectors" eval \
            'test $code = 0 && cmp -s one.npy several.npy'
    done
    ranks_agree "embed $model: 3 ranks rank the lines alike, once" 3 embed $model.h5 \
        --text lines.txt --similar 'one two'
done
told_once 'embed: a text that is not there is told once' 1 'none.txt' embed masked-lm.h5 \
    --text none.txt --out none.npy

# ---- translate ----

"$wengert" translate translation.h5 --batch 4 <source.txt >wanted 2>err
for count in 2 3; do
    mpirun -n $count "$wengert" translate translation.h5 --batch 4 <source.txt >out 2>err
    code=$?
    check "translate: $count ranks give the same lines, in order" eval 'test $code = 0 && cmp -s out wanted'
done
ranks_agree 'translate: texts of the command line, too' 2 translate translation.h5 --batch 1 \
    'one two' 'ten' 'six'
ranks 2 translate translation.h5
check 'translate: no text is told once' once 1 'there is no text on standard input'
{
    head -n 20 source.txt
    printf 'a \377 b\n'
    tail -n 20 source.txt
} >broken.from
mpirun -n 3 "$wengert" translate translation.h5 --batch 4 <broken.from >out 2>err
code=$?
check 'translate: a line that one rank cannot read is told once, with its number' once 1 'text 21'

# ---- Ranks that differ ----

each_rank '"$wengert" score causal-lm.h5 --text lines.txt' \
    '"$wengert" score causal-lm.h5 --text text.txt'
check 'ranks with other commands are refused' once 1 'rank 1 on'
mkdir -p there
cp causal-lm.h5 there
sed 's/e/a/' lines.txt >there/lines.txt
command='"$wengert" score causal-lm.h5 --text lines.txt'
each_rank "$command" "env -C there $command"
check 'ranks with other texts, too' once 1 'in the contents of lines.txt: it has'
cp masked-lm.h5 there/causal-lm.h5
command='"$wengert" eval causal-lm.h5 --corpus lines.txt'
each_rank "$command" "env -C there $command"
check 'ranks with other models, too' once 1 'in the contents of causal-lm.h5: it has'
ranks 2 eval causal-lm.h5 --suite .
check 'a suite wants one process' once 1 'run it without mpirun'

# ---- Evaluations in a training ----

run finetune masked-lm.h5 --task classify --train labels.tsv --eval labels.tsv --batch 4 \
    --accumulate 2 --seq 48 --steps 6 --eval-every 2 --lr 0.01 --log one.log --out one.h5
grep 'labels  ' out >wanted
ranks 2 finetune masked-lm.h5 --task classify --train labels.tsv --eval labels.tsv --batch 4 \
    --accumulate 2 --seq 48 --steps 6 --eval-every 2 --lr 0.01 --log two.log --out two.h5
check 'the ranks of a training measure the same' eval 'test $code = 0 && grep "labels  " out | cmp -s - wanted'
check 'each evaluation has its line in the log' test "$(grep -c eval_accuracy two.log)" = 3
finish
