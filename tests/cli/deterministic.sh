#!/bin/sh
# Deterministic mode: with --deterministic this processor, with all that it has, and the same processor
# taken for one with AVX2 alone (WENGERT_SIMD, and BLIS's kernels for Haswell) train a model with the same
# bits, and with WENGERT_DETERMINISTIC=1 they use it with the same bits. Prints TAP.
. "$(dirname "$0")/setup.sh"
unset OMP_NUM_THREADS

unset WENGERT_SIMD WENGERT_DETERMINISTIC
echo '{"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "n_positions": 64}' >gpt.json
head -c 12000 "$source/corpus/heldout.txt" >text.txt
cut -c 1-60 text.txt | head -n 20 >lines.txt

# Does the rest as on a processor with AVX2 alone.
with_avx2_alone() {
    (
        WENGERT_SIMD=v3
        export WENGERT_SIMD
        "$@"
        exit "$code"
    )
    code=$?
}

pretrain() {
    name=$1
    shift
    run pretrain gpt --config gpt.json --corpus text.txt --tokenizer byte --steps 20 --seq 64 --batch 4 \
        --log "$name.log" --out "$name.h5" --overwrite "$@"
    sed -i 's/, "tokens_per_s": [^,}]*//' "$name.log"
}

# The kernels that a run was made with: a row of its environment.
has_row() {
    "$wengert" info "$1.h5" --json | tr -d ' \n' | grep -qF "\"$2\":\"$3\""
}

# The numbers of all weights and of each step.
same_run() {
    "$wengert" convert "$1.h5" "$1.safetensors" 2>err && "$wengert" convert "$2.h5" "$2.safetensors" 2>err &&
        cmp "$1.safetensors" "$2.safetensors" && cmp "$1.log" "$2.log"
}

pretrain all --deterministic
check 'a run in deterministic mode' test $code = 0
with_avx2_alone pretrain less --deterministic
check 'a run in deterministic mode with AVX2 alone' test $code = 0
check 'the run says that it is deterministic' has_row all deterministic yes
check 'its kernels are those for AVX2' has_row all kernels v3
check 'BLIS takes no part' has_row all blis_kernels none
check 'twenty steps have the same bits on a processor with AVX2 alone' same_run all less

# The comparison sees what the mode prevents.
pretrain plain
check 'a run that is not deterministic says so' has_row plain deterministic no
with_avx2_alone pretrain plainless
check 'the kernels are those of the processor that is named' has_row plainless kernels v3
if has_row plain kernels v4; then
    check 'without the mode the bits differ' eval '! same_run plain plainless >cmp.txt 2>&1'
else
    skip 'without the mode the bits differ' 'this processor has no AVX-512'
fi

# A run goes on as it began, without the option.
pretrain half --deterministic --steps 12 --keep-every 6 --schedule constant --warmup 0
cp half.6.h5 rest.h5
cp half.log rest.log
sed -i 7,12d rest.log
with_avx2_alone run pretrain gpt --resume --out rest.h5 --log rest.log
sed -i 's/, "tokens_per_s": [^,}]*//' rest.log
check 'a deterministic run goes on as such' eval 'has_row rest deterministic yes && same_run half rest'
run pretrain gpt --resume --out plain.h5 --deterministic
check 'a run that began without the mode does not change to it' left_with 1 '--deterministic'

# The other verbs: by the environment.
WENGERT_DETERMINISTIC=1
export WENGERT_DETERMINISTIC
for verb in 'score all.h5 --text lines.txt' 'generate all.h5 --prompt The --max-tokens 30 --seed 3 --temperature 1' \
    'eval all.h5 --corpus text.txt --json'; do
    run $verb
    test $code = 0 && cp out wanted
    with_avx2_alone run $verb
    check "the same bits in wengert ${verb%% *}" eval 'test $code = 0 && test -s wanted && cmp wanted out'
done
pretrain environment
check 'a run takes the mode from the environment' eval 'has_row environment deterministic yes && same_run all environment'
WENGERT_SIMD=base
export WENGERT_SIMD
refuses 'a processor without AVX2 cannot have the mode' 'which this processor does not have' \
    pretrain gpt --config gpt.json --corpus text.txt --tokenizer byte --steps 1 --out bad.h5

finish
