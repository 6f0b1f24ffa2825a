#!/bin/sh
# Fine-tuning as a user runs it: training, evaluation, stopping and resuming of each task; bad input.
# Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-finetune.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

# ---- A model to begin with ----

head -n 900 "$source/corpus/books/alice-in-wonderland.txt" >text.txt
cat >tiny.json <<END
{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 80}
END
run pretrain bert --corpus text.txt --config tiny.json --batch 4 --seq 32 --steps 2 --out bert.h5
check 'a model is pretrained' test $code = 0
run pretrain gpt --corpus text.txt --vocab-size 300 --batch 2 --seq 32 --steps 1 --out gpt.h5
check 'and another one' test $code = 0

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

classify --out straight.h5 --epochs 6 --log straight.log --json
check 'labels are learnt' eval 'test $code = 0 && grep -q "\"accuracy\": 1.0" out'
check 'its steps follow from its epochs' grep -q '^run    24 steps' err
check 'a head that is missing is told of' grep -q 'begun anew: classifier.weight' err
check 'steps are logged' test "$(wc -l <straight.log)" = 24
run eval straight.h5 --corpus animals.tsv --predictions labels.txt --seq 32
check 'a file is measured' grep -q 'accuracy 100.00 % of 16' out
cut -f 2 animals.tsv | tail -n +2 >wanted.txt
check 'predictions are written' cmp labels.txt wanted.txt
run eval straight.h5 --corpus animals.tsv --predictions /nowhere/labels.txt --seq 32
check 'predictions that cannot be written are told of' left_with 1 '/nowhere/labels.txt'
run info straight.h5
check 'info tells the labels' grep -q 'id2label .*{"0": "long ears", "1": "no"}' out
run finetune straight.h5 --task classify --train animals.tsv --eval few.tsv --batch 4 --seq 32 \
    --steps 1 --out again.h5
check 'a model that has the labels keeps its head' eval 'test $code = 0 && ! grep -q anew err'

# A resumed run may differ from an uninterrupted one in its times alone.
losses() {
    sed 's/, "tokens_per_s": [^,}]*//' "$@" | sort -u | sort -t: -k2n
}
# Without the function, so that the signal reaches the command itself, not a shell.
"$wengert" finetune bert.h5 --task classify --train animals.tsv --eval few.tsv --batch 4 --seq 32 \
    --lr 0.01 --steps 24 --out parts.h5 --log parts.log --save-every 1 >out 2>err &
while test ! -s parts.log && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -9 $! 2>/dev/null
wait 2>/dev/null
run finetune --task classify --resume --out parts.h5 --log parts.log
losses straight.log >a
losses parts.log >b
check 'a run that was killed goes on bit for bit' cmp a b
run finetune --task classify --resume --out straight.h5 --epochs 7
check 'a run becomes longer by epochs' left_with 0 '28 steps long instead of 24'
run finetune --task classify --resume --out straight.h5 --train few.tsv
check 'a resumed run keeps its text' left_with 1 'begun with'
run finetune --task classify --resume --out straight.h5 --lr 1
check 'and its learning rate' left_with 1 '--lr'

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

squad() {
    run finetune bert.h5 --task squad --train questions.json --eval questions.json --batch 4 \
        --lr 0.01 --seq 80 "$@"
}

squad --out answers.h5 --steps 60 --eval-every 60 --log answers.log
check 'answers are learnt' grep -q 'exact match 100.00 %, F1 100.00 % of 2 questions' out
run eval answers.h5 --corpus questions.json --seq 80 --predictions answers.json --json
check 'a file of questions is measured' grep -q '"exact_match": 100.0' out
printf '  "who": "\303\211l\303\251",\n' >wanted.txt
check 'answers are as the context has them' grep -qxF -f wanted.txt answers.json
check 'of those that are right one is enough' grep -Eq '"what": "(a )?garden"' answers.json
cat >chinese.json <<'END'
{"data": [{"paragraphs": [{"context": "\u5b54\u4e59\u5df1\u5594\u9152\u3002", "qas": [
  {"id": "who", "question": "\u8ab0\uff1f", "answers": [{"text": "\u5b54\u4e59\u5df1", "answer_start": 0}]}]}]}]}
END
run eval answers.h5 --corpus chinese.json --seq 80
check 'Chinese answers are compared by character' grep -q 'F1 .* of 1 questions, by character as CMRC 2018$' out
squad --out parted.h5 --steps 60 --eval-every 60 --log parted.log --keep-best
run finetune --task squad --resume --out answers.h5 --steps 64 --log answers.log
run finetune --task squad --resume --out parted.h5 --steps 64 --log parted.log
losses answers.log >a
losses parted.log >b
check 'the same run twice is the same bit for bit' cmp a b

# ---- Another encoder, whose heads have one name for both tasks ----

cat >modern.json <<END
{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2,
 "intermediate_size": 24, "max_position_embeddings": 80, "local_attention": 8}
END
run pretrain modernbert --corpus text.txt --config modern.json --batch 4 --seq 32 --steps 2 --out modern.h5
check 'a ModernBERT is pretrained without pairs of sentences' \
    eval 'test $code = 0 && grep -q "masked words" out && ! grep -q "next sentence" out'
run fill modern.h5 'the [MASK] was late'
check 'it fills masks' eval 'test $code = 0 && test -s out'
run finetune modern.h5 --task classify --train animals.tsv --eval few.tsv --batch 4 --seq 32 --lr 0.02 \
    --epochs 12 --out modern-labels.h5 --json
check 'it learns labels' eval 'test $code = 0 && grep -q "\"accuracy\": 1.0" out'
check 'with the head that it was pretrained with' \
    eval '! grep -q "anew.*head.dense" err && grep -q "anew: classifier.weight" err'
run finetune modern-labels.h5 --task classify --train animals.tsv --eval few.tsv --batch 4 --seq 32 \
    --steps 1 --out modern-again.h5
check 'its head for labels is kept' eval 'test $code = 0 && ! grep -q anew err'
run finetune modern-labels.h5 --task squad --train questions.json --eval questions.json --batch 4 --lr 0.02 \
    --seq 80 --steps 60 --out modern-answers.h5
check 'and is new for answers, which it learns' \
    eval 'test $code = 0 && grep -q "anew: classifier.weight" err && grep -q "exact match" out'
run eval modern-answers.h5 --corpus questions.json --seq 80
check 'answers of a checkpoint are measured' eval 'test $code = 0 && grep -q "of 2 questions" out'
run convert modern-answers.h5 modern-answers
check 'its answers are written as others name them' eval 'test $code = 0 &&
    grep -q ModernBertForQuestionAnswering modern-answers/config.json'
run convert modern-answers modern-back.h5
run eval modern-back.h5 --corpus questions.json --seq 80
check 'and read again' eval 'test $code = 0 && grep -q "of 2 questions" out'

# ---- A blank that tells a label ----

cat >glm.json <<END
{"vocab_size": 304, "hidden_size": 16, "num_layers": 1, "num_attention_heads": 2, "max_sequence_length": 48}
END
run pretrain glm --corpus text.txt --config glm.json --batch 4 --seq 32 --steps 2 --out glm.h5
check 'a GLM is pretrained' test $code = 0

cloze() {
    run finetune glm.h5 --task cloze --pattern '{text} It was [MASK] .' --verbalizer 'no=the Queen' \
        --verbalizer 'long ears=Rabbit' --train animals.tsv --eval few.tsv --batch 4 --seq 32 --lr 0.01 "$@"
}

cloze --out filled.h5 --epochs 12 --log filled.log --eval-every 6 --keep-best --json
check 'labels are learnt by filling a blank' eval 'test $code = 0 && grep -q "\"accuracy\": 1.0" out'
run eval filled.h5 --corpus animals.tsv --predictions labels.txt --seq 32
check 'a file is measured by it' grep -q 'accuracy 100.00 % of 16' out
cut -f 2 animals.tsv | tail -n +2 >wanted.txt
check 'what it predicts is written' cmp labels.txt wanted.txt
run eval filled.best.h5 --corpus few.tsv --seq 32
check 'the best is kept' eval 'test $code = 0 && grep -q "of 6" out'
run info filled.h5
check 'info tells the pattern and the verbalizers' grep -qF \
    '{"pattern": "{text} It was [MASK] .", "verbalizers": {"long ears": "Rabbit", "no": "the Queen"}}' out
run average filled.h5 filled.best.h5 --out mean.h5
run eval mean.h5 --corpus few.tsv --seq 32
check 'a mean of checkpoints tells labels, too' grep -q 'labels .* of 6' out
"$wengert" finetune glm.h5 --task cloze --pattern '{text} It was [MASK] .' --verbalizer 'no=the Queen' \
    --verbalizer 'long ears=Rabbit' --train animals.tsv --eval few.tsv --batch 4 --seq 32 --lr 0.01 \
    --eval-every 6 --steps 48 --out stopped.h5 --log stopped.log --save-every 1 >out 2>err &
while test ! -s stopped.log && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -9 $! 2>/dev/null
wait 2>/dev/null
run finetune --task cloze --resume --out stopped.h5 --log stopped.log
losses filled.log >a
losses stopped.log >b
check 'it goes on bit for bit, too' cmp a b
run finetune --task cloze --resume --out stopped.h5 --pattern '{text} [MASK]'
check 'a resumed run keeps its pattern' left_with 1 '--pattern cannot change'
run finetune --task cloze --resume --out stopped.h5 --verbalizer no=Queen
check 'and its verbalizers' left_with 1 '--verbalizer cannot change'
echo '{"pattern": "{text} It was [MASK] .", "verbalizer": {"no": "the Queen", "long ears": "Rabbit"}}' >cloze.json
run finetune glm.h5 --task cloze --settings cloze.json --train animals.tsv --eval few.tsv --batch 4 --seq 32 \
    --lr 0.01 --steps 48 --eval-every 6 --out settled.h5 --log settled.log
losses settled.log >b
check 'settings of a file are the same' cmp a b
run finetune filled.h5 --task cloze --pattern 'A [MASK] : {text}' --verbalizer no=Queen \
    --verbalizer 'long ears=Rabbit' --train animals.tsv --eval few.tsv --seq 32 --steps 1 --out twice.h5
check 'what was fine-tuned learns another pattern' test $code = 0
printf 'Alice\tis here\tyes\nAlice\tis gone\tno\n' >pairs.tsv
run finetune glm.h5 --task cloze --pattern '{text_a} ? [MASK] , {text_b} .' --verbalizer yes=yes --verbalizer no=no \
    --train pairs.tsv --eval pairs.tsv --seq 32 --steps 1 --out pairs.h5
check 'two texts stand in a pattern' test $code = 0
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
misused '--pattern is not for classify' finetune bert.h5 --task classify --pattern '{text} [MASK]' --train few.tsv \
    --eval few.tsv --out bad.h5
misused '--eval FILE' finetune bert.h5 --task classify --train few.tsv --out bad.h5
misused '--out' finetune bert.h5 --task classify --train few.tsv --eval few.tsv
misused 'exclude' finetune bert.h5 --task classify --train few.tsv --eval few.tsv --out bad.h5 \
    --steps 1 --epochs 1

# ---- Bad input ----

bad() {
    name=$1 text=$2
    shift 2
    refuses "$name" "$text" finetune bert.h5 --task classify --eval few.tsv --seq 32 --out bad.h5 \
        "$@"
}
bad 'a file that is not there' 'none.tsv' --train none.tsv
: >empty.tsv
bad 'an empty file' 'empty.tsv holds no example' --train empty.tsv
printf 'sentence\tlabel\n' >header.tsv
bad 'a header alone' 'header.tsv holds no example' --train header.tsv
printf 'a\tb\nno label\n' >columns.tsv
bad 'a line without a label' 'columns.tsv, line 2' --train columns.tsv
printf 'a\tb\nc\td\te\n' >ragged.tsv
bad 'lines of two kinds' 'ragged.tsv, line 2: 3 columns' --train ragged.tsv
printf 'a\tb\n\tc\n' >blank.tsv
bad 'an empty text' 'blank.tsv, line 2: a text is empty' --train blank.tsv
printf 'a\tb\nc\tb\n' >single.tsv
bad 'a single label' 'every label is "b"' --train single.tsv
printf 'a\tb\n\377\tc\n' >latin.tsv
bad 'text that is not UTF-8' 'latin.tsv is not UTF-8: line 2' --train latin.tsv
printf 'a rabbit\tmaybe\n' >unknown.tsv
refuses 'a label that is unknown' 'unknown.tsv, line 1: the label "maybe" is unknown' \
    finetune bert.h5 --task classify --train few.tsv --eval unknown.tsv --seq 32 --out bad.h5
bad 'sequences beyond the positions' '80 positions' --train animals.tsv --seq 96
refuses 'another model' "it holds a gpt model; \`wengert finetune --task classify' takes bert" \
    finetune gpt.h5 --task classify --train few.tsv --eval few.tsv --out bad.h5
refuses 'what is no checkpoint' 'text.txt' \
    finetune text.txt --task classify --train few.tsv --eval few.tsv --out bad.h5
refuses 'filling by a fine-tuned model' "finetune --task classify'; \`wengert fill' takes bert" \
    fill straight.h5 'the [MASK]'
refuses 'pretraining what was fine-tuned' 'finetune --task classify' \
    pretrain bert --resume --out straight.h5
refuses 'fine-tuning on what was pretrained' 'it holds a bert model' \
    finetune --task classify --resume --out bert.h5
printf '{"data": [' >broken.json
bad_squad() {
    name=$1 text=$2
    shift 2
    refuses "$name" "$text" finetune bert.h5 --task squad --eval questions.json --seq 80 \
        --out bad.h5 "$@"
}
bad_squad 'JSON that is broken' 'broken.json, line 1' --train broken.json
printf '{"data": []}' >none.json
bad_squad 'a file without questions' 'none.json holds no question' --train none.json
sed 's/"answer_start": 94/"answer_start": 93/' questions.json >moved.json
bad_squad 'an answer that stands elsewhere' \
    'data[0].paragraphs[0].qas[1].answers[0].answer_start is 93' --train moved.json
bad_squad 'windows without room' 'no room for questions' --train questions.json --seq 60
refuses 'answers by a classifier' 'questions.json, line' eval straight.h5 --corpus questions.json
refuses 'labels by what answers' 'few.tsv, line 1' eval answers.h5 --corpus few.tsv
refuses 'predictions of another model' '--predictions are of fine-tuned models' \
    eval bert.h5 --corpus text.txt --predictions bad.txt
refuses 'measuring on two files' 'one file at a time' eval straight.h5 --corpus few.tsv few.tsv

bad_cloze() {
    name=$1 text=$2
    shift 2
    refuses "$name" "$text" finetune glm.h5 --task cloze --eval few.tsv --seq 32 --out bad.h5 --train animals.tsv "$@"
}
bad_cloze 'a pattern without a blank' 'has no blank' --pattern '{text} it was .' --verbalizer no=a \
    --verbalizer 'long ears=b'
bad_cloze 'a pattern without a text' 'one place for the text, {text}' --pattern '[MASK]' --verbalizer no=a \
    --verbalizer 'long ears=b'
bad_cloze 'a pattern with two blanks' 'more than one blank' --pattern '[MASK] {text} [MASK]' --verbalizer no=a \
    --verbalizer 'long ears=b'
bad_cloze 'a pattern that leaves no room' 'of the 32 tokens of a sequence: there is no room' \
    --pattern "{text} [MASK] $(yes the | head -n 40 | tr '\n' ' ')" --verbalizer no=a --verbalizer 'long ears=b'
bad_cloze 'a pattern for two texts' 'has one text a line; the pattern' --pattern '{text_a} [MASK] {text_b}' \
    --verbalizer no=a --verbalizer 'long ears=b'
bad_cloze 'a single verbalizer' 'two or more' --pattern '{text} [MASK]' --verbalizer no=a
bad_cloze 'a label without a verbalizer' 'the label "long ears" is unknown' --pattern '{text} [MASK]' \
    --verbalizer no=a --verbalizer short=b
bad_cloze 'a verbalizer of a space' 'the verbalizer of "no" is empty' --pattern '{text} [MASK]' --verbalizer 'no= ' \
    --verbalizer 'long ears=b'
bad_cloze 'a verbalizer of unknown characters' 'is not wholly known to the tokenizer' --pattern '{text} [MASK]' \
    --verbalizer "no=$(printf '\342\230\203')" --verbalizer 'long ears=b'
bad_cloze 'two verbalizers that are the same' 'are the same tokens' --pattern '{text} [MASK]' --verbalizer no=Queen \
    --verbalizer 'long ears=queen'
bad_cloze 'a verbalizer beyond the positions' 'its start among them, is too long' --pattern '{text} [MASK]' \
    --verbalizer "no=$(yes the | head -n 60 | tr '\n' ' ')" --verbalizer 'long ears=b'
echo '{"verbalizer": {"no": 1}}' >wrong.json
refuses 'verbalizers that are no texts' '"verbalizer" is 1; wanted texts, each under its label' finetune glm.h5 --task cloze \
    --settings wrong.json --train few.tsv --eval few.tsv --out bad.h5
echo '{"verbalizer": {"a=b": "c"}}' >wrong.json
refuses 'a label that holds an equals sign' '"verbalizer" is "c"; wanted texts, each under its label' finetune glm.h5 \
    --task cloze --settings wrong.json --train few.tsv --eval few.tsv --out bad.h5
refuses 'a BERT that fills patterns' "it holds a bert model; \`wengert finetune --task cloze' takes glm" finetune bert.h5 \
    --task cloze --pattern '{text} [MASK]' --verbalizer no=a --verbalizer 'long ears=b' --train few.tsv --eval few.tsv \
    --out bad.h5
refuses 'writing by what tells labels' "finetune --task cloze'; \`wengert generate' takes" generate filled.h5 --prompt Alice
refuses 'filling by what tells labels' "finetune --task cloze'; \`wengert fill' takes" fill filled.h5 'the [MASK]'
refuses 'going on with what was pretrained' 'it holds a glm model' finetune --task cloze --resume --out glm.h5

finish
