#!/bin/sh
# Writing text with GPT and LLaMA, their tokenizers, presets and a published model; bad input.
# Prints TAP.
. "$(dirname "$0")/setup.sh"

# ---- Two models ----

book 300 >text.txt
cat >gpt.json <<END
{"n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 48}
END
cat >llama.json <<END
{"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
 "intermediate_size": 48, "max_position_embeddings": 48}
END
pretrain() {
    model=$1
    shift
    run pretrain "$model" --corpus text.txt --config "$model.json" --tokenizer bpe \
        --vocab-size 300 --batch 4 --seq 32 --seed 3 --steps 12 "$@"
}

for model in gpt llama; do
    pretrain $model --out $model.h5 --log $model.log
    check "$model is trained" test $code = 0
    shows "$model: the vocabulary is the tokenizer's" 'vocab_size  *300' info $model.h5

    # Activation checkpointing changes no loss, dropout included.
    pretrain $model --out twice.h5 --log twice.log --recompute
    losses $model.log >a
    losses twice.log >b
    check "$model: --recompute changes no loss and no gradient" cmp a b
    rm -f twice.*
    shows "$model: eval tells the loss by frequency" 'by frequency' eval $model.h5 --corpus text.txt

    # ---- Continued ----

    set -- generate $model.h5 --prompt 'Alice was' --max-tokens 20
    prints_again "$model: the same seed writes the same" "$@" --seed 5
    check "$model: generate begins with the prompt" has '^Alice was'
    check "$model: what is written is UTF-8" iconv -f UTF-8 -t UTF-8 -o /dev/null out
    run "$@" --seed 6
    check "$model: another seed writes something else" eval '! cmp -s out first'
    run "$@" --temperature 0
    cp out greedy
    run "$@" --top-k 1 --seed 9
    check "$model: top-k 1 is temperature 0" cmp -s out greedy
    for dtype in bf16 q8_0; do
        run "$@" --temperature 0 --dtype $dtype
        check "$model: weights in $dtype write" test -s out
    done
    succeeds "$model: all ways to choose go together" "$@" --temperature 1.2 --top-k 50 \
        --top-p 0.9 --min-p 0.01 --repetition-penalty 1.2
    set -- generate $model.h5 --prompt Alice --temperature 0
    run "$@" --max-tokens 7 --json
    check "$model: generate tells JSON" has '"prompt": "Alice"' '"tokens": 7' '"end": "length"'
    succeeds "$model: without a prompt a text begins" generate $model.h5 --max-tokens 5 \
        --temperature 0
    shows "$model: a text ends with the positions" '"end": "\(positions\|stop\)"' "$@" --json
    tokens=$(sed -n 's/.*"prompt_tokens": \([0-9]*\).*/\1/p' out)
    succeeds "$model: tokens for which there are positions are written" "$@" --max-tokens $((48 - tokens))
    refuses "$model: one more is refused" "48 positions, enough for $((48 - tokens)) tokens" \
        "$@" --max-tokens $((49 - tokens))
done

for kind in char byte; do
    succeeds "gpt is trained on $kind tokens" pretrain gpt --corpus text.txt --config gpt.json \
        --tokenizer $kind --batch 4 --seq 32 --steps 2 --out $kind.h5
    run generate $kind.h5 --prompt Alice --max-tokens 30
    check "text of $kind tokens is UTF-8" iconv -f UTF-8 -t UTF-8 -o /dev/null out
done
refuses 'a character that the text did not have' 'not in the vocabulary' generate char.h5 --prompt '€'
refuses 'no prompt without a token that begins a text' 'give a --prompt' generate char.h5

# ---- Presets ----

# The optimizer, the learning rate and the batch that the checkpoint NAME.h5 was begun with.
recipe() {
    strings "$1.h5" | sed -n 's/.*"\(optimizer\|lr\|batch\)": "\{0,1\}\([^",]*\).*/\1=\2/p' | sort | tr '\n' ' '
}
run pretrain llama --corpus text.txt --vocab-size 300 --seq 16 --steps 1 --out usual.h5
check 'the usual preset brings its recipe' eval 'test $code = 0 &&
    test "$(recipe usual)" = "batch=16 lr=0.006 optimizer=muon "'
run pretrain llama --preset llama-3m --corpus text.txt --vocab-size 300 --seq 16 --steps 1 --lr 0.5 \
    --batch 2 --out own.h5
check 'options rule over the recipe of a preset' eval 'test $code = 0 &&
    test "$(recipe own)" = "batch=2 lr=0.5 optimizer=muon "'
check 'a configuration of one'\''s own has the recipe of the model' eval '
    test "$(recipe llama)" = "batch=4 lr=0.001 optimizer=adamw "'

echo '{"model_type": "gpt2"}' >other.json
refuses 'a configuration of another model' 'model_type' pretrain llama --corpus text.txt \
    --config other.json --out bad.h5
refuses_each pretrain gpt --out bad.h5 <<'END'
an unknown preset | gpt2-tiny | --preset gpt3 --corpus text.txt
a sequence beyond the model | 48 positions | --corpus text.txt --config gpt.json \
    --tokenizer byte --seq 64
a text shorter than a sequence | shorter sequences | --corpus other.json --config gpt.json \
    --tokenizer bpe --vocab-size 260 --seq 48
END

# ---- A published model: what llama2.c's own program writes, on the data of some machines ----

stories=$data/stories260K
if test -f "$stories/stories260K.bin"; then
    run convert "$stories/stories260K.bin" stories.h5 --tokenizer "$stories/tok512.bin"
    run generate stories.h5 --temperature 0 --max-tokens 256
    check 'stories260K writes 256 tokens of llama2.c' cmp out "$stories/expected_greedy_full.txt"
    # The first hundred stories, each up to 512 tokens; the figure is llama2.c's.
    awk '$0 == "<|endoftext|>" && ++count == 100 { exit } { print }' \
        "$stories/../tinystories/tinystories_sample_2M.txt" >stories.txt
    run eval stories.h5 --corpus stories.txt --by-document --seq 511
    check 'stories260K loses what llama2.c loses' grep -q 'loss 1\.4076.* 37072 tokens' out
else
    for name in 'stories260K writes 256 tokens' \
        'stories260K loses what llama2.c loses'; do
        skip "$name" 'the data is not there'
    done
fi

misused 'RUN.h5 is missing' generate --prompt a
misused "'llama.h5' is one too many" generate gpt.h5 llama.h5
misused '--temperature' generate gpt.h5 --temperature -1
misused '--temperature' generate gpt.h5 --temperature nan
misused '--top-p' generate gpt.h5 --top-p 1.5
misused '--min-p' generate gpt.h5 --min-p x
misused '--top-k' generate gpt.h5 --top-k -1
misused '--max-tokens' generate gpt.h5 --max-tokens 0
misused '--repetition-penalty' generate gpt.h5 --repetition-penalty 0
misused '--seed' generate gpt.h5 --seed -1

finish
