#!/bin/sh
# The Transformer as a user runs it: training on sentences and their reversals, stopping and resuming,
# averaging, evaluation, translation; bad input. Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-translate.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"
. "$source/tests/cli/reversed_pairs.sh"

# Runs the command with standard input from a file; otherwise as `run'.
run_on() {
    input=$1
    shift
    "$wengert" "$@" >out 2>err <"$input"
    code=$?
}

write_pairs 800 1 train
write_pairs 40 77 held
cat >tiny.json <<END
{"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
 "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "dropout": 0,
 "max_position_embeddings": 32}
END
pretrain() {
    "$wengert" pretrain transformer --corpus train.from train.to --eval held.from held.to \
        --config tiny.json --vocab-size 300 --batch 512 --seq 32 --seed 1 "$@" \
        >out 2>err </dev/null
}

# ---- Training ----

pretrain --steps 600 --lr 0.01 --warmup 50 --schedule linear --keep-every 100 --out run.h5 --log run.jsonl
check 'a Transformer is trained' test $? = 0
check 'it tells its pairs' grep -q '^text   800 pairs, .* 40 pairs held out' err
check 'its loss falls' eval 'grep -q "^translations     loss 0\.[0-2]" out'
check 'so does it in the log' grep -q '"eval_perplexity"' run.jsonl

pretrain --steps 6 --out whole.h5
pretrain --steps 3 --out half.h5
"$wengert" pretrain transformer --resume --out half.h5 --steps 6 >out 2>err
"$wengert" convert whole.h5 whole.safetensors >out 2>err
"$wengert" convert half.h5 half.safetensors >out 2>err
check 'a run that was stopped goes on to the same bits' cmp whole.safetensors half.safetensors
refuses 'a run goes on with its own pairs' 'the corpus or its tokens are not those' \
    pretrain transformer --resume --out half.h5 --corpus held.from held.to

run pretrain transformer --corpus train.from train.to --config tiny.json --vocab-size 300 \
    --batch 512 --seq 32 --steps 1 --out bad.h5
check 'a twentieth of the pairs is held out' grep -q '^text   760 pairs, .* 40 pairs held out' err
rm -f bad.h5

# The first loss of a run that starts from a trained model is about that model's last.
run pretrain transformer --init run.h5 --corpus train.from train.to --eval held.from held.to \
    --batch 512 --seq 32 --steps 1 --lr 1e-9 --out more.h5
check 'a run begins with the weights and the tokenizer of another' eval \
    'test $code = 0 && grep -q "^translations     loss 0\.[0-2]" out'

# ---- Translating ----

run_on held.from translate run.h5
check 'standard input is translated line by line' eval \
    'test $code = 0 && test "$(wc -l <out)" = 40 && test "$(paste -d= out held.to |
        awk -F= "\$1 == \$2" | wc -l)" -ge 38'
cp out beam.out
run_on held.from translate run.h5 --batch 7
check 'batches change nothing' cmp out beam.out
run_on held.from translate run.h5 --beam 1 --threads 2
cp out greedy.out
run_on held.from translate run.h5 --beam 1 --threads 1
check 'nor do threads' cmp out greedy.out
run translate run.h5 'one cat' 'red dog two'
check 'texts are arguments' eval 'test "$(cat out)" = "cat one
two dog red"'
run translate run.h5 --json 'one cat'
check 'results as JSON' eval 'grep -q "\"source\": \"one cat\"" out &&
    grep -q "\"translation\": \"cat one\"" out'
printf 'one cat\n\n  \nred dog two' >gaps
run_on gaps translate run.h5
check 'empty lines stay empty' eval 'test "$(cat out)" = "cat one


two dog red"'
run translate run.h5 --max-length 1 'one cat dog'
check 'a translation may be cut' eval 'test "$(wc -w <out)" -le 1'
# A line is answered before the next one is read: the second line waits for the first answer.
mkfifo questions answers
"$wengert" translate run.h5 <questions >answers 2>err &
exec 3>questions 4<answers
echo 'one cat' >&3
read -r first <&4
echo "$first" >&3
read -r second <&4
exec 3>&- 4<&-
wait $!
check 'lines are answered as they come' test "$first/$second" = 'cat one/one cat'

# ---- Measuring ----

run eval run.h5 --corpus held.from held.to --predictions held.out
check 'BLEU, with its signature' grep -q \
    '^BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp = [0-9.]* [0-9.]*/[0-9.]*/[0-9.]*/[0-9.]* (BP' out
check 'loss and perplexity' grep -q '^translations     loss 0\.[0-9]*, perplexity 1\.' out
check 'the translations that were measured' cmp held.out beam.out
tr a-z A-Z <held.to >upper.to
run eval run.h5 --corpus held.from upper.to
check 'BLEU sees case' grep -q ' = 0\.0 0\.0/0\.0/0\.0/0\.0 ' out
run eval run.h5 --corpus held.from upper.to --lowercase --beam 1 --json
check 'unless it is told not to' eval 'grep -q "\"bleu_lc\": [1-9][0-9]" out &&
    grep -q "case:lc" out'

for tokens in zh char; do
    run eval run.h5 --corpus held.from held.to --tokenize $tokens
    check "BLEU by the tokens of $tokens" grep -q "^BLEU|nrefs:1|case:mixed|eff:no|tok:$tokens|smooth:exp = " out
done
run eval run.h5 --corpus held.from held.to --tokenize intl
check 'wrong usage: tokens that are not there' left_with 2 "--tokenize: there is no 'intl'; 13a, zh and char are there"

# ---- Averaging ----

run average run.400.h5 run.500.h5 run.600.h5 --out mean.h5
check 'checkpoints that were kept are averaged' test $code = 0
run_on held.from translate mean.h5
check 'the mean translates' eval 'test "$(paste -d= out held.to | awk -F= "\$1 == \$2" | wc -l)" -ge 36'
run average run.600.h5 --out same.h5
run_on held.from translate same.h5
check 'the mean of one is itself' cmp out beam.out
refuses 'a file that is there stays' 'mean.h5 exists' average run.400.h5 --out mean.h5
refuses 'one that is no checkpoint is not averaged' 'train.from' \
    average run.400.h5 train.from --out bad.h5
refuses 'nor one that is not there' 'no-such.h5' average run.400.h5 no-such.h5 --out bad.h5
sed 's/32/16/' tiny.json >other.json
"$wengert" pretrain transformer --corpus train.from train.to --config other.json --seq 16 \
    --vocab-size 300 --steps 1 --out other.h5 >out 2>err
refuses 'nor are other models' 'its model is another one' \
    average run.400.h5 other.h5 --out bad.h5
misused 'missing RUN.h5' average --out bad.h5
misused 'missing --out MODEL.h5' average run.h5

# ---- Bad input ----

refuses 'no checkpoint' 'no-such.h5' translate no-such.h5 x
refuses 'a text for a checkpoint' 'train.from' translate train.from x
printf '{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 32, "vocab_size": 300}' >bert.json
head -n 1200 "$source/corpus/books/alice-in-wonderland.txt" >prose.txt
"$wengert" pretrain bert --corpus prose.txt --config bert.json --steps 1 --batch 2 --seq 16 \
    --out bert.h5 >out 2>err
refuses 'a BERT does not translate' 'it holds a bert model; `wengert translate'"'"' takes transformer' \
    translate bert.h5 x
refuses 'nor does a run begin with it' 'holds a bert model' \
    pretrain transformer --init bert.h5 --corpus train.from train.to --out bad.h5
refuses 'nor has it a BLEU' 'which does not translate' eval bert.h5 --corpus prose.txt --beam 2
refuses 'a Transformer fills nothing' 'transformer' fill run.h5 'a [MASK]'
refuses 'nor does it go on' 'transformer' generate run.h5 --prompt x
refuses 'an empty text' 'text 2 is empty' translate run.h5 'one cat' ' '
long=$(awk 'BEGIN { for (i = 0; i < 40; i++) printf "cat "; print "dog" }')
refuses 'too long a text' 'the model takes 31' translate run.h5 "$long"
refuses 'a text that is not UTF-8' 'text 1 is not UTF-8' translate run.h5 "$(printf 'a\377b')"
: >empty
run_on empty translate run.h5
refused 'no text at all' 'no text on standard input'
printf 'one cat\n\377\n' >latin
run_on latin translate run.h5
refused 'a line that is not UTF-8' 'text 2 is not UTF-8'
run_on "$work" translate run.h5
refused 'a folder for a text' 'cannot read standard input'
if test -w /dev/full; then
    "$wengert" translate run.h5 'one cat' >/dev/full 2>err
    code=$?
    : >out
    check 'a full disk' left_with 1 'cannot write'
fi
head -n 5 held.to >short.to
refuses 'files of other lengths' 'has 40 lines and' eval run.h5 --corpus held.from short.to
refuses 'a file without its other side' 'held.from has no other side' eval run.h5 --corpus held.from
sed 2s/.*// held.to >gap.to
refuses 'a gap in a text' 'gap.to: line 2 is empty' eval run.h5 --corpus held.from gap.to
refuses 'a text to learn from that is not UTF-8' 'latin is not UTF-8: line 2' \
    pretrain transformer --corpus latin latin --tokenizer run.h5 --config tiny.json --out bad.h5
refuses 'where translations cannot go' 'no-such/out' \
    eval run.h5 --corpus held.from held.to --predictions no-such/out
refuses 'a tokenizer without an end' 'no token that ends a sentence' \
    pretrain transformer --corpus train.from train.to --tokenizer byte --config tiny.json --out bad.h5
sed 's/{/{"vocab_size": 40, "eos_token_id": 1, "decoder_start_token_id": 1, /' tiny.json >few.json
refuses 'a tokenizer of another model' "the model's vocabulary holds" \
    pretrain transformer --corpus train.from train.to --tokenizer run.h5 --config few.json \
    --out bad.h5
misused '--eval takes SOURCE and TARGET' \
    pretrain transformer --corpus train.from train.to --eval held.from --out bad.h5
misused '--beam' translate run.h5 --beam 0 x
misused 'which model' translate

finish
