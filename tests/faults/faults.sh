#!/bin/sh
# Every verb of the command when an allocation or a system call fails, or the process is killed there.
# Prints TAP: a case is a command and a kind of fault, tried at its first event, its second, and so on.
#
#   tests/faults/faults.sh oom|crash|read [COMMAND...]     COMMAND: a name of `commands' below
#
# `read' is the part of `crash' in which a read fails.
#
# After a fault that the command cannot work round (exit 1) there is one line that says so. After any
# fault, the file to write is the old one or the new one, whole; exit 0 means the new one, the same
# bytes as without the fault. Where a read fails, the line says so ("Input/output error"), and not that
# a file is damaged or missing. No other file is left, but after a kill, whose next run takes the temporary
# file up. That next run gives the bytes of one that never stopped.
#
# FAULT_TRIES=N tries about N events a case, spread evenly over all (default 12); 0 tries every one.
# preload.c does the faults, by a seccomp filter. Allocations of two libraries are left out: BLIS
# ends the program when it gets no memory, and HDF5 1.10.8 crashes on several of its own (double frees,
# property lists that are gone).
what=${1:?oom, crash or read?}
shift
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
build=$PWD
tries=${FAULT_TRIES:-12}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-faults.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
number=0
failed=0

if test "$(uname -sm)" != 'Linux x86_64'; then
    echo '1..0 # SKIP the faults are made for Linux on x86-64'
    exit 0
fi
# shellcheck disable=SC2086 # CC may hold words: "ccache gcc"
${CC:-cc} -O1 -shared -fPIC -o "$work/preload.so" "$source/tests/faults/preload.c" || exit 1
# Not the wrapper of libtool, which is a shell script.
wengert=$build/.libs/wengert
test -x "$wengert" || wengert=$build/wengert
LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
OMP_NUM_THREADS=1
export LD_LIBRARY_PATH OMP_NUM_THREADS

# ---- The files to begin with ----

mkdir "$work/start" && cd "$work/start" || exit 1
i=0
while test $i -lt 30; do
    echo 'one two three four five six .'
    echo 'seven eight nine ten eleven twelve .'
    i=$((i + 1))
    test $((i % 6)) = 0 && echo
done >text.txt
grep . text.txt >lower.txt
tr a-z A-Z <lower.txt >upper.txt
printf '%s\n' 'one two	1' 'six ten	0' 'two one	1' 'ten six	0' >labels.tsv
head -n 4 text.txt >lines.txt
echo 'one [MASK] three' >masks.txt # standard input
printf '%s\n' '{"sentence_good": "one two", "sentence_bad": "two one"}' >pairs.jsonl
size='"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8'
echo "{\"vocab_size\": 60, $size, \"max_position_embeddings\": 32}" >bert.json
echo "{\"vocab_size\": 300, $size, \"max_position_embeddings\": 32}" >llama.json
cp -r "$source/tests/fixtures/convert/gpt" published
cp -r "$source/tests/fixtures/convert/llama" shards

setup() {
    "$wengert" "$@" >"$work/log" 2>&1 || {
        cat "$work/log"
        echo "Bail out! wengert $*"
        exit 1
    }
}
encoder='--corpus text.txt --config bert.json --batch 2 --seq 16 --seed 3'
# shellcheck disable=SC2086 # these are options
{
    setup pretrain bert $encoder --steps 2 --out bert.h5
    setup pretrain llama --corpus text.txt --config llama.json --tokenizer bpe --vocab-size 300 \
        --batch 2 --seq 16 --steps 2 --out llama.h5
    setup pretrain transformer --corpus lower.txt upper.txt --preset transformer-tiny --vocab-size 300 \
        --batch 64 --seq 60 --steps 2 --out transformer.h5
    setup convert llama.h5 llama.gguf
    setup convert shards llama.bin
    setup tokenizer train --corpus text.txt --vocab-size 60 --out words.json
    setup tokenizer train --corpus text.txt --vocab-size 60 --out words.txt
    setup tokenizer train --kind sentencepiece-unigram --vocab-size 40 --corpus text.txt --out pieces.model
    # A run that was killed when it saved for the second time.
    LD_PRELOAD=$work/preload.so WENGERT_FAULT='rename 2 kill' "$wengert" pretrain bert $encoder \
        --steps 6 --save-every 2 --out half.h5 >"$work/log" 2>&1
    rm -f half.h5.tmp
}
cp bert.h5 old.h5
echo 'the file that was there' | tee old.safetensors old.gguf old.bin old.json old.txt old.model \
    old.npy old.html >/dev/null
setup tokenizer pack words.json lower.txt --out old.tokens.h5
setup tokenizer pack words.json text.txt --out ids.tokens.h5

# ---- The commands. $1 is a name; `of' prints the words of the command, whose output is the file
# old.* or half.h5 if it names one. ----

commands='pretrain resume finetune eval score embed fill generate translate average info report tokenizer-bpe
tokenizer-wordpiece tokenizer-sentencepiece tokenizer-char encode pack corpus gradcheck doctor
convert-hdf5 convert-safetensors convert-gguf convert-llama2c convert-shards convert-back'
# The readers of what the commands above only write; short samples of other faults leave them out.
if test "$what" = read || test "$tries" = 0; then
    commands="$commands encode-model encode-words stream convert-from-llama2c fill-lines encode-lines"
fi

of() {
    case $1 in
    pretrain) echo "pretrain bert $encoder --steps 2 --save-every 1 --overwrite --out old.h5" ;;
    resume) echo pretrain bert --resume --out half.h5 ;;
    finetune) echo finetune bert.h5 --task classify --train labels.tsv --eval labels.tsv --batch 2 \
        --seq 16 --steps 2 --overwrite --out old.h5 ;;
    eval) echo eval bert.h5 --corpus text.txt --seq 16 ;;
    score) echo score bert.h5 --pairs pairs.jsonl ;;
    embed) echo embed bert.h5 --text lines.txt --out old.npy ;;
    fill) echo fill bert.h5 one.[MASK].three ;;
    generate) echo generate llama.h5 --prompt one --max-tokens 4 --seed 1 ;;
    translate) echo translate transformer.h5 one ;;
    average) echo average bert.h5 bert.h5 --overwrite --out old.h5 ;;
    info) echo info bert.h5 ;;
    report) echo report bert.h5 --text one.two --corpus text.txt --out old.html ;;
    tokenizer-bpe) echo tokenizer train --kind bpe --vocab-size 300 --corpus text.txt --out old.json ;;
    tokenizer-wordpiece) echo tokenizer train --vocab-size 60 --corpus text.txt --out old.txt ;;
    tokenizer-sentencepiece) echo tokenizer train --kind sentencepiece-unigram --vocab-size 40 \
        --corpus text.txt --out old.model ;;
    tokenizer-char) echo tokenizer train --kind char --corpus text.txt --out old.json ;;
    encode) echo tokenizer encode words.json one two ;;
    encode-model) echo tokenizer encode pieces.model one two ;;
    encode-words) echo tokenizer encode words.txt one two ;;
    stream) echo pretrain llama --corpus ids.tokens.h5 --tokenizer words.json --config llama.json \
        --batch 2 --seq 16 --steps 2 --out new.h5 ;;
    pack) echo tokenizer pack words.json text.txt --out old.tokens.h5 ;;
    corpus) echo corpus check text.txt ;;
    gradcheck) echo gradcheck add ;;
    doctor) echo doctor --json ;;
    convert-hdf5) echo convert published old.h5 ;;
    convert-safetensors) echo convert bert.h5 old.safetensors ;;
    convert-gguf) echo convert llama.h5 old.gguf ;;
    convert-llama2c) echo convert shards old.bin ;;
    convert-shards) echo convert shards folder --shard-size 4KB ;;
    fill-lines) echo fill bert.h5 ;; # of standard input
    encode-lines) echo tokenizer encode words.json ;; # of standard input
    convert-from-llama2c) echo convert llama.bin old.h5 ;;
    convert-back) echo convert llama.gguf old.h5 ;;
    *) return 1 ;;
    esac
}

# The file or folder that a command writes; "out" if it only prints.
written_by() {
    for word in $(of "$1"); do
        case $word in
        old.* | half.h5 | new.h5 | folder) echo "$word" && return ;;
        esac
    done
    echo out
}

# ---- A fault ----

# attempt COMMAND FAULT: runs it in a fresh copy of the files, with that fault ("" for none).
attempt() {
    rm -rf "$work/try"
    cp -a "$work/start" "$work/try"
    cd "$work/try" || exit 1
    again "$@"
}

# The same among the files that are there.
again() {
    # shellcheck disable=SC2046
    LD_PRELOAD=$work/preload.so WENGERT_FAULT=$2 WENGERT_FAULT_SKIP=$skip \
        WENGERT_FAULT_COUNTS=$3 "$wengert" $(of "$1") >"$work/try.out" 2>"$work/try.err" <masks.txt
    code=$?
}

# What this command writes: its file, or what it prints.
result() {
    if test "$written" = out; then echo "$work/try.out"; else echo "$work/try/$written"; fi
}

# same KNOWN: whether the result is KNOWN/result. Times and rates are left out of what is printed. Of a
# run, weights and progress are compared: where its numbers stand in the file depends on the number of
# sessions that wrote it, and a session whose read of /proc/cpuinfo failed has no name of its processor.
same() {
    if test -d "$1/result"; then
        diff -rq "$1/result" "$(result)" >/dev/null 2>&1
    elif test "$written" = out; then
        case $command in
        doctor) ;; # it says of a file that it cannot read what it does not know
        gradcheck) test "$(wc -l <"$1/result")" = "$(wc -l <"$work/try.out")" ;;
        *) cmp -s "$1/result" "$work/try.out" ;;
        esac
    elif test -n "$trains" && test -e "$1/result" && test -e "$(result)"; then
        cmp -s "$1/result" "$(result)" || {
            contents "$1/result" >"$work/a" && contents "$(result)" >"$work/b" &&
                cmp -s "$work/a" "$work/b"
        }
    else
        cmp -s "$1/result" "$(result)"
    fi
}

contents() {
    "$wengert" convert "$1" "$work/weights.safetensors" >"$work/log" 2>&1 &&
        "$wengert" info "$1" | sed 1d | grep -v '^ *processor ' && cksum <"$work/weights.safetensors"
}

# Whether the result is the old file, the new one, or one that was whole between them: a checkpoint of
# an earlier step.
whole() {
    for known in "$work/old" "$work"/state.* "$work/new"; do
        test ! -d "$known" || ! same "$known" || return 0
    done
    test ! -e "$work/old/result" && { test ! -e "$(result)" || test "$written" = folder; }
}

remember() {
    rm -rf "$1" && mkdir "$1"
    test ! -e "$(result)" || cp -r "$(result)" "$1/result"
}

# The files that should not be there.
leftovers() {
    (cd "$work/try" && find . | sort) | grep -vxF -f "$work/files" | grep -v "^\./$written"'\($\|/[^/]*\.\(json\|safetensors\|md\)$\)'
}

complain() {
    bad=$((bad + 1))
    test $bad -gt 5 || {
        printf '# %s: %s (exit %s)\n' "$fault" "$1" "$code"
        sed 's/^/#   /' "$work/try.err" | tail -n 4
    }
}

# Judges the attempt with $fault. Jansson 2.14's parser may end the program if it gets no memory.
judge() {
    case $fault in
    *kill)
        test "$code" = 137 || complain 'it was not killed'
        test "$written" = out || whole || complain "$written is not whole"
        again "$command" ''
        test "$code" = 0 || complain 'the next run fails'
        ;;
    esac
    if test "$code" = 0; then
        same "$work/new" || complain "exit 0, but the result differs"
    elif test "$code" = 1; then
        lines=$(grep '^wengert: ' "$work/try.err" | grep -vc '^wengert: note: ')
        test "$lines" = 1 || complain "$lines lines of errors"
        case $fault in
        read*fail)
            grep -q '^wengert: .*Input/output error' "$work/try.err" ||
                complain 'it does not say that a read failed'
            ;;
        esac
        test "$written" = out || whole || complain "$written is not whole"
    elif ! grep -q '^preload: json_load[a-z_]* of Jansson gets no memory' "$work/try.err"; then
        complain 'it may exit with 0 or 1'
    fi
    left=$(leftovers)
    test -z "$left" || complain "left behind: $(echo "$left" | tr '\n' ' ')"
}

# Notes the file as it is after each but the last rename: checkpoints of earlier steps.
remember_states() {
    rm -rf "$work"/state.*
    renames=$(sed -n 's/^rename //p' "$work/counts")
    n=2
    while test $n -le "$renames" && test "$written" != folder; do
        attempt "$command" "rename $n kill"
        remember "$work/state.$n"
        n=$((n + 1))
    done
}

# try_kind KIND ACTION: a case.
try_kind() {
    events=$(sed -n "s/^$1 //p" "$work/counts")
    test "${events:-0}" -gt 0 || return 0
    step=1
    test "$tries" = 0 || step=$(((events + tries - 1) / tries))
    bad=0 n=1 tried=0
    while test "$n" -le "$events"; do
        fault="$1 $n $2"
        attempt "$command" "$fault"
        judge
        tried=$((tried + 1))
        n=$((n + step))
    done
    total=$((total + tried))
    number=$((number + 1))
    if test $bad = 0; then
        echo "ok $number - $command: $2 at $tried of $events $1"
    else
        failed=$((failed + 1))
        echo "not ok $number - $command: $2 at $tried of $events $1, $bad of them wrong"
    fi
}

total=0
# shellcheck disable=SC2048 # names of commands
for command in ${*:-$commands}; do
    of "$command" >/dev/null || { echo "Bail out! no command '$command'"; exit 1; }
    written=$(written_by "$command")
    case $command in
    pretrain | resume | finetune | stream) trains=yes ;;
    *) trains= ;;
    esac
    (cd "$work/start" && find . | sort) >"$work/files"
    skip='libhdf5 libblis'
    rm -rf "$work/try" && cp -a "$work/start" "$work/try"
    : >"$work/try.out"
    remember "$work/old"
    attempt "$command" '' "$work/counts"
    if test "$code" != 0; then
        sed 's/^/# /' "$work/try.err"
        number=$((number + 1)) failed=$((failed + 1))
        echo "not ok $number - $command runs"
        continue
    fi
    remember "$work/new"
    remember_states
    if test "$what" = oom; then
        try_kind alloc fail
        try_kind alloc fail-on
        try_kind map fail
    elif test "$what" = read; then
        try_kind read fail
    else
        for kind in open read write sync rename truncate; do
            try_kind $kind fail
        done
        for kind in read write sync rename truncate; do
            test "$written" = out || try_kind $kind kill
        done
        try_kind write fail-on
        try_kind read short
        try_kind write short
    fi
done
echo "1..$number"
echo "# $what: $total faults tried, $failed of $number cases failed"
test "$failed" = 0
