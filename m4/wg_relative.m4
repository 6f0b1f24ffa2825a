# WG_RELATIVE(VARIABLE, FROM, TO): sets VARIABLE to the path of the folder TO as seen from the folder
# FROM. Both are variables of configure, such as bindir, which may name each other and the prefix.
AC_DEFUN([WG_RELATIVE], [
    wg_saved_prefix=$prefix
    wg_saved_exec_prefix=$exec_prefix
    test "x$prefix" != xNONE || prefix=$ac_default_prefix
    test "x$exec_prefix" != xNONE || exec_prefix=$prefix
    wg_from=[$]$2
    wg_to=[$]$3
    for wg_level in 1 2 3 4; do # libdir -> exec_prefix -> prefix
        eval "wg_from=$wg_from; wg_to=$wg_to"
    done
    prefix=$wg_saved_prefix
    exec_prefix=$wg_saved_exec_prefix
    $1=
    while :; do
        AS_CASE(["$wg_to/"], ["$wg_from/"*], [break])
        wg_from=${wg_from%/*}
        $1=../[$]$1
    done
    wg_to=${wg_to@%:@"$wg_from"}
    $1=[$]$1${wg_to@%:@/}
    $1=${$1%/}
    AC_SUBST([$1])
])
