#!/bin/sh
# Time and memory of the tokenizers and of the commands that read text, on texts of one line and of
# one word.
#
#   bench/long_text.sh [LARGEST]
#
# LARGEST: megabytes of the longest line (default 48); the longest word has a sixteenth of them.
# Prints for each size the seconds of processor time and the MB of memory at the peak (Debian: time),
# and the growth of both from the second largest size to the largest, beside the growth of the text. If they
# are about equal, the command is linear. ! marks sizes that the command refuses.
#
# WENGERT: the command (default build/wengert).
set -u
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
wengert=${WENGERT:-$source/build/wengert}
largest=${1:-48}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-long.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
if ! command time -f %U true 2>/dev/null; then
    echo 'GNU time is missing; on Debian: apt-get install time' >&2
    exit 1
fi

# ---- Texts ----

tr '\n' ' ' <"$source/corpus/heldout.txt" >line.seed
tr -cd 'A-Za-z' <"$source/corpus/heldout.txt" >word.seed

# text SHAPE KILOBYTES: prints that much of the seed, repeated.
text() {
    size=$(wc -c <"$1.seed")
    times=$(($2 * 1000 / size + 1))
    while test $times -gt 0; do
        cat "$1.seed"
        times=$((times - 1))
    done | head -c "$(($2 * 1000))"
}

# ---- Measuring ----

# measure COMMAND...: runs it and prints "SECONDS MB", with ! behind them if it refuses the text: a
# word that long, or a line that is longer than the model takes.
measure() {
    refused=
    command time -q -o figures -f '%U %S %M' "$@" <text.txt >out 2>err || refused='!'
    LC_ALL=C awk -v refused="$refused" 'END { printf "%.2f %.0f%s", $1 + $2, $3 / 1024, refused }' figures
}

# row SHAPE LARGEST_KB NAME COMMAND...: measures the command at each size. @ in the command is the text.
row() {
    shape=$1 last=$2 name=$3
    shift 3
    printf '%-5s %-24s' "$shape" "$name"
    before=
    for size in $((last / 16)) $((last / 8)) $((last / 4)) $((last / 2)) "$last"; do
        text "$shape" "$size" >text.txt
        found=$(measure "$@")
        printf ' %10s' "$(echo "$found" | tr ' ' '/')"
        before=${now:-} now=$found
    done
    echo "$before $now" | LC_ALL=C awk '$1 > 0 && $2 > 0 {
        printf "   x%.2f time, x%.2f memory for x2 text", $3 / $1, $4 / $2 }'
    echo
    now=
}

# rows NAME COMMAND...: a row for a line and one for a word.
rows() {
    for shape in line word; do
        last=$((largest * 1000))
        test "$shape" = word && last=$((largest * 1000 / 16))
        row "$shape" $last "$@"
    done
}

# ---- What is measured ----

head -c 300000 "$source/corpus/books/persuasion.txt" >small.txt
for kind in wordpiece bpe sentencepiece-bpe sentencepiece-unigram char; do
    size='--vocab-size 1000'
    test $kind = char && size=
    test $kind = char && unknown=--unknown || unknown=
    # shellcheck disable=SC2086 # two words, or none
    "$wengert" tokenizer train --kind $kind $size $unknown --corpus small.txt --out $kind.json >/dev/null || exit 1
done
mkdir bpe
"$wengert" tokenizer train --kind bpe --vocab-size 1000 --corpus small.txt --out bpe >/dev/null || exit 1
mv bpe/tokenizer.json huggingface.json
echo '{"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 64}' >gpt.json
"$wengert" pretrain gpt --config gpt.json --corpus small.txt --tokenizer bpe.json --steps 1 \
    --seq 64 --batch 2 --out gpt.h5 >out 2>&1 || { cat out; exit 1; }

printf '%-30s' 'seconds / MB at'
for part in 16 8 4 2 1; do printf ' %10s' "1/$part"; done
echo "   of $largest MB in a line, $((largest / 16)) MB in a word"
for kind in wordpiece bpe sentencepiece-bpe sentencepiece-unigram char huggingface; do
    rows "encode $kind" "$wengert" tokenizer encode $kind.json
done
for kind in wordpiece bpe sentencepiece-bpe sentencepiece-unigram char; do
    rows "train $kind" "$wengert" tokenizer train --kind $kind --corpus text.txt --out out.json
done
rows 'corpus check' "$wengert" corpus check text.txt --tokenizer bpe.json
rows 'pack, a stream' "$wengert" tokenizer pack --out out.h5 bpe.json text.txt
rows 'pack, sentences' "$wengert" tokenizer pack --sentences --out out.h5 wordpiece.json text.txt
rows 'score --text' "$wengert" score gpt.h5 --text text.txt
rows 'embed' "$wengert" embed gpt.h5 --text text.txt --out out.npy
largest=$((largest / 16)) # all of the text goes through the model
rows 'eval, a 16th of it' "$wengert" eval gpt.h5 --corpus text.txt --seq 64
