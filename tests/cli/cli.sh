#!/bin/sh
# The command as a user runs it: verbs, wrong usage, bad input, and a training that is stopped, killed,
# resumed, evaluated, used to fill masks and plotted. Prints TAP.
#
# WENGERT: the command (default ./wengert). WENGERT_KILLS: how often a run is killed (default 5).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
kills=${WENGERT_KILLS:-5}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-cli.XXXXXX") || exit 1
cd "$work" || exit 1
mounted=
trap 'test -z "$mounted" || umount "$mounted"; rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

# ---- A corpus and a model that train in no time ----

head -n 900 "$source/corpus/books/alice-in-wonderland.txt" >text.txt
cat >tiny.json <<END
{"vocab_size": 600, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 32}
END
pretrain() {
    "$wengert" pretrain bert --corpus text.txt --config tiny.json --batch 4 --seq 32 --seed 3 \
        "$@" >out 2>err
}

# The same in the background, as process $process: signals reach the command itself, not a shell.
begin() {
    "$wengert" pretrain bert --corpus text.txt --config tiny.json --batch 4 --seq 32 --seed 3 \
        "$@" >out 2>err &
    process=$!
}

# ---- What there is ----

run --help
check 'the list of verbs' grep -q 'pretrain' out
for verb in $(sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p' out); do
    run "$verb" --help
    check "wengert $verb --help" eval 'test $code = 0 && grep -q "^Usage: wengert $verb" out'
done
run --version
check 'the version' grep -q '^wengert [0-9]' out

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

bad() {
    name=$1 text=$2
    shift 2
    refuses "$name" "$text" pretrain bert --config tiny.json --batch 4 --seq 32 --steps 2 \
        --out bad.h5 "$@"
}

: >empty.txt
printf 'Alice was\377 beginning.\n' >latin.txt
printf '  \n\n \n' >blank.txt
mkdir folder
bad 'a corpus that is not there' 'none.txt' --corpus none.txt
bad 'an empty corpus' 'empty.txt has no words' --corpus empty.txt
bad 'a corpus without words' 'no words' --corpus blank.txt
bad 'a corpus that is not UTF-8' 'latin.txt' --corpus latin.txt
bad 'a corpus that is a folder' 'folder' --corpus folder
bad 'a held-out text that is not there' 'none.txt' --corpus text.txt --eval none.txt
bad 'a held-out text that is not UTF-8' 'latin.txt' --corpus text.txt --eval latin.txt
bad 'a vocabulary that is too small' 'vocabulary' --corpus text.txt --vocab-size 10
bad 'a vocabulary beyond the model' 'vocabulary' --corpus text.txt --vocab-size 700
bad 'a sequence beyond the model' '33' --corpus text.txt --seq 33
bad 'an unknown tokenizer' 'wordpeace' --corpus text.txt --tokenizer wordpeace
bad 'a tokenizer that is none' 'latin.txt' --corpus text.txt --tokenizer latin.txt
bad 'a log that cannot be written' 'none/log' --corpus text.txt --log none/log
bad 'an output folder that is not there' 'none' --corpus text.txt --out none/run.h5
bad 'a folder as output' 'folder' --corpus text.txt --out folder
refuses 'an unknown preset' 'bert-huge' pretrain bert --preset bert-huge --corpus text.txt \
    --out bad.h5
refuses 'a configuration that is not there' 'none.json' pretrain bert --config none.json \
    --corpus text.txt --out bad.h5
refuses 'a configuration that is no JSON' 'text.txt' pretrain bert --config text.txt \
    --corpus text.txt --out bad.h5
refuses 'resuming what is not there' 'bad.h5' pretrain bert --resume --out bad.h5
refuses 'measuring what is no checkpoint' 'text.txt' eval text.txt --corpus text.txt
refuses 'filling by what is not there' 'none.h5' fill none.h5 'A [MASK].'
refuses 'drawing what is no checkpoint' 'text.txt' plot text.txt -o bad.svg

if test "$(id -u)" = 0; then
    skip 'an output folder without permission' 'root may write everywhere'
else
    mkdir locked && chmod a-w locked
    bad 'an output folder without permission' 'locked' --corpus text.txt --out locked/run.h5
fi

# ---- A run ----

pretrain --out straight.h5 --steps 12 --eval-every 5 --log straight.log --json
code=$?
check 'a run is trained' test $code = 0
check 'it tells its results as JSON' grep -q '"unigram_loss": [0-9]' out
check 'it logs every step' test "$(wc -l <straight.log)" = 12
check 'it reports on stderr' grep -q 'step 12/12' err

run pretrain bert --corpus text.txt --out straight.h5
check 'a run is not overwritten' left_with 1 '--overwrite'
run pretrain bert --resume --out straight.h5 --lr 0.5
check 'a resumed run keeps its learning rate' left_with 1 '--lr'
run pretrain bert --resume --out straight.h5 --corpus "$source/corpus/heldout.txt"
check 'a resumed run keeps its corpus' left_with 1 'corpus'
run pretrain bert --resume --out straight.h5
check 'a finished run tells its results again' grep -q 'masked words' out

run pretrain bert --resume --out straight.h5 --dtype bf16
check 'a resumed run keeps its dtype' left_with 1 '--dtype cannot change'
run pretrain bert --corpus text.txt --out bad.h5 --dtype f16
check 'an unknown dtype is refused' grep -q 'f32 and bf16' err
pretrain --out mixed.h5 --steps 4 --log mixed.log --dtype bf16
code=$?
check 'a run in bf16 is trained' test $code = 0
run pretrain bert --resume --out mixed.h5 --steps 6 --log mixed.log
code=$?
check 'a resumed run in bf16 stays one' eval 'test $code = 0 && test "$(wc -l <mixed.log)" = 6'
run pretrain bert --resume --out mixed.h5 --dtype f32
check 'nor does bf16 become f32' left_with 1 '--dtype cannot change'

pretrain --out tuned.h5 --steps 12 --eval-every 2 --lr 5 --optimizer adam --schedule cosine \
    --accumulate 2 --ema 0.5 --patience 1 --keep-best
code=$?
check 'a run stops early' eval 'test $code = 0 && grep -q "stopped at step .* kept in tuned.best.h5" err'
run eval tuned.best.h5 --corpus text.txt --seq 32
check 'the best checkpoint is a model' test $code = 0
run pretrain bert --resume --out tuned.h5
check 'a run that stopped early stays so' grep -q 'stopped at step' err
run pretrain bert --resume --out tuned.h5 --ema 0.9
check 'a resumed run keeps its average' left_with 1 '--ema'
run pretrain bert --corpus text.txt --config tiny.json --batch 4 --seq 32 --steps 30 --clip 0 \
    --lr 1000 --optimizer sgd --momentum 0.5 --out bad.h5
check 'a run that diverges says at which step, and why' \
    eval 'left_with 1 "hint: " && grep -q "train: step [0-9]*: " err'
rm -f bad.h5
run pretrain bert --corpus text.txt --config tiny.json --batch 4 --seq 32 --steps 30 \
    --step-in-backward --out bad.h5
check 'steps in backward want no clipping' eval 'left_with 1 "add --clip 0" && test ! -e bad.h5'
run pretrain bert --corpus text.txt --config tiny.json --batch 4 --seq 32 --steps 3 --clip 0 \
    --step-in-backward --out bad.h5
check 'a run steps in backward' test $code = 0
rm -f bad.h5

# A log without the times, each step once.
losses() {
    sed 's/, "tokens_per_s": [^,}]*//' "$@" | sort -u | sort -t: -k2n
}

# Waits until the log $2 has $1 lines, for half a minute at most.
wait_for_step() {
    tries=0
    until test -f "$2" && test "$(wc -l <"$2")" -ge "$1" || test $tries -ge 600; do
        sleep 0.05
        tries=$((tries + 1))
    done
}

for signal in INT TERM; do
    rm -f stopped.*
    begin --out stopped.h5 --steps 100000 --log stopped.log
    wait_for_step 3 stopped.log
    kill -$signal $process
    wait $process
    code=$?
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
    begin --out killed.h5 --steps $steps --save-every 3 --log killed.log $begun
    sleep "0.$(awk "BEGIN { srand($round + $$); print int(1000 + 8999 * rand()) }")"
    kill -KILL $process 2>/dev/null
    wait $process 2>/dev/null
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
code=$?
check 'a killed run comes to its end' eval 'test $code = 0'
losses killed.log >killed.losses
losses reference.log >reference.losses
check 'its losses are those of a run that was never stopped' cmp -s killed.losses reference.losses
check 'nothing is left beside the checkpoint' test "$(find . -name 'killed*' | wc -l)" = 3

# ---- A file that was cut short or altered ----

size=$(wc -c <straight.h5)
head -c $((size / 2)) straight.h5 >cut.h5
refuses 'filling by a file that was cut short' 'cut.h5' fill cut.h5 'A [MASK].'
refuses 'resuming a file that was cut short' 'cut.h5' pretrain bert --resume --out cut.h5
refuses 'drawing a file that was cut short' 'cut.h5' plot cut.h5 -o bad.svg

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

# ---- eval, fill, plot ----

run eval straight.h5 --corpus text.txt --seq 32
check 'eval measures' eval 'test $code = 0 && grep -q "by word frequency" out'
run eval straight.h5 --corpus text.txt --seq 32 --json
check 'eval tells JSON' grep -q '"nsp_pairs": [1-9]' out
refuses 'eval beyond the model' '64' eval straight.h5 --corpus text.txt --seq 64

run fill straight.h5 'The white [MASK] was late, [MASK] she.'
check 'fill fills each mask' eval 'test $code = 0 && test "$(wc -l <out)" = 3'
run fill straight.h5 --top 3 --json 'The white [MASK].'
check 'fill tells JSON' test "$(grep -c '"probability": 0\.' out)" = 3
printf 'The [MASK].\n\nA [MASK].\n' | "$wengert" fill straight.h5 >out 2>err
check 'fill reads lines' test "$(grep -c . out)" = 4
refuses 'fill without a mask' '[MASK]' fill straight.h5 'The white rabbit.'
refuses 'fill beyond the model' '32' fill straight.h5 \
    "$(head -n 20 text.txt | tr '\n' ' ') [MASK]"
refuses 'fill of text that is not UTF-8' 'UTF-8' fill straight.h5 "$(printf '[MASK] \377')"

if command -v gnuplot >/dev/null; then
    run plot straight.h5 -o loss.svg
    check 'plot draws' eval 'test $code = 0 && grep -q "</svg>" loss.svg'
    check 'plot draws the frequencies' grep -q 'unigram' loss.svg
    refuses 'plot into no folder' 'none' plot straight.h5 -o none/bad.svg
else
    skip 'plot draws' 'gnuplot is not installed'
    skip 'plot draws the frequencies' 'gnuplot is not installed'
    skip 'plot into no folder' 'gnuplot is not installed'
fi
PATH=/none run plot straight.h5 -o loss.png
check 'plot says that gnuplot is missing' left_with 1 'gnuplot-nox'

finish
