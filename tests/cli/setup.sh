# shellcheck shell=sh
# Begins a script of tests: goes to an empty folder, $work, which is removed at the end. $source is
# the tree, $build the folder that the script was run in, $wengert the command (WENGERT in the
# environment), $data the real data that some machines have (WENGERT_DATA). A script that mounts
# something names it in $mounted.
source=$(cd "$(dirname "$0")" && until test -e configure.ac || test "$PWD" = /; do cd ..; done && pwd) || exit 1
build=$PWD
wengert=${WENGERT:-$build/wengert}
data=${WENGERT_DATA:-$source/../shared/data}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-$(basename "$0" .sh).XXXXXX") || exit 1
cd "$work" || exit 1
mounted=
trap 'test -z "$mounted" || umount "$mounted"; chmod -R u+w "$work"; rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"
