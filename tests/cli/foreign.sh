#!/bin/sh
# Names in files of others: none of them is run as a command, by gnuplot or a shell, and none reaches a
# terminal with control characters in it. Prints TAP.
#
# FOREIGN_CHECKPOINT: the program that writes such a file
# (default tests/foreign_checkpoint).
. "$(dirname "$0")/setup.sh"
foreign_checkpoint=${FOREIGN_CHECKPOINT:-$build/tests/foreign_checkpoint}

# A command that leaves a mark when a name is obeyed.
mkdir bin
printf '#!/bin/sh\n: >"%s/obeyed"\n' "$work" >bin/mark
chmod +x bin/mark
PATH=$work/bin:$PATH
bin/mark
check 'the mark is seen' test -e obeyed
rm -f obeyed
"$foreign_checkpoint" run.h5 mark || exit 1

line_break='
'
controls=$(printf '[\001-\010\013-\037\177]')

# ---- gnuplot ----

draws() {
    name=$1 picture=$2
    shift 2
    run plot "$@" -o "$picture"
    check "$name" eval 'test $code = 0 && test -s "$picture" && ! test -e obeyed'
    rm -f obeyed
}
if command -v gnuplot >/dev/null; then
    for suffix in svg png pdf; do
        draws "names of columns run nothing, .$suffix" "a.$suffix" run.h5
    done
    for name in "b$line_break!mark$line_break#" '|mark;' "\`mark\`" "it's" "\$(mark)" '~'; do
        cp run.h5 "$name.h5"
        draws "a run called '$(echo "$name" | tr '\n' '?')' runs nothing" c.svg "$name.h5" run.h5
        draws "a picture called '$(echo "$name" | tr '\n' '?')' runs nothing" "$name.svg" run.h5
    done
    draws 'a metric that is named runs nothing' d.svg run.h5 --metric "b'$line_break!mark$line_break'_loss"
    check 'a name is drawn with question marks' grep -q "a?!mark? loss" a.svg
    draws 'a picture whose name is a command runs nothing' "|mark;$line_break!mark.png" run.h5
else
    skip 'gnuplot runs nothing' 'gnuplot is not installed'
fi

# What gnuplot is told, line by line: no line begins with what a name says.
mkdir fake
printf '#!/bin/sh\ncat >script.txt\n' >fake/gnuplot
chmod +x fake/gnuplot
PATH=$work/fake:$PATH run plot run.h5 -o e.svg
check 'gnuplot is told no line of a name' eval 'test $code = 0 && test -s script.txt &&
    ! grep -q "^!" script.txt && ! LC_ALL=C grep -q "$controls" script.txt'

# ---- The terminal ----

plain() {
    name=$1
    shift
    run "$@"
    check "$name" eval '! LC_ALL=C grep -q "$controls" out && ! LC_ALL=C grep -q "$controls" err &&
        ! LC_ALL=C grep -q "$(printf "\302[\200-\237]")" out && test -s "$stream"'
}
stream=out
plain 'info prints no control characters' info run.h5
plain 'info --all prints none' info --all run.h5
check 'a line break in a name ends no line' eval '! grep -q "^!mark" out'
run info --json run.h5
check 'info --json escapes them' eval '! LC_ALL=C grep -q "$controls" out'
stream=err
plain 'an error that lists names prints none' plot run.h5 --metric x -o bad.svg
check 'such an error is one line' test "$(wc -l <err)" = 1
plain 'an error that names a file prints none' plot "$(printf 'a\033[31m\nb')" -o bad.svg
finish
