#!/bin/sh
# `wengert pretrain --objective mlm' and `hybrid' as a user runs them: on one document, resumed, measured,
# filled and scored; bad input. Prints TAP.
. "$(dirname "$0")/setup.sh"

# The text is one document.
numbers_in_order | grep . >text.txt
write_vocabulary
sed -i 's/^twelve$/twel\n##ve/' vocab.txt
cat >bert.json <<END
{"vocab_size": 19, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 64, "max_position_embeddings": 24, "hidden_dropout_prob": 0,
 "attention_probs_dropout_prob": 0}
END
cat >modernbert.json <<END
{"vocab_size": 19, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 24, "pad_token_id": 0}
END

on_text='--corpus text.txt --eval text.txt --tokenizer vocab.txt --batch 8 --seq 24'
# train MODEL OBJECTIVE ARGUMENT...
train() {
    model=$1 objective=$2
    shift 2
    # shellcheck disable=SC2086
    run pretrain "$model" --objective "$objective" --config "$model.json" $on_text "$@"
}

train bert mlm --steps 3 --out bert.h5
check 'one document trains a BERT by mlm' test "$code" = 0
train modernbert mlm --lr 0.01 --steps 600 --mask-unit word --json --out mlm.h5
check 'a ModernBERT has the masked loss and no pairs' eval 'has "\"mlm_loss\": [01]" mlm_tokens &&
    ! grep -q nsp out'
shows 'it fills a word' '^    ten' fill mlm.h5 'seven eight nine [MASK] eleven twelve .'

train modernbert hybrid --lr 0.01 --steps 600 --causal-share 0.25 --mask-unit span --span-mean 2 \
    --json --out hybrid.h5
check 'hybrid has both losses' has '"mlm_loss": 0' '"causal_loss": 0'
shows 'it fills a word from the position before' '^    ten' fill hybrid.h5 \
    'seven eight nine [MASK] eleven twelve .'
echo '{"sentence_good": "one two three four five six .", "sentence_bad": "one two three four five two ."}' \
    >pairs.jsonl
for how in '' --causal --within-words; do
    shows "it tells a good sentence from a bad one ${how:-by masks}" '"accuracy": 1.0' \
        score hybrid.h5 --pairs pairs.jsonl $how --json
done
run score hybrid.h5 --text text.txt --limit 1 --causal
causal=$(cat out)
run score hybrid.h5 --text text.txt --limit 1
check "its two scores differ" test "$causal" != "$(cat out)"

yes 'one twelve twelve twelve ten .' | head -n 40 >domain.txt
run pretrain bert --objective mlm --init bert.h5 --corpus domain.txt --eval domain.txt \
    --extend-vocab 5 --batch 8 --seq 24 --steps 3 --out domain.h5
check '--extend-vocab adds tokens of a new text' eval \
    'grep -q "1 tokens are added to the 19 of" err && grep -q "20 tokens in its vocabulary" err'
prints 'which are used' 'twelve ten' tokenizer encode domain.h5 --tokens 'twelve ten'
succeeds 'and stay when the run is resumed' pretrain bert --resume --steps 4 --out domain.h5
train modernbert hybrid --seq-ramp 6 --steps 8 --out ramp.h5
check 'sequences grow in the course of a run' test "$code" = 0
refuses '--causal of a model of mlm' '--causal is for a model of hybrid' \
    score mlm.h5 --pairs pairs.jsonl --causal
refuses_each pretrain bert --config bert.json --out bad.h5 <<'END'
a ramp of sequences that do not divide | no multiple of 4 | --objective mlm --corpus text.txt \
    --eval text.txt --tokenizer vocab.txt --seq 22 --seq-ramp 4
a ramp of sentence pairs | those of masked-lm cannot be cut | --objective masked-lm \
    --corpus text.txt --seq-ramp 4
hybrid for a model that cannot be causal | has no causal attention | --objective hybrid \
    --corpus text.txt --eval text.txt --tokenizer vocab.txt --seq 24 --steps 2
END
refuses_each pretrain bert --objective mlm --out bad.h5 <<'END'
an extension of nothing | name it by --init | --corpus domain.txt --extend-vocab 5
a tokenizer without [MASK] | has not all of [CLS], [SEP] and [MASK] | --corpus text.txt \
    --eval text.txt --tokenizer byte --seq 24 --preset bert-tiny --steps 2
END
run pretrain bert --objective mlm --corpus text.txt --mask-unit letter --out bad.h5
check "a unit that there is not lists those that there are" left_with 2 "token, word and span are there"
run pretrain bert --objective mlm --corpus text.txt --masked-share 2 --out bad.h5
check "a share above 1 is wrong usage" left_with 2 "masked-share"
misused "--causal-share: '0' is not a number above 0 and below 1" pretrain modernbert --objective hybrid \
    --corpus text.txt --causal-share 0 --out bad.h5
# A word longer than a sequence: whole-word masking predicts nothing in such a sequence, which then weighs nothing
# among the batches of a step.
long=twel$(yes ve | head -n 32 | tr -d '\n')
yes "one two three four five six .
seven eight nine ten eleven twelve .
$long $long $long" | head -n 120 >long.txt
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
