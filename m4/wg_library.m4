# How configure looks for libraries: each by name, all that are missing reported at once.

# WG_MISSING(WHAT, DEBIAN-PACKAGE): remembers what WG_REPORT_MISSING will tell.
AC_DEFUN([WG_MISSING], [
    wg_missing="$wg_missing
    $1 (Debian package $2)"
    case " $wg_missing_packages " in
    *" $2 "*) ;;
    *) wg_missing_packages="$wg_missing_packages $2" ;;
    esac
])

# WG_REPORT_MISSING: stops configure if anything was missing, with the line that installs it all.
AC_DEFUN([WG_REPORT_MISSING], [
    AS_IF([test -n "$wg_missing"],
          [AC_MSG_ERROR([these are missing:$wg_missing
On Debian, as root:
    apt-get install$wg_missing_packages])])
])

# WG_LIBRARY(VARIABLE, NAME, PKG-CONFIG-MODULES, FALLBACK-LIBS, DEBIAN-PACKAGE, INCLUDES, BODY)
# Sets VARIABLE_CFLAGS and VARIABLE_LIBS (from the first of the modules that pkg-config knows, else
# no flags and FALLBACK-LIBS) if a program of those includes and that body compiles and links. The
# user may give either variable to configure. Headers are taken in as system ones: they do not
# answer to our warnings.
AC_DEFUN([WG_LIBRARY], [
    AC_ARG_VAR([$1_CFLAGS], [C compiler flags for $2])
    AC_ARG_VAR([$1_LIBS], [linker flags for $2])
    AC_MSG_CHECKING([for $2])
    wg_module=
    AS_IF([test -n "$PKG_CONFIG"],
          [for wg_candidate in $3; do
               AS_IF([$PKG_CONFIG --exists $wg_candidate], [wg_module=$wg_candidate; break])
           done])
    AS_IF([test -z "${$1_CFLAGS+set}" && test -n "$wg_module"],
          [$1_CFLAGS=`$PKG_CONFIG --cflags $wg_module | sed 's/-I/-isystem /g'`])
    AS_IF([test -z "${$1_LIBS+set}"],
          [AS_IF([test -n "$wg_module"],
                 [$1_LIBS=`$PKG_CONFIG --libs $wg_module`],
                 [$1_LIBS="$4"])])
    wg_saved_CFLAGS=$CFLAGS
    wg_saved_LIBS=$LIBS
    CFLAGS="$CFLAGS $$1_CFLAGS"
    LIBS="$$1_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([$6], [$7])],
                   [AC_MSG_RESULT([yes])],
                   [AC_MSG_RESULT([no])
                    WG_MISSING([$2], [$5])])
    CFLAGS=$wg_saved_CFLAGS
    LIBS=$wg_saved_LIBS
])

# WG_FIND_BLIS: any build of BLIS, which is called on one thread. Debian has three builds, and
# update-alternatives chooses which of them has the plain name, so the folder of one is named to
# compiler, linker and loader. --with-blis=PREFIX takes one built by hand.
AC_DEFUN([WG_FIND_BLIS], [
    AC_ARG_WITH([blis],
                [AS_HELP_STRING([--with-blis=PREFIX], [where BLIS is (default: the system's)])
AS_HELP_STRING([--without-blis], [compute all products by the library's own kernels])])
    AS_IF([test "x$with_blis" != xno], [
        AS_CASE([${with_blis:-yes}],
                [yes],
                [wg_multiarch=$host_cpu-$host_os
                 for wg_build in serial pthread openmp; do
                     wg_blis_include=/usr/include/$wg_multiarch/blis-$wg_build
                     wg_blis_lib=/usr/lib/$wg_multiarch/blis-$wg_build
                     AS_IF([test -f "$wg_blis_include/blis.h"], [break])
                 done],
                [wg_blis_include=$with_blis/include/blis
                 wg_blis_lib=$with_blis/lib])
        AS_IF([test -z "${BLIS_CFLAGS+set}" && test -f "$wg_blis_include/blis.h"],
              [BLIS_CFLAGS="-isystem $wg_blis_include"])
        AS_IF([test -z "${BLIS_LIBS+set}" && test -d "$wg_blis_lib"],
              [BLIS_LIBS="-L$wg_blis_lib -lblis"
               WG_LDFLAGS="$WG_LDFLAGS -Wl,-rpath,$wg_blis_lib"])
        WG_LIBRARY([BLIS], [BLIS], [blis], [-lblis], [libblis-serial-dev],
                   [#include <blis.h>],
                   [rntm_t threads = BLIS_RNTM_INITIALIZER;
                    bli_rntm_set_num_threads(1, &threads);
                    return bli_info_get_int_type_size() == 0;])
        AC_DEFINE([WG_BLIS], [1], [Small products are computed by BLIS.])])
])

# WG_FIND_MPI: MPI, found by its compiler wrapper, whose flags are taken over: mpicc, or what
# --with-mpi=MPICC names. Left out where it is missing, unless --with-mpi asks for it.
AC_DEFUN([WG_FIND_MPI], [
    AC_ARG_VAR([MPI_CFLAGS], [C compiler flags for MPI])
    AC_ARG_VAR([MPI_LIBS], [linker flags for MPI])
    AC_ARG_WITH([mpi],
                [AS_HELP_STRING([--with-mpi@<:@=MPICC@:>@],
                                [train on several machines, by the MPI of this compiler wrapper
                                 (default: mpicc, if it is there)])])
    AS_CASE([${with_mpi:-auto}],
            [no], [wg_mpicc=],
            [auto|yes], [AC_PATH_PROG([wg_mpicc], [mpicc])],
            [wg_mpicc=$with_mpi])
    AS_IF([test "x$with_mpi" = xno],
          [wg_has_mpi=no],
          [AC_MSG_CHECKING([for MPI])
           AS_IF([test -z "${MPI_CFLAGS+set}" && test -n "$wg_mpicc"],
                 [for wg_flag in `$wg_mpicc -show 2>/dev/null`; do
                      AS_CASE([$wg_flag],
                              [-I*], [MPI_CFLAGS="$MPI_CFLAGS -isystem ${wg_flag@%:@-I}"],
                              [-D*|-pthread], [MPI_CFLAGS="$MPI_CFLAGS $wg_flag"])
                  done])
           AS_IF([test -z "${MPI_LIBS+set}" && test -n "$wg_mpicc"],
                 [for wg_flag in `$wg_mpicc -show 2>/dev/null`; do
                      AS_CASE([$wg_flag],
                              [-Wl,-z,*], [],
                              [-L*|-l*|-Wl,*|-pthread], [MPI_LIBS="$MPI_LIBS $wg_flag"])
                  done])
           wg_saved_CFLAGS=$CFLAGS
           wg_saved_LIBS=$LIBS
           CFLAGS="$CFLAGS $MPI_CFLAGS"
           LIBS="$MPI_LIBS $LIBS"
           AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <mpi.h>],
                                           [MPI_Request r;
                                            return MPI_Ibcast(0, 0, MPI_BYTE, 0, MPI_COMM_WORLD, &r);])],
                          [wg_has_mpi=yes],
                          [wg_has_mpi=no])
           CFLAGS=$wg_saved_CFLAGS
           LIBS=$wg_saved_LIBS
           AC_MSG_RESULT([$wg_has_mpi])
           AS_IF([test $wg_has_mpi = no && test -n "$with_mpi"],
                 [WG_MISSING([MPI], [libopenmpi-dev])])])
    AS_IF([test $wg_has_mpi = yes],
          [AC_DEFINE([WG_MPI], [1], [Groups of several processes are built, by MPI.])],
          [MPI_CFLAGS= MPI_LIBS=])
    AM_CONDITIONAL([MPI], [test $wg_has_mpi = yes])
])

# WG_COMPILER_FLAGS(VARIABLE, FLAGS): adds those of the flags that the compiler takes.
AC_DEFUN([WG_COMPILER_FLAGS], [
    for wg_flag in m4_normalize([$2]); do
        AC_MSG_CHECKING([whether $CC takes $wg_flag])
        wg_saved_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS -Werror $wg_flag"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
                          [AC_MSG_RESULT([yes])
                           $1="$$1 $wg_flag"],
                          [AC_MSG_RESULT([no])])
        CFLAGS=$wg_saved_CFLAGS
    done
])

# WG_LINKER_FLAGS(VARIABLE, FLAGS): adds those of the flags that the linker takes.
AC_DEFUN([WG_LINKER_FLAGS], [
    for wg_flag in m4_normalize([$2]); do
        AC_MSG_CHECKING([whether $CC links with $wg_flag])
        wg_saved_LDFLAGS=$LDFLAGS
        LDFLAGS="$LDFLAGS $wg_flag"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
                       [AC_MSG_RESULT([yes])
                        $1="$$1 $wg_flag"],
                       [AC_MSG_RESULT([no])])
        LDFLAGS=$wg_saved_LDFLAGS
    done
])
