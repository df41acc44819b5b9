#!/bin/bash
# t3d_bench_aggregate with every rank in a network namespace of its own, joined by a bridge over
# links of a capped rate: replicas on machines with a slow network, on one machine. Needs root.
#
#   bench/aggregate_netns.sh [RANKS=4] [RATE=1gbit] [arguments of t3d_bench_aggregate ...]
#
# BUILD names the build folder (build/cpu). Namespaces, links and the bridge go away at the end,
# whatever the end; nothing that was there before is touched. To mpirun, which stays outside with an
# address of its own on the bridge, each namespace is a machine.
set -euo pipefail
cd "$(dirname "$0")/.."

ranks=${1:-4}
rate=${2:-1gbit}
shift $(($# < 2 ? $# : 2))
program=$PWD/${BUILD:-build/cpu}/bench/t3d_bench_aggregate
prefix=t3d$$          # interface names have 15 characters
network=10.203.$(($$ % 256))
made=()               # what to run at the end, last one first
hosts=
scratch=$(mktemp -d)

clean_up() {
  for ((at = ${#made[@]} - 1; at >= 0; --at)); do ${made[at]} || true; done
  rm -rf "$scratch"
}
trap clean_up EXIT

command -v ip tc > /dev/null || apt-get install -y -q iproute2 > /dev/null
[[ -x $program ]] || { echo "$program is missing: build target t3d_bench_aggregate" >&2; exit 66; }

# Sending and receiving share the rank's link as on a full-duplex card: each end is shaped alone.
shape() {
  "$@" root tbf rate "$rate" burst 128kb latency 50ms
}

ip link add "$prefix" type bridge
made+=("ip link del $prefix")
ip addr add "$network.254/24" dev "$prefix"
ip link set "$prefix" up
for ((rank = 0; rank < ranks; ++rank)); do
  space=$prefix-$rank
  link=${prefix}v$rank
  ip netns add "$space"
  made+=("ip netns del $space")
  hosts+=${hosts:+,}$space
  ip link add "$link" type veth peer name eth0 netns "$space"
  made+=("ip link del $link")  # both ends
  ip link set "$link" master "$prefix" up
  ip -n "$space" addr add "$network.$((rank + 1))/24" dev eth0
  ip -n "$space" link set eth0 up
  ip -n "$space" link set lo up
  shape tc qdisc add dev "$link"
  shape tc -n "$space" qdisc add dev eth0
done

# mpirun asks it to run a daemon on a machine: in the namespace of that name, with its host name.
cat > "$scratch/enter" <<'END'
#!/bin/bash
space=$1
shift
exec ip netns exec "$space" unshare --uts bash -c 'hostname "$0"; eval "$@"' "$space" "$*"
END
chmod +x "$scratch/enter"
echo "# $ranks namespaces, $rate each"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  mpirun -n "$ranks" --host "$hosts" --oversubscribe --bind-to none \
  --mca plm_rsh_agent "$scratch/enter" --mca plm_rsh_no_tree_spawn 1 \
  --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include "$network.0/24" \
  --mca oob_tcp_if_include "$network.0/24" --mca mpi_yield_when_idle 1 "$program" "$@"
