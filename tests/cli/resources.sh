#!/bin/sh
# What other libraries would end in words of their own, or crash at, is told by the command: too little
# memory, too few threads, kernels that BLIS does not have. Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-resources.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT

. "$source/tests/cli/tap.sh"

echo '{"model_type": "gpt2", "n_layer": 1, "n_embd": 96, "n_head": 4, "n_positions": 128}' >gpt.json
head -c 30000 "$source/corpus/heldout.txt" >text.txt

pretrain() {
    run pretrain gpt --config gpt.json --corpus text.txt --tokenizer byte --steps 1 --seq 64 --batch 4 \
        --out run.h5 --overwrite "$@"
}

# ---- Kernels ----

for type in foo 99; do
    BLIS_ARCH_TYPE=$type
    export BLIS_ARCH_TYPE
    pretrain
    check "BLIS_ARCH_TYPE='$type' does not end the program" test "$code" = 0
done
unset BLIS_ARCH_TYPE

# ---- The stack ----

for kib in 64 256 700; do
    (ulimit -s $kib && "$wengert" --version >out 2>err)
    code=$?
    check "a stack of $kib KiB is too small" left_with 1 'raise ulimit -s'
done
(ulimit -s 1024 && "$wengert" --version >out 2>err)
check 'a stack of 1 MiB is enough' test $? = 0

# ---- Memory ----

# True if libgfortran, which begins before main, ended the command for want of memory. It says so in its own words.
fails_before_main() {
    test "$code" = 1 && test "$(tail -n 1 err)" = 'Memory allocation failed'
}

# Does the test with so many kB of address space. The command must succeed or say in one line what it
# had no memory for; anything else is appended to the file `foreign'.
within() {
    (
        ulimit -c 0 2>/dev/null
        ulimit -v "$1" || exit 99
        shift
        pretrain "$@"
        # Before main the loader reports that libraries do not fit.
        if test "$code" = 0 || test "$code" = 127 || fails_before_main; then
            exit 0
        fi
        test "$code" = 1 && tail -n 1 err | grep -q '^wengert: .*memory' && exit 3
        echo "$* exit $code: $(tail -n 1 err)" >>foreign
        exit 4
    )
}

pretrain --threads 1
if ldd "$wengert" 2>/dev/null | grep -q asan || { test -x .libs/wengert && ldd .libs/wengert | grep -q asan; } ||
    ! (ulimit -v 4000000 && "$wengert" --version >/dev/null 2>&1); then
    skip 'memory that runs out is told by the command' 'address space cannot be limited here'
else
    : >foreign
    refused=0 fine=0
    for threads in 2 8; do
        limit=75000
        while test $limit -lt 180000; do
            within $limit --threads $threads
            case $? in
            3) refused=$((refused + 1)) ;;
            0) fine=$((fine + 1)) ;;
            esac
            limit=$((limit + 7000))
        done
    done
    cp foreign err
    check 'memory that runs out is told by the command' test ! -s foreign
    check 'some of these runs had too little memory, and some enough' test $refused -gt 3 -a $fine -gt 3

    # BLIS and our own kernels give other bits, and BLIS is called only where there is memory for its buffers.
    for threads in 1 60; do
        rm -f $threads.log
        (ulimit -v 500000 && pretrain --threads $threads --steps 3 --log $threads.log && exit "$code")
        sed 's/, "tokens_per_s": [^,}]*//' $threads.log >$threads.steps
    done
    check 'with little memory the same bits at any number of threads' eval 'test -s 1.steps && cmp -s 1.steps 60.steps'

    # Where the libraries just fit there is no memory for the stack. (A little below, libgfortran calls itself
    # without end before main, as it reports its own lack of memory.)
    limit=40000 code=127
    : >foreign
    while test $code != 0 && test $limit -lt 180000; do
        (ulimit -c 0; ulimit -v $limit; "$wengert" --version >/dev/null 2>>foreign)
        code=$?
        limit=$((limit + 400))
    done
    cp foreign err
    check 'a command of which only the libraries fit says that there is no memory' \
        grep -q '^wengert: no memory for a stack' foreign

    # Threads that cannot be made are done without: the numbers are the same.
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
