#!/bin/sh
# Checks that wg_from_array compiles in C and C++ where the array has the elements of the dtype, and does
# not where it has others. Prints TAP.
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/include"
ln -s "$source" "$work/include/wengert"
number=0
failed=0

# Compiles a function whose body is $2, as c or c++ ($1).
compile() {
    cat >"$work/use.$1" <<END
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
        ${CC:-cc} -std=c11 -Wall -Wextra -pedantic -Werror -I"$work/include" -c "$work/use.c" \
            -o "$work/use.o" 2>"$work/errors"
    else
        "${CXX:-g++}" -std=c++11 -Wall -Wextra -pedantic -Werror -I"$work/include" -c "$work/use.cc" \
            -o "$work/use.o" 2>"$work/errors"
    fi
}

result() {
    number=$((number + 1))
    echo "$1 $number - $2"
    test "$1" = ok && return
    sed 's/^/# /' "$work/errors" | head -20
    failed=1
}

accepted() {
    if compile "$1" "$2"; then result ok "$1: $2"; else result 'not ok' "$1: $2"; fi
}

# A refusal is that of the check, and not another error.
refused() {
    if ! compile "$1" "$2" && grep -q wg_array_of_another_dtype "$work/errors"; then
        result ok "$1 refuses $2"
    else
        result 'not ok' "$1 refuses $2"
    fi
}

languages=c
command -v "${CXX:-g++}" >/dev/null && languages='c cc'
for language in $languages; do
    accepted "$language" 'wg_from_array(WG_F32, WG_DIMS(2, 2), f32)'
    accepted "$language" 'wg_from_array(WG_F32, WG_DIMS(2, count), grid)'
    accepted "$language" 'wg_from_array(WG_F64, 1, &count, f64)'
    accepted "$language" 'wg_from_array(WG_I32, WG_DIMS(4), i32)'
    accepted "$language" 'wg_from_array(WG_I64, WG_DIMS(4), (const int64_t *)i64)'
    accepted "$language" 'wg_from_array(WG_BF16, WG_DIMS(4), bf16)'
    accepted "$language" 'wg_from_array(WG_U8, WG_DIMS(4), u8)'
    accepted "$language" 'wg_from_array(WG_BOOL, WG_DIMS(4), truth)'
    accepted "$language" 'wg_from_array(WG_F32, WG_DIMS(4), anything)'
    accepted "$language" 'wg_from_array(WG_F32, WG_DIMS(0), NULL)'
    accepted "$language" 'wg_from_array(dtype, WG_DIMS(4), f64)'
    accepted "$language" '(wg_from_array)(WG_F32, WG_DIMS(4), f64)'
    refused "$language" 'wg_from_array(WG_F32, WG_DIMS(2, 2), f64)'
    refused "$language" 'wg_from_array(WG_F32, 1, &count, (const double *)f64)'
    refused "$language" 'wg_from_array(WG_F64, WG_DIMS(4), f32)'
    refused "$language" 'wg_from_array(WG_I64, WG_DIMS(4), i32)'
    refused "$language" 'wg_from_array(WG_F32, WG_DIMS(4), bf16)'
    refused "$language" 'wg_from_array(WG_BOOL, WG_DIMS(4), f32)'
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
echo "1..$number"
exit $failed
