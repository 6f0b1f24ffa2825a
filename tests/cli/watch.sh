#!/bin/sh
# Watching a run: `--tensorboard' and `--ui'. Prints TAP. WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-watch.XXXXXX") || exit 1
cd "$work" || exit 1
mounted=
trap 'test -z "$mounted" || umount "$mounted"; rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

head -n 300 "$source/corpus/books/alice-in-wonderland.txt" >text.txt
cat >gpt.json <<END
{"vocab_size": 300, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
END
pretrain() {
    run pretrain gpt --corpus text.txt --config gpt.json --batch 4 --seq 32 "$@"
}

# ---- Event files ----

pretrain --steps 4 --eval-every 2 --tensorboard events --out run.h5
check 'a run writes an event file' eval 'test $code = 0 && test "$(ls events | wc -l)" = 1'
check 'with the curves and the settings' eval 'for tag in train/loss train/lr eval/loss settings/text_summary \
    brain.Event:2; do grep -aqF "$tag" events/* || exit 1; done'
check 'a scalar for each step' test "$(grep -ao 'train/loss' events/* | wc -l)" = 4
run pretrain gpt --resume --steps 6 --tensorboard events --out run.h5
check 'a resumed run adds a file' eval 'test $code = 0 && test "$(ls events | wc -l)" = 2 &&
    test "$(cat events/* | grep -ao "train/loss" | wc -l)" = 6'
pretrain --steps 2 --tensorboard no/folder --out other.h5
check 'a folder that cannot be made ends the run before it begins' left_with 1 'no/folder: No such file or directory'
mkdir full
if mount -t tmpfs -o size=4k none full 2>/dev/null; then
    mounted=$PWD/full
    pretrain --steps 200 --eval-every 200 --tensorboard full --out kept.h5
    check 'a full disk is told of once, and the run goes on' eval 'test $code = 0 &&
        test "$(grep -c "No space left on device; the run goes on without event files" err)" = 1'
    check 'to its end' eval '"$wengert" info kept.h5 | grep -q "step 200 of 200"'
    umount full
    mounted=
else
    skip 'a full disk' 'no file system can be mounted'
fi

# ---- The live view ----

pretrain --steps 2 --ui --out plain.h5
check 'without a terminal the progress is told in lines' eval 'test $code = 0 &&
    grep -q "ui draws nothing: stderr is no terminal" err && grep -q "^step 2/2  loss" err'

# Runs a command of the shell on a terminal of 70 x 20, with the environment before it.
on_terminal() {
    script -qefc "stty cols 70 rows 20; $1" typescript >/dev/null 2>&1 </dev/null
    code=$?
}
training="$wengert pretrain gpt --corpus text.txt --config gpt.json --batch 4 --seq 32 --eval-every 4"
if script -qec 'stty cols 70 rows 20' /dev/null >/dev/null 2>&1 </dev/null; then
    on_terminal "env LC_ALL=C TERM=xterm NO_COLOR=1 $training --steps 12 --ui --out view.h5"
    check 'the view draws both curves on a terminal' eval 'test $code = 0 && grep -q "|.*\*" typescript &&
        grep -q "|.*o" typescript && grep -q "pretrain gpt: view.h5 .*step 12 of 12, 100 %" typescript &&
        grep -Eq "^loss [0-9.]+  held out [0-9.]+  .* tokens/s  " typescript'
    check 'no line is wider than the terminal' eval 'tr -d "\r" <typescript | sed "s/$(printf "\033")\[[0-9]*[A-Za-z]//g" |
        grep -e "|" -e "^loss" -e "^pretrain gpt:" | awk "length > 69 { bad = 1 } END { exit bad || NR < 16 }"'
    check 'and hides nothing that it would have to put back' eval '! grep -q "$(printf "\033")\[?" typescript'
    on_terminal "env LC_ALL=C.UTF-8 TERM=xterm NO_COLOR= $training --steps 12 --ui --out braille.h5"
    check 'a terminal of UTF-8 gets finer curves, and colour' eval 'test $code = 0 &&
        grep -q "$(printf "\342\240")" typescript && grep -q "$(printf "\033")\[36m" typescript'
    # The title has 50 columns, of which these names fill 34: a cut at the 50th byte is within a character.
    for name in xä 数; do
        character=${name#x}
        for _ in $(seq 40); do name=$name$character; done
        on_terminal "env LC_ALL=C.UTF-8 TERM=xterm $training --steps 2 --ui --out ./$name.h5"
        check "a title of $character is cut between two characters" eval 'test $code = 0 &&
            grep -a "pretrain gpt: " typescript | iconv -f UTF-8 -t UTF-8 >/dev/null &&
            grep -aq "pretrain gpt: ./x*$character$character.*$character  *step 2 of 2, 100 %" typescript'
    done
    on_terminal "env TERM=dumb $training --steps 2 --ui --out dumb.h5"
    check 'a terminal that cannot be drawn on gets lines' eval 'test $code = 0 &&
        grep -q "ui draws nothing: TERM names none" typescript'
    # The view redraws each second at most, and a busy machine begins late.
    wait_for_step='while kill -0 $! && ! grep -q "step [1-9]" typescript; do sleep 0.1; done'
    on_terminal "env TERM=xterm $training --steps 100000 --ui --out stopped.h5 & $wait_for_step; kill -INT \$!; wait \$!"
    check 'an interrupted view leaves a saved run and its message' eval 'grep -q "interrupted at step" typescript &&
        "$wengert" info stopped.h5 >/dev/null'
else
    skip 'the view on a terminal' 'there is no script(1)'
fi

finish
