#!/bin/sh
# T5 as a user runs it: training, stopping and resuming, evaluation, filling blanks; bad input. Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-t5.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

# ---- Runs ----

head -n 300 "$source/corpus/books/alice-in-wonderland.txt" >text.txt
cat >1.0.json <<END
{"vocab_size": 400, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_heads": 2}
END
cat >1.1.json <<END
{"vocab_size": 400, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_heads": 2,
 "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false}
END
pretrain() {
    version=$1
    shift
    run pretrain t5 --corpus text.txt --config "$version.json" --batch 4 --seq 32 --seed 3 "$@"
}

for version in 1.0 1.1; do
    pretrain $version --steps 12 --out $version.h5 --log $version.log --json
    check "$version is trained" test $code = 0
    check "$version: results are JSON" grep -q '"word_loss": [0-9]' out
    check "$version: every step is logged" test "$(wc -l <$version.log)" = 12
    run info $version.h5
    check "$version: tokens, sentinels, end and padding are the vocabulary" \
        grep -q 'vocab_size  *400' out

    # A run of 6 steps that is resumed to 12 has the losses of a run of 12.
    pretrain $version --schedule constant --warmup 2 --steps 12 --out whole.h5 --log whole.log
    pretrain $version --schedule constant --warmup 2 --steps 6 --out parts.h5 --log parts.log
    run pretrain t5 --resume --out parts.h5 --steps 12 --log parts.log
    check "$version: a run goes on" test $code = 0
    for log in whole parts; do
        sed 's/.*"step": \([0-9]*\),.*"loss": \([^,}]*\),.*/\1 \2/' $log.log >$log.losses
    done
    check "$version: its losses are those of a run that was never stopped" \
        cmp -s whole.losses parts.losses
    rm -f whole.* parts.*

    run eval $version.h5 --corpus text.txt --seq 32
    check "$version: eval measures" eval 'test $code = 0 && grep -q "^tokens of spans" out &&
        grep -q "by frequency" out'

    # ---- Blanks ----

    run fill $version.h5 "Alice was <extra_id_0> to get very tired of <extra_id_1> her sister."
    check "$version: each blank is filled" eval 'test $code = 0 && test "$(wc -l <out)" = 3 &&
        grep -q "^    <extra_id_0>" out && grep -q "^    <extra_id_1>" out'
    cp out sentinels
    run fill $version.h5 "Alice was [MASK] to get very tired of [MASK] her sister."
    check "$version: [MASK] is a blank as well" eval 'test $code = 0 &&
        test "$(tail -n 2 out)" = "$(tail -n 2 sentinels)"'
    run fill $version.h5 "Alice was [MASK] to get" --beam 3 --max-tokens 5 --json
    check "$version: beams, as JSON" eval 'test $code = 0 && grep -q "\"blanks\"" out &&
        grep -q "\"tokens\": [0-4]" out'
done

# ---- Another objective than the usual one ----

yes 'ein hund
zwei katzen
drei pferde' | head -n 36 >source.txt
yes 'a dog
two cats
three horses' | head -n 36 >target.txt
sed 's/400/320/' 1.1.json >pairs.json
run pretrain t5 --objective translation --corpus source.txt target.txt --config pairs.json --vocab 270 \
    --batch 256 --seq 16 --steps 3 --out pairs.h5
check 'a T5 learns to translate' eval 'test $code = 0 && grep -q "^translations " out'
run eval pairs.h5 --corpus source.txt target.txt
check 'eval measures by the objective that the model was trained by' \
    eval 'test $code = 0 && grep -q "^BLEU" out'
run average pairs.h5 pairs.h5 --out mean.h5
run eval mean.h5 --corpus source.txt target.txt
check 'so it does for a mean of checkpoints' eval 'test $code = 0 && grep -q "^BLEU" out'
run pretrain t5 --resume --out pairs.h5 --steps 5
check 'a resumed run keeps its objective' eval 'test $code = 0 && grep -q "^translations " out'
run pretrain t5 --resume --out pairs.h5 --steps 7 --objective span-corruption
check 'and refuses another one' left_with 1 'was begun with --objective translation'
run pretrain bert --objective causal-lm --corpus source.txt --out bad.h5
check 'an objective of other models is refused' left_with 2 'which masked-lm trains'
run pretrain bert --objective causal --corpus source.txt --out bad.h5
check 'objectives are listed for a name that there is not' left_with 2 'masked-lm, mlm, hybrid, blank-infilling, causal-lm'

# ---- From end to end: what follows from the rest of a text is written again ----

counted='one two three four five six seven eight nine ten.'
yes "$counted" | head -n 600 | tr '\n' ' ' >counted.txt
cat >counted.json <<END
{"vocab_size": 400, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 1,
 "num_heads": 2, "dropout_rate": 0}
END
run pretrain t5 --corpus counted.txt --config counted.json --batch 8 --seq 32 --steps 1000 --lr 0.05 \
    --eval-every 1000 --out counted.h5
check 'a text that repeats itself is learnt' eval 'test $code = 0 &&
    grep -q "^tokens of spans  loss 0\.[01]" out'
# The text to fill, and the answer for its first blank. The last blank, at the end, may have any length.
restores() {
    wanted=$2
    run fill counted.h5 "$1"
    check "<extra_id_0> is filled with $wanted" eval \
        'test $code = 0 && grep -qx "    <extra_id_0> $wanted" out'
}
restores "four five six seven eight nine ten. one two three [MASK] six seven eight nine ten. $counted" \
    'four five'
restores "one two three four five [MASK] eight nine ten. $counted one two three [MASK]" 'six seven'
restores "three four five six seven [MASK] nine ten. $counted one two three four five [MASK]" 'eight'

# ---- Bad input ----

refuses 'a text without a blank' 'no <extra_id_0> and no [MASK]' fill 1.0.h5 'Alice'
refuses 'an empty text' 'no <extra_id_0> and no [MASK]' fill 1.0.h5 ''
refuses 'blanks out of order' '<extra_id_1> stands where <extra_id_0> is due' \
    fill 1.0.h5 'a <extra_id_1>'
refuses 'a text that is not UTF-8' 'UTF-8' fill 1.0.h5 "$(printf 'a \377 [MASK]')"
refuses 'options of drawing' 'does not draw' fill 1.0.h5 'a [MASK]' --temperature 0.5
refuses '--top' '--top is for models that rank' fill 1.0.h5 'a [MASK]' --top 3
refuses 'a T5 does not continue texts' 't5' generate 1.0.h5 --prompt Alice
refuses 'a run of another kind' 't5' pretrain gpt --resume --out 1.0.h5
refuses 'a corpus shorter than a sequence' 'one sequence of' \
    pretrain t5 --corpus 1.0.json --config 1.0.json --tokenizer byte --out short.h5
refuses 'sequences with more spans than sentinels' 'are enough for 99' \
    pretrain t5 --corpus text.txt --config 1.0.json --seq 4096 --out long.h5
echo '{"vocab_size": 90, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_heads": 2}' \
    >small.json
refuses 'a vocabulary that is all sentinels' 'vocab_size is 90' \
    pretrain t5 --corpus text.txt --config small.json --out small.h5
refuses 'a preset that is not there' 't5-tiny' \
    pretrain t5 --corpus text.txt --preset t5-huge --out huge.h5

finish
