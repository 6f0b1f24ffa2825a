#!/bin/sh
# What is particular to the Transformer: sentences and their reversals, translating, BLEU,
# averaging; bad input. Prints TAP.
. "$(dirname "$0")/setup.sh"
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
on_pairs='--corpus train.from train.to --batch 512 --seq 32'

# ---- Training ----

# shellcheck disable=SC2086
run pretrain transformer $on_pairs --eval held.from held.to --config tiny.json --vocab-size 300 \
    --seed 1 --steps 600 --lr 0.01 --warmup 50 --schedule linear --keep-every 100 --out run.h5 \
    --log run.jsonl
check 'its loss falls' has '^translations     loss 0\.[0-2]'
check 'it tells its pairs' grep -q '^text   800 pairs, .* 40 pairs held out' err
check 'perplexity is logged' grep -q '"eval_perplexity"' run.jsonl
# shellcheck disable=SC2086
run pretrain transformer $on_pairs --config tiny.json --vocab-size 300 --steps 1 --out bad.h5
check 'a twentieth of the pairs is held out' grep -q '^text   760 pairs, .* 40 pairs held out' err
rm -f bad.h5

# The first loss of a run that starts from a trained model is about that model's last.
# shellcheck disable=SC2086
shows 'a run begins with the weights and the tokenizer of another' \
    '^translations     loss 0\.[0-2]' pretrain transformer --init run.h5 $on_pairs \
    --eval held.from held.to --steps 1 --lr 1e-9 --out more.h5

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
prints 'texts are arguments' 'cat one
two dog red' translate run.h5 'one cat' 'red dog two'
run translate run.h5 --json 'one cat'
check 'results as JSON' has '"source": "one cat"' '"translation": "cat one"'
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
check 'BLEU, with its signature' grep \
    -q '^BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp = [0-9.]* [0-9.]*/[0-9.]*/[0-9.]*/[0-9.]* (BP' \
    out
check 'loss and perplexity' grep -q '^translations     loss 0\.[0-9]*, perplexity 1\.' out
check 'the translations that were measured' cmp held.out beam.out
tr a-z A-Z <held.to >upper.to
shows 'BLEU sees case' ' = 0\.0 0\.0/0\.0/0\.0/0\.0 ' eval run.h5 --corpus held.from upper.to
run eval run.h5 --corpus held.from upper.to --lowercase --beam 1 --json
check 'unless it is told not to' eval 'grep -q "\"bleu_lc\": [1-9][0-9]" out &&
    grep -q "case:lc" out'

for tokens in zh char; do
    shows "BLEU by the tokens of $tokens" \
        "^BLEU|nrefs:1|case:mixed|eff:no|tok:$tokens|smooth:exp = " eval run.h5 --corpus held.from \
        held.to --tokenize $tokens
done
run eval run.h5 --corpus held.from held.to --tokenize intl
check 'wrong usage: tokens that are not there' left_with 2 "--tokenize: there is no 'intl'; 13a, zh and char are there"

# ---- Averaging ----

succeeds 'checkpoints that were kept are averaged' average run.400.h5 run.500.h5 run.600.h5 \
    --out mean.h5
run_on held.from translate mean.h5
check 'the mean translates' eval 'test "$(paste -d= out held.to | awk -F= "\$1 == \$2" | wc -l)" -ge 36'
run average run.600.h5 --out same.h5
run_on held.from translate same.h5
check 'the mean of one is itself' cmp out beam.out
sed 's/32/16/' tiny.json >other.json
"$wengert" pretrain transformer --corpus train.from train.to --config other.json --seq 16 \
    --vocab-size 300 --steps 1 --out other.h5 >out 2>err
refuses_each average run.400.h5 <<'END'
a file that is there stays | mean.h5 exists | --out mean.h5
one that is no checkpoint is not averaged | train.from | train.from --out bad.h5
nor one that is not there | no-such.h5 | no-such.h5 --out bad.h5
nor are other models | its model is another one | other.h5 --out bad.h5
END
misused 'missing RUN.h5' average --out bad.h5
misused 'missing --out MODEL.h5' average run.h5

# ---- Bad input ----

write_vocabulary
numbers_in_order >prose.txt
"$wengert" pretrain bert --corpus prose.txt --tokenizer vocab.txt --preset bert-tiny --steps 1 --batch 2 --seq 16 \
    --out bert.h5 >out 2>err
refuses 'a BERT has no BLEU' 'which does not translate' eval bert.h5 --corpus prose.txt --beam 2
refuses 'an empty text' 'text 2 is empty' translate run.h5 'one cat' ' '
: >empty
run_on empty translate run.h5
refused 'no text at all' 'no text on standard input'
printf 'one cat\n\377\n' >latin
run_on "$work" translate run.h5
refused 'a folder for a text' 'cannot read standard input'
if test -w /dev/full; then
    "$wengert" translate run.h5 'one cat' >/dev/full 2>err
    code=$?
    : >out
    check 'a full disk' left_with 1 'cannot write'
fi
sed 2s/.*// held.to >gap.to
refuses_each eval run.h5 <<'END'
a gap in a text | gap.to: line 2 is empty | --corpus held.from gap.to
where translations cannot go | no-such/out | --corpus held.from held.to --predictions no-such/out
END
sed 's/{/{"vocab_size": 40, "eos_token_id": 1, "decoder_start_token_id": 1, /' tiny.json >few.json
refuses_each pretrain transformer --out bad.h5 <<'END'
a text to learn from that is not UTF-8 | latin is not UTF-8: line 2 | --corpus latin latin \
    --tokenizer run.h5 --config tiny.json
a tokenizer of another model | the model's vocabulary holds | --corpus train.from train.to \
    --tokenizer run.h5 --config few.json
END
misused '--eval takes SOURCE and TARGET' \
    pretrain transformer --corpus train.from train.to --eval held.from --out bad.h5
misused '--beam' translate run.h5 --beam 0 x
misused 'which model' translate

finish
