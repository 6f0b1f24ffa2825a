#!/bin/sh
# What is particular to GLM: --show-batch, filling blanks and continuing texts; bad input. Prints
# TAP.
. "$(dirname "$0")/setup.sh"

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

# ---- A model ----

# Numbers in order: a blank follows from its neighbours.
numbers_in_order >text.txt
write_vocabulary
cat >glm.json <<END
{"vocab_size": 24, "hidden_size": 32, "num_layers": 2, "num_attention_heads": 2,
 "max_sequence_length": 24, "embedding_dropout_prob": 0, "attention_dropout_prob": 0,
 "output_dropout_prob": 0}
END
run pretrain glm --corpus text.txt --tokenizer vocab.txt --config glm.json --batch 8 --seq 24 \
    --seed 3 --masked-share 0.3 --lr 0.01 --document-share 0.2 --sentence-share 0.1 --steps 900 \
    --out glm.h5 --json
check 'glm is trained' has '"word_loss": [0-9]' unigram_loss
shows 'info tells what it is' 'model_type  *"glm"' info glm.h5
shows 'the batches of a model that begins with the tokens of another are shown' ' twelve ' \
    pretrain glm --init glm.h5 --corpus text.txt --batch 2 --seq 24 --show-batch
run eval glm.h5 --corpus text.txt --json
word_loss=$(sed -n 's/.*"word_loss": \([0-9.]*\).*/\1/p' out)
unigram_loss=$(sed -n 's/.*"unigram_loss": \([0-9.]*\).*/\1/p' out)
check 'it fills better than word frequency does, by far' awk \
    "BEGIN { exit !($word_loss + 1.5 < $unigram_loss) }"
shows 'eval tells the loss by word frequency' 'by word frequency' eval glm.h5 --corpus text.txt

# ---- Filled ----

# Texts as long as those of the training: three sentences.
odd='one two three four five six .' even='seven eight nine ten eleven twelve .'
blank="$odd seven eight [MASK] eleven twelve . $odd"
prints 'a blank is filled by what follows from its text' "$odd $even $odd" fill glm.h5 "$blank"
prints 'several blanks and texts are filled in order, the rest is as it was' \
    "One two three four five six . $even $odd
$odd $even $odd" fill glm.h5 "One two [MASK] six . $even one two [MASK] five six ." \
    "$odd seven [MASK] ten [MASK] twelve . $odd"
echo "$blank" | "$wengert" fill glm.h5 >out 2>err
check 'lines of standard input are texts' test "$(cat out)" = "$odd $even $odd"
prints 'a search finds it, too' "$odd $even $odd" fill glm.h5 --beam 3 "$blank"
run fill glm.h5 --max-tokens 1 "$blank" --json
check 'fill tells JSON, and keeps to a length' has \
    "\"filled\": \"$odd seven eight nine eleven" '"end": "length"'
prints_again 'the same seed fills in the same' fill glm.h5 --temperature 3 --seed 4 'one [MASK]'

# ---- Continued ----

set -- generate glm.h5 --prompt 'one two three' --max-tokens 3 --temperature 0
prints 'a text is continued' 'one two three four five six' "$@"
run "$@" --json
check 'generate tells JSON' has '"text": " four five six"' '"tokens": 3' '"end": "length"'
prints_again 'the same seed writes the same' generate glm.h5 --prompt 'one' --max-tokens 10 --seed 4

# ---- Bad input ----

sed 's/"num_layers": 2/"num_layers": 0/' glm.json >other.json
refuses_each <<'END'
likeliest tokens of a model that writes | --top is for models that rank | fill glm.h5 --top 3 '[MASK]'
batches of models that show none | blank-infilling | pretrain gpt --corpus text.txt --show-batch
END
refuses_each pretrain glm --corpus text.txt --out bad.h5 <<'END'
a sequence beyond the model | 24 positions | --tokenizer vocab.txt --config glm.json --seq 32
a vocabulary beyond the model | the model's vocabulary holds 24 | --config glm.json --tokenizer byte --seq 16
shares that are none | must be shares of 1 | --tokenizer vocab.txt --config glm.json --seq 16 \
    --sentence-share 0.7 --document-share 0.7
an unknown preset | glm-tiny | --preset glm-9b
a configuration that cannot be | num_layers | --config other.json
END
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
