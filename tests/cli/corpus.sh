#!/bin/sh
# Training texts as a user gives them: token files, weights of files, settings in a file.
# Prints TAP.
. "$(dirname "$0")/setup.sh"

book 300 >a.txt
head -n 200 "$source/corpus/books/opticks.txt" >b.txt
tiny bert 300 32 >bert.json
cat >gpt.json <<END
{"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}
END

gpt() {
    run pretrain gpt --config gpt.json --batch 4 --seq 32 --steps 3 --log "$@"
}

# ---- Token files ----

run tokenizer train --corpus a.txt b.txt --kind bpe --vocab-size 300 --out t.json
gpt text.log --corpus a.txt b.txt --tokenizer t.json --out text.h5
run tokenizer pack t.json a.txt b.txt --out tokens.h5
check 'texts are packed' has '^tokens.h5: 4 documents, [0-9]* tokens'
gpt packed.log --corpus tokens.h5 --out packed.h5
losses_alone text.log >wanted && losses_alone packed.log >found
check 'a token file is trained on as its text is' cmp wanted found
gpt other.log --tokenizer char --corpus tokens.h5 --out other.h5
check 'its tokenizer is taken instead of one that was to be learnt, with a note' eval \
    'test $code = 0 && grep -q "note: no tokenizer is learnt: .*tokens.h5 has its own, bpe of 300" err'
shows 'packing tells its results as JSON' '"tokens": [0-9]' tokenizer pack t.json a.txt \
    --out one.h5 --json
run tokenizer pack t.json a.txt --out one.h5 --hold-out 0
check 'a file of another share is made anew, with a note' eval \
    'test $code = 0 && grep -q "^wengert: note: one.h5 is made anew: " err'
gpt one.log --corpus one.h5 --eval b.txt --out one-run.h5
check 'but with a text to measure on' test $code = 0
shows 'eval takes token files' 'bits per byte' eval text.h5 --corpus one.h5 --seq 32

run tokenizer train --corpus a.txt b.txt --vocab-size 300 --out words.txt
run tokenizer pack words.txt a.txt b.txt --sentences --out sentences.h5
succeeds 'bert is trained on sentences' pretrain bert --config bert.json --corpus sentences.h5 \
    --batch 4 --seq 32 --steps 2 --out bert.h5
refuses 'gpt takes no sentences' 'sentences.h5 has tokens of sentences' pretrain gpt \
    --config gpt.json --corpus sentences.h5 --out bad.h5

gpt kept.log --corpus a.txt b.txt --tokenizer t.json --tokens kept.h5 --out kept-run.h5
check 'tokens are kept' eval 'test $code = 0 && test -s kept.h5'
made=$(ls -i kept.h5)
gpt kept.log --corpus a.txt b.txt --tokenizer t.json --tokens kept.h5 --out kept-run.h5 --overwrite
check 'and used again' eval 'test $code = 0 && test "$made" = "$(ls -i kept.h5)"'
echo 'One more line.' >>b.txt
gpt kept.log --corpus a.txt b.txt --tokenizer t.json --tokens kept.h5 --out kept-run.h5 --overwrite
check 'a text that changed is tokenised anew' eval \
    'test $code = 0 && grep -q "kept.h5 is made anew: the texts are others, or have changed" err'
size=$(wc -c <tokens.h5)
head -c $((size / 2)) tokens.h5 >cut.h5
cp tokens.h5 altered.h5
printf '\377\377\377\377' | dd of=altered.h5 bs=1 seek=$((size / 3)) conv=notrunc 2>/dev/null
refuses_each pretrain gpt --config gpt.json --tokenizer t.json --out bad.h5 <<'END'
a token file that was cut short | cut.h5 | --corpus cut.h5
a token file that was altered | altered.h5 | --seq 32 --corpus altered.h5
END

if mkdir disk && mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null; then
    mounted=$PWD/disk
    refuses 'a full disk' 'disk/tokens.h5: No space left' tokenizer pack t.json a.txt \
        --out disk/tokens.h5
    check 'nothing is left on a full disk' test -z "$(ls -A disk)"
    TMPDIR=$PWD/disk
    export TMPDIR
    refuses 'a full disk for temporary files' 'disk: No space left' pretrain gpt --config gpt.json \
        --corpus a.txt --tokenizer t.json --out bad.h5
    unset TMPDIR
    umount disk && mounted=
else
    for name in 'a full disk' 'nothing is left on a full disk' 'a full disk for temporary files'; do
        skip "$name" 'it takes the right to mount a tmpfs'
    done
fi

# ---- The alphabet of a learnt vocabulary ----

run pretrain bert --config bert.json --corpus a.txt b.txt --alphabet 30 --vocab-size 200 --batch 4 --seq 32 \
    --steps 1 --out alphabet.h5
check 'pretrain takes --alphabet, and tells the share of [UNK]' eval \
    'test $code = 0 && grep -q "note: [0-9.]* % of the text.s .* the vocabulary has 30 characters" err'
refuses '--alphabet of another tokenizer' '--alphabet is for a WordPiece or SentencePiece vocabulary' pretrain gpt \
    --config gpt.json --corpus a.txt --alphabet 30 --tokenizer bpe --out bad.h5
misused '--alphabet' pretrain bert --corpus a.txt --alphabet 0 --out bad.h5
misused '--init and --alphabet exclude each other' pretrain bert --corpus a.txt --alphabet 9 \
    --init alphabet.h5 --out bad.h5

misused 'missing TOKENIZER or TEXT' tokenizer pack
misused 'missing --out FILE.h5' tokenizer pack t.json a.txt
misused '--hold-out' tokenizer pack t.json a.txt --out bad.h5 --hold-out 1
misused '--hold-out does not apply to --sentences' tokenizer pack t.json a.txt --out bad.h5 --sentences \
    --hold-out 0.1
refuses 'packing what is not there' 'none.txt: No such file' tokenizer pack t.json none.txt \
    --out bad.h5

# ---- Weights, and going on in the middle of an epoch ----

for model in gpt bert; do
    set -- --corpus a.txt b.txt --config $model.json --batch 8 --seq 32 --schedule constant \
        --warmup 1 --seed 5
    test $model = bert || set -- "$@" --tokenizer t.json
    succeeds "$model is trained on files with weights" pretrain $model "$@" --corpus-weights 3,1 \
        --steps 40 --log whole.log --out whole.h5
    run pretrain $model "$@" --corpus-weights 3,1 --steps 23 --log parts.log --out parts.h5
    run pretrain $model --resume --steps 40 --log parts.log --out parts.h5
    losses_alone whole.log >wanted && losses_alone parts.log >found
    check "$model goes on with the same bits" cmp wanted found
    run pretrain $model "$@" --steps 40 --log even.log --out even.h5
    losses_alone even.log >found
    check "without weights $model sees others" eval '! cmp -s wanted found'
    run pretrain $model --resume --corpus-weights 1,1 --out parts.h5
    check "a resumed $model keeps its weights" left_with 1 '--corpus-weights'
    rm -f whole.* parts.* even.*
done
misused '--corpus-weights' pretrain gpt --corpus a.txt --corpus-weights 0 --out bad.h5
misused '--corpus-weights' pretrain gpt --corpus a.txt --corpus-weights 1,x --out bad.h5

# ---- Settings in a file ----

cat >run.json <<END
{"corpus": ["a.txt", "b.txt"], "corpus-weights": [3, 1], "tokenizer": "t.json",
 "config": "gpt.json", "batch": 4, "seq": 32, "steps": 5, "lr": 0.01, "keep-best": false}
END
run pretrain gpt --settings run.json --out file.h5 --log file.log
check 'a run is set up by a file' test "$code.$(wc -l <file.log)" = 0.5
run pretrain gpt --corpus a.txt b.txt --corpus-weights 3,1 --tokenizer t.json --config gpt.json \
    --batch 4 --seq 32 --steps 5 --lr 0.01 --out line.h5 --log line.log
losses_alone file.log >wanted && losses_alone line.log >found
check 'it is that of the command line' cmp wanted found
for order in 'pretrain gpt --steps 2 --corpus a.txt --corpus-weights 1 --settings run.json' \
    'pretrain gpt --settings run.json --steps 2 --corpus a.txt --corpus-weights 1'; do
    # shellcheck disable=SC2086
    run $order --out rules.h5 --log rules.log
    check 'the command line rules' test "$code.$(wc -l <rules.log)" = 0.2
    rm -f rules.*
done
run pretrain gpt --resume --settings run.json --steps 6 --out file.h5
check 'the file may be given again' test $code = 0

# A settings file with this text is refused with that line.
settings() {
    printf '%s' "$1" >wrong.json
    refuses "settings $1" "$2" pretrain gpt --settings wrong.json --corpus a.txt --out bad.h5
}

settings '{"stepps": 3}' 'wrong.json: unknown key "stepps"'
settings '{"steps": "3"}' 'wrong.json: "steps" is "3"; wanted an integer'
settings '{"steps": 0}' 'wrong.json: steps is 0; it must be at least 1'
settings '{"steps": 1.5}' '"steps" is 1.5; wanted an integer'
settings '{"lr": "fast"}' '"lr" is "fast"; wanted a number'
settings '{"lr": 1001}' 'lr is 1001; it must be from 0 to 1000'
settings '{"optimizer": "adamax"}' 'optimizer is "adamax"; it must be one of sgd, adam, '
settings '{"schedule": "cosign"}' 'schedule is "cosign"; it must be one of '
settings '{"corpus": 3}' '"corpus" is 3; wanted a list'
settings '{"corpus-weights": [1, "2"]}' '"corpus-weights" is "2"; wanted a list of numbers'
settings '{"keep-best": 1}' '"keep-best" is 1; wanted true or false'
settings '{"tokenizer": null}' '"tokenizer" is null; wanted a value'
settings '{"steps": 3, "steps": 4}' 'line 1'
settings '{"steps": 3' 'wrong.json, line 1'
settings '[1]' 'wrong.json is no JSON object'
refuses 'settings that are not there' 'none.json' pretrain gpt --settings none.json --out bad.h5

finish
