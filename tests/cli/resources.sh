#!/bin/sh
# A run that gets fewer threads than it asked for. Prints TAP.
. "$(dirname "$0")/setup.sh"
unset OMP_NUM_THREADS

echo '{"model_type": "gpt2", "n_layer": 1, "n_embd": 96, "n_head": 4, "n_positions": 128}' >gpt.json
head -c 30000 "$source/corpus/heldout.txt" >text.txt

pretrain() {
    run pretrain gpt --config gpt.json --corpus text.txt --tokenizer byte --steps 1 --seq 64 --batch 4 \
        --out run.h5 --overwrite "$@"
}

if ldd "$wengert" 2>/dev/null | grep -q asan || { test -x .libs/wengert && ldd .libs/wengert | grep -q asan; } ||
    ! (ulimit -v 4000000 && "$wengert" --version >/dev/null 2>&1); then
    skip 'a run with fewer threads than it asked for gives the same numbers' 'address space cannot be limited here'
else
    pretrain --threads 2
    cp out two
    (
        ulimit -v 300000
        pretrain --threads 24
        cmp -s out two && exit "$code"
    )
    check 'a run with fewer threads than it asked for gives the same numbers' test $? = 0
fi

finish
