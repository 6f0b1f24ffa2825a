#!/bin/sh
# What is particular to `wengert finetune --task contrastive': lines and pairs of texts, pairs with
# numbers, use by `wengert embed'; bad input. Prints TAP.
. "$(dirname "$0")/setup.sh"

pretrain_tiny bert 80
pretrain_tiny modernbert 80
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
shows 'a model without dropout has some from then on' 'mlp_dropout  *0.1' info modernbert-lines.h5
contrast modernbert lines.txt lines.txt --steps 1 --dropout 0 --out dry.h5
shows 'unless none is wanted' 'mlp_dropout  *0\(\.0\)*$' info dry.h5

# ---- Similarity ----

contrast bert pairs.tsv scored.tsv --epochs 40 --out scored.h5
check 'pairs with numbers are measured by correlation' has \
    '^similarity  *correlation 0\.[5-9][0-9]* (Spearman) of 32 pairs'
cp out wanted
run eval scored.h5 --corpus glue.tsv --seq 32 --batch 5
check 'the same of a file of GLUE, in other batches' cmp out wanted
run eval scored.h5 --corpus scored.tsv --seq 32 --predictions cosines.txt --json
check 'predictions are cosines' eval 'test $code = 0 && test "$(wc -l <cosines.txt)" = 32 &&
    awk "\$1 < -1 || \$1 > 1 { exit 1 }" cosines.txt && grep -q "\"spearman\": 0\." out'
cut -f 1 pairs.tsv >first.txt
shows 'embed uses the model' 'the queen saw a river' embed scored.h5 --text first.txt \
    --similar 'her majesty looked at one river' --top 1
contrast bert pairs.tsv pairs.tsv --epochs 1 --pooling cls --out cls.h5
check 'the vector may be that of [CLS]' test $code = 0
contrast scored pairs.tsv scored.tsv --epochs 1 --out more.h5
check 'a model of this task can be trained further' test $code = 0

# ---- Mistakes ----

printf 'one\ntwo\tthree\n' >ragged.txt
printf 'a text\t3\t4\t5\n' >wide.tsv
refuses_each finetune bert.h5 --task contrastive --seq 32 --out bad.h5 <<'END'
another number of texts in a line | ragged.txt, line 2 | --train ragged.txt --eval lines.txt
held-out lines with too many columns | wide.tsv, line 1 | --train lines.txt --eval wide.tsv
END
refuses 'predictions without numbers' 'the text has none' \
    eval scored.h5 --corpus pairs.tsv --predictions bad.txt
run finetune bert.h5 --task regression --train scored.tsv --eval scored.tsv --seq 32 --steps 1 --out number.h5
refuses 'a model of another task' 'it is fine-tuned for --task regression' \
    finetune number.h5 --task contrastive --train lines.txt --eval lines.txt --out bad.h5

finish
