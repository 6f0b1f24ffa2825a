#!/bin/sh
# Using trained models by several processes under mpirun: eval, score, embed and translate give what one
# process gives, once; wrong usage is told once; other verbs run on one rank. Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-ranks-use.XXXXXX") || exit 1
mkdir "$work/.mpi" # of this mpirun: runs beside each other would share /tmp
export TMPDIR="$work/.mpi"
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"
. "$source/tests/cli/mpirun.sh"
. "$source/tests/cli/reversed_pairs.sh"

if ! command -v mpirun >/dev/null; then
    skip 'several ranks' 'there is no mpirun; Debian has it in openmpi-bin'
    finish
fi
ranks 2 info none.h5
if grep -qE 'was built without MPI|MPI sees one' err; then
    check 'what MPI is wrong is told once' test "$(grep -c '^wengert: ' err)" = 1
    skip 'several ranks' "$(grep -oE 'built without MPI|MPI sees one' err | head -n 1)"
    finish
fi

# ---- Wrong usage, and verbs that are not shared out ----

# once CODE TEXT: the last run left with that code, and said the text once.
once() {
    test "$code" = "$1" && test "$(cat out err | grep -cF -- "$2")" = 1
}

ranks 3 pretrian
check 'a misspelt verb is told once' once 2 "did you mean 'pretrain'?"
ranks 3 eval
check 'so is a missing argument' once 2 'RUN.h5 is missing'
ranks 3 pretrain bert --batch x
check 'so is a number that is none' once 2 "--batch: 'x' is not"
ranks 3 score --pears x
check 'so is an unknown option' once 2 'pears'
ranks 3 --help
check '--help is printed once' once 0 'Usage: wengert'
ranks 3 translate --help
check '--help of a verb, too' once 0 'Usage: wengert translate'
ranks 3 --version
check '--version, too' eval 'test $code = 0 && test "$(wc -l <out)" = 1'
ranks 3 info none.h5
check 'other verbs run on rank 0, which says so' once 1 '`wengert info'"'"' runs on rank 0 alone; of 3 ranks'
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

head -n 900 "$source/corpus/books/alice-in-wonderland.txt" >text.txt
sed -n 900,1100p "$source/corpus/books/alice-in-wonderland.txt" >held.txt
write_pairs 300 1 train
write_pairs 90 77 held
cat >bert.json <<END
{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 80}
END
cat >glm.json <<END
{"vocab_size": 300, "hidden_size": 16, "num_layers": 1, "num_attention_heads": 2, "max_sequence_length": 80}
END
cat >llama.json <<END
{"model_type": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 32,
 "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 32}
END
cat >t5.json <<END
{"model_type": "t5", "vocab_size": 400, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
END
cat >transformer.json <<END
{"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
 "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "dropout": 0,
 "max_position_embeddings": 32}
END
head -n 200 text.txt | awk 'NF > 4 { n++; label = n % 3 ? "odd" : "even"; print $0 "\t" label }' >labels.tsv
awk 'NF > 4 { n++; print $0 "\t" n % 7 }' text.txt | head -n 90 >numbers.tsv
awk 'NF > 4 { n++; print $0 "\t" (n % 2 ? "red" : "") (n % 6 == 3 ? "," : "") (n % 3 ? "" : "blue") }' \
    text.txt | head -n 90 >colours.tsv
head -n 60 text.txt | tr -cs 'a-zA-Z\n' ' ' | awk 'NF { for (i = 1; i <= NF; i++)
    print $i "\t" (length($i) > 4 ? "B-LONG" : "O"); print "" }' >tags.txt
awk 'BEGIN {
    printf "{\"data\": [{\"paragraphs\": ["
    for (i = 1; i <= 24; i++)
        printf "%s{\"context\": \"the cat number %d sat on mat %d .\", \"qas\": [{\"id\": \"q%d\", " \
            "\"question\": \"what sat ?\", \"answers\": [{\"text\": \"cat\", \"answer_start\": 4}]}]}", \
            (i > 1 ? ", " : ""), i, i * 3, i
    print "]}]}"
}' >squad.json

# make NAME ARGUMENT...: a model of a few steps, NAME.h5.
make() {
    model=$1
    shift
    run "$@" --out "$model.h5"
    check "$model: a model is there" test "$code" = 0
}
make bert pretrain bert --corpus text.txt --config bert.json --batch 4 --seq 32 --steps 5
make mlm pretrain bert --objective mlm --corpus text.txt --config bert.json --batch 4 --seq 32 --steps 5
make glm pretrain glm --corpus text.txt --config glm.json --batch 4 --seq 32 --steps 5
make llama pretrain llama --corpus text.txt --tokenizer byte --config llama.json --batch 4 --seq 32 --steps 5
make t5 pretrain t5 --corpus text.txt --config t5.json --batch 4 --seq 32 --steps 5
make transformer pretrain transformer --corpus train.from train.to --config transformer.json --vocab-size 300 \
    --batch 512 --seq 32 --steps 60 --lr 0.01
tune='--batch 4 --seq 48 --lr 0.01 --steps 5'
make classify finetune bert.h5 --task classify --train labels.tsv --eval labels.tsv $tune
make regression finetune bert.h5 --task regression --train numbers.tsv --eval numbers.tsv $tune
make multi-label finetune bert.h5 --task multi-label --train colours.tsv --eval colours.tsv $tune
make tokens finetune bert.h5 --task tokens --train tags.txt --eval tags.txt $tune
make squad finetune bert.h5 --task squad --train squad.json --eval squad.json --batch 4 --seq 80 --steps 5
make contrastive finetune bert.h5 --task contrastive --train held.txt --eval held.txt $tune
make cloze finetune glm.h5 --task cloze --pattern '{text} It was [MASK] .' --verbalizer odd=one \
    --verbalizer even=two --train labels.tsv --eval labels.tsv $tune

# ---- eval ----

# measures MODEL FILE... [-- ARGUMENT...]: 2 and 5 ranks print what one process prints.
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
for model in bert mlm glm llama t5; do
    measures $model held.txt --batch 4 --seq 32
done
measures llama held.txt --batch 2 --seq 32 --by-document
measures transformer held.from held.to --batch 100
for model in classify regression multi-label tokens squad cloze; do
    case $model in
    classify | cloze) file=labels.tsv ;;
    regression) file=numbers.tsv ;;
    multi-label) file=colours.tsv ;;
    tokens) file=tags.txt ;;
    squad) file=squad.json ;;
    esac
    measures "$model" $file --batch 4
    run eval "$model.h5" --corpus $file --batch 4 --predictions one.txt
    rm -f three.txt
    ranks 3 eval "$model.h5" --corpus $file --batch 4 --predictions three.txt
    check "eval $model: 3 ranks have the same predictions" eval 'test $code = 0 && cmp -s one.txt three.txt'
done
measures contrastive held.txt --batch 4
run eval transformer.h5 --corpus held.from held.to --predictions one.txt
ranks 3 eval transformer.h5 --corpus held.from held.to --predictions three.txt
check 'eval transformer: 3 ranks have the same translations' eval 'test $code = 0 && cmp -s one.txt three.txt'
run eval llama.h5 --corpus held.txt --json
cp out wanted
ranks 2 eval llama.h5 --corpus held.txt --json
check 'eval: --json, too' cmp -s out wanted

# ---- score ----

grep -v '^$' held.txt >lines.txt
awk '{ printf "{\"sentence_good\": \"the cat %d sat .\", \"sentence_bad\": \"sat %d cat the .\"}\n", NR, NR }' \
    lines.txt | head -n 60 >pairs.jsonl
for model in bert glm llama; do
    cut -c 1-30 lines.txt >short.txt
    run score $model.h5 --text short.txt --batch-tokens 200
    cp out wanted
    ranks 3 score $model.h5 --text short.txt --batch-tokens 200
    check "score $model: 3 ranks have the same numbers, in order" eval 'test $code = 0 && cmp -s out wanted'
    run score $model.h5 --pairs pairs.jsonl
    cp out wanted
    ranks 2 score $model.h5 --pairs pairs.jsonl
    check "score $model: 2 ranks choose the same sentences" eval 'test $code = 0 && cmp -s out wanted'
done

# ---- embed ----

for model in bert llama; do
    cut -c 1-30 lines.txt >short.txt
    run embed $model.h5 --text short.txt --out one.npy
    check "embed $model: one process embeds" eval 'test $code = 0 && test -s one.npy'
    for several in 2 5; do
        rm -f several.npy
        ranks $several embed $model.h5 --text short.txt --out several.npy
        check "embed $model: $several ranks have the same vectors" eval \
            'test $code = 0 && cmp -s one.npy several.npy'
    done
    run embed $model.h5 --text short.txt --similar 'the cat'
    cp out wanted
    ranks 3 embed $model.h5 --text short.txt --similar 'the cat'
    check "embed $model: 3 ranks rank the lines alike, once" eval 'test $code = 0 && cmp -s out wanted'
done
ranks 2 embed bert.h5 --text none.txt --out none.npy
check 'embed: a text that is not there is told once' once 1 'none.txt'

# ---- translate ----

"$wengert" translate transformer.h5 --batch 4 <held.from >wanted 2>err
for count in 2 3; do
    mpirun -n $count "$wengert" translate transformer.h5 --batch 4 <held.from >out 2>err
    code=$?
    check "translate: $count ranks give the same lines, in order" eval 'test $code = 0 && cmp -s out wanted'
done
run translate transformer.h5 'a b c' 'd e' 'f'
cp out wanted
ranks 2 translate transformer.h5 --batch 1 'a b c' 'd e' 'f'
check 'translate: texts of the command line, too' cmp -s out wanted
ranks 2 translate transformer.h5
check 'translate: no text is told once' once 1 'there is no text on standard input'
{
    head -n 20 held.from
    printf 'a \377 b\n'
    tail -n 20 held.from
} >broken.from
mpirun -n 3 "$wengert" translate transformer.h5 --batch 4 <broken.from >out 2>err
code=$?
check 'translate: a line that one rank cannot read is told once, with its number' once 1 'text 21'

# ---- Ranks that differ ----

each_rank '"$wengert" score llama.h5 --text lines.txt' '"$wengert" score llama.h5 --text held.txt'
check 'ranks with other commands are refused' once 1 'rank 1 on'
mkdir -p there
cp llama.h5 there
sed 's/e/a/' lines.txt >there/lines.txt
command='"$wengert" score llama.h5 --text lines.txt'
each_rank "$command" "env -C there $command"
check 'ranks with other texts, too' once 1 'in the contents of lines.txt: it has'
cp bert.h5 there/llama.h5
command='"$wengert" eval llama.h5 --corpus lines.txt'
each_rank "$command" "env -C there $command"
check 'ranks with other models, too' once 1 'in the contents of llama.h5: it has'
ranks 2 eval llama.h5 --suite .
check 'a suite wants one process' once 1 'run it without mpirun'

# ---- Evaluations in a training ----

run finetune bert.h5 --task classify --train labels.tsv --eval labels.tsv --batch 4 --accumulate 2 --seq 48 \
    --steps 6 --eval-every 2 --lr 0.01 --log one.log --out one.h5
grep 'labels  ' out >wanted
ranks 2 finetune bert.h5 --task classify --train labels.tsv --eval labels.tsv --batch 4 --accumulate 2 --seq 48 \
    --steps 6 --eval-every 2 --lr 0.01 --log two.log --out two.h5
check 'the ranks of a training measure the same' eval 'test $code = 0 && grep "labels  " out | cmp -s - wanted'
check 'each evaluation has its line in the log' test "$(grep -c eval_accuracy two.log)" = 3
finish
