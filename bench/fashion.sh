#!/bin/sh
# Steps of the networks of examples/fashion.c beside PyTorch's, taken in turns on this machine.
#
#   bench/fashion.sh FOLDER [THREADS...]      (default: 1 and 2 threads)
#
# FOLDER holds the four IDX files of Fashion-MNIST, not compressed. Prints milliseconds a step by the clock for
# each round, and the ratio of the medians: above 1 Wengert is faster. The machine should have nothing else to do.
#
# BUILD: the folder of the build (default build). SECONDS_EACH: how long each run trains (default 8).
# ROUNDS: default 3. PYTHON: the words of a command that runs a PyTorch (default /usr/bin/python3).
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
fashion=${BUILD:-$here/../build}/examples/fashion
seconds=${SECONDS_EACH:-8}
rounds=${ROUNDS:-3}
python=${PYTHON:-/usr/bin/python3}
if test $# -lt 1 || ! test -f "$1/train-images-idx3-ubyte" || ! test -x "$fashion"; then
    echo "usage: bench/fashion.sh FOLDER [THREADS...], after make examples/fashion in BUILD" >&2
    exit 2
fi
data=$1
shift
test $# -gt 0 || set -- 1 2

# The milliseconds a step that a command prints, which trains on $1 threads.
step() {
    threads=$1
    shift
    OMP_NUM_THREADS=$threads "$@" "$data" 1 "$seconds" | sed -n 's/ ms a step$//p'
}

median() {
    printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"
}

printf '%-8s %7s   %-26s %-26s %s\n' network threads Wengert PyTorch ratio
for threads; do
    for network in cnn vit; do
        ours='' theirs=''
        for _ in $(seq "$rounds"); do
            ours="$ours $(step "$threads" "$fashion" $network)"
            # shellcheck disable=SC2086 # PYTHON is words
            theirs="$theirs $(step "$threads" $python "$here/torch_fashion.py" $network)"
        done
        # shellcheck disable=SC2086 # lists of numbers
        ratio=$(echo "$(median $theirs) $(median $ours)" | awk '$2 > 0 { printf "%.2f", $1 / $2 }')
        printf '%-8s %7s  %-26s %-26s %s\n' $network "$threads" "$ours" "$theirs" "$ratio"
    done
done
