#!/bin/sh
# Checks the man pages of section 1, which make writes out of --help: there is one for the command, each verb
# and each bench, none else, and mandoc reads them. Prints TAP.
. "$(dirname "$0")/setup.sh"
unset OMP_NUM_THREADS

{
    echo wengert.1
    "$wengert" --complete '' | cut -f 1 | sed -n 's/^\([a-z]*\)$/wengert-\1.1/p'
    "$wengert" --complete bench '' | cut -f 1 | sed -n 's/^\([a-z]*\)$/wengert-bench-\1.1/p'
} | LC_ALL=C sort >wanted
(cd "$build/man1" && find . -type f -name '*.1' | cut -c 3-) | LC_ALL=C sort >out
check 'there is a page for each verb, and none without one' cmp wanted out
check 'a page has the options of --help' grep -qF '\-\-jacobian' "$build/man1/wengert-gradcheck.1"
check 'no option has an empty standard behind its help' eval '! grep -qF "()" "$build"/man1/*.1'
lint() {
    (cd "$build/man1" && mandoc -Tlint -W warning ./*.1) >out 2>&1
    ! test -s out
}
if command -v mandoc >/dev/null; then
    check 'mandoc finds nothing wrong with them' lint
else
    skip 'mandoc finds nothing wrong with them' 'there is no mandoc'
fi
finish
