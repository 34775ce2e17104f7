# shellcheck shell=bash
# Two machines for tests and benchmarks: network namespaces, joined by a pair of virtual interfaces.
# Needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN). Sourced.
#
#   netns_missing          prints what the machine lacks; nothing: it has all
#   netns_make NAME        makes NAME-a and NAME-b, with two interfaces each: `wire` (10.99.0.1 and .2,
#                          fd99::1 and ::2) for what is tested, and `lan` (10.98.0.1 and .2) for mpirun
#   netns_drop NAME        removes them, and ends what still runs there
#   netns_in NAME SIDE COMMAND...   runs a command on side a or b, which is its host's name
#   netns_agent NAME FILE  writes what mpirun takes for ssh
#   netns_rails NAME MBIT...  adds interfaces of limited rates, one for each rail; needs tc
#   netns_cut NAME NUMBER, netns_mend NAME NUMBER MBIT   cuts such a rail, and mends it

netns_missing() {
  local tool
  for tool in ip unshare; do
    command -v "$tool" >/dev/null || { echo "no $tool: install iproute2 and util-linux"; return; }
  done
  [ "$(id -u)" = 0 ] || { echo "network namespaces need root"; return; }
  local probe=riopmd-probe-$$
  if ! ip netns add "$probe" 2>/dev/null; then
    echo "no network namespaces may be made here"
    return
  fi
  ip -n "$probe" link add wire type veth peer name other 2>/dev/null || echo "the kernel has no veth"
  ip netns del "$probe"
}

netns_make() {
  local name=$1 side number=1
  for side in a b; do
    ip netns add "$name-$side"
    ip -n "$name-$side" link set lo up
  done
  ip -n "$name-a" link add wire type veth peer name wire netns "$name-b"
  ip -n "$name-a" link add lan type veth peer name lan netns "$name-b"
  for side in a b; do
    ip -n "$name-$side" address add "10.99.0.$number/24" dev wire
    ip -n "$name-$side" address add "fd99::$number/64" dev wire nodad
    ip -n "$name-$side" address add "10.98.0.$number/24" dev lan
    ip -n "$name-$side" link set wire up
    ip -n "$name-$side" link set lan up
    number=2
  done
  # Programs that look for interfaces take only those that are running, which they are a while later.
  for side in a b; do
    for _ in $(seq 100); do
      [ "$(ip -n "$name-$side" link show up | grep -c 'state UP')" = 2 ] && break
      sleep 0.05
    done
  done
}

netns_drop() {
  local name=$1 side pids
  for side in a b; do
    pids=$(ip netns pids "$name-$side" 2>/dev/null || true)
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
    ip netns del "$name-$side" 2>/dev/null || true
  done
}

# shellcheck disable=SC2016 # expanded by the inner shell
netns_in() {
  local host=$1-$2
  shift 2
  ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$host" "$@"
}

netns_agent() {
  cat >"$2" <<'AGENT'
#!/bin/sh
# HOST COMMAND...: as ssh would, on another namespace of this machine
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && eval "$1"' "$host" "$*"
AGENT
  chmod +x "$2"
}

# netns_rails NAME MBIT...: gives the two machines of netns_make a pair of interfaces for each rate, r0, r1
# and so on (10.97.N.1 and .2), whose queues send at that rate; those of an earlier call are removed.
# A link holds 20 ms of its rate, as a switch would.
netns_rails() {
  local name=$1 number=0 rate side host
  shift
  for number in 0 1 2 3 4 5 6 7; do
    ip -n "$name-a" link del "r$number" 2>/dev/null || true
  done
  number=0
  for rate in "$@"; do
    ip -n "$name-a" link add "r$number" type veth peer name "r$number" netns "$name-b"
    host=1
    for side in a b; do
      ip -n "$name-$side" address add "10.97.$number.$host/24" dev "r$number"
      ip -n "$name-$side" link set "r$number" up
      tc -n "$name-$side" qdisc add dev "r$number" root tbf rate "${rate}mbit" burst 64kb latency 20ms
      host=2
    done
    number=$((number + 1))
  done
}

# netns_cut NAME NUMBER: nothing passes the rail's link any more, though it seems to be up.
# netns_mend NAME NUMBER MBIT: it passes again.
netns_cut() {
  local side
  for side in a b; do
    tc -n "$1-$side" qdisc replace dev "r$2" root tbf rate 8bit burst 1b limit 1b
  done
}

netns_mend() {
  local side
  for side in a b; do
    tc -n "$1-$side" qdisc replace dev "r$2" root tbf rate "${3}mbit" burst 64kb latency 20ms
  done
}
