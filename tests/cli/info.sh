#!/bin/sh
# `wengert info` on every format: the tree, the costs, metadata and JSON; damaged files and files of
# another kind. Prints TAP.
. "$(dirname "$0")/setup.sh"
fixtures=$source/tests/fixtures/convert

# ---- One model in every format: 5,456 numbers in 21 tensors ----

shows_model() {
    name=$1 format=$2
    shift 2
    run info "$@"
    check "$name: format, numbers, costs" eval 'test $code = 0 && ! test -s err &&
        grep -q ": $format of .*, 5.46 k parameters in 21 tensors" out &&
        grep -q "^model: llama" out && grep -q "forward pass  *9.22 kFLOP a token" out &&
        grep -q "memory in f32  *21.3 KiB" out'
    check "$name: the tree" eval 'grep -q "0 to 1, each  *1.95 k .*x 2" out &&
        grep -qE "^ +q_proj.weight +256 .* \(16, 16\)" out'
    run info --json "$@"
    check "$name: JSON" eval 'test $code = 0 && test "$(grep -c "\"dtype\"" out)" = 21 &&
        grep -q "\"parameters\": 5456" out && grep -q "\"token_flops\": 9216.0" out'
}

shows_model 'a folder' safetensors "$fixtures/llama"
run convert "$fixtures/llama" model.h5
shows_model 'a checkpoint' hdf5 model.h5
run convert model.h5 model.gguf --dtype f16
shows_model 'GGUF' gguf model.gguf
run info model.gguf
check 'GGUF: what is stored, and metadata' eval 'grep -q "f16 (16, 16)" out &&
    grep -q "general.architecture  *\"llama\"" out'
cp "$fixtures/llama/config.json" .
run convert model.h5 model.safetensors --dtype bf16
shows_model 'safetensors with config.json beside it' safetensors model.safetensors
check 'safetensors: what is stored' eval 'run info model.safetensors; grep -q "bf16 (16, 16)" out &&
    grep -q "^metadata:" out'
rm config.json
run info model.safetensors
check 'safetensors alone has no configuration' eval 'test $code = 0 && ! grep -q "^model:" out &&
    grep -q "5.46 k parameters" out'
shows 'the zip of torch.save' ': pytorch of' info "$fixtures/gpt"
run info "$fixtures/llama" --all
check 'all tensors by their whole names' test \
    "$(grep -cE '^    (model|lm_head)\..*weight +f32 \(' out)" = 21
echo '{"model_type": "unheard-of", "hidden_size": 16}' >config.json
run info model.safetensors
check 'a model that is not known has no costs' eval 'test $code = 0 && ! grep -q "^model:" out &&
    grep -q "unheard-of" out'
rm config.json

# ---- Bad input ----

misused 'missing FILE' info
misused 'one too many' info model.h5 model.gguf
refuses 'a file that is not there' 'none.h5' info none.h5
refuses 'a program in a pickle' 'posix.system' info "$fixtures/hostile.pt"
for file in model.h5 model.gguf model.safetensors; do
    head -c 700 $file >cut-$file
    refuses "$file that is cut short" "cut-$file" info cut-$file
done
echo 'a text' >text.txt
refuses 'a text' 'plain text' info text.txt
mkdir empty
refuses 'a folder without a model' 'empty has no model.safetensors' info empty
cp model.safetensors damaged.safetensors
echo '{' >config.json
refuses 'a configuration that is no JSON' 'no JSON' info damaged.safetensors

# ---- On a terminal ----

if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    terminal() {
        TERM=xterm script -qec "$* '$wengert' info model.h5" /dev/null </dev/null >out 2>err
    }
    rm config.json
    check 'colours on a terminal' eval 'terminal; grep -q "$(printf "\033\\[1m")" out'
    check 'none with NO_COLOR' eval 'terminal NO_COLOR=1; grep -q llama out &&
        ! grep -q "$(printf "\033")" out'
else
    skip 'colours on a terminal' 'script(1) gets no terminal'
fi
finish
