#!/bin/sh
# Checks what quickstart does about packages, in a copy of it whose dpkg-query, apt-get, configure and
# make are stand-ins that note their calls: a package that has come since the last build is a reason to
# configure anew, a lock of apt's is waited for, and a command that does not start is named. Prints TAP.
. "$(dirname "$0")/cli/setup.sh"
unset CONFIGURE STEPS MAKEFLAGS MFLAGS MAKELEVEL
mkdir bin build
cp "$source/quickstart" .

stand_in() {
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}

# Packages are the lines of the file `installed`. The lists of packages are locked while the file `locked` has lines,
# one of which goes with each call.
stand_in bin/dpkg-query <<'E2'
status=1
for name; do
    case $name in -*|'$'*) continue ;; esac
    grep -qx "$name" installed || continue
    case $3 in *Version*) echo "$name 1.0 installed" ;; *) printf installed ;; esac
    status=0
done
exit $status
E2
stand_in bin/apt-get <<'E2'
echo "apt-get $*" >>calls
if test -s locked; then
    sed -i 1d locked
    echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 123 (apt-get)' >&2
    exit 100
fi
case " $* " in
*' nothing-there '*) echo 'E: Unable to locate package nothing-there' >&2; exit 100 ;;
*' install '*)
    for name; do
        case $name in -*|install|Dpkg*|DPkg*|-) ;; *) echo "$name" >>installed ;; esac
    done ;;
esac
E2
stand_in bin/sudo <<'E2'
exec "$@"
E2
stand_in bin/sleep </dev/null
stand_in bin/gnuplot </dev/null
stand_in configure <<'E2'
echo "configure $*" >>../calls
touch config.status
E2
stand_in bin/make <<'E2'
echo make >>calls
E2
stand_in build/wengert <<'E2'
echo "wengert $*" >>calls
test ! -f broken || { echo 'libblas.so.3: undefined symbol' >&2; exit 127; }
E2
PATH=$work/bin:$PATH
export PATH

# run NAME ARGUMENT...: runs quickstart from a clean note of calls; its output is in `out`.
run() {
    : >calls
    ./quickstart "$@" >out 2>&1
}

: >installed
: >locked
run
check 'the first command installs, configures and builds' \
    eval 'grep -q "install.*libhdf5-dev" calls && grep -q ^configure calls && grep -q ^make calls'
check 'no second BLAS is installed' eval '! grep -i openblas installed'
run
check 'nothing has changed: nothing is configured anew' eval \
    '! grep -q "^configure\|^apt-get" calls'
run check
check 'the tests install MPI, and with it all is configured anew' \
    eval 'grep -q "install.*libopenmpi-dev" calls && grep -q ^configure calls'
run
check 'the first command after the tests configures nothing' eval '! grep -q "^configure" calls'
CONFIGURE=--disable-static run
check 'other arguments configure anew' eval 'grep -q "^configure -q --disable-static" calls'
rm -f installed build/config.status build/configured-for
: >installed
run check
run
check 'the other order configures once' eval '! grep -q ^configure calls'
: >installed
printf '1\n2\n3\n' >locked
run deps
check 'a lock of apt is waited for, with a word' \
    eval 'test -s installed && test "$(grep -c "holds apt.s lock" out)" = 1'
sed 's/^packages=.autoconf/&\nnothing-there/' quickstart >other && chmod +x other && mv other quickstart
: >installed
run deps
status=$?
check 'another error of apt ends the command, and is shown' \
    eval 'test $status = 1 && grep -q "Unable to locate" out && test "$(grep -c "^apt-get.* install" calls)" = 1'
cp "$source/quickstart" .
touch broken
run
status=$?
check 'a command that does not start is named, with the reason' \
    eval 'test $status = 1 && grep -q "undefined symbol" out && grep -q "does not start" out'
finish
