#!/bin/sh
# GPT and LLaMA as a user runs them: training, stopping and resuming, evaluation, generation; bad input.
# Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-generate.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

# ---- Runs ----

head -n 300 "$source/corpus/books/alice-in-wonderland.txt" >text.txt
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
        --vocab-size 300 --batch 4 --seq 32 --seed 3 "$@"
}

for model in gpt llama; do
    pretrain $model --steps 12 --out $model.h5 --log $model.log --json
    check "$model is trained" test $code = 0
    check "$model: results are JSON" grep -q '"bits_per_byte": [0-9]' out
    check "$model: every step is logged" test "$(wc -l <$model.log)" = 12
    run info $model.h5
    check "$model: the vocabulary is the tokenizer's" grep -q 'vocab_size  *300' out

    # Activation checkpointing changes no loss, dropout included.
    pretrain $model --steps 12 --out twice.h5 --log twice.log --recompute
    for log in $model twice; do
        sed 's/, "tokens_per_s": [^,}]*//' $log.log >$log.losses
    done
    check "$model: --recompute changes no loss and no gradient" cmp $model.losses twice.losses
    rm -f twice.* $model.losses

    # Stopped by a signal and resumed: the losses equal those of the uninterrupted run.
    "$wengert" pretrain $model --corpus text.txt --config $model.json --tokenizer bpe \
        --vocab-size 300 --batch 4 --seq 32 --seed 3 --schedule constant --steps 100000 \
        --out stopped.h5 --log stopped.log --overwrite >out 2>err </dev/null &
    process=$!
    tries=0
    until test -f stopped.log && test "$(wc -l <stopped.log)" -ge 3 || test $tries -ge 600; do
        sleep 0.05
        tries=$((tries + 1))
    done
    kill -INT $process
    wait $process
    code=$?
    check "$model: SIGINT saves and leaves" left_with 130 "pretrain $model --resume"
    steps=$(($(wc -l <stopped.log) + 3))
    run pretrain $model --resume --out stopped.h5 --steps $steps --log stopped.log
    check "$model: a run goes on" test $code = 0
    # The warm-up of a long run is 2000 steps, as LLaMA's was.
    pretrain $model --schedule constant --warmup 2000 --steps $steps --out whole.h5 \
        --log whole.log --overwrite
    for log in stopped whole; do
        sed 's/, "tokens_per_s": [^,}]*//' $log.log | grep -v '"eval_' >$log.losses
    done
    check "$model: its losses are those of a run that was never stopped" eval \
        'test "$(head -n $((steps - 1)) stopped.losses)" = "$(head -n $((steps - 1)) whole.losses)"'
    rm -f stopped.* whole.*

    # ---- Measured ----

    run eval $model.h5 --corpus text.txt
    check "$model: eval measures" eval 'test $code = 0 && grep -q "bits per byte" out &&
        grep -q "by frequency" out'
    run eval $model.h5 --corpus text.txt --json
    check "$model: eval tells JSON" eval 'grep -q "\"perplexity\": [0-9]" out &&
        grep -q "\"unigram_loss\": [0-9]" out'
    refuses "$model: eval beyond the model" '48 positions' eval $model.h5 --corpus text.txt --seq 64

    # ---- Continued ----

    run generate $model.h5 --prompt 'Alice was' --max-tokens 20 --seed 5
    cp out first
    check "$model: generate begins with the prompt" eval \
        'test $code = 0 && grep -q "^Alice was" out'
    check "$model: what is written is UTF-8" iconv -f UTF-8 -t UTF-8 -o /dev/null out
    run generate $model.h5 --prompt 'Alice was' --max-tokens 20 --seed 5
    check "$model: the same seed writes the same" cmp -s out first
    run generate $model.h5 --prompt 'Alice was' --max-tokens 20 --seed 6
    check "$model: another seed writes something else" eval '! cmp -s out first'
    run generate $model.h5 --prompt 'Alice was' --max-tokens 20 --temperature 0
    cp out greedy
    run generate $model.h5 --prompt 'Alice was' --max-tokens 20 --top-k 1 --seed 9
    check "$model: top-k 1 is temperature 0" cmp -s out greedy
    for dtype in bf16 q8_0; do
        run generate $model.h5 --prompt 'Alice was' --max-tokens 3 --temperature 0 --dtype $dtype
        check "$model: weights in $dtype write" test -s out
    done
    run generate $model.h5 --prompt 'Alice was' --max-tokens 20 --temperature 1.2 --top-k 50 \
        --top-p 0.9 --min-p 0.01 --repetition-penalty 1.2
    check "$model: all ways to choose go together" test $code = 0
    run generate $model.h5 --prompt Alice --max-tokens 7 --json --temperature 0
    check "$model: generate tells JSON" eval \
        'grep -q "\"prompt\": \"Alice\"" out && grep -q "\"tokens\": 7" out &&
         grep -q "\"end\": \"length\"" out'
    run generate $model.h5 --max-tokens 5 --temperature 0
    check "$model: without a prompt a text begins" test $code = 0
    run generate $model.h5 --prompt Alice --temperature 0 --json
    check "$model: a text ends with the positions" eval \
        'test $code = 0 && grep -q "\"end\": \"\(positions\|stop\)\"" out'
    tokens=$(sed -n 's/.*"prompt_tokens": \([0-9]*\).*/\1/p' out)
    run generate $model.h5 --prompt Alice --temperature 0 --max-tokens $((48 - tokens))
    check "$model: tokens for which there are positions are written" test $code = 0
    refuses "$model: one more is refused" "48 positions, enough for $((48 - tokens)) tokens" \
        generate $model.h5 --prompt Alice --temperature 0 --max-tokens $((49 - tokens))

    # ---- Bad input ----

    refuses "$model: an empty prompt" 'prompt is empty' generate $model.h5 --prompt ''
    refuses "$model: a prompt that is too long" '48 positions' generate $model.h5 \
        --prompt "$(head -c 400 text.txt)"
    refuses "$model: a prompt that is not UTF-8" 'UTF-8' generate $model.h5 \
        --prompt "$(printf 'a\377')"
    refuses "$model: fill takes no $model" "it holds a $model model" fill $model.h5 'a [MASK]'
    refuses "$model: bert does not go on with it" "it holds a $model model" \
        pretrain bert --resume --out $model.h5
done

for kind in char byte; do
    run pretrain gpt --corpus text.txt --config gpt.json --tokenizer $kind --batch 4 --seq 32 \
        --steps 2 --out $kind.h5
    check "gpt is trained on $kind tokens" test $code = 0
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


refuses 'gpt does not go on with a llama' 'it holds a llama model' pretrain gpt --resume \
    --out llama.h5
refuses 'a configuration of another model' 'model_type' pretrain llama --corpus text.txt \
    --config "$(echo '{"model_type": "gpt2"}' >other.json && echo other.json)" --out bad.h5
refuses 'an unknown preset' 'gpt2-tiny' pretrain gpt --preset gpt3 --corpus text.txt --out bad.h5
refuses 'a sequence beyond the model' '48 positions' pretrain gpt --corpus text.txt \
    --config gpt.json --tokenizer bpe --vocab-size 300 --seq 64 --out bad.h5
refuses 'a text shorter than a sequence' 'shorter sequences' pretrain gpt --corpus other.json \
    --config gpt.json --tokenizer bpe --vocab-size 260 --seq 48 --out bad.h5
refuses 'generate from what is not there' 'none.h5' generate none.h5 --prompt a
refuses 'generate from what is no checkpoint' 'text.txt' generate text.txt --prompt a

cat >bert.json <<END
{"vocab_size": 600, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 32}
END
head -n 900 "$source/corpus/books/alice-in-wonderland.txt" >long.txt
run pretrain bert --corpus long.txt --config bert.json --batch 4 --seq 32 --steps 1 --out bert.h5
refuses 'generate takes no bert' 'it holds a bert model' generate bert.h5 --prompt a

# ---- A published model: what llama2.c's own program writes, on the data of some machines ----

stories=${WENGERT_DATA:-$source/../shared/data}/stories260K
if test -f "$stories/stories260K.bin"; then
    run convert "$stories/stories260K.bin" stories.h5 --tokenizer "$stories/tok512.bin"
    run generate stories.h5 --temperature 0 --max-tokens 200
    check 'stories260K writes 200 tokens of llama2.c' cmp out "$stories/expected_greedy_n200.txt"
    run generate stories.h5 --temperature 0 --max-tokens 256
    check 'stories260K writes 256 tokens of llama2.c' cmp out "$stories/expected_greedy_full.txt"
    # The first hundred stories, each up to 512 tokens; the figure is llama2.c's.
    awk '$0 == "<|endoftext|>" && ++count == 100 { exit } { print }' \
        "$stories/../tinystories/tinystories_sample_2M.txt" >stories.txt
    run eval stories.h5 --corpus stories.txt --by-document --seq 511
    check 'stories260K loses what llama2.c loses' grep -q 'loss 1\.4076.* 37072 tokens' out
else
    for name in 'stories260K writes 200 tokens' 'stories260K writes 256 tokens' \
        'stories260K loses what llama2.c loses'; do
        number=$((number + 1))
        echo "ok $number - $name # SKIP the data is not there"
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
