#!/bin/sh
# Two ranks on two "hosts" of this machine: network namespaces, joined by a cable of 1 Gbit/s, over which
# Open MPI sends by TCP. Prints how much of the exchange of gradients is hidden behind the backward pass,
# and what gradients in bf16 save.
#
#     sh bench/two_hosts.sh [WENGERT [MODEL [BATCH [SEQUENCE]]]]        as root
#
# STEPS (15) are trained of each kind. A step's time is the median; exchanged bytes are those that the
# cable has counted. The exchange takes BYTES / RATE; what a step takes longer than over a cable without
# a limit is the part of it that is not hidden.
set -u
wengert=${1:-build/wengert} model=${2:-bert-mini} batch=${3:-32} sequence=${4:-128}
steps=${STEPS:-15} rate=${RATE:-1000} # Mbit/s
wengert=$(cd "$(dirname "$wengert")" && pwd)/$(basename "$wengert")

skip() {
    echo "skipped: $*"
    exit 0
}
test "$(id -u)" = 0 || skip 'network namespaces want root'
command -v mpirun >/dev/null || skip 'there is no mpirun; Debian has it in openmpi-bin'
mpirun --version 2>/dev/null | grep -q 'Open MPI' || skip 'this mpirun is not that of Open MPI'
command -v ip >/dev/null && command -v tc >/dev/null || skip 'there is no ip or tc; Debian has them in iproute2'
command -v unshare >/dev/null || skip 'there is no unshare; Debian has it in util-linux'

work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-hosts.XXXXXX") || exit 1
tag=wg$$
clean() {
    ip netns del ${tag}a 2>/dev/null
    ip netns del ${tag}b 2>/dev/null
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM
{ ip netns add ${tag}a && ip netns add ${tag}b; } 2>"$work/why" || skip "no network namespace: $(cat "$work/why")"
ip link add veth0 netns ${tag}a type veth peer name veth0 netns ${tag}b 2>"$work/why" ||
    skip "no pair of network devices: $(cat "$work/why")"
for host in a b; do
    test $host = a && address=10.77.0.1 || address=10.77.0.2
    ip -n $tag$host address add $address/24 dev veth0
    ip -n $tag$host link set veth0 up
    ip -n $tag$host link set lo up
done

# limit RATE: both ends of the cable, in Mbit/s; 0: none.
limit() {
    for host in a b; do
        tc -n $tag$host qdisc del dev veth0 root 2>/dev/null
        test "$1" = 0 || tc -n $tag$host qdisc add dev veth0 root tbf rate "$1mbit" burst 256kb latency 50ms ||
            return 1
    done
}
limit "$rate" 2>"$work/why" || skip "tc cannot limit the rate: $(cat "$work/why")"

# What mpirun calls instead of ssh: HOST COMMAND...
cat >"$work/agent" <<END
#!/bin/sh
host=\$1
shift
test "\$host" = 10.77.0.1 && name=a || name=b
exec ip netns exec $tag\$name unshare --uts sh -c "hostname host-\$name; \$*"
END
chmod +x "$work/agent"

# run NAME ARGUMENT...: trains on both hosts; leaves $work/NAME.log.
run() {
    name=$1
    shift
    rm -f "$work/run.h5" "$work/$name.log"
    ip netns exec ${tag}a unshare --uts sh -c "hostname host-a; exec \"\$@\"" sh \
        mpirun --allow-run-as-root -n 2 --host 10.77.0.1:1,10.77.0.2:1 --mca plm_rsh_agent "$work/agent" \
        --mca btl tcp,self --mca btl_tcp_if_include veth0 --mca oob_tcp_if_include veth0 \
        --mca mpi_yield_when_idle 1 --bind-to none -x OMP_NUM_THREADS=1 \
        "$wengert" pretrain $kind --preset "$model" --corpus "$work/text.txt" --batch "$batch" --accumulate 2 \
        --seq "$sequence" --steps "$steps" --eval "$work/held.txt" --save-every 1000 --out "$work/run.h5" \
        --log "$work/$name.log" "$@" >"$work/out" 2>"$work/err" </dev/null || {
        cat "$work/err" >&2
        exit 1
    }
}
sent() {
    ip -n ${tag}a -s link show veth0 | awk '/TX:/ { getline; print $1 }'
}
# Seconds of a step, the first three left out.
median() {
    sed 's/.*"tokens_per_s": \([^,}]*\).*/\1/' "$work/$1.log" | tail -n +4 | sort -n |
        awk -v tokens=$((2 * batch * sequence)) '{ v[NR] = $1 } END { print tokens / v[int((NR + 1) / 2)] }'
}

case $model in
bert*) kind=bert ;;
gpt*) kind=gpt ;;
llama*) kind=llama ;;
*) kind=$model ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
cat "$root"/corpus/books/*.txt | head -n 30000 >"$work/text.txt"
head -n 400 "$work/text.txt" >"$work/held.txt"

echo "$model, batches of $batch x $sequence tokens, 2 ranks of 1 thread, $rate Mbit/s; load $(cut -d ' ' -f 1 /proc/loadavg)"
limit 0
run free
limit "$rate"
# Before the first step rank 0 sends its weights, which a run of one step tells.
begun=$(sent)
all=$steps steps=1
run first
one=$(($(sent) - begun)) steps=$all
for dtype in f32 bf16; do
    begun=$(sent)
    run $dtype --communication-dtype $dtype
    echo $((($(sent) - begun - one) / (steps - 1))) >"$work/$dtype.bytes"
done
free=$(median free)
for dtype in f32 bf16; do
    awk -v dtype=$dtype -v bytes="$(cat "$work/$dtype.bytes")" -v rate="$rate" -v free="$free" \
        -v step="$(median $dtype)" 'BEGIN {
        exchange = bytes * 8 / (rate * 1e6)
        open = step - free
        printf "%-5s %7.1f MB a step and rank, %6.3f s at this rate; a step %6.3f s, without a limit %6.3f s: %.0f %% is hidden\n",
            dtype, bytes / 1e6, exchange, step, free, 100 * (open > 0 ? 1 - open / exchange : 1)
    }'
done
awk -v a="$(cat "$work/f32.bytes")" -v b="$(cat "$work/bf16.bytes")" 'BEGIN {
    printf "bf16 sends %.0f %% of the bytes\n", 100 * b / a }'
