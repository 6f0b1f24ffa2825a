#!/bin/sh
# wengert corpus check, as a user runs it. Prints TAP.
. "$(dirname "$0")/setup.sh"

printf 'One two.\nThree.\n\nOne two.\nThree.\n\n  One two.\t\nFour five six.\n' >a.txt
printf 'Four five six.\nSeven.\n\nThree.\n' >held.txt
run corpus check a.txt
check 'a text is checked' eval 'test "$code" = 0 && grep -q "6 lines in 3 documents" out && test ! -s err'
check 'repeated lines' grep -q '^lines        3 of 6 are repeated (50.00 %, 47.17 % of the characters), first a.txt:4$' out
check 'repeated documents' grep -q '^documents    1 of 3 are repeated (33.33 %), first a.txt:4$' out
check 'each finding says what to do' test "$(grep -c '^  -> ' out)" = 2
check 'an encoding that is clean' grep -q '^encoding     UTF-8 without' out
check 'lengths' grep -q '^line length  median 8 characters, 95 % up to 14, longest 14 at a.txt:8$' out
check 'nothing on tokens without a tokenizer' eval '! grep -q "^tokens" out'

run corpus check a.txt --held-out held.txt
check 'overlap with the held-out text' grep \
    -q '^held out     2 of 3 lines are in the text, too (66.67 %, 76.92 % of the characters), first held.txt:1$' \
    out

run tokenizer train --corpus a.txt --alphabet 11 --out few.txt
run corpus check a.txt --tokenizer few.txt
check 'tokens and [UNK]' grep -q '^tokens       [0-9]*, [0-9.]* a word; [1-9][0-9.]* % are \[UNK\]$' out
run corpus check a.txt a.txt --held-out held.txt --tokenizer few.txt --json
check 'the same as JSON, of two files' eval 'test "$code" = 0 && grep -q "\"tokens_per_word\": " out &&
    grep -q "\"unknown_share\": 0\.[0-9]" out && grep -q "\"held_out_lines\": 3" out &&
    grep -q "\"repeated_of_characters\": 0.7" out && grep -q "\"overlap_of_characters\": 0.769" out'

printf '\357\273\277bom\r\nbad \377\376\nnul \000\nlost \357\277\275\nbell \007\n' >b.txt
run corpus check a.txt b.txt
check 'bytes that are not UTF-8' grep -q '^encoding     2 bytes that are not UTF-8, first b.txt:2$' out
check 'byte order marks' grep -q '^encoding     1 byte order marks, first b.txt:1$' out
check 'CR LF' grep -q '^encoding     1 lines that end in CR LF, first b.txt:1$' out
check 'NUL' grep -q '^encoding     1 NUL characters, first b.txt:3$' out
check 'U+FFFD' grep -q '^encoding     1 characters U+FFFD, first b.txt:4$' out
check 'control characters' grep -q '^encoding     1 control characters, first b.txt:5$' out
check 'what to do about each' test "$(grep -c '^  -> ' out)" = 8

printf 'A\n\nB\n<|endoftext|>\nC\n' >marked.txt
shows 'documents end at marks' '3 lines in 2 documents' corpus check marked.txt
mkfifo pipe
cat a.txt >pipe &
shows 'a pipe is read' '6 lines in 3 documents' corpus check pipe

# ---- What pretrain tells ----

i=0
while test $i -lt 60; do
    echo "one two three $i four five six."
    echo "seven eight $i nine ten eleven twelve."
    test $((i % 6)) = 5 && echo
    i=$((i + 1))
done >clean.txt
sed 's/one/uno/; s/seven/siete/' clean.txt >other.txt
tiny bert 400 32 >bert.json
pretrain() {
    run pretrain bert --objective mlm --config bert.json --vocab-size 200 --batch 2 --seq 16 --steps 1 \
        --overwrite --out run.h5 "$@"
}
pretrain --corpus clean.txt --eval other.txt
check 'pretrain has nothing to say of a clean text' eval 'test "$code" = 0 && ! grep -q "corpus check" err'
pretrain --corpus clean.txt --eval clean.txt
check 'pretrain tells of held-out text that is trained on' grep \
    -q '^wengert: note: 100.0 % of the held-out text .* first .*/clean.txt:1; .wengert corpus check. says more$' \
    err
cat clean.txt clean.txt >twice.txt
pretrain --corpus twice.txt
check 'pretrain tells of repeated lines' grep \
    -q '^wengert: note: 50.0 % of the text are repeated lines.* first .*/twice.txt:131;' err
sed 's/one/\o357\o277\o275/' clean.txt >lost.txt
pretrain --corpus lost.txt --eval other.txt
check 'pretrain tells of characters that were lost' grep -q 'U+FFFD.* first .*/lost.txt:1;' err
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . one two three >few.vocab
pretrain --corpus clean.txt --eval other.txt --tokenizer few.vocab
check 'pretrain tells of unknown tokens' grep -q '^wengert: note: [1-9][0-9.]* % of the text.s tokens are unknown' err
run pretrain bert --resume --steps 2 --out run.h5
check 'a resumed run is not told again' eval 'test "$code" = 0 && ! grep -q "unknown" err'

# ---- Mistakes ----

: >empty.txt
refuses 'an empty file' 'empty.txt has no text' corpus check empty.txt
refuses 'a file that is not there' 'none.txt: No such file' corpus check a.txt none.txt
refuses 'a held-out text without text' 'empty.txt has no text' corpus check a.txt --held-out empty.txt
refuses 'a held-out text that is not there' 'none.txt: No such file' corpus check a.txt --held-out none.txt
refuses 'a folder' "$PWD" corpus check "$PWD"
refuses 'a tokenizer that is none' 'a.txt' corpus check a.txt --tokenizer a.txt
misused 'missing job: check' corpus
misused 'missing FILE' corpus check
misused "the job is 'clean'; it must be check" corpus clean a.txt
misused "the job is 'chek'; it must be check; did you mean 'check'?" corpus chek a.txt

finish
