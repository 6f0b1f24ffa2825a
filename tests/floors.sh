#!/bin/sh
# Holds the floors: a file includes its own floor and those above it in the list, never one below.
# Prints TAP, one result a folder, each wrong include as file:line. With an argument, looks at that
# tree instead of the one it stands in.
cd "${1:-$(dirname "$0")/..}" || exit 1

# Each line: a folder, then what it may include besides itself.
floors='base
tensor base
autograd base tensor
nn base tensor autograd
optim base tensor autograd nn
gradcheck base tensor autograd nn optim
io base tensor autograd nn optim gradcheck
data base tensor autograd nn optim gradcheck io
train base tensor autograd nn optim gradcheck io data
models base tensor autograd nn optim gradcheck io data train
objectives base tensor autograd nn optim gradcheck io data train models
formats base tensor autograd nn optim gradcheck io data train models objectives
cli base tensor autograd nn optim gradcheck io data train models objectives formats
bench base tensor autograd nn optim gradcheck io data train models objectives formats cli'
folders=$(echo "$floors" | cut -d ' ' -f 1 | tr '\n' '|')
folders=${folders%|}

# Prints file:line: include for each include of a folder that may not be included.
wrong_includes() {
    folder=$1
    allowed=$(echo "$*" | tr ' ' '|')
    find "$folder" -name '*.[ch]' | sort | while read -r file; do
        grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"](wengert/|(\.\./)*)($folders)/" \
            "$file" |
            grep -vE "[<\"](wengert/|(\.\./)*)($allowed)/" | sed "s|^|$file:|"
        # The umbrella holds all floors, so no file below cli/ may take it.
        test "$folder" = cli || test "$folder" = bench ||
            grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"].*wengert\.h[>\"]" "$file" |
            sed "s|^|$file:|"
    done
}

echo "1..$(echo "$floors" | wc -l)"
number=0
failed=0
while read -r line; do
    number=$((number + 1))
    folder=${line%% *}
    if ! test -d "$folder"; then
        echo "ok $number - $folder/ includes no floor below # SKIP there is no such folder"
        continue
    fi
    # shellcheck disable=SC2086
    wrong=$(wrong_includes $line)
    if test -z "$wrong"; then
        echo "ok $number - $folder/ includes no floor below"
    else
        echo "$wrong" | sed 's/^/# /'
        echo "not ok $number - $folder/ includes no floor below"
        failed=1
    fi
done <<END
$floors
END
exit $failed
