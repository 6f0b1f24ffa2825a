#!/bin/sh
# What is particular to T5: filling blanks, another objective than the usual one; bad input. Prints
# TAP.
. "$(dirname "$0")/setup.sh"
. "$source/tests/cli/models.sh"

for version in span-corruption gated; do
    train $version --steps 12 --batch 4 --out $version.h5
    shows "$version: tokens, sentinels, end and padding are the vocabulary" 'vocab_size  *160' \
        info $version.h5
    run fill $version.h5 'one two <extra_id_0> four five <extra_id_1> seven .'
    check "$version: each blank is filled" eval 'has "^    <extra_id_0>" "^    <extra_id_1>" &&
        test "$(wc -l <out)" = 3'
    cp out sentinels
    run fill $version.h5 'one two [MASK] four five [MASK] seven .'
    check "$version: [MASK] is a blank as well" eval 'test $code = 0 &&
        test "$(tail -n 2 out)" = "$(tail -n 2 sentinels)"'
    run fill $version.h5 'one two [MASK] four' --beam 3 --max-tokens 5 --json
    check "$version: beams, as JSON" has '"blanks"' '"tokens": [0-4]'
done

# ---- Another objective than the usual one ----

sed 's/160/320/' gated.json >pairs.json
shows 'a T5 learns to translate' '^translations ' pretrain t5 --objective translation \
    --corpus source.txt target.txt --config pairs.json --vocab 270 --batch 256 --seq 16 --steps 3 \
    --out pairs.h5
shows 'eval measures by the objective that the model was trained by' '^BLEU' eval pairs.h5 \
    --corpus source.txt target.txt
run average pairs.h5 pairs.h5 --out mean.h5
shows 'so it does for a mean of checkpoints' '^BLEU' eval mean.h5 --corpus source.txt target.txt
shows 'a resumed run keeps its objective' '^translations ' pretrain t5 --resume --out pairs.h5 \
    --steps 5
run pretrain t5 --resume --out pairs.h5 --steps 7 --objective span-corruption
check 'and refuses another one' left_with 1 'was begun with --objective translation'
run pretrain bert --objective causal-lm --corpus source.txt --out bad.h5
check 'an objective of other models is refused' left_with 2 'which masked-lm trains'
run pretrain bert --objective causal --corpus source.txt --out bad.h5
check 'objectives are listed for a name that there is not' left_with 2 \
    'masked-lm, mlm, hybrid, blank-infilling, causal-lm'

# ---- From end to end: what follows from the rest of a text is written again ----

counted='one two three four five six seven eight nine ten.'
yes "$counted" | head -n 600 | tr '\n' ' ' >counted.txt
cat >counted.json <<END
{"vocab_size": 400, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 1,
 "num_heads": 2, "dropout_rate": 0}
END
shows 'a text that repeats itself is learnt' '^tokens of spans  loss 0\.[01]' pretrain t5 \
    --corpus counted.txt --config counted.json --batch 8 --seq 32 --steps 1000 --lr 0.05 \
    --eval-every 1000 --out counted.h5
# restores TEXT WORDS: the first blank of the text is filled with the words. The last blank, at the
# end, may have any length.
restores() {
    shows "<extra_id_0> is filled with $2" "^    <extra_id_0> $2\$" fill counted.h5 "$1"
}
restores "four five six seven eight nine ten. one two three [MASK] six seven eight nine ten. $counted" \
    'four five'
restores "one two three four five [MASK] eight nine ten. $counted one two three [MASK]" 'six seven'
restores "three four five six seven [MASK] nine ten. $counted one two three four five [MASK]" 'eight'

# ---- Bad input ----

refuses_each fill gated.h5 <<'END'
options of drawing | does not draw | 'a [MASK]' --temperature 0.5
--top | --top is for models that rank | 'a [MASK]' --top 3
END
sed 's/"vocab_size": 160/"vocab_size": 90/' t5.json >small.json
refuses_each pretrain t5 --out bad.h5 <<'END'
a corpus shorter than a sequence | one sequence of | --corpus t5.json --config counted.json --tokenizer byte
a vocabulary that is all sentinels | vocab_size is 90 | --corpus text.txt --config small.json
a preset that is not there | t5-tiny | --corpus text.txt --preset t5-huge
END

finish
