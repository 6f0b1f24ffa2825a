#!/bin/sh
# Checks that wg_from_array compiles in C and C++ where the array has the elements of the dtype, and does
# not where it has others. Prints TAP.
. "$(dirname "$0")/cli/setup.sh"
mkdir include
ln -s "$source" include/wengert

# Compiles a function whose body is $2, as c or c++ ($1).
compile() {
    cat >"use.$1" <<END
#include <wengert/wengert.h>
wg_tensor *use(wg_dtype dtype, int64_t count, const void *anything);
wg_tensor *use(wg_dtype dtype, int64_t count, const void *anything) {
    static float f32[4], grid[2][2];
    static double f64[4], wide[2][2];
    static int32_t i32[4];
    static int64_t i64[4];
    static uint16_t bf16[4];
    static uint8_t u8[4];
    static bool truth[4];
    (void)dtype, (void)count, (void)anything, (void)f32, (void)grid, (void)f64, (void)wide;
    (void)i32, (void)i64, (void)bf16, (void)u8, (void)truth;
    return $2;
}
END
    if test "$1" = c; then
        # shellcheck disable=SC2086
        ${CC:-cc} -std=c11 -Wall -Wextra -pedantic -Werror -Iinclude -c use.c -o use.o 2>err
    else
        "${CXX:-g++}" -std=c++11 -Wall -Wextra -pedantic -Werror -Iinclude -c use.cc -o use.o \
            2>err
    fi
}

accepted() {
    check "$1: $2" compile "$1" "$2"
}

# A refusal is that of the check, and not another error.
refused() {
    language=$1 call=$2
    check "$1 refuses $2" eval \
        '! compile $language "$call" && grep -q wg_array_of_another_dtype err'
}

languages=c
command -v "${CXX:-g++}" >/dev/null && languages='c cc'
for language in $languages; do
    while read -r call; do
        accepted "$language" "$call"
    done <<'END'
wg_from_array(WG_F32, WG_DIMS(2, 2), f32)
wg_from_array(WG_F32, WG_DIMS(2, count), grid)
wg_from_array(WG_F64, 1, &count, f64)
wg_from_array(WG_I32, WG_DIMS(4), i32)
wg_from_array(WG_I64, WG_DIMS(4), (const int64_t *)i64)
wg_from_array(WG_BF16, WG_DIMS(4), bf16)
wg_from_array(WG_U8, WG_DIMS(4), u8)
wg_from_array(WG_BOOL, WG_DIMS(4), truth)
wg_from_array(WG_F32, WG_DIMS(4), anything)
wg_from_array(WG_F32, WG_DIMS(0), NULL)
wg_from_array(dtype, WG_DIMS(4), f64)
(wg_from_array)(WG_F32, WG_DIMS(4), f64)
END
    while read -r call; do
        refused "$language" "$call"
    done <<'END'
wg_from_array(WG_F32, WG_DIMS(2, 2), f64)
wg_from_array(WG_F32, 1, &count, (const double *)f64)
wg_from_array(WG_F64, WG_DIMS(4), f32)
wg_from_array(WG_I64, WG_DIMS(4), i32)
wg_from_array(WG_F32, WG_DIMS(4), bf16)
wg_from_array(WG_BOOL, WG_DIMS(4), f32)
END
done
# Literals of numbers that are not constants: clang has its own rules for them.
for compiler in "${CC:-cc}" $(command -v clang); do
    CC=$compiler
    accepted c 'wg_from_array(WG_F64, WG_DIMS(2), (double[]){1, 2})'
    accepted c 'wg_from_array(WG_F64, WG_DIMS(2), (double[]){1, (double)count})'
    refused c 'wg_from_array(WG_F32, WG_DIMS(2), (double[]){1, 2})'
    refused c 'wg_from_array(WG_F32, WG_DIMS(2), (double[]){1, (double)count})'
done
test "$languages" = c || refused cc 'wg_from_array(WG_F32, WG_DIMS(2, 2), wide)'
finish
