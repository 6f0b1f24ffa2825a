# shellcheck shell=sh
# What the scripts that train under mpirun begin with; they source this file: sets $root and $wengert, and
# goes to a temporary folder with a text and a held-out one. The first argument is the command.
wengert=${1:-build/wengert}
wengert=$(cd "$(dirname "$wengert")" && pwd)/$(basename "$wengert")
root=$(cd "$(dirname "$0")/.." && pwd)
command -v mpirun >/dev/null || {
    echo 'skipped: there is no mpirun; Debian has it in openmpi-bin'
    exit 0
}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-bench.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work" || exit 1
. "$root/tests/cli/mpirun.sh"
export OMP_NUM_THREADS=1
cat "$root"/corpus/books/*.txt | head -n 20000 >text.txt
head -n 200 text.txt >held.txt
