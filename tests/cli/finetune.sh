#!/bin/sh
# Fine-tuning for labels, answers and patterns: what is learnt, predicted and told; bad input.
# Prints TAP.
. "$(dirname "$0")/setup.sh"

# ---- A model to begin with ----

pretrain_tiny bert 80

# ---- Classification ----

# The label of a sentence is the animal that it names, one of two.
{
    printf 'sentence\tlabel\n'
    for thing in table door garden river fire tree house road; do
        printf 'the rabbit was near the %s .\tlong ears\nthe queen saw a %s !\tno\n' $thing $thing
    done
} >animals.tsv
head -n 7 animals.tsv >few.tsv

classify() {
    run finetune bert.h5 --task classify --train animals.tsv --eval few.tsv --batch 4 --seq 32 \
        --lr 0.01 "$@"
}

classify --out straight.h5 --epochs 6
check 'labels are learnt' has 'accuracy 100.00 %'
check 'its steps follow from its epochs' grep -q '^run    24 steps' err
check 'a head that is missing is told of' grep -q 'begun anew: classifier.weight' err
shows 'a file is measured' 'accuracy 100.00 % of 16' eval straight.h5 --corpus animals.tsv \
    --predictions labels.txt --seq 32
cut -f 2 animals.tsv | tail -n +2 >wanted.txt
check 'predictions are written' cmp labels.txt wanted.txt
run eval straight.h5 --corpus animals.tsv --predictions /nowhere/labels.txt --seq 32
check 'predictions that cannot be written are told of' left_with 1 '/nowhere/labels.txt'
shows 'info tells the labels' 'id2label .*{"0": "long ears", "1": "no"}' info straight.h5
run finetune straight.h5 --task classify --train animals.tsv --eval few.tsv --batch 4 --seq 32 \
    --steps 1 --out again.h5
check 'a model that has the labels keeps its head' eval 'test $code = 0 && ! grep -q anew err'
run finetune --task classify --resume --out straight.h5 --epochs 7
check 'a run becomes longer by epochs' left_with 0 '28 steps long instead of 24'

# ---- Questions ----

# A paragraph with two questions, over two windows of 40 tokens.
cat >questions.json <<'END'
{"version": "1.1", "data": [{"title": "Alice", "paragraphs": [{
  "context": "\u00c9l\u00e9 the Rabbit, said Alice, lives near the old table of the Queen, and the King of Hearts has a garden with a door.",
  "qas": [
    {"id": "who", "question": "Who is a rabbit?", "answers": [{"text": "\u00c9l\u00e9", "answer_start": 0}]},
    {"id": "what", "question": "What has the King?",
     "answers": [{"text": "a garden", "answer_start": 94}, {"text": "garden", "answer_start": 96}]}]}]}]}
END

squad='--task squad --train questions.json --eval questions.json --batch 4 --seq 80'
# shellcheck disable=SC2086
shows 'answers are learnt' 'exact match 100.00 %, F1 100.00 % of 2 questions' finetune bert.h5 \
    $squad --lr 0.01 --steps 60 --eval-every 60 --out answers.h5
shows 'a file of questions is measured' '"exact_match": 100.0' eval answers.h5 \
    --corpus questions.json --seq 80 --predictions answers.json --json
printf '  "who": "\303\211l\303\251",\n' >wanted.txt
check 'answers are as the context has them' grep -qxF -f wanted.txt answers.json
check 'of those that are right one is enough' grep -Eq '"what": "(a )?garden"' answers.json
cat >chinese.json <<'END'
{"data": [{"paragraphs": [{"context": "\u5b54\u4e59\u5df1\u5594\u9152\u3002", "qas": [
  {"id": "who", "question": "\u8ab0\uff1f", "answers": [{"text": "\u5b54\u4e59\u5df1", "answer_start": 0}]}]}]}]}
END
shows 'Chinese answers are compared by character' \
    'F1 .* of 1 questions, by character as CMRC 2018$' eval answers.h5 --corpus chinese.json \
    --seq 80

# ---- Another encoder, whose heads have one name for both tasks ----

pretrain_tiny modernbert 80
check 'a ModernBERT is pretrained without pairs of sentences' \
    eval 'test $code = 0 && grep -q "masked words" out && ! grep -q "next sentence" out'
shows 'it fills masks' . fill modernbert.h5 'the [MASK] was late'
shows 'it learns labels' '"accuracy": 1.0' finetune modernbert.h5 --task classify \
    --train animals.tsv --eval few.tsv --batch 4 --seq 32 --lr 0.02 --epochs 12 \
    --out modern-labels.h5 --json
check 'with the head that it was pretrained with' \
    eval '! grep -q "anew.*head.dense" err && grep -q "anew: classifier.weight" err'
run finetune modern-labels.h5 --task classify --train animals.tsv --eval few.tsv --batch 4 --seq 32 \
    --steps 1 --out modern-again.h5
check 'its head for labels is kept' eval 'test $code = 0 && ! grep -q anew err'
# shellcheck disable=SC2086
run finetune modern-labels.h5 $squad --lr 0.02 --steps 60 --out modern-answers.h5
check 'and is new for answers, which it learns' \
    eval 'has "exact match" && grep -q "anew: classifier.weight" err'
run convert modern-answers.h5 modern-answers
check 'its answers are written as others name them' eval 'test $code = 0 &&
    grep -q ModernBertForQuestionAnswering modern-answers/config.json'
run convert modern-answers modern-back.h5
shows 'and read again' 'of 2 questions' eval modern-back.h5 --corpus questions.json --seq 80

# ---- A blank that tells a label ----

pretrain_tiny glm 48

cloze() {
    run finetune glm.h5 --task cloze --train animals.tsv --eval few.tsv --batch 4 --seq 32 \
        --lr 0.01 --steps 48 --eval-every 6 "$@"
}
told_by() {
    cloze --pattern '{text} It was [MASK] .' --verbalizer 'no=the Queen' \
        --verbalizer 'long ears=Rabbit' "$@"
}

told_by --out filled.h5 --log filled.log --keep-best --json
check 'labels are learnt by filling a blank' has '"accuracy": 1.0'
shows 'a file is measured by it' 'accuracy 100.00 % of 16' eval filled.h5 --corpus animals.tsv \
    --predictions labels.txt --seq 32
cut -f 2 animals.tsv | tail -n +2 >wanted.txt
check 'what it predicts is written' cmp labels.txt wanted.txt
shows 'the best is kept' 'of 6' eval filled.best.h5 --corpus few.tsv --seq 32
run info filled.h5
check 'info tells the pattern and the verbalizers' grep -qF \
    '{"pattern": "{text} It was [MASK] .", "verbalizers": {"long ears": "Rabbit", "no": "the Queen"}}' out
run average filled.h5 filled.best.h5 --out mean.h5
shows 'a mean of checkpoints tells labels, too' 'labels .* of 6' eval mean.h5 --corpus few.tsv \
    --seq 32
run finetune --task cloze --resume --out filled.h5 --pattern '{text} [MASK]'
check 'a resumed run keeps its pattern' left_with 1 '--pattern cannot change'
run finetune --task cloze --resume --out filled.h5 --verbalizer no=Queen
check 'and its verbalizers' left_with 1 '--verbalizer cannot change'
echo '{"pattern": "{text} It was [MASK] .", "verbalizer": {"no": "the Queen", "long ears": "Rabbit"}}' >cloze.json
cloze --settings cloze.json --out settled.h5 --log settled.log
losses filled.log >a
losses settled.log >b
check 'settings of a file are the same' cmp a b
succeeds 'what was fine-tuned learns another pattern' finetune filled.h5 --task cloze \
    --pattern 'A [MASK] : {text}' --verbalizer no=Queen --verbalizer 'long ears=Rabbit' \
    --train animals.tsv --eval few.tsv --seq 32 --steps 1 --out twice.h5
printf 'Alice\tis here\tyes\nAlice\tis gone\tno\n' >pairs.tsv
succeeds 'two texts stand in a pattern' finetune glm.h5 --task cloze \
    --pattern '{text_a} ? [MASK] , {text_b} .' --verbalizer yes=yes --verbalizer no=no \
    --train pairs.tsv --eval pairs.tsv --seq 32 --steps 1 --out pairs.h5
run convert filled.h5 glm-folder
run convert glm-folder back.h5
"$wengert" eval filled.h5 --corpus animals.tsv --seq 32 >a
run eval back.h5 --corpus animals.tsv --seq 32
check 'it survives the published folder' cmp a out

# ---- Wrong usage ----

misused '--task NAME is missing' finetune bert.h5 --out bad.h5
misused "there is no 'chat'; classify" finetune bert.h5 --task chat --out bad.h5
misused 'RUN.h5 is missing' finetune --task classify --train few.tsv --eval few.tsv --out bad.h5
misused '--task cloze wants --pattern' finetune glm.h5 --task cloze --train few.tsv --eval few.tsv \
    --out bad.h5
misused '--task cloze wants --verbalizer' finetune glm.h5 --task cloze --train few.tsv --eval few.tsv \
    --pattern '{text} [MASK]' --out bad.h5
misused "--verbalizer: 'bad' is not LABEL=TEXT" finetune glm.h5 --task cloze --verbalizer bad --out bad.h5
misused "--verbalizer: 'no=' is not LABEL=TEXT" finetune glm.h5 --task cloze --verbalizer no= --out bad.h5
misused "--verbalizer: 'no' is said twice" finetune glm.h5 --task cloze --verbalizer no=a \
    --verbalizer no=b --out bad.h5
misused 'is not UTF-8' finetune glm.h5 --task cloze --pattern "$(printf '{text} \377 [MASK]')" --out bad.h5
misused 'is not UTF-8' finetune glm.h5 --task cloze --verbalizer "no=$(printf '\377')" --out bad.h5
misused '--pattern is not for classify' finetune bert.h5 --task classify --pattern '{text} [MASK]' \
    --train few.tsv --eval few.tsv --out bad.h5
misused '--eval FILE' finetune bert.h5 --task classify --train few.tsv --out bad.h5
misused '--out' finetune bert.h5 --task classify --train few.tsv --eval few.tsv
misused 'exclude' finetune bert.h5 --task classify --train few.tsv --eval few.tsv --out bad.h5 \
    --steps 1 --epochs 1

# ---- Bad input ----

# Reading of files, patterns and verbalizers: tests/data and tests/objectives/cloze_batch.c.
printf 'a\tb\nno label\n' >columns.tsv
printf 'a rabbit\tmaybe\n' >unknown.tsv
refuses_each finetune bert.h5 --task classify --seq 32 --out bad.h5 <<'END'
a line without a label | columns.tsv, line 2 | --eval few.tsv --train columns.tsv
a label that is unknown | unknown.tsv, line 1: the label "maybe" | --eval unknown.tsv --train few.tsv
END
printf '{"data": [' >broken.json
refuses 'JSON that is broken' 'broken.json, line 1' finetune bert.h5 --task squad \
    --train broken.json --eval questions.json --seq 80 --out bad.h5

refuses_each <<'END'
pretraining what was fine-tuned | finetune --task classify | pretrain bert --resume --out straight.h5
fine-tuning what was pretrained | a bert model | finetune --task classify --resume --out bert.h5
going on with what was pretrained | it holds a glm model | finetune --task cloze --resume --out glm.h5
answers by a classifier | questions.json, line | eval straight.h5 --corpus questions.json
labels by what answers | few.tsv, line 1 | eval answers.h5 --corpus few.tsv
measuring on two files | one file at a time | eval straight.h5 --corpus few.tsv few.tsv
END

refuses_each finetune glm.h5 --task cloze --eval few.tsv --seq 32 --out bad.h5 --train animals.tsv \
    --verbalizer no=a <<'END'
a pattern without a blank | has no blank | --pattern '{text} it was .' --verbalizer 'long ears=b'
a label without a verbalizer | the label "long ears" is unknown | --pattern '{text} [MASK]' \
    --verbalizer short=b
END
# wrong_verbalizer NAME FOUND SETTING
wrong_verbalizer() {
    echo "{\"verbalizer\": $3}" >wrong.json
    refuses "$1" "\"verbalizer\" is $2; wanted texts, each under its label" finetune glm.h5 \
        --task cloze --settings wrong.json --train few.tsv --eval few.tsv --out bad.h5
}
wrong_verbalizer 'verbalizers that are no texts' 1 '{"no": 1}'
wrong_verbalizer 'a label that holds an equals sign' '"c"' '{"a=b": "c"}'

finish
