#!/bin/sh
# wengert tokenizer: train, encode and decode as a user runs them. Prints TAP.
. "$(dirname "$0")/setup.sh"
corpus=$source/corpus
unset OMP_NUM_THREADS

# Runs the verb; leaves its exit code in $code, its output in the files out and err.
run() {
    "$wengert" tokenizer "$@" >out 2>err </dev/null
    code=$?
}

# Succeeds if the last run printed exactly that and had the exit code 0.
printed() {
    test "$code" = 0 && test "$(cat out)" = "$1" && test ! -s err
}

run train --corpus "$corpus"/books/*.txt --out vocab.txt --vocab-size 3000
check 'train writes a vocab.txt' eval 'test "$code.$(cat out)" = "0.vocab.txt: 3000 tokens" && test "$(wc -l <vocab.txt)" = 3000'
check 'it begins with the special tokens' test "$(head -n 5 vocab.txt | tr '\n' ' ')" = \
    '[PAD] [UNK] [CLS] [SEP] [MASK] '
run train --corpus "$corpus/heldout.txt" --cased --vocab-size 2000 --out cased.json --json
check 'train --json tells what it wrote' has '"vocab_size": 2000'
check 'and the share of [UNK] in the text' eval 'grep -q "\"unknown_share\": 0" out && grep -q "\"alphabet\": [0-9]" out'
check 'a note tells the share of [UNK]' grep -q 'note: 0.000 % of the text.s [0-9]* tokens are \[UNK\]; the vocabulary has' err
run train --corpus "$corpus/heldout.txt" --alphabet 20 --out few.json
check 'an alphabet that is too small for the text is told by it' grep -q 'note: [1-9][0-9.]* % of .* are \[UNK\]; .* has 20 char' err
LC_ALL=C awk 'BEGIN { for (n = 0; n < 3; n++) for (i = 0; i < 1200; i++)
    printf "%c%c%c", 228, 160 + int(i / 64), 128 + i % 64; print "" }' >many.txt
run train --corpus many.txt --vocab-size 1105 --out many.json
check 'a vocabulary too small for the characters is told what size can hold them' \
    grep -q 'note: the vocabulary is too small for the 1200 characters .* one of 1205 tokens' err
refuses 'a vocabulary too small for 1000 characters' 'ask for 1005 or more' train --corpus many.txt \
    --vocab-size 1004 --out bad.json
cp vocab.txt before.txt
run train --out vocab.txt --vocab-size 3000 --corpus "$corpus"/books/*.txt
check 'the same text gives the same vocabulary' cmp -s vocab.txt before.txt

run encode vocab.txt --tokens "Mr. Darcy SMILED."
check 'encode --tokens prints pieces' printed 'mr . darcy smiled .'
run encode vocab.txt "[MASK]"
check 'special tokens are text' eval 'test "$code" = 0 && test "$(wc -w <out)" -gt 1'
run encode vocab.txt --special "[CLS] [MASK]"
check 'unless --special is given' printed '2 4'
run encode cased.json --tokens "Holmes"
check 'what was trained cased keeps capitals' printed 'Holmes'
printf 'She smiled.\n\n"No," said he.\n' >lines
"$wengert" tokenizer encode vocab.txt <lines >ids 2>err
code=$?
"$wengert" tokenizer decode vocab.txt <ids >out 2>>err
check 'lines go through encode and decode' printed 'she smiled.

"no," said he.'
run train --kind bpe --corpus "$corpus/heldout.txt" --vocab-size 500 --out bpe.json
check 'train learns byte-level BPE' printed 'bpe.json: 500 tokens'
run encode bpe.json --tokens "the tea"
check 'which keeps spaces' has 'Ġt'
mkdir gpt2
run train --kind bpe --corpus "$corpus/heldout.txt" --vocab-size 500 --out gpt2
check 'into a folder it writes GPT-2'"'"'s two files' test -s gpt2/vocab.json -a -s gpt2/merges.txt
printf 'Caf\303\251  \360\237\221\251\342\200\215!\n' >odd
for tokenizer in bpe.json gpt2 gpt2/merges.txt; do
    "$wengert" tokenizer encode $tokenizer <odd >ids 2>err
    code=$?
    "$wengert" tokenizer decode $tokenizer <ids >out 2>>err
    check "any text comes back through $tokenizer" printed "$(cat odd)"
done
run encode gpt2 --special "<|endoftext|>"
check 'special tokens of BPE' printed 499
run train --kind char --corpus odd --out char.json
check 'train learns characters' printed 'char.json: 9 tokens'
run train --kind char --corpus odd --unknown --out char.json --json
check 'with one for the unknown' grep -q '"vocab_size": 10' out
run encode char.json --tokens 'aX'
check 'which others become' printed 'a <unk>'
for kind in bpe 'bpe --byte-fallback' unigram 'unigram --byte-fallback'; do
    # shellcheck disable=SC2086
    run train --corpus "$corpus"/books/*.txt --vocab-size 2000 --out spm.model \
        --kind sentencepiece-$kind
    check "train learns SentencePiece $kind" printed 'spm.model: 2000 tokens'
    "$wengert" tokenizer encode spm.model <"$corpus/heldout.txt" >ours
    if command -v spm_encode >/dev/null; then
        spm_encode --model=spm.model --output_format=id <"$corpus/heldout.txt" >theirs
        check 'spm_encode gives the same ids' cmp ours theirs
    else
        echo '# spm_encode is not installed: its ids are not compared'
    fi
    run decode spm.model "$("$wengert" tokenizer encode spm.model 'Call me a word.')"
    check 'its ids decode to the text' printed 'Call me a word.'
done
run train --kind sentencepiece-unigram --corpus lines --min-frequency 3 --out bad.model
check 'wrong usage: a frequency for a unigram model' left_with 2 '--min-frequency does not apply'
run train --kind sentencepiece-bpe --corpus lines --vocab-size 3 --out bad.model
check 'a SentencePiece vocabulary too small is refused' left_with 1 'or more'
run train --kind bpe --corpus lines --byte-fallback --out bad.json
check 'wrong usage: bytes of another kind' left_with 2 '--byte-fallback does not apply'
run train --kind byte --out byte.json
check 'bytes need no text' printed 'byte.json: 256 tokens'
run encode byte.json "$(printf 'A\303\251')"
check 'and are their own ids' printed '65 195 169'
run decode vocab.txt --json 2,3
check 'decode --json gives texts' eval 'test "$code" = 0 && grep -qF "[CLS] [SEP]" out'

refuses 'a missing corpus' 'none.txt: No such file' train --corpus none.txt --out bad.txt
: >empty.txt
refuses 'an empty corpus' 'no words' train --corpus empty.txt --out bad.txt
printf 'caf\351\n' >latin1.txt
refuses 'a corpus that is not UTF-8' 'latin1.txt is not UTF-8: line 1, byte 3' \
    train --corpus latin1.txt --out bad.txt
refuses 'a vocabulary too small' 'ask for 68 or more' \
    train --corpus "$corpus/books/alice-in-wonderland.txt" --vocab-size 67 --out bad.txt
refuses 'a folder that is not there' 'none/bad.txt' train --corpus lines --out none/bad.txt
refuses 'a missing tokenizer' 'none.json: No such file' encode none.json hello
refuses 'a tokenizer that is none' 'lines: line' encode lines hello
refuses 'an id that is none' "'x' is not an id" decode vocab.txt '1 x'
refuses 'an id outside the vocabulary' 'id 3000 is outside the vocabulary of 3000' \
    decode vocab.txt 3000

run
check 'wrong usage: no job' left_with 2 'missing job: train, encode, decode, pack'
leaves 'wrong usage: an unknown job' 2 "there is no job 'learn'" learn
leaves 'wrong usage: no corpus' 2 'missing --corpus FILE' train --out bad.txt
leaves 'wrong usage: no output' 2 'missing --out FILE' train --corpus lines
run train --corpus lines --out bad.txt --vocab-size many
check 'wrong usage: a size that is no number' left_with 2 '--vocab-size'
run train --corpus lines --out bad.txt --kind letters
check 'wrong usage: an unknown kind' left_with 2 "--kind: there is no 'letters'"
run train --corpus lines --out bad.txt --kind char --vocab-size 5
check 'wrong usage: an option of another kind' left_with 2 '--kind char'
leaves 'wrong usage: no tokenizer' 2 'missing TOKENIZER' encode
for job in train encode decode pack; do
    run $job --help
    check "$job has --help" eval 'test "$code" = 0 && grep -q "^Usage: wengert tokenizer $job" out'
done

finish
