#!/bin/sh
# `wengert convert` as a user runs it. Prints TAP.
#
# WENGERT_DATA: the real data that some machines have.
. "$(dirname "$0")/setup.sh"
fixtures=$source/tests/fixtures/convert
unset OMP_NUM_THREADS

run() {
    "$wengert" convert "$@" >out 2>err </dev/null
    code=$?
}

succeeds() {
    test "$code" = 0 && grep -qF -- "$1" out
}

gguf_agrees() {
    python3 "$source/tests/cli/gguf_check.py" stories.gguf "$data/stories260K/stories260K.bin" \
        "$data/stories260K/tok512.bin" >out 2>err
}

run
check "without files is wrong usage" left_with 2 "missing IN and OUT"
leaves "without OUT is wrong usage" 2 "missing OUT" "$fixtures/gpt"
run "$fixtures/gpt" x.h5 --dtype q4
check "an unknown type is wrong usage" left_with 2 "f32, f16, bf16 and q8_0 are there"
leaves "a file that is not there is one clear line" 1 "nothing.gguf" nothing.gguf x.h5
echo 'Once upon a time.' >text.txt
run text.txt x.h5
check "a text is called so" left_with 1 'is plain text, no checkpoint; `wengert pretrain MODEL --corpus'
run "$fixtures/hostile.pt" x.h5
check "a pickle that wants more than tensors is refused" left_with 1 "it wants posix.system"
check "and leaves nothing" test ! -e x.h5

run "$fixtures/gpt" gpt.h5
check "a published folder becomes a checkpoint" succeeds "gpt.h5: gpt2 of 4.98 k parameters in 28 tensors"
run "$fixtures/encoder" encoder.h5
check "heads that are begun anew are told" left_with 0 "begun anew: bert.pooler.dense.weight"
run "$fixtures/llama" llama.safetensors --dtype f16
check "numbers become halves" succeeds "safetensors to safetensors"
run "$fixtures/llama" shards --shard-size 4KB
check "tensors are shared out among files" test -s shards/model.safetensors.index.json \
    -a -s shards/model-00001-of-00007.safetensors -a ! -e shards/model.safetensors
run "$fixtures/llama" x --shard-size 4XB
check "a size of no unit is wrong usage" left_with 2 "--shard-size: '4XB' is not a size"
run "$fixtures/llama" x.h5 --shard-size 1GiB
check "only safetensors have shards" left_with 1 "hdf5 is written as one file"
run llama.safetensors llama.gguf --config "$fixtures/llama/config.json" --json
check "the summary is JSON if asked for" succeeds '"to": "gguf"'
cp gpt.h5 altered.h5
printf '\377\377\377\377' | dd of=altered.h5 bs=1 seek=$(($(wc -c <gpt.h5) / 2)) conv=notrunc 2>/dev/null
leaves "a checkpoint with a damaged tensor is refused" 1 "altered.h5" altered.h5 altered
check "and leaves no folder" test ! -e altered
mkdir full && echo mine >full/notes.txt
run altered.h5 full
check "a folder that was there stays" test "$code" = 1 -a "$(ls full)" = notes.txt
run gpt.h5 folder
check "a checkpoint becomes a folder" test -s folder/config.json -a -s folder/model.safetensors

# ---- Checkpoints of trainers ----

trainer=$source/tests/fixtures/trainer
run "$fixtures/gpt" published.safetensors

# Succeeds if the last run wrote the same file as that of the published folder, and told that.
takes_the_model() {
    test "$code" = 0 && cmp out.safetensors published.safetensors && grep -qF -- "$1" err
}
run "$trainer/compiled.pt" out.safetensors
check "of a trainer's checkpoint the model is taken, and told" takes_the_model \
    'the model is the 28 tensors below "model._orig_mod."; the other 7 are left out'
run "$trainer/lightning.ckpt" out.safetensors
check "prefixes of wrappers are taken off" takes_the_model \
    'the model is the 28 tensors below "state_dict.model.module."'
run "$trainer/twice.pt" twice.safetensors
check "of two models that could be meant neither is taken" left_with 1 \
    '"student." and "teacher." hold this model; name one by --prefix'
check "and nothing is left of it" test ! -e twice.safetensors
run "$trainer/twice.pt" out.safetensors --prefix teacher.
check "--prefix names the model" takes_the_model \
    'the model is the 28 tensors below "teacher."; the other 28 are left out'
run "$trainer/twice.pt" out.safetensors --prefix pupil.
check "a prefix that is not there is told with those that are" left_with 1 \
    'no tensor begins with "pupil."; they begin with "student.", "teacher."'
run "$trainer/linear.pt" out.safetensors
check "transposed matrices are called so" left_with 1 '6 transposed (transformer.h.0.attn.c_attn.weight'
check "what to do with them is told" left_with 1 'transpose them before you save'
check "absent biases are called so" left_with 1 'without biases is completed with zeros'

if ! test -r "$data/stories260K/stories260K.bin" || ! command -v python3 >/dev/null; then
    skip "GGUF agrees with another reader" "wants python3 and stories260K"
else
    run "$data/stories260K/stories260K.bin" stories.h5 --tokenizer "$data/stories260K/tok512.bin"
    run stories.h5 stories.gguf
    check "GGUF agrees with another reader, bit for bit" gguf_agrees
fi

# ---- A converted model does what it did: eval, generate, fill, and more training ----

# Runs a verb and writes its results to the file that is named first.
tell() {
    into=$1
    shift
    OMP_NUM_THREADS=1 "$wengert" "$@" >"$into" 2>err </dev/null
    code=$?
    cp "$into" out
}

same() {
    test "$code" = 0 && test -s "$1" && cmp -s "$1" "$2"
}

sizes='"vocab_size": 256, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 32'
head -c 6000 "$source/corpus/heldout.txt" >text.txt
echo "{\"model_type\": \"llama\", \"bos_token_id\": -1, \"eos_token_id\": -1, $sizes}" >llama.json
tell trained pretrain llama --config llama.json --tokenizer byte --corpus text.txt --steps 3 \
    --batch 2 --seq 32 --out a.h5
run a.h5 as-llama
run as-llama b.h5
tell a eval a.h5 --corpus text.txt --seq 32
tell b eval b.h5 --corpus text.txt --seq 32
check "a llama from a folder is measured as before" same a b
tell a generate a.h5 --prompt "It is" --temperature 0 --max-tokens 20
tell b generate b.h5 --prompt "It is" --temperature 0 --max-tokens 20
check "and writes as before" same a b
tell trained pretrain llama --init b.h5 --corpus text.txt --steps 1 --lr 1e-30 --batch 2 --seq 32 \
    --out c.h5
tell a eval a.h5 --corpus text.txt --seq 32
tell b eval c.h5 --corpus text.txt --seq 32
check "and is trained from where it was" same a b
tell trained pretrain gpt --init b.h5 --corpus text.txt --out d.h5
check "a checkpoint of another kind is no beginning" left_with 1 "b.h5: it holds a llama model"
tell trained pretrain llama --init b.h5 --preset llama-260k --corpus text.txt --out d.h5
check "a checkpoint says the sizes" left_with 2 "--init and --preset exclude each other"

awk 'NF { print $0 "." } NF && ++n % 6 == 0 { print "" }' text.txt >lines.txt
tell trained tokenizer train --kind wordpiece --vocab-size 256 --corpus text.txt --out words.json
echo "{\"model_type\": \"bert\", $sizes}" >bert.json
tell trained pretrain bert --config bert.json --tokenizer words.json --corpus lines.txt \
    --eval lines.txt --steps 2 --batch 2 --seq 32 --out a.h5 --overwrite
run a.h5 as-bert
run as-bert b.h5
tell a fill a.h5 "It is [MASK]."
tell b fill b.h5 "It is [MASK]."
check "a BERT from a folder fills as before" same a b
tell trained pretrain bert --init b.h5 --corpus lines.txt --eval lines.txt --steps 1 --lr 1e-30 \
    --batch 2 --seq 32 --out c.h5 --overwrite
tell b fill c.h5 "It is [MASK]."
check "and is trained from where it was" same a b

# ---- The model card and generation_config.json ----

# any verb
verb() {
    "$wengert" "$@" >out 2>err </dev/null
    code=$?
}

book 900 >text.txt
tiny gpt 300 32 >card.json
verb pretrain gpt --corpus "$PWD/text.txt" --config card.json --batch 4 --seq 32 --steps 3 --eval-every 2 --out card.h5
run card.h5 carded
check 'a folder gets a card that says how the model was trained' eval 'test $code = 0 &&
    test "$(head -n 1 carded/README.md)" = --- && grep -qx "pipeline_tag: text-generation" carded/README.md &&
    grep -q "^| tokens seen | 384," carded/README.md && grep -q "^| loss on held-out text | [0-9.]* |" carded/README.md'
check 'but no folder of this machine and no licence' eval '! grep -q "$PWD\|licen[cs]e" carded/README.md'
command=$(sed -n 's/^    wengert //p' carded/README.md)
eval "verb $command --out again.h5"
run card.h5 first.safetensors
run again.h5 second.safetensors
check 'and its command makes the same model' cmp first.safetensors second.safetensors
check 'a decoder gets its tokens and how they are drawn' eval 'grep -q "\"eos_token_id\": 299" carded/generation_config.json &&
    grep -q "\"do_sample\": true" carded/generation_config.json'
echo mine >carded/README.md
run card.h5 carded
check 'a card that is there is kept' eval 'test "$(cat carded/README.md)" = mine'
printf '{"do_sample": false, "repetition_penalty": 1.5, "max_new_tokens": 7}' >carded/generation_config.json
run carded greedy.h5
verb generate greedy.h5 --prompt the --seed 1 --json
cp out one
verb generate greedy.h5 --prompt the --seed 2 --json
check 'a published generation_config.json says how texts are drawn, and how long they are' eval 'test $code = 0 &&
    cmp -s one out && grep -q "\"tokens\": 7" out'
verb generate greedy.h5 --prompt the --seed 1 --temperature 1 --max-tokens 12
cp out one
verb generate greedy.h5 --prompt the --seed 2 --temperature 1 --max-tokens 12
check 'unless options do' eval 'test $code = 0 && ! cmp -s one out'
run greedy.h5 back
check 'it comes back as it was' cmp back/generation_config.json carded/generation_config.json
run carded copied
check 'and so does the card, from folder to folder' eval 'test "$(cat copied/README.md)" = mine'
printf '[1' >carded/generation_config.json
run carded x.h5
check 'one that is damaged is refused' eval 'test $code = 1 && grep -q "generation_config.json is no JSON object" err && ! test -e x.h5'

cat >roberta.json <<END
{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
 "max_position_embeddings": 40}
END
verb pretrain roberta --objective mlm --config roberta.json --corpus text.txt --vocab-size 300 --batch 4 --seq 16 \
    --steps 1 --out roberta.h5
run roberta.h5 roberta
check 'a RoBERTa becomes a folder' succeeds "roberta: roberta of"
sed 's/RobertaForMaskedLM/CamembertForMaskedLM/; s/"model_type": "roberta"/"model_type": "camembert"/' \
    roberta/config.json >config && mv config roberta/config.json
run roberta camembert.h5
run camembert.h5 again.safetensors
run roberta.h5 first.safetensors
check 'and comes back under the model_type of CamemBERT' cmp first.safetensors again.safetensors

finish
