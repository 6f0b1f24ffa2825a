#!/bin/sh
# Installs the library and the command in a folder, moves the folder, and builds programs with what is
# there: by pkg-config in C, C++ and with the static library, and by CMake. Prints TAP.
#
#   sh tests/install.sh                   installs first (make check)
#   sh tests/install.sh BINDIR LIBDIR     checks what is installed (make installcheck)
. "$(dirname "$0")/cli/setup.sh"
unset LD_LIBRARY_PATH CFLAGS CXXFLAGS LDFLAGS PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR

# Runs a command of the outer make's in the build, as another make.
build_again() {
    MAKEFLAGS='' MAKELEVEL='' make -C "$build" "$@" >out 2>err
}

if test $# = 2; then
    bin=$1 lib=$2
else
    check "make install installs in another prefix" build_again install prefix="$work/first_place"
    mv first_place "second place"
    bin="$work/second place/bin"
    lib=$(dirname "$(find "$work/second place" -name pkgconfig)")
fi
PKG_CONFIG_LIBDIR=$lib/pkgconfig:$(${PKG_CONFIG:-pkg-config} --variable pc_path pkg-config)
export PKG_CONFIG_LIBDIR
version=$(sed -n 's/.*define WG_VERSION "\(.*\)"/\1/p' "$source/base/api.h")

# ---- The command ----

starts() {
    "$bin/wengert" --version >out 2>err && test "$(cat out)" = "wengert $version"
}
check "the installed command starts" starts

completes() {
    datadir=$(dirname "$bin")/share
    test -s "$datadir/bash-completion/completions/wengert" &&
        { test -s "$datadir/zsh/site-functions/_wengert" ||
            test -s "$datadir/zsh/vendor-completions/_wengert"; } &&
        test -s "$datadir/fish/vendor_completions.d/wengert.fish"
}
check "completion for shells is installed" completes
pages=$(dirname "$bin")/share/man
test $# = 2 || check "manual pages are installed" test -s "$pages/man1/wengert.1" -a -s "$pages/man3/wg_add.3"

# ---- Python ----

# Imports the module from its installed place, with the library that it finds from there.
imports() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$modules /usr/bin/python3 -c '
import sys, wengert
assert wengert.__file__.startswith(sys.argv[1]), wengert.__file__
print(int(wengert.tensor([[1.0, 2, 3], [4, 5, 6]]).sum().item()))' "$modules" >out 2>err &&
        test "$(cat out)" = 21
}
package=$(find "$(dirname "$bin")/lib" -path '*/wengert/_library.py' 2>/dev/null | head -n 1)
modules=$(dirname "$(dirname "$package")")
if test -z "$package"; then
    skip "the installed Python module is imported" "configured without Python"
elif ! /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    skip "the installed Python module is imported" "there is no python3 with NumPy"
else
    check "the installed Python module is imported" imports
fi

# ---- pkg-config ----

from_pkg_config() {
    ${PKG_CONFIG:-pkg-config} "$@" wengert
}

# Compiles a program with the flags that follow, and runs it; its paths may have spaces.
prints_21() {
    compiler=$1 program=$2
    shift 2
    eval "set -- \"\$@\" $(from_pkg_config --cflags)"
    eval "$compiler -Wall -Wextra -Werror \"\$@\" \"$program\" -o program $flags" >out 2>err &&
        LD_LIBRARY_PATH=$lib ./program >out 2>err && test "$(cat out)" = 21
}

names_no_build() {
    from_pkg_config --cflags --libs --variable prefix >out 2>err && ! grep -F -e "first_place" out
}
check "pkg-config knows the version" from_pkg_config --exact-version="$version"
check "pkg-config names the place to which the library was moved" names_no_build
flags=$(from_pkg_config --libs)
check "a C program is built by pkg-config" \
    prints_21 "${CC:-cc}" "$source/tests/install/consumer.c" -std=c11 -pedantic
if command -v "${CXX:-g++}" >/dev/null; then
    check "a C++ program is built by pkg-config" \
        prints_21 "${CXX:-g++}" "$source/tests/install/consumer.cc" -std=c++17 -pedantic
else
    skip "a C++ program is built by pkg-config" "there is no ${CXX:-g++}"
fi
if test -e "$lib/libwengert.a"; then
    mkdir static && cp "$lib/libwengert.a" static
    flags="-Lstatic $(from_pkg_config --libs --static)"
    check "a C program is linked with the static library" \
        prints_21 "${CC:-cc}" "$source/tests/install/consumer.c" -std=c11
else
    skip "a C program is linked with the static library" "configured without"
fi

# ---- CMake ----

# Configures the project for a version of the library, in a new folder.
configured_by_cmake() {
    rm -rf project
    eval "prefix=$(from_pkg_config --variable=prefix)" # it escapes spaces
    cmake -S "$source/tests/install" -B project -DWANTED_VERSION="$1" \
        -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" \
        >out 2>err
}

built_by_cmake() {
    configured_by_cmake "$version" && test "$(cat project/version)" = "$version" &&
        cmake --build project >out 2>err && test "$(project/consumer_c)" = 21 &&
        test "$(project/consumer_cxx)" = 21
}

too_new_for_cmake() {
    ! configured_by_cmake 1000 && grep -q 'compatible with requested version' err
}
if command -v cmake >/dev/null && command -v "${CXX:-g++}" >/dev/null; then
    check "a project finds the library by CMake" built_by_cmake
    check "CMake refuses a version that is not there" too_new_for_cmake
else
    skip "a project finds the library by CMake" "there is no cmake, or no ${CXX:-g++}"
    skip "CMake refuses a version that is not there" "there is no cmake, or no ${CXX:-g++}"
fi

uninstalled() {
    mv "second place" first_place && build_again uninstall prefix="$work/first_place" &&
        find first_place ! -type d >out && ! test -s out
}
test "$bin" = "$work/second place/bin" && check "make uninstall leaves no file" uninstalled
finish
