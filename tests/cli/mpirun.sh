# shellcheck shell=sh
# Functions of the scripts that run the command under mpirun, which source this file after tap.sh.

# More ranks than cores, by root, in a container: what Open MPI 4 (OMPI_) and 5 (PRTE_) want for that.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_rmaps_base_no_schedule_local=0
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy PRTE_MCA_hwloc_default_binding_policy
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export OMPI_MCA_hwloc_base_binding_policy OMPI_MCA_mpi_yield_when_idle
export OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_rmaps_base_no_schedule_local
# MPI keeps what it allocates up to the end.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS

# Runs beside each other would share /tmp.
if test -n "$work"; then
    mkdir -p "$work/.mpi"
    export TMPDIR="$work/.mpi"
fi

# Ends the script if there is no mpirun, or the command does not know of several ranks.
need_ranks() {
    if ! command -v mpirun >/dev/null; then
        skip 'several ranks' 'there is no mpirun; Debian has it in openmpi-bin'
        finish
    fi
    ranks 2 info none.h5
    if grep -qE 'was built without MPI|MPI sees one' err; then
        check 'what MPI is wrong is told once' test "$(grep -c '^wengert: ' err)" = 1
        skip 'several ranks' "$(grep -oE 'built without MPI|MPI sees one' err | head -n 1)"
        finish
    fi
}

# In a rank: runs a command with its output in files of the rank. The mpirun of Open MPI 5.0.7 sends the beginning
# of a line to stderr where a rank writes more than 4096 bytes (seen in 12 of 12 runs).
# shellcheck disable=SC2016 # the rank expands them
in_rank='exec >".rank.$OMPI_COMM_WORLD_RANK.out" 2>".rank.$OMPI_COMM_WORLD_RANK.err"'

# collect MPIRUN-ARGUMENT...: as run, with the outputs of the ranks one after the other.
collect() {
    mpirun "$@" >out 2>err </dev/null
    code=$?
    cat .rank.*.out >>out
    cat .rank.*.err >>err
    rm -f .rank.*
}

# Runs the command as so many ranks; as run.
ranks() {
    count=$1
    shift
    collect -n "$count" sh -c "$in_rank"' && exec "$@"' sh "$wengert" "$@"
}

# each_rank COMMAND...: rank 0 runs the first shell command, rank 1 the second; as run. The mpirun of Open MPI 5.0.7
# crashes at `-n 1 A : -n 1 B' (its issue 13303).
each_rank() {
    export wengert
    collect -n $# sh -c "$in_rank"' && shift "$OMPI_COMM_WORLD_RANK" && eval "exec $1"' sh "$@"
}
