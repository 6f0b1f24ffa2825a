#!/bin/sh
# LoRA as a user runs it: `--lora' of finetune and pretrain, resuming, the adapter in a file of its own,
# merging, info, the use of the run by other verbs; bad input. Prints TAP. WENGERT: the command
# (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-lora.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

head -n 900 "$source/corpus/books/alice-in-wonderland.txt" >text.txt
cat >bert.json <<END
{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 80}
END
cat >gpt.json <<END
{"vocab_size": 300, "n_positions": 64, "n_embd": 16, "n_layer": 2, "n_head": 2}
END
for model in bert gpt; do
    run pretrain $model --corpus text.txt --config $model.json --batch 4 --seq 32 --steps 2 --out $model.h5
    check "$model is pretrained" test $code = 0
done
i=0
while [ $i -lt 24 ]; do
    printf 'the good rabbit %s\t1\nthe bad queen %s\t0\n' $i $i
    i=$((i + 1))
done >labels.tsv

# ---- Fine-tuning: a whole run, and one that is stopped and resumed ----
tune() {
    run finetune "$@" --task classify --batch 8 --seq 16 --threads 1
}
tune bert.h5 --train labels.tsv --eval labels.tsv --steps 12 --lr 0.02 --lora 4 --lora-dropout 0.1 --out whole.h5
check 'finetune --lora says how much is trained' eval 'test $code = 0 &&
    grep -q "^lora   rank 4 on 4 layers; 546 parameters are trained" err'
tune bert.h5 --train labels.tsv --eval labels.tsv --steps 6 --schedule constant --warmup 0 --lr 0.02 --lora 4 --lora-dropout 0.1 --out parts.h5
tune --resume --steps 12 --out parts.h5
check 'a run with --lora is resumed' test $code = 0
tune bert.h5 --train labels.tsv --eval labels.tsv --steps 12 --schedule constant --warmup 0 --lr 0.02 --lora 4 --lora-dropout 0.1 --out constant.h5
for run in parts constant; do
    run convert $run.h5 $run.safetensors
done
check 'and has the bits of one that never stopped' cmp parts.safetensors constant.safetensors

run info whole.h5 --json
check 'info shows the adapter and counts it' eval 'grep -q "\"r\": 4" out &&
    grep -q "\"target_modules\": \[" out && grep -Eq "\"parameters\": 512($|,|})" out'
run info whole.h5
check 'for people, too' grep -q '^LoRA, beside the weights' out

# ---- The adapter alone, and added to the weights ----
run convert whole.h5 adapter --adapter-only
check 'the adapter is written alone' eval 'test $code = 0 && test "$(ls adapter | tr "\n" " ")" = \
    "adapter_config.json adapter_model.safetensors "'
run info adapter/adapter_model.safetensors --all
check 'by the names of PEFT' eval 'test $code = 0 && grep -q \
    "base_model.model.bert.encoder.layer.1.attention.self.query.lora_A.weight  *f32 (4, 16)" out &&
    grep -q "base_model.model.classifier.weight  *f32 (2, 16)" out'
run convert whole.h5 merged.h5
check 'a run is converted with the adapter added' test $code = 0
run eval whole.h5 --corpus labels.tsv
cp out run.out
# the whole model is the base with the adapter, once the base has the head that the adapter brings
tune bert.h5 --train labels.tsv --eval labels.tsv --steps 1 --lr 0 --out base.h5
run convert base.h5 added.safetensors --adapter adapter
check 'an adapter is added to the weights of its base' test $code = 0
run convert whole.h5 merged.safetensors
check 'which gives the weights of the run' cmp added.safetensors merged.safetensors
run eval whole.h5 --corpus labels.tsv --predictions a.txt
check 'eval uses the run as it is' test $code = 0

run pretrain gpt --init gpt.h5 --corpus text.txt --batch 4 --seq 32 --steps 3 --lr 0.05 --lora 2 --lora-targets all-linear --lora-alpha 8 --out gl.h5
check 'pretrain --init --lora adapts a language model' eval 'test $code = 0 &&
    grep -q "^lora   rank 2 on 8 layers" err'
run convert gl.h5 gl-adapter --adapter-only
run convert gpt.h5 gl-added.safetensors --adapter gl-adapter
check 'transposed weights take an adapter' test $code = 0
run convert gl.h5 gl-merged.safetensors
check 'as the run has it' cmp gl-added.safetensors gl-merged.safetensors
run generate gl.h5 --prompt the --max-tokens 4
check 'and generate uses it' test $code = 0
run pretrain gpt --init gpt.h5 --corpus text.txt --batch 4 --seq 32 --steps 3 --lr 0.05 --lora 2 --recompute --lora-dropout 0.2 --out recomputed.h5
run pretrain gpt --init gpt.h5 --corpus text.txt --batch 4 --seq 32 --steps 3 --lr 0.05 --lora 2 --lora-dropout 0.2 --out kept.h5
for run in recomputed kept; do
    run convert $run.h5 $run.safetensors
done
check 'recomputed layers learn the same adapter, bit for bit' cmp recomputed.safetensors kept.safetensors
tune whole.h5 --train labels.tsv --eval labels.tsv --steps 2 --out again.h5
check 'a run with --lora can be fine-tuned whole' test $code = 0

# ---- Bad input ----
run average gl.h5 gl.h5 --out x.h5
check 'adapters are added before models are averaged' eval 'test $code = 1 &&
    grep -q "it has a LoRA adapter beside its weights; .wengert convert gl.h5 OUT.h5" err'
tune bert.h5 --train labels.tsv --eval labels.tsv --lora 4 --lora-targets query,keys --out x.h5
what='no linear layer is "keys"; their names end in query, key, value, dense'
check 'a target that is not there is told with those that are' eval 'test $code != 0 && grep -q "$what" err'
tune bert.h5 --train labels.tsv --eval labels.tsv --lora-alpha 4 --out x.h5
check 'options of LoRA want a rank' eval 'test $code != 0 && grep -q "lora-alpha is of LoRA; name its rank, too: --lora 8" err'
run pretrain gpt --corpus text.txt --config gpt.json --lora 4 --out x.h5
check 'a new model has no weights to keep' eval 'test $code != 0 && grep -q "name it by --init" err'
run convert bert.h5 x --adapter-only
check 'a run without an adapter has none to write' eval 'test $code != 0 && grep -q "holds no LoRA adapter" err && ! test -e x'
run convert gpt.h5 x.h5 --adapter adapter
check 'an adapter of another model is refused' eval 'test $code != 0 && grep -q "unexpected" err && ! test -e x.h5'
mkdir empty
run convert gpt.h5 x.h5 --adapter empty
check 'a folder without an adapter is refused' eval 'test $code != 0 && grep -q "empty/adapter_config.json" err'

finish
