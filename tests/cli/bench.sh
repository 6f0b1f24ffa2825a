#!/bin/sh
# wengert bench: that it runs, prints the machine's limits, and refuses wrong usage. The figures that it
# measures are not tested. Prints TAP.
. "$(dirname "$0")/setup.sh"
unset OMP_NUM_THREADS
verb=bench

expect 'an op is timed forward and backward' 0 'ops add --seconds 0.001' \
    'threads, memory [0-9.]* GB/s, sgemm [0-9.]* GFLOP/s' '^add  *[0-9.]* .* of memory$'
expect 'a product is held against sgemm' 0 'ops matmul --seconds 0.001' '^matmul .* of sgemm$'
expect 'the number of threads is chosen' 0 'ops add --seconds 0.001 --threads 1' '^1 threads'
expect 'JSON tells the same' 0 'ops add --json --seconds 0.001' '"memory_gb_per_s"' '"op": "add"' \
    '"share_of_roof"'
expect 'an op that is not there is wrong usage' 2 'ops nosuch' "there is no op 'nosuch'"
expect 'an op that is not timed is wrong usage' 2 'ops flip' 'flip is not timed'
expect 'what an op costs beside its arithmetic is timed' 0 'ops add flip --small --seconds 0.001' \
    '^add  *[0-9]*  *[0-9]*$' '^flip  *[0-9]*  *[0-9]*$'
expect 'JSON tells that, too' 0 'ops relu --small --json --seconds 0.001' '"op": "relu"' \
    '"ns": [0-9]'
expect 'every op that has a sample can be timed on it' 0 'ops --small --seconds 0' '^where ' '^einsum '
sizes='--batch 2 --seq 16 --vocab 100 --steps 1 --threads 1'
for model in gpt2-tiny transformer-tiny; do
    expect "a step of $model is timed, in one line of JSON" 0 "train $model $sizes" \
        "^{\"preset\": \"$model\", .*}$" '"ms_per_step": [0-9]' '"tokens_per_s": [0-9]' \
        '"gflops": [0-9]' '"sgemm_peak_gflops": [0-9]' '"share_of_peak": [0-9]' \
        '"max_rss_mb": [0-9]' '"allocations_after_warmup": 0,' '"threads": 1,' '"kernels": "[a-z0-9]*",' '"loss": [0-9]'
done
expect 'layers that run twice are told' 0 "train gpt2-tiny $sizes --recompute" '"recompute": true,'
expect 'two layers are no stack' 1 "train mlp $sizes --recompute" '^wengert: .*mlp is no stack'
expect 'a profile tells each direction of an op, beside the roofs' 0 \
    "train gpt2-tiny $sizes --profile" 'sgemm [0-9.]* GFLOP/s, memory [0-9.]* GB/s' \
    '^linear  *forward .* of ' '^linear  *backward .* of ' '^optimizer  *region' '^between them' \
    '"ms_per_step"'
expect 'a trace is written' 0 "train gpt2-tiny $sizes --trace trace.json" '"ms_per_step"'
check 'it holds complete events' grep \
    -q '"name": "attention", "cat": "backward", "ph": "X", "ts": ' trace.json
expect 'a full disk is told' 1 "train gpt2-tiny $sizes --trace /dev/full" \
    '^wengert: .*/dev/full.*No space left'
for dtype in f32 q8_0; do
    expect "writing text with weights in $dtype is timed" 0 \
        "generate gpt2-tiny --prompt-tokens 3 --tokens 3 --threads 1 --dtype $dtype" \
        "^{\"model\": \"gpt2-tiny\", \"dtype\": \"$dtype\", .*}$" '"prefill_tokens_per_s": [0-9]' \
        '"decode_tokens_per_s": [0-9]' '"mb_per_token": [0-9]' '"share_of_bandwidth": [0-9]'
done
expect 'several texts are written at once' 0 \
    'generate llama-260k --prompt-tokens 3 --tokens 3 --threads 1 --batch 3' '"batch": 3'
expect 'a model that writes no text is told' 1 'generate bert-mini' 'no such file, nor a preset'
expect 'weights in a type that is not there are wrong usage' 2 'generate gpt2-tiny --dtype q5_1' \
    'f32, bf16, q8_0 and q4_0 are there'
expect 'and so are those that only products know' 2 'generate gpt2-tiny --dtype q8_0x16' \
    'f32, bf16, q8_0 and q4_0 are there'
expect 'a kind of model has presets' 0 "train gpt --preset gpt2-tiny $sizes" '"gpt2-tiny"'
expect 'a model that is not there is told' 1 'train nosuch' "no model 'nosuch'; there are bert"
expect 'a preset that is not there is told' 1 'train gpt --preset bert-tiny' 'gpt2-tiny'
expect 'sequences too short to mask are told' 1 'train bert-tiny --seq 3' 'of fewer than 4'
expect 'no model is wrong usage' 2 'train' 'which model'
expect 'two models are wrong usage' 2 'train gpt bert' 'one too many'
expect 'no steps are wrong usage' 2 'train gpt --steps 0' '--steps'
expect 'two layers of width 32 are timed' 0 'train mlp --steps 20 --threads 1' \
    '^{"preset": "mlp-32", "parameters": 1386, "batch": 32, ' '"allocations_after_warmup": 0,'

expect 'a product of a given shape is held against sgemm' 0 'gemm 64x32x16 --threads 1' \
    '^{"use": "given", "m": 64, "n": 32, "k": 16, "transposed": false, "dtype": "f32", "threads": 1, "kernels": "[a-z0-9]*", .*}$' \
    '"ms": [0-9]' '"gflops": [0-9]' '"sgemm_peak_gflops": [0-9]' '"share_of_peak": [0-9]'
expect 'what is no shape is wrong usage' 2 'gemm 64x32' "'64x32' is no shape"
expect 'nor is one that does not end' 2 'gemm 64x32x16x8' 'is no shape'
expect 'nor one of nothing' 2 'gemm 64x0x16' 'is no shape'

expect 'attention in a window is timed, and its memory counted' 0 \
    'attention --seq 96 --heads 2 --width 8 --window 4 --causal --runs 1 --threads 1' \
    '^{"seq": 96, "heads": 2, "width": 8, "causal": true, "window": 4, "threads": 1, .*}$' \
    '"forward_ms": [0-9]' '"backward_ms": [0-9]' '"workspace_mib": [0-9]' '"share_of_peak": [0-9]'
expect 'a window of nothing is wrong usage' 2 'attention --window 0' 'window'

# The folder of temporary files has to be empty.
leave_nothing() {
    check "$1" test -z "$(ls temporary)"
}

mkdir temporary
folder='--folder temporary --rounds 2'
expect 'a model is written and read' 0 "checkpoint gpt2-tiny $folder" \
    '^{"preset": "gpt2-tiny", .*}$' '"rounds": 2,' '"write_mb_per_s": [0-9]' '"read_mb_per_s": [0-9]'
leave_nothing 'what was written is removed'
(
    trap '' XFSZ # writing beyond the limit fails then, as on a full disk
    ulimit -f 100
    run bench checkpoint gpt2-tiny --folder temporary
    exit $code
)
code=$?
check 'a disk that is full is told in one line' eval 'left_with 1 "model.h5: File too large" &&
    test "$(cat out err | wc -l)" = 1'
leave_nothing 'and nothing stays on it'
books=books.txt
for i in 1 2 3; do
    printf 'The %s cat sat. A dog of %s barked at it, and ran away!\n\n\n\n' "$i" "$i$i"
    printf 'It is raining in %s towns. Nobody minds it, as it never lasts.\n\n\n\n' "$i"
done >books.txt
sizes="--batch 2 --seq 32 --seconds 0.001"
expect 'tokenizers and batches are timed' 0 "data --corpus $books $sizes" \
    '^{"tokenizer": "wordpiece", .*"mb_per_s": [0-9].*"mb_per_s_by_line": [0-9].*}$' \
    '^{"tokenizer": "bpe", ' '^{"tokenizer": "byte", .*"bytes_per_token": 1.0}$' \
    '^{"batches": "causal-lm", "batch": 2, "seq": 32, "tokens_per_s": [0-9]' '^{"batches": "masked-lm", ' \
    '^{"batches": "blank-infilling", ' '^{"batches": "span-corruption", ' '^{"batches": "pairs", ' \
    '^{"batches": "translation", .*"tokens_per_s": [0-9]'
expect 'a text that is not there is told' 1 "data --corpus nosuch" ': No such file'
printf '\377\n' >latin
expect 'a text that is not UTF-8 is told' 1 "data --corpus latin" '^wengert: .*UTF-8'
: >empty
expect 'an empty text is told' 1 "data --corpus empty" '^wengert: '
expect 'a tokenizer that is not there is told' 1 \
    "data --corpus $books $sizes --tokenizer nosuch" '^wengert: .*nosuch'
expect 'where there are no books a text is asked for' 1 data \
    '^wengert: .*--corpus FILE names a text$'
expect 'a folder that is not there is told' 1 "checkpoint gpt2-tiny --folder nosuch" \
    '^wengert: .*nosuch: No such file'
expect 'a checkpoint of no model is wrong usage' 2 'checkpoint' 'which model'

expect 'a bench that is not there is wrong usage' 2 'nosuch' "there is no bench 'nosuch'"
expect 'no bench is wrong usage' 2 '' 'missing bench'
expect 'help lists the benches' 0 '--help' '^  ops '
expect 'help of a bench is given' 0 'ops --help' 'share of the roof'
finish
