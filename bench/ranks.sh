#!/bin/sh
# One rank of one thread beside two ranks of one thread, of `wengert pretrain` and of PyTorch's
# DistributedDataParallel with gloo, on the same two cores.
#
#     sh bench/ranks.sh [WENGERT [MODEL...]]        bert-mini and gpt2-124m
#
# A step has two batches. Both train with the vocabulary that `pretrain' learns from the text. It is smaller than
# the preset's, so the model is smaller, too; the first line prints its parameters. TOKENIZER is a file with
# another vocabulary, as `pretrain --tokenizer'. Two runs of each kind, with STEPS (6) and 2 STEPS, give the time
# of a step by their difference: by the clock, and in processor time of a rank, which excludes other programs.
# PYTHON (/usr/bin/python3) has PyTorch; without it that part is left out.
set -u
. "$(dirname "$0")/mpirun.sh"
test $# -gt 0 && shift
test $# -gt 0 || set -- bert-mini gpt2-124m
steps=${STEPS:-6} python=${PYTHON:-/usr/bin/python3}

# What each rank runs: a command, whose seconds of the processor and of the clock are added to a file.
cat >timed <<'END'
#!/bin/sh
begun=$(date +%s.%N)
"$@" || exit 1
ended=$(date +%s.%N)
times >"times.${OMPI_COMM_WORLD_RANK:-0}" # in a pipe it would time the pipe's shell
tail -n 1 "times.${OMPI_COMM_WORLD_RANK:-0}" | sed 's/[ms]/ /g' | awk -v begun="$begun" -v ended="$ended" \
    '{ print $1 * 60 + $2 + $3 * 60 + $4, ended - begun }' >"used.${OMPI_COMM_WORLD_RANK:-0}"
END
chmod +x timed

# seconds RANKS STEPS ARGUMENT...: of the processor for a rank, and of the clock.
seconds() {
    ranks=$1 count=$2
    shift 2
    rm -f used.* run.h5
    mpirun -n "$ranks" ./timed "$wengert" pretrain "$@" --steps "$count" --out run.h5 >out 2>err </dev/null || {
        cat err >&2
        exit 1
    }
    cat used.* | awk '{ cpu += $1; if ($2 > clock) clock = $2 } END { print cpu / NR, clock }'
}

for model in "$@"; do
    case $model in
    bert*) kind=bert batch=16 sequence=128 vocabulary='--vocab-size 30522' ;;
    *) kind=gpt batch=4 sequence=64 vocabulary= ;;
    esac
    if test -n "${TOKENIZER:-}"; then vocabulary="--tokenizer $TOKENIZER"; fi
    set_of="$kind --preset $model --corpus text.txt --eval held.txt --batch $batch --accumulate 2 --seq $sequence
        --save-every 100000 --tokens $work/$model.tokens $vocabulary"
    # shellcheck disable=SC2086
    seconds 1 1 $set_of >/dev/null # writes the tokens
    sed -n 's/^model  \([0-9]*\) parameters, \([0-9]*\) tokens in its vocabulary.*/\1 \2/p' err >size
    read -r parameters words <size
    echo "$model with a vocabulary of $words tokens: $parameters parameters; two batches of $batch x $sequence" \
        "tokens a step; load $(cut -d ' ' -f 1-3 /proc/loadavg)"
    for ranks in 1 2; do
        # shellcheck disable=SC2086
        { seconds $ranks "$steps" $set_of; seconds $ranks $((2 * steps)) $set_of; } |
            awk -v n="$steps" -v tokens=$((2 * batch * sequence)) -v ranks=$ranks '
                NR == 1 { cpu = $1; clock = $2 }
                NR == 2 { cpu = ($1 - cpu) / n; clock = ($2 - clock) / n
                    printf "wengert  %d rank%s  step %8.1f ms by the clock, %8.1f ms of the processor a rank: %7.0f, %7.0f tokens/s\n",
                        ranks, (ranks > 1 ? "s" : " "), 1e3 * clock, 1e3 * cpu, tokens / clock, tokens / cpu }' | tee "wengert.$ranks"
    done
    awk '{ gsub(/,/, "") } { for (i = 1; i <= NF; i++) if ($i ~ /tokens\/s/) { clock[NR] = $(i - 2); cpu[NR] = $(i - 1) } }
        END { printf "wengert  2 ranks have %.2f times the tokens/s of 1 by the clock, %.2f times by the processor\n",
            clock[2] / clock[1], cpu[2] / cpu[1] }' wengert.1 wengert.2
    if "$python" -c 'import torch.distributed as d; raise SystemExit(not d.is_gloo_available())' 2>/dev/null; then
        "$python" "$root/bench/torch_ddp.py" "$model" "$batch" "$sequence" "$steps" "$words"
    else
        echo "skipped: $python has no PyTorch with gloo"
    fi
    mpirun -n 2 "$wengert" plan "$model" --batch $batch --seq $sequence --ranks 2 --accumulate 2 --vocab "$words"
done
