#!/bin/sh
# LoRA as a user runs it: `--lora' of finetune and pretrain, resuming, the adapter in a file of its own,
# merging, info, the use of the run by other verbs; bad input. Prints TAP.
. "$(dirname "$0")/setup.sh"

pretrain_tiny bert 80 2
pretrain_tiny gpt 64 2
i=0
while [ $i -lt 24 ]; do
    printf 'the good rabbit %s\t1\nthe bad queen %s\t0\n' $i $i
    i=$((i + 1))
done >labels.tsv

# ---- Fine-tuning: a whole run, and one that is stopped and resumed ----
tune() {
    from=$1
    shift
    run finetune "$from" --task classify --batch 8 --seq 16 --threads 1 --train labels.tsv \
        --eval labels.tsv "$@"
}
adapt='--schedule constant --warmup 0 --lr 0.02 --lora 4 --lora-dropout 0.1'
# shellcheck disable=SC2086
tune bert.h5 --steps 12 $adapt --out whole.h5
check 'finetune --lora says how much is trained' eval 'test $code = 0 &&
    grep -q "^lora   rank 4 on 4 layers; 546 parameters are trained" err'
# shellcheck disable=SC2086
tune bert.h5 --steps 6 $adapt --out parts.h5
succeeds 'a run with --lora is resumed' finetune --task classify --resume --steps 12 --threads 1 \
    --out parts.h5
for run in parts whole; do
    run convert $run.h5 $run.safetensors
done
check 'and has the bits of one that never stopped' cmp parts.safetensors whole.safetensors

run info whole.h5 --json
check 'info shows the adapter and counts it' eval 'grep -q "\"r\": 4" out &&
    grep -q "\"target_modules\": \[" out && grep -Eq "\"parameters\": 512($|,|})" out'
shows 'for people, too' '^LoRA, beside the weights' info whole.h5

# ---- The adapter alone, and added to the weights ----
run convert whole.h5 adapter --adapter-only
check 'the adapter is written alone' eval 'test $code = 0 && test "$(ls adapter | tr "\n" " ")" = \
    "adapter_config.json adapter_model.safetensors "'
run info adapter/adapter_model.safetensors --all
check 'by the names of PEFT' has 'base_model.model.classifier.weight  *f32 (2, 16)' \
    'base_model.model.bert.encoder.layer.1.attention.self.query.lora_A.weight  *f32 (4, 16)'
# the whole model is the base with the adapter, once the base has the head that the adapter brings
tune bert.h5 --steps 1 --lr 0 --out base.h5
succeeds 'an adapter is added to the weights of its base' convert base.h5 added.safetensors \
    --adapter adapter
check 'which gives the weights of the run' cmp added.safetensors whole.safetensors
succeeds 'eval uses the run as it is' eval whole.h5 --corpus labels.tsv

adapt_gpt() {
    run pretrain gpt --init gpt.h5 --corpus text.txt --batch 4 --seq 32 --steps 3 --lr 0.05 \
        --lora 2 "$@"
}
adapt_gpt --lora-targets all-linear --lora-alpha 8 --out gl.h5
check 'pretrain --init --lora adapts a language model' eval 'test $code = 0 &&
    grep -q "^lora   rank 2 on 8 layers" err'
run convert gl.h5 gl-adapter --adapter-only
succeeds 'transposed weights take an adapter' convert gpt.h5 gl-added.safetensors \
    --adapter gl-adapter
run convert gl.h5 gl-merged.safetensors
check 'as the run has it' cmp gl-added.safetensors gl-merged.safetensors
succeeds 'and generate uses it' generate gl.h5 --prompt the --max-tokens 4
adapt_gpt --recompute --lora-dropout 0.2 --out recomputed.h5
adapt_gpt --lora-dropout 0.2 --out kept.h5
for run in recomputed kept; do
    run convert $run.h5 $run.safetensors
done
check 'recomputed layers learn the same adapter, bit for bit' cmp recomputed.safetensors kept.safetensors
tune whole.h5 --steps 2 --out again.h5
check 'a run with --lora can be fine-tuned whole' test $code = 0

# ---- Bad input ----
mkdir empty
refuses_each <<'END'
a mean of adapters | it has a LoRA adapter beside its weights; `wengert convert gl.h5 OUT.h5 | \
    average gl.h5 gl.h5 --out bad.h5
a run without an adapter to write | holds no LoRA adapter | convert bert.h5 bad --adapter-only
an adapter of another model | unexpected | convert gpt.h5 bad.h5 --adapter adapter
a folder without an adapter | empty/adapter_config.json | convert gpt.h5 bad.h5 --adapter empty
END
misused 'name it by --init' pretrain gpt --corpus text.txt --config gpt.json --lora 4 --out bad.h5
tune bert.h5 --lora-alpha 4 --out bad.h5
check 'options of LoRA want a rank' eval 'test $code != 0 &&
    grep -q "lora-alpha is of LoRA; name its rank, too: --lora 8" err'

finish
