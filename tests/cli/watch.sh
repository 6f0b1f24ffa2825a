#!/bin/sh
# Watching a run: `--tensorboard'. Prints TAP.
. "$(dirname "$0")/setup.sh"

book 300 >text.txt
tiny gpt 300 32 >gpt.json
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

finish
