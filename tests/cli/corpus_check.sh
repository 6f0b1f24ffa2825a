#!/bin/sh
# wengert corpus check, as a user runs it. Prints TAP. WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-corpus-check.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT

. "$source/tests/cli/tap.sh"

printf 'One two.\nThree.\n\nOne two.\nThree.\n\n  One two.\t\nFour five six.\n' >a.txt
printf 'Four five six.\nSeven.\n\nThree.\n' >held.txt
run corpus check a.txt
check 'a text is checked' eval 'test "$code" = 0 && grep -q "6 lines in 3 documents" out && test ! -s err'
check 'repeated lines' grep -q '^lines        3 of 6 are repeated (50.00 %), first a.txt:4$' out
check 'repeated documents' grep -q '^documents    1 of 3 are repeated (33.33 %), first a.txt:4$' out
check 'each finding says what to do' test "$(grep -c '^  -> ' out)" = 2
check 'an encoding that is clean' grep -q '^encoding     UTF-8 without' out
check 'lengths' grep -q '^line length  median 8 characters, 95 % up to 14, longest 14 at a.txt:8$' out
check 'nothing on tokens without a tokenizer' eval '! grep -q "^tokens" out'

run corpus check a.txt --held-out held.txt
check 'overlap with the held-out text' grep -q \
    '^held out     2 of 3 lines are in the text, too (66.67 %), first held.txt:1$' out

run tokenizer train --corpus a.txt --alphabet 11 --out few.txt
run corpus check a.txt --tokenizer few.txt
check 'tokens and [UNK]' grep -q '^tokens       [0-9]*, [0-9.]* a word; [1-9][0-9.]* % are \[UNK\]$' out
run corpus check a.txt a.txt --held-out held.txt --tokenizer few.txt --json
check 'the same as JSON, of two files' eval 'test "$code" = 0 && grep -q "\"tokens_per_word\": " out &&
    grep -q "\"unknown_share\": 0\.[0-9]" out && grep -q "\"held_out_lines\": 3" out'

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
run corpus check marked.txt
check 'documents end at marks' grep -q '3 lines in 2 documents' out
mkfifo pipe && cat a.txt >pipe &
run corpus check pipe
check 'a pipe is read' grep -q '6 lines in 3 documents' out

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

finish
