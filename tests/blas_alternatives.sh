#!/bin/sh
# Runs the command, the tests of decompositions on several threads, and NumPy beside the library with each
# libblas.so.3 and liblapack.so.3 that Debian has: the reference, BLIS, and OpenBLAS without threads, with
# POSIX threads and with OpenMP. Prints TAP, one result a combination.
#
#   tests/blas_alternatives.sh [FOLDER]     in the folder of a build, after `make tests/test_ops'
#
# FOLDER: where the packages are unpacked, outside of the tree; what is there already is not downloaded
# again. Default: ${TMPDIR:-/tmp}/wengert-blas. COMBINATIONS='reference+openblas-serial ...' takes some of
# them, BLAS before LAPACK; CK_RUN_CASE=eigh one case of the tests, which take a minute a combination.
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=$PWD
folder=${1:-${TMPDIR:-/tmp}/wengert-blas}
. "$source/tests/cli/tap.sh"
mkdir -p "$folder" || exit 1
folder=$(cd "$folder" && pwd) || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-alternatives.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
architecture=$(${CC:-cc} -print-multiarch) || exit 1
unset OPENBLAS_CORETYPE

for package in libblas3 liblapack3 libblis4-serial libblis4-pthread libblis4-openmp libopenblas0-serial \
    libopenblas0-pthread libopenblas0-openmp; do
    test -d "$folder/$package" || (
        cd "$folder" && apt-get download -qq "$package" && dpkg-deb -x "${package}_"*.deb "$package"
    ) || exit 1
done

# The folder of a library: "reference", or the end of a package's name and the name of its folder.
folder_of() {
    case $2 in
    reference) echo "$folder/lib${1}3/usr/lib/$architecture/$1" ;;
    blis-*) echo "$folder/libblis4-${2#blis-}/usr/lib/$architecture/$2" ;;
    openblas-*) echo "$folder/libopenblas0-${2#openblas-}/usr/lib/$architecture/$2" ;;
    esac
}

# All libraries of a combination in one folder. Two builds of OpenBLAS cannot be in one process.
link_libraries() {
    mkdir -p "$work/$1+$2"
    ln -sf "$(folder_of blas "$1")/libblas.so.3" "$(folder_of lapack "$2")/liblapack.so.3" "$work/$1+$2"
    for name in "$1" "$2"; do
        case $name in
        openblas-*) ln -sf "$(folder_of blas "$name")/libopenblas.so.0" "$work/$1+$2" ;;
        esac
    done
}

# NumPy's products and decompositions beside the library's, whichever is loaded first.
python_program() {
    cat <<'END'
import ctypes, os, sys
if sys.argv[1] == "wengert":
    ctypes.CDLL(os.environ["WENGERT_LIBRARY"])
import numpy
import wengert
a = numpy.random.default_rng(1).standard_normal((16, 96, 96))
a = a @ a.transpose(0, 2, 1)
for _ in range(3):
    values, vectors = wengert.eigh(wengert.from_numpy(a))
    numpy.testing.assert_allclose(values.numpy(), numpy.linalg.eigvalsh(a), rtol=1e-9, atol=1e-9)
    v = vectors.numpy()
    numpy.testing.assert_allclose((v * values.numpy()[:, None]) @ v.transpose(0, 2, 1), a, atol=1e-9)
END
}

python() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$build/python" \
        WENGERT_LIBRARY="$build/.libs/libwengert.so.0" /usr/bin/python3 "$work/both.py" "$1"
}

# Runs a command with the libraries of the combination; a failure is named in $problems.
try() {
    "$@" >"$work/out" 2>"$work/err" </dev/null && return
    problems="$problems$*${OPENBLAS_CORETYPE:+ (OPENBLAS_CORETYPE=$OPENBLAS_CORETYPE)}
$(grep -h '^not ok\|rror' "$work/out" "$work/err" | head -n 8)
"
}

try_all() {
    try "$build/wengert" --version
    try "$build/wengert" doctor
    calls=$(sed -n 's/^    calls of lapack *//p' "$work/out")
    test "$calls" = "$expected" || problems="${problems}doctor says of calls: $calls
"
    CK_RUN_SUITE=linalg_threads try "$build/tests/test_ops"
    grep -q '^ok' "$work/out" || problems="${problems}no test has passed
"
    try "$build/wengert" gradcheck svdvals matrix_norm svd
    if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
        try python numpy
        try python wengert
    fi
}

python_program >"$work/both.py"
export LINALG_ROUNDS=20
for blas in reference blis-serial blis-pthread blis-openmp openblas-serial openblas-pthread openblas-openmp; do
    for lapack in reference openblas-serial openblas-pthread openblas-openmp; do
        case " ${COMBINATIONS:-$blas+$lapack} " in *" $blas+$lapack "*) ;; *) continue ;; esac
        expected='one after the other'
        case $blas+$lapack in
        openblas-*+openblas-*) test "$blas" = "$lapack" || continue ;;
        openblas-*) ;;
        *+reference) expected='several threads at a time' ;;
        esac
        link_libraries "$blas" "$lapack"
        problems=
        (
            export LD_LIBRARY_PATH="$work/$blas+$lapack"
            try_all
            case $blas+$lapack in
            *openblas*)
                export OPENBLAS_CORETYPE=Haswell
                try_all
                ;;
            esac
            printf '%s' "$problems" >"$work/problems"
        )
        cp "$work/problems" "$work/err"
        : >"$work/out"
        cd "$work" || exit 1
        check "libblas.so.3 of $blas, liblapack.so.3 of $lapack: $expected" test ! -s problems
    done
done
finish
