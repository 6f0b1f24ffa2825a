#!/bin/sh
# GLM as a user runs it: --show-batch, training, resuming, evaluation, filling blanks and continuing
# texts; bad input. Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-glm.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

# ---- The first batch, beside figure 2 of the paper ----

# x1 .. x6 with the spans x3 and x5 x6 in reverse order.
echo 'x1 x2 x3 x4 x5 x6' >figure.txt
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nx1\nx2\nx3\nx4\nx5\nx6\n' >figure-vocab.txt
cat >figure.table <<END
sequence 0
part  token             position  block  predicts          sees
A     [CLS]                    0      0                    ######.....
A     x1                       1      0                    ######.....
A     x2                       2      0                    ######.....
A     [MASK]                   3      0                    ######.....
A     x4                       4      0                    ######.....
A     [MASK]                   5      0                    ######.....
B     <|startofpiece|>         5      1  x5                #######....
B     x5                       5      2  x6                ########...
B     x6                       5      3  <|endofpiece|>    #########..
B     <|startofpiece|>         3      1  x3                ##########.
B     x3                       3      2  <|endofpiece|>    ###########
END
show() {
    run pretrain glm --corpus figure.txt --eval figure.txt --tokenizer figure-vocab.txt \
        --batch 1 --seq 8 --masked-share 0.5 --sentence-share 0 --document-share 0 --seed 583 \
        --show-batch "$@"
}
show
check 'the batch of figure 2 is shown as the paper draws it' cmp -s out figure.table
check 'nothing is trained to show a batch' test "$code" = 0
show --document-share 1 --batch 2
check 'of a document that is continued the end is one blank' eval \
    'grep -q "^A     \[gMASK\]" out && grep -q "^sequence 1" out'

# ---- Runs ----

# Numbers in order: a blank follows from its neighbours.
numbers_in_order >text.txt
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . one two three four five six seven eight nine \
    ten eleven twelve >vocab.txt
cat >glm.json <<END
{"vocab_size": 24, "hidden_size": 32, "num_layers": 2, "num_attention_heads": 2,
 "max_sequence_length": 24, "embedding_dropout_prob": 0, "attention_dropout_prob": 0,
 "output_dropout_prob": 0}
END
pretrain() {
    run pretrain glm --corpus text.txt --tokenizer vocab.txt --config glm.json --batch 8 --seq 24 \
        --seed 3 --masked-share 0.3 --lr 0.01 --document-share 0.2 --sentence-share 0.1 "$@"
}
pretrain --steps 900 --out glm.h5 --log glm.log --json
check 'glm is trained' test "$code" = 0
check 'results are JSON' eval 'grep -q "\"word_loss\": [0-9]" out && grep -q "unigram_loss" out'
check 'every step is logged' test "$(wc -l <glm.log)" = 900
run info glm.h5
check 'info tells what it is' grep -q 'model_type  *"glm"' out

run pretrain glm --init glm.h5 --corpus text.txt --batch 2 --seq 24 --show-batch
check 'the batches of a model that begins with the tokens of another are shown' eval \
    'test $code = 0 && grep -q " twelve " out'

pretrain --steps 6 --schedule constant --warmup 2 --out short.h5 --log short.log
run pretrain glm --resume --out short.h5 --steps 12 --log short.log
check 'a run goes on' test "$code" = 0
pretrain --steps 12 --schedule constant --warmup 2 --out whole.h5 --log whole.log
for log in short whole; do
    sed 's/, "tokens_per_s": [^,}]*//' $log.log | grep -v '"eval_' >$log.losses
done
sed -i 6d whole.losses # after which the other measured
check 'its losses are those of a run that was never stopped' cmp -s short.losses whole.losses

run eval glm.h5 --corpus text.txt --json
word_loss=$(sed -n 's/.*"word_loss": \([0-9.]*\).*/\1/p' out)
unigram_loss=$(sed -n 's/.*"unigram_loss": \([0-9.]*\).*/\1/p' out)
check 'it fills better than word frequency does, by far' \
    awk "BEGIN { exit !($word_loss + 1.5 < $unigram_loss) }"
run eval glm.h5 --corpus text.txt
check 'eval measures' eval 'test $code = 0 && grep -q "words in blanks" out &&
    grep -q "by word frequency" out'

# ---- Filled ----

# Texts as long as those of the training: three sentences.
odd='one two three four five six .' even='seven eight nine ten eleven twelve .'
run fill glm.h5 "$odd seven eight [MASK] eleven twelve . $odd"
check 'a blank is filled by what follows from its text' test "$(cat out)" = "$odd $even $odd"
run fill glm.h5 "One two [MASK] six . $even one two [MASK] five six ." \
    "$odd seven [MASK] ten [MASK] twelve . $odd"
check 'several blanks and texts are filled in order, the rest is as it was' test "$(cat out)" = \
    "One two three four five six . $even $odd
$odd $even $odd"
echo "$odd seven eight [MASK] eleven twelve . $odd" >lines
"$wengert" fill glm.h5 <lines >out 2>err
check 'lines of standard input are texts' test "$(cat out)" = "$odd $even $odd"
run fill glm.h5 --beam 3 "$odd seven eight [MASK] eleven twelve . $odd"
check 'a search finds it, too' test "$(cat out)" = "$odd $even $odd"
run fill glm.h5 --max-tokens 1 "$odd seven eight [MASK] eleven twelve . $odd" --json
check 'fill tells JSON, and keeps to a length' eval \
    'grep -q "\"filled\": \"$odd seven eight nine eleven" out && grep -q "\"end\": \"length\"" out'
run fill glm.h5 --temperature 3 --seed 4 'one [MASK]' && cp out first
run fill glm.h5 --temperature 3 --seed 4 'one [MASK]'
check 'the same seed fills in the same' cmp -s out first
# ---- Continued ----

run generate glm.h5 --prompt 'one two three' --max-tokens 3 --temperature 0
check 'a text is continued' test "$(cat out)" = 'one two three four five six'
run generate glm.h5 --prompt 'one two three' --max-tokens 3 --temperature 0 --json
check 'generate tells JSON' eval 'grep -q "\"text\": \" four five six\"" out &&
    grep -q "\"tokens\": 3" out && grep -q "\"end\": \"length\"" out'
run generate glm.h5 --prompt 'one' --max-tokens 10 --seed 4 && cp out first
run generate glm.h5 --prompt 'one' --max-tokens 10 --seed 4
check 'the same seed writes the same' cmp -s out first

# ---- Bad input ----

many=$(yes two | head -n 40 | tr '\n' ' ')
refuses 'a text without a blank' 'no blank in the text' fill glm.h5 'one two'
refuses 'an empty text' 'no blank in the text' fill glm.h5 ''
refuses 'a text that is too long' '24 positions' fill glm.h5 "$many [MASK]"
refuses 'a text that is not UTF-8' 'UTF-8' fill glm.h5 "$(printf 'a\377 [MASK]')"
refuses 'likeliest tokens of a model that writes' '--top is for models that rank' fill glm.h5 --top 3 '[MASK]'
refuses 'an empty prompt' 'prompt is empty' generate glm.h5 --prompt ''
refuses 'a prompt that is too long' '24 positions' generate glm.h5 --prompt "$many"
refuses 'a prompt that is not UTF-8' 'UTF-8' generate glm.h5 --prompt "$(printf 'a\377')"
refuses 'fill from what is not there' 'none.h5' fill none.h5 '[MASK]'
refuses 'fill from what is no checkpoint' 'text.txt' fill text.txt '[MASK]'
refuses 'eval beyond the model' '24 positions' eval glm.h5 --corpus text.txt --seq 64
refuses 'bert does not go on with it' 'it holds a glm model' pretrain bert --resume --out glm.h5
refuses 'a sequence beyond the model' '24 positions' pretrain glm --corpus text.txt \
    --tokenizer vocab.txt --config glm.json --seq 32 --out bad.h5
refuses 'a vocabulary beyond the model' "the model's vocabulary holds 24" pretrain glm \
    --corpus text.txt --config glm.json --tokenizer byte --seq 16 --out bad.h5
refuses 'shares that are none' 'must be shares of 1' pretrain glm --corpus text.txt \
    --tokenizer vocab.txt --config glm.json --seq 16 --sentence-share 0.7 --document-share 0.7 --out bad.h5
refuses 'an unknown preset' 'glm-tiny' pretrain glm --preset glm-9b --corpus text.txt --out bad.h5
refuses 'a configuration that cannot be' 'num_layers' pretrain glm --corpus text.txt \
    --config "$(sed 's/"num_layers": 2/"num_layers": 0/' glm.json >other.json && echo other.json)" \
    --out bad.h5
refuses 'batches of models that show none' 'those of blank-infilling are' pretrain gpt --corpus text.txt \
    --show-batch
if test -e /dev/full; then
    "$wengert" fill glm.h5 'one [MASK]' >/dev/full 2>err </dev/null
    code=$?
    check 'a full disk is told' left_with 1 'cannot write the results'
fi
misused 'not for bert' pretrain bert --corpus text.txt --span-mean 3 --out bad.h5
misused 'from 0.001 to 1' pretrain glm --corpus text.txt --masked-share 2 --out bad.h5
misused '--beam searches' fill glm.h5 --beam 3 --temperature 1 '[MASK]'
misused '--show-batch shows the first batch' pretrain glm --show-batch --resume --out glm.h5

finish
