#!/bin/sh
# wengert corpus questions, as a user runs it. Prints TAP. WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-corpus-questions.XXXXXX") || exit 1
cd "$work" || exit 1
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
mounted=
trap 'test -z "$mounted" || umount "$mounted"; rm -rf "$work"' EXIT

. "$source/tests/cli/tap.sh"

# Paragraphs are lines.
paragraphs() {
    i=0
    while test $i -lt "$1"; do
        printf '%s ' "Captain Marlow$i sailed the brown ship from Bristol to New Harbour in 18$((i % 90 + 10))." \
            "The old crew carried $((i + 3)) heavy barrels of wine past the quiet lighthouse of Penmarch." \
            "Many merchants of the Bank of Cornwall$i had paid for the goods before the great storm came." \
            "Later the mayor of Elstow built a small museum beside the river for curious visitors."
        echo
        i=$((i + 1))
    done
}
paragraphs 40 >text.txt
head -n 20 text.txt >one.txt
tail -n 20 text.txt >two.txt

run corpus questions text.txt --out all.json --count 20
check 'questions are made' eval 'test "$code" = 0 && test ! -s err &&
    grep -q "^all.json: 20 questions about [0-9]* contexts$" out'
check 'the file is JSON of SQuAD 1.1, a context a line' eval '
    head -n 1 all.json | grep -q "\"version\": \"1.1\"" && grep -q "\"answer_start\": [0-9]" all.json &&
    test "$(grep -o "\"question\": " all.json | wc -l)" = 20'

run corpus questions one.txt two.txt --out two.json --count 20 --seed 1 --json
check 'the same as JSON, of two files' eval 'test "$code" = 0 && grep -q "\"questions\": 20" out &&
    grep -q "\"contexts\": [0-9]" out && grep -q "\"out\": \"two.json\"" out'
run corpus questions text.txt --out same.json --count 20
check 'a seed gives the same file, of whatever name' cmp all.json same.json
run corpus questions text.txt --out other.json --count 20 --seed 2
check 'another seed gives another file' eval '! cmp -s all.json other.json'

run corpus questions one.txt --out few.json
check 'a text that is not enough for 25000 questions' eval 'test "$code" = 0 &&
    grep -q "^wengert: note: the text is enough for [0-9]* questions, not for 25000$" err'
mkfifo pipe
cat one.txt >pipe &
run corpus questions pipe --out piped.json
check 'a pipe is read' cmp few.json piped.json

# ---- What they are for ----

cat >bert.json <<END
{"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 128}
END
run pretrain bert --objective mlm --config bert.json --corpus text.txt --eval text.txt --vocab-size 300 \
    --batch 2 --seq 32 --steps 1 --out run.h5
run finetune run.h5 --task squad --train all.json --eval other.json --seq 128 --batch 2 --steps 2 --out squad.h5
check 'a model learns from them' test "$code" = 0

# ---- Mistakes ----

cp all.json kept.json
refuses 'a file that exists' 'all.json exists; --overwrite replaces it' corpus questions text.txt --out all.json
run corpus questions text.txt --out all.json --count 10 --overwrite
check '--overwrite replaces it' eval 'test "$code" = 0 && ! cmp -s all.json kept.json'
printf 'one\nbad \377\n' >latin.txt
refuses 'a text that is not UTF-8' 'latin.txt is not UTF-8: line 2' corpus questions text.txt latin.txt \
    --out bad.json
printf 'A line.\nAnother.\n' >short.txt
refuses 'a text without paragraphs' 'short.txt has no paragraphs to ask about, lines of 300 to 2500 characters' \
    corpus questions short.txt --out bad.json
refuses 'a text that is not there' 'none.txt: No such file' corpus questions none.txt --out bad.json
refuses 'a folder that is not there' 'there is no folder none' corpus questions text.txt --out none/bad.json
misused 'missing FILE' corpus questions --out bad.json
misused 'missing --out QUESTIONS.json' corpus questions text.txt
misused '--held-out is an option of check' corpus questions text.txt --out bad.json --held-out one.txt
misused '--tokenizer is an option of check' corpus questions text.txt --out bad.json --tokenizer one.txt
misused '0' corpus questions text.txt --out bad.json --count 0
misused '-1' corpus questions text.txt --out bad.json --seed -1

if mkdir disk && mount -t tmpfs -o size=16k tmpfs disk 2>/dev/null; then
    mounted=$PWD/disk
    refuses 'a full disk' 'disk/all.json: No space left' corpus questions text.txt --out disk/all.json
    check 'nothing is left on a full disk' test -z "$(ls -A disk)"
    umount disk && mounted=
else
    for name in 'a full disk' 'nothing is left on a full disk'; do
        skip "$name" 'it takes the right to mount a tmpfs'
    done
fi

finish
