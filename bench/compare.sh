#!/bin/sh
# Training steps beside PyTorch's, taken in turns on this machine.
#
#   bench/compare.sh PEERS_FOLDER [MODEL...]
#
# PEERS_FOLDER holds torch_bert.py, torch_gpt2.py and so on; the MLP's program is in this folder. PyTorch runs at
# its best: BLIS with OpenMP as libblas, tcmalloc preloaded (Debian's libblis4-openmp and
# libtcmalloc-minimal4). Prints the medians of the rounds.
#
# WENGERT: the command (default build/wengert). ROUNDS: default 3. THREADS: default 2.
# PYTHON: the words of a command that runs a PyTorch (default /usr/bin/python3). A command of
# several words brings its own libraries, and programs are handed to it as text, so that it may see
# other files, for example PyTorch 2.6 with OpenBLAS in a folder of Debian 13:
#
#   PYTHON='chroot FOLDER env LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp
#   LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4 python3' bench/compare.sh PEERS_FOLDER
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
wengert=${WENGERT:-$here/../build/wengert}
rounds=${ROUNDS:-3}
threads=${THREADS:-2}
python=${PYTHON:-/usr/bin/python3}
if test $# -lt 1 || ! test -d "$1"; then
    echo "usage: bench/compare.sh PEERS_FOLDER [MODEL...]" >&2
    exit 2
fi
peers=$1
shift
test $# -gt 0 || set -- gpt2-124m bert-mini bert-base llama-15m transformer-base glm-small mlp-32
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-compare.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

case $python in
*' '*) own=yes ;;
*) own=no ;;
esac
blas=$(dirname "$(dpkg -L libblis4-openmp 2>/dev/null | grep '/libblas\.so\.3$')")
tcmalloc=$(dpkg -L libtcmalloc-minimal4 2>/dev/null | grep '/libtcmalloc_minimal\.so\.4$')
torch=yes
# shellcheck disable=SC2086 # it is words
if ! $python -c 'import torch' 2>/dev/null; then
    echo "$python has no torch (Debian: python3-torch): PyTorch is left out" >&2
    torch=no
elif test "$own" = no && { ! test -f "$blas/libblas.so.3" || ! test -f "$tcmalloc"; }; then
    echo "libblis4-openmp or libtcmalloc-minimal4 is missing: PyTorch is not at its best" >&2
fi

# The peer of a model, with the sizes of `wengert bench train'.
peer_of() {
    case $1 in
    gpt2-124m) echo "$peers/torch_gpt2.py 12 768 12 50257 4 64 $2" ;;
    bert-mini) echo "$peers/torch_bert.py 4 256 4 30522 32 128 $2" ;;
    bert-base) echo "$peers/torch_bert.py 12 768 12 30522 4 128 $2" ;;
    llama-15m) echo "$peers/torch_llama.py 6 288 6 32000 8 256 $2 768" ;;
    transformer-base) echo "$peers/torch_transformer.py 6 512 8 10000 16 32 $2 2048" ;;
    glm-small) echo "$peers/torch_glm.py 6 384 6 30522 8 256 $2" ;;
    mlp-32) echo "$here/torch_mlp.py 32 $2" ;;
    *) return 1 ;;
    esac
}

steps_of() {
    case $1 in
    mlp-32) echo 2000 ;;
    *) echo 5 ;;
    esac
}

# One round of each: lines "ms MB" are added to $work/ours and $work/torch.
run_ours() {
    "$wengert" bench train "$1" --threads "$threads" --steps "$2" >"$work/out" || return 1
    sed 's/.*"ms_per_step": \([^,]*\),.*"max_rss_mb": \([^,]*\),.*/\1 \2/' "$work/out" >>"$work/ours"
}

run_torch() {
    if test "$own" = yes; then
        # shellcheck disable=SC2046,SC2086 # arguments are words
        set -- $(peer_of "$1" "$2")
        program=$1
        shift
        # shellcheck disable=SC2086
        OMP_NUM_THREADS=$threads $python - "$@" <"$program" >"$work/out" || return 1
        sed 's/.*ms_per_step=\([^ ]*\).* rss_mb=\([^ ]*\).*/\1 \2/' "$work/out" >>"$work/torch"
        return
    fi
    # shellcheck disable=SC2046 # arguments are words
    LD_LIBRARY_PATH=$blas${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} LD_PRELOAD=$tcmalloc \
        OMP_NUM_THREADS=$threads "$python" $(peer_of "$1" "$2") >"$work/out" || return 1
    sed 's/.*ms_per_step=\([^ ]*\).* rss_mb=\([^ ]*\).*/\1 \2/' "$work/out" >>"$work/torch"
}

# The median of a column of a file.
median() {
    awk -v column="$2" '{ print $column }' "$1" | sort -g | awk '{ x[NR] = $1 } END { print x[int(NR / 2) + 1] }'
}

format='%-18s %10s %10s %7s %8s %8s %7s\n'
# shellcheck disable=SC2059 # it is the format
printf "$format" model 'ms' 'torch ms' ratio MB 'torch MB' ratio
for model; do
    steps=$(steps_of "$model")
    if ! peer_of "$model" "$steps" >/dev/null; then
        echo "there is no peer of '$model'" >&2
        exit 2
    fi
    : >"$work/ours"
    : >"$work/torch"
    round=0
    while test "$round" -lt "$rounds"; do
        run_ours "$model" "$steps" || exit 1
        test "$torch" = no || run_torch "$model" "$steps" || exit 1
        round=$((round + 1))
    done
    ms=$(median "$work/ours" 1) mb=$(median "$work/ours" 2)
    torch_ms=$(median "$work/torch" 1) torch_mb=$(median "$work/torch" 2)
    awk -v format="$format" -v model="$model" -v ms="$ms" -v mb="$mb" -v tms="$torch_ms" \
        -v tmb="$torch_mb" 'BEGIN {
            none = tms == ""
            printf format, model, sprintf("%.4g", ms), none ? "-" : sprintf("%.4g", tms),
                none ? "-" : sprintf("%.2f", tms / ms), sprintf("%.0f", mb),
                none ? "-" : tmb, none ? "-" : sprintf("%.2f", mb / tmb)
        }'
done
