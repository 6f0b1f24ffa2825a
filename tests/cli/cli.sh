#!/bin/sh
# The command as a user runs it: verbs, wrong usage, bad input, and a training that is stopped,
# killed again and again, used to fill masks and plotted. Prints TAP.
#
# WENGERT_KILLS: how often a run is killed (default 5).
. "$(dirname "$0")/setup.sh"
kills=${WENGERT_KILLS:-5}

# ---- A corpus and a model that train in no time ----

book 900 >text.txt
tiny bert 600 32 >tiny.json
short='--corpus text.txt --config tiny.json --batch 4 --seq 32 --seed 3'
pretrain() {
    # shellcheck disable=SC2086
    run pretrain bert $short "$@"
}

# ---- What there is ----

shows 'the list of verbs' 'pretrain' --help
for verb in $(sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p' out); do
    run "$verb" --help
    check "wengert $verb --help" eval 'test $code = 0 && grep -q "^Usage: wengert $verb" out'
done
shows 'the version' '^wengert [0-9]' --version

misused 'no verb' no-such-verb
misused 'missing verb'
misused 'which model' pretrain --corpus text.txt --out bad.h5
misused 'no model' pretrain gtp --corpus text.txt --out bad.h5
misused '--out RUN.h5 is missing' pretrain bert --corpus text.txt
misused '--corpus FILE is missing' pretrain bert --out bad.h5
for steps in x -1 0 1.5 '' 99999999999999999999; do
    misused '--steps' pretrain bert --corpus text.txt --out bad.h5 --steps "$steps"
done
misused '--lr' pretrain bert --corpus text.txt --out bad.h5 --lr nan
misused '--seq' pretrain bert --corpus text.txt --out bad.h5 --seq 2
misused 'no '"'cosign'" pretrain bert --corpus text.txt --out bad.h5 --schedule cosign
misused 'no '"'adamax'" pretrain bert --corpus text.txt --out bad.h5 --optimizer adamax
misused 'exclude' pretrain bert --corpus text.txt --out bad.h5 --preset bert-tiny --config tiny.json
misused 'unrecognized option' pretrain bert --corpus text.txt --out bad.h5 --no-such-option
misused 'RUN.h5 is missing' eval
misused '--corpus FILE is missing' eval run.h5
misused 'RUN.h5 is missing' fill
misused 'missing -o FILE' plot run.h5
misused '.svg' plot run.h5 -o picture.gif

# ---- Bad input ----

: >empty.txt
printf 'Alice was\377 beginning.\n' >latin.txt
printf '  \n\n \n' >blank.txt
mkdir folder
refuses_each pretrain bert --config tiny.json --batch 4 --steps 2 --out bad.h5 --seq 32 <<'END'
an empty corpus | empty.txt has no words | --corpus empty.txt
a corpus without words | no words | --corpus blank.txt
a held-out text that is not there | none.txt | --corpus text.txt --eval none.txt
a held-out text that is not UTF-8 | latin.txt | --corpus text.txt --eval latin.txt
a vocabulary that is too small | vocabulary | --corpus text.txt --vocab-size 10
a vocabulary beyond the model | vocabulary | --corpus text.txt --vocab-size 700
a sequence beyond the model | 33 | --corpus text.txt --seq 33
an unknown tokenizer | wordpeace | --corpus text.txt --tokenizer wordpeace
a tokenizer that is none | latin.txt | --corpus text.txt --tokenizer latin.txt
a log that cannot be written | none/log | --corpus text.txt --log none/log
an output folder that is not there | none | --corpus text.txt --out none/run.h5
a folder as output | folder | --corpus text.txt --out folder
END
refuses_each pretrain bert --out bad.h5 <<'END'
an unknown preset | bert-huge | --preset bert-huge --corpus text.txt
a configuration that is not there | none.json | --config none.json --corpus text.txt
a configuration that is no JSON | text.txt | --config text.txt --corpus text.txt
resuming what is not there | bad.h5 | --resume
END

if test "$(id -u)" = 0; then
    skip 'an output folder without permission' 'root may write everywhere'
else
    mkdir locked && chmod a-w locked
    refuses 'an output folder without permission' 'locked' pretrain bert --config tiny.json \
        --corpus text.txt --out locked/run.h5
fi

# ---- A run ----

pretrain --out straight.h5 --steps 12 --eval-every 5
check 'it reports on stderr' eval 'test $code = 0 && grep -q "step 12/12" err'
leaves 'a run is not overwritten' 1 '--overwrite' pretrain bert --corpus text.txt --out straight.h5
run pretrain bert --resume --out straight.h5 --dtype bf16
check 'a resumed run keeps its dtype' left_with 1 '--dtype cannot change'
run pretrain bert --corpus text.txt --out bad.h5 --dtype f16
check 'an unknown dtype is refused' grep -q 'f32 and bf16' err
pretrain --out mixed.h5 --steps 4 --log mixed.log --dtype bf16
check 'a run in bf16 is trained' test $code = 0
run pretrain bert --resume --out mixed.h5 --steps 6 --log mixed.log
check 'a resumed run in bf16 stays one' eval 'test $code = 0 && test "$(wc -l <mixed.log)" = 6'
run pretrain bert --resume --out mixed.h5 --dtype f32
check 'nor does bf16 become f32' left_with 1 '--dtype cannot change'

pretrain --out tuned.h5 --steps 12 --eval-every 2 --lr 5 --optimizer adam --schedule cosine \
    --accumulate 2 --ema 0.5 --patience 1 --keep-best
check 'a run stops early' eval 'test $code = 0 && grep -q "stopped at step .* kept in tuned.best.h5" err'
succeeds 'the best checkpoint is a model' eval tuned.best.h5 --corpus text.txt --seq 32
run pretrain bert --resume --out tuned.h5
check 'a run that stopped early stays so' grep -q 'stopped at step' err
leaves 'a resumed run keeps its average' 1 '--ema' pretrain bert --resume --out tuned.h5 --ema 0.9
pretrain --steps 30 --clip 0 --lr 1000 --optimizer sgd --momentum 0.5 --out bad.h5
check 'a run that diverges says at which step, and why' \
    eval 'left_with 1 "hint: " && grep -q "train: step [0-9]*: " err'
rm -f bad.h5
pretrain --steps 30 --step-in-backward --out bad.h5
check 'steps in backward want no clipping' eval 'left_with 1 "add --clip 0" && test ! -e bad.h5'
pretrain --steps 3 --clip 0 --step-in-backward --out bad.h5
check 'a run steps in backward' test $code = 0
rm -f bad.h5

for signal in INT TERM; do
    rm -f stopped.*
    # shellcheck disable=SC2086
    begin pretrain bert $short --out stopped.h5 --steps 100000 --log stopped.log
    wait_for_steps 3 stopped.log
    stop $signal
    expected=130
    test $signal = INT || expected=143
    check "SIG$signal saves and leaves" left_with $expected '--resume'
    steps=$(wc -l <stopped.log)
    run pretrain bert --resume --out stopped.h5 --steps $((steps + 2)) --log stopped.log
    check "a run goes on after SIG$signal" \
        eval 'test $code = 0 && test "$(wc -l <stopped.log)" = $((steps + 2))'
done

# Kills a run at random moments: the checkpoint on disk always opens and resumes, and every loss equals
# that of the run that was never stopped.
steps=$((kills * 100)) # more than can be done between them
pretrain --out reference.h5 --steps $steps --log reference.log
begun=--overwrite
good=0
round=0
while test $round -lt "$kills"; do
    round=$((round + 1))
    # shellcheck disable=SC2086
    begin pretrain bert $short --out killed.h5 --steps $steps --save-every 3 --log killed.log $begun
    sleep "0.$(awk "BEGIN { srand($round + $$); print int(1000 + 8999 * rand()) }")"
    stop KILL
    echo "# killed after $(cat killed.log 2>/dev/null | wc -l) steps"
    if test -f killed.h5; then
        run eval killed.h5 --corpus text.txt --seq 32
        test $code = 0 && good=$((good + 1))
        begun=--resume
    else
        good=$((good + 1)) # it had not begun to train
    fi
done
check "a checkpoint opens after each of $kills kills" test $good = "$kills"
pretrain --out killed.h5 --steps $steps --log killed.log $begun # which may never have begun
check 'a killed run comes to its end' test $code = 0
losses killed.log >killed.losses
losses reference.log >reference.losses
check 'its losses are those of a run that was never stopped' cmp -s killed.losses reference.losses
check 'nothing is left beside the checkpoint' test "$(find . -name 'killed*' | wc -l)" = 3

# ---- A file that was cut short or altered ----

size=$(wc -c <straight.h5)
head -c $((size / 2)) straight.h5 >cut.h5
refuses_each <<'END'
filling by a file that was cut short | cut.h5 | fill cut.h5 'A [MASK].'
resuming a file that was cut short | cut.h5 | pretrain bert --resume --out cut.h5
drawing a file that was cut short | cut.h5 | plot cut.h5 -o bad.svg
END

# ---- A full disk ----

disk=$work/disk
mkdir "$disk"
if mount -t tmpfs -o size=64k wengert-test "$disk" 2>mount.err; then
    mounted=$disk
    refuses 'a full disk' "$disk" pretrain bert --config tiny.json --batch 4 --seq 32 --steps 2 \
        --corpus text.txt --out "$disk/run.h5"
    check 'nothing is left on a full disk' test -z "$(ls -A "$disk")"
    umount "$disk" && mounted=
else
    skip 'a full disk' 'it takes the right to mount a tmpfs'
    skip 'nothing is left on a full disk' 'it takes the right to mount a tmpfs'
fi
"$wengert" eval straight.h5 --corpus text.txt --seq 32 >/dev/full 2>err
code=$?
check 'results that cannot be written are a failure' left_with 1 'cannot write the results'

# ---- fill, plot ----

shows 'eval tells the loss by frequency' 'by word frequency' eval straight.h5 --corpus text.txt \
    --seq 32
run fill straight.h5 'The white [MASK] was late, [MASK] she.'
check 'fill fills each mask' eval 'test $code = 0 && test "$(wc -l <out)" = 3'
run fill straight.h5 --top 3 --json 'The white [MASK].'
check 'fill tells JSON' test "$(grep -c '"probability": 0\.' out)" = 3
printf 'The [MASK].\n\nA [MASK].\n' | "$wengert" fill straight.h5 >out 2>err
check 'fill reads lines' test "$(grep -c . out)" = 4

if command -v gnuplot >/dev/null; then
    run plot straight.h5 -o loss.svg
    check 'plot draws' eval 'test $code = 0 && grep -q "</svg>" loss.svg'
    check 'plot draws the frequencies' grep -q 'unigram' loss.svg
    refuses 'plot into no folder' 'none' plot straight.h5 -o none/bad.svg
else
    skip 'plot draws' 'gnuplot is not installed'
fi
PATH=/none run plot straight.h5 -o loss.png
check 'plot says that gnuplot is missing' left_with 1 'gnuplot-nox'

finish
