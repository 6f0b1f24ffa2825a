#!/bin/sh
# Checks that the table of docs/ops.md lists the ops of the registry. Prints TAP.
#
#   tests/ops_table.sh           compares them
#   tests/ops_table.sh --write   rewrites the table, below the introduction
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
page=$source/docs/ops.md
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-ops-table.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

{
    sed '/^| op | kind /,$d' "$page"
    "$wengert" gradcheck --list || exit 1
} >"$work/ops.md"
if test "$1" = --write; then
    cp "$work/ops.md" "$page"
    exit
fi
echo 1..1
if diff "$page" "$work/ops.md" >"$work/difference"; then
    echo 'ok 1 - docs/ops.md has the table of the registry'
else
    sed 's/^/# /' "$work/difference"
    echo '# make update-docs writes it anew'
    echo 'not ok 1 - docs/ops.md has the table of the registry'
fi
