#!/bin/sh
# `wengert pretrain --objective mlm' and `hybrid' as a user runs them: on one document, resumed, measured,
# filled and scored; bad input. Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-mlm.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

i=0
while test $i -lt 120; do
    echo 'one two three four five six .'
    echo 'seven eight nine ten eleven twelve .'
    i=$((i + 1))
done >text.txt
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . one two three four five six seven eight nine \
    ten eleven twel '##ve' >vocab.txt
cat >bert.json <<END
{"vocab_size": 19, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 64, "max_position_embeddings": 24, "hidden_dropout_prob": 0,
 "attention_probs_dropout_prob": 0}
END
cat >modernbert.json <<END
{"vocab_size": 19, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 24, "pad_token_id": 0}
END

run pretrain bert --objective mlm --corpus text.txt --eval text.txt --tokenizer vocab.txt \
    --config bert.json --batch 8 --seq 24 --steps 3 --out bert.h5
check "one document trains a BERT by mlm" test "$code" = 0
run pretrain modernbert --objective mlm --corpus text.txt --eval text.txt --tokenizer vocab.txt \
    --config modernbert.json --batch 8 --seq 24 --lr 0.01 --steps 600 --mask-unit word --json --out mlm.h5
check "and a ModernBERT" test "$code" = 0
check "the results have the masked loss and no pairs" \
    sh -c 'grep -q "\"mlm_loss\": [01]" out && grep -q "\"mlm_tokens\"" out && ! grep -q nsp out'
run fill mlm.h5 'seven eight nine [MASK] eleven twelve .'
check "it fills a word" sh -c 'grep -q "^    ten" out'
run eval mlm.h5 --corpus text.txt --seq 24
check "it is measured as it was trained" sh -c 'grep -q "^masked words     loss [01]" out'
run pretrain modernbert --resume --steps 620 --out mlm.h5
check "it is resumed without naming the objective" test "$code" = 0

run pretrain modernbert --objective hybrid --corpus text.txt --eval text.txt --tokenizer vocab.txt \
    --config modernbert.json --batch 8 --seq 24 --lr 0.01 --steps 600 --causal-share 0.25 \
    --mask-unit span --span-mean 2 --json --out hybrid.h5
check "a ModernBERT is trained by hybrid" test "$code" = 0
check "the results have both losses" \
    sh -c 'grep -q "\"mlm_loss\": 0" out && grep -q "\"causal_loss\": 0" out'
run fill hybrid.h5 'seven eight nine [MASK] eleven twelve .'
check "it fills a word from the position before" sh -c 'grep -q "^    ten" out'
echo '{"sentence_good": "one two three four five six .", "sentence_bad": "one two three four five two ."}' \
    >pairs.jsonl
for how in '' --causal --within-words; do
    run score hybrid.h5 --pairs pairs.jsonl $how --json
    check "it tells a good sentence from a bad one ${how:-by masks}" \
        sh -c 'grep -q "\"accuracy\": 1.0" out'
done
run score hybrid.h5 --text text.txt --limit 1 --causal
causal=$(cat out)
run score hybrid.h5 --text text.txt --limit 1
check "its two scores differ" test "$causal" != "$(cat out)"

i=0
while test $i -lt 40; do
    echo 'one twelve twelve twelve ten .'
    i=$((i + 1))
done >domain.txt
run pretrain bert --objective mlm --init bert.h5 --corpus domain.txt --eval domain.txt \
    --extend-vocab 5 --batch 8 --seq 24 --steps 3 --out domain.h5
check "--extend-vocab adds tokens of a new text" \
    sh -c 'grep -q "1 tokens are added to the 19 of" err && grep -q "20 tokens in its vocabulary" err'
run tokenizer encode domain.h5 --tokens 'twelve ten'
check "which are used" test "$(cat out)" = 'twelve ten'
run pretrain bert --resume --steps 4 --out domain.h5
check "and stay when the run is resumed" test "$code" = 0
run pretrain modernbert --objective hybrid --corpus text.txt --eval text.txt --tokenizer vocab.txt \
    --config modernbert.json --batch 8 --seq 24 --seq-ramp 6 --steps 8 --out ramp.h5
check "sequences grow in the course of a run" test "$code" = 0
refuses "a ramp of sequences that do not divide" "no multiple of 4" pretrain bert --objective mlm \
    --corpus text.txt --tokenizer vocab.txt --config bert.json --seq 22 --seq-ramp 4 --out none.h5
refuses "a ramp of sentence pairs" "those of masked-lm cannot be cut" pretrain bert \
    --objective masked-lm --corpus text.txt --config bert.json --seq-ramp 4 --out none.h5
refuses "an extension of nothing" "name it by --init" pretrain bert --objective mlm --corpus domain.txt \
    --extend-vocab 5 --out none.h5
refuses "--causal of a model of mlm" "--causal is for a model of hybrid" \
    score mlm.h5 --pairs pairs.jsonl --causal
refuses "hybrid for a model that cannot be causal" "has no causal attention" \
    pretrain bert --objective hybrid --corpus text.txt --eval text.txt --tokenizer vocab.txt \
    --config bert.json --seq 24 --steps 2 --out bad.h5
refuses "a tokenizer without [MASK]" "has not all of [CLS], [SEP] and [MASK]" \
    pretrain bert --objective mlm --corpus text.txt --eval text.txt --tokenizer byte --seq 24 \
    --preset bert-tiny --steps 2 --out bad.h5
run pretrain bert --objective mlm --corpus text.txt --mask-unit letter --out bad.h5
check "a unit that there is not lists those that there are" left_with 2 "token, word and span are there"
run pretrain bert --objective mlm --corpus text.txt --masked-share 2 --out bad.h5
check "a share above 1 is wrong usage" left_with 2 "masked-share"
misused "--causal-share: '0' is not a number above 0 and below 1" pretrain modernbert --objective hybrid \
    --corpus text.txt --causal-share 0 --out bad.h5
# A word longer than a sequence: whole-word masking predicts nothing in such a sequence, which then weighs nothing
# among the batches of a step.
long=twel$(printf 've%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
i=0
while test $i -lt 40; do
    printf 'one two three four five six .\nseven eight nine ten eleven twelve .\n%s %s %s\n' "$long" "$long" "$long"
    i=$((i + 1))
done >long.txt
losses_of() {
    rm -f long.log
    run pretrain modernbert --objective mlm --corpus "$1" --eval text.txt --tokenizer vocab.txt --config modernbert.json \
        --seq 24 --steps 4 --mask-unit word --overwrite --log long.log --out long.h5 --batch "$2" --accumulate "$3"
    sed -n 's/.*"loss": *\([0-9.]\{6\}\).*/\1/p' long.log
}
whole=$(losses_of long.txt 4 1)
check "a sequence of one long word has a loss beside others" test "$(echo "$whole" | wc -l)" = 4
check "and weighs nothing as a batch of its own" test "$(losses_of long.txt 1 4)" = "$whole"
run pretrain modernbert --objective mlm --corpus long.txt --eval text.txt --tokenizer vocab.txt --config modernbert.json \
    --seq 8 --steps 20 --mask-unit word --overwrite --out long.h5 --batch 1 --accumulate 2
check "a step that predicts nothing says so" left_with 1 'no batch of the step has anything to predict'

finish
