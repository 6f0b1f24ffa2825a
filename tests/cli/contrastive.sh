#!/bin/sh
# `wengert finetune --task contrastive' as a user runs it: lines and pairs of texts, pairs with numbers,
# resuming, use by `wengert embed'; bad input. Prints TAP. WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-contrastive.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

head -n 900 "$source/corpus/books/alice-in-wonderland.txt" >text.txt
cat >bert.json <<END
{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 80, "hidden_dropout_prob": 0.1,
 "attention_probs_dropout_prob": 0.1}
END
cat >modernbert.json <<END
{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2,
 "intermediate_size": 24, "max_position_embeddings": 80, "local_attention": 8}
END
for model in bert modernbert; do
    run pretrain $model --corpus text.txt --config $model.json --batch 4 --seq 32 --steps 2 --out $model.h5
    check "$model is pretrained" test $code = 0
done
grep -E '^.{20,}' text.txt | head -n 64 | tr '\t' ' ' >lines.txt
for thing in table door garden river fire tree house road; do
    printf 'the rabbit was near the %s .\tlong ears by a %s\n' $thing $thing
    printf 'the queen saw a %s !\ther majesty looked at one %s\n' $thing $thing
done >pairs.tsv
awk -F '\t' '{ print $1 "\t" $2 "\t" 4.5; print $1 "\tit was late\t" 0.5 }' pairs.tsv >scored.tsv
{
    printf 'index\tsentence1\tsentence2\tscore\n'
    awk '{ print NR "\t" $0 }' scored.tsv
} >glue.tsv

contrast() {
    model=$1 train=$2 eval=$3
    shift 3
    run finetune $model.h5 --task contrastive --train "$train" --eval "$eval" --batch 8 --seq 32 --lr 0.01 "$@"
}
for model in bert modernbert; do
    contrast $model lines.txt lines.txt --epochs 4 --out $model-lines.h5 --json
    check "$model learns from lines alone" eval 'test $code = 0 && grep -q "\"accuracy\": 1.0" out &&
        grep -q "64 texts, each its own partner by dropout; 64 texts to measure on" err &&
        ! grep -q "\"spearman\"" out'
    contrast $model pairs.tsv pairs.tsv --epochs 40 --out $model-pairs.h5
    check "$model learns which texts are pairs" eval 'test $code = 0 &&
        awk "/^texts/ { sub(\",\", \"\", \$3); share = \$(NF - 3) } END { exit !(share > 50) }" out &&
        grep -q "16 pairs of texts; 16 pairs to measure on" err'
done
run info modernbert-lines.h5
check 'a model without dropout has some from then on' grep -q 'mlp_dropout  *0.1' out
contrast modernbert lines.txt lines.txt --steps 1 --dropout 0 --out dry.h5
run info dry.h5
check 'unless none is wanted' grep -Eq 'mlp_dropout  *0(\.0)?$' out

# ---- Similarity ----

contrast bert pairs.tsv scored.tsv --epochs 40 --out scored.h5
check 'pairs with numbers are measured by correlation' eval 'test $code = 0 &&
    grep -q "^similarity  *correlation 0\.[5-9][0-9]* (Spearman) of 32 pairs" out'
cp out wanted
run eval scored.h5 --corpus glue.tsv --seq 32 --batch 5
check 'the same of a file of GLUE, in other batches' cmp out wanted
run eval scored.h5 --corpus scored.tsv --seq 32 --predictions cosines.txt --json
check 'predictions are cosines' eval 'test $code = 0 && test "$(wc -l <cosines.txt)" = 32 &&
    awk "\$1 < -1 || \$1 > 1 { exit 1 }" cosines.txt && grep -q "\"spearman\": 0\." out'
cut -f 1 pairs.tsv >first.txt
run embed scored.h5 --text first.txt --similar 'her majesty looked at one river' --top 1
check 'embed uses the model' eval 'test $code = 0 && grep -q "the queen saw a river" out'
contrast bert pairs.tsv pairs.tsv --epochs 1 --pooling cls --out cls.h5
check 'the vector may be that of [CLS]' test $code = 0
contrast scored pairs.tsv scored.tsv --epochs 1 --out more.h5
check 'a model of this task can be trained further' test $code = 0

# ---- Resuming ----

losses() {
    sed 's/, "tokens_per_s": [^,}]*//' "$@" | sort -u | sort -t: -k2n
}
contrast bert lines.txt lines.txt --epochs 3 --seed 4 --out whole.h5 --log whole.log
"$wengert" finetune bert.h5 --task contrastive --train lines.txt --eval lines.txt --batch 8 --seq 32 --lr 0.01 \
    --epochs 3 --seed 4 --out parts.h5 --log parts.log --save-every 1 >out 2>err &
while test ! -s parts.log && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -9 $! 2>/dev/null
wait 2>/dev/null
run finetune --task contrastive --resume --out parts.h5 --log parts.log
losses whole.log >a
losses parts.log >b
check 'a run that was killed goes on bit for bit' cmp a b

# ---- Mistakes ----

bad() {
    name=$1 text=$2
    shift 2
    refuses "$name" "$text" finetune bert.h5 --task contrastive --seq 32 --out bad.h5 "$@"
}
: >empty.txt
printf 'one\ntwo\tthree\n' >ragged.txt
printf 'a text\t3\t4\t5\n' >wide.tsv
bad 'an empty file' 'empty.txt holds no text' --train empty.txt --eval lines.txt
bad 'a file that is not there' 'cannot read none.txt' --train none.txt --eval lines.txt
bad 'another number of texts in a line' 'ragged.txt, line 2: one text' --train ragged.txt --eval lines.txt
bad 'held-out lines with too many columns' 'wide.tsv, line 1' --train lines.txt --eval wide.tsv
bad 'a batch of one' '2 or more' --train lines.txt --eval lines.txt --batch 1
misused '--temperature' finetune bert.h5 --task contrastive --train lines.txt --eval lines.txt --out bad.h5 \
    --temperature 0
refuses 'predictions without numbers' 'the text has none' \
    eval scored.h5 --corpus pairs.tsv --predictions bad.txt
run finetune bert.h5 --task regression --train scored.tsv --eval scored.tsv --seq 32 --steps 1 --out number.h5
refuses 'a model of another task' 'it is fine-tuned for --task regression' \
    finetune number.h5 --task contrastive --train lines.txt --eval lines.txt --out bad.h5
run pretrain gpt --corpus text.txt --vocab-size 300 --batch 2 --seq 32 --steps 1 --out gpt.h5
refuses 'a decoder' 'it holds a gpt model' \
    finetune gpt.h5 --task contrastive --train lines.txt --eval lines.txt --out bad.h5

finish
