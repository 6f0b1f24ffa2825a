#!/bin/sh
# The batches of a step, however they are shared by ranks: one batch of eight, and eight of one on
# two ranks make the same steps, of every objective. Those of one process: suite accumulation.
# Prints TAP.
. "$(dirname "$0")/setup.sh"
dropout=0
. "$source/tests/cli/models.sh"
. "$source/tests/cli/mpirun.sh"

how='--optimizer sgd --lr 0.05 --schedule constant --warmup 0 --seed 3 --timeout 120 --overwrite'

# train_as OBJECTIVE RANKS BATCH ACCUMULATE OUT OPTION...: four steps.
train_as() {
    objective=$1 with="ranks $2" sizes="--batch $3 --accumulate $4 --out $5.h5 --log $5.log"
    shift 5
    # shellcheck disable=SC2086
    train "$objective" $how --steps 4 $sizes "$@"
}

# same LOG LOG: whether all numbers of the steps agree but those of a clock.
same() {
    for log in "$1" "$2"; do
        sed 's/, "tokens_per_s": [^,}]*//; s/, "eval_[^,}]*//g' "$log.log" | tr ',{}:' '\n\n\n\n' >"$log.numbers"
    done
    awk 'NR == FNR { was[FNR] = $1; lines = FNR; next }
        { d = $1 - was[FNR]; d = d < 0 ? -d : d; size = $1 < 0 ? -$1 : $1
          if (!(d <= 2e-5 * (size > 1 ? size : 1))) { print "line " FNR ": " was[FNR] ", " $1; bad = 1; exit } }
        END { exit bad || FNR != lines || lines < 20 }' "$1.numbers" "$2.numbers"
}

need_ranks

# ---- Every objective but contrastive, whose texts are compared with those of their batch ----

for row in $objectives; do
    whole=8 part=1 parts=8
    case $row in
    contrastive | gpt | gated) continue ;;
    translation) whole=36 part=9 parts=4 ;;
    esac
    train_as "$row" 1 $whole 1 "$row"
    check "$row: a run in one batch a step" test $code = 0
    train_as "$row" 2 $part $parts ranks
    check "$row: in $parts batches on two ranks" same "$row" ranks
    rm -f ranks.log
done

for row in masked-lm hybrid; do
    for stage in 1 2; do
        train_as $row 2 1 8 sharded --zero $stage
        check "$row: on two ranks with --zero $stage" same $row sharded
        rm -f sharded.log
        train_as $row 3 2 4 sharded --zero $stage
        check "$row: in batches of two on three ranks with --zero $stage" same $row sharded
        rm -f sharded.log
    done
done

# ---- What cannot be cut ----

refuses 'a batch of one text that is compared with others' 'compared with the others of its batch' \
    finetune masked-lm.h5 --task contrastive --train lines.txt --eval lines.txt --batch 1 \
    --accumulate 2 --seq 24 --out bad.h5

finish
